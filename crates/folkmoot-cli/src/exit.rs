//! How a command ends: the exit codes of the contract, and errors as people and programs read them.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Error;
pub(crate) use folkmoot_core::refusal::Refusal;
use folkmoot_core::view::Status;
use folkmoot_runtime::{engine::EngineError, export::FileError, refusals};

use crate::{
    app::App,
    config::Config,
    terminal::{
        json,
        screen::{Screen, Tone},
        sink::Sink,
    },
};

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    /// Everything went as asked.
    pub(crate) const DONE: Exit = Exit(0);
    /// It was not possible.
    pub(crate) const FAILED: Exit = Exit(1);
    /// The request itself was wrong; nothing was done.
    pub(crate) const USAGE: Exit = Exit(2);
    /// A record is not as it was written, or does not decide as recorded.
    pub(crate) const BROKEN: Exit = Exit(8);
    /// It was broken off; what was done by then is told.
    pub(crate) const INTERRUPTED: Exit = Exit(130);
}

impl Exit {
    /// A failure, unless it is one already.
    pub(crate) fn or_failed(self) -> Exit {
        if self == Exit::DONE { Exit::FAILED } else { self }
    }
}

impl Exit {
    /// The exit code of what failed by this code.
    fn of(code: &str) -> Exit {
        match code {
            "broken_record" | "diverged" | "unreadable_record" => Exit::BROKEN,
            "run_is_owned" | "store" | "failed" => Exit::FAILED,
            _ => Exit::USAGE,
        }
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Exit {
        Exit(status.exit_code())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Tells an error where it is looked for, and gives its exit code.
pub(crate) fn report(error: &Error, app: &App) -> Exit {
    let refusal = refusal(error);
    tell(&refusal, app);
    Exit::of(refusal.code)
}

/// Tells why something cannot be done.
pub(crate) fn tell(refusal: &Refusal, app: &App) {
    if app.refuse(refusal) {
        return;
    }
    if app.wants_json() {
        return app.print_json(&refusal.told());
    }
    let screen = app.screen();
    for Refusal { message, help, .. } in refusal.each() {
        app.tell(&format!("{}: {}", screen.paint(Tone::Bad, "error"), screen.text(message)));
        let help = help.iter().map(|help| screen.text(help));
        help.for_each(|it| app.tell(&format!("{}: {it}", screen.paint(Tone::Strong, "help"))));
    }
}

/// An error as every caller is told it.
pub(crate) fn refusal(error: &Error) -> Refusal {
    let known = error
        .downcast_ref::<Refusal>()
        .cloned()
        .or_else(|| error.downcast_ref::<FileError>().map(Refusal::from))
        .or_else(|| error.downcast_ref::<EngineError>().map(Refusal::from));
    let refusal = known.unwrap_or_else(|| Refusal::new("failed", ""));
    Refusal { message: refusals::told(&**error), ..refusal }
}

/// Tells on standard error that standard output could not be written, unless nobody reads it any
/// longer.
pub(crate) fn told_if_lost(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            // Nobody is left to tell if this cannot be written either.
            let _ = writeln!(io::stderr(), "error: cannot write to standard output: {error}");
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

/// Tells that the command line cannot be read; what was asked for, help or the version, is no error.
pub(crate) fn misused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        let lost = told_if_lost(printed).is_err();
        return if lost { Exit::FAILED } else { Exit::DONE }.into();
    }
    let arguments: Vec<String> =
        std::env::args_os().map(|it| it.to_string_lossy().into()).collect();
    // It may quote the arguments, and whatever stands in them.
    let text = error.render().to_string();
    let secrets = Config::default().secrets();
    let is_told_to_programs = is_told_to_programs(&arguments);
    let sink = if is_told_to_programs {
        let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let refusal = Refusal::new("usage", message).help("`folkmoot help` tells what there is");
        let sink = Sink::stdout(secrets);
        sink.put(&json::line(&refusal.told()));
        sink
    } else {
        let sink = Sink::stderr(secrets.clone());
        sink.put(&Screen::stderr(secrets).text(&text));
        sink
    };
    let closed = sink.close();
    let closed = if is_told_to_programs { told_if_lost(closed) } else { closed };
    if closed.is_ok() { Exit::USAGE.into() } else { Exit::FAILED.into() }
}

/// Whether arguments that could not be read ask for JSON.
fn is_told_to_programs(arguments: &[String]) -> bool {
    const FORMATS: [&str; 2] = ["json", "stream-json"];
    let is_format = |it: &str| FORMATS.contains(&it);
    arguments.iter().any(|it| it == "--json" || it.strip_prefix("--output=").is_some_and(is_format))
        || arguments.windows(2).any(|it| it[0] == "--output" && is_format(&it[1]))
}
