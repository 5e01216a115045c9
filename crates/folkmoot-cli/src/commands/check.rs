use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use folkmoot_core::{
    bounds::Bounds,
    check,
    diagnostic::Severity,
    team::{Agent, Target},
};
use serde_json::{Value, json};

use super::team::{Origin, Team};
use crate::{app::App, exit::Exit};

/// Checks a team file: errors, warnings, and what a run takes. No model is called.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The team file
    team: PathBuf,
}

impl Check {
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        let mut team = Team::check(app, &Origin::File(self.team), None, &[])?;
        let unusable = team.unusable(Severity::Warning);
        team.checked.diagnostics.extend(unusable);
        team.leave_out_unusable();
        if app.wants_json() {
            app.print_json(&findings(&team));
        } else {
            team.tell_people(app);
            if let Some(bounds) = team.checked.bounds.as_ref().filter(|_| team.checked.is_valid()) {
                app.print(&in_words(bounds));
            }
        }
        Ok(if team.checked.is_valid() { Exit::DONE } else { Exit::USAGE })
    }
}

fn findings(team: &Team) -> Value {
    let agents: Vec<Value> = team.checked.team.agents.iter().map(agent).collect();
    let mut found = json!({
        "valid": team.checked.is_valid(),
        "errors": team.findings(Severity::Error),
        "warnings": team.findings(Severity::Warning),
        "hints": team.findings(Severity::Hint),
        "bounds": team.checked.bounds,
        "agents": agents,
    });
    let mut stages = Vec::new();
    for (name, graph) in team.checked.graphs() {
        let termination = graph.termination.clone();
        match name {
            None => {
                found["graph"] = json!(graph);
                found["termination"] = json!(termination);
            }
            Some(name) => {
                stages.push(json!({ "name": name, "graph": graph, "termination": termination }));
            }
        }
    }
    if !stages.is_empty() {
        found["stages"] = json!(stages);
    }
    found
}

/// An agent as programs read it.
pub(super) fn agent(agent: &Agent) -> Value {
    let mut shown = json!({
        "name": agent.name,
        "id": agent.id,
        "role": null,
        "description": agent.description,
        "capabilities": agent.capabilities,
        "model": label(&agent.target),
        "grants": agent.grants,
        "sandbox": "read-only",
        "max_steps": agent.max_steps,
        "retries": agent.retries,
    });
    let later = agent.fallbacks.iter().map(|fallback| label(&fallback.target));
    let later: Vec<Option<String>> = later.collect();
    if !later.is_empty() {
        shown["fallbacks"] = json!(later);
    }
    shown
}

/// What answers for an agent, in a word.
pub(super) fn label(target: &Target) -> Option<String> {
    match target {
        Target::Model(model) if check::is_unset(model) => None,
        Target::Model(_) | Target::Script(_) | Target::Demo => target.label(),
    }
}

fn in_words(bounds: &Bounds) -> String {
    let calls = match (bounds.total.calls.min, bounds.total.calls.max) {
        (1, 1) => return "sound: a run takes 1 call".to_owned(),
        (least, most) if least == most => format!("{most} calls"),
        (least, most) => format!("{least} to {most} calls"),
    };
    let order = match bounds.critical_path {
        1 => "all at once".to_owned(),
        all if all == bounds.total.calls.max => "one after the other".to_owned(),
        row => format!("at most {row} in a row"),
    };
    format!("sound: a run takes {calls}, {order}")
}
