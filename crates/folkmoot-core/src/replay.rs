//! Replays: a log run again without a world, and forks that go on from one with something changed.

use std::{collections::BTreeSet, sync::Arc};

use thiserror::Error;

use crate::{
    call::{Call, Fault},
    event::{Event, Origin, Record},
    key::Key,
    known::Entry,
    run::Run,
    scope::{self, Want},
    spec::Spec,
    team::AgentId,
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
}

/// The events with which a fork of the run `origin` begins: it starts under its own spec and takes
/// over, in the order in which its program wants them, the calls that were answered and do not depend
/// on what changed.
///
/// Everything else is asked: calls of agents that differ, all calls if the task differs, and whatever
/// is made from something that is not taken over as it was.
pub fn fork(origin: &str, records: &[Record], change: &Change, wall: u64) -> Vec<Event> {
    let Change { at, spec, answers } = change;
    let before = records.iter().filter(|record| record.seq <= *at);
    let old = Run::fold(before);
    let changed = spec_of(records).map(|old| Changed::between(&old, spec));
    let origin = Some(Origin { run: origin.into(), seq: *at });
    let mut fork = Fork { run: Run::default(), events: Vec::new() };
    fork.push(Event::Started { spec: spec.clone(), wall, origin });
    let mut amended = BTreeSet::new();
    loop {
        let found = fork.wanted(spec, |key, call| {
            let entry = old.known().get(key.as_str()).filter(|entry| entry.call == *call)?;
            let is_touched = changed.as_ref().is_none_or(|changed| changed.touches(call));
            let is_made_anew = call.sources().any(|source| amended.contains(source));
            (!is_touched && !is_made_anew && is_answer(entry)).then_some(entry)
        });
        if found.is_empty() {
            return fork.events;
        }
        for (key, entry) in found {
            fork.inherit(&key, entry);
            for (_, text) in answers.iter().filter(|(amended, _)| *amended == key) {
                fork.push(Event::Amended { key: key.clone(), text: text.clone() });
                amended.insert(key.clone());
            }
        }
    }
}

/// A fork in the making.
struct Fork {
    run: Run,
    events: Vec<Event>,
}

impl Fork {
    fn push(&mut self, event: Event) {
        let seq = self.run.seq() + 1;
        self.run.apply(&Record { seq, at: self.run.at(), event: event.clone() });
        self.events.push(event);
    }

    /// The calls that the program wants, does not have, and can take over.
    fn wanted<'a>(
        &self,
        spec: &Spec,
        find: impl Fn(&Key, &Call) -> Option<&'a Entry>,
    ) -> Vec<(Key, &'a Entry)> {
        let wants = scope::think(spec.program(), spec, self.run.known(), false).wants;
        let is_fresh = |want: &Want| self.run.known().get(want.key.as_str()).is_none();
        let fresh = wants.into_iter().filter(is_fresh);
        fresh
            .filter_map(|want| find(&want.key, &want.call).map(|entry| (want.key, entry)))
            .collect()
    }

    /// Takes a call over under its number in the fork.
    fn inherit(&mut self, key: &Key, entry: &Entry) {
        let Some(outcome) = entry.outcome.clone() else { return };
        let nth = self.run.next_number(&entry.call);
        let (key, call) = (key.clone(), entry.call.clone());
        self.push(Event::Inherited { key, call, nth, settled: outcome.into() });
    }
}

/// Whether the world answered it, with an answer or a failure of its own.
fn is_answer(entry: &Entry) -> bool {
    match &entry.outcome {
        Some(Ok(_) | Err(Fault::Failed { .. } | Fault::TimedOut)) => true,
        Some(Err(
            Fault::Deadline
            | Fault::Cancelled
            | Fault::OverBudget { .. }
            | Fault::Lost
            | Fault::Unwanted,
        ))
        | None => false,
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
            let find = |spec: &Spec| spec.team.agents.iter().find(|it| it.id == *id).cloned();
            find(old) == find(new)
        };
        let agents = old.team.agents.iter().map(|agent| agent.id.clone());
        Changed {
            everything: old.task != new.task,
            agents: agents.filter(|agent| !same(agent)).collect(),
        }
    }

    fn touches(&self, call: &Call) -> bool {
        self.everything || self.agents.contains(call.agent())
    }
}
