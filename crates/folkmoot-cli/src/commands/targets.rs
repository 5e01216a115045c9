//! Targets named on the command line: agents of a team file, or models.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use folkmoot_core::{
    file::overrides::{Given, Override},
    spec::Spec,
    view::Status,
};
use serde_json::{Value, json};

use super::team::{Origin, Team};
use crate::app::App;

/// Checks a team of these targets for the task.
pub(super) fn check(
    app: &App,
    targets: &[String],
    team: Option<PathBuf>,
    prompt: &str,
    timeout: Option<String>,
) -> Result<Team> {
    let given = |name: &str, value| Override { name: name.to_owned(), value };
    let mut overrides = vec![given("--strategy", Given::Text("broadcast".to_owned()))];
    overrides.push(given("--rounds", Given::Text("1".to_owned())));
    overrides.extend(timeout.map(|timeout| given("--timeout", Given::Text(timeout))));
    let origin = match team {
        Some(file) => {
            overrides.push(given("agents", Given::Json(json!(targets))));
            Origin::File(file)
        }
        None => Origin::Text(team_of(targets), "targets"),
    };
    Team::check(app, &origin, Some(prompt), &overrides)
}

/// A team file of models. The same target twice is `a` and `a#2`.
fn team_of(targets: &[String]) -> String {
    let agents = targets.iter().enumerate().map(|(at, target)| {
        let name = numbered(targets, at).replace('/', ":");
        json!({ "name": name, "model": target })
    });
    json!({ "agents": agents.collect::<Vec<Value>>() }).to_string()
}

/// The target at `at`, numbered if the same one came before.
fn numbered(targets: &[String], at: usize) -> String {
    match targets[..at].iter().filter(|earlier| **earlier == targets[at]).count() {
        0 => targets[at].clone(),
        earlier => format!("{}#{}", targets[at], earlier + 1),
    }
}

/// The targets, and the name of the agent that stands for each in `spec`.
pub(super) fn agents(spec: &Spec, targets: &[String]) -> Vec<(String, Arc<str>)> {
    let agent = |at: usize| {
        let target = numbered(targets, at);
        let meant = spec.team.find(&target).or_else(|| spec.team.find(&target.replace('/', ":")));
        let name = meant.map_or_else(|| target.as_str().into(), |agent| agent.name.clone());
        (target, name)
    };
    (0..targets.len()).map(agent).collect()
}

/// The state of collaborate.md §9 that a status means.
pub(super) fn state(status: Status) -> &'static str {
    match status {
        Status::Done => "COMPLETE",
        Status::Cancelled => "CANCELLED",
        Status::NeedsInput => "NEEDS_INPUT",
        Status::Running | Status::Interrupted => "WORKING",
        Status::Failed | Status::BudgetExhausted | Status::BoundReached | Status::Deadline => {
            "FAILED"
        }
    }
}
