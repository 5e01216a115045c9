use anyhow::Result;
use clap::Args;

use super::drive::drive;
use crate::{exit::Exit, world::Global};

/// Goes on with a run that was interrupted; nothing that was answered is asked again.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run: its id, the beginning of it, or `last`
    run: String,
}

impl Resume {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let (engine, id) = global.engine_and_run(&self.run).await?;
        let driver = engine.resume(&id).await?;
        drive(driver, global).await
    }
}
