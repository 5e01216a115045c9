use anyhow::Result;
use clap::Args;
use folkmoot_core::{bounds::Bounds, diagnostic::Severity, spec::Spec, team::Agent};
use serde_json::{Map, Value, json};

use super::{check::label, team::TeamArgs};
use crate::{app::App, exit::Exit, terminal::plan};

/// Tells what a run can take at most and at least: calls, tokens and money. No model is called.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot plan team.yaml
  folkmoot plan team.yaml \"Review this design\" --rounds 2 --max-cost 0.5")]
pub(crate) struct Plan {
    #[command(flatten)]
    team: TeamArgs,
}

impl Plan {
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        let mut team = self.team.check_for_any_task(app)?;
        let unusable = team.unusable(Severity::Warning);
        team.checked.diagnostics.extend(unusable);
        let bounds = team.checked.bounds.clone();
        let spec = match team.rehearsed_spec(app) {
            Ok(spec) => spec,
            Err(exit) => return Ok(exit),
        };
        let bounds = bounds.expect("what can be run has bounds");
        if app.wants_json() {
            app.print_json(&told(&spec, &bounds));
        } else {
            app.print(&plan::plan(&app.page(), &spec, &bounds));
        }
        Ok(Exit::DONE)
    }
}

/// What a run can take as programs read it.
pub(crate) fn told(spec: &Spec, bounds: &Bounds) -> Value {
    let model = |agent: &Agent| (agent.id.to_string(), json!(label(&agent.target)));
    let models: Map<String, Value> = spec.team.everyone().map(model).collect();
    json!({
        "team": spec.team.name,
        "strategy": spec.collaboration.name(),
        "auto": spec.auto,
        "prompt": Some(&spec.task).filter(|task| !task.is_empty()),
        "bounds": bounds,
        "models": models,
        "warnings": spec.warnings,
    })
}
