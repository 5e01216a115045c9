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
    let interrupt = interrupted_by_signals(progress.clone());
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

/// A token that Ctrl-C, or a wish of the system to end the process, cancels: the run is left so that
/// it can be resumed. A second one ends the process at once.
fn interrupted_by_signals(progress: Arc<Progress>) -> CancellationToken {
    let interrupt = CancellationToken::new();
    let token = interrupt.clone();
    tokio::spawn(async move {
        asked_to_stop().await;
        progress.note("suspending; press Ctrl-C again to quit at once");
        token.cancel();
        asked_to_stop().await;
        std::process::exit(130);
    });
    interrupt
}

#[cfg(unix)]
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return ctrl_c().await };
    tokio::select! {
        () = ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() {
    ctrl_c().await;
}

/// Waits for Ctrl-C; where it cannot be noticed, for ever.
async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
