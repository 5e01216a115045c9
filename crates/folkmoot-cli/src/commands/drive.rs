//! Driving a run to its end while people or programs watch, and telling what came of it.

#[cfg(unix)]
use std::task::{Context, Poll};
use std::{sync::Arc, time::Duration};

use anyhow::Result;
use folkmoot_agents::end_orphans;
use folkmoot_core::{limits::Limits, request::Request, view::Outcome};
use folkmoot_runtime::driver::{Driven, Driver, Observer};
use tokio_util::sync::CancellationToken;

use super::team::Team;
use crate::{
    app::{App, Output},
    exit::Exit,
    terminal::{
        plain::Detail,
        progress::{Progress, Several},
        result,
    },
};

/// Runs the team of a request and prints what is told of it.
pub(crate) async fn carry_out(app: &App, request: &Request, team: Team) -> Result<Exit> {
    let means = team.means();
    let spec = match team.spec(app) {
        Ok(spec) => spec,
        Err(exit) => return Ok(exit),
    };
    let (limits, form) = (spec.limits, request.form(&spec));
    // Kept until the result is printed: to close the store takes the disk its time.
    let engine = means.given_to(app.engine()?);
    let driver = engine.start(Arc::new(spec)).await?;
    let (outcome, driven) = drive_quietly(driver, app).await?;
    if app.output() == Output::Json {
        app.print_json(&form.record(&outcome, &driven.spec, &driven.run));
    } else {
        tell(&outcome, &limits, app);
    }
    Ok(outcome.status.into())
}

/// Drives a run and prints its result.
pub(crate) async fn drive(driver: Driver, app: &App) -> Result<Exit> {
    let limits = driver.spec().limits;
    let (outcome, _) = drive_quietly(driver, app).await?;
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

/// Drives a run with progress, but prints no result; gives it, and the run.
pub(crate) async fn drive_quietly(driver: Driver, app: &App) -> Result<(Outcome, Driven)> {
    drive_for(driver, app, None).await
}

/// The same for so long at most: then the run is left so that it can be resumed.
pub(crate) async fn drive_for(
    driver: Driver,
    app: &App,
    wait: Option<Duration>,
) -> Result<(Outcome, Driven)> {
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
    let interrupt = interrupted_by_signals(progress.clone())?;
    if let Some(wait) = wait {
        let interrupt = interrupt.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            interrupt.cancel();
        });
    }
    if end_orphans().await > 0 {
        progress.note("ended programs that were left behind when Folkmoot was killed");
    }
    let end = driver.drive(Arc::new(Several(observers)), interrupt.clone()).await;
    // From here on there is nothing to suspend: Ctrl-C ends the process.
    interrupt.cancel();
    progress.finish();
    let driven = end?;
    let outcome = outcome(&driven);
    if let Some(stream) = stream {
        stream.finish(&outcome)?;
    }
    Ok((outcome, driven))
}

fn outcome(driven: &Driven) -> Outcome {
    folkmoot_core::view::outcome(driven.id.as_str(), &driven.spec, &driven.run, false)
}

/// A token that Ctrl-C, or a wish of the system to end the process, cancels: the run is left so that
/// it can be resumed. Once it is cancelled, the next one ends the process at once.
fn interrupted_by_signals(progress: Arc<Progress>) -> Result<CancellationToken> {
    // One set of listeners from the start: between two of them a signal would be lost.
    let mut signals = Signals::listen()?;
    let interrupt = CancellationToken::new();
    let token = interrupt.clone();
    tokio::spawn(async move {
        loop {
            signals.next().await;
            if token.is_cancelled() {
                std::process::exit(130);
            }
            progress.note("suspending; press Ctrl-C again to quit at once");
            token.cancel();
        }
    });
    Ok(interrupt)
}

/// Ctrl-C and Ctrl-\\, a terminal that is gone, and a wish of the system to end the process.
#[cfg(unix)]
pub(super) struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()];
        if !outlives_terminal() {
            kinds.push(SignalKind::hangup());
        }
        kinds.into_iter().map(signal).collect::<std::io::Result<_>>().map(Signals)
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        let signals = &mut self.0;
        let any = |cx: &mut Context<'_>| {
            let came = signals.iter_mut().any(|it| it.poll_recv(cx).is_ready());
            if came { Poll::Ready(()) } else { Poll::Pending }
        };
        std::future::poll_fn(any).await;
    }
}

/// Whether who started this process had it ignore that its terminal is gone, as `nohup` does.
#[cfg(unix)]
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is that of SIGHUP.
    ignored.is_some_and(|mask| mask & 1 != 0)
}

/// Ctrl-C.
#[cfg(windows)]
pub(super) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Signals> {
        tokio::signal::windows::ctrl_c().map(Signals)
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        self.0.recv().await;
    }
}
