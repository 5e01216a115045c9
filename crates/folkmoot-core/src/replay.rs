//! Replays: a log run again without a world, and forks that go on from one with something changed.

use std::{collections::BTreeSet, sync::Arc};

use thiserror::Error;

use crate::{
    call::{Call, Fault, Outcome},
    event::{Event, Origin, Record},
    key::Key,
    known::{Entry, Known},
    run::Run,
    scope::{self, Want},
    spec::Spec,
    team::{Agent, AgentId},
};

/// Where a log and what the kernel makes of it part.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Divergence {
    /// The log does not begin with a start.
    #[error("record 1 does not start a run")]
    NoStart,
    /// Another decision was recorded than is made now.
    #[error("record {seq}{} differs: recorded {recorded}, decided {decided}", at_key(key.as_ref()))]
    Decision {
        /// The record.
        seq: u64,
        /// The call it is about.
        key: Option<Key>,
        /// What stands in the log, as JSON, or `nothing`.
        recorded: String,
        /// What the kernel decides now, as JSON, or `nothing`.
        decided: String,
    },
}

fn at_key(key: Option<&Key>) -> String {
    key.map(|key| format!(" ({key})")).unwrap_or_default()
}

/// The spec that a log begins with.
pub fn spec_of(records: &[Record]) -> Option<Arc<Spec>> {
    if let Event::Started { spec, .. } = &records.first()?.event {
        Some(spec.clone())
    } else {
        None
    }
}

/// Runs a log again: what came from outside is fed as recorded, and every decision must come out
/// byte for byte as it was recorded. No world is asked.
pub fn replay(records: &[Record]) -> Result<Run, Divergence> {
    let spec = spec_of(records).ok_or(Divergence::NoStart)?;
    let mut run = Run::default();
    let mut rest = records;
    while let Some(first) = rest.first() {
        // What came at different times came in different steps; nothing was decided in between.
        let is_fed = |it: &&Record| !it.event.is_decision() && it.at == first.at;
        let outside = rest.iter().take_while(is_fed).count();
        let events = rest[..outside].iter().map(|record| record.event.clone());
        let decided = run.step(spec.program(), &spec, events, first.at).records;
        let decisions = &decided[outside..];
        let recorded = &rest[outside..];
        let recorded = &recorded[..recorded.iter().take_while(|it| it.event.is_decision()).count()];
        same(recorded, decisions)?;
        rest = &rest[outside + recorded.len()..];
    }
    Ok(run)
}

fn same(recorded: &[Record], decided: &[Record]) -> Result<(), Divergence> {
    for at in 0..recorded.len().max(decided.len()) {
        let (then, now) = (recorded.get(at), decided.get(at));
        let json =
            |record: Option<&Record>| record.map_or_else(|| "nothing".to_owned(), Record::to_json);
        if json(then) != json(now) {
            let one = then.or(now).expect("one of the two is longer than this");
            let key = one.event.key().cloned();
            let (recorded, decided) = (json(then), json(now));
            return Err(Divergence::Decision { seq: one.seq, key, recorded, decided });
        }
    }
    Ok(())
}

/// What a fork changes.
#[derive(Clone, Debug)]
pub struct Change {
    /// The last record of the origin that is taken over.
    pub at: u64,
    /// The spec of the fork.
    pub spec: Arc<Spec>,
    /// Answers in place of those given.
    pub answers: Vec<(Key, Arc<str>)>,
    /// What is tried again, if the fork is another attempt at its origin.
    pub retry: Option<Retry>,
}

/// What another attempt at a run asks again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// This call, and with it all that follows from it; without one, every call to an agent that has
    /// no answer.
    pub from: Option<Key>,
    /// What a person adds to what is asked again first.
    pub prompt: Option<Arc<str>>,
}

impl Retry {
    /// Whether it asks this call of its origin again, whatever came of it. What a later target answered
    /// has its answer.
    fn asks(&self, known: &Known, key: &Key, entry: &Entry) -> bool {
        match &self.from {
            Some(from) if known.get(from.as_str()).is_some_and(|it| it.call.is_of_team()) => {
                key == from || key.is_under(&format!("{from}/"))
            }
            Some(from) => from == key,
            None => lacks_answer(entry) && !known.is_rescued(key),
        }
    }

    /// What the person adds to the calls of `known`.
    fn words(&self, known: &Known) -> Vec<(Key, Arc<str>)> {
        let is_named = |key: &Key| self.from.as_ref().is_none_or(|from| from == key);
        let asked = known.iter().filter(|(key, entry)| self.asks(known, key, entry));
        let asked = asked.filter(|(key, _)| is_named(key));
        let words = |text: &Arc<str>| asked.map(|(key, _)| (key.clone(), text.clone())).collect();
        self.prompt.as_ref().map(words).unwrap_or_default()
    }
}

/// Whether an agent was to answer this and did not, or nobody could look at a gate, or a controller
/// did not say what it wants, or a server what it has. The failure of a tool is a result that its agent has read.
fn lacks_answer(entry: &Entry) -> bool {
    let is_missed = entry.fault().is_some_and(|fault| *fault != Fault::Unwanted);
    let is_asked = match &entry.call {
        Call::Agent { .. } | Call::Gate { .. } | Call::Exchange { .. } | Call::Listing { .. } => {
            true
        }
        Call::Team { .. } | Call::Tool { .. } | Call::Person { .. } => false,
    };
    is_asked && (entry.is_open() || is_missed)
}

/// The events with which a fork of the run `origin` begins: it starts under its own spec and takes
/// over, in the order in which their answers came, the calls that were answered and do not depend on
/// what changed. What its program makes of that order it makes again.
///
/// Everything else is asked: calls of agents that differ, all calls if the task differs, what a retry
/// is for, and whatever is made from something that is not taken over as it was. What is taken over
/// costs the fork nothing: its budget and its clocks begin anew (rules.md 4.12).
pub fn fork(origin: &str, records: &[Record], change: &Change, wall: u64) -> Vec<Event> {
    let Change { at, spec, answers, retry } = change;
    let before = records.iter().filter(|record| record.seq <= *at);
    let old = Run::fold(before);
    let changed = spec_of(records).map(|old| Changed::between(&old, spec));
    let sent = retry.as_ref().map(|_| old.numbers().clone());
    let is_numbered_on = sent.is_some();
    let origin = Some(Origin { run: origin.into(), seq: *at, sent });
    let mut fork = Fork { run: Run::default(), events: Vec::new(), is_numbered_on };
    fork.push(Event::Started { spec: spec.clone(), wall, origin });
    let added = old.known().words().map(|(key, text)| (key.clone(), text.clone()));
    let anew = retry.iter().flat_map(|retry| retry.words(old.known()));
    for (key, text) in added.chain(anew) {
        fork.push(Event::Prompted { key, text });
    }
    for (key, _, mail) in old.known().all_mail() {
        // What a failed call had goes back to its mailbox, and comes from there if it is asked again.
        let entry = old.known().get(key.as_str());
        let fails_again = entry.zip(retry.as_ref()).is_some_and(|(entry, retry)| {
            retry.asks(old.known(), key, entry) && old.known().was_answered(key) != Some(true)
        });
        if !fails_again {
            let (key, mail) = (key.clone(), mail.to_vec());
            fork.push(Event::Mailed { key, mail, reserved: None });
        }
    }
    let mut amended = BTreeSet::new();
    let is_asked_again = |key: &Key, entry: &Entry| {
        retry.as_ref().is_some_and(|retry| retry.asks(old.known(), key, entry))
    };
    let kept = |key: &Key, entry: &Entry| {
        let is_touched = changed.as_ref().is_none_or(|changed| changed.touches(&entry.call));
        // What a turn of a team comes to follows from the calls below it, unless it was cut off: then
        // it stands as long as nothing below is to go otherwise.
        let is_of_team = entry.call.is_of_team();
        let goes_otherwise = |(key, entry): (&Key, &Entry)| {
            is_asked_again(key, entry) || answers.iter().any(|(answered, _)| answered == key)
        };
        let stands = || entry.withdrawn && !old.known().below(key).any(goes_otherwise);
        let may_be = !is_touched && !is_asked_again(key, entry) && (!is_of_team || stands());
        taken(entry, retry.is_some()).filter(|_| may_be)
    };
    // Turns of teams are concluded in their place among the answers.
    let all = old.known().iter();
    let all = all.filter(|(key, it)| it.call.is_of_team() || kept(key, it).is_some());
    let mut rest: BTreeSet<u64> = all.map(|(_, entry)| came(entry)).collect();
    loop {
        let concluded = fork.conclude(spec);
        if !concluded.is_empty() {
            for key in concluded {
                let told =
                    |known: &Known| known.get(key.as_str()).and_then(|it| it.outcome.clone());
                if told(fork.run.known()) != told(old.known()) {
                    amended.insert(key.clone());
                }
                fork.amend(&key, answers, &mut amended);
            }
            continue;
        }
        let mut found = fork.wanted(spec, |key, call| {
            let entry = old.known().get(key.as_str()).filter(|entry| is_same(&entry.call, call))?;
            let is_made_anew = entry.call.sources().any(|source| amended.contains(source));
            let outcome = kept(key, entry).filter(|_| !is_made_anew)?;
            Some((entry, outcome))
        });
        found.sort_by_key(|(_, (entry, _))| came(entry));
        let mut found = found.into_iter();
        let Some((key, (entry, outcome))) = found.next() else { return fork.events };
        // What came before and is not wanted by now never will be.
        rest = rest.split_off(&came(entry).saturating_add(1));
        fork.inherit(&key, entry, outcome);
        fork.amend(&key, answers, &mut amended);
        // What comes before the next one may be wanted only now.
        for (key, (entry, outcome)) in found {
            if rest.first() != Some(&came(entry)) {
                break;
            }
            rest.pop_first();
            fork.inherit(&key, entry, outcome);
            fork.amend(&key, answers, &mut amended);
        }
    }
}

/// Whether a call of the origin is the one that the fork wants. An exchange is if all that it told is
/// known in the fork: there more is known at once than was when it was asked.
fn is_same(old: &Call, wanted: &Call) -> bool {
    match (old, wanted) {
        (
            Call::Exchange { agent: one, after: before, told: then },
            Call::Exchange { agent: other, after, told },
        ) => (one, before) == (other, after) && then.iter().all(|it| told.contains(it)),
        (
            Call::Agent { .. }
            | Call::Team { .. }
            | Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. },
            _,
        ) => old == wanted,
    }
}

/// A fork in the making.
struct Fork {
    run: Run,
    events: Vec<Event>,
    /// Whether calls keep their numbers.
    is_numbered_on: bool,
}

impl Fork {
    fn push(&mut self, event: Event) {
        let seq = self.run.seq() + 1;
        self.run.apply(&Record { seq, at: self.run.at(), event: event.clone() });
        self.events.push(event);
    }

    /// Puts the answers that a person has for `key` in place of its own.
    fn amend(&mut self, key: &Key, answers: &[(Key, Arc<str>)], amended: &mut BTreeSet<Key>) {
        for (_, text) in answers.iter().filter(|(amended, _)| amended == key) {
            self.push(Event::Amended { key: key.clone(), text: text.clone() });
            amended.insert(key.clone());
        }
    }

    /// Takes over the turns of teams that are done with what was taken over.
    fn conclude(&mut self, spec: &Spec) -> Vec<Key> {
        let wants = scope::think(spec.program(), spec, self.run.known(), false).wants;
        let done =
            wants.into_iter().filter_map(|want| Some((want.concludes?, want.key, want.call)));
        let done: Vec<_> = done.collect();
        for (outcome, key, call) in &done {
            let (key, call) = (key.clone(), call.clone());
            self.push(Event::Inherited { key, call, nth: 0, settled: outcome.clone().into() });
        }
        done.into_iter().map(|(_, key, _)| key).collect()
    }

    /// The calls that the program wants, does not have, and can take over.
    fn wanted<'a>(
        &self,
        spec: &Spec,
        find: impl Fn(&Key, &Call) -> Option<(&'a Entry, Outcome)>,
    ) -> Vec<(Key, (&'a Entry, Outcome))> {
        let wants = scope::think(spec.program(), spec, self.run.known(), false).wants;
        let is_fresh = |want: &Want| self.run.known().get(want.key.as_str()).is_none();
        let fresh = wants.into_iter().filter(is_fresh);
        fresh
            .filter_map(|want| find(&want.key, &want.call).map(|found| (want.key, found)))
            .collect()
    }

    /// Takes a call over, under its number in the fork.
    fn inherit(&mut self, key: &Key, entry: &Entry, outcome: Outcome) {
        let next = self.run.next_number(&entry.call);
        let is_numbered = !self.is_numbered_on && !entry.call.is_of_team();
        let nth = if is_numbered { next } else { entry.nth };
        let (key, call) = (key.clone(), entry.call.clone());
        self.push(Event::Inherited { key, call, nth, settled: outcome.into() });
    }
}

/// When a call was settled; one that never was comes last.
fn came(entry: &Entry) -> u64 {
    if entry.is_open() { u64::MAX } else { entry.settled }
}

/// What is taken over of a call, if anything is: an answer of the world or a failure of its own, and of a
/// tool that must not be used twice also that nobody knows whether it did its work. Another attempt knows
/// no more of one that was under way when its origin was left (rules.md 7.3, 11.3).
fn taken(entry: &Entry, is_retry: bool) -> Option<Outcome> {
    let is_once = matches!(entry.call, Call::Tool { .. }) && !entry.call.is_repeatable();
    match &entry.outcome {
        Some(Ok(_) | Err(Fault::Failed { .. } | Fault::TimedOut)) => entry.outcome.clone(),
        Some(Err(Fault::Lost)) if is_once => entry.outcome.clone(),
        None if is_once && is_retry => Some(Err(Fault::Lost)),
        Some(Err(
            Fault::Deadline
            | Fault::Cancelled
            | Fault::OverBudget { .. }
            | Fault::Lost
            | Fault::Unwanted,
        ))
        | None => None,
    }
}

/// What differs between two specs, as far as calls depend on it.
struct Changed {
    everything: bool,
    agents: BTreeSet<AgentId>,
}

impl Changed {
    fn between(old: &Spec, new: &Spec) -> Changed {
        let same = |id: &AgentId| {
            let find = |spec: &Spec| {
                let agent = spec.team.has(id).then(|| spec.team.agent(id).clone())?;
                Some((agent, spec.of(id).0.collaboration.clone()))
            };
            let (then, now) = (find(old), find(new));
            let is_nested = id.as_str().contains('/');
            let agent = |it: &Option<(Agent, _)>| it.as_ref().map(|(agent, _)| agent.clone());
            if is_nested { then == now } else { agent(&then) == agent(&now) }
        };
        let agents = old.team.all().into_iter().map(|agent| agent.id);
        Changed {
            everything: old.task != new.task,
            agents: agents.filter(|agent| !same(agent)).collect(),
        }
    }

    fn touches(&self, call: &Call) -> bool {
        self.everything || self.agents.contains(call.agent())
    }
}
