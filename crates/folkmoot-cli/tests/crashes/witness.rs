//! What the models were asked, whoever asked, and what a run comes to that nobody disturbs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
};

use folkmoot_stub::{Reply, Stub};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::{
    life::Sign,
    teams::{Said, Team},
};

/// The model server of one run.
pub(crate) struct Witness {
    pub(crate) stub: Stub,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// The requests by name, in the order in which they came.
    asked: Vec<String>,
    /// Who is told of them.
    listener: Option<Sender<Sign>>,
    /// How many more are answered before one is answered by half and no more.
    until_half: Option<usize>,
}

impl Witness {
    pub(crate) fn start() -> Witness {
        let seen = Arc::<Mutex<Seen>>::default();
        let witnessed = seen.clone();
        let stub = Stub::answering(move |request| {
            let said = Said::to(request);
            let is_half = witnessed.lock().unwrap_or_else(PoisonError::into_inner).note(&said.id);
            let frames = said.completion().frames();
            if said.is_fault {
                Reply::json(400, &json!({ "error": { "message": said.text } }))
            } else if is_half {
                Reply::sse(frames[..frames.len() / 2].iter().cloned()).left_open()
            } else {
                Reply::sse(frames)
            }
        });
        Witness { stub, seen }
    }

    /// Tells `listener` of every request from now on, and leaves the reply to one of them unfinished.
    pub(crate) fn attend(&self, listener: Sender<Sign>, until_half: Option<usize>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (seen.listener, seen.until_half) = (Some(listener), until_half);
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).asked.clone()
    }
}

impl Seen {
    /// Takes note of a request; whether it is the one to be answered by half.
    fn note(&mut self, id: &str) -> bool {
        self.asked.push(id.to_owned());
        if let Some(listener) = &self.listener {
            // The process that asks may have been given up just now.
            let _ = listener.send(Sign::Asked);
        }
        let left = self.until_half.take();
        self.until_half = left.and_then(|left| left.checked_sub(1));
        left == Some(0)
    }
}

/// A run of a team from its start to its end.
pub(crate) struct Whole {
    pub(crate) team: &'static Team,
    /// How long it took.
    pub(crate) micros: u64,
    /// How many records it left.
    pub(crate) records: usize,
    /// The names of all that was asked.
    pub(crate) asked: BTreeSet<String>,
    pub(crate) end: End,
}

impl Whole {
    pub(crate) fn of(team: &'static Team) -> Whole {
        let witness = Witness::start();
        let bench = Bench::with_models(team.file, &witness.stub);
        let called = bench.call(["run", "team.yaml", team.task, "--json"]).must_be(0);
        let asked = witness.asked();
        let end = End::of(&bench);
        let distinct: BTreeSet<String> = asked.iter().cloned().collect();
        assert_eq!(distinct.len(), asked.len(), "every request has a name of its own");
        assert_eq!(end.usage["calls"], asked.len());
        let records = bench.last()["events"].as_array().map_or(0, Vec::len);
        let micros = (called.wall_ms * 1000.0) as u64;
        Whole { team, micros, records, asked: distinct, end }
    }
}

/// Where a run has come to, however often it was interrupted on the way.
#[derive(Debug, PartialEq)]
pub(crate) struct End {
    /// The result, without what is its own: id, time, usage.
    pub(crate) result: Value,
    /// By key, what was asked and what came.
    pub(crate) calls: BTreeMap<String, Value>,
    pub(crate) usage: Value,
}

impl End {
    pub(crate) fn of(bench: &Bench) -> End {
        let mut shown = bench.call(["show", "last", "--json"]).must_be(0).json();
        let usage = shown["run"]["meta"]["usage"].take();
        shown["run"]["run_id"].take();
        forget_times(&mut shown["run"]);
        let calls = shown["calls"].as_array().expect("calls are a list").iter().map(|call| {
            let key = call["key"].as_str().expect("a call has a key").to_owned();
            let parts = ["agent", "state", "request", "reply"].map(|part| call[part].clone());
            (key, json!(parts))
        });
        End { calls: calls.collect(), result: shown["run"].take(), usage }
    }
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["elapsed_seconds", "duration_ms"].contains(&name.as_str()));
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
