//! Which coding agents there are on this machine, and what can be told of them without their help.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use folkmoot_core::{
    check::Environment,
    team::{Cli, CliProgram, Sandbox},
};
use futures_util::future::join_all;
use regex::Regex;

use crate::process::{Beyond, Process, environment, unenforceable};

/// How long one may take to tell its version.
const TIME: Duration = Duration::from_secs(5);

/// How much it may tell, in bytes.
const KEPT: (usize, usize) = (4096, 0);

/// A coding agent that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its name.
    pub name: &'static str,
    /// Its version, if it tells one.
    pub version: Option<String>,
    /// What it logs in with, if there is anything: a file, or a variable.
    pub login: Option<String>,
}

/// Those that are looked for, and what each logs in with: a file below the home folder, and a variable.
/// The programs for `acp:` alone are adapters, which use the login of the agent that they drive.
const LOGINS: [(&str, &str, &str); 6] = [
    ("claude", ".claude/.credentials.json", "ANTHROPIC_API_KEY"),
    ("claude-code-acp", ".claude/.credentials.json", "ANTHROPIC_API_KEY"),
    ("codex", ".codex/auth.json", "OPENAI_API_KEY"),
    ("codex-acp", ".codex/auth.json", "OPENAI_API_KEY"),
    ("gemini", ".gemini/oauth_creds.json", "GEMINI_API_KEY"),
    ("opencode", ".local/share/opencode/auth.json", "OPENAI_API_KEY"),
];

/// Coding agents that are installed, ready-made for `cli:` or known to serve `acp:`, where `ours` is the
/// environment of this process. They are asked for their versions, all at once, and for nothing else.
pub async fn installed(ours: &BTreeMap<String, String>) -> Vec<Installed> {
    let path = ours.get("PATH").map_or("", |path| path);
    let there =
        LOGINS.map(|(name, ..)| name).into_iter().filter(|name| found(name, path).is_some());
    join_all(there.map(|name| async move {
        Installed { name, version: version(name, ours).await, login: login(name, ours) }
    }))
    .await
}

/// Why a coding agent cannot be started by who finds programs by `path`; nothing if it can, or if that
/// shows only where it is started.
pub(crate) fn lack(cli: &Cli, path: &str) -> Option<String> {
    let preset = CliProgram::PRESETS.into_iter().find(|(_, program)| *program == cli.program);
    let program = match (&cli.program, preset) {
        (_, Some((name, _))) => name,
        (CliProgram::Own(own), None) => own.command.first()?,
        (_, None) => return None,
    };
    lack_of(cli, program, path)
}

/// The same for `agent`, which is `program`.
pub(crate) fn lack_of(agent: &dyn fmt::Display, program: &str, path: &str) -> Option<String> {
    let is_relative =
        program.contains(std::path::is_separator) && !Path::new(program).is_absolute();
    let is_missing = !is_relative && found(program, path).is_none();
    is_missing.then(|| format!("{agent} is not installed, or not in PATH"))
}

/// Where a program is. Windows completes names in its own way, so there nothing is told of their lack.
fn found(program: &str, path: &str) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(program.into());
    }
    let mut places = std::env::split_paths(path).map(|folder| folder.join(program));
    places.find(|place| is_program(place))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

async fn version(program: &str, ours: &BTreeMap<String, String>) -> Option<String> {
    static VERSION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\d+\.\d+[0-9A-Za-z.+-]*").expect("it is a pattern"));
    let folder = tempfile::tempdir().ok()?;
    let confined = unenforceable().is_none();
    let process = Process {
        argv: &[program.to_owned(), "--version".to_owned()],
        dir: folder.path(),
        environment: &environment(&Environment::default(), ours),
        stdin: &[],
        sandbox: if confined { Sandbox::ReadOnly } else { Sandbox::Full },
        beyond: Beyond::default(),
        workspace: folder.path(),
        time: TIME,
        kept: KEPT,
        merged: false,
    };
    let ran = process.run().await.ok()?;
    let told = VERSION.find(ran.stdout.lines().next()?)?;
    Some(told.as_str().to_owned())
}

fn login(program: &str, ours: &BTreeMap<String, String>) -> Option<String> {
    let (_, file, variable) = LOGINS.iter().find(|(name, ..)| *name == program)?;
    let home = ours.get("HOME").map(Path::new);
    if home.is_some_and(|home| home.join(file).is_file()) {
        return Some(format!("~/{file}"));
    }
    ours.get(*variable).filter(|value| !value.is_empty()).map(|_| (*variable).to_owned())
}
