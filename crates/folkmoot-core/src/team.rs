//! Who takes part: agents, what answers for them, and what they may use.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    call::{Answer, Call, FailureKind, Fault, Outcome, Tokens, ToolCall},
    limits::Limits,
    mcp,
    money::Price,
    spec::Spec,
    time::Duration,
};

/// Names an agent in keys, references and the log: the slug of its display name (graph.md §1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(pub Arc<str>);

impl AgentId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentId {
    /// The same agent as it is called where the team that it belongs to is the member `team`.
    #[must_use]
    pub(crate) fn in_team(&self, team: &AgentId) -> AgentId {
        AgentId(format!("{team}/{self}").into())
    }

    /// The members whose teams it belongs to, the outermost first, and then itself.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = AgentId> {
        let ends = self.0.match_indices('/').map(|(at, _)| at).chain([self.0.len()]);
        ends.map(|end| AgentId::from(&self.0[..end]))
    }

    /// The team that it belongs to, as that is called in the run; empty for the outermost.
    pub fn team(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(team, _)| team)
    }

    /// What it is called in its own team.
    pub(crate) fn local(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl From<&str> for AgentId {
    fn from(id: &str) -> AgentId {
        AgentId(id.into())
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A team as it stands in a run's spec: checked, with every default filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Team {
    /// The team's name.
    pub name: Arc<str>,
    /// Its agents in registration order.
    pub agents: Vec<Agent>,
    /// Who serves it without being a member: its lead, a judge of its own, its controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staff: Vec<Agent>,
}

impl Team {
    /// A team without staff.
    pub fn new(name: impl Into<Arc<str>>, agents: Vec<Agent>) -> Team {
        Team { name: name.into(), agents, staff: Vec::new() }
    }

    /// The agent with this id. Panics on a foreign id: specs are checked when they are made, and logs
    /// when they are loaded.
    pub fn agent(&self, id: &AgentId) -> &Agent {
        self.get(id.as_str()).expect("a checked spec names its own agents")
    }

    /// The agent with this id, of this team or of one that is a member: `reviewers/alice`.
    fn get(&self, id: &str) -> Option<&Agent> {
        let own = |id: &str| self.everyone().find(|agent| agent.id.as_str() == id);
        own(id).or_else(|| {
            let (member, id) = id.split_once('/')?;
            own(member)?.team()?.spec.team.get(id)
        })
    }

    /// What an agent is called in the whole run: with the names of the members before it whose teams it
    /// belongs to.
    pub fn full_name(&self, id: &AgentId) -> String {
        let names: Vec<&str> = id.ranks().map(|rank| &*self.agent(&rank).name).collect();
        names.join("/")
    }

    /// Everyone in it and in the teams that are members, each under the id that the run knows it by.
    pub fn all(&self) -> Vec<Agent> {
        let with_inner = |agent: &Agent| {
            let inner = agent.team().map(|nested| nested.spec.team.all()).unwrap_or_default();
            let id = agent.id.clone();
            let inner = inner.into_iter().map(move |it| Agent { id: it.id.in_team(&id), ..it });
            [agent.clone()].into_iter().chain(inner)
        };
        self.everyone().flat_map(with_inner).collect()
    }

    /// The agent that a call asks, with the target that it asks; a foreign agent panics.
    pub fn asked(&self, call: &Call) -> Cow<'_, Agent> {
        let agent = self.agent(call.agent());
        let agent = match call {
            Call::Agent { target, .. } if *target != FIRST_TARGET => {
                Cow::Owned(agent.answered_by(*target))
            }
            Call::Agent { .. }
            | Call::Team { .. }
            | Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => Cow::Borrowed(agent),
        };
        // Where it is asked it goes by the id that the run knows it by.
        if agent.id == *call.agent() {
            agent
        } else {
            Cow::Owned(Agent { id: call.agent().clone(), ..agent.into_owned() })
        }
    }

    /// Whether there is an agent with this id.
    pub fn has(&self, id: &AgentId) -> bool {
        self.get(id.as_str()).is_some()
    }

    /// Its agents, then its staff.
    pub fn everyone(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().chain(&self.staff)
    }

    /// Its lead, if it has a prompt of its own.
    pub fn lead(&self) -> Option<&Agent> {
        self.staff.iter().find(|agent| agent.id.as_str() == PARENT)
    }

    /// The agent meant by `name`: the exact display name, else the id.
    pub fn find(&self, name: &str) -> Option<&Agent> {
        let by_name = self.agents.iter().find(|agent| &*agent.name == name);
        by_name.or_else(|| self.agents.iter().find(|agent| agent.id.as_str() == name))
    }
}

/// The id of a team's lead, and what stands for it in the edges of a graph.
pub const PARENT: &str = "parent";

/// One member of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Its name as results, prompts and ballots show it.
    pub name: Arc<str>,
    /// What it is good for, for planners and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// Its own instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// Tags by which a supervisor's tasks find it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Arc<str>>,
    /// The tools it may use, `tool.action`; without grants it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Arc<str>>,
    /// The MCP servers of which it is granted tools, by name; nothing else of them is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Arc<str>>,
    /// How many model calls one turn may take.
    pub max_steps: u32,
    /// Extra attempts inside one call.
    #[serde(default)]
    pub retries: u32,
    /// What its processes may do at most.
    #[serde(default, skip_serializing_if = "Sandbox::is_narrowest")]
    pub sandbox: Sandbox,
    /// Its own limits; reaching one fails its calls, not the run.
    #[serde(default)]
    pub limits: Limits,
    /// What answers for it: the first target of its chain.
    pub target: Target,
    /// The later targets of its chain, in order (agents.md §3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
    /// What answers in its place once little is left of the budget that it works under, in order and
    /// numbered from [`ECONOMY`] (agents.md §8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub economy: Vec<Fallback>,
}

/// A later target of a chain: it is asked when the one before it failed in a way that another may not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    /// Its number in the chain as it is written, from 2; those that are left out keep theirs.
    pub number: u32,
    /// What answers.
    pub target: Target,
}

/// The number of the target that an agent's chain begins with.
pub const FIRST_TARGET: u32 = 1;

/// The number of the first target that answers when a budget runs low: beyond those of any chain.
pub const ECONOMY: u32 = 101;

/// How many model calls one turn may take unless its agent says otherwise.
pub const MAX_STEPS: u32 = 30;

impl Agent {
    /// An agent of which no more is said than its name, which is its id, and what answers for it.
    pub fn new(name: &str, target: Target) -> Agent {
        Agent {
            id: AgentId(name.into()),
            name: name.into(),
            description: None,
            prompt: None,
            capabilities: Vec::new(),
            grants: Vec::new(),
            servers: Vec::new(),
            max_steps: MAX_STEPS,
            retries: 0,
            sandbox: Sandbox::default(),
            limits: Limits::default(),
            target,
            fallbacks: Vec::new(),
            economy: Vec::new(),
        }
    }

    /// The same agent where the target with this number answers for it; it has no others.
    ///
    /// A number that its chain does not have, as in a damaged log, is taken for the first.
    #[must_use]
    pub fn answered_by(&self, number: u32) -> Agent {
        let mut later = self.fallbacks.iter().chain(&self.economy);
        let later = later.find(|fallback| fallback.number == number);
        let target = later.map_or(&self.target, |fallback| &fallback.target).clone();
        Agent { target, fallbacks: Vec::new(), economy: Vec::new(), ..self.clone() }
    }

    /// The number of the target that is asked after the one with this number.
    pub(crate) fn next_target(&self, number: u32) -> Option<u32> {
        let chain = if number < ECONOMY { &self.fallbacks } else { &self.economy };
        chain.iter().map(|fallback| fallback.number).find(|next| *next > number)
    }

    /// The team that answers for it, if one does.
    pub fn team(&self) -> Option<&Nested> {
        match &self.target {
            Target::Team(nested) => Some(nested),
            Target::Model(_)
            | Target::Script(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_) => None,
        }
    }

    /// The same, to change it.
    pub fn team_mut(&mut self) -> Option<&mut Nested> {
        match &mut self.target {
            Target::Team(nested) => Some(nested),
            Target::Model(_)
            | Target::Script(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_) => None,
        }
    }

    /// Whether it may change files: its sandbox and its grants let it write them or run commands.
    pub fn may_write(&self) -> bool {
        let is_granted = self.is_granted("file.write") || self.is_granted("shell");
        self.sandbox > Sandbox::ReadOnly && is_granted
    }

    /// Whether its grants allow the tool `name`, `tool.action`.
    pub fn is_granted(&self, name: &str) -> bool {
        self.grants.iter().any(|grant| covers(grant, name))
    }
}

/// What answers for an agent (agents.md §2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A model API.
    Model(Model),
    /// Replies written beforehand.
    Script(Script),
    /// Canned offline replies.
    Demo,
    /// A coding agent on the command line.
    Cli(Cli),
    /// A coding agent that is talked to in the Agent Client Protocol.
    Acp(Acp),
    /// A remote agent that is talked to in the Agent2Agent protocol.
    A2a(A2a),
    /// A whole team: a turn is a run of it.
    Team(Box<Nested>),
}

/// A team that answers for an agent of another one (agents.md §2). What its agents may do is cut down
/// already to what that agent may.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nested {
    /// The file that it came from, as it is named there.
    pub file: Arc<str>,
    /// All that a turn depends on but its task.
    pub spec: Spec,
}

/// A coding agent on the command line: each call starts it anew, with the prompt, and ends with it
/// (agents.md §2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cli {
    /// Which one.
    pub program: CliProgram,
    /// The model that it is told to use, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
}

/// A coding agent that is talked to in the Agent Client Protocol: each call starts it anew, has one turn
/// with it, and ends with that (agents.md §2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acp {
    /// It and its arguments; no shell reads them.
    pub command: Vec<Arc<str>>,
}

/// A remote agent that is talked to in the Agent2Agent protocol: each call is a task of its, followed to
/// the end (agents.md §2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2a {
    /// Where its card is: its own address, or the host's.
    pub url: Arc<str>,
    /// The variable that holds the key that it wants to see, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<Arc<str>>,
}

/// Which coding agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CliProgram {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// `OpenCode`.
    Opencode,
    /// Any other.
    Own(OwnProgram),
}

/// A program of which only this is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnProgram {
    /// It and its arguments; no shell reads them.
    pub command: Vec<Arc<str>>,
    /// How it gets the prompt.
    #[serde(default)]
    pub input: CliInput,
    /// How it gives its reply.
    #[serde(default)]
    pub output: CliOutput,
}

/// How a program gets the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CliInput {
    /// On its standard input.
    #[default]
    Stdin,
    /// In a file whose path is its last argument.
    File,
    /// As its last argument, behind `--`.
    Arg,
}

/// How a program gives its reply, on its standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CliOutput {
    /// All that it prints.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// JSON values, one a line, of which the last one with a reply counts.
    Jsonl,
}

impl CliProgram {
    /// The presets, by name.
    pub const PRESETS: [(&'static str, CliProgram); 4] = [
        ("claude", CliProgram::Claude),
        ("codex", CliProgram::Codex),
        ("gemini", CliProgram::Gemini),
        ("opencode", CliProgram::Opencode),
    ];

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<CliProgram> {
        let mut presets = CliProgram::PRESETS.into_iter();
        presets.find(|(preset, _)| *preset == name).map(|(_, program)| program)
    }
}

impl fmt::Display for Cli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let preset = CliProgram::PRESETS.into_iter().find(|(_, it)| *it == self.program);
        match (&self.program, preset) {
            (_, Some((name, _))) => f.write_str(name)?,
            (CliProgram::Own(own), None) => f.write_str(name_of(&own.command))?,
            // Each of them has a name.
            (_, None) => {}
        }
        self.model.as_ref().map_or(Ok(()), |model| write!(f, "/{model}"))
    }
}

impl fmt::Display for Acp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&self.command))
    }
}

impl fmt::Display for A2a {
    /// Its host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behind = self.url.split_once("://").map_or(&*self.url, |(_, behind)| behind);
        f.write_str(behind.split(['/', '?', '#']).next().unwrap_or(behind))
    }
}

/// What a program is called: its file, wherever that is.
fn name_of(command: &[Arc<str>]) -> &str {
    let program = command.first().map_or("", |program| program);
    program.rsplit('/').next().unwrap_or(program)
}

impl Target {
    /// What it is called if it is a coding agent: a program that works by itself, with tools of its own.
    pub fn coding_agent(&self) -> Option<&dyn fmt::Display> {
        match self {
            Target::Cli(cli) => Some(cli),
            Target::Acp(acp) => Some(acp),
            Target::Model(_)
            | Target::Script(_)
            | Target::Demo
            | Target::A2a(_)
            | Target::Team(_) => None,
        }
    }

    /// What it is called if nobody knows what a call will use before it is done: it works by itself.
    pub fn unmetered(&self) -> Option<&dyn fmt::Display> {
        match self {
            Target::A2a(a2a) => Some(a2a),
            Target::Model(_)
            | Target::Script(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::Team(_) => self.coding_agent(),
        }
    }

    /// What it is called where a model is shown; a script by its label.
    pub fn label(&self) -> Option<String> {
        match self {
            Target::Model(model) => Some(model.to_string()),
            Target::Script(script) => script.label.as_ref().map(ToString::to_string),
            Target::Demo => Some("demo".to_owned()),
            Target::Cli(cli) => Some(cli.to_string()),
            Target::Acp(acp) => Some(acp.to_string()),
            Target::A2a(a2a) => Some(a2a.to_string()),
            Target::Team(nested) => Some(format!("team {}", nested.file)),
        }
    }
}

/// Lets those of the team that answers for `member` do nothing that it may not do itself, and so on
/// within that team; nobody grants more than it has (agents.md §5).
pub(crate) fn narrow(member: &mut Agent) {
    let (grants, sandbox) = (member.grants.clone(), member.sandbox);
    let Some(nested) = member.team_mut() else { return };
    let team = &mut nested.spec.team;
    for agent in team.agents.iter_mut().chain(&mut team.staff) {
        agent.grants = common(&agent.grants, &grants);
        agent.sandbox = agent.sandbox.min(sandbox);
        narrow(agent);
    }
}

/// What two sets of grants have in common.
fn common(own: &[Arc<str>], around: &[Arc<str>]) -> Vec<Arc<str>> {
    let mut common: Vec<Arc<str>> = Vec::new();
    for one in own {
        for other in around {
            let narrower = if covers(other, one) {
                one
            } else if covers(one, other) {
                other
            } else {
                continue;
            };
            if !common.contains(narrower) {
                common.push(narrower.clone());
            }
        }
    }
    common
}

/// Whether a grant allows the tool, or all that the grant `name` does (agents.md §5): a grant is a tool
/// with an action, a whole tool, or `*`. Whoever may read files may list them.
pub(crate) fn covers(grant: &str, name: &str) -> bool {
    if let Some((server, tool)) = mcp::parts(name) {
        return mcp::grants(grant, server, tool);
    }
    let (whole, name) = (stem(grant), stem(name));
    let below = name.strip_prefix(whole);
    whole == "*"
        || below.is_some_and(|it| it.is_empty() || it.starts_with('.'))
        || (whole, name) == ("file.read", "file.list")
        || (whole, name) == ("shell.run", "shell")
}

/// A grant without the star that stands for all its actions.
fn stem(grant: &str) -> &str {
    grant.strip_suffix(".*").unwrap_or(grant)
}

/// What processes of agents may do (agents.md §6), the narrowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Write nothing but temporary files, and reach nobody.
    #[default]
    ReadOnly,
    /// Write to the workspace too.
    Write,
    /// Whatever Folkmoot itself may do.
    Full,
}

impl Sandbox {
    /// The level of this name.
    pub fn named(name: &str) -> Option<Sandbox> {
        let all = [Sandbox::ReadOnly, Sandbox::Write, Sandbox::Full];
        all.into_iter().find(|level| level.as_str() == name)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Sandbox::ReadOnly => "read-only",
            Sandbox::Write => "write",
            Sandbox::Full => "full",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    fn is_narrowest(&self) -> bool {
        *self == Sandbox::ReadOnly
    }
}

/// A model behind an API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Who serves it.
    pub provider: Arc<str>,
    /// Its name there.
    pub model: Arc<str>,
    /// The most tokens one reply may have; also what a call reserves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The most tokens that a request and its reply may have together, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What it costs, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl Model {
    /// A model of which nothing is known but its name.
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Model {
        let (provider, model) = (provider.into(), model.into());
        Model { provider, model, max_output_tokens: None, context_window: None, price: None }
    }

    /// The most tokens a request may have, if the window is known: what the longest reply leaves of
    /// it, or three quarters if replies have no bound or one beyond that.
    pub(crate) fn room(&self) -> Option<u64> {
        let window = self.context_window?;
        let reply = self.max_output_tokens.unwrap_or(u64::MAX);
        Some(window - reply.min(window / 4))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// A scripted agent: a rehearsal without a model (interface.md).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Replies by call number of the agent in the run; the last repeats, an empty list echoes.
    pub replies: Vec<ScriptedReply>,
    /// Tried first, against the last message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ScriptRule>,
    /// The model it stands in for; only a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
}

/// A reply that is given whenever the last message contains a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptRule {
    /// The text looked for, literally.
    pub contains: Arc<str>,
    /// The reply.
    pub reply: ScriptedReply,
}

/// One reply of a scripted agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptedReply {
    /// How long it takes; virtual time in a simulation.
    #[serde(default)]
    pub delay: Duration,
    /// What it says.
    pub says: Says,
    /// The tokens it pretends to have used; none unless given.
    #[serde(default)]
    pub usage: Tokens,
}

impl ScriptedReply {
    /// A text at once.
    pub fn text(text: impl Into<Arc<str>>) -> ScriptedReply {
        let says = Says::Text(text.into());
        ScriptedReply { delay: Duration::default(), says, usage: Tokens::default() }
    }

    /// The reply as a call's outcome.
    pub fn outcome(&self) -> Outcome {
        let answer = match &self.says {
            Says::Text(text) => Answer::text(text.clone()),
            Says::Json(value) => Answer::json(value.clone()),
            Says::Error { text, kind } => return Err(Fault::failed(*kind, text.clone())),
            Says::Tools { calls, text } => {
                Answer { tool_calls: calls.clone(), ..Answer::text(text.clone()) }
            }
        };
        Ok(answer.into())
    }
}

/// What a scripted reply says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// A text.
    Text(Arc<str>),
    /// A structured reply.
    Json(Value),
    /// A failure.
    Error {
        /// Its words.
        text: Arc<str>,
        /// Its kind; `harness` unless given.
        kind: FailureKind,
    },
    /// Tool calls, with the text beside them.
    Tools {
        /// The calls.
        calls: Vec<ToolCall>,
        /// The text.
        text: Arc<str>,
    },
}

impl Script {
    /// The reply to the `nth` call of the agent (from 1) whose last message is `last`; `None` echoes it.
    pub fn reply(&self, nth: u64, last: &str) -> Option<&ScriptedReply> {
        let rule = self.rules.iter().find(|rule| last.contains(&*rule.contains));
        rule.map(|rule| &rule.reply).or_else(|| {
            let nth = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
            self.replies.get(nth).or(self.replies.last())
        })
    }

    /// The most tokens any of its replies uses.
    pub fn worst_case(&self) -> Tokens {
        let rules = self.rules.iter().map(|rule| &rule.reply);
        let usages = self.replies.iter().chain(rules).map(|reply| reply.usage);
        usages.max_by_key(|usage| usage.total()).unwrap_or_default()
    }
}

/// What one call of the offline demo uses.
pub const DEMO_USAGE: Tokens = Tokens { input: 120, cached: 0, cache_write: 0, output: 40 };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GRANTS: [&str; 12] = [
        "*",
        "file",
        "file.*",
        "file.read",
        "file.list",
        "file.write",
        "search",
        "shell",
        "shell.run",
        "fetch",
        "mcp.s",
        "mcp.s.t",
    ];
    const TOOLS: [&str; 9] = [
        "file.read",
        "file.list",
        "file.write",
        "search",
        "shell",
        "fetch",
        "mcp.s.t",
        "mcp.s.u",
        "mcp.st",
    ];

    fn grants() -> impl Strategy<Value = Vec<Arc<str>>> {
        prop::collection::vec(prop::sample::select(&GRANTS).prop_map(Arc::from), 0..5)
    }

    fn granted(name: &str, grants: Vec<Arc<str>>, target: Target) -> Agent {
        Agent { grants, ..Agent::new(name, target) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_granted_in_nested_teams_is_what_all_around_are_granted(
            chain in prop::collection::vec(grants(), 1..5)
        ) {
            let agents = chain.iter().rev().cloned().fold(None, |inner, grants| {
                let target = inner.map_or(Target::Demo, |inner| {
                    let spec = crate::testing::spec(vec![inner], crate::spec::Collaboration::Broadcast(
                        crate::programs::Broadcast {
                            agents: vec!["a".into()],
                            rounds: 1,
                            clocks: crate::programs::Clocks::default(),
                        },
                    ));
                    Target::Team(Box::new(Nested { file: "inner.yaml".into(), spec }))
                });
                Some(granted("a", grants, target))
            });
            let mut outermost = agents.expect("there is one");
            narrow(&mut outermost);
            let team = Team::new("test", vec![outermost]);
            for (level, agent) in team.all().iter().enumerate() {
                for tool in TOOLS {
                    let around = &chain[..=level];
                    let is_granted = around.iter().all(|it| it.iter().any(|it| covers(it, tool)));
                    prop_assert_eq!(agent.is_granted(tool), is_granted, "{} at {}", tool, level);
                }
            }
        }
    }
}
