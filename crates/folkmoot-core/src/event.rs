//! Events: the only thing that is ever stored.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{
    call::{Answer, Call, FailureKind, Fault, Limit, Outcome, Tokens, Usage},
    key::Key,
    mail::Delivery,
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

    /// Reads what [`Record::to_json`] wrote.
    ///
    /// A run that is half understood would be another run, so an event or a field that this version
    /// does not know is refused, not skipped. So is what it would write otherwise, be it by a blank: a
    /// replay compares bytes, and no run wrote these (rules.md 7.7).
    pub fn parse(json: &str) -> Result<Record, Unreadable> {
        let record: Record = serde_json::from_str(json)?;
        let written = record.to_json();
        if written == json {
            return Ok(record);
        }
        let (read, known) = (serde_json::from_str(json)?, serde_json::to_value(&record)?);
        let otherwise = || {
            let alike = written.bytes().zip(json.bytes()).take_while(|(ours, its)| ours == its);
            Unreadable::Otherwise(alike.count())
        };
        Err(unknown_field(&read, &known).map_or_else(otherwise, Unreadable::Field))
    }
}

/// Why a text is no record that this version can take.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// It is damaged, or an event of a kind that is not known.
    #[error(transparent)]
    Event(#[from] serde_json::Error),
    /// It has a field that is not known.
    #[error("unknown field `{0}`")]
    Field(String),
    /// It means a record, whose text differs from this byte on.
    #[error("from byte {0} on it is written otherwise than any run writes it")]
    Otherwise(usize),
}

/// The path of the first field of `read` that is lost in `known`, what was read of it.
fn unknown_field(read: &Value, known: &Value) -> Option<String> {
    match (read, known) {
        (Value::Object(read), Value::Object(known)) => {
            let mut fields = read.iter().filter(|(_, value)| !value.is_null());
            fields.find_map(|(name, value)| match known.get(name) {
                None => Some(name.clone()),
                Some(known) => Some(format!("{name}.{}", unknown_field(value, known)?)),
            })
        }
        (Value::Array(read), Value::Array(known)) => {
            let mut items = (0..).zip(read.iter().zip(known));
            items.find_map(|(at, (read, known)): (u64, _)| {
                Some(format!("{at}.{}", unknown_field(read, known)?))
            })
        }
        _ => None,
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
    /// A person added words to what a call is asked.
    Prompted {
        /// The call.
        key: Key,
        /// The words; they come last in its prompt.
        text: Arc<str>,
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
    /// The machine slept meanwhile, or its wall clock was set: the run goes on as if nothing had been, and
    /// from here on the wall clock is this one (rules.md 6.6).
    Woken {
        /// The wall clock, in microseconds since 1970.
        wall: u64,
    },
    /// The files of the workspace were looked at before a call begins that may change them (agents.md
    /// §10); it begins only now.
    Saved {
        /// The call.
        key: Key,
        /// Where they are kept.
        #[serde(flatten)]
        files: Files,
    },
    /// Mail came to an agent before a call of it begins (messaging.md §2); it begins only now, and quotes
    /// the mail at its end.
    Mailed {
        /// The call.
        key: Key,
        /// The messages, oldest first.
        mail: Vec<Delivery>,
        /// What is set aside for the call now that it is longer, where a limit needs that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Reservation>,
    },

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
    /// The run of a team that is a member is over, and with it that member's turn.
    Concluded {
        /// The turn.
        key: Key,
        /// The reply, or why there is none.
        #[serde(flatten)]
        settled: Settled,
    },
    /// The run is over; what follows changes nothing but the bill, unless it is an amendment.
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
            | Event::Concluded { .. }
            | Event::Ended { .. } => true,
            Event::Started { .. }
            | Event::Inherited { .. }
            | Event::Prompted { .. }
            | Event::Resumed { .. }
            | Event::Answered { .. }
            | Event::Amended { .. }
            | Event::CancelRequested
            | Event::Ticked
            | Event::Woken { .. }
            | Event::Saved { .. }
            | Event::Mailed { .. } => false,
        }
    }

    /// The agent that it lets be asked, or whose answer it takes over.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Event::Inherited { call, .. }
            | Event::Asked { call, .. }
            | Event::Refused { call, .. } => Some(call.agent()),
            Event::Started { .. }
            | Event::Prompted { .. }
            | Event::Resumed { .. }
            | Event::Answered { .. }
            | Event::Amended { .. }
            | Event::CancelRequested
            | Event::Ticked
            | Event::Woken { .. }
            | Event::Saved { .. }
            | Event::Mailed { .. }
            | Event::Withdrawn { .. }
            | Event::Concluded { .. }
            | Event::Ended { .. } => None,
        }
    }

    /// The call it is about.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Event::Inherited { key, .. }
            | Event::Prompted { key, .. }
            | Event::Answered { key, .. }
            | Event::Amended { key, .. }
            | Event::Saved { key, .. }
            | Event::Mailed { key, .. }
            | Event::Asked { key, .. }
            | Event::Refused { key, .. }
            | Event::Withdrawn { key, .. }
            | Event::Concluded { key, .. } => Some(key),
            Event::Started { .. }
            | Event::Resumed { .. }
            | Event::CancelRequested
            | Event::Ticked
            | Event::Woken { .. }
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

/// What became of saving the files of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// They are kept under the name of this tree, which follows from what is in them.
    Tree(Arc<str>),
    /// They are not kept, and why.
    Unsaved(Arc<str>),
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
    /// An answer that is nested deeper than could be read back counts as failed.
    fn from(outcome: Outcome) -> Settled {
        match outcome {
            Ok(answer) if is_flat(&answer) => Settled::Answer(answer),
            Ok(_) => Settled::Fault(Fault::failed(FailureKind::Protocol, "nested too deeply")),
            Err(fault) => Settled::Fault(fault),
        }
    }
}

/// How deeply a structured answer, or the arguments of a tool, may be nested. What reads a record
/// gives up at 128, and a record adds some levels of its own.
const NESTING: u32 = 100;

fn is_flat(answer: &Answer) -> bool {
    let arguments = answer.tool_calls.iter().map(|call| &call.arguments);
    let mut values = answer.json.iter().chain(&answer.provider).chain(arguments);
    values.all(|value| is_within(NESTING, value))
}

fn is_within(levels: u32, value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => false,
        Value::Array(items) => items.iter().all(|item| is_within(levels - 1, item)),
        Value::Object(fields) => fields.values().all(|field| is_within(levels - 1, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
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
    /// If the fork is another attempt at that run: how many requests each agent was sent there. The
    /// numbers of its calls go on from there, so that a script says what it has not said yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<BTreeMap<AgentId, u64>>,
}

impl Origin {
    /// Whether the run is another attempt at that one.
    pub fn is_retried(&self) -> bool {
        self.sent.is_some()
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Whether it did what it was for.
    pub done: bool,
    /// Whether it came to a bound instead (graph.md §9).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// The limit of its own that it came to instead, if it was one of time or of what it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
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
        let (reason, partial) = (reason.into(), Vec::new());
        Ending { done: true, bound: false, limit: None, reason, answer, partial }
    }

    /// An end at a bound, whose answer is the replies to `keys` as far as they had come.
    pub fn bound(reason: &str, keys: Vec<Key>) -> Ending {
        Ending { done: false, bound: true, ..Ending::done(reason, keys) }
    }

    /// An end at a limit of the program's own, whose answer is the replies to `keys` as far as they had
    /// come.
    pub fn at_limit(limit: Limit, reason: &str, keys: Vec<Key>) -> Ending {
        Ending { done: false, limit: Some(limit), ..Ending::done(reason, keys) }
    }

    /// A failure that leaves the replies to `partial`.
    pub fn failed(reason: &str, partial: Vec<Key>) -> Ending {
        let reason = reason.into();
        Ending { done: false, bound: false, limit: None, reason, answer: None, partial }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::ToolCall;

    fn refusal(json: &str) -> String {
        Record::parse(json).expect_err("it is no record").to_string()
    }

    #[test]
    fn an_unknown_event_is_refused_by_name() {
        let why = refusal(r#"{"seq":1,"at":0,"event":"promoted","key":"a"}"#);
        assert!(why.starts_with("unknown variant `promoted`"), "{why}");
    }

    #[test]
    fn an_unknown_field_of_a_known_event_is_refused_with_its_path() {
        let line = r#"{"seq":2,"at":0,"event":"resumed","wall":7,"host":"x"}"#;
        assert_eq!(refusal(line), "unknown field `host`");
        let call = r#"{"kind":"agent","agent":"a","parts":["task",{"quote":"k"}]}"#;
        let line = |call: &str| {
            format!(r#"{{"seq":2,"at":0,"event":"asked","key":"a","call":{call},"nth":1}}"#)
        };
        assert_eq!(Record::parse(&line(call)).expect("it is known").to_json(), line(call));
        let warmer = call.replace("\"parts\"", "\"temperature\":1,\"parts\"");
        assert_eq!(refusal(&line(&warmer)), "unknown field `call.temperature`");
        let longer = call.replace("task", "whole");
        assert!(refusal(&line(&longer)).starts_with("unknown variant `whole`"));
    }

    #[test]
    fn what_no_run_writes_so_is_refused_even_if_it_means_the_same() {
        let line = |text: &str, tokens: &str| {
            format!(
                r#"{{"seq":2,"at":9,"event":"answered","key":"a","attempt":1,"answer":{{"text":{text}}},"usage":{{"input":{tokens},"output":1}}}}"#
            )
        };
        let written = line(r#""né""#, "5");
        let same = Record::parse(&written).expect("it is written so").to_json();
        assert_eq!(same, written);
        let blank = written.replacen(':', ": ", 1);
        let sorted = written.replace(r#""seq":2,"at":9"#, r#""at":9,"seq":2"#);
        let with_null = written.replacen(r#""key""#, r#""origin":null,"key""#, 1);
        let escaped = line(r#""n\u00e9""#, "5");
        for (other, at) in [(blank, 7), (sorted, 2), (with_null, 36), (escaped, 76)] {
            let told = refusal(&other);
            let expected =
                format!("from byte {at} on it is written otherwise than any run writes it");
            assert_eq!(told, expected, "{other}");
        }
        assert!(Record::parse(&line(r#""né""#, "5.0")).is_err());
        assert!(Record::parse(&(written + "\n")).is_err());
    }

    #[test]
    fn a_record_that_breaks_off_is_refused() {
        let line = r#"{"seq":2,"at":9,"event":"cancel_requested"}"#;
        for end in 0..line.len() {
            assert!(Record::parse(&line[..end]).is_err(), "{}", &line[..end]);
        }
        assert!(Record::parse(line).is_ok());
    }

    fn nested(levels: u32) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }

    fn kept(answer: Answer) -> bool {
        let settled = Settled::from(Ok(answer.into()));
        let is_answer = matches!(settled, Settled::Answer(_));
        let (key, usage) = (Key::parse("a"), Usage::default());
        let event = Event::Answered { key, attempt: 1, settled, usage };
        let record = Record { seq: 1, at: Time::default(), event };
        assert_eq!(Record::parse(&record.to_json()).expect("it can be read back"), record);
        is_answer
    }

    #[test]
    fn an_answer_that_could_not_be_read_back_counts_as_failed() {
        let using = |arguments| {
            let tool_calls = vec![ToolCall { id: "1".into(), name: "t".into(), arguments }];
            Answer { tool_calls, ..Answer::default() }
        };
        let from = |value| Answer { provider: Some(value), ..Answer::default() };
        for (levels, is_kept) in [(0, true), (100, true), (101, false), (127, false), (500, false)]
        {
            assert_eq!(kept(Answer::json(nested(levels))), is_kept, "{levels}");
            assert_eq!(kept(using(nested(levels))), is_kept, "{levels}");
            assert_eq!(kept(from(nested(levels))), is_kept, "{levels}");
        }
    }

    #[test]
    fn a_structured_answer_with_the_key_error_counts_as_failed() {
        let outcome = |value| Outcome::from(Settled::Answer(Answer::json(value).into()));
        let failed = |text: &str| Err(Fault::failed(FailureKind::Harness, text));
        assert_eq!(outcome(json!({ "error": "boom" })), failed("boom"));
        assert_eq!(outcome(json!({ "n": 1, "error": { "code": 5 } })), failed("{\"code\":5}"));
        assert!(outcome(json!({ "errors": [] })).is_ok());
        assert!(outcome(json!([{ "error": "boom" }])).is_ok());
    }
}
