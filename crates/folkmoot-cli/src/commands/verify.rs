use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    exit::Exit,
    terminal::{stderr, stdout},
    world::Global,
};

/// Proves that the record of a run is as it was written: nothing changed, missing or moved.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The run: its id, the beginning of it, or `last`
    run: String,
}

impl Verify {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let (engine, id) = global.engine_and_run(&self.run).await?;
        let head = engine.verify(&id).await?;
        if global.wants_json() {
            stdout::json(&json!({
                "run_id": id.as_str(), "valid": true, "records": head.seq,
                "hash": head.hash.to_string(),
            }));
        } else {
            stderr::line(&format!("run {id}: {} records, as they were written", head.seq));
            stdout::line(&head.hash.to_string());
        }
        Ok(Exit::DONE)
    }
}
