//! How coding agents are started, and what their rights are called (agents.md §2).

use std::path::{Path, PathBuf};

use folkmoot_core::team::{Agent, Cli, CliInput, CliOutput, CliProgram, Sandbox};

use super::records::Record;

/// A start of a coding agent.
pub(super) struct Start {
    /// It and its arguments, but for a prompt.
    pub(super) argv: Vec<String>,
    pub(super) input: CliInput,
    pub(super) record: Record,
    /// What the operating system holds it to.
    pub(super) level: Sandbox,
    /// Variables that are its rights.
    pub(super) variables: Vec<(String, String)>,
    /// Where it keeps what it must.
    pub(super) writable: Vec<PathBuf>,
}

impl Start {
    /// A start of `cli` for `agent` at this level, at home in `home`.
    pub(super) fn of(cli: &Cli, level: Sandbox, agent: &Agent, home: Option<&Path>) -> Start {
        let (argv, record) = match &cli.program {
            CliProgram::Claude => (claude(cli, level, agent), Record::Claude),
            CliProgram::Codex => (codex(cli, level, agent), Record::Codex),
            CliProgram::Gemini => (gemini(cli, level, agent), Record::Gemini),
            CliProgram::Opencode => (
                with_model(["opencode", "run", "--format", "json"], "--model", cli),
                Record::Opencode,
            ),
            CliProgram::Own(own) => {
                let argv = own.command.iter().map(ToString::to_string).collect();
                let record = match own.output {
                    CliOutput::Text => Record::Text,
                    CliOutput::Json => Record::Json,
                    CliOutput::Jsonl => Record::Jsonl,
                };
                let (variables, writable) = (Vec::new(), Vec::new());
                return Start { argv, input: own.input, record, level, variables, writable };
            }
        };
        let variables = variables(&cli.program, level, agent, "allow");
        let writable = writable(&cli.program, home);
        let level = held(&cli.program, level, agent);
        Start { argv, input: CliInput::Stdin, record, level, variables, writable }
    }
}

/// The preset that a program is, by its name or the beginning of it, as in `codex-acp`.
pub(crate) fn known(program: &str) -> Option<CliProgram> {
    let mut presets = CliProgram::PRESETS.into_iter();
    presets.find(|(name, _)| program.starts_with(name)).map(|(_, preset)| preset)
}

/// What the operating system holds a program to that works at this level.
pub(crate) fn held(program: &CliProgram, level: Sandbox, agent: &Agent) -> Sandbox {
    match (program, level) {
        (CliProgram::Codex, Sandbox::ReadOnly | Sandbox::Write) => coarse(level, agent),
        (_, level) => level,
    }
}

/// The variables that are a program's rights, in which `granted` stands for what it was granted.
pub(crate) fn variables(
    program: &CliProgram,
    level: Sandbox,
    agent: &Agent,
    granted: &str,
) -> Vec<(String, String)> {
    let (name, value) = match program {
        CliProgram::Opencode => ("OPENCODE_PERMISSION", permissions(level, agent, granted)),
        // It works in no folder that nobody has told it to trust; whoever names the workspace does.
        CliProgram::Gemini => ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
        CliProgram::Claude | CliProgram::Codex | CliProgram::Own(_) => return Vec::new(),
    };
    vec![(name.to_owned(), value)]
}

/// Where a program keeps what it must, at home in `home`.
pub(crate) fn writable(program: &CliProgram, home: Option<&Path>) -> Vec<PathBuf> {
    let state: &[&str] = match program {
        CliProgram::Claude => &[".claude", ".claude.json"],
        CliProgram::Codex => &[".codex"],
        CliProgram::Gemini => &[".gemini"],
        CliProgram::Opencode => &[
            ".local/share/opencode",
            ".local/state/opencode",
            ".cache/opencode",
            ".config/opencode",
        ],
        CliProgram::Own(_) => &[],
    };
    home.into_iter().flat_map(|home| state.iter().map(|path| home.join(path))).collect()
}

fn with_model<const N: usize>(argv: [&str; N], flag: &str, cli: &Cli) -> Vec<String> {
    let model = cli.model.as_deref().into_iter().flat_map(|model| [flag, model]);
    argv.into_iter().chain(model).map(str::to_owned).collect()
}

/// The level that a coding agent is given by name, whose commands and edits come under one right: whoever
/// is not granted both may only read.
fn coarse(level: Sandbox, agent: &Agent) -> Sandbox {
    let may_all = agent.is_granted("shell") && agent.is_granted("file.write");
    if may_all { level } else { Sandbox::ReadOnly }
}

/// The tools of Claude Code by the grants that they come under.
const CLAUDE: [(&str, &str); 8] = [
    ("file.read", "Read"),
    ("file.list", "Glob"),
    ("search", "Grep"),
    ("file.write", "Write"),
    ("file.write", "Edit"),
    ("file.write", "NotebookEdit"),
    ("shell", "Bash"),
    ("fetch", "WebFetch"),
];

fn claude(cli: &Cli, level: Sandbox, agent: &Agent) -> Vec<String> {
    let writes = |grant: &str| grant == "file.write" || grant == "shell";
    let is_allowed =
        |grant: &str| agent.is_granted(grant) && !(writes(grant) && level == Sandbox::ReadOnly);
    let named = |wanted: bool| {
        let tools = CLAUDE.iter().filter(|(grant, _)| is_allowed(grant) == wanted);
        tools.map(|(_, tool)| *tool).collect::<Vec<_>>().join(",")
    };
    let mut argv = with_model(["claude", "-p", "--output-format", "json"], "--model", cli);
    for (flag, tools) in [("--allowedTools", named(true)), ("--disallowedTools", named(false))] {
        if !tools.is_empty() {
            argv.extend([flag.to_owned(), tools]);
        }
    }
    argv
}

/// Its own sandbox cannot be set up inside ours, and without one it runs nothing, so below `full` ours
/// holds it alone.
fn codex(cli: &Cli, level: Sandbox, agent: &Agent) -> Vec<String> {
    let is_held = level != Sandbox::Full;
    let may_all = is_held || coarse(level, agent) == Sandbox::Full;
    let sandbox = if may_all { "danger-full-access" } else { "read-only" };
    let argv = ["codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", sandbox];
    let mut argv = with_model(argv, "--model", cli);
    argv.push("-".to_owned());
    argv
}

fn gemini(cli: &Cli, level: Sandbox, agent: &Agent) -> Vec<String> {
    let approves = match level {
        Sandbox::ReadOnly => "default",
        Sandbox::Write | Sandbox::Full if !agent.is_granted("file.write") => "default",
        Sandbox::Full if agent.is_granted("shell") && agent.is_granted("fetch") => "yolo",
        Sandbox::Write | Sandbox::Full => "auto_edit",
    };
    let argv = ["gemini", "--output-format", "json", "--approval-mode", approves];
    with_model(argv, "--model", cli)
}

fn permissions(level: Sandbox, agent: &Agent, granted: &str) -> String {
    let is_allowed = |grant: &str, writes: bool| {
        let allowed = agent.is_granted(grant) && !(writes && level == Sandbox::ReadOnly);
        if allowed { granted } else { "deny" }
    };
    let (edit, bash) = (is_allowed("file.write", true), is_allowed("shell", true));
    let webfetch = is_allowed("fetch", false);
    serde_json::json!({ "edit": edit, "bash": bash, "webfetch": webfetch }).to_string()
}
