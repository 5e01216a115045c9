//! What real worlds do to calls and to engines, done to a simulated one.
//!
//! Everything follows from the seed: what befalls a call from its key as well, so that neither the
//! order of answers nor a crash changes it, and what befalls the run from how long its log is.

use std::sync::Arc;

use super::{
    Disturbance, Happening, Random, Sim, World,
    hazard::{Hazard, Hazards},
    malformed::malformed,
};
use crate::{
    call::{Again, Answer, Call, FailureKind, Fault, Outcome, Tokens, Usage},
    event::{Event, Record},
    key::Key,
    known::Entry,
    mail::Delivery,
    run::Run,
    spec::Spec,
    time::Duration,
};

/// How many requests there are, on average, for one that a hazard befalls.
const RARITY: u64 = 20;

/// How many steps there are, on average, for one beside which something else happens.
const CALM: u64 = 12;

/// How often a run is disturbed at the most, so that it ends.
const MOST_DISTURBANCES: u32 = 16;

/// How long a back-end waits for an answer when no other clock is running.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long is waited before the second attempt of a call, at most; then twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// How long is waited at most; a provider that asks for more ends the call.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A world in which things go wrong.
///
/// A hazard befalls single requests. What fails is asked again inside the same call as the agent's
/// `retries` and the kind of failure allow (agents.md §3), after a wait, as a back-end does it; an
/// agent that stands in for a model has the retries of the model. What the world itself answers, an
/// error too, is its last word. Without hazards it is the world as it is.
#[derive(Clone, Debug)]
pub struct Weather<W> {
    world: W,
    seed: u64,
    hazards: Hazards,
    disturbances: u32,
}

/// What befalls a request.
enum Fate {
    Fair,
    Malformed,
    Blank,
    Silence,
    Failure(Failure),
}

/// An attempt that gave no answer.
struct Failure {
    kind: FailureKind,
    text: String,
    /// How long the provider asks to wait.
    hint: Option<Duration>,
    usage: Usage,
}

impl Failure {
    fn new(kind: FailureKind, text: impl Into<String>) -> Failure {
        Failure { kind, text: text.into(), hint: None, usage: Usage::default() }
    }
}

impl<W> Weather<W> {
    /// `world` with these hazards.
    pub fn new(world: W, seed: u64, hazards: Hazards) -> Weather<W> {
        Weather { world, seed, hazards, disturbances: 0 }
    }

    fn befalls(&self, hazard: Hazard, random: &mut Random) -> bool {
        self.hazards.has(hazard) && random.one_in(RARITY)
    }

    fn latency(&self, random: &mut Random) -> Duration {
        if !self.hazards.has(Hazard::Latency) {
            return Duration::default();
        }
        let usual = random.below(Duration::from_secs(4).0);
        Duration(if random.one_in(RARITY) { 30 * usual } else { usual })
    }

    fn fate(&self, random: &mut Random, fair: &Happening) -> Fate {
        if self.befalls(Hazard::Errors, random) {
            let kind = random.pick(&FailureKind::ALL);
            Fate::Failure(Failure::new(kind, format!("simulated: {}", kind.as_str())))
        } else if self.befalls(Hazard::RateLimits, random) {
            let hint = Duration::from_secs(1 + random.below(90));
            let limited = Failure::new(FailureKind::RateLimited, "simulated: too many requests");
            Fate::Failure(Failure { hint: Some(hint), ..limited })
        } else if self.befalls(Hazard::CutOff, random) {
            Fate::Failure(cut_off(random, fair))
        } else if self.befalls(Hazard::Silence, random) {
            Fate::Silence
        } else if self.befalls(Hazard::Malformed, random) {
            Fate::Malformed
        } else if self.befalls(Hazard::Blank, random) {
            Fate::Blank
        } else {
            Fate::Fair
        }
    }
}

/// The reply broke off after some of its text; that much was read and written.
fn cut_off(random: &mut Random, fair: &Happening) -> Failure {
    let whole = fair.outcome.as_ref().map_or(0, |answer| answer.text.chars().count() as u64);
    let came = random.below(whole + 1);
    let tokens = fair.usage.tokens;
    let tokens = Tokens { output: random.below(tokens.output.saturating_add(1)), ..tokens };
    let text = format!("simulated: the reply was cut off after {came} characters");
    let usage = Usage { tokens, cost: fair.usage.cost, estimated: fair.usage.tokens.total() > 0 };
    Failure { usage, ..Failure::new(FailureKind::Incomplete, text) }
}

fn blank(random: &mut Random) -> Outcome {
    Ok(Answer::text(random.pick(&["", " ", "\n\n\t", "\u{3000}\r\n"])).into())
}

/// The attempts of one call.
struct Attempts {
    made: u32,
    retries: u32,
    /// Whether what is set aside for the call pays for one attempt only (rules.md 4.6).
    is_metered: bool,
    had_its_once: bool,
    took: Duration,
    wasted: Usage,
}

impl Attempts {
    fn of(spec: &Spec, entry: &Entry) -> Attempts {
        let retries = match &entry.call {
            Call::Agent { agent, .. } => spec.team.agent(agent).retries,
            Call::Team { .. }
            | Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => 0,
        };
        let is_metered = entry.reserved.is_some();
        let (took, wasted) = (Duration::default(), Usage::default());
        Attempts { made: 0, retries, is_metered, had_its_once: false, took, wasted }
    }

    /// Waits for the next attempt, if one is due; else gives the fault that the call ends with.
    fn go_on_after(&mut self, failure: Failure, random: &mut Random) -> Result<(), Fault> {
        self.made += 1;
        self.wasted = self.wasted + failure.usage;
        let is_paid_up = self.is_metered && self.wasted.tokens.total() > 0;
        let is_due = self.made <= self.retries
            && !is_paid_up
            && match failure.kind.again() {
                Again::Never => false,
                Again::Once => !std::mem::replace(&mut self.had_its_once, true),
                Again::Always => true,
            };
        let doubled = FIRST_WAIT.0 << (self.made - 1).min(31);
        let backoff = || Duration(random.below(doubled.min(LONGEST_WAIT.0)));
        let wait = failure.hint.unwrap_or_else(backoff);
        if is_due && wait <= LONGEST_WAIT {
            self.took = self.took + wait;
            return Ok(());
        }
        let too_long = failure.hint.filter(|hint| *hint > LONGEST_WAIT);
        let asked = too_long.map(|it| format!("; it asks to wait {} s", it.0 / 1_000_000));
        let count = (self.made > 1).then(|| format!(" (after {} attempts)", self.made));
        let text: String = [Some(failure.text), asked, count].into_iter().flatten().collect();
        Err(Fault::failed(failure.kind, text))
    }
}

impl<W: World> World for Weather<W> {
    fn mail(&mut self, spec: &Spec, run: &Run, key: &Key) -> Vec<Delivery> {
        self.world.mail(spec, run, key)
    }

    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let fair = self.world.answer(spec, run, key, entry)?;
        // The seed itself shuffles what happens at the same instant.
        let mut random = Random::named(!self.seed, key.as_str());
        let mut attempts = Attempts::of(spec, entry);
        let is_timed = entry.expires.is_some() || spec.limits.time.is_some();
        let (outcome, usage) = loop {
            attempts.took = attempts.took + self.latency(&mut random);
            let failure = match self.fate(&mut random, &fair) {
                Fate::Fair => break (fair.outcome, fair.usage),
                Fate::Malformed => {
                    let spoiled = fair.outcome.map(|it| malformed(&mut random, &it).into());
                    break (spoiled, fair.usage);
                }
                Fate::Blank => break (fair.outcome.and_then(|_| blank(&mut random)), fair.usage),
                Fate::Silence if is_timed => return None,
                Fate::Silence => {
                    attempts.took = attempts.took + PATIENCE;
                    let text = format!("simulated: nothing came for {} s", PATIENCE.0 / 1_000_000);
                    Failure::new(FailureKind::Timeout, text)
                }
                Fate::Failure(failure) => failure,
            };
            if let Err(fault) = attempts.go_on_after(failure, &mut random) {
                break (Err(fault), Usage::default());
            }
        };
        // Counted from the asking, so that a crash in between changes nothing about it.
        let comes_at = entry.asked_at + attempts.took + fair.after;
        Some(Happening { after: comes_at.since(run.at()), outcome, usage: attempts.wasted + usage })
    }

    fn disturb(&mut self, sim: &Sim) -> Option<Disturbance> {
        if let Some(disturbance) = self.world.disturb(sim) {
            return Some(disturbance);
        }
        if self.disturbances == MOST_DISTURBANCES {
            return None;
        }
        let mut random = Random::new(Random::new(!self.seed).next() ^ sim.run.seq());
        let mut comes = |hazard, calm| self.hazards.has(hazard) && random.one_in(calm);
        let duplicate = comes(Hazard::Duplicates, CALM);
        // Most of the time there is nothing that could be too late.
        let late = comes(Hazard::Late, CALM / 4);
        let crash = comes(Hazard::Crashes, CALM);
        let disturbance = if sim.run.ending().is_some() {
            // Nobody listens any longer; but the end itself may not have been durable.
            crash.then_some(Disturbance::CrashBefore)
        } else if crash {
            let crashes = [Disturbance::CrashBefore, Disturbance::CrashAfter];
            Some(random.pick(&crashes))
        } else if late {
            self.too_late(sim, &mut random)
        } else if duplicate {
            once_more(sim, &mut random)
        } else {
            None
        };
        self.disturbances += u32::from(disturbance.is_some());
        disturbance
    }
}

/// An answer that came already.
fn once_more(sim: &Sim, random: &mut Random) -> Option<Disturbance> {
    let is_answer = |record: &&Record| matches!(record.event, Event::Answered { .. });
    let answers: Vec<&Record> = sim.log.iter().filter(is_answer).collect();
    let answer = (!answers.is_empty()).then(|| random.pick(&answers))?;
    Some(Disturbance::Comes(answer.event.clone().into()))
}

impl<W: World> Weather<W> {
    /// Lets a run of `spec`, started at `wall` in microseconds since 1970, live from its start to its
    /// end. The same seed and hazards give the same run.
    #[must_use]
    pub fn live(mut self, spec: Arc<Spec>, wall: u64) -> Sim {
        let seed = self.seed;
        Sim::start(spec, seed, wall, &mut self).finish(&mut self)
    }

    /// The answer to an attempt that was called off, or that an earlier engine began.
    fn too_late(&mut self, sim: &Sim, random: &mut Random) -> Option<Disturbance> {
        let closed = |(key, entry): (&Key, &Entry)| {
            let attempt = if entry.withdrawn { entry.attempt } else { entry.attempt - 1 };
            (entry.is_charged() && attempt > 0).then(|| (key.clone(), attempt))
        };
        let closed: Vec<(Key, u32)> = sim.run.known().iter().filter_map(closed).collect();
        let (key, attempt) = (!closed.is_empty()).then(|| random.pick(&closed))?;
        let entry = sim.run.known().get(key.as_str())?;
        let Happening { outcome, usage, .. } =
            self.world.answer(&sim.spec, &sim.run, &key, entry)?;
        let settled = outcome.into();
        Some(Disturbance::Comes(Event::Answered { key, attempt, settled, usage }.into()))
    }
}

#[cfg(test)]
mod tests;
