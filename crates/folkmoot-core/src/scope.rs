//! What a program sees of its run, and how it says what it wants.
//!
//! A program is a plain function that is run again from the top whenever something is known. An ask
//! returns the recorded answer, or notes the wish and halts that branch; `?` hands the halt up.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Add,
    sync::Arc,
};

use serde_json::{Map, Value};

use crate::{
    call::{Call, Fault, Limit, Outcome, Owner, Part, Prompt, Reply, Usage},
    event::Ending,
    findings::Ledger,
    key::{self, Key},
    known::{Entry, Known},
    limits::Limits,
    programs::{graph::Used, nested, turn},
    render,
    spec::{Choice, Mail, Spec, Warning},
    team::{Agent, AgentId, PARENT},
    time::{Duration, Time},
    words::Language,
};

/// A pure function from what is known to what is wanted.
pub trait Program: Send + Sync + fmt::Debug {
    /// Goes as far as what is known allows.
    fn run(&self, cx: &Scope) -> Step<Ending>;
}

/// Why a program cannot go on just now: it waits. Never swallow one; the kernel notices.
#[derive(Debug, PartialEq, Eq)]
pub struct Halt(());

/// A value, or a halt.
pub type Step<T> = Result<T, Halt>;

/// A call that a program wants, and on what terms.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) key: Key,
    pub(crate) call: Call,
    /// The record in which it was asked, if it is under way as it is wanted.
    pub(crate) asked: Option<u64>,
    /// When its phase ends.
    pub(crate) until: Option<Time>,
    /// How long it may take from its start.
    pub(crate) within: Option<Duration>,
    /// The parts of the run whose limits it counts against.
    pub(crate) scopes: Vec<(Key, Limits)>,
    /// Why the program itself forbids it; it is then recorded and not started.
    pub(crate) forbidden: Option<Fault>,
    /// Whether the run goes on if its budget has no room for this.
    pub(crate) optional: bool,
    /// The turn that wants it, where that is not told by its key: other turns may want it too.
    pub(crate) turn: Option<Key>,
    /// What it came to, if it is a turn of a team and that is done.
    pub(crate) concludes: Option<Outcome>,
}

/// The turn of a team as whose run a program is followed.
#[derive(Debug)]
struct Turn {
    /// The member whose turn it is, as the run knows it.
    team: AgentId,
    /// Where its calls are put.
    path: Arc<str>,
    /// Its task.
    brief: Vec<Part>,
}

/// What a run has to show so far: its rounds and choices, made by its program as it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The records of the phases, in the shape of strategies.md.
    pub rounds: Vec<Value>,
    /// What `auto` chose.
    pub auto: Option<Choice>,
    /// How a graph went.
    pub graph: Option<Value>,
    /// What was found in it.
    pub findings: Option<Findings>,
    /// What its program tells beside the unified result, field by field.
    pub record: Map<String, Value>,
    /// What the run's public stream was told, in order.
    pub notices: Vec<Notice>,
    /// What the run itself warns of.
    pub warnings: Vec<Warning>,
    /// Replies that came and yet count as failed, and why.
    pub faults: Vec<(Key, AgentId, Fault)>,
    /// The turns of teams, in the order in which its program comes to them.
    pub nested: Vec<Followed>,
}

/// The run of a team that answers for a member, in one of its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The turn.
    pub key: Key,
    /// How its program ended, if it has.
    pub ending: Option<Ending>,
    /// What it has to show.
    pub account: Account,
}

/// Something that a program tells the run's public stream (agents.md §9).
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The record with which it happened.
    pub seq: u64,
    /// What happened, in a word.
    pub kind: &'static str,
    /// More about it, field by field.
    pub fields: Map<String, Value>,
}

/// What reviewers found, as results tell it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The findings in order of first sight, stage after stage.
    pub all: Vec<Value>,
    /// What each round brought.
    pub rounds: Vec<Value>,
}

impl Findings {
    /// Adds those of a graph, or of a stage.
    pub(crate) fn add(&mut self, ledger: &Ledger, stage: Option<&str>) {
        let named = |mut told: Value| {
            if let Some(stage) = stage {
                told["stage"] = stage.into();
            }
            told
        };
        self.all.extend(ledger.told().into_iter().map(named));
        self.rounds.extend(ledger.told_rounds().into_iter().map(named));
    }
}

/// What one pass of a program brought up, and what it looks up time and again.
#[derive(Debug, Default)]
struct Notes {
    /// Where in the team the latest agent stands that was looked for.
    latest: Cell<usize>,
    language: OnceCell<Language>,
    wants: RefCell<Vec<Want>>,
    account: RefCell<Account>,
    /// Where the latest answer came in that led to where the program is now.
    reached: Cell<Moment>,
}

/// A place in the log, and its time. What comes later in the log is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) seq: u64,
    /// The time of it.
    pub(crate) at: Time,
}

/// A place in a run: what is known there, and where asks from there are put.
///
/// ```text
/// let round = cx.at("round-1").within(self.clocks.timeout);
/// let reply = round.ask("alice", &alice, Prompt::task())?;   // key round-1/alice
/// ```
///
/// `?` waits until there is a reply; a reply may be a fault, which is the program's to judge.
/// A scope never shows time, money or the order of answers, except as the log tells them.
#[derive(Clone, Debug)]
pub struct Scope<'a> {
    spec: &'a Spec,
    /// That of the whole run.
    root: &'a Spec,
    /// If the program is that of a team which is a member.
    turn: Option<Arc<Turn>>,
    known: &'a Known,
    notes: &'a Notes,
    tells: bool,
    path: Arc<str>,
    until: Option<Time>,
    call_within: Option<Duration>,
    scopes: Vec<(Key, Limits)>,
    optional: bool,
}

impl<'a> Scope<'a> {
    /// The place `name` below this one.
    #[must_use]
    pub fn at(&self, name: impl fmt::Display) -> Scope<'a> {
        let mut path = String::from(&*self.path);
        key::push_segment(&mut path, name);
        path.push('/');
        Scope { path: path.into(), ..self.clone() }
    }

    /// The same place with a clock that begins now, when all that led here is known.
    #[must_use]
    pub fn within(&self, timeout: Option<Duration>) -> Scope<'a> {
        let ends = timeout.map(|timeout| self.notes.reached.get().at + timeout);
        let until = [self.until, ends].into_iter().flatten().min();
        Scope { until, ..self.clone() }
    }

    /// The same place with a clock for each call, from its start.
    #[must_use]
    pub fn each_within(&self, timeout: Option<Duration>) -> Scope<'a> {
        let call_within = [self.call_within, timeout].into_iter().flatten().min();
        Scope { call_within, ..self.clone() }
    }

    /// The same place with a clock that ends then.
    #[must_use]
    pub(crate) fn before(&self, end: Option<Time>) -> Scope<'a> {
        let until = [self.until, end].into_iter().flatten().min();
        Scope { until, ..self.clone() }
    }

    /// The same place for what a turn does after its call `first`: the clock of that call goes on.
    pub(crate) fn going_on(&self, first: &Key) -> Scope<'a> {
        let began = self.known.get(first.as_str()).map(|entry| entry.asked_at);
        let ends = began.zip(self.call_within).map(|(began, within)| began + within);
        let until = [self.until, ends].into_iter().flatten().min();
        Scope { until, call_within: None, ..self.clone() }
    }

    /// The same place with limits of its own.
    #[must_use]
    pub fn limited(&self, limits: Limits) -> Scope<'a> {
        let mut scopes = self.scopes.clone();
        scopes.push((Key::parse(&self.path), limits));
        Scope { scopes, ..self.clone() }
    }

    /// The same place for calls that the run can do without: if its budget has no room for one, that
    /// call fails and the run goes on.
    #[must_use]
    pub fn optional(&self) -> Scope<'a> {
        Scope { optional: true, ..self.clone() }
    }

    /// What became of a call, if it is settled.
    pub(crate) fn reply(&self, key: &Key) -> Option<Reply> {
        let reply = self.known.reply(key)?;
        Some(Reply { agent: self.local(&reply.agent), ..reply })
    }

    /// What an agent of this program's team is called in it.
    pub(crate) fn local(&self, agent: &AgentId) -> AgentId {
        let of_team = |turn: &Arc<Turn>| agent.0.strip_prefix(&*turn.team.0)?.strip_prefix('/');
        self.turn.as_ref().and_then(of_team).map_or_else(|| agent.clone(), AgentId::from)
    }

    /// The team whose program this is, as the run calls it; empty for the outermost.
    pub(crate) fn team(&self) -> &str {
        self.turn.as_ref().map_or("", |turn| turn.team.as_str())
    }

    /// Whether every member whose team this program's is may use a tool: nobody grants more than it has,
    /// whatever a spec says.
    pub(crate) fn is_granted_around(&self, tool: &str) -> bool {
        let mut around = self.turn.iter().flat_map(|turn| turn.team.ranks());
        around.all(|member| self.root.team.agent(&member).is_granted(tool))
    }

    /// A call of this program as the run knows it.
    fn global(&self, call: Call) -> Call {
        match &self.turn {
            Some(turn) => call.in_team(&turn.team, &turn.brief),
            None => call,
        }
    }

    /// What was charged in the part of the run that this program is followed in.
    fn charged(&self) -> impl Iterator<Item = &'a Entry> {
        let scope = self.turn.as_ref().map(|turn| Key::parse(&turn.path));
        let is_own = move |entry: &&Entry| match &scope {
            Some(scope) => entry.scopes.contains(scope),
            None => true,
        };
        self.known.charged().filter(is_own)
    }

    /// The name of a call `name` from here.
    pub(crate) fn key(&self, name: impl fmt::Display) -> Key {
        Key::under(&self.path, &name.to_string())
    }

    /// Whether the run is one whose agents have tools of mail and boards, if they are granted.
    pub(crate) fn has_mail(&self) -> bool {
        self.root.mail != Mail::Unknown
    }

    /// What the run depends on.
    pub fn spec(&self) -> &'a Spec {
        self.spec
    }

    /// The name of an agent as prompts and records show it.
    pub fn name(&self, agent: &AgentId) -> &'a str {
        &self.agent(agent).name
    }

    /// Programs mostly ask in the order of the team, so it is gone through from where the latest one
    /// was found: with a thousand agents, that is what keeps a pass short.
    fn agent(&self, id: &AgentId) -> &'a Agent {
        let agents = &self.spec.team.agents;
        let (before, from) = agents.split_at(self.notes.latest.get().min(agents.len()));
        let places = (before.len()..).zip(from).chain((0..).zip(before));
        let mut members = places.into_iter();
        let Some((at, agent)) = members.find(|(_, agent)| agent.id == *id) else {
            return self.spec.team.agent(id);
        };
        self.notes.latest.set(at);
        agent
    }

    /// The language of prompts.
    pub(crate) fn language(&self) -> Language {
        *self.notes.language.get_or_init(|| Language::of(&self.root.task))
    }

    /// How many calls the run's limits still allowed when all that led here was known; none if they
    /// do not bind. What is decided by it stays decided, however many calls follow.
    pub fn calls_left(&self) -> Option<u64> {
        let here = self.notes.reached.get().seq;
        let made = self.charged().filter(|entry| entry.asked <= here).count() as u64;
        self.spec.limits.calls.map(|most| most.saturating_sub(made))
    }

    /// What the run had used when all that led here was known.
    pub(crate) fn used(&self) -> Used {
        let here = self.notes.reached.get().seq;
        let asked = self.charged().filter(|entry| entry.asked <= here);
        asked.fold(Used::default(), |used, entry| {
            let is_settled = !entry.is_open() && entry.settled <= here;
            let tokens = if is_settled { entry.usage().tokens.total() } else { 0 };
            Used { calls: used.calls + 1, tokens: used.tokens.saturating_add(tokens) }
        })
    }

    /// The tokens that calls of this kind had used when all that led here was known: each attempt of
    /// each that is settled.
    fn consumed_of(&self, is_of: impl Fn(&Entry) -> bool) -> u64 {
        let here = self.notes.reached.get().seq;
        let settled = self.charged().filter(|it| !it.is_open() && it.settled <= here);
        let own = settled.filter(|entry| is_of(entry));
        let used = own.flat_map(|entry| &entry.usages).map(|usage| usage.tokens.total());
        used.fold(0, u64::saturating_add)
    }

    /// What was consumed in this part of the run, in tokens; see [`Scope::limited`].
    pub(crate) fn consumed(&self) -> u64 {
        let level = self.scopes.last().map(|(level, _)| level);
        self.consumed_of(|entry| level.is_none_or(|level| entry.scopes.contains(level)))
    }

    /// What an agent has consumed, in tokens.
    pub(crate) fn consumed_by(&self, agent: &AgentId) -> u64 {
        self.consumed_of(|entry| self.local(entry.call.agent()) == *agent)
    }

    /// Whether less than a fifth of a budget is left that calls from here count against (agents.md §8).
    pub(crate) fn is_low(&self) -> bool {
        self.scopes.iter().any(|(level, limits)| {
            let is_low = |total: u64| {
                let consumed = self.consumed_of(|entry| entry.scopes.contains(level));
                let left = total.saturating_sub(consumed);
                u128::from(left) * 5 < u128::from(total)
            };
            limits.soft_tokens.is_some_and(is_low)
        })
    }

    /// Whether exactly this was asked already under the name `name`.
    pub(crate) fn has_asked(&self, name: &str, call: Call) -> bool {
        let key = self.key(name);
        let call = self.known.worded(&key, self.global(call));
        self.known.fitting(&key, &call).is_some()
    }

    /// The calls of the turn `name`, in the order of asking.
    pub(crate) fn calls_of(&self, name: &str) -> Vec<&'a Entry> {
        let mut calls = self.known.turn(&self.key(name));
        calls.sort_by_key(|entry| entry.asked);
        calls
    }

    /// All that is known.
    pub(crate) fn known(&self) -> &'a Known {
        self.known
    }

    /// Asks an agent for its turn: one request, and what its tools need.
    pub fn ask(&self, name: &str, agent: &AgentId, prompt: Prompt) -> Step<Reply> {
        let agent = self.agent(agent);
        match agent.team() {
            Some(nested) => nested::take(self, name, agent, nested, prompt),
            None => turn::take(self, name, agent, prompt),
        }
    }

    /// Makes one call and halts until there is a reply.
    pub(crate) fn call(&self, name: &str, call: Call) -> Step<Reply> {
        self.want(self.key(name), call, None, None)
    }

    /// Records that a call is not allowed; it is refused with `fault` and not started.
    pub(crate) fn forbid(&self, name: &str, call: Call, fault: Fault) -> Step<Reply> {
        self.want(self.key(name), call, Some(fault), None)
    }

    /// Makes one call that other turns may make too, under a key of the whole run.
    pub(crate) fn shared(&self, key: Key, call: Call) -> Step<Reply> {
        let turn = Key::parse(self.path.trim_end_matches('/'));
        self.want(key, call, None, Some(turn))
    }

    /// Whether what became of a call was known when all that led here was.
    pub(crate) fn has_reached(&self, key: &Key) -> bool {
        let here = self.notes.reached.get().seq;
        let entry = self.known.get(key.as_str()).filter(|entry| !entry.is_open());
        entry.is_some_and(|entry| entry.settled <= here)
    }

    fn want(
        &self,
        key: Key,
        call: Call,
        forbidden: Option<Fault>,
        turn: Option<Key>,
    ) -> Step<Reply> {
        let call = self.known.worded(&key, self.global(call));
        let fitting = self.known.fitting(&key, &call);
        if let Some((outcome, entry)) = fitting.and_then(|it| Some((it.outcome.clone()?, it))) {
            let settled = Moment { seq: entry.settled, at: entry.settled_at };
            self.notes.reached.set(self.notes.reached.get().max(settled));
            return Ok(Reply { key, agent: self.local(call.agent()), outcome });
        }
        let asked = fitting.map(|entry| entry.asked);
        self.notes.wants.borrow_mut().push(Want {
            key,
            call,
            asked,
            until: self.until,
            within: self.call_within,
            scopes: self.scopes.clone(),
            forbidden,
            optional: self.optional,
            turn,
            concludes: None,
        });
        Err(Halt(()))
    }

    /// The place in which the turn `name` of the member `agent` follows the program of its team, which
    /// is that of `spec`; `prompt` is what the member is asked.
    pub(crate) fn nested<'b>(
        &'b self,
        name: &str,
        agent: &AgentId,
        spec: &'b Spec,
        brief: Vec<Part>,
    ) -> Scope<'b> {
        let place = self.at(name).going_on_from_now(&self.key(name));
        let team = match &self.turn {
            Some(turn) => agent.in_team(&turn.team),
            None => agent.clone(),
        };
        let turn = Turn { team, path: place.path.clone(), brief };
        let place = Scope { spec, turn: Some(turn.into()), ..place };
        place.limited(Limits { time: None, ..spec.limits })
    }

    /// The same as [`Scope::going_on`], also if that call is only about to be asked.
    fn going_on_from_now(&self, first: &Key) -> Scope<'a> {
        let place = self.going_on(first);
        match self.known.get(first.as_str()) {
            Some(_) => place,
            None => place.within(self.call_within),
        }
    }

    /// What a turn of a team is asked in all, in parts: `prompt` and all that it continues.
    pub(crate) fn brief(&self, prompt: &Prompt) -> Vec<Part> {
        let prompt = match self.global(Call::Team { agent: PARENT.into(), prompt: prompt.clone() })
        {
            Call::Team { prompt, .. } => prompt,
            _ => Prompt::default(),
        };
        render::flattened(self.known, &prompt)
    }

    /// A prompt of these parts in words.
    pub(crate) fn told(&self, parts: &[Part]) -> String {
        let prompt = Prompt { parts: parts.to_vec(), ..Prompt::default() };
        let messages = render::for_person(self.root, self.known, &prompt);
        let texts: Vec<&str> = messages.iter().map(|message| &*message.content).collect();
        texts.join("\n\n")
    }

    /// The limit, not the run's, for which a call below here was not started, if one was.
    pub(crate) fn short_of(&self) -> Option<Limit> {
        let calls = self.known.turn(&Key::parse(self.path.trim_end_matches('/')));
        calls.iter().find_map(|entry| match entry.fault()? {
            Fault::OverBudget { limit, of: Owner::Scope | Owner::Agent } => Some(*limit),
            _ => None,
        })
    }

    /// Follows the program of the turn `name` of a team. What it tells is told as its own: its records
    /// are not those of the run.
    pub(crate) fn follow(
        &self,
        name: &str,
        turn: impl FnOnce() -> Step<Ending>,
    ) -> (Step<Ending>, Vec<Want>) {
        let around = self.notes.account.take();
        let (step, wants) = self.tentatively(turn);
        let account = self.notes.account.replace(around);
        self.tell(|around| {
            let (key, ending) = (self.key(name), step.as_ref().ok().cloned());
            around.nested.retain(|turn| turn.key != key);
            around.nested.push(Followed { key, ending, account });
        });
        (step, wants)
    }

    /// The same for a turn that is over, of which only somebody who looks wants to know more.
    pub(crate) fn follow_again(&self, name: &str, turn: impl FnOnce() -> Step<Ending>) {
        if self.tells {
            let here = self.moment();
            drop(self.follow(name, turn));
            self.go_to(here);
        }
    }

    /// Says what the turn `name` of a team, which is wanted, came to.
    pub(crate) fn conclude(&self, name: &str, outcome: Outcome) {
        let key = self.key(name);
        let mut wants = self.notes.wants.borrow_mut();
        if let Some(want) = wants.iter_mut().rfind(|want| want.key == key) {
            want.concludes = Some(outcome);
        }
    }

    /// What `turn` gives, and what it waits for: that is wanted only by who [waits](Scope::wait_for)
    /// for it.
    pub(crate) fn tentatively<T>(&self, turn: impl FnOnce() -> T) -> (T, Vec<Want>) {
        let noted = self.notes.wants.borrow().len();
        let value = turn();
        (value, self.notes.wants.borrow_mut().split_off(noted))
    }

    /// Waits for what is wanted so far, and then for this.
    pub(crate) fn wait_for<T>(&self, wants: Vec<Want>) -> Step<T> {
        self.notes.wants.borrow_mut().extend(wants);
        Err(Halt(()))
    }

    /// What was asked last under a key of this run.
    pub(crate) fn asked(&self, key: &Key) -> Option<&'a Call> {
        self.known.get(key.as_str()).map(|entry| &entry.call)
    }

    /// Wants the turn `name` no longer; if it is under way it will be withdrawn.
    pub(crate) fn give_up(&self, name: impl fmt::Display) {
        let key = self.key(name);
        let below = format!("{key}/");
        let is_of_turn = |want: &Want| {
            let of = want.turn.as_ref().unwrap_or(&want.key);
            *of == key || of.is_under(&below)
        };
        self.notes.wants.borrow_mut().retain(|want| !is_of_turn(want));
    }

    /// Adds to the run's account; `tell` is called only when somebody wants to see it.
    pub fn tell(&self, tell: impl FnOnce(&mut Account)) {
        if self.tells {
            tell(&mut self.notes.account.borrow_mut());
        }
    }

    /// Adds a record of a phase to the run's account.
    pub fn record(&self, record: impl FnOnce() -> Value) {
        self.tell(|account| account.rounds.push(record()));
    }

    /// How long the turn `name` took, from its first request to its last answer.
    pub fn took(&self, name: &str) -> Duration {
        let calls = self.known.turn(&self.key(name));
        let began = calls.iter().map(|entry| entry.asked_at).min();
        let ended = calls.iter().map(|entry| entry.settled_at).max();
        ended.unwrap_or_default().since(began.unwrap_or_default())
    }

    /// What the run used so far.
    pub(crate) fn spent_in_all(&self) -> Usage {
        let calls = self.charged();
        calls.flat_map(|entry| &entry.usages).copied().fold(Usage::default(), Add::add)
    }

    /// Whether any call of the turn `name` was made, not refused.
    pub(crate) fn was_asked(&self, name: &str) -> bool {
        self.known.turn(&self.key(name)).iter().any(|entry| !entry.refused)
    }

    /// Whether the turn `name` has a call that is not answered yet.
    pub fn is_under_way(&self, name: &str) -> bool {
        self.known.turn(&self.key(name)).iter().any(|entry| entry.is_open())
    }

    /// Lets every branch have its turn, and waits only then. What becomes known in one branch moves no
    /// clock that begins in another.
    pub fn all<B, T>(
        &self,
        branches: impl IntoIterator<Item = B>,
        mut turn: impl FnMut(B) -> Step<T>,
    ) -> Step<Vec<T>> {
        let since = self.notes.reached.get();
        let mut latest = since;
        let turns: Vec<Step<T>> = (branches.into_iter())
            .map(|branch| {
                let (step, reached) = self.branch(since, || turn(branch));
                latest = latest.max(reached);
                step
            })
            .collect();
        self.notes.reached.set(latest);
        turns.into_iter().collect()
    }

    /// Where the latest answer came in that led to here.
    pub(crate) fn moment(&self) -> Moment {
        self.notes.reached.get()
    }

    /// Goes on from a place in the log at which several branches have met.
    pub(crate) fn go_to(&self, moment: Moment) {
        self.notes.reached.set(moment);
    }

    /// Follows a branch that begins at `since`, and tells how far it has come.
    pub(crate) fn branch<T>(
        &self,
        since: Moment,
        turn: impl FnOnce() -> Step<T>,
    ) -> (Step<T>, Moment) {
        self.notes.reached.set(since);
        let step = turn();
        (step, self.notes.reached.get())
    }

    /// Evaluates each node as soon as all that it comes after is known: no waves. Wishes are put in
    /// the order of `nodes`, which must not need each other in a circle.
    ///
    /// Gives what is done so far, whether or not it is all; [`complete`] waits for the rest.
    pub fn dag<'n, N: Node, T>(
        &self,
        nodes: &'n [N],
        mut eval: impl FnMut(&'n N, &[&T]) -> Step<T>,
    ) -> BTreeMap<&'n str, T> {
        let began = self.notes.reached.get();
        let mut done: BTreeMap<&str, T> = BTreeMap::new();
        let mut reached: BTreeMap<&str, Moment> = BTreeMap::new();
        let mut wants: Vec<Vec<Want>> = nodes.iter().map(|_| Vec::new()).collect();
        let mut rest: Vec<usize> = (0..nodes.len()).collect();
        loop {
            let before = rest.len();
            rest.retain(|&at| {
                let node = &nodes[at];
                let inputs: Option<Vec<&T>> =
                    node.after().iter().map(|id| done.get(&**id)).collect();
                let Some(inputs) = inputs else { return true };
                let since = node.after().iter().map(|id| reached[&**id]).fold(began, Moment::max);
                let noted = self.notes.wants.borrow().len();
                let (value, ended) = self.branch(since, || eval(node, &inputs));
                reached.insert(node.id(), ended);
                if let Ok(value) = value {
                    done.insert(node.id(), value);
                }
                wants[at] = self.notes.wants.borrow_mut().split_off(noted);
                false
            });
            if rest.len() == before {
                break;
            }
        }
        self.notes.reached.set(reached.into_values().fold(began, Moment::max));
        self.notes.wants.borrow_mut().extend(wants.into_iter().flatten());
        done
    }
}

/// Waits until every node of a [`Scope::dag`] is done.
pub fn complete<'n, T, N>(done: BTreeMap<&'n str, T>, nodes: &[N]) -> Step<BTreeMap<&'n str, T>> {
    if done.len() == nodes.len() { Ok(done) } else { Err(Halt(())) }
}

/// Something that comes after others.
pub trait Node {
    /// Its name among the nodes.
    fn id(&self) -> &str;
    /// The names of the nodes it needs.
    fn after(&self) -> &[Arc<str>];
}

/// What a program makes of what is known.
#[derive(Debug)]
pub(crate) struct Thought {
    pub(crate) ending: Option<Ending>,
    pub(crate) wants: Vec<Want>,
    pub(crate) account: Account,
}

/// Runs `program` from the top.
pub(crate) fn think(program: &dyn Program, spec: &Spec, known: &Known, tells: bool) -> Thought {
    let notes = Notes::default();
    let (path, scopes) = (Arc::from(""), Vec::new());
    let (until, call_within, optional) = (None, None, false);
    let cx = Scope {
        spec,
        root: spec,
        turn: None,
        known,
        notes: &notes,
        tells,
        path,
        until,
        call_within,
        scopes,
        optional,
    };
    let ending = program.run(&cx).ok();
    let Notes { wants, account, .. } = notes;
    let mut wants = wants.into_inner();
    // What several turns want is one call.
    let mut shared = BTreeSet::new();
    wants.retain(|want| want.turn.is_none() || shared.insert(want.key.clone()));
    Thought { ending, wants, account: account.into_inner() }
}
