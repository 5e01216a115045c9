use anyhow::Result;
use clap::Args;

use super::drive::drive;
use crate::{app::App, exit::Exit};

/// Goes on with a run that was interrupted; nothing that was answered is asked again.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run: its id, the beginning of it, or `last`
    run: String,
}

impl Resume {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let (engine, id) = app.engine_and_run(&self.run).await?;
        let driver = engine.resume(&id).await?;
        drive(driver, app).await
    }
}
