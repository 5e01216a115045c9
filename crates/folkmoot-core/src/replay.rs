//! Replays: a log run again without a world, and forks that go on from one with something changed.

use std::{collections::BTreeSet, sync::Arc};

use thiserror::Error;

use crate::{
    call::{Call, Fault},
    event::{Event, Origin, Record},
    key::Key,
    known::Entry,
    run::Run,
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

/// The events with which a fork of the run `origin` begins: it starts under `spec` and takes over
/// what was answered up to record `at` and does not depend on what changed.
///
/// Everything else is asked again: calls of agents that differ, all calls if the task differs, and
/// whatever quotes something that is asked again.
pub fn fork(origin: &str, records: &[Record], at: u64, spec: Arc<Spec>, wall: u64) -> Vec<Event> {
    let before: Vec<&Record> = records.iter().filter(|record| record.seq <= at).collect();
    let run = Run::fold(before.iter().copied());
    let changed = spec_of(records).map(|old| Changed::between(&old, &spec));
    let mut kept: Vec<(&Key, &Entry)> = run.known().iter().collect();
    kept.retain(|(_, entry)| changed.as_ref().is_some_and(|it| !it.touches(&entry.call)));
    kept.sort_by_key(|(_, entry)| (entry.settled, entry.asked));
    let origin = Some(Origin { run: origin.into(), seq: at });
    let inherited = kept.into_iter().filter_map(|(key, entry)| inherit(key, entry));
    [Event::Started { spec, wall, origin }].into_iter().chain(inherited).collect()
}

fn inherit(key: &Key, entry: &Entry) -> Option<Event> {
    let outcome = entry.outcome.clone()?;
    let is_answer = match &outcome {
        Ok(_) | Err(Fault::Failed { .. } | Fault::TimedOut) => true,
        Err(
            Fault::Deadline
            | Fault::Cancelled
            | Fault::OverBudget { .. }
            | Fault::Lost
            | Fault::Unwanted,
        ) => false,
    };
    is_answer.then(|| Event::Inherited {
        key: key.clone(),
        call: entry.call.clone(),
        nth: entry.nth,
        settled: outcome.into(),
    })
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
