use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use serde_json::json;

use crate::{
    exit::Exit,
    terminal::{stderr, stdout},
    world::Global,
};

/// Cancels a run, whoever drives it: all that is open is called off, and nothing more starts.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run: its id, the beginning of it, or `last`
    run: String,
}

impl Cancel {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let (engine, id) = global.engine_and_run(&self.run).await?;
        let cancelled = engine.cancel(&id).await?;
        let loaded = engine.load(&id).await?;
        let (status, _) = view::status(&loaded.run, loaded.is_alive());
        if global.wants_json() {
            stdout::json(
                &json!({ "run_id": id.as_str(), "status": status, "cancelled": cancelled }),
            );
        } else if cancelled {
            stderr::line(&format!("run {id} is cancelled"));
        } else {
            stderr::line(&format!("run {id} had ended already: {}", status.as_str()));
        }
        Ok(Exit::DONE)
    }
}
