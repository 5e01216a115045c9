//! A run in virtual time: the real kernel against a world that is a function.
//!
//! Nothing sleeps and nothing is random but by the seed, so thousands of runs a second can be tried
//! and every one can be had again. It is how a team is rehearsed, and the kernel's own main test:
//! [`weather`] does to a world what real ones do, [`audit`] says what every run must keep whatever
//! happens, [`survey`] counts what came of many.

pub mod audit;
pub mod hazard;
mod malformed;
pub mod survey;
pub mod weather;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::{
    call::{Outcome, Usage},
    event::{Event, Record},
    key::Key,
    known::Entry,
    mail::Delivery,
    run::{Command, Run},
    spec::Spec,
    time::{Duration, Time},
};

/// What a simulated run meets.
pub trait World {
    /// What comes of a call, after how long; `None` never answers.
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening>;

    /// The mail that comes before a call begins; most worlds have none, and a rehearsal touches no mailbox.
    fn mail(&mut self, _spec: &Spec, _run: &Run, _key: &Key) -> Vec<Delivery> {
        Vec::new()
    }

    /// What happens besides, asked between any two steps; most worlds leave a run in peace.
    fn disturb(&mut self, _sim: &Sim) -> Option<Disturbance> {
        None
    }
}

/// What comes of a call in a simulated world.
#[derive(Clone, Debug)]
pub struct Happening {
    /// How long it takes.
    pub after: Duration,
    /// The answer or fault.
    pub outcome: Outcome,
    /// What it uses.
    pub usage: Usage,
}

/// What happens to a simulated run beside the answers to its calls.
#[derive(Clone, Debug)]
pub enum Disturbance {
    /// Something comes that nobody waits for.
    Comes(Box<Event>),
    /// The engine dies before what it decided last is durable, and another one goes on.
    CrashBefore,
    /// The engine dies once what it decided last is durable and before it is acted on.
    CrashAfter,
}

/// How long a log may grow; a run that is longer does not end.
const MOST_RECORDS: usize = 1_000_000;

/// A simulated run.
#[derive(Debug)]
pub struct Sim {
    /// What it depends on.
    pub spec: Arc<Spec>,
    /// How far it has come.
    pub run: Run,
    /// Everything that happened.
    pub log: Vec<Record>,
    /// How often the engine has died.
    pub crashes: u32,
    /// Where in the log the last step began; what came before is durable.
    durable: usize,
    /// What will happen, by time; the number between shuffles what happens at the same instant.
    agenda: BTreeMap<(Time, u64, Key), Event>,
    wakes_at: Option<Time>,
    now: Time,
    seed: u64,
}

impl Sim {
    /// A run of `spec` that has just been started, at `wall` in microseconds since 1970.
    pub fn start(spec: Arc<Spec>, seed: u64, wall: u64, world: &mut dyn World) -> Sim {
        let started = Event::Started { spec: spec.clone(), wall, origin: None };
        let mut sim = Sim::resume(spec, Run::default(), Vec::new(), seed);
        sim.feed(started, world);
        sim
    }

    /// A run that goes on from `log`; nothing is under way until an event is fed.
    pub fn resume(spec: Arc<Spec>, run: Run, log: Vec<Record>, seed: u64) -> Sim {
        let (now, durable) = (run.at(), log.len());
        let (agenda, wakes_at, crashes) = (BTreeMap::new(), None, 0);
        Sim { spec, run, log, crashes, durable, agenda, wakes_at, now, seed }
    }

    /// Lets an event happen now.
    pub fn feed(&mut self, event: Event, world: &mut dyn World) {
        self.feed_all(vec![event], world);
    }

    /// Lets all this happen now.
    pub fn feed_all(&mut self, events: Vec<Event>, world: &mut dyn World) {
        let mut starting = VecDeque::from(self.step(events));
        while let Some(key) = starting.pop_front() {
            if let Some(mailed) = self.mailed(&key, world) {
                starting.extend(self.step(vec![mailed]));
            }
            if self.run.known().get(key.as_str()).is_some_and(Entry::is_open) {
                self.plan(key, world);
            }
        }
    }

    /// One step of the kernel; gives the calls that are to begin.
    fn step(&mut self, events: Vec<Event>) -> Vec<Key> {
        let spec = self.spec.clone();
        let stepped = self.run.step(spec.program(), &spec, events, self.now);
        self.wakes_at = stepped.wakes_at;
        let mut starting = Vec::new();
        for command in self.run.commands(&stepped.records) {
            match command {
                Command::Start(key) => starting.push(key),
                Command::Abort(key) => {
                    starting.retain(|it| *it != key);
                    self.agenda.retain(|(_, _, it), _| *it != key);
                }
            }
        }
        self.durable = self.log.len();
        self.log.extend(stepped.records);
        starting
    }

    fn mailed(&self, key: &Key, world: &mut dyn World) -> Option<Event> {
        if !self.run.takes_mail(&self.spec, key) {
            return None;
        }
        let mail = world.mail(&self.spec, &self.run, key);
        if mail.is_empty() { None } else { self.run.mailed(&self.spec, key, mail) }
    }

    fn plan(&mut self, key: Key, world: &mut dyn World) {
        let entry = self.run.known().get(key.as_str()).expect("a started call is known");
        let attempt = entry.attempt;
        let happening = world.answer(&self.spec, &self.run, &key, entry);
        if let Some(Happening { after, outcome, usage }) = happening {
            let shuffled = Random::named(self.seed, key.as_str()).next();
            let at = (self.now + after, shuffled, key.clone());
            let settled = outcome.into();
            self.agenda.insert(at, Event::Answered { key, attempt, settled, usage });
        }
    }

    /// Lets the next thing happen: what the world has up its sleeve, else all answers of one instant,
    /// else a clock that strikes. False when there is nothing, or when only a person could go on.
    pub fn advance(&mut self, world: &mut dyn World) -> bool {
        match world.disturb(self) {
            Some(Disturbance::Comes(event)) => self.feed(*event, world),
            Some(Disturbance::CrashBefore) => self.crash(self.durable, world),
            Some(Disturbance::CrashAfter) => self.crash(self.log.len(), world),
            None if self.run.ending().is_some() || self.run.waits_for_person() => return false,
            None => match self.next() {
                Some(events) => self.feed_all(events, world),
                None => return false,
            },
        }
        true
    }

    /// What happens next by itself; it becomes the present.
    fn next(&mut self) -> Option<Vec<Event>> {
        let next = self.agenda.first_key_value().map(|((at, ..), _)| *at);
        match (next, self.wakes_at) {
            (Some(at), wake) if wake.is_none_or(|wake| at <= wake) => {
                self.now = at;
                Some(self.due())
            }
            (_, Some(wake)) => {
                self.now = self.now.max(wake);
                Some(vec![Event::Ticked])
            }
            (_, None) => None,
        }
    }

    /// What happens now.
    fn due(&mut self) -> Vec<Event> {
        let later = self.agenda.split_off(&(Time(self.now.0 + 1), 0, Key::parse("")));
        std::mem::replace(&mut self.agenda, later).into_values().collect()
    }

    /// The engine dies with all its connections; another one folds the first `kept` records and goes on.
    fn crash(&mut self, kept: usize, world: &mut dyn World) {
        self.crashes += 1;
        // Of a run whose first record is not durable nobody knows: it is started again.
        let started = self.log.first().filter(|_| kept == 0).map(|record| record.event.clone());
        self.log.truncate(kept);
        self.run = Run::fold(&self.log);
        self.agenda.clear();
        let resumed = Event::Resumed { wall: self.run.wall_at(self.now) };
        let bills = self.run.cut_off(&self.spec);
        let first = started.unwrap_or(resumed);
        self.feed_all([first].into_iter().chain(bills).collect(), world);
    }

    /// Lets everything happen until the run ends, or nothing is left that could.
    #[must_use]
    pub fn finish(mut self, world: &mut dyn World) -> Sim {
        while self.log.len() < MOST_RECORDS && self.advance(world) {}
        self
    }
}

/// A small deterministic source of shuffling (the splitmix64 generator).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The source that belongs to `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The source that belongs to `seed` and `name`, whatever was drawn from others.
    pub fn named(seed: u64, name: &str) -> Random {
        let mix = |mixed, byte| Random::new(mixed ^ u64::from(byte)).next();
        Random::new(name.bytes().fold(Random::new(seed).next(), mix))
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "an endless source is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Whether something happens that happens once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `from`, which is not empty.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
