use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    app::{App, Kept},
    exit::Exit,
};

/// Proves that the record of a run is as it was written: nothing changed, missing or moved.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The run: its id, the beginning of it, `last`, or an exported file
    run: OsString,
}

impl Verify {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let Kept { engine, run: id, .. } = app.kept(&self.run).await?;
        let head = engine.verify(&id).await?;
        if app.wants_json() {
            app.print_json(&json!({
                "run_id": id.as_str(), "valid": true, "records": head.seq,
                "hash": head.hash.to_string(),
            }));
        } else {
            app.tell(&format!("run {id}: {} records, as they were written", head.seq));
            app.print(&head.hash.to_string());
        }
        Ok(Exit::DONE)
    }
}
