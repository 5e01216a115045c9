use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use serde_json::json;

use super::orchestrate;
use crate::{app::App, exit::Exit};

/// Cancels a run, whoever drives it: all that is open is called off, and nothing more starts.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run: its id, the beginning of it, or `last`
    #[arg(required_unless_present = "task", conflicts_with = "task")]
    run: Option<String>,
    /// Gives a card of `folkmoot orchestrate` up, and cancels the run that works on it
    #[arg(long, value_name = "ID")]
    task: Option<String>,
}

impl Cancel {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        if let Some(task) = &self.task {
            return orchestrate::cancel(app, task).await;
        }
        let (engine, id) = app.engine_and_run(&self.run.unwrap_or_default()).await?;
        let cancelled = engine.cancel(&id).await?;
        let loaded = engine.load(&id).await?;
        let (status, _) = view::status(&loaded.run, loaded.is_alive());
        if app.wants_json() {
            app.print_json(
                &json!({ "run_id": id.as_str(), "status": status, "cancelled": cancelled }),
            );
        } else if cancelled {
            app.tell(&format!("run {id} is cancelled"));
        } else {
            app.tell(&format!("run {id} had ended already: {}", status.as_str()));
        }
        Ok(Exit::DONE)
    }
}
