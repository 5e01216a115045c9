use anyhow::Result;
use clap::Args;
use folkmoot_core::view::Status;
use folkmoot_runtime::engine::Listed;
use serde_json::{Value, json};

use crate::{
    app::{self, App},
    exit::Exit,
    terminal::tables,
};

/// Lists runs, newest first.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// The most runs to list
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

impl Runs {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let runs = app.engine()?.list(None, self.limit).await?;
        if app.wants_json() {
            app.print_json(&runs.iter().map(listed).collect::<Vec<Value>>());
        } else {
            app.print(&tables::runs(&app.page(), &runs, app::now()));
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
        "started_at": summary.map(|it| app::rfc3339(it.started_at)),
        "ended_at": summary.and_then(|it| it.ended_at).map(app::rfc3339),
        "usage": summary.map(|it| &it.usage),
        "origin": summary.and_then(|it| it.origin.as_ref()),
        "owner": run.owner.as_ref().map(ToString::to_string),
    })
}
