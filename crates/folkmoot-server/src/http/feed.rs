//! What comes in from calls under way, for whoever follows their run at that moment.
//!
//! Deliberately absent: anything that is kept. Whoever is too slow, or comes later, misses pieces; the
//! answer of the call, which is recorded, holds them all.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use folkmoot_core::{
    event::{Event, Record},
    key::Key,
    known::Entry,
    run::Run,
    spec::Spec,
};
use folkmoot_runtime::{
    backend::Delta,
    driver::Observer,
    engine::RunId,
    stream::{Line, Piece},
};
use tokio::sync::broadcast;

use super::Masks;

/// How many pieces of a run may wait for its slowest follower.
const WAITING: usize = 1_024;

/// A piece of what a call says.
#[derive(Clone, Debug)]
pub(super) struct Scrap {
    /// The number of the record by which the call was asked.
    pub(super) asked: u64,
    /// The piece as a line of the stream of events, safe to show.
    pub(super) line: Arc<str>,
}

/// The feeds of the runs that are followed or driven here.
#[derive(Clone)]
pub(super) struct Feeds {
    masks: Arc<dyn Masks>,
    runs: Arc<Mutex<BTreeMap<RunId, broadcast::Sender<Scrap>>>>,
}

impl Feeds {
    /// No feeds yet; what goes through them is masked.
    pub(super) fn new(masks: Arc<dyn Masks>) -> Feeds {
        Feeds { masks, runs: Arc::default() }
    }

    /// What comes in from the calls of a run from now on, whenever it is driven here.
    pub(super) fn follow(&self, run: &RunId) -> broadcast::Receiver<Scrap> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, feed| feed.receiver_count() > 0);
        runs.entry(run.clone()).or_insert_with(|| broadcast::channel(WAITING).0).subscribe()
    }

    /// Whoever feeds the followers of a run.
    pub(super) fn observer(&self, run: &RunId) -> Arc<dyn Observer> {
        Arc::new(Feeder { feeds: self.clone(), run: run.clone(), calls: Mutex::default() })
    }

    fn send(&self, run: &RunId, scrap: Scrap) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = runs.get(run) {
            // Nobody may be left.
            let _ = feed.send(scrap);
        }
    }
}

/// Feeds the followers of one run.
struct Feeder {
    feeds: Feeds,
    run: RunId,
    calls: Mutex<HashMap<Key, Flow>>,
}

/// What a call under way has said so far.
struct Flow {
    agent: Arc<str>,
    asked: u64,
    /// The end of what it said last, which may be the beginning of a secret.
    held: Option<(Kind, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl Feeder {
    fn calls(&self) -> MutexGuard<'_, HashMap<Key, Flow>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, key: &Key, flow: &Flow, piece: Piece<'_>) {
        let line = Line::Delta { key, agent: &flow.agent, piece }.to_json();
        self.feeds.send(&self.run, Scrap { asked: flow.asked, line: line.into() });
    }

    /// Lets go of what was held back: nothing follows that would make it a secret.
    fn flush(&self, key: &Key, flow: &mut Flow) {
        if let Some((kind, held)) = flow.held.take().filter(|(_, held)| !held.is_empty()) {
            self.send(key, flow, kind.piece(&self.feeds.masks.mask(&held)));
        }
    }

    fn text(&self, key: &Key, flow: &mut Flow, (kind, text): (Kind, &str)) {
        if flow.held.as_ref().is_some_and(|(held, _)| *held != kind) {
            self.flush(key, flow);
        }
        let (_, held) = flow.held.get_or_insert_with(|| (kind, String::new()));
        let mut masked = String::new();
        self.feeds.masks.push(held, text, &mut masked);
        if !masked.is_empty() {
            self.send(key, flow, kind.piece(&masked));
        }
    }
}

impl Kind {
    fn piece(self, text: &str) -> Piece<'_> {
        match self {
            Kind::Text => Piece::Text(text),
            Kind::Reasoning => Piece::Reasoning(text),
        }
    }
}

impl Observer for Feeder {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        let mut calls = self.calls();
        for record in records {
            let flow = record.event.key().and_then(|key| Some((key, calls.get_mut(key)?)));
            if let Some((key, flow)) = flow {
                self.flush(key, flow);
            }
        }
        let is_new = |it: &Record| matches!(it.event, Event::Asked { .. } | Event::Resumed { .. });
        if records.iter().any(is_new) {
            for (key, entry) in run.known().open() {
                let agent = || spec.team.agent(entry.call.agent()).name.clone();
                calls.entry(key.clone()).or_insert_with(|| Flow {
                    agent: agent(),
                    asked: entry.asked,
                    held: None,
                });
            }
        }
        calls.retain(|key, _| run.known().get(key.as_str()).is_some_and(Entry::is_open));
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        let mut calls = self.calls();
        let Some(flow) = calls.get_mut(key) else { return };
        match delta {
            Delta::Text(text) => self.text(key, flow, (Kind::Text, text)),
            Delta::Reasoning(text) => self.text(key, flow, (Kind::Reasoning, text)),
            Delta::Retry(why) => {
                flow.held = None;
                self.send(key, flow, Piece::Retry(&self.feeds.masks.mask(why)));
            }
        }
    }
}
