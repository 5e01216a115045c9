use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    app::{App, Kept},
    exit::Exit,
};

/// Runs a recorded run again without any call, and compares every decision byte for byte.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run: its id, the beginning of it, `last`, or an exported file
    run: OsString,
}

impl Replay {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let Kept { engine, run: id, .. } = app.kept(&self.run).await?;
        let loaded = engine.replay(&id).await?;
        let records = loaded.records.len();
        if app.wants_json() {
            app.print_json(&json!({
                "run_id": id.as_str(), "replayed": true, "records": records, "calls_made": 0,
            }));
        } else {
            app.tell(&format!("run {id}: {records} records replayed, every decision as recorded"));
        }
        Ok(Exit::DONE)
    }
}
