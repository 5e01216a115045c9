//! What a controller is told in an exchange: a line of JSON (extensions.md §4).

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::number;
use crate::{
    call::{Call, Told},
    key::Key,
    known::Known,
    spec::{Collaboration, Spec},
    team::AgentId,
};

/// What a controller is to know in one exchange: a pure function of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Briefing {
    /// The number of the exchange, from 1.
    pub round: u64,
    task: Arc<str>,
    agents: Vec<AgentId>,
    /// By key, in the order in which it is told; what is new comes last.
    known: Vec<(Key, Result<Arc<str>, String>)>,
    /// How many of them were told in exchanges before.
    told_before: usize,
}

impl Briefing {
    /// That of the exchange `key`; an exchange that was never asked tells nothing.
    pub fn of(spec: &Spec, known: &Known, key: &Key) -> Briefing {
        let agents = match &spec.collaboration {
            Collaboration::Controller(controller) => controller.agents.clone(),
            _ => Vec::new(),
        };
        let (mut all, mut told_before) = (Vec::new(), 0);
        for exchange in chain(known, key) {
            told_before = all.len();
            all.extend(exchange.iter().map(|told| (told.key.clone(), outcome(known, told))));
        }
        let round = number(key).unwrap_or_default();
        Briefing { round, task: spec.task.clone(), agents, known: all, told_before }
    }

    /// Everything, for a controller that was just started.
    pub fn whole(&self) -> String {
        self.line(0).to_string()
    }

    /// What is new, for one that was told all else before.
    pub fn news(&self) -> String {
        let mut line = self.line(self.told_before);
        if self.round > 1 {
            line["since"] = (self.round - 1).into();
        }
        line.to_string()
    }

    /// Whether the news are enough for a controller that was told `earlier` last.
    pub fn follows(&self, earlier: &Briefing) -> bool {
        earlier.round + 1 == self.round && earlier.known[..] == self.known[..self.told_before]
    }

    fn line(&self, from: usize) -> Value {
        let one = |(key, outcome): &(Key, Result<Arc<str>, String>)| {
            let value = match outcome {
                Ok(text) => json!({ "text": text }),
                Err(fault) => json!({ "fault": fault }),
            };
            (key.to_string(), value)
        };
        let known: Map<String, Value> = self.known[from..].iter().map(one).collect();
        let new: Vec<&Key> = self.known[self.told_before..].iter().map(|(key, _)| key).collect();
        json!({
            "known": known,
            "new": new,
            "task": self.task,
            "agents": self.agents,
            "round": self.round,
        })
    }
}

/// What was told in the exchange `key` and in those before, the first one first.
fn chain<'a>(known: &'a Known, key: &Key) -> Vec<&'a [Told]> {
    let (mut chain, mut at) = (Vec::new(), Some(key));
    // Each comes after one of a lower number; a log that was made by hand may say otherwise.
    let mut before = u64::MAX;
    while let Some(key) = at.filter(|key| number(key).is_some_and(|it| it < before)) {
        let Some(Call::Exchange { after, told, .. }) = known.get(key.as_str()).map(|it| &it.call)
        else {
            break;
        };
        before = number(key).unwrap_or_default();
        chain.push(&told[..]);
        at = after.as_ref();
    }
    chain.reverse();
    chain
}

fn outcome(known: &Known, told: &Told) -> Result<Arc<str>, String> {
    match &told.fault {
        Some(fault) => Err(fault.to_string()),
        None => Ok(known.text(told.source()).cloned().unwrap_or_default()),
    }
}
