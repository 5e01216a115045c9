use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use folkmoot_core::view::{self, CallView, Outcome};
use folkmoot_runtime::driver::Driven;
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
        let means = team.means();
        let spec = match team.within_budget(self.strict_budget).spec(app) {
            Ok(spec) => spec,
            Err(exit) => return Ok(exit),
        };
        let limits = spec.limits;
        // Kept until the result is printed: to close the store takes the disk its time.
        let engine = means.given_to(app.engine()?);
        let driver = engine.start(Arc::new(spec)).await?;
        let (outcome, driven) = drive_quietly(driver, app).await?;
        if app.output() == Output::Json {
            app.print_json(&record(&outcome, &driven, &self.target));
        } else {
            tell(&outcome, &limits, app);
        }
        Ok(outcome.status.into())
    }
}

/// The record of collaborate.md §3: every target that was asked in the trail, under its own name if
/// there is a chain of them.
fn record(outcome: &Outcome, driven: &Driven, target: &str) -> Value {
    let is_chain = driven.spec.team.agents.iter().any(|agent| !agent.fallbacks.is_empty());
    let name = |call: &CallView| match &call.model {
        Some(model) if is_chain => model.clone(),
        Some(_) | None => target.to_owned(),
    };
    let calls = view::calls(&driven.spec, &driven.run);
    let requests: Vec<&CallView> = calls.iter().filter(|call| call.tool.is_none()).collect();
    let attempts: Vec<Value> = requests
        .iter()
        .map(|call| {
            let status = if call.reply.is_some() { "success" } else { "error" };
            let error = call.fault.as_ref().map(|it| &it["error"]);
            let mut attempt =
                json!({ "target": name(call), "status": status, "error": error, "waited_s": 0 });
            if let Some(kind) = call.fault.as_ref().and_then(|it| it.get("kind")) {
                attempt["kind"] = kind.clone();
            }
            attempt
        })
        .collect();
    json!({
        "run_id": outcome.run_id,
        "state": targets::state(outcome.status),
        "status": if outcome.answer.is_some() { "success" } else { "error" },
        "output": outcome.answer,
        "error": outcome.errors.last().map(|it| &it.error).filter(|_| outcome.answer.is_none()),
        "served_by": requests.last().map_or_else(|| target.to_owned(), |call| name(call)),
        "attempts": attempts,
        "usage": outcome.meta.usage.total,
    })
}
