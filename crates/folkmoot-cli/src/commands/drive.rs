//! Driving a run to its end while people or programs watch, and telling what came of it.

use std::sync::Arc;

use anyhow::Result;
use folkmoot_core::{limits::Limits, view::Outcome};
use folkmoot_runtime::driver::{Driven, Driver, Observer};
use tokio_util::sync::CancellationToken;

use crate::{
    app::{App, Output},
    exit::Exit,
    terminal::{
        plain::Detail,
        progress::{Progress, Several},
        result,
    },
};

/// Drives a run and prints its result.
pub(crate) async fn drive(driver: Driver, app: &App) -> Result<Exit> {
    let limits = driver.spec().limits;
    let outcome = drive_quietly(driver, app).await?;
    tell(&outcome, &limits, app);
    Ok(outcome.status.into())
}

/// Prints the result of a run; a stream has it already.
pub(crate) fn tell(outcome: &Outcome, limits: &Limits, app: &App) {
    match app.output() {
        Output::Text => {
            app.print(&result::answer(&app.page(), outcome));
            app.tell(&result::summary(&app.screen(), limits, outcome));
        }
        Output::Json => app.print_json(outcome),
        Output::StreamJson => {}
    }
}

/// Drives a run with progress, but without its result.
pub(crate) async fn drive_quietly(driver: Driver, app: &App) -> Result<Outcome> {
    let progress = Arc::new(match app.output() {
        Output::Text | Output::Json => Progress::stderr(app.screen(), Detail::Outcomes),
        Output::StreamJson => Progress::plain(app.screen(), Detail::Outcomes),
    });
    let stream = match app.output() {
        Output::StreamJson => Some(Arc::new(app.stream(driver.id()))),
        Output::Text | Output::Json => None,
    };
    let streamed = stream.clone().map(|stream| stream as Arc<dyn Observer>);
    let observers = [progress.clone() as Arc<dyn Observer>].into_iter().chain(streamed).collect();
    let interrupt = interrupted_by_ctrl_c(progress.clone());
    let driven = driver.drive(Arc::new(Several(observers)), interrupt).await;
    progress.finish();
    let outcome = outcome(&driven?);
    if let Some(stream) = stream {
        stream.finish(&outcome)?;
    }
    Ok(outcome)
}

fn outcome(driven: &Driven) -> Outcome {
    folkmoot_core::view::outcome(driven.id.as_str(), &driven.spec, &driven.run, false)
}

/// A token that Ctrl-C cancels, so that the run is left resumable; a second Ctrl-C ends the process.
fn interrupted_by_ctrl_c(progress: Arc<Progress>) -> CancellationToken {
    let interrupt = CancellationToken::new();
    let token = interrupt.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        progress.note("suspending; press Ctrl-C again to quit at once");
        token.cancel();
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
    interrupt
}
