//! Targets named on the command line: agents of a team file, or models.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use folkmoot_core::{
    file::overrides::{Given, Override},
    spec::Spec,
    view::Status,
};
use serde_json::json;

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
    let mut broadcast = json!({ "strategy": "broadcast", "rounds": 1 });
    let mut overrides = Vec::new();
    let origin = if let Some(file) = team {
        broadcast["agents"] = json!(targets);
        Origin::File(file)
    } else {
        let agents: Vec<String> = (0..targets.len()).map(|at| agent(targets, at)).collect();
        overrides.extend(agents.iter().zip(targets).map(|(agent, target)| {
            given(&format!("agents.{agent}.model"), Given::Text(target.clone()))
        }));
        Origin::Agents(agents)
    };
    // All of it: what the file says of its own strategy has no place here.
    overrides.push(given("collaboration", Given::Json(broadcast)));
    overrides.extend(timeout.map(|timeout| given("--timeout", Given::Text(timeout))));
    Team::check(app, &origin, Some(prompt), &overrides)
}

/// The agent that stands for the model at `at`.
fn agent(targets: &[String], at: usize) -> String {
    numbered(targets, at).replace('/', ":")
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
    let named = |at: usize| {
        let target = numbered(targets, at);
        let meant = spec.team.find(&target).or_else(|| spec.team.find(&agent(targets, at)));
        let name = meant.map_or_else(|| target.as_str().into(), |agent| agent.name.clone());
        (target, name)
    };
    (0..targets.len()).map(named).collect()
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
