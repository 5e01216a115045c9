//! What is asked of the world, and what comes back.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    gate::Gate,
    key::Key,
    money::Money,
    session::Session,
    team::{AgentId, FIRST_TARGET},
};

/// Something asked of the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Call {
    /// One request to an agent's back-end.
    Agent {
        /// Who is asked.
        agent: AgentId,
        /// Which target of its chain is asked, from 1.
        #[serde(default = "first", skip_serializing_if = "is_first")]
        target: u32,
        /// What it is asked.
        #[serde(flatten)]
        prompt: Prompt,
    },
    /// A turn of an agent that a team answers for: that team's whole run. Nobody carries it out; its own
    /// calls lie below it, and the kernel concludes it when they are done (agents.md §2).
    Team {
        /// The agent.
        agent: AgentId,
        /// What it is asked.
        #[serde(flatten)]
        prompt: Prompt,
    },
    /// One tool call that an agent's reply wants.
    Tool {
        /// On whose behalf, under whose grants.
        agent: AgentId,
        /// The tool call itself.
        #[serde(flatten)]
        request: ToolCall,
        /// Whether it may be made again if a crash left its outcome unknown.
        repeatable: bool,
    },
    /// A question to a person. It is charged to no limit and has no clock, and a run that waits for
    /// nothing else is suspended (rules.md 6.6, 8.4).
    Person {
        /// The agent that it is about.
        agent: AgentId,
        /// What is asked.
        #[serde(flatten)]
        prompt: Prompt,
    },
    /// A look at what an edge of a graph requires (convergence.md §2).
    Gate {
        /// The agent whose work it is about.
        agent: AgentId,
        /// What is looked at.
        gate: Gate,
        /// The reply that the work came with.
        of: Key,
        /// What comes of it, where that was written beforehand.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scripted: Option<bool>,
    },
    /// One exchange with a controller (extensions.md §4): it is told what has become known, and says
    /// what it wants now.
    Exchange {
        /// The controller.
        agent: AgentId,
        /// The exchange before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Key>,
        /// What has become known since that one.
        told: Vec<Told>,
    },
    /// The question to an MCP server which tools it has: what it answers first is what agents are
    /// offered to the end of the run (agents.md §6).
    Listing {
        /// The agent that first needs the server.
        agent: AgentId,
        /// The server.
        server: Arc<str>,
    },
}

/// What a controller is told of one of its wishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The key under which it wanted it.
    pub key: Key,
    /// The call that was answered, where that has another name: the last one of a turn with tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Key>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl Told {
    /// The call that was answered.
    pub fn source(&self) -> &Key {
        self.reply.as_ref().unwrap_or(&self.key)
    }
}

fn first() -> u32 {
    FIRST_TARGET
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_first(target: &u32) -> bool {
    *target == FIRST_TARGET
}

impl Call {
    /// The agent that is asked, on whose behalf a tool or a server is used, about which a person is asked,
    /// or whose work is looked at; the controller, which is one of the staff.
    pub fn agent(&self) -> &AgentId {
        match self {
            Call::Agent { agent, .. }
            | Call::Team { agent, .. }
            | Call::Tool { agent, .. }
            | Call::Person { agent, .. }
            | Call::Gate { agent, .. }
            | Call::Exchange { agent, .. }
            | Call::Listing { agent, .. } => agent,
        }
    }

    /// Whether a person is to answer it.
    pub fn is_for_person(&self) -> bool {
        matches!(self, Call::Person { .. })
    }

    /// Whether it is a turn of a whole team.
    pub fn is_of_team(&self) -> bool {
        matches!(self, Call::Team { .. })
    }

    /// Whether a back-end, a tool or the like carries it out: only that is charged, and can be under way
    /// while nothing can happen.
    pub fn is_performed(&self) -> bool {
        !self.is_for_person() && !self.is_of_team()
    }

    /// The same call of an agent as it is called where its team is the member `team`; the task of that
    /// team is `brief`.
    #[must_use]
    pub(crate) fn in_team(mut self, team: &AgentId, brief: &[Part]) -> Call {
        let (Call::Agent { agent, .. }
        | Call::Team { agent, .. }
        | Call::Tool { agent, .. }
        | Call::Person { agent, .. }
        | Call::Gate { agent, .. }
        | Call::Exchange { agent, .. }
        | Call::Listing { agent, .. }) = &mut self;
        *agent = agent.in_team(team);
        if let Call::Agent { prompt, .. }
        | Call::Team { prompt, .. }
        | Call::Person { prompt, .. } = &mut self
        {
            let briefed = |part: Part| if part == Part::Task { brief.to_vec() } else { vec![part] };
            prompt.parts =
                std::mem::take(&mut prompt.parts).into_iter().flat_map(briefed).collect();
        }
        self
    }

    /// Whether it may be made again if a crash left its outcome unknown.
    pub fn is_repeatable(&self) -> bool {
        match self {
            Call::Agent { .. }
            | Call::Team { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => true,
            Call::Tool { repeatable, .. } => *repeatable,
        }
    }

    /// The earlier answers this call was made from.
    pub fn sources(&self) -> impl Iterator<Item = &Key> {
        let (prompt, of, told) = match self {
            Call::Agent { prompt, .. }
            | Call::Team { prompt, .. }
            | Call::Person { prompt, .. } => (Some(prompt), None, &[][..]),
            Call::Gate { of, .. } => (None, Some(of), &[][..]),
            Call::Exchange { after, told, .. } => (None, after.as_ref(), &told[..]),
            Call::Tool { .. } | Call::Listing { .. } => (None, None, &[][..]),
        };
        let told = told.iter().map(Told::source);
        prompt.into_iter().flat_map(Prompt::sources).chain(of).chain(told)
    }
}

/// A request made of parts that quote answers by key instead of copying them.
///
/// So calls and the log stay small, the edge renders the text, and it is known what an answer
/// depends on. A prompt that continues an earlier request of the same agent holds the new parts
/// only (strategies.md §1.4), so that a conversation costs storage linear in its length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The earlier call of the same agent whose request and reply this one extends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Key>,
    /// What is added, in order.
    pub parts: Vec<Part>,
    /// Whether no tools may be asked for. They are shown as before: what is sent still begins like the
    /// request that it continues, and servers want to know the tools that stand in a conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_tools: bool,
}

/// One piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The user's task, verbatim.
    Task,
    /// An instruction of Folkmoot's own.
    Say(Arc<str>),
    /// What another agent said: delimited, with its name and key.
    Quote(Key),
    /// What the agent itself said, as a turn of its own.
    Own(Key),
    /// What another agent said, handed over in the words of an edge.
    Handed {
        /// The reply.
        key: Key,
        /// The words.
        label: Arc<str>,
    },
    /// What a tool gave back.
    Result(Key),
    /// The reply of an agent, as what a tool of a lead gave back.
    Returned {
        /// The tool call.
        to: Arc<str>,
        /// The reply.
        key: Key,
    },
    /// What Folkmoot itself answers to a tool call of a lead.
    Told {
        /// The tool call.
        to: Arc<str>,
        /// The answer.
        text: Arc<str>,
    },
    /// What the roles that gave these replies handed on, in this order: the summary of the last, and
    /// all that they listed (agents.md §7). Only that is shown, never a reply.
    Memory(Vec<Key>),
    /// What a review found, without the rest of it.
    Findings(Key),
    /// A board as an agent finds it at a round table (messaging.md §4): the cells, the topics of before,
    /// and what these replies added.
    Board {
        /// The agent's turn before, whose prompt holds what had made the board until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Key>,
        /// The replies that have come since, in the order of the log.
        replies: Vec<Key>,
        /// Who finds it.
        of: AgentId,
    },
    /// The mail that came before this call, or before the one whose later target it asks, began
    /// (messaging.md §2).
    Mail(Key),
}

impl Part {
    /// Whether it answers a tool call.
    pub(crate) fn is_result(&self) -> bool {
        match self {
            Part::Result(_) | Part::Returned { .. } | Part::Told { .. } => true,
            Part::Task
            | Part::Say(_)
            | Part::Quote(_)
            | Part::Own(_)
            | Part::Handed { .. }
            | Part::Memory(_)
            | Part::Findings(_)
            | Part::Board { .. }
            | Part::Mail(_) => false,
        }
    }

    /// The turn since which it shows a board, and the replies that have come since.
    pub(crate) fn board(&self) -> Option<(Option<&Key>, &[Key])> {
        match self {
            Part::Board { since, replies, .. } => Some((since.as_ref(), replies)),
            Part::Task
            | Part::Say(_)
            | Part::Quote(_)
            | Part::Own(_)
            | Part::Handed { .. }
            | Part::Result(_)
            | Part::Returned { .. }
            | Part::Told { .. }
            | Part::Memory(_)
            | Part::Findings(_)
            | Part::Mail(_) => None,
        }
    }

    /// What another agent said, with the label of the edge over which it comes, if that has one.
    pub(crate) fn handed(key: Key, label: Option<Arc<str>>) -> Part {
        match label {
            Some(label) => Part::Handed { key, label },
            None => Part::Quote(key),
        }
    }
}

impl Prompt {
    /// A conversation that begins with the task.
    pub fn task() -> Prompt {
        Prompt { parts: vec![Part::Task], ..Prompt::default() }
    }

    /// Goes on from the request of `reply`; what it said follows as the agent's own turn.
    pub fn after(reply: &Reply) -> Prompt {
        Prompt { continues: Some(reply.key.clone()), ..Prompt::default() }
    }

    /// Adds an instruction.
    #[must_use]
    pub fn say(mut self, text: impl Into<Arc<str>>) -> Prompt {
        self.parts.push(Part::Say(text.into()));
        self
    }

    /// Adds a quote of `reply`, if it is a contribution; errors and blank replies are never quoted.
    #[must_use]
    pub fn quote(mut self, reply: &Reply) -> Prompt {
        if reply.contribution().is_some() {
            self.parts.push(Part::Quote(reply.key.clone()));
        }
        self
    }

    /// Adds a quote of each contribution among `replies`.
    #[must_use]
    pub fn quotes<'a>(self, replies: impl IntoIterator<Item = &'a Reply>) -> Prompt {
        replies.into_iter().fold(self, Prompt::quote)
    }

    /// Adds what a tool call gave back.
    #[must_use]
    pub fn result(mut self, reply: &Reply) -> Prompt {
        self.parts.push(Part::Result(reply.key.clone()));
        self
    }

    /// The same, but no tools may be asked for.
    #[must_use]
    pub fn without_tools(self) -> Prompt {
        Prompt { without_tools: true, ..self }
    }

    /// The answers this prompt is made from.
    pub fn sources(&self) -> impl Iterator<Item = &Key> {
        let quoted = self.parts.iter().flat_map(|part| match part {
            Part::Quote(key)
            | Part::Own(key)
            | Part::Handed { key, .. }
            | Part::Result(key)
            | Part::Returned { key, .. }
            | Part::Findings(key) => std::slice::from_ref(key),
            Part::Memory(keys) | Part::Board { replies: keys, .. } => keys,
            Part::Task | Part::Say(_) | Part::Told { .. } | Part::Mail(_) => &[],
        });
        let before = self.parts.iter().filter_map(|part| part.board()?.0);
        self.continues.iter().chain(before).chain(quoted)
    }
}

/// A tool that a model is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name by which it is called.
    pub name: Arc<str>,
    /// What it does, for the model.
    pub description: Arc<str>,
    /// The JSON schema of its arguments, an object.
    pub parameters: Value,
}

/// A wish of an agent to use a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id by which the back-end tells its calls apart.
    pub id: Arc<str>,
    /// The tool, `tool.action`.
    pub name: Arc<str>,
    /// Its arguments, an object; anything else came broken from the model.
    pub arguments: Value,
}

/// What an agent, tool or person answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The text; of a structured answer its compact JSON.
    pub text: Arc<str>,
    /// A structured answer.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// What the model thought aloud; kept, shown, never read, quoted or sent to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Arc<str>>,
    /// Tools it wants to use before it goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Whether it asks a person, and goes on with what that one says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// Fields that only the provider that sent them understands, sent back to it alone.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub provider: Option<Value>,
    /// How a coding agent came to it, where that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<Session>>,
    /// What a person should know of how it came about; no agent is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Arc<str>>,
}

/// Reads a value that is there; `null` is one too.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl Answer {
    /// A plain text answer.
    pub fn text(text: impl Into<Arc<str>>) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }

    /// A structured answer; its text is the compact JSON, keys in the given order.
    pub fn json(value: Value) -> Answer {
        Answer { text: value.to_string().into(), json: Some(value), ..Answer::default() }
    }

    /// Whether it says nothing: no text but white space, no structure, no tool call.
    pub fn is_blank(&self) -> bool {
        self.json.is_none() && self.tool_calls.is_empty() && self.text.trim().is_empty()
    }
}

/// An answer or the reason why there is none.
pub type Outcome = Result<Arc<Answer>, Fault>;

/// What became of a call, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The call that was answered.
    pub key: Key,
    /// Who was asked.
    pub agent: AgentId,
    /// What came.
    pub outcome: Outcome,
}

impl Reply {
    /// The answer, if it did not fail and is not blank (strategies.md §1.5).
    pub fn contribution(&self) -> Option<&Answer> {
        self.outcome.as_deref().ok().filter(|answer| !answer.is_blank())
    }

    /// The text of the contribution.
    pub fn text(&self) -> Option<&Arc<str>> {
        self.contribution().map(|answer| &answer.text)
    }

    /// The fault, if the call failed.
    pub fn fault(&self) -> Option<&Fault> {
        self.outcome.as_ref().err()
    }

    /// Whether the run was stopped before this call could be answered.
    pub fn is_stopped(&self) -> bool {
        self.fault().is_some_and(Fault::stops_run)
    }
}

/// Why a call has no answer. A fault is data: programs decide what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum Fault {
    /// The agent or tool failed.
    Failed {
        /// What kind of failure; decides about retries and failover (agents.md §3).
        kind: FailureKind,
        /// Its own words, shown to people, never to other agents as an opinion.
        text: Arc<str>,
    },
    /// Its own clock, or its phase's, ran out.
    TimedOut,
    /// The run's time ran out.
    Deadline,
    /// Someone cancelled the run.
    Cancelled,
    /// A limit did not allow it.
    OverBudget {
        /// Which resource was short.
        limit: Limit,
        /// Whose limit it was.
        of: Owner,
    },
    /// A crash left its outcome unknown, and it must not be repeated.
    Lost,
    /// Nobody wanted it any longer.
    Unwanted,
}

impl Fault {
    /// A failure of kind `kind` in the words `text`.
    pub fn failed(kind: FailureKind, text: impl Into<Arc<str>>) -> Fault {
        Fault::Failed { kind, text: text.into() }
    }

    /// What kind of fault it is, in the words of prompts, which never show an error's own.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Failed { .. } => "failed",
            Fault::TimedOut => "timeout",
            Fault::Deadline => "deadline",
            Fault::Cancelled => "cancelled",
            Fault::OverBudget { .. } => "budget exhausted",
            Fault::Lost => "lost",
            Fault::Unwanted => "withdrawn",
        }
    }

    /// Whether this fault tells that the whole run was stopped (strategies.md §1.8).
    pub fn stops_run(&self) -> bool {
        match self {
            Fault::Deadline | Fault::Cancelled | Fault::OverBudget { of: Owner::Run, .. } => true,
            Fault::Failed { .. }
            | Fault::TimedOut
            | Fault::OverBudget { of: Owner::Agent | Owner::Scope, .. }
            | Fault::Lost
            | Fault::Unwanted => false,
        }
    }
}

/// The text of a fault in records: the agent's own words, else its kind (strategies.md §1.5).
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Failed { text, .. } if !text.trim().is_empty() => f.write_str(text),
            Fault::Failed { .. }
            | Fault::TimedOut
            | Fault::Deadline
            | Fault::Cancelled
            | Fault::OverBudget { .. }
            | Fault::Lost
            | Fault::Unwanted => f.write_str(self.kind()),
        }
    }
}

/// The closed set of failure kinds (agents.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The key was refused or is missing.
    Auth,
    /// The provider asks to wait.
    RateLimited,
    /// A time limit of the back-end's own ran out.
    Timeout,
    /// The connection failed.
    Transport,
    /// The reply was cut off or empty.
    Incomplete,
    /// The other side broke its protocol.
    Protocol,
    /// A process could not be started.
    Spawn,
    /// The agent's own program or script failed.
    Harness,
    /// The set-up is wrong; asking again does not help.
    Config,
    /// What is asked cannot be done by this target.
    Unsupported,
    /// There is no such thing.
    NotFound,
    /// A file could not be read or written.
    Io,
    /// The agent has no right to it.
    Denied,
    /// Anything else.
    Other,
}

/// How often a failure is answered by a further attempt in the same call (agents.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Never: it would come again.
    Never,
    /// Once in a call, for failures that usually come again.
    Once,
    /// As often as the agent's `retries` allow.
    Always,
}

impl FailureKind {
    /// All there are.
    pub const ALL: [FailureKind; 14] = [
        FailureKind::Auth,
        FailureKind::RateLimited,
        FailureKind::Timeout,
        FailureKind::Transport,
        FailureKind::Incomplete,
        FailureKind::Protocol,
        FailureKind::Spawn,
        FailureKind::Harness,
        FailureKind::Config,
        FailureKind::Unsupported,
        FailureKind::NotFound,
        FailureKind::Io,
        FailureKind::Denied,
        FailureKind::Other,
    ];

    /// How often it is answered by a further attempt.
    pub fn again(self) -> Again {
        match self {
            FailureKind::RateLimited
            | FailureKind::Timeout
            | FailureKind::Transport
            | FailureKind::Harness
            | FailureKind::Spawn => Again::Always,
            FailureKind::Incomplete | FailureKind::Protocol => Again::Once,
            FailureKind::Auth
            | FailureKind::Config
            | FailureKind::Unsupported
            | FailureKind::NotFound
            | FailureKind::Io
            | FailureKind::Denied
            | FailureKind::Other => Again::Never,
        }
    }

    /// Whether the next target of a chain may be asked in its place: another provider, model or program
    /// may well do what this one could not. What is wrong with the request or its rights goes with it.
    pub fn moves_on(self) -> bool {
        match self {
            FailureKind::Auth
            | FailureKind::RateLimited
            | FailureKind::Timeout
            | FailureKind::Transport
            | FailureKind::Incomplete
            | FailureKind::Protocol
            | FailureKind::Spawn
            | FailureKind::Harness => true,
            FailureKind::Config
            | FailureKind::Unsupported
            | FailureKind::NotFound
            | FailureKind::Io
            | FailureKind::Denied
            | FailureKind::Other => false,
        }
    }

    /// The kind as it is written in logs and team files.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Auth => "auth",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Timeout => "timeout",
            FailureKind::Transport => "transport",
            FailureKind::Incomplete => "incomplete",
            FailureKind::Protocol => "protocol",
            FailureKind::Spawn => "spawn",
            FailureKind::Harness => "harness",
            FailureKind::Config => "config",
            FailureKind::Unsupported => "unsupported",
            FailureKind::NotFound => "not_found",
            FailureKind::Io => "io",
            FailureKind::Denied => "denied",
            FailureKind::Other => "other",
        }
    }
}

/// A resource that limits bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Calls started.
    Calls,
    /// Tokens read and written.
    Tokens,
    /// Money.
    Cost,
    /// Active time.
    Time,
}

/// Whose limit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The run's: reaching it stops the run.
    Run,
    /// A part of the run's, for example a nested team's.
    Scope,
    /// One agent's: reaching it fails that agent's calls only.
    Agent,
}

/// What a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens, in buckets that do not overlap.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// What it cost, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Whether the back-end did not say, and these are estimates that count all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Whether nothing was used, for certain.
    pub fn is_nothing(&self) -> bool {
        *self == Usage::default()
    }
}

impl std::ops::Add for Usage {
    type Output = Usage;

    /// Both together; the cost is that of what has one.
    fn add(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens + other.tokens,
            cost: [self.cost, other.cost].into_iter().flatten().reduce(|one, other| one + other),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// Numbers of tokens in buckets that do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Read at full price.
    #[serde(default)]
    pub input: u64,
    /// Read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Read and put into the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Written, reasoning included.
    #[serde(default)]
    pub output: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Tokens {
    /// All of them.
    pub fn total(self) -> u64 {
        self.read().saturating_add(self.output)
    }

    /// All that were read, whatever became of them.
    pub fn read(self) -> u64 {
        self.input.saturating_add(self.cached).saturating_add(self.cache_write)
    }
}

impl std::ops::Add for Tokens {
    type Output = Tokens;

    fn add(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
        }
    }
}
