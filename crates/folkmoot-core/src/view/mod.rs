//! What people and programs are shown of a run: folds of its log.

pub mod comparison;
pub mod drawing;
mod failovers;
mod forms;
mod nested;
mod prices;
mod readings;
mod report;
mod servers;

pub use readings::{Reading, Readings, readings};
pub use report::report;

use std::{collections::BTreeMap, ops::Add, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    call::{Call, Fault, Limit, Usage},
    event::{Ending, Record, Text},
    key::Key,
    known::{Entry, Known},
    money::Money,
    programs::{controller::Briefing, graph},
    render::{self, Message},
    run::Run,
    scope::{Account, Notice},
    session::Session,
    spec::{Choice, Spec, Warning},
    team::{AgentId, FIRST_TARGET},
    time::{Duration, Time},
};

/// How a run stands (interface.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it was for.
    Done,
    /// It did not.
    Failed,
    /// Someone cancelled it.
    Cancelled,
    /// A person is asked.
    NeedsInput,
    /// A limit of the run was reached.
    BudgetExhausted,
    /// It ended at a bound without converging.
    BoundReached,
    /// Its time ran out.
    Deadline,
    /// It is under way.
    Running,
    /// Nobody drives it at the moment; it can be resumed.
    Interrupted,
}

impl Status {
    /// The exit code of a command that ends with this status.
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::Failed | Status::Cancelled => 1,
            Status::NeedsInput => 3,
            Status::BudgetExhausted => 4,
            Status::BoundReached => 5,
            Status::Deadline => 6,
            Status::Running | Status::Interrupted => 130,
        }
    }

    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::NeedsInput => "needs_input",
            Status::BudgetExhausted => "budget_exhausted",
            Status::BoundReached => "bound_reached",
            Status::Deadline => "deadline",
            Status::Running => "running",
            Status::Interrupted => "interrupted",
        }
    }
}

/// What is told of a run whose files were not saved before a call.
fn unsaved((key, why): &(Key, Arc<str>)) -> Warning {
    let message = format!("the files were not saved before {key}, and cannot be put back: {why}");
    Warning { code: "not_saved".into(), message: message.into() }
}

/// The unified result (strategies.md §1.6).
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The run.
    pub run_id: String,
    /// How it stands.
    pub status: Status,
    /// Why it ended, in one word.
    pub reason: Option<String>,
    /// The strategy it followed.
    pub strategy: String,
    /// The task, as given.
    pub prompt: String,
    /// The run it goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<OriginView>,
    /// The records of its phases.
    pub rounds: Vec<Value>,
    /// The answer.
    #[serde(rename = "final")]
    pub answer: Option<String>,
    /// Without an answer: the best there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// Every failed call, in the order of asking.
    pub errors: Vec<Failure>,
    /// What the checks and the run itself warn of.
    pub warnings: Vec<Warning>,
    /// How a graph went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Value>,
    /// What reviewers found, and what became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Value>>,
    /// What each round brought of findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_of_findings: Option<Vec<Value>>,
    /// The turns of teams that are members, by key: `{agent, team, strategy, status, reason, rounds}`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub nested: Map<String, Value>,
    /// What its program tells beside all this.
    #[serde(flatten)]
    pub record: Map<String, Value>,
    /// Everything else.
    pub meta: Meta,
}

/// Where a run comes from that goes on from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginView {
    /// The run.
    pub run_id: String,
    /// The last event of it that was taken over.
    pub seq: u64,
    /// Whether this is another attempt at it, not a fork with something changed.
    pub retried: bool,
}

/// The best remaining text of a run without an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Partial {
    /// The replies, joined by a blank line.
    pub text: String,
    /// Where they stand.
    pub keys: Vec<Key>,
}

/// A failed call.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The call.
    pub key: Key,
    /// Who was asked.
    pub agent: String,
    /// The fault in words.
    pub error: String,
}

/// Figures about a run.
#[derive(Clone, Debug, Serialize)]
pub struct Meta {
    /// Active seconds from its start to its last event.
    pub elapsed_seconds: f64,
    /// All agents in registration order.
    pub agents: Vec<String>,
    /// The strategy it followed.
    pub strategy: String,
    /// What it used.
    pub usage: UsageReport,
    /// What `auto` chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<Choice>,
}

/// What a run used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UsageReport {
    /// All together.
    pub total: Spending,
    /// By agent, those that used any tokens.
    pub agents: BTreeMap<String, Spending>,
    /// Calls started.
    pub calls: u64,
}

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Tokens read, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Of the tokens read, those from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// And those that went into a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// US dollars, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether some of it is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Spending {
    /// What these calls used, all their attempts together.
    pub(crate) fn of_calls<'a>(calls: impl IntoIterator<Item = &'a Entry>) -> Spending {
        let usages = calls.into_iter().flat_map(|entry| &entry.usages).copied();
        usages.fold(Usage::default(), Add::add).into()
    }
}

impl From<Usage> for Spending {
    fn from(sum: Usage) -> Spending {
        Spending {
            prompt_tokens: sum.tokens.read(),
            completion_tokens: sum.tokens.output,
            total_tokens: sum.tokens.total(),
            cached_tokens: sum.tokens.cached,
            cache_write_tokens: sum.tokens.cache_write,
            cost_usd: sum.cost.map(Money::usd),
            estimated: sum.estimated,
        }
    }
}

/// Folds a run into its unified result. `alive` tells whether somebody drives it.
pub fn outcome(run_id: &str, spec: &Spec, run: &Run, alive: bool) -> Outcome {
    let mut account = run.account(spec.program(), spec);
    let strategy = strategy(spec, &account);
    let (status, reason) = status(run, alive);
    // A program that waits for a person may say why.
    let told = account.record.shift_remove("reason");
    let reason = reason.or_else(|| Some(told?.as_str()?.to_owned()));
    let asked = questions(spec, run);
    if !asked.is_empty() && !account.record.contains_key("open_questions") {
        account.record.insert("question".to_owned(), asked[0].clone());
        account.record.insert("open_questions".to_owned(), asked.into());
    }
    let answer = run.ending().and_then(|ending| text(run.known(), ending.answer.as_ref()?));
    let partial = match (&answer, run.ending()) {
        (None, Some(ending)) => partial(run.known(), ending),
        (None, None) | (Some(_), _) => None,
    };
    Outcome {
        run_id: run_id.to_owned(),
        status,
        reason,
        strategy: strategy.clone(),
        prompt: spec.task.to_string(),
        origin: origin(run),
        answer,
        partial,
        errors: errors(spec, run, &account, status),
        warnings: [
            &spec.warnings,
            &failovers::warnings(spec, run),
            &servers::warnings(run),
            &account.warnings,
        ]
        .into_iter()
        .flatten()
        .cloned()
        .chain(run.unsaved().map(unsaved))
        .collect(),
        graph: account.graph,
        nested: nested::told(spec, run, status, &account.nested),
        findings: account.findings.as_ref().map(|it| it.all.clone()),
        rounds_of_findings: account.findings.map(|it| it.rounds),
        meta: Meta {
            elapsed_seconds: run.at().since(Time::default()).as_secs_f64(),
            agents: spec.team.agents.iter().map(|agent| agent.name.to_string()).collect(),
            strategy,
            usage: usage(spec, run.known()),
            auto: account.auto.or_else(|| spec.auto.clone()),
        },
        rounds: account.rounds,
        record: account.record,
    }
}

/// The questions that wait for a person.
fn questions(spec: &Spec, run: &Run) -> Vec<Value> {
    let open = run.known().questions().filter_map(|(key, entry)| {
        let Call::Person { agent, prompt } = &entry.call else { return None };
        let messages = render::for_person(spec, run.known(), prompt);
        let text = messages.last().map(|message| message.content.clone());
        let name = spec.team.full_name(agent);
        let mut question = json!({ "key": key, "role": name, "text": text });
        if graph::is_about_failure(key) {
            question["choices"] = json!(["retry", "skip", "stop"]);
        }
        Some(question)
    });
    open.collect()
}

/// What the public stream is told with the last `records` of a run, the latest that it has.
pub fn notices(spec: &Spec, run: &Run, records: &[Record]) -> Vec<Notice> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else { return Vec::new() };
    if !spec.collaboration.tells_public() {
        return Vec::new();
    }
    let told = run.account(spec.program(), spec).notices.into_iter();
    told.filter(|notice| (first.seq..=last.seq).contains(&notice.seq)).collect()
}

/// Where the run comes from, if it goes on from another.
pub fn origin(run: &Run) -> Option<OriginView> {
    let origin = run.origin()?;
    let (run_id, seq, retried) = (origin.run.to_string(), origin.seq, origin.is_retried());
    Some(OriginView { run_id, seq, retried })
}

fn strategy(spec: &Spec, account: &Account) -> String {
    let chosen = account.auto.as_ref().map(|auto| auto.chose.to_string());
    chosen.unwrap_or_else(|| spec.collaboration.name().to_owned())
}

/// How the run stands, and why.
pub fn status(run: &Run, alive: bool) -> (Status, Option<String>) {
    let Some(ending) = run.ending() else {
        let status = match alive {
            _ if run.waits_for_person() => Status::NeedsInput,
            true => Status::Running,
            false => Status::Interrupted,
        };
        return (status, None);
    };
    let (status, reason) = match run.stop() {
        Some(Fault::Cancelled) => (Status::Cancelled, "cancelled"),
        Some(Fault::Deadline) if ending.limit.is_none() => (Status::Deadline, "deadline"),
        Some(Fault::OverBudget { limit, .. }) if ending.limit.is_none() => {
            (Status::BudgetExhausted, name_of(*limit))
        }
        // A program that knows the limit has its own word for it.
        Some(
            Fault::Deadline
            | Fault::OverBudget { .. }
            | Fault::Failed { .. }
            | Fault::TimedOut
            | Fault::Lost
            | Fault::Unwanted,
        )
        | None => (of_ending(ending), &*ending.reason),
    };
    (status, Some(reason.to_owned()))
}

/// How a program stands that ended so, and that nothing stopped.
fn of_ending(ending: &Ending) -> Status {
    match (ending.limit, ending.done, ending.bound) {
        (_, true, _) => Status::Done,
        (Some(Limit::Time), false, _) => Status::Deadline,
        (Some(Limit::Calls | Limit::Tokens | Limit::Cost), false, _) => Status::BudgetExhausted,
        (None, false, true) => Status::BoundReached,
        (None, false, false) => Status::Failed,
    }
}

fn name_of(limit: Limit) -> &'static str {
    match limit {
        Limit::Calls => "calls",
        Limit::Tokens => "tokens",
        Limit::Cost => "cost",
        Limit::Time => "time",
    }
}

fn text(known: &Known, text: &Text) -> Option<String> {
    match text {
        Text::Replies(keys) => joined(known, keys),
        Text::Literal(text) => Some(text.to_string()),
    }
}

fn joined(known: &Known, keys: &[Key]) -> Option<String> {
    let texts: Vec<&str> = keys.iter().filter_map(|key| Some(&**known.text(key)?)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn partial(known: &Known, ending: &Ending) -> Option<Partial> {
    let text = joined(known, &ending.partial)?;
    Some(Partial { text, keys: ending.partial.clone() })
}

/// The calls that failed, then the replies that came and count as failed all the same. Where a run failed
/// and none of these tells why, blank replies do (rules.md 5.5).
fn errors(spec: &Spec, run: &Run, account: &Account, status: Status) -> Vec<Failure> {
    let known = run.known();
    let name = |agent: &AgentId| spec.team.full_name(agent);
    let failed = known.in_order().into_iter().filter_map(|(key, entry)| {
        let fault = entry.fault().filter(|fault| **fault != Fault::Unwanted)?;
        let (key, agent) = (key.clone(), name(entry.call.agent()));
        Some(Failure { key, agent, error: fault.to_string() })
    });
    let read = account.faults.iter().map(|(key, agent, fault)| Failure {
        key: key.clone(),
        agent: name(agent),
        error: fault.to_string(),
    });
    let mut errors: Vec<Failure> = failed.chain(read).collect();
    if errors.is_empty() && status == Status::Failed {
        let is_blank = |entry: &Entry| {
            let asks = matches!(entry.call, Call::Agent { .. } | Call::Team { .. });
            let answer = entry.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
            asks && answer.is_some_and(|answer| answer.is_blank())
        };
        let blank = known.in_order().into_iter().filter(|(_, entry)| is_blank(entry));
        errors.extend(blank.map(|(key, entry)| Failure {
            key: key.clone(),
            agent: name(entry.call.agent()),
            error: "blank reply".to_owned(),
        }));
    }
    errors
}

/// What the calls of a run used; a fork is not charged for what it took over.
pub fn usage(spec: &Spec, known: &Known) -> UsageReport {
    let mut by_agent: BTreeMap<&AgentId, Vec<&Entry>> = BTreeMap::new();
    for entry in known.charged() {
        by_agent.entry(entry.call.agent()).or_default().push(entry);
    }
    let of_agents = spec.team.all().into_iter().filter_map(|agent| {
        let own = by_agent.remove(&agent.id)?;
        Some((spec.team.full_name(&agent.id), Spending::of_calls(own)))
    });
    UsageReport {
        agents: of_agents.filter(|(_, spending)| spending.total_tokens > 0).collect(),
        total: Spending::of_calls(known.charged()),
        calls: known.charged().count() as u64,
    }
}

/// What the person is called who is asked.
const USER: &str = "user";

/// A call as `show` tells it.
#[derive(Clone, Debug, Serialize)]
pub struct CallView {
    /// Its name.
    pub key: Key,
    /// Who was asked; `user` is a person.
    pub agent: String,
    /// The model that was asked, or that a script stood in for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its number in the agent's chain, if it was not the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// The tool, if one was used; what was looked at, if an edge required that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The current attempt, from 1.
    pub attempt: u32,
    /// `open`, `answered`, `failed`, `refused` or `withdrawn`.
    pub state: &'static str,
    /// What was sent.
    pub request: RequestView,
    /// The answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The answer's structure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// What the model thought aloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// How a coding agent came to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<Session>>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Value>,
    /// What it used.
    pub usage: Spending,
    /// The wall clock when it was asked, in microseconds since 1970.
    pub asked_at: u64,
    /// And when it was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<u64>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_seconds: Option<f64>,
}

impl CallView {
    /// The model that was asked, if it is not the one that its agent is usually answered by.
    pub fn fallback(&self) -> Option<&str> {
        self.target.and(self.model.as_deref())
    }
}

/// What was sent.
#[derive(Clone, Debug, Serialize)]
pub struct RequestView {
    /// The conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The arguments of a tool, the gate that was looked at, or what a controller was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// A digest of it.
    pub digest: String,
}

/// The calls of a run in the order of asking.
pub fn calls(spec: &Spec, run: &Run) -> Vec<CallView> {
    run.known().in_order().into_iter().map(|(key, entry)| call(spec, run, key, entry)).collect()
}

fn call(spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> CallView {
    let agent = spec.team.asked(&entry.call);
    let (messages, arguments, tool) = match &entry.call {
        Call::Agent { prompt, .. } => {
            (render::messages(spec, run.known(), &agent, prompt), None, None)
        }
        Call::Person { prompt, .. } | Call::Team { prompt, .. } => {
            (render::for_person(spec, run.known(), prompt), None, None)
        }
        Call::Tool { request, .. } => {
            (Vec::new(), Some(request.arguments.clone()), Some(request.name.to_string()))
        }
        Call::Gate { gate, .. } => (Vec::new(), Some(json!(gate)), Some(gate.to_string())),
        Call::Exchange { .. } => {
            let told = Briefing::of(spec, run.known(), key).news();
            (Vec::new(), serde_json::from_str(&told).ok(), None)
        }
        Call::Listing { server, .. } => (Vec::new(), None, Some(format!("mcp.{server}"))),
    };
    let sent = json!([messages, tool, arguments]).to_string();
    let digest = blake3::hash(sent.as_bytes()).to_hex()[..16].to_owned();
    let answer = entry.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
    CallView {
        key: key.clone(),
        agent: if entry.call.is_for_person() {
            USER.to_owned()
        } else {
            spec.team.full_name(entry.call.agent())
        },
        model: agent
            .target
            .label()
            .filter(|_| matches!(entry.call, Call::Agent { .. } | Call::Team { .. })),
        target: later_target(&entry.call),
        tool,
        attempt: entry.attempt,
        state: state(entry),
        request: RequestView { messages, arguments, digest },
        reply: answer.map(|answer| answer.text.to_string()),
        json: answer.and_then(|answer| answer.json.clone()),
        reasoning: answer.and_then(|answer| Some(answer.reasoning.as_ref()?.to_string())),
        session: answer.and_then(|answer| answer.session.clone()),
        fault: entry.fault().map(fault),
        usage: Spending::of_calls([entry]),
        asked_at: run.wall_at(entry.asked_at),
        answered_at: (!entry.is_open()).then(|| run.wall_at(entry.settled_at)),
        elapsed_seconds: (!entry.is_open()).then(|| elapsed(entry).as_secs_f64()),
    }
}

/// The number of the target that a call asks, if it is not the first of its chain.
fn later_target(call: &Call) -> Option<u32> {
    match call {
        Call::Agent { target, .. } => Some(*target).filter(|target| *target > FIRST_TARGET),
        Call::Team { .. }
        | Call::Tool { .. }
        | Call::Person { .. }
        | Call::Gate { .. }
        | Call::Exchange { .. }
        | Call::Listing { .. } => None,
    }
}

fn elapsed(entry: &Entry) -> Duration {
    entry.settled_at.since(entry.asked_at)
}

fn state(entry: &Entry) -> &'static str {
    match &entry.outcome {
        None => "open",
        Some(Ok(_)) => "answered",
        Some(Err(_)) if entry.refused => "refused",
        Some(Err(_)) if entry.withdrawn => "withdrawn",
        Some(Err(_)) => "failed",
    }
}

/// A fault with its text, kind and details.
fn fault(fault: &Fault) -> Value {
    let mut details = match serde_json::to_value(fault) {
        Ok(Value::Object(details)) => details,
        Ok(_) | Err(_) => Map::new(),
    };
    details.insert("error".to_owned(), fault.to_string().into());
    Value::Object(details)
}
