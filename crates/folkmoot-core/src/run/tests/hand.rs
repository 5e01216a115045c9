//! A run driven by hand: its every event, and when it comes, is the test's own.

use std::sync::Arc;

use crate::{
    call::{Fault, Outcome, Tokens, Usage},
    event::{Event, Record},
    key::Key,
    known::Entry,
    programs::{Broadcast, Clocks},
    run::{Command, Run},
    scope::Program,
    spec::{Collaboration, Spec},
    team::{Agent, Model, ScriptedReply, Target},
    testing::{agent, ids, line, spec},
    time::{Duration, Time},
};

/// A run, and the hand that feeds it.
pub(super) struct Hand<'a> {
    program: &'a dyn Program,
    pub(super) spec: &'a Spec,
    pub(super) run: Run,
    pub(super) log: Vec<Record>,
    pub(super) wakes_at: Option<Time>,
    now: Time,
}

impl<'a> Hand<'a> {
    /// A run that was just started.
    pub(super) fn start(spec: &'a Spec) -> Hand<'a> {
        Hand::follow(spec.program(), spec)
    }

    /// A run of a program that stands in no spec.
    pub(super) fn follow(program: &'a dyn Program, spec: &'a Spec) -> Hand<'a> {
        let mut hand = Hand::idle(program, spec);
        hand.feed(Event::Started { spec: Arc::new(spec.clone()), wall: 0, origin: None });
        hand
    }

    /// A run to which nothing has happened yet.
    pub(super) fn idle(program: &'a dyn Program, spec: &'a Spec) -> Hand<'a> {
        let (run, log, now) = (Run::default(), Vec::new(), Time::default());
        Hand { program, spec, run, log, wakes_at: None, now }
    }

    /// Another process that goes on with the first `records` of this run.
    pub(super) fn resume(&self, records: usize) -> Hand<'a> {
        let log = self.log[..records].to_vec();
        let mut hand = Hand { run: Run::fold(&log), log, ..Hand::idle(self.program, self.spec) };
        hand.feed(Event::Resumed { wall: 0 });
        hand
    }

    /// The same run under another program.
    pub(super) fn switch(&mut self, program: &'a dyn Program) {
        self.program = program;
    }

    /// Lets time pass, up to `ms`.
    pub(super) fn at(&mut self, ms: u64) -> &mut Hand<'a> {
        self.now = Time::default() + Duration::from_millis(ms);
        self
    }

    /// Lets something happen; gives what is to be done about it.
    pub(super) fn feed(&mut self, event: Event) -> Vec<Command> {
        self.feed_all([event])
    }

    /// Lets all this happen at once.
    pub(super) fn feed_all(&mut self, events: impl IntoIterator<Item = Event>) -> Vec<Command> {
        let stepped = self.run.step(self.program, self.spec, events, self.now);
        let commands = self.run.commands(&stepped.records);
        self.wakes_at = stepped.wakes_at;
        self.log.extend(stepped.records);
        commands
    }

    pub(super) fn tick(&mut self) {
        self.feed(Event::Ticked);
    }

    pub(super) fn answer(&mut self, key: &str, text: &str) {
        self.settle(key, says(text), Usage::default());
    }

    pub(super) fn fail(&mut self, key: &str, fault: Fault) {
        self.settle(key, Err(fault), Usage::default());
    }

    /// Answers the current attempt of a call.
    pub(super) fn settle(&mut self, key: &str, outcome: Outcome, usage: Usage) {
        let attempt = self.call(key).attempt;
        self.feed(answered(key, attempt, outcome, usage));
    }

    /// What became of a call.
    pub(super) fn call(&self, key: &str) -> &Entry {
        self.run.known().get(key).expect("it was asked")
    }

    pub(super) fn fault(&self, key: &str) -> String {
        self.call(key).fault().map_or_else(|| "none".to_owned(), Fault::to_string)
    }

    /// What is under way.
    pub(super) fn open(&self) -> String {
        let open: Vec<&str> = self.run.known().open().map(|(key, _)| key.as_str()).collect();
        open.join(" ")
    }

    /// Why it ended; nothing if it has not.
    pub(super) fn reason(&self) -> &str {
        self.run.ending().map_or("", |ending| &*ending.reason)
    }

    /// The last `n` records as a person reads them.
    pub(super) fn last(&self, n: usize) -> Vec<String> {
        let text = |record| line(record).split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
        self.log[self.log.len() - n..].iter().map(text).collect()
    }
}

pub(super) fn answered(key: &str, attempt: u32, outcome: Outcome, usage: Usage) -> Event {
    Event::Answered { key: Key::parse(key), attempt, settled: outcome.into(), usage }
}

pub(super) fn says(text: &str) -> Outcome {
    ScriptedReply::text(text).outcome()
}

/// So many tokens read and written.
pub(super) fn used(input: u64, output: u64) -> Usage {
    Usage { tokens: Tokens { input, output, ..Tokens::default() }, ..Usage::default() }
}

/// An agent whose replies are bounded by `max_output_tokens`.
pub(super) fn model(name: &str, max_output_tokens: u64) -> Agent {
    let max_output_tokens = Some(max_output_tokens);
    let target = Target::Model(Model { max_output_tokens, ..Model::new("p", "m") });
    Agent { target, ..agent(name, &[]) }
}

/// Agents that are all asked at once, for `rounds` rounds of `timeout_ms`.
pub(super) fn panel(names: &[&str], rounds: u32, timeout_ms: u64) -> Spec {
    let timeout = Some(Duration::from_millis(timeout_ms));
    let clocks = Clocks { timeout, call_timeout: None };
    let broadcast = Broadcast { agents: ids(names), rounds, clocks };
    let agents = names.iter().map(|name| agent(name, &[])).collect();
    spec(agents, Collaboration::Broadcast(broadcast))
}
