use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use folkmoot_core::view::{Failure, Outcome};
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

/// Gives one task to one agent of a team file, or to a model.
#[derive(Debug, Args)]
pub(crate) struct Dispatch {
    /// An agent of --team, or provider/model, or an alias
    target: String,
    /// The task; `-` reads it from standard input
    prompt: String,
    /// The team file whose agent is meant
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    /// The most time the call may take: seconds, `30m`, or `none`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// Refuses to start unless the worst case is proved to fit the limits
    #[arg(long)]
    strict_budget: bool,
}

impl Dispatch {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let targets = [self.target.clone()];
        let prompt = from_stdin_if_asked(self.prompt)?;
        let team = targets::check(app, &targets, self.team, &prompt, self.timeout)?;
        let spec = match team.within_budget(self.strict_budget).spec(app) {
            Ok(spec) => spec,
            Err(exit) => return Ok(exit),
        };
        let limits = spec.limits;
        let driver = app.engine()?.start(Arc::new(spec)).await?;
        let outcome = drive_quietly(driver, app).await?;
        if app.output() == Output::Json {
            app.print_json(&record(&outcome, &self.target));
        } else {
            tell(&outcome, &limits, app);
        }
        Ok(outcome.status.into())
    }
}

/// The record of collaborate.md §3.
fn record(outcome: &Outcome, target: &str) -> Value {
    let error = outcome.errors.first().map(|Failure { error, .. }| error);
    let status = if outcome.answer.is_some() { "success" } else { "error" };
    json!({
        "run_id": outcome.run_id,
        "state": targets::state(outcome.status),
        "status": status,
        "output": outcome.answer,
        "error": error,
        "served_by": target,
        "attempts": [{ "target": target, "status": status, "error": error, "waited_s": 0 }],
        "usage": outcome.meta.usage.total,
    })
}
