//! How a command ends: the exit codes of the contract, and errors as people and programs read them.

use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Error;
use folkmoot_core::{key::Key, view::Status};
use folkmoot_runtime::{engine::EngineError, export::FileError, store::StoreError};
use serde_json::{Value, json};

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

/// The way out if runs cannot be kept where they are.
pub(crate) const ELSEWHERE: &str =
    "`--db FILE`, or the variable FOLKMOOT_DB, keeps runs in another file";

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

/// A request that cannot be carried out as it stands; nothing was done.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// What would be allowed, where that can be listed.
    pub(crate) allowed: Vec<String>,
    /// What is wrong besides.
    pub(crate) also: Vec<Refusal>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        let (help, allowed, also) = (None, Vec::new(), Vec::new());
        Refusal { code, message: message.into(), help, allowed, also }
    }

    /// All of them as one; nothing if there are none.
    pub(crate) fn all(refusals: impl IntoIterator<Item = Refusal>) -> Option<Refusal> {
        let mut refusals = refusals.into_iter();
        let first = refusals.next()?;
        Some(Refusal { also: refusals.collect(), ..first })
    }

    /// It, and what is wrong besides.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Refusal> {
        std::iter::once(self).chain(&self.also)
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Refusal {
        Refusal { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Tells an error where it is looked for, and gives its exit code.
pub(crate) fn report(error: &Error, app: &App) -> Exit {
    let (code, help, exit) = kind(error);
    let message = told(error);
    let first = Refusal { help, ..Refusal::new(code, message) };
    let told = error.downcast_ref::<Refusal>().cloned();
    let (allowed, also) = told.map(|it| (it.allowed, it.also)).unwrap_or_default();
    let refusal = Refusal { allowed, also, ..first };
    if app.wants_json() {
        app.print_json(&as_json(&refusal));
    } else {
        let screen = app.screen();
        for Refusal { message, help, .. } in refusal.each() {
            app.tell(&format!("{}: {}", screen.paint(Tone::Bad, "error"), screen.text(message)));
            let help = help.iter().map(|help| screen.text(help));
            help.for_each(|it| app.tell(&format!("{}: {it}", screen.paint(Tone::Strong, "help"))));
        }
    }
    exit
}

/// The message, with those of its causes that it does not hold already.
fn told(error: &Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |told, cause| {
        if told.contains(&cause) { told } else { format!("{told}: {cause}") }
    })
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
        sink.put(&json::line(&as_json(&refusal)));
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

/// A refusal as programs read it.
fn as_json(refusal: &Refusal) -> Value {
    let object = |Refusal { code, message, help, allowed, .. }: &Refusal| {
        let mut object = json!({ "code": code, "message": message });
        if let Some(help) = help {
            object["help"] = help.as_str().into();
        }
        if !allowed.is_empty() {
            object["allowed"] = json!(allowed);
        }
        object
    };
    let errors: Vec<Value> = refusal.each().map(object).collect();
    json!({ "error": errors[0], "errors": errors })
}

/// Which calls may have been meant.
fn meant(near: &[Key]) -> String {
    let names: Vec<String> = near.iter().map(|key| format!("\"{key}\"")).collect();
    match &names[..] {
        [] => "`folkmoot show RUN` lists the calls".to_owned(),
        [name] => format!("did you mean {name}?"),
        [names @ .., last] => format!("did you mean {} or {last}?", names.join(", ")),
    }
}

fn kind(error: &Error) -> (&'static str, Option<String>, Exit) {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return (refusal.code, refusal.help.clone(), Exit::USAGE);
    }
    match error.downcast_ref::<FileError>() {
        Some(FileError::Io { .. }) => return ("unreadable_file", None, Exit::USAGE),
        Some(FileError::Flawed { .. }) => return ("broken_record", None, Exit::BROKEN),
        None => {}
    }
    match error.downcast_ref::<EngineError>() {
        Some(EngineError::NoSuchRun(_)) => {
            ("unknown_run", Some("`folkmoot runs` lists them".into()), Exit::USAGE)
        }
        Some(EngineError::Ambiguous { .. }) => ("ambiguous_run", None, Exit::USAGE),
        Some(EngineError::NotTakenOver { .. }) => {
            ("not_taken_over", Some("`folkmoot show RUN` lists the calls".into()), Exit::USAGE)
        }
        Some(EngineError::NoSuchCall { near, .. }) => {
            ("unknown_call", Some(meant(near)), Exit::USAGE)
        }
        Some(EngineError::NothingToRetry { run, last }) => {
            let last = last.iter().map(|key| format!("; the last one was {key}"));
            let help = format!("`folkmoot retry {run} --from KEY` asks again from a call on");
            ("nothing_to_retry", Some(last.fold(help, |help, last| help + &last)), Exit::USAGE)
        }
        Some(EngineError::Withheld { .. }) => {
            let help = "--with-secrets exports it as it is, for whoever may know the secret";
            ("secret_in_record", Some(help.into()), Exit::USAGE)
        }
        Some(EngineError::Owned { .. }) => {
            let help = "`folkmoot watch` follows it, `folkmoot cancel` stops it";
            ("run_is_owned", Some(help.into()), Exit::FAILED)
        }
        Some(EngineError::Ended(_)) => {
            let help = "`folkmoot fork` goes on from it with something changed";
            ("run_has_ended", Some(help.into()), Exit::USAGE)
        }
        Some(EngineError::Diverged { .. }) => ("diverged", None, Exit::BROKEN),
        Some(EngineError::Unreadable { .. } | EngineError::Unsound { .. }) => {
            ("unreadable_record", None, Exit::BROKEN)
        }
        Some(
            EngineError::Store(StoreError::Broken { .. } | StoreError::Corrupt { .. })
            | EngineError::Unkept {
                source: StoreError::Broken { .. } | StoreError::Corrupt { .. },
                ..
            },
        ) => ("broken_record", None, Exit::BROKEN),
        Some(EngineError::Unkept { run, source: StoreError::Superseded { .. }, .. }) => {
            ("run_is_owned", Some(format!("`folkmoot watch {run}` follows it")), Exit::FAILED)
        }
        Some(EngineError::Unkept { run, .. }) => {
            let help = format!("fix that, then `folkmoot resume {run}` goes on from there");
            ("store", Some(help), Exit::FAILED)
        }
        // Nobody was asked anything yet: what cannot be kept later is told as unkept.
        Some(EngineError::Store(
            StoreError::ReadOnly { .. }
            | StoreError::Full { .. }
            | StoreError::Busy { .. }
            | StoreError::Io { .. },
        )) => ("unusable_store", Some(ELSEWHERE.into()), Exit::USAGE),
        Some(EngineError::Store(_)) => ("store", None, Exit::FAILED),
        None => ("failed", None, Exit::FAILED),
    }
}
