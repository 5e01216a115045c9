//! Coding agents that are talked to in the Agent Client Protocol (agents.md §2): each call starts one,
//! has one turn with it, and ends with that.
//!
//! It works with tools of its own, at the level that the operating system holds it to, and asks leave
//! for what it does; its grants answer. What it lets us do, read, write and run, is done as by the tools
//! of that name. Servers of tools are not handed over: those of the team are not its.

mod desk;
mod lines;
mod rights;
mod talk;
mod terminals;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agent_client_protocol::v1::schema;
use folkmoot_core::{
    call::FailureKind,
    session::Session,
    team::{Acp, CliProgram},
};
use folkmoot_runtime::backend::{Delta, OnDelta, Request, Response};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use self::{
    desk::{Desk, Piece},
    rights::Rights,
    talk::{Said, Silence},
    terminals::Terminals,
};
use crate::{
    cli::{self, LONGEST, presets, records},
    machine::{Done, Machine},
    parting,
    process::{self, Beyond, Exit, Process, Ran, Running},
    reported::{CALL, Reported},
    retry::Failure,
    tools::Handed,
    usage::unreported,
};

/// How long an agent may take to stop once it is told that nobody waits for it, and how long to end by
/// itself once its turn is over. Both together leave a cancelled call its two seconds (rules.md 6.2).
const GRACE: Duration = Duration::from_millis(700);

/// How many bytes of the end of its error output are kept.
const KEPT: (usize, usize) = (0, 64 << 10);

/// How many pieces of what it says wait to be shown.
const PIECES: usize = 64;

/// How much of what it was allowed and denied stands in a fault.
const TOLD: usize = 10;

/// Where terminals are made, in which Gemini CLI runs its commands.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];

/// Asks `acp`, as often as the agent's retries allow.
pub(crate) async fn perform(
    acp: &Acp,
    machine: Machine<'_>,
    request: &Request,
    on_delta: OnDelta<'_>,
) -> Response {
    let prompt = &cli::prompt(&request.messages);
    let attempt = || have_turn(Turn::new(acp, machine, request, prompt), on_delta);
    machine.persist(acp, request, prompt.len(), on_delta, attempt).await
}

/// Has a turn. Whoever no longer waits cancels it: the agent is told so, and ended with all that it has
/// started a moment later.
async fn have_turn(
    (turn, mut told): (Turn, mpsc::Receiver<Piece>),
    on_delta: OnDelta<'_>,
) -> Result<Done, Failure> {
    let (desk, left, read) = (turn.desk.clone(), turn.left.clone(), turn.prompt.len());
    let mut waiting = Waiting { turn: Some(tokio::spawn(turn.run())), left };
    while let Some(piece) = told.recv().await {
        match &piece {
            Piece::Text(text) => on_delta(Delta::Text(text)),
            Piece::Reasoning(text) => on_delta(Delta::Reasoning(text)),
        }
    }
    waiting.outcome().await.map_err(|failure| match failure.kind {
        FailureKind::Spawn | FailureKind::Unsupported => failure,
        _ => Failure { usage: unreported(read, desk.spoken()), ..failure },
    })
}

/// Whoever waits for a turn. Dropping it cancels the turn.
struct Waiting {
    turn: Option<JoinHandle<Result<Done, Failure>>>,
    left: CancellationToken,
}

impl Waiting {
    async fn outcome(&mut self) -> Result<Done, Failure> {
        let broken = || Failure::new(FailureKind::Other, "its turn broke off");
        let Some(turn) = &mut self.turn else { return Err(broken()) };
        let outcome = turn.await;
        self.turn = None;
        outcome.unwrap_or_else(|_| Err(broken()))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.left.cancel();
        if let Some(turn) = self.turn.take() {
            parting::follow(async {
                let _ = turn.await;
            });
        }
    }
}

/// One turn of an agent, from its start to its end.
struct Turn {
    acp: Acp,
    argv: Vec<String>,
    folder: PathBuf,
    variables: BTreeMap<String, String>,
    writable: Vec<PathBuf>,
    prompt: String,
    desk: Arc<Desk>,
    tell: mpsc::Sender<Piece>,
    left: CancellationToken,
}

impl Turn {
    /// One that is still to be had, and where what it says comes out.
    fn new(
        acp: &Acp,
        machine: Machine<'_>,
        request: &Request,
        prompt: &str,
    ) -> (Turn, mpsc::Receiver<Piece>) {
        let environment = process::environment(&request.place.environment, machine.ours);
        let agent = &request.agent;
        let known = presets::known(&acp.to_string());
        let level = cli::level(request);
        let level = known.as_ref().map_or(level, |it| presets::held(it, level, agent));
        let home = environment.get("HOME").map(PathBuf::from);
        let mut writable: Vec<PathBuf> =
            known.iter().flat_map(|it| presets::writable(it, home.as_deref())).collect();
        // What it was granted it asks leave for, so that there is a record of it.
        let rights = known.iter().flat_map(|it| presets::variables(it, level, agent, "ask"));
        let mut variables = environment.clone();
        variables.extend(rights);
        let folder = PathBuf::from(&*request.place.workspace.folder);
        let may = Rights { agent: agent.clone(), level };
        if known == Some(CliProgram::Gemini) && may.allow_own("shell") {
            writable.extend(TERMINALS.map(PathBuf::from));
        }
        let desk = Desk::new(
            may,
            Handed::new(&folder, machine.closed),
            Terminals::new(folder.clone(), environment, level),
        );
        let (tell, told) = mpsc::channel(PIECES);
        let turn = Turn {
            acp: acp.clone(),
            argv: acp.command.iter().map(ToString::to_string).collect(),
            folder,
            variables,
            writable,
            prompt: prompt.to_owned(),
            desk: Arc::new(desk),
            tell,
            left: CancellationToken::new(),
        };
        (turn, told)
    }

    async fn run(self) -> Result<Done, Failure> {
        let began = Instant::now();
        let (running, stdin, stdout) = Running::begin(&self.process())
            .await
            .map_err(|error| cli::unstarted(&self.acp, &error))?;
        let noise = Arc::new(AtomicU64::new(0));
        let pipes = (lines::outgoing(stdin), lines::incoming(stdout, noise.clone()));
        let Turn { folder, prompt, desk, tell, left, .. } = &self;
        let spoken =
            talk::turn(pipes, desk.clone(), tell.clone(), folder, prompt.clone(), left).await;
        desk.close();
        // Its output has ended, so it has or is about to; or its input has, which tells it to.
        let exit = running.ended_within(GRACE).await;
        let stderr = running.stop().await;
        let noise = noise.load(Ordering::Relaxed);
        let silence = match spoken {
            Ok(Said { usage }) => match desk.answer(noise) {
                Ok(answer) => {
                    return Ok(Done { answer, used: usage.as_ref().map(used).unwrap_or_default() });
                }
                Err(why) => Silence::told(FailureKind::Incomplete, why),
            },
            Err(silence) => silence,
        };
        let (kind, text) = match silence {
            // Its last words tell why.
            Silence::Ended => (FailureKind::Harness, None),
            Silence::Told { kind, text } => (kind, Some(text)),
        };
        let took = began.elapsed();
        let failure = match (exit, text) {
            // It would have gone on.
            (None, Some(text)) => {
                let text = format!("{}: {text} (after {:.1} s)", self.acp, took.as_secs_f64());
                Failure::new(kind, text)
            }
            (exit, text) => {
                let exit = exit.unwrap_or(Exit::Killed(None));
                let ran = Ran { exit, stdout: String::new(), stderr };
                let why = records::Failed { kind, text, usage: Reported::default() };
                cli::failed(&self.acp, &self.argv, &ran, took, why)
            }
        };
        Err(with_more(failure, &desk.so_far(noise)))
    }

    fn process(&self) -> Process<'_> {
        Process {
            argv: &self.argv,
            dir: &self.folder,
            environment: &self.variables,
            stdin: &[],
            sandbox: self.desk.rights.level,
            beyond: Beyond { online: true, writable: &self.writable },
            workspace: Path::new(&self.folder),
            time: LONGEST,
            kept: KEPT,
            merged: false,
        }
    }
}

/// A fault that also tells what had come of the turn by then: what it was allowed may have been done,
/// and for what it was denied it may have given up.
fn with_more(failure: Failure, session: &Session) -> Failure {
    let decided = |word: &str, is_meant: bool| {
        let meant = session.decisions.iter().filter(|decision| decision.allowed == is_meant);
        let meant: Vec<&str> = meant.map(|decision| &*decision.what).collect();
        let shown = meant.iter().take(TOLD).copied().collect::<Vec<_>>().join(", ");
        let more = match meant.len() {
            0..=TOLD => String::new(),
            all => format!(", and {} more", all - TOLD),
        };
        (!meant.is_empty()).then(|| format!("; it had been {word}: {shown}{more}"))
    };
    let noise = session.noise;
    let noise =
        (noise > 0).then(|| format!("; lines of its output that were no messages: {noise}"));
    let more = [decided("allowed", true), decided("denied", false), noise].into_iter().flatten();
    Failure { text: failure.text + &more.collect::<String>(), ..failure }
}

/// What it says that its turn used, in buckets that do not overlap (rules.md 15.1). They do in what it
/// says if two of them are all there is.
fn used(usage: &schema::Usage) -> Reported {
    let (input, output) = (usage.input_tokens, usage.output_tokens);
    let cached = usage.cached_read_tokens.unwrap_or_default();
    let cache_write = usage.cached_write_tokens.unwrap_or_default();
    let thought = usage.thought_tokens.unwrap_or_default();
    let overlap = input.saturating_add(output) == usage.total_tokens;
    let (input, output) = if overlap {
        (input.saturating_sub(cached).saturating_sub(cache_write), output)
    } else {
        (input, output.saturating_add(thought))
    };
    let told = |number: u64| Some(number).filter(|number| (1..=CALL).contains(number));
    Reported {
        read: told(input.saturating_add(cached).saturating_add(cache_write)),
        cached: told(cached),
        cache_write: told(cache_write),
        written: told(output),
    }
}

#[cfg(test)]
mod tests;
