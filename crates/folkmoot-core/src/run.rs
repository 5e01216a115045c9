//! The kernel: one state machine for every program.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    call::{Answer, Call, Fault, Outcome, Owner, Usage},
    event::{Ending, Event, Origin, Record, Reservation},
    key::Key,
    known::{Entry, Known},
    limits::{self, Admission, Ledger, Level},
    render,
    scope::{self, Account, Program, Thought, Want},
    spec::Spec,
    team::AgentId,
    time::{Duration, Time},
};

/// How often a program may be told no before it is stopped; one that does not take no for an answer
/// would otherwise never let a step end.
const REFUSALS: u64 = 10_000;

/// A run: the fold of its log.
///
/// ```text
///                 event ──▶ apply ──▶ program, from the top ──▶ wishes
///                             ▲                                   │ compare with what is under way
///   commands ◀── records ◀────┴── decisions ◀─────────────────────┘
/// ```
///
/// [`Run::step`] takes events in and gives records to append; only when those are durable may the
/// [commands](Run::commands) that are read off them be carried out. [`Run::apply`] folds one record,
/// so that a run can be brought back from its log at any point.
///
/// The kernel reconciles: wanted and unknown: ask, as limits allow. Under way and no longer wanted:
/// withdraw. Everything else: leave. Cancellation, races, budgets, clocks and resumption are all
/// this one rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    known: Known,
    ledger: Ledger,
    seq: u64,
    at: Time,
    /// When the clock last struck; expiry is decided by this alone, so the log's order decides.
    ticked: Time,
    /// How active time maps to the wall clock, from when on.
    walls: Vec<(Time, u64)>,
    origin: Option<Origin>,
    deadline: Option<Time>,
    /// How many requests each agent was sent.
    numbers: BTreeMap<AgentId, u64>,
    /// Why nothing more may start.
    stop: Option<Fault>,
    ending: Option<Ending>,
    refused: u64,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepped {
    /// The events and the decisions they led to, to be appended as one.
    pub records: Vec<Record>,
    /// When the run wants to be told the time with [`Event::Ticked`].
    pub wakes_at: Option<Time>,
}

/// What is to be done about a record: read off the log, never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Carry out a call.
    Start(Key),
    /// Stop carrying it out.
    Abort(Key),
}

impl Run {
    /// Brings a run back from its log.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Run {
        let mut run = Run::default();
        records.into_iter().for_each(|record| run.apply(record));
        run
    }

    /// Folds one record; decides nothing, cannot fail.
    pub fn apply(&mut self, record: &Record) {
        self.seq = record.seq;
        self.at = self.at.max(record.at);
        match &record.event {
            Event::Started { spec, wall, origin } => {
                self.walls.push((record.at, *wall));
                self.origin.clone_from(origin);
                self.deadline = spec.limits.time.map(|time| Time::default() + time);
            }
            Event::Inherited { key, call, nth, settled } => {
                self.number(call, *nth);
                let entry = self.entry(call, Some(settled.clone().into()));
                let entry = Entry { nth: *nth, inherited: true, ..entry };
                self.known.insert(key.clone(), entry);
                self.known.amended = self.seq;
            }
            Event::Resumed { wall } => {
                self.walls.push((record.at, *wall));
                self.known.retry_open();
            }
            Event::Answered { key, attempt, settled, usage } => {
                self.bill(key, *usage);
                let current = self.known.get(key.as_str()).map(|entry| entry.attempt);
                if current == Some(*attempt) {
                    self.settle(key, settled.clone().into());
                }
            }
            Event::Amended { key, text } => {
                self.settle(key, Err(Fault::Unwanted));
                if let Some(entry) = self.known.get_mut(key) {
                    entry.outcome = Some(Ok(Answer::text(text.clone()).into()));
                    entry.settled = record.seq;
                }
                self.known.amended = self.seq;
                // What follows from the new answer is not known yet.
                self.ending = None;
            }
            Event::CancelRequested => self.stopped_by(Fault::Cancelled),
            Event::Ticked => {
                self.ticked = record.at;
                if self.deadline.is_some_and(|deadline| deadline <= record.at) {
                    self.stopped_by(Fault::Deadline);
                }
            }
            Event::Asked { key, call, nth, reserved, expires, scopes } => {
                self.number(call, *nth);
                self.ledger.start(call.agent(), scopes, *reserved);
                let entry = Entry {
                    nth: *nth,
                    expires: *expires,
                    reserved: *reserved,
                    scopes: scopes.clone(),
                    ..self.entry(call, None)
                };
                self.known.insert(key.clone(), entry);
            }
            Event::Refused { key, call, fault } => {
                self.refused += 1;
                if fault.stops_run() {
                    self.stopped_by(fault.clone());
                }
                let entry = Entry { refused: true, ..self.entry(call, Some(Err(fault.clone()))) };
                self.known.insert(key.clone(), entry);
            }
            Event::Withdrawn { key, fault, usage } => {
                self.bill(key, *usage);
                self.settle(key, Err(fault.clone()));
                if let Some(entry) = self.known.get_mut(key) {
                    entry.withdrawn = true;
                }
            }
            Event::Ended { ending } => self.ending = Some(ending.clone()),
        }
    }

    fn entry(&self, call: &Call, outcome: Option<Outcome>) -> Entry {
        let settled = if outcome.is_some() { self.seq } else { 0 };
        Entry {
            call: call.clone(),
            outcome,
            refused: false,
            inherited: false,
            withdrawn: false,
            attempt: 1,
            nth: 0,
            asked: self.seq,
            settled,
            asked_at: self.at,
            settled_at: self.at,
            expires: None,
            reserved: None,
            scopes: Vec::new(),
            usage: Usage::default(),
        }
    }

    fn settle(&mut self, key: &Key, outcome: Outcome) {
        if let Some(entry) = self.known.settle(key, outcome, self.seq, self.at) {
            let took = entry.settled_at.since(entry.asked_at);
            self.ledger.settle(entry.call.agent(), &entry.scopes, entry.reserved, took);
        }
    }

    fn bill(&mut self, key: &Key, usage: Usage) {
        if let Some(entry) = self.known.get_mut(key) {
            let earlier = std::mem::replace(&mut entry.usage, usage);
            self.ledger.bill(entry.call.agent(), &entry.scopes, earlier, usage);
        }
    }

    fn number(&mut self, call: &Call, nth: u64) {
        if matches!(call, Call::Agent { .. }) {
            let number = self.numbers.entry(call.agent().clone()).or_default();
            *number = nth.max(*number);
        }
    }

    fn stopped_by(&mut self, fault: Fault) {
        self.stop.get_or_insert(fault);
    }

    /// Takes events in; gives the records to append: the events and what was decided because of them.
    ///
    /// `at` is the time of the events; a time before the last record's is taken to be that one's.
    pub fn step(
        &mut self,
        program: &dyn Program,
        spec: &Spec,
        events: impl IntoIterator<Item = Event>,
        at: Time,
    ) -> Stepped {
        let mut records = Vec::new();
        for event in events {
            self.record(event, at, &mut records);
        }
        let mut queue_ends = None;
        while self.ending.is_none() {
            let before = records.len();
            queue_ends = self.decide(program, spec, &mut records);
            let teaches = |record: &Record| !matches!(record.event, Event::Asked { .. });
            if !records[before..].iter().any(teaches) {
                break;
            }
        }
        Stepped { records, wakes_at: self.wakes_at(queue_ends) }
    }

    fn record(&mut self, event: Event, at: Time, records: &mut Vec<Record>) {
        let record = Record { seq: self.seq + 1, at: self.at.max(at), event };
        self.apply(&record);
        records.push(record);
    }

    fn record_all(&mut self, events: Vec<Event>, records: &mut Vec<Record>) {
        for event in events {
            self.record(event, self.at, records);
        }
    }

    /// Reconciles what the program wants with what is under way. Gives the time at which the first
    /// phase ends that has calls waiting for a free slot.
    fn decide(
        &mut self,
        program: &dyn Program,
        spec: &Spec,
        records: &mut Vec<Record>,
    ) -> Option<Time> {
        let due = self.due(spec);
        if !due.is_empty() {
            self.record_all(due, records);
            return None;
        }
        let Thought { ending, wants, .. } = scope::think(program, spec, &self.known, false);
        let unwanted = self.unwanted(spec, &wants);
        if !unwanted.is_empty() {
            self.record_all(unwanted, records);
            return None;
        }
        if let Some(ending) = ending {
            let swallowed =
                wants.first().map(|want| Ending::failed("swallowed_wait", vec![want.key.clone()]));
            self.record(Event::Ended { ending: swallowed.unwrap_or(ending) }, self.at, records);
            return None;
        }
        self.admit(spec, wants, records)
    }

    /// Withdraws what may not go on: the run was stopped, a clock ran out, or a crash left the
    /// outcome of something unknown that must not be repeated.
    fn due(&self, spec: &Spec) -> Vec<Event> {
        let fault_of = |entry: &Entry| match &self.stop {
            // What a budget stopped is paid for and may finish.
            Some(fault @ (Fault::Cancelled | Fault::Deadline)) => Some(fault.clone()),
            _ if entry.expires.is_some_and(|it| it <= self.ticked) => Some(Fault::TimedOut),
            _ if entry.attempt > 1 && !entry.call.is_repeatable() => Some(Fault::Lost),
            _ => None,
        };
        let due = self.known.open().filter_map(|(key, entry)| Some((key, entry, fault_of(entry)?)));
        due.map(|(key, entry, fault)| self.withdrawal(spec, key, entry, fault)).collect()
    }

    fn unwanted(&self, spec: &Spec, wants: &[Want]) -> Vec<Event> {
        let fits = |want: &&Want| self.known.fitting(&want.key, &want.call).is_some();
        let wanted: BTreeSet<&Key> = wants.iter().filter(fits).map(|want| &want.key).collect();
        let open = self.known.open().filter(|(key, _)| !wanted.contains(key));
        open.map(|(key, entry)| self.withdrawal(spec, key, entry, Fault::Unwanted)).collect()
    }

    fn withdrawal(&self, spec: &Spec, key: &Key, entry: &Entry, fault: Fault) -> Event {
        let usage = render::estimate(spec, &self.known, &entry.call);
        Event::Withdrawn { key: key.clone(), fault, usage }
    }

    /// Starts or refuses what is wanted and not under way, in the program's order.
    fn admit(&mut self, spec: &Spec, wants: Vec<Want>, records: &mut Vec<Record>) -> Option<Time> {
        let mut queue_ends: Option<Time> = None;
        for want in wants {
            if self.known.fitting(&want.key, &want.call).is_some() {
                continue;
            }
            let event = match self.judge(spec, &want) {
                Admission::Later => {
                    queue_ends = [queue_ends, want.until].into_iter().flatten().min();
                    continue;
                }
                Admission::Refused(fault) => {
                    Event::Refused { key: want.key, call: want.call, fault }
                }
                Admission::Granted { reserved, time_left } => self.asked(want, reserved, time_left),
                Admission::Broken(reason) => {
                    Event::Ended { ending: Ending::failed(reason, vec![want.key]) }
                }
            };
            self.record(event, self.at, records);
            if self.ending.is_some() {
                break;
            }
        }
        queue_ends
    }

    /// What is said to a call that is wanted and not under way.
    fn judge(&self, spec: &Spec, want: &Want) -> Admission {
        if self.known.get(want.key.as_str()).is_some() && !self.may_differ() {
            return Admission::Broken("diverged");
        }
        if self.refused > REFUSALS {
            return Admission::Broken("refused_too_often");
        }
        if let Some(fault) = self.stop.as_ref().or(want.forbidden.as_ref()) {
            return Admission::Refused(fault.clone());
        }
        if want.until.is_some_and(|until| until <= self.ticked) {
            return Admission::Refused(Fault::TimedOut);
        }
        let agent = spec.team.agent(want.call.agent());
        let scopes = want.scopes.iter().map(|(scope, limits)| Level {
            owner: Owner::Scope,
            limits,
            spent: self.ledger.scopes.get(scope).copied().unwrap_or_default(),
        });
        let run = Level { owner: Owner::Run, limits: &spec.limits, spent: self.ledger.run };
        let spent = self.ledger.agents.get(&agent.id).copied().unwrap_or_default();
        let own = Level { owner: Owner::Agent, limits: &agent.limits, spent };
        let levels: Vec<Level> = [run].into_iter().chain(scopes).chain([own]).collect();
        match limits::admit(&levels, || render::worst_case(spec, &self.known, &want.call)) {
            Admission::Refused(Fault::OverBudget { limit, of: Owner::Run }) if want.optional => {
                Admission::Refused(Fault::OverBudget { limit, of: Owner::Scope })
            }
            admission => admission,
        }
    }

    fn asked(
        &self,
        want: Want,
        reserved: Option<Reservation>,
        time_left: Option<Duration>,
    ) -> Event {
        let nth = self.next_number(&want.call);
        let within = [want.within, time_left].into_iter().flatten().map(|it| self.at + it);
        let expires = within.chain(want.until).min();
        let scopes = want.scopes.into_iter().map(|(key, _)| key).collect();
        let Want { key, call, .. } = want;
        Event::Asked { key, call, nth, reserved, expires, scopes }
    }

    /// The number that a call would have among its agent's.
    pub(crate) fn next_number(&self, call: &Call) -> u64 {
        1 + self.numbers.get(call.agent()).copied().unwrap_or_default()
    }

    /// Whether a program may ask something else under a known key: only where an answer changed.
    fn may_differ(&self) -> bool {
        self.known.amended > 0
    }

    /// What is to be done about `records`, once they are durable.
    pub fn commands(&self, records: &[Record]) -> Vec<Command> {
        let mut commands = Vec::new();
        for record in records {
            match &record.event {
                Event::Asked { key, .. } => commands.push(Command::Start(key.clone())),
                Event::Withdrawn { key, .. } => {
                    commands.retain(|it| *it != Command::Start(key.clone()));
                    commands.push(Command::Abort(key.clone()));
                }
                Event::Resumed { .. } => {
                    let open = self.known.open().filter(|(_, entry)| entry.asked < record.seq);
                    commands.extend(open.map(|(key, _)| Command::Start(key.clone())));
                }
                Event::Started { .. }
                | Event::Inherited { .. }
                | Event::Answered { .. }
                | Event::Amended { .. }
                | Event::CancelRequested
                | Event::Ticked
                | Event::Refused { .. }
                | Event::Ended { .. } => {}
            }
        }
        commands
    }

    fn wakes_at(&self, queue_ends: Option<Time>) -> Option<Time> {
        if self.ending.is_some() {
            return None;
        }
        let expiries = self.known.open().filter_map(|(_, entry)| entry.expires);
        let ends = expiries.chain(queue_ends).chain(self.deadline);
        ends.filter(|at| *at > self.ticked).min()
    }

    /// What the run has to show so far.
    pub fn account(&self, program: &dyn Program, spec: &Spec) -> Account {
        scope::think(program, spec, &self.known, true).account
    }

    /// The calls so far.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// What is spent so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The number of the last record.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The time of the last record.
    pub fn at(&self) -> Time {
        self.at
    }

    /// The wall clock at `at`, in microseconds since 1970.
    pub fn wall_at(&self, at: Time) -> u64 {
        let base = self.walls.iter().rev().find(|(since, _)| *since <= at).or(self.walls.first());
        base.map_or(0, |(since, wall)| (wall + at.0).saturating_sub(since.0))
    }

    /// How the run ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Why nothing more may start, if so.
    pub fn stop(&self) -> Option<&Fault> {
        self.stop.as_ref()
    }

    /// Where the run was forked from.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }
}
