use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use serde_json::json;

use crate::{
    app::{App, Kept},
    exit::Exit,
};

/// Prints a run as a Markdown report: who said what, how votes were read, what it cost.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run: its id, the beginning of it, `last`, or an exported file
    run: OsString,
}

impl Report {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let Kept { engine, run: id, .. } = app.kept(&self.run).await?;
        let loaded = engine.load(&id).await?;
        let report = view::report(id.as_str(), &loaded.spec, &loaded.run, loaded.is_alive());
        if app.wants_json() {
            app.print_json(&json!({ "run_id": id.as_str(), "markdown": report }));
        } else {
            app.print(&app.page().text(&report));
        }
        Ok(Exit::DONE)
    }
}
