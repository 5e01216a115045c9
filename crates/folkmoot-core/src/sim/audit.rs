//! The rules that every log keeps, judged from its records alone and without the kernel's books.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::Sim;
use crate::{
    bounds::Bounds,
    call::{Call, Fault, Usage},
    event::{Event, Record, Reservation},
    key::Key,
    limits::{CONCURRENCY, Limits},
    money::Money,
    replay::replay,
    spec::Spec,
    team::AgentId,
    time::Time,
};

/// A rule that every run keeps was broken: the fault is Folkmoot's, not the team's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Broken(String);

/// Judges a simulated run that nothing more can happen to: it has ended with nothing open, its
/// records are numbered without gaps, no limit was passed, no more calls were made than the checks
/// say, and its replay comes to the same state by the same decisions.
///
/// `bounds` are those of its spec: they cost more than a small run, so many runs share them.
pub fn audit(sim: &Sim, bounds: &Bounds) -> Result<(), Broken> {
    let Sim { spec, run, log, .. } = sim;
    let audit = Audit::default().go_on(spec, log)?;
    holds(audit.has_ended() || audit.is_suspended(), || "it does not end".to_owned())?;
    audit.check_bounds(bounds)?;
    let replayed = replay(log).map_err(|divergence| Broken(format!("its replay: {divergence}")))?;
    holds(replayed == *run, || "its replay comes to another state".to_owned())
}

fn holds(rule: bool, otherwise: impl FnOnce() -> String) -> Result<(), Broken> {
    if rule { Ok(()) } else { Err(Broken(otherwise())) }
}

/// What the records so far amount to.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    seq: u64,
    at: Time,
    open: BTreeMap<Key, Open>,
    /// Every call that was decided about, with the attempts that were begun.
    calls: BTreeMap<Key, Vec<Attempt>>,
    /// What all of them come to.
    run: Sum,
    /// And those of each agent; of one that a team answers for, those of its team.
    agents: BTreeMap<AgentId, Sum>,
    /// The turns of teams, and what each of them comes to.
    turns: BTreeMap<Key, (AgentId, Sum)>,
    /// Those that were not started when they were asked anew.
    refused: BTreeSet<Key>,
    numbers: BTreeMap<AgentId, u64>,
    deadline: Option<Time>,
    /// Whether an answer was changed, so that calls may be asked anew.
    is_amended: bool,
    allowed: Allowed,
    has_ended: bool,
}

/// What calls may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Allowed {
    Nothing,
    GoOn,
    #[default]
    Start,
}

#[derive(Clone, Debug)]
struct Open {
    /// The agent that pays for it; a question to a person is charged to nobody, and of a turn of a team
    /// only the calls below it are charged.
    agent: Option<AgentId>,
    attempt: u32,
    reserved: Option<Reservation>,
}

#[derive(Clone, Debug)]
struct Attempt {
    agent: AgentId,
    /// The turns of teams that it is part of.
    turns: Vec<Key>,
    used: Amount,
}

impl Attempt {
    /// Another one, that has used nothing so far.
    fn begin(&self) -> Attempt {
        Attempt { used: Amount::default(), ..self.clone() }
    }
}

/// What calls come to.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Those that the kernel started, without what it began again after a crash.
    calls: u64,
    open: u64,
    used: Amount,
    /// What was used beyond what was set aside or known.
    excess: Amount,
}

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    tokens: u64,
    cost: Money,
}

impl Amount {
    fn of(usage: Usage) -> Amount {
        Amount { tokens: usage.tokens.total(), cost: usage.cost.unwrap_or_default() }
    }

    fn aside(reserved: Reservation) -> Amount {
        Amount { tokens: reserved.tokens.total(), cost: reserved.cost.unwrap_or_default() }
    }

    fn beyond(self, other: Amount) -> Amount {
        Amount {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: Money(self.cost.0.saturating_sub(other.cost.0)),
        }
    }

    fn and(self, other: Amount) -> Amount {
        Amount {
            tokens: self.tokens.saturating_add(other.tokens),
            cost: Money(self.cost.0.saturating_add(other.cost.0)),
        }
    }
}

impl Audit {
    /// Judges what was recorded next.
    pub fn go_on(mut self, spec: &Spec, records: &[Record]) -> Result<Audit, Broken> {
        for record in records {
            let touched = self.take(record)?;
            self.check_limits(spec, touched.as_ref())?;
            check_grants(spec, record)?;
        }
        Ok(self)
    }

    /// Whether the run is over.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether only a person can let it go on.
    fn is_suspended(&self) -> bool {
        !self.open.is_empty() && self.open.values().all(|open| open.agent.is_none())
    }

    /// Takes in a record; gives the agent whose books it changed.
    fn take(&mut self, record: &Record) -> Result<Option<AgentId>, Broken> {
        let Record { seq, at, event } = record;
        holds(*seq == self.seq + 1, || format!("record {seq} follows record {}", self.seq))?;
        holds(*at >= self.at, || format!("record {seq} goes back in time"))?;
        (self.seq, self.at) = (*seq, *at);
        if event.is_decision() {
            holds(!self.has_ended, || format!("record {seq} decides after the end"))?;
        } else if !matches!(event, Event::Resumed { .. } | Event::CancelRequested) {
            let goes_on = self.allowed > Allowed::Nothing || self.has_ended;
            holds(goes_on, || format!("record {seq}: a stopped run does not end at once"))?;
        }
        Ok(match event {
            Event::Started { spec, origin, .. } => {
                self.deadline = spec.limits.time.map(|time| Time::default() + time);
                let sent = origin.as_ref().and_then(|origin| origin.sent.clone());
                self.numbers = sent.unwrap_or_default();
                None
            }
            Event::Inherited { key, call, nth, .. } => {
                if let Call::Agent { agent, .. } = call {
                    let number = self.numbers.entry(agent.clone()).or_default();
                    *number = (*nth).max(*number);
                } else if call.is_of_team() {
                    let turn = (call.agent().clone(), Sum::default());
                    self.turns.insert(key.clone(), turn);
                }
                self.calls.entry(key.clone()).or_default();
                None
            }
            Event::Resumed { .. } => self.resume(),
            Event::Answered { key, attempt, usage, .. } => self.answer(key, *attempt, *usage),
            Event::Amended { key, .. } => {
                self.close(key);
                // A turn of a team around it goes on.
                let begun = self.turns.keys().filter(|it| !self.refused.contains(*it));
                for turn in begun.filter(|it| key.is_under(&format!("{it}/"))) {
                    let again = Open { agent: None, attempt: 1, reserved: None };
                    self.open.entry(turn.clone()).or_insert(again);
                }
                (self.is_amended, self.has_ended) = (true, false);
                None
            }
            Event::CancelRequested => self.halt(),
            Event::Ticked if self.deadline.is_some_and(|it| it <= *at) => self.halt(),
            Event::Mailed { key, reserved, .. } => {
                let open = self.open.get_mut(key).filter(|open| open.agent.is_some());
                if let Some((open, reserved)) = open.zip(*reserved) {
                    open.reserved = Some(reserved);
                }
                None
            }
            Event::Prompted { .. } | Event::Ticked | Event::Woken { .. } | Event::Saved { .. } => {
                None
            }
            Event::Asked { key, call, nth, reserved, .. } => {
                self.ask(key, call, *nth, *reserved)?
            }
            Event::Refused { key, fault, .. } => self.refuse(key, fault)?,
            Event::Withdrawn { key, usage, .. } => self.withdraw(key, *usage)?,
            Event::Concluded { key, .. } => {
                let below = format!("{key}/");
                let is_done = !self.open.keys().any(|open| open.is_under(&below));
                holds(is_done, || format!("{key} is concluded while calls of it are open"))?;
                let is_open = self.close(key).is_some();
                holds(is_open, || format!("{key} is concluded and was not open"))?;
                None
            }
            Event::Ended { .. } => {
                holds(self.open.is_empty(), || "it ends with open calls".to_owned())?;
                self.has_ended = true;
                None
            }
        })
    }

    fn halt(&mut self) -> Option<AgentId> {
        if !self.has_ended {
            self.allowed = Allowed::Nothing;
        }
        None
    }

    /// Begins another attempt of all that is open.
    fn resume(&mut self) -> Option<AgentId> {
        for (key, open) in &mut self.open {
            let Some(agent) = open.agent.clone() else { continue };
            open.attempt += 1;
            let attempts = self.calls.entry(key.clone()).or_default();
            let again = attempts.last().map(Attempt::begin);
            let first = Attempt { agent, turns: Vec::new(), used: Amount::default() };
            attempts.push(again.unwrap_or(first));
        }
        None
    }

    fn ask(
        &mut self,
        key: &Key,
        call: &Call,
        nth: u64,
        reserved: Option<Reservation>,
    ) -> Result<Option<AgentId>, Broken> {
        let agent = call.agent().clone();
        holds(self.allowed == Allowed::Start, || format!("{key} is started after the stop"))?;
        holds(!self.open.contains_key(key), || format!("{key} is under way already"))?;
        self.decide(key)?;
        if !call.is_performed() {
            if call.is_of_team() {
                self.refused.remove(key);
                self.turns.entry(key.clone()).or_insert((agent, Sum::default()));
            }
            self.open.insert(key.clone(), Open { agent: None, attempt: 1, reserved });
            return Ok(None);
        }
        let number = self.numbers.entry(agent.clone()).or_default();
        holds(nth == *number + 1, || format!("{key} has number {nth}, not {}", *number + 1))?;
        if let Call::Agent { .. } = call {
            *number = nth;
        }
        let attempts = self.calls.entry(key.clone()).or_default();
        let around = self.turns.keys().filter(|turn| key.is_under(&format!("{turn}/")));
        let asked = Attempt {
            agent: agent.clone(),
            turns: around.cloned().collect(),
            used: Amount::default(),
        };
        attempts.push(asked.clone());
        let attempt = attempts.len() as u32;
        self.open.insert(key.clone(), Open { agent: Some(agent.clone()), attempt, reserved });
        self.book(&asked, |sum| {
            sum.calls += 1;
            sum.open += 1;
        });
        Ok(Some(agent))
    }

    fn refuse(&mut self, key: &Key, fault: &Fault) -> Result<Option<AgentId>, Broken> {
        self.decide(key)?;
        self.refused.insert(key.clone());
        if matches!(fault, Fault::Cancelled | Fault::Deadline) {
            self.allowed = Allowed::Nothing;
        } else if fault.stops_run() {
            self.allowed = self.allowed.min(Allowed::GoOn);
        }
        Ok(None)
    }

    fn decide(&mut self, key: &Key) -> Result<(), Broken> {
        let is_new = !self.calls.contains_key(key);
        holds(is_new || self.is_amended, || format!("{key} is decided twice"))?;
        self.calls.entry(key.clone()).or_default();
        Ok(())
    }

    fn close(&mut self, key: &Key) -> Option<Open> {
        let open = self.open.remove(key)?;
        let asked = self.calls.get(key).and_then(|it| it.last()).cloned();
        if let Some(asked) = asked.filter(|_| open.agent.is_some()) {
            self.book(&asked, |sum| sum.open -= 1);
        }
        Some(open)
    }

    fn answer(&mut self, key: &Key, attempt: u32, usage: Usage) -> Option<AgentId> {
        if let Some(Open { agent: None, attempt: asked, .. }) = self.open.get(key) {
            if *asked == attempt {
                self.close(key);
            }
            return None;
        }
        let begun = self.calls.get(key)?.get((attempt as usize).checked_sub(1)?)?.clone();
        let is_current = self.open.get(key).is_some_and(|open| open.attempt == attempt);
        let open = if is_current { self.close(key) } else { None };
        let aside = open.and_then(|open| open.reserved).map_or(begun.used, Amount::aside);
        let excess = Amount::of(usage).beyond(aside);
        self.book(&begun, |sum| sum.excess = sum.excess.and(excess));
        self.bill(key, attempt, usage);
        Some(begun.agent)
    }

    fn withdraw(&mut self, key: &Key, usage: Usage) -> Result<Option<AgentId>, Broken> {
        let open = self.close(key).ok_or_else(|| Broken(format!("{key} is withdrawn unasked")))?;
        if let Some(reserved) = open.reserved {
            let excess = Amount::of(usage).beyond(Amount::aside(reserved));
            let why = || format!("{key} is taken to have used more than its worst case");
            holds(excess == Amount::default(), why)?;
        }
        self.bill(key, open.attempt, usage);
        Ok(open.agent)
    }

    /// Puts what an attempt used in place of what had been booked for it.
    fn bill(&mut self, key: &Key, attempt: u32, usage: Usage) {
        let attempts = self.calls.get_mut(key);
        let Some(begun) = attempts.and_then(|it| it.get_mut((attempt as usize).checked_sub(1)?))
        else {
            return;
        };
        let earlier = std::mem::replace(&mut begun.used, Amount::of(usage));
        let begun = begun.clone();
        self.book(&begun, |sum| sum.used = sum.used.beyond(earlier).and(Amount::of(usage)));
    }

    fn book(&mut self, asked: &Attempt, book: impl Fn(&mut Sum)) {
        book(&mut self.run);
        for rank in asked.agent.ranks() {
            book(self.agents.entry(rank).or_default());
        }
        for turn in &asked.turns {
            if let Some((_, sum)) = self.turns.get_mut(turn) {
                book(sum);
            }
        }
    }

    fn check_limits(&self, spec: &Spec, touched: Option<&AgentId>) -> Result<(), Broken> {
        let Some(agent) = touched else { return Ok(()) };
        let Sum { open, .. } = self.run;
        holds(open <= CONCURRENCY, || format!("{open} calls are under way at once"))?;
        self.run.check("the run", &spec.limits)?;
        for rank in agent.ranks() {
            let own = self.agents.get(&rank).copied().unwrap_or_default();
            own.check(rank.as_str(), &spec.team.agent(&rank).limits)?;
        }
        for (turn, (member, sum)) in &self.turns {
            let nested = spec.team.agent(member).team();
            nested.map_or(Ok(()), |nested| sum.check(turn.as_str(), &nested.spec.limits))?;
        }
        Ok(())
    }

    /// What was amended may be asked once more, which no bound counts.
    fn check_bounds(&self, bounds: &Bounds) -> Result<(), Broken> {
        let (calls, most) = (self.run.calls, bounds.total.started.max.unwrap_or(u64::MAX));
        let is_kept = calls <= most || self.is_amended;
        holds(is_kept, || format!("it made {calls} calls where {most} is the most"))
    }
}

/// A tool runs only for who is granted it, and within teams only if every member around is.
fn check_grants(spec: &Spec, record: &Record) -> Result<(), Broken> {
    let Event::Asked { key, call: Call::Tool { agent, request, .. }, .. } = &record.event else {
        return Ok(());
    };
    let lacks = |rank: &AgentId| !spec.team.agent(rank).is_granted(&request.name);
    match agent.ranks().find(lacks) {
        None => Ok(()),
        Some(rank) => Err(Broken(format!("{key}: {rank} is not granted {}", request.name))),
    }
}

impl Sum {
    fn check(&self, of: &str, limits: &Limits) -> Result<(), Broken> {
        let Sum { calls, open, used, excess } = *self;
        if let Some(most) = limits.calls {
            holds(calls <= most, || format!("{of}: {calls} calls, {most} allowed"))?;
        }
        if let Some(most) = limits.concurrency {
            holds(open <= most, || format!("{of}: {open} calls at once, {most} allowed"))?;
        }
        let allowed = Amount {
            tokens: limits.tokens.unwrap_or(u64::MAX),
            cost: limits.cost.unwrap_or(Money(u64::MAX)),
        };
        let most = allowed.and(excess);
        let Amount { tokens, cost } = used;
        holds(tokens <= most.tokens, || {
            format!("{of}: {tokens} tokens used, {} allowed", most.tokens)
        })?;
        holds(cost <= most.cost, || format!("{of}: {cost} spent, {} allowed", most.cost))
    }
}
