use anyhow::Result;
use clap::Args;
use folkmoot_core::view::Status;
use folkmoot_runtime::engine::Listed;
use serde_json::{Value, json};

use crate::{
    exit::Exit,
    terminal::{moment, stdout, tables},
    world::Global,
};

/// Lists runs, newest first.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// The most runs to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

impl Runs {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let runs = global.engine()?.list(None, self.limit).await?;
        let runs: Vec<Value> = runs.iter().map(listed).collect();
        if global.wants_json() {
            stdout::json(&Value::Array(runs));
        } else {
            stdout::text(&tables::runs(&runs));
        }
        Ok(Exit::DONE)
    }
}

fn listed(run: &Listed) -> Value {
    let summary = run.summary.as_ref();
    let status = summary.and_then(|summary| summary.status);
    let unfinished = if run.owner.is_some() { Status::Running } else { Status::Interrupted };
    json!({
        "run_id": run.id.as_str(),
        "status": status.unwrap_or(unfinished),
        "reason": summary.and_then(|it| it.reason.clone()),
        "strategy": summary.map(|it| it.strategy.clone()),
        "team": summary.map(|it| it.team.clone()),
        "prompt": summary.map(|it| it.prompt.clone()),
        "started_at": summary.map(|it| moment::rfc3339(it.started_at)),
        "ended_at": summary.and_then(|it| it.ended_at).map(moment::rfc3339),
        "usage": summary.map(|it| &it.usage),
        "owner": run.owner.as_ref().map(ToString::to_string),
    })
}
