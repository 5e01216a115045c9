//! The rules that every log keeps, judged from its records alone and without the kernel's books.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    call::{Call, Fault, Usage},
    event::{Event, Record, Reservation},
    key::Key,
    limits::{CONCURRENCY, Limits},
    spec::Spec,
    team::AgentId,
    time::Time,
};

/// What the records so far amount to.
#[derive(Clone, Default)]
pub(super) struct Audit {
    seq: u64,
    at: Time,
    open: BTreeMap<Key, Open>,
    /// Everything that was ever begun, by key and attempt, and what is booked for it.
    attempts: BTreeMap<(Key, u32), Attempt>,
    /// The keys that were started or refused.
    decided: BTreeSet<Key>,
    numbers: BTreeMap<AgentId, u64>,
    deadline: Option<Time>,
    /// Whether an answer was changed, so that calls may be asked anew.
    is_amended: bool,
    allowed: Allowed,
    has_ended: bool,
}

/// What calls may do.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Allowed {
    Nothing,
    GoOn,
    #[default]
    Start,
}

#[derive(Clone)]
struct Open {
    agent: AgentId,
    attempt: u32,
    reserved: Option<Reservation>,
}

#[derive(Clone)]
struct Attempt {
    agent: AgentId,
    /// Whether the kernel started it as a call of its own, not after a crash.
    is_call: bool,
    used: Amount,
    /// What it used beyond what was set aside for it.
    excess: Amount,
}

/// Tokens and money.
#[derive(Clone, Copy, Default)]
struct Amount([u128; 2]);

impl Amount {
    fn of(usage: Usage) -> Amount {
        Amount([usage.tokens.total().into(), usage.cost.unwrap_or_default().0.into()])
    }

    fn aside(reserved: Reservation) -> Amount {
        Amount([reserved.tokens.total().into(), reserved.cost.unwrap_or_default().0.into()])
    }

    fn beyond(self, other: Amount) -> Amount {
        Amount([0, 1].map(|at| self.0[at].saturating_sub(other.0[at])))
    }

    fn and(self, other: Amount) -> Amount {
        Amount([0, 1].map(|at| self.0[at] + other.0[at]))
    }
}

impl Audit {
    /// Checks what was recorded next.
    pub(super) fn go_on(mut self, spec: &Spec, records: &[Record]) -> Audit {
        for record in records {
            self.take(record);
            self.check_limits(spec);
        }
        self
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn take(&mut self, record: &Record) {
        let Record { seq, at, event } = record;
        assert_eq!(*seq, self.seq + 1, "the numbers have a gap");
        assert!(*at >= self.at, "record {seq} goes back in time");
        (self.seq, self.at) = (*seq, *at);
        if event.is_decision() {
            assert!(!self.has_ended, "record {seq} decides after the end");
        } else if !matches!(event, Event::Resumed { .. } | Event::CancelRequested) {
            let goes_on = self.allowed > Allowed::Nothing || self.has_ended;
            assert!(goes_on, "a stopped run does not end at once");
        }
        match event {
            Event::Started { spec, .. } => {
                self.deadline = spec.limits.time.map(|time| Time::default() + time);
            }
            Event::Resumed { .. } => self.resume(),
            Event::Answered { key, attempt, usage, .. } => self.answer(key, *attempt, *usage),
            Event::Amended { key, .. } => {
                self.open.remove(key);
                (self.is_amended, self.has_ended) = (true, false);
            }
            Event::CancelRequested => self.halt(),
            Event::Ticked if self.deadline.is_some_and(|it| it <= *at) => self.halt(),
            Event::Inherited { .. }
            | Event::Prompted { .. }
            | Event::Ticked
            | Event::Woken { .. } => {}
            Event::Asked { key, call, nth, reserved, .. } => self.ask(key, call, *nth, *reserved),
            Event::Refused { key, fault, .. } => self.refuse(key, fault),
            Event::Withdrawn { key, usage, .. } => self.withdraw(key, *usage),
            Event::Ended { .. } => {
                assert!(self.open.is_empty(), "it ends with open calls");
                self.has_ended = true;
            }
        }
    }

    fn halt(&mut self) {
        if !self.has_ended {
            self.allowed = Allowed::Nothing;
        }
    }

    fn resume(&mut self) {
        for (key, open) in &mut self.open {
            open.attempt += 1;
            let attempt = Attempt::of(&open.agent, false);
            self.attempts.insert((key.clone(), open.attempt), attempt);
        }
    }

    fn ask(&mut self, key: &Key, call: &Call, nth: u64, reserved: Option<Reservation>) {
        assert!(self.allowed == Allowed::Start, "{key} is started after the stop");
        assert!(!self.open.contains_key(key), "{key} is under way already");
        self.decide(key);
        let number = self.numbers.entry(call.agent().clone()).or_default();
        assert_eq!(nth, *number + 1, "the numbers of an agent's calls have a gap");
        if matches!(call, Call::Agent { .. }) {
            *number = nth;
        }
        let agent = call.agent().clone();
        let attempt = 1 + self.attempts.keys().filter(|(it, _)| it == key).count() as u32;
        self.attempts.insert((key.clone(), attempt), Attempt::of(&agent, true));
        self.open.insert(key.clone(), Open { agent, attempt, reserved });
    }

    fn refuse(&mut self, key: &Key, fault: &Fault) {
        self.decide(key);
        if matches!(fault, Fault::Cancelled | Fault::Deadline) {
            self.allowed = Allowed::Nothing;
        } else if fault.stops_run() {
            self.allowed = self.allowed.min(Allowed::GoOn);
        }
    }

    fn decide(&mut self, key: &Key) {
        assert!(self.decided.insert(key.clone()) || self.is_amended, "{key} is decided twice");
    }

    fn answer(&mut self, key: &Key, attempt: u32, usage: Usage) {
        let Some(booked) = self.attempts.get_mut(&(key.clone(), attempt)) else { return };
        let is_current = self.open.get(key).is_some_and(|open| open.attempt == attempt);
        let open = if is_current { self.open.remove(key) } else { None };
        let aside = open.and_then(|open| open.reserved).map_or(booked.used, Amount::aside);
        booked.used = Amount::of(usage);
        booked.excess = booked.excess.and(booked.used.beyond(aside));
    }

    fn withdraw(&mut self, key: &Key, usage: Usage) {
        let open = self.open.remove(key).expect("only what is open is withdrawn");
        let used = Amount::of(usage);
        if let Some(reserved) = open.reserved {
            let excess = used.beyond(Amount::aside(reserved));
            assert_eq!(excess.0, [0, 0], "{key} is taken to have used more than its worst case");
        }
        let attempt = self.attempts.get_mut(&(key.clone(), open.attempt));
        attempt.expect("what is open was begun").used = used;
    }

    fn check_limits(&self, spec: &Spec) {
        assert!(self.open.len() as u64 <= CONCURRENCY);
        self.check("the run", &spec.limits, |_| true);
        for agent in &spec.team.agents {
            self.check(agent.id.as_str(), &agent.limits, |it| *it == agent.id);
        }
    }

    fn check(&self, of: &str, limits: &Limits, is_own: impl Fn(&AgentId) -> bool) {
        let attempts = || self.attempts.values().filter(|attempt| is_own(&attempt.agent));
        if let Some(most) = limits.calls {
            let calls = attempts().filter(|attempt| attempt.is_call).count() as u64;
            assert!(calls <= most, "{of}: {calls} calls, {most} allowed");
        }
        if let Some(most) = limits.concurrency {
            let open = self.open.values().filter(|open| is_own(&open.agent)).count() as u64;
            assert!(open <= most, "{of}: {open} calls at once, {most} allowed");
        }
        let used = attempts().map(|it| it.used).fold(Amount::default(), Amount::and);
        let excess = attempts().map(|it| it.excess).fold(Amount::default(), Amount::and);
        let most = [limits.tokens, limits.cost.map(|cost| cost.0)];
        for ((used, excess), most) in used.0.into_iter().zip(excess.0).zip(most) {
            let is_kept = most.is_none_or(|most| used <= u128::from(most) + excess);
            assert!(is_kept, "{of}: used {used}, {most:?} and {excess} allowed");
        }
    }
}

impl Attempt {
    fn of(agent: &AgentId, is_call: bool) -> Attempt {
        let (used, excess) = (Amount::default(), Amount::default());
        Attempt { agent: agent.clone(), is_call, used, excess }
    }
}
