//! One task for one target, or for many at once: agents of a team file, or models (collaborate.md
//! §§3, 4).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Judged, Members,
    judging::{Judging, given, shown},
};
use crate::spec::Spec;

/// Who is asked if no target is named.
const DEFAULT: &str = "default";

/// The most attempts at one target.
const MOST_ATTEMPTS: u64 = 5;

/// Judges a request to dispatch.
pub(super) fn judge_one(judging: &mut Judging<'_>, in_file: bool) -> Judged {
    let target = judging.name("target", "unknown_provider");
    let attempts = judging.whole("max_retries", "invalid_max_retries");
    if judging.fields.contains_key("provider_session") {
        let message = "the conversation of a provider cannot be continued here";
        judging.wrong("unsupported", message);
    }
    let targets: Vec<String> = target.into_iter().collect();
    let mut judged = judge(judging, &targets, in_file);
    if let (Some(attempts), [named]) = (attempts, &agents_named(&targets, in_file)[..]) {
        let retries = attempts.clamp(1, MOST_ATTEMPTS) - 1;
        judged.overrides.push(given(&format!("agents.{named}.retries"), retries.into()));
    }
    judged
}

/// Judges a request to broadcast.
pub(super) fn judge_all(judging: &mut Judging<'_>, in_file: bool) -> Judged {
    let targets = all(judging.fields);
    if judging.flag("compare") {
        judging.wrong("unsupported", "replies cannot be compared here");
    }
    if targets.is_empty() {
        let given = judging.fields.get("targets").map(shown);
        let given = given.map(|given| format!(", not {given}")).unwrap_or_default();
        judging.wrong("targets_required", format!("targets must be a list of names{given}"));
    }
    judge(judging, &targets, in_file)
}

fn judge(judging: &mut Judging<'_>, targets: &[String], in_file: bool) -> Judged {
    let task = judging.words("task");
    let sandbox = judging.sandbox();
    let timeout = judging.timeout();
    let workdir = judging.name("workdir", "invalid_workdir");
    let mut broadcast = json!({ "strategy": "broadcast", "rounds": 1 });
    let agents = agents_named(targets, in_file);
    let mut overrides = Vec::new();
    if in_file {
        broadcast["agents"] = json!(targets);
    } else {
        let models = agents.iter().zip(targets);
        overrides.extend(models.map(|(agent, target)| {
            given(&format!("agents.{agent}.model"), target.as_str().into())
        }));
    }
    // All of it: what the file says of its own strategy has no place here.
    overrides.push(given("collaboration", broadcast));
    let more = [
        timeout.map(|timeout| given("--timeout", timeout)),
        sandbox.map(|level| given("sandbox", level.as_str().into())),
        workdir.map(|folder| given("workdir", folder.into())),
    ];
    overrides.extend(more.into_iter().flatten());
    let members = Some(Members::Named(agents));
    Judged { members, task, overrides, wait_s: None, refused: Vec::new() }
}

/// The agents that stand for targets.
fn agents_named(targets: &[String], in_file: bool) -> Vec<String> {
    match targets {
        [] => vec![DEFAULT.to_owned()],
        _ if in_file => targets.to_vec(),
        _ => (0..targets.len()).map(|at| agent(targets, at)).collect(),
    }
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

/// The targets of a broadcast, as they were given: a list, or a text with commas.
pub(super) fn all(fields: &Map<String, Value>) -> Vec<String> {
    let named = |name: &str| name.trim().to_owned();
    match fields.get("targets") {
        Some(Value::String(text)) => text.split(',').map(named).collect(),
        Some(Value::Array(items)) => {
            let names: Option<Vec<String>> =
                items.iter().map(|it| it.as_str().map(named)).collect();
            names.unwrap_or_default()
        }
        None | Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Vec::new()
        }
    }
}

/// The target of a dispatch, as it was given, else the model that is asked.
pub(super) fn one(fields: &Map<String, Value>, spec: &Spec) -> String {
    let given = fields.get("target").and_then(Value::as_str).map(str::trim);
    let label = || spec.team.agents.first().and_then(|agent| agent.target.label());
    given.map(str::to_owned).or_else(label).unwrap_or_else(|| DEFAULT.to_owned())
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
