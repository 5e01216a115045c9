use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use serde_json::json;

use crate::{exit::Exit, terminal::stdout, world::Global};

/// Prints a run as a Markdown report: who said what, how votes were read, what it cost.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run: its id, the beginning of it, or `last`
    run: String,
}

impl Report {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let (engine, id) = global.engine_and_run(&self.run).await?;
        let loaded = engine.load(&id).await?;
        let report = view::report(id.as_str(), &loaded.spec, &loaded.run, loaded.is_alive());
        if global.wants_json() {
            stdout::json(&json!({ "run_id": id.as_str(), "markdown": report }));
        } else {
            stdout::text(&report);
        }
        Ok(Exit::DONE)
    }
}
