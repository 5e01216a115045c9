use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use serde_json::json;

use crate::{app::App, exit::Exit};

/// Cancels a run, whoever drives it: all that is open is called off, and nothing more starts.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run: its id, the beginning of it, or `last`
    run: String,
}

impl Cancel {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let (engine, id) = app.engine_and_run(&self.run).await?;
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
