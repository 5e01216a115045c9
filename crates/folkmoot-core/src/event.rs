//! Events: the only thing that is ever stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    call::{Answer, Call, FailureKind, Fault, Outcome, Tokens, Usage},
    key::Key,
    money::Money,
    spec::Spec,
    team::AgentId,
    time::Time,
};

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded, in the run's active time.
    pub at: Time,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Record {
    /// The record as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("events have no maps with keys other than text")
    }
}

/// What can happen in a run.
///
/// The first group comes from outside, the second are the kernel's own decisions. Both stand in one
/// log, so that what was decided can be checked against what was known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The run begins.
    Started {
        /// All that the run depends on, from now on unchangeable.
        spec: Arc<Spec>,
        /// The wall clock, in microseconds since 1970; for people only.
        wall: u64,
        /// The run and record from which this one was forked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
    },
    /// A fork takes over an answer of its origin; it costs nothing again.
    Inherited {
        /// The call.
        key: Key,
        /// What was asked.
        call: Call,
        /// The number of this call among its agent's, from 1.
        nth: u64,
        /// What came.
        #[serde(flatten)]
        settled: Settled,
    },
    /// Another process, or the same one after a pause, goes on with the run.
    Resumed {
        /// The wall clock, in microseconds since 1970.
        wall: u64,
    },
    /// The world answered a call.
    Answered {
        /// The call.
        key: Key,
        /// The attempt that is answered, from 1; an answer to a closed attempt changes only the bill.
        attempt: u32,
        /// What came.
        #[serde(flatten)]
        settled: Settled,
        /// What it used.
        usage: Usage,
    },
    /// A person put another answer in place of the one given.
    Amended {
        /// The call.
        key: Key,
        /// The new answer.
        text: Arc<str>,
    },
    /// Someone wants the run to stop.
    CancelRequested,
    /// A moment came that the run had asked to be told of.
    Ticked,

    /// A call is started.
    Asked {
        /// Its name.
        key: Key,
        /// What is asked.
        call: Call,
        /// The number of this call among its agent's, from 1.
        nth: u64,
        /// The worst case that is reserved for it, where a limit needs one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Reservation>,
        /// When it counts as timed out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Time>,
        /// The parts of the run whose limits it counts against, by key prefix.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<Key>,
    },
    /// A call is not started.
    Refused {
        /// Its name.
        key: Key,
        /// What would have been asked.
        call: Call,
        /// Why not.
        #[serde(flatten)]
        fault: Fault,
    },
    /// A call under way is called off.
    Withdrawn {
        /// Its name.
        key: Key,
        /// Why.
        #[serde(flatten)]
        fault: Fault,
        /// What it is taken to have used: its request was read.
        #[serde(default, skip_serializing_if = "Usage::is_nothing")]
        usage: Usage,
    },
    /// The run is over; nothing but an amendment can follow.
    Ended {
        /// How.
        #[serde(flatten)]
        ending: Ending,
    },
}

impl Event {
    /// Whether the kernel decided this; everything else comes from outside.
    pub fn is_decision(&self) -> bool {
        match self {
            Event::Asked { .. }
            | Event::Refused { .. }
            | Event::Withdrawn { .. }
            | Event::Ended { .. } => true,
            Event::Started { .. }
            | Event::Inherited { .. }
            | Event::Resumed { .. }
            | Event::Answered { .. }
            | Event::Amended { .. }
            | Event::CancelRequested
            | Event::Ticked => false,
        }
    }

    /// The agent that it lets be asked, or whose answer it takes over.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Event::Inherited { call, .. }
            | Event::Asked { call, .. }
            | Event::Refused { call, .. } => Some(call.agent()),
            Event::Started { .. }
            | Event::Resumed { .. }
            | Event::Answered { .. }
            | Event::Amended { .. }
            | Event::CancelRequested
            | Event::Ticked
            | Event::Withdrawn { .. }
            | Event::Ended { .. } => None,
        }
    }

    /// The call it is about.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Event::Inherited { key, .. }
            | Event::Answered { key, .. }
            | Event::Amended { key, .. }
            | Event::Asked { key, .. }
            | Event::Refused { key, .. }
            | Event::Withdrawn { key, .. } => Some(key),
            Event::Started { .. }
            | Event::Resumed { .. }
            | Event::CancelRequested
            | Event::Ticked
            | Event::Ended { .. } => None,
        }
    }
}

/// The worst case of a call, set aside in every limit it counts against until it is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Tokens; `output` is also the most that the reply may have.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

/// An outcome as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// An answer.
    Answer(Arc<Answer>),
    /// A fault.
    Fault(Fault),
}

impl From<Outcome> for Settled {
    fn from(outcome: Outcome) -> Settled {
        match outcome {
            Ok(answer) => Settled::Answer(answer),
            Err(fault) => Settled::Fault(fault),
        }
    }
}

impl From<Settled> for Outcome {
    /// A structured reply with the key `error` counts as failed (strategies.md §1.5).
    fn from(settled: Settled) -> Outcome {
        match settled {
            Settled::Answer(answer) => match error_of(&answer) {
                Some(text) => Err(Fault::failed(FailureKind::Harness, text)),
                None => Ok(answer),
            },
            Settled::Fault(fault) => Err(fault),
        }
    }
}

fn error_of(answer: &Answer) -> Option<String> {
    let error = answer.json.as_ref()?.as_object()?.get("error")?;
    Some(error.as_str().map_or_else(|| error.to_string(), str::to_owned))
}

/// Where a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The run.
    pub run: Arc<str>,
    /// The last record of it that was taken over.
    pub seq: u64,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Whether it did what it was for.
    pub done: bool,
    /// One machine-readable reason (rules.md 1.20).
    pub reason: Arc<str>,
    /// The answer.
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    pub answer: Option<Text>,
    /// Without an answer: the best that there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<Key>,
}

impl Ending {
    /// A success whose answer is the replies to `keys`.
    pub fn done(reason: &str, keys: Vec<Key>) -> Ending {
        let answer = Some(Text::Replies(keys));
        Ending { done: true, reason: reason.into(), answer, partial: Vec::new() }
    }

    /// A failure that leaves the replies to `partial`.
    pub fn failed(reason: &str, partial: Vec<Key>) -> Ending {
        Ending { done: false, reason: reason.into(), answer: None, partial }
    }
}

/// A text that quotes the log where it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// The answers to these calls, joined by a blank line.
    Replies(Vec<Key>),
    /// A text that is only a part of an answer.
    Literal(Arc<str>),
}
