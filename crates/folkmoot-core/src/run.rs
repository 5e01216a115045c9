//! The kernel: one state machine for every program.

mod fold;
mod mail;

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    call::{Call, Fault, Limit, Owner, Usage},
    event::{Ending, Event, Origin, Record, Reservation, Settled},
    key::Key,
    known::{Entry, Known},
    limits::{self, Admission, Ledger, Level},
    render,
    scope::{self, Account, Program, Thought, Want},
    spec::Spec,
    team::AgentId,
    time::Time,
};

/// How often a program is run again in one step; one that does not take no for an answer would
/// otherwise never let it end.
const PASSES: u32 = 1000;

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
    /// The first call before which the files of the workspace were not saved, and why not.
    unsaved: Option<(Key, Arc<str>)>,
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
        let next = match self.ending {
            Some(_) => None,
            None => self.reconcile(program, spec, &mut records),
        };
        Stepped { records, wakes_at: self.wakes_at(next) }
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

    /// Decides until nothing more follows from what was decided. Gives the time at which something of
    /// what is wanted will have to end.
    fn reconcile(
        &mut self,
        program: &dyn Program,
        spec: &Spec,
        records: &mut Vec<Record>,
    ) -> Option<Time> {
        // A team may be done with its turn as soon as it is asked.
        let teaches = |record: &Record| match &record.event {
            Event::Asked { call, .. } => call.is_of_team(),
            _ => true,
        };
        for _ in 0..PASSES {
            let before = records.len();
            let next = self.decide(program, spec, records);
            if self.ending.is_some() || !records[before..].iter().any(teaches) {
                return next;
            }
        }
        self.end(spec, Ending::failed("refused_too_often", Vec::new()), records);
        None
    }

    /// One pass: compares what the program wants with what is under way.
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
        if let Some(ending) = ending {
            let swallowed =
                wants.first().map(|want| Ending::failed("swallowed_wait", vec![want.key.clone()]));
            self.end(spec, swallowed.unwrap_or(ending), records);
            return None;
        }
        if wants.is_empty() {
            self.end(spec, Ending::failed("waits_for_nothing", Vec::new()), records);
            return None;
        }
        let unwanted = self.unwanted(spec, &wants);
        if !unwanted.is_empty() {
            self.record_all(unwanted, records);
            return None;
        }
        let concluded = concluded(&wants);
        if !concluded.is_empty() {
            self.record_all(concluded, records);
            return None;
        }
        self.admit(spec, &wants, records);
        self.next_end(spec, &wants)
    }

    /// Withdraws what may not go on: the run was stopped, a clock ran out, or a crash left the
    /// outcome of something unknown that must not be repeated.
    fn due(&self, spec: &Spec) -> Vec<Event> {
        let halted = self.stop.as_ref().filter(|_| self.is_halted());
        self.withdraw(spec, |_, entry| {
            if let Some(fault) = halted {
                Some(fault.clone())
            } else if entry.expires.is_some_and(|it| it <= self.ticked) {
                Some(Fault::TimedOut)
            } else if entry.is_interrupted() && !entry.call.is_repeatable() {
                Some(Fault::Lost)
            } else {
                None
            }
        })
    }

    /// Withdraws what the program does not want as it stands, and what has used up the time of its
    /// agent or of its part of the run.
    fn unwanted(&self, spec: &Spec, wants: &[Want]) -> Vec<Event> {
        let wanted: BTreeMap<u64, &Want> =
            wants.iter().filter_map(|want| Some((want.asked?, want))).collect();
        let meters = self.meters(spec);
        self.withdraw(spec, |_, entry| {
            let Some(want) = wanted.get(&entry.asked) else { return Some(Fault::Unwanted) };
            if !want.call.is_performed() {
                return None;
            }
            let (at, of) = self.runs_out(&meters, want)?;
            (at <= self.ticked).then_some(Fault::OverBudget { limit: Limit::Time, of })
        })
    }

    fn withdraw(&self, spec: &Spec, why: impl Fn(&Key, &Entry) -> Option<Fault>) -> Vec<Event> {
        let due = self.known.open().filter_map(|(key, entry)| {
            let usage = || render::estimate(spec, &self.known, entry);
            Some(Event::Withdrawn { key: key.clone(), fault: why(key, entry)?, usage: usage() })
        });
        due.collect()
    }

    /// Ends the run, and everything under way with it.
    fn end(&mut self, spec: &Spec, ending: Ending, records: &mut Vec<Record>) {
        self.record_all(self.withdraw(spec, |_, _| Some(Fault::Unwanted)), records);
        self.record(Event::Ended { ending }, self.at, records);
    }

    /// Starts or refuses what is wanted and not under way, in the program's order.
    fn admit(&mut self, spec: &Spec, wants: &[Want], records: &mut Vec<Record>) {
        let mut is_queued = false;
        let mut refused: Option<String> = None;
        for want in wants.iter().filter(|want| want.asked.is_none()) {
            let Want { key, call, .. } = want.clone();
            // The calls of a team whose turn does not begin are not wanted.
            if refused.as_ref().is_some_and(|turn| key.is_under(turn)) {
                continue;
            }
            let event = match self.judge(spec, want) {
                Admission::Later(of) => {
                    is_queued |= of == Owner::Run;
                    continue;
                }
                // What waits for the limits of the run is not overtaken.
                Admission::Granted(_)
                | Admission::Refused(Fault::OverBudget { of: Owner::Run, .. })
                    if is_queued =>
                {
                    continue;
                }
                Admission::Granted(reserved) => self.asked(want, reserved),
                Admission::Refused(fault) => {
                    refused = call.is_of_team().then(|| format!("{key}/"));
                    Event::Refused { key, call, fault }
                }
                Admission::Diverged => {
                    return self.end(spec, Ending::failed("diverged", vec![key]), records);
                }
            };
            self.record(event, self.at, records);
        }
    }

    /// When the first phase ends that has queued calls, or time runs out for what is under way.
    fn next_end(&self, spec: &Spec, wants: &[Want]) -> Option<Time> {
        let meters = self.meters(spec);
        let timed = wants.iter().filter(|want| want.call.is_performed());
        let end = |want: &Want| {
            // What was not under way before may have been asked or refused just now.
            let asked_now = || self.known.fitting(&want.key, &want.call).map(Entry::is_open);
            match want.asked.map_or_else(asked_now, |_| Some(true)) {
                Some(true) => Some(self.runs_out(&meters, want)?.0),
                Some(false) => None,
                None => want.until,
            }
        };
        timed.filter_map(end).min()
    }

    /// When the time of each agent runs out, of those with a limit on it and calls under way.
    fn meters(&self, spec: &Spec) -> BTreeMap<&AgentId, Time> {
        let agents = self.ledger.agents.iter().filter_map(|(id, spent)| {
            Some((id, spent.runs_out(spec.team.agent(id).limits.time?)?))
        });
        agents.collect()
    }

    /// When the time of its agent, or of its part of the run, runs out for a call under way.
    fn runs_out(&self, meters: &BTreeMap<&AgentId, Time>, want: &Want) -> Option<(Time, Owner)> {
        let ranks = want.call.agent().ranks();
        let own = ranks.filter_map(|id| Some((*meters.get(&id)?, Owner::Agent)));
        let scopes = want.scopes.iter().filter_map(|(scope, limits)| {
            let at = self.ledger.scopes.get(scope)?.runs_out(limits.time?)?;
            Some((at, Owner::Scope))
        });
        scopes.chain(own).min()
    }

    /// What is said to a call that is wanted and not under way.
    fn judge(&self, spec: &Spec, want: &Want) -> Admission {
        // Only what is older than a change of an answer may be asked otherwise than it was.
        let differs = |entry: &Entry| entry.is_open() || entry.asked > self.known.amended;
        if self.known.get(want.key.as_str()).is_some_and(differs) {
            return Admission::Diverged;
        }
        if let Some(fault) = self.stop.as_ref().or(want.forbidden.as_ref()) {
            return Admission::Refused(fault.clone());
        }
        if self.deadline.is_some_and(|deadline| deadline <= self.at) {
            return Admission::Refused(Fault::Deadline);
        }
        if want.call.is_for_person() {
            return Admission::Granted(None);
        }
        if want.until.is_some_and(|until| until <= self.at) {
            return Admission::Refused(Fault::TimedOut);
        }
        if want.call.is_of_team() {
            return Admission::Granted(None);
        }
        let levels = self.levels(spec, want);
        match limits::admit(&levels, || render::worst_case(spec, &self.known, &want.call)) {
            Admission::Refused(Fault::OverBudget { limit, of: Owner::Run }) if want.optional => {
                Admission::Refused(Fault::OverBudget { limit, of: Owner::Scope })
            }
            admission => admission,
        }
    }

    /// The levels of the tree that a wish counts against.
    fn levels<'a>(&self, spec: &'a Spec, want: &'a Want) -> Vec<Level<'a>> {
        let scopes = want.scopes.iter().map(|(scope, limits)| Level {
            owner: Owner::Scope,
            limits,
            spent: self.ledger.scopes.get(scope).copied().unwrap_or_default(),
        });
        let run = Level { owner: Owner::Run, limits: &spec.limits, spent: self.ledger.run };
        let own = want.call.agent().ranks().map(|id| Level {
            owner: Owner::Agent,
            limits: &spec.team.agent(&id).limits,
            spent: self.ledger.agents.get(&id).copied().unwrap_or_default(),
        });
        [run].into_iter().chain(scopes).chain(own).collect()
    }

    fn asked(&self, want: &Want, reserved: Option<Reservation>) -> Event {
        let nth = self.next_number(&want.call);
        let within = want.within.map(|within| self.at + within);
        let expires = within.into_iter().chain(want.until).min();
        let expires = expires.filter(|_| !want.call.is_for_person());
        let scopes = want.scopes.iter().map(|(key, _)| key.clone()).collect();
        let Want { key, call, .. } = want.clone();
        Event::Asked { key, call, nth, reserved, expires, scopes }
    }

    /// Takes events in while nobody drives the run; gives the records to append.
    ///
    /// They count as having come at the time of the last record, for active time stands still. What
    /// follows from them is decided when the run goes on, which must be at that same time: whoever
    /// replays the log takes what came at one time as one step.
    pub fn note(&mut self, events: impl IntoIterator<Item = Event>) -> Vec<Record> {
        let mut records = Vec::new();
        for event in events {
            self.record(event, self.at, &mut records);
        }
        records
    }

    /// The events by which a person puts `text` in place of the answer to `key`: if it is under way,
    /// nobody will say any longer what it used.
    pub fn amendment(&self, spec: &Spec, key: &Key, text: Arc<str>) -> Vec<Event> {
        let entry = self.known.get(key.as_str()).filter(|entry| entry.is_open());
        let bill = entry.map(|entry| Event::Answered {
            key: key.clone(),
            attempt: entry.attempt,
            settled: Settled::Fault(Fault::Unwanted),
            usage: self.estimate(spec, key),
        });
        [Event::Amended { key: key.clone(), text }].into_iter().chain(bill).collect()
    }

    /// The bills for what an interruption cut off, to be fed behind [`Event::Resumed`]: nobody will say
    /// what those attempts used.
    pub fn cut_off(&self, spec: &Spec) -> Vec<Event> {
        let open = self.known.open();
        let open = open.map(|(key, entry)| (key.clone(), entry.attempt, self.estimate(spec, key)));
        let lost = || Settled::Fault(Fault::Lost);
        open.filter(|(.., usage)| !usage.is_nothing())
            .map(|(key, attempt, usage)| Event::Answered { key, attempt, settled: lost(), usage })
            .collect()
    }

    /// What a call is taken to have used if nobody says.
    pub fn estimate(&self, spec: &Spec, key: &Key) -> Usage {
        let entry = self.known.get(key.as_str());
        entry.map(|entry| render::estimate(spec, &self.known, entry)).unwrap_or_default()
    }

    /// The number that a call would have among its agent's.
    pub(crate) fn next_number(&self, call: &Call) -> u64 {
        self.numbers.get(call.agent()).copied().unwrap_or_default().saturating_add(1)
    }

    /// What is to be done about `records`, once they are durable.
    pub fn commands(&self, records: &[Record]) -> Vec<Command> {
        let mut commands = Vec::new();
        for record in records {
            match &record.event {
                // What a person is asked nobody carries out: an answer comes or does not.
                // A turn of a team is what its calls come to.
                Event::Asked { key, call, .. } if call.is_performed() => {
                    commands.push(Command::Start(key.clone()));
                }
                Event::Withdrawn { key, .. } => {
                    commands.retain(|it| *it != Command::Start(key.clone()));
                    commands.push(Command::Abort(key.clone()));
                }
                Event::Resumed { .. } => {
                    let open = self
                        .known
                        .open()
                        .filter(|(_, entry)| entry.asked < record.seq && entry.call.is_performed());
                    commands.extend(open.map(|(key, _)| Command::Start(key.clone())));
                }
                Event::Amended { key, .. } => commands.push(Command::Abort(key.clone())),
                Event::Started { .. }
                | Event::Inherited { .. }
                | Event::Prompted { .. }
                | Event::Answered { .. }
                | Event::Asked { .. }
                | Event::CancelRequested
                | Event::Ticked
                | Event::Woken { .. }
                | Event::Saved { .. }
                | Event::Mailed { .. }
                | Event::Refused { .. }
                | Event::Concluded { .. }
                | Event::Ended { .. } => {}
            }
        }
        commands
    }

    fn wakes_at(&self, next: Option<Time>) -> Option<Time> {
        if self.ending.is_some() {
            return None;
        }
        let expiries = self.known.open().filter_map(|(_, entry)| entry.expires);
        let ends = expiries.chain(next).chain(self.deadline);
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
        base.map_or(0, |(since, wall)| wall.saturating_add(at.0).saturating_sub(since.0))
    }

    /// How the run ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Whether nothing can happen until a person answers: the run is suspended (rules.md 8.4).
    pub fn waits_for_person(&self) -> bool {
        self.ending.is_none()
            && self.known.questions().next().is_some()
            && self.known.open().all(|(_, entry)| !entry.call.is_performed())
    }

    /// Why nothing more may start, if so.
    pub fn stop(&self) -> Option<&Fault> {
        self.stop.as_ref()
    }

    /// How many requests each agent was sent.
    pub(crate) fn numbers(&self) -> &BTreeMap<AgentId, u64> {
        &self.numbers
    }

    /// Where the run was forked from.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The first call before which the files of the workspace were not saved, and why not.
    pub fn unsaved(&self) -> Option<&(Key, Arc<str>)> {
        self.unsaved.as_ref()
    }
}

/// The turns of teams that are over.
fn concluded(wants: &[Want]) -> Vec<Event> {
    let under_way = wants.iter().filter(|want| want.asked.is_some());
    let concluded = under_way.filter_map(|want| {
        let settled = want.concludes.clone()?.into();
        Some(Event::Concluded { key: want.key.clone(), settled })
    });
    concluded.collect()
}

#[cfg(test)]
mod tests;
