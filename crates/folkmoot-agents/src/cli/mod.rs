//! Coding agents on the command line (agents.md §2): each call starts one, with the prompt, and ends
//! with it.
//!
//! How one is started and what its rights are called stands in `presets`; how its record is read, in
//! `records`. It reaches the network, since its model is there, and writes to files of its own; what
//! else it may write the operating system holds it to, like any other process.

pub(crate) mod installed;
mod limits;
pub(crate) mod presets;
pub(crate) mod records;

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write as _},
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use folkmoot_core::{
    call::{Again, FailureKind},
    render::{Message, Role},
    team::{Cli, CliInput, Sandbox},
};
use folkmoot_runtime::backend::{Delta, OnDelta, Request, Response};
use tempfile::NamedTempFile;

use self::{presets::Start, records::Told};
use crate::{
    machine::{Done, Machine},
    process::{self, Beyond, Process, Ran},
    retry::Failure,
};

/// How long a call may take that no clock of its run ends.
pub(crate) const LONGEST: Duration = Duration::from_hours(24);

/// How many bytes of the beginning and of the end of each output are kept.
const KEPT: (usize, usize) = (16 << 20, 16 << 20);

/// How much of the end of an output stands in a fault, in characters.
const END: usize = 400;

/// The longest prompt that is handed over as an argument, in bytes.
const ARGUMENT: usize = 100 << 10;

/// Asks `cli`, as often as the agent's retries allow.
pub(crate) async fn perform(
    cli: &Cli,
    machine: Machine<'_>,
    request: &Request,
    on_delta: OnDelta<'_>,
) -> Response {
    let prompt = &prompt(&request.messages);
    let attempt = || async move {
        let Told { answer, usage } = ask(cli, machine.ours, request, prompt).await?;
        on_delta(Delta::Text(&answer.text));
        Ok(Done { answer, used: usage })
    };
    machine.persist(cli, request, prompt.len(), on_delta, attempt).await
}

async fn ask(
    cli: &Cli,
    ours: &BTreeMap<String, String>,
    request: &Request,
    prompt: &str,
) -> Result<Told, Failure> {
    let environment = process::environment(&request.place.environment, ours);
    let level = level(request);
    let home = environment.get("HOME").map(Path::new);
    let mut start = Start::of(cli, level, &request.agent, home);
    // It is gone with the call.
    let mut private = None;
    match start.input {
        CliInput::Stdin => {}
        CliInput::File => {
            let file = private_file(prompt).map_err(|error| unstarted(cli, &error))?;
            let file = private.insert(file);
            start.argv.push(file.path().to_string_lossy().into_owned());
        }
        CliInput::Arg if prompt.len() > ARGUMENT || prompt.contains('\0') => {
            let text = format!("{cli}: the prompt is no argument: it is too long, or holds a NUL");
            return Err(Failure::new(FailureKind::Config, text));
        }
        CliInput::Arg => start.argv.extend(["--".to_owned(), prompt.to_owned()]),
    }
    let mut variables = environment.clone();
    variables.extend(start.variables);
    let folder = Path::new(&*request.place.workspace.folder);
    let process = Process {
        argv: &start.argv,
        dir: folder,
        environment: &variables,
        stdin: if start.input == CliInput::Stdin { prompt.as_bytes() } else { &[] },
        sandbox: start.level,
        beyond: Beyond { online: true, writable: &start.writable },
        workspace: folder,
        time: LONGEST,
        kept: KEPT,
        merged: false,
    };
    let began = Instant::now();
    let ran = process.run().await.map_err(|error| unstarted(cli, &error))?;
    records::read(start.record, &ran).map_err(|why| {
        let usage = why.usage.usage(prompt.len(), 0);
        Failure { usage, ..failed(cli, &start.argv, &ran, began.elapsed(), why) }
    })
}

/// A file that only this user can read.
fn private_file(text: &str) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// What it may do: what its team allows, and no more than it was granted. What is granted to a coding
/// agent is coarse; whoever may neither write files nor run commands only reads.
pub(crate) fn level(request: &Request) -> Sandbox {
    let agent = &request.agent;
    if agent.may_write() { agent.sandbox } else { Sandbox::ReadOnly }
}

/// The conversation as one text: programs know of one prompt only.
pub(crate) fn prompt(messages: &[Message]) -> String {
    let told = messages.iter().map(|message| match message.role {
        Role::System | Role::User | Role::Tool => message.content.to_string(),
        Role::Assistant => format!("You said before:\n\n{}", message.content),
    });
    told.collect::<Vec<_>>().join("\n\n")
}

/// Nothing has been used.
pub(crate) fn unstarted(agent: &dyn fmt::Display, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let text = format!("{agent} is not installed, or not in PATH");
        // It will not be there the next time either.
        return Failure { again: Again::Never, ..Failure::new(FailureKind::Spawn, text) };
    }
    if error.kind() == io::ErrorKind::Unsupported {
        return Failure::new(FailureKind::Unsupported, format!("sandbox_unavailable: {error}"));
    }
    Failure::new(FailureKind::Spawn, format!("{agent} cannot be run: {error}"))
}

/// A fault names the command, how it ended, how long it took and what it wrote last.
pub(crate) fn failed(
    agent: &dyn fmt::Display,
    argv: &[String],
    ran: &Ran,
    took: Duration,
    why: records::Failed,
) -> Failure {
    let program = argv.first().map_or("", |program| program);
    let ended = ran.exit;
    let last = [&ran.stderr, &ran.stdout].into_iter().find(|it| !it.trim().is_empty());
    let last = last.map_or("", |text| text.trim());
    let cut = last.char_indices().rev().nth(END - 1).map_or(0, |(at, _)| at);
    let last = &last[cut..];
    let seconds = took.as_secs_f64();
    let records::Failed { kind, text, .. } = why;
    // Without a record of its own, its complaint tells whether it was called wrongly.
    let kind = if text.is_none() && limits::is_misuse(ran.exit, last) {
        FailureKind::Config
    } else {
        kind
    };
    let said = text.as_deref().unwrap_or(last);
    let limits::Limited { again, hint } = limits::of(kind, said, SystemTime::now());
    let text = match text {
        Some(text) => format!("{agent}: {text} ({program}, {ended} after {seconds:.1} s)"),
        None => format!("{agent}: {program}, {ended} after {seconds:.1} s: {last}"),
    };
    Failure { again, hint, ..Failure::new(kind, text) }
}

#[cfg(all(test, unix))]
mod tests;
