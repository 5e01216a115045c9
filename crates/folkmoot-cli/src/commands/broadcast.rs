use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use folkmoot_core::view::Outcome;
use serde_json::{Value, json};

use super::{
    drive::{drive_quietly, tell},
    targets,
    team::from_stdin_if_asked,
};
use crate::{
    app::{App, Output},
    exit::Exit,
};

/// Gives one task to many agents or models at once; nobody sees anybody.
#[derive(Debug, Args)]
pub(crate) struct Broadcast {
    /// Agents of --team, or provider/model, or aliases, separated by commas
    #[arg(value_name = "TARGETS")]
    targets: String,
    /// The task; `-` reads it from standard input
    prompt: String,
    /// The team file whose agents are meant
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    /// The most time a call may take: seconds, `30m`, or `none`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// Refuses to start unless the worst case is proved to fit the limits
    #[arg(long)]
    strict_budget: bool,
}

impl Broadcast {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let targets: Vec<String> =
            self.targets.split(',').map(|target| target.trim().to_owned()).collect();
        let prompt = from_stdin_if_asked(self.prompt)?;
        let team = targets::check(app, &targets, self.team, &prompt, self.timeout)?;
        let means = team.means();
        let spec = match team.within_budget(self.strict_budget).spec(app) {
            Ok(spec) => spec,
            Err(exit) => return Ok(exit),
        };
        let limits = spec.limits;
        let agents = targets::agents(&spec, &targets);
        // Kept until the result is printed: to close the store takes the disk its time.
        let engine = means.given_to(app.engine()?);
        let driver = engine.start(Arc::new(spec)).await?;
        let (outcome, _) = drive_quietly(driver, app).await?;
        if app.output() == Output::Json {
            app.print_json(&record(&outcome, &agents));
        } else {
            tell(&outcome, &limits, app);
        }
        Ok(outcome.status.into())
    }
}

/// The record of collaborate.md §4: the results in the order of the targets, each with the agent that
/// stood for it.
fn record(outcome: &Outcome, agents: &[(String, Arc<str>)]) -> Value {
    let none = Value::Null;
    let responses = outcome.rounds.first().map_or(&none, |round| &round["responses"]);
    let result = |(target, agent): &(String, Arc<str>)| {
        let usage = outcome.meta.usage.agents.get(&**agent).copied().unwrap_or_default();
        let response = &responses[&**agent];
        match response.get("error") {
            Some(error) => {
                json!({ "target": target, "status": "error", "error": error, "usage": usage })
            }
            None => {
                json!({ "target": target, "status": "success", "output": response, "usage": usage })
            }
        }
    };
    let results: Vec<Value> = agents.iter().map(result).collect();
    let success = results.iter().filter(|result| result["status"] == "success").count();
    let (total, error) = (results.len(), results.len() - success);
    json!({
        "run_id": outcome.run_id,
        "state": targets::state(outcome.status),
        "results": results,
        "summary": { "total": total, "success": success, "error": error },
        "comparison": null,
    })
}
