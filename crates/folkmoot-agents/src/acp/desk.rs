//! Where an agent's requests are answered and what it says is noted, for one session.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_client_protocol::{
    Error, ErrorCode, Result,
    v1::schema::{
        ContentBlock, CreateTerminalRequest, ReadTextFileRequest, RequestPermissionOutcome,
        RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, TerminalId,
        ToolCallId, ToolKind, WriteTextFileRequest,
    },
};
use folkmoot_core::{
    call::{Answer, FailureKind, Fault},
    session::{Decision, Session},
};
use tokio::task::spawn_blocking;

use super::{
    rights::{self, Rights},
    terminals::{Terminal, Terminals},
};
use crate::tools::Handed;

/// The longest reply, in bytes.
const LONGEST: usize = 16 << 20;

/// The most tool calls of which it is known what they are.
const CALLS: usize = 10_000;

/// Beyond the codes of the protocol: a refusal.
const REFUSED: i32 = -32_001;

/// Answers for one session.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) rights: Rights,
    pub(super) files: Arc<Handed>,
    pub(super) terminals: Terminals,
    noted: Mutex<Noted>,
}

/// What has come.
#[derive(Debug, Default)]
struct Noted {
    text: String,
    reasoning: String,
    /// Whether it used a tool since it last spoke: it begins a new paragraph then.
    paused: bool,
    is_too_long: bool,
    /// What its tool calls are: it may ask leave for one by its id only.
    calls: HashMap<ToolCallId, (ToolKind, String)>,
    session: Session,
    open: Option<SessionId>,
    /// Whether nobody waits any longer, so that nothing is allowed.
    is_over: bool,
}

/// A piece of what it says.
#[derive(Debug)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
}

impl Desk {
    pub(super) fn new(rights: Rights, files: Handed, terminals: Terminals) -> Desk {
        Desk { rights, files: Arc::new(files), terminals, noted: Mutex::default() }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows nothing from now on, and ends the commands that run.
    pub(super) fn close(&self) {
        self.noted().is_over = true;
        self.terminals.kill();
    }

    /// Opens the session: what it says in another is not said to us.
    pub(super) fn open(&self, session: &SessionId) {
        self.noted().open = Some(session.clone());
    }

    /// The name and the version that it gives itself.
    pub(super) fn introduce(&self, program: String) {
        self.noted().session.program = Some(program.into());
    }

    /// What it has said, or why that is no reply.
    pub(super) fn answer(&self, noise: u64) -> Result<Answer, &'static str> {
        let mut noted = self.noted();
        if noted.is_too_long {
            return Err("its reply is too long");
        }
        if noted.text.trim().is_empty() {
            return Err("it said nothing");
        }
        let noted = std::mem::take(&mut *noted);
        let reasoning = Some(noted.reasoning).filter(|it| !it.is_empty()).map(Into::into);
        let session = Some(Arc::new(Session { noise, ..noted.session }));
        Ok(Answer { reasoning, session, ..Answer::text(noted.text) })
    }

    /// What has come of the session so far.
    pub(super) fn so_far(&self, noise: u64) -> Session {
        Session { noise, ..self.noted().session.clone() }
    }

    /// How many bytes it has said.
    pub(super) fn spoken(&self) -> usize {
        self.noted().text.len()
    }

    /// Notes what it tells; gives what people may see of it.
    pub(super) fn hear(&self, told: SessionNotification) -> Option<Piece> {
        let mut noted = self.noted();
        if noted.open.as_ref() != Some(&told.session_id) {
            return None;
        }
        match told.update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let text = noted.say(&text_of(chunk.content)?)?;
                Some(Piece::Text(text))
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                let text = text_of(chunk.content)?;
                if noted.reasoning.len() + text.len() <= LONGEST {
                    noted.reasoning.push_str(&text);
                }
                Some(Piece::Reasoning(text))
            }
            SessionUpdate::ToolCall(call) => {
                noted.session.tool_calls += 1;
                noted.know(call.tool_call_id, Some(call.kind), Some(call.title));
                None
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let fields = update.fields;
                noted.know(update.tool_call_id, fields.kind, fields.title);
                None
            }
            // Plans, modes, commands and what is yet to come are its own business.
            _ => None,
        }
    }

    /// Answers whether it may do what it asks leave for.
    pub(super) fn permit(&self, asked: &RequestPermissionRequest) -> RequestPermissionOutcome {
        let mut noted = self.noted();
        if noted.is_over {
            return RequestPermissionOutcome::Cancelled;
        }
        let (call, fields) = (&asked.tool_call.tool_call_id, &asked.tool_call.fields);
        noted.know(call.clone(), fields.kind, fields.title.clone());
        let (kind, title) = noted.calls.get(call).cloned().unwrap_or_default();
        let tool = rights::tool_of(kind);
        // Where it may do so is for the operating system to say, whatever it tells of that.
        let is_allowed = tool.is_some_and(|tool| self.rights.allow_own(tool));
        let (allowed, outcome) = rights::choice(is_allowed, &asked.options);
        let what = if title.is_empty() { &*call.0 } else { &*title };
        let decision = rights::decision(what, tool, allowed, &asked.tool_call);
        noted.session.decided(decision);
        outcome
    }

    /// Reads a file for it.
    pub(super) async fn read(&self, asked: ReadTextFileRequest) -> Result<String> {
        self.decide("file.read", &asked.path.to_string_lossy(), &asked)?;
        let files = self.files.clone();
        let read = spawn_blocking(move || files.read(&asked.path, asked.line, asked.limit));
        read.await.map_err(Error::into_internal_error)?.map_err(|fault| told(&fault))
    }

    /// Writes a file for it.
    pub(super) async fn write(&self, asked: WriteTextFileRequest) -> Result<()> {
        self.decide("file.write", &asked.path.to_string_lossy(), &asked)?;
        let files = self.files.clone();
        let written = spawn_blocking(move || files.write(&asked.path, &asked.content));
        written.await.map_err(Error::into_internal_error)?.map_err(|fault| told(&fault))
    }

    /// A new command, and what runs it.
    pub(super) fn begin(
        &self,
        asked: &CreateTerminalRequest,
    ) -> Result<(TerminalId, impl Future<Output = ()> + Send + 'static)> {
        let line = [&asked.command].into_iter().chain(&asked.args).map(String::as_str);
        self.decide("shell", &line.collect::<Vec<_>>().join(" "), asked)?;
        let dir = asked.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let dir = self.files.dir(&dir).map_err(|fault| told(&fault))?;
        let begun = self.terminals.create(asked, dir);
        begun.ok_or_else(|| refusal("too_many: release a terminal first"))
    }

    /// A command that it began.
    pub(super) fn terminal(&self, id: &TerminalId) -> Result<Terminal> {
        let unknown = || Error::new(ErrorCode::RESOURCE_NOT_FOUND, format!("no terminal {}", id.0));
        self.terminals.find(id).ok_or_else(unknown)
    }

    /// Whether it may have us use a tool; the decision is noted.
    fn decide(&self, tool: &str, what: &str, arguments: &impl serde::Serialize) -> Result<()> {
        let mut noted = self.noted();
        if noted.is_over {
            return Err(Error::request_cancelled());
        }
        let allowed = self.rights.allow(tool);
        let what = format!("{tool} {what}");
        let decision: Decision = rights::decision(&what, Some(tool), allowed, arguments);
        noted.session.decided(decision);
        if allowed { Ok(()) } else { Err(refusal(&format!("denied: {tool}"))) }
    }
}

impl Noted {
    /// Adds to the reply; gives what was added.
    fn say(&mut self, text: &str) -> Option<String> {
        let begins = std::mem::take(&mut self.paused) && !self.text.is_empty();
        let text = if begins { format!("\n\n{}", text.trim_start()) } else { text.to_owned() };
        self.is_too_long |= self.text.len() + text.len() > LONGEST;
        if self.is_too_long {
            return None;
        }
        self.text.push_str(&text);
        Some(text)
    }

    fn know(&mut self, id: ToolCallId, kind: Option<ToolKind>, title: Option<String>) {
        self.paused = true;
        if self.calls.len() >= CALLS && !self.calls.contains_key(&id) {
            return;
        }
        let call = self.calls.entry(id).or_default();
        call.0 = kind.unwrap_or(call.0);
        if let Some(title) = title {
            call.1 = rights::shown(&title);
        }
    }
}

fn text_of(content: ContentBlock) -> Option<String> {
    match content {
        ContentBlock::Text(text) => Some(text.text),
        // Pictures, sounds and links are no words.
        _ => None,
    }
}

/// What went wrong, as an agent reads it.
fn told(fault: &Fault) -> Error {
    match fault {
        Fault::Failed { kind: FailureKind::NotFound, text } => {
            Error::new(ErrorCode::RESOURCE_NOT_FOUND, &**text)
        }
        Fault::Failed { text, .. } => refusal(text),
        other => refusal(&other.to_string()),
    }
}

fn refusal(text: &str) -> Error {
    Error::new(REFUSED, text)
}
