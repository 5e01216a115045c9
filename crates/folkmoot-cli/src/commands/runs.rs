use anyhow::Result;
use clap::Args;
use folkmoot_runtime::told;
use serde_json::Value;

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
            app.print_json(&runs.iter().map(told::listed).collect::<Vec<Value>>());
        } else {
            app.print(&tables::runs(&app.page(), &runs, app::now()));
        }
        Ok(Exit::DONE)
    }
}
