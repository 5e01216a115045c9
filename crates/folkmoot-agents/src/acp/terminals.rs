//! Commands that an agent lets us run, confined as those of the tool `shell` are.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, TerminalExitStatus, TerminalId, TerminalOutputResponse,
};
use folkmoot_core::team::Sandbox;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::LONGEST,
    process::{self, Beyond, Excerpt, Exit, Process},
};

/// The most bytes of the end of an output that are kept.
const KEPT: u64 = 1 << 20;

/// The most commands of one session that are not released.
const MOST: usize = 64;

/// The code of a command that could not be started, as shells have it.
const UNSTARTED: u32 = 127;

/// The commands of a session.
#[derive(Debug)]
pub(super) struct Terminals {
    /// Where they run unless they say otherwise.
    workspace: PathBuf,
    environment: BTreeMap<String, String>,
    level: Sandbox,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    made: u64,
    terminals: BTreeMap<Arc<str>, Terminal>,
}

/// A command under way, or over.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    written: Arc<Mutex<Excerpt>>,
    ended: watch::Receiver<Option<TerminalExitStatus>>,
    kill: CancellationToken,
}

impl Terminals {
    pub(super) fn new(
        workspace: PathBuf,
        environment: BTreeMap<String, String>,
        level: Sandbox,
    ) -> Terminals {
        Terminals { workspace, environment, level, known: Mutex::default() }
    }

    /// A new command in `dir`, and what runs it: nothing happens unless that is polled, and dropping it
    /// ends the command. Nothing if there are too many.
    pub(super) fn create(
        &self,
        wanted: &CreateTerminalRequest,
        dir: PathBuf,
    ) -> Option<(TerminalId, impl Future<Output = ()> + Send + 'static)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.terminals.len() >= MOST {
            return None;
        }
        known.made += 1;
        let id = TerminalId::new(format!("term-{}", known.made));
        let kept = wanted.output_byte_limit.unwrap_or(KEPT).min(KEPT) as usize;
        let written = Arc::new(Mutex::new(Excerpt::new(0, kept)));
        let (tell, ended) = watch::channel(None);
        let kill = CancellationToken::new();
        let terminal = Terminal { written: written.clone(), ended, kill: kill.clone() };
        known.terminals.insert(id.0.clone(), terminal);

        let mut environment = self.environment.clone();
        environment.extend(wanted.env.iter().map(|it| (it.name.clone(), it.value.clone())));
        let (argv, sandbox, workspace) = (argv(wanted), self.level, self.workspace.clone());
        let running = async move {
            let process = Process {
                argv: &argv,
                dir: &dir,
                environment: &environment,
                stdin: &[],
                sandbox,
                beyond: Beyond::default(),
                workspace: &workspace,
                time: LONGEST,
                kept: (0, kept),
                merged: true,
            };
            let status = tokio::select! {
                ran = process.run_into([&written, &written]) => ran.map_or_else(
                    |error| {
                        let text = format!("it cannot be run: {error}\n");
                        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                        written.push(text.as_bytes());
                        TerminalExitStatus::new().exit_code(UNSTARTED)
                    },
                    status,
                ),
                () = kill.cancelled() => TerminalExitStatus::new().signal("SIGKILL".to_owned()),
            };
            tell.send_replace(Some(status));
        };
        Some((id, running))
    }

    pub(super) fn find(&self, id: &TerminalId) -> Option<Terminal> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.terminals.get(&id.0).cloned()
    }

    /// Ends a command, of which nothing is known then.
    pub(super) fn release(&self, id: &TerminalId) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let released = known.terminals.remove(&id.0);
        released.inspect(Terminal::kill).is_some()
    }

    /// Ends all commands.
    pub(super) fn kill(&self) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.terminals.values().for_each(Terminal::kill);
    }
}

impl Terminal {
    /// What it has written so far.
    pub(super) fn output(&self) -> TerminalOutputResponse {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = self.ended.borrow().clone();
        TerminalOutputResponse::new(written.text(), written.is_cut()).exit_status(ended)
    }

    /// Waits for its end.
    pub(super) async fn ended(mut self) -> TerminalExitStatus {
        let ended = self.ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|status| status.clone()).unwrap_or_default()
    }

    pub(super) fn kill(&self) {
        self.kill.cancel();
    }
}

/// A program with its arguments; a whole line is for the shell.
fn argv(wanted: &CreateTerminalRequest) -> Vec<String> {
    if wanted.args.is_empty() && wanted.command.contains(char::is_whitespace) {
        return process::shell(&wanted.command);
    }
    [&wanted.command].into_iter().chain(&wanted.args).cloned().collect()
}

fn status(exit: Exit) -> TerminalExitStatus {
    let status = TerminalExitStatus::new();
    match exit {
        Exit::Code(code) => status.exit_code(code.cast_unsigned()),
        Exit::Killed(Some(signal)) => status.signal(format!("signal {signal}")),
        Exit::Killed(None) | Exit::TimedOut => status.signal("SIGKILL".to_owned()),
    }
}
