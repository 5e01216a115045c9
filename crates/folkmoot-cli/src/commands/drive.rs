//! Driving a run to its end while people or programs watch, and telling what came of it.

use anyhow::Result;
use folkmoot_core::view;
use folkmoot_runtime::driver::Driver;

use crate::{
    exit::Exit,
    terminal::{self, Watching},
    world::{self, Global},
};

/// Drives a run and prints its result.
pub(crate) async fn drive(driver: Driver, global: &Global) -> Result<Exit> {
    let outcome = drive_quietly(driver, global).await?;
    terminal::result::tell(&outcome, global.output());
    Ok(outcome.status.into())
}

/// Drives a run, with progress but without its result.
pub(crate) async fn drive_quietly(driver: Driver, global: &Global) -> Result<view::Outcome> {
    let watching = Watching::begin(global.output(), driver.id(), driver.spec());
    let driven = driver.drive(watching.observer(), world::interrupted_by_ctrl_c()).await;
    watching.end();
    let driven = driven?;
    Ok(view::outcome(driven.id.as_str(), &driven.spec, &driven.run, false))
}
