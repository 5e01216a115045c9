//! What coding agents print of what they did (rules.md 12.4, 12.8).
//!
//! A record outranks the exit code. No record where one is due is a failure, whatever was printed;
//! events that are not known are passed over.

use folkmoot_core::call::{Answer, FailureKind};
use serde_json::Value;

use crate::{
    process::{Exit, Ran},
    reported::{CALL, Reported, total},
};

/// How much of the end of what was printed stands in a fault, in characters.
const TAIL: usize = 400;

/// What a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Its reply and nothing else.
    Text,
    /// One JSON value with the reply.
    Json,
    /// JSON values, one a line, the last one that is a reply counts; others are events.
    Jsonl,
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// A reply, and what is told of what it used.
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    pub(super) answer: Answer,
    pub(super) usage: Reported,
}

/// Why there is no reply; without words of its own, what was printed last tells it.
#[derive(Debug, PartialEq)]
pub(crate) struct Failed {
    pub(crate) kind: FailureKind,
    pub(crate) text: Option<String>,
    /// What is told of what was used all the same.
    pub(crate) usage: Reported,
}

/// Reads what a program printed.
pub(super) fn read(record: Record, ran: &Ran) -> Result<Told, Failed> {
    let found = match record {
        Record::Text => return text(ran),
        Record::Json => serde_json::from_str(ran.stdout.trim()).ok().and_then(|it| own(&it)),
        Record::Jsonl => {
            let last = values(&ran.stdout).filter_map(|it| own_last(&it)).last();
            let is_none = last.is_none() && values(&ran.stdout).any(|it| it.is_object());
            // What it said before somebody ended it was not its last word.
            if is_none && ran.exit == Exit::Code(0) {
                Some(unfinished(&ran.stdout))
            } else if matches!(ran.exit, Exit::Code(_)) {
                last
            } else {
                last.map(|it| cut_off(it.map_or_else(|why| why.usage, |told| told.usage)))
            }
        }
        Record::Claude => values(&ran.stdout).filter_map(|it| claude(&it)).last(),
        Record::Codex => codex(values(&ran.stdout)),
        Record::Gemini => json_in(&ran.stdout).and_then(|it| gemini(&it)),
        Record::Opencode => opencode(values(&ran.stdout), ran.exit),
    };
    let found = found.map(|found| found.and_then(not_blank));
    found.unwrap_or_else(|| {
        let is_broken = matches!(ran.exit, Exit::Code(0));
        let kind = if is_broken { FailureKind::Protocol } else { FailureKind::Harness };
        let text = is_broken.then(|| "it printed no record".to_owned());
        Err(Failed { kind, text, usage: Reported::default() })
    })
}

/// Only who is declared to answer in plain text does.
fn text(ran: &Ran) -> Result<Told, Failed> {
    match ran.exit {
        Exit::Code(0) => not_blank(Told {
            answer: Answer::text(ran.stdout.trim_end()),
            usage: Reported::default(),
        }),
        Exit::Code(_) | Exit::Killed(_) | Exit::TimedOut => {
            let usage = Reported::default();
            Err(Failed { kind: FailureKind::Harness, text: None, usage })
        }
    }
}

/// Empty output is no reply (rules.md 10.6).
fn not_blank(told: Told) -> Result<Told, Failed> {
    if !told.answer.is_blank() {
        return Ok(told);
    }
    let text = Some("its reply is empty".to_owned());
    Err(Failed { kind: FailureKind::Incomplete, text, usage: told.usage })
}

/// The JSON values that are lines of their own.
fn values(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line.trim()).ok())
}

/// The JSON object that a text ends with, behind whatever else was printed.
fn json_in(text: &str) -> Option<Value> {
    let mut starts = text.match_indices('{').map(|(at, _)| at);
    starts.find_map(|at| serde_json::from_str(text[at..].trim()).ok())
}

fn failed(text: &str, usage: Reported) -> Result<Told, Failed> {
    Err(Failed { kind: kind_of(text), text: Some(text.to_owned()), usage })
}

/// What kind of failure somebody tells of in words.
pub(crate) fn kind_of(text: &str) -> FailureKind {
    let lower = text.to_lowercase();
    let limited = ["rate limit", "usage limit", "quota", "429"].iter().any(|it| lower.contains(it));
    let refused =
        ["api key", "log in", "login", "unauthorized", "401"].iter().any(|it| lower.contains(it));
    if limited {
        FailureKind::RateLimited
    } else if refused {
        FailureKind::Auth
    } else {
        FailureKind::Harness
    }
}

/// It ended before it was done.
fn cut_off(usage: Reported) -> Result<Told, Failed> {
    let text = Some("it ended before its turn was over".to_owned());
    Err(Failed { kind: FailureKind::Incomplete, text, usage })
}

/// It said something, but not what comes last.
fn unfinished(printed: &str) -> Result<Told, Failed> {
    let printed = printed.trim();
    let cut = printed.char_indices().rev().nth(TAIL - 1).map_or(0, |(at, _)| at);
    let text = Some(format!("it ended without a reply; it printed last: {}", &printed[cut..]));
    Err(Failed { kind: FailureKind::Incomplete, text, usage: Reported::default() })
}

fn told(text: &str, usage: Reported) -> Result<Told, Failed> {
    Ok(Told { answer: Answer::text(text), usage })
}

/// The record of any program: a text, or an object with a reply and perhaps its usage; any other
/// object is the reply itself.
fn own(value: &Value) -> Option<Result<Told, Failed>> {
    let usage = value.get("usage").map(used).unwrap_or_default();
    if let Some(error) = value.get("error").filter(|it| !it.is_null() && **it != false) {
        return Some(failed(&words(error), usage));
    }
    match (reply(value), value) {
        (Some(text), _) => Some(told(text, usage)),
        (None, Value::Object(_) | Value::Array(_)) if value.get("usage").is_none() => {
            Some(Ok(Told { answer: Answer::json(value.clone()), usage }))
        }
        _ => None,
    }
}

fn reply(value: &Value) -> Option<&str> {
    let keys = ["reply", "result", "response", "text", "output"];
    keys.iter().find_map(|key| value.get(key)?.as_str()).or(value.as_str())
}

/// The record of any program that tells of events too: what has a type is one of them, unless that names
/// an end or an error; so is what has no reply.
fn own_last(value: &Value) -> Option<Result<Told, Failed>> {
    const ENDS: [&str; 10] = [
        "result",
        "reply",
        "response",
        "answer",
        "final",
        "done",
        "end",
        "complete",
        "completed",
        "output",
    ];
    let kind = value["type"].as_str().map(str::to_lowercase);
    let last = kind.as_deref().and_then(|kind| kind.rsplit(|c: char| !c.is_alphanumeric()).next());
    match last {
        Some("error") => Some(own(value).filter(Result::is_err).unwrap_or_else(|| {
            failed(&words(value), value.get("usage").map(used).unwrap_or_default())
        })),
        Some(kind) if !ENDS.contains(&kind) => None,
        Some(_) | None => own(value).filter(|it| it.is_err() || reply(value).is_some()),
    }
}

fn words(error: &Value) -> String {
    let message = error.get("message").or_else(|| error.pointer("/data/message"));
    let text = message.and_then(Value::as_str).or(error.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

/// The usage that most tell: what was read, and what was written.
fn used(usage: &Value) -> Reported {
    Reported {
        read: total(usage, &["/input_tokens"], CALL),
        written: total(usage, &["/output_tokens"], CALL),
        ..Reported::default()
    }
}

/// One object of the type `result`. What was read from a cache and written to it is counted apart.
fn claude(value: &Value) -> Option<Result<Told, Failed>> {
    if value["type"] != "result" {
        return None;
    }
    let text = value["result"].as_str();
    let is_done = value["subtype"].as_str().is_none_or(|subtype| subtype == "success");
    let parts = ["/input_tokens", "/cache_read_input_tokens", "/cache_creation_input_tokens"];
    let told_of = |usage| Reported {
        read: total(usage, &parts, CALL),
        cached: total(usage, &parts[1..2], CALL),
        cache_write: total(usage, &parts[2..], CALL),
        ..used(usage)
    };
    let usage = value.get("usage").map(told_of).unwrap_or_default();
    if value["is_error"] == true || !is_done {
        return Some(failed(text.or(value["subtype"].as_str()).unwrap_or("it failed"), usage));
    }
    text.map(|text| told(text, usage))
}

/// Events, of which the last message of the agent is its reply once its turn is completed.
fn codex(events: impl Iterator<Item = Value>) -> Option<Result<Told, Failed>> {
    let (mut text, mut usage, mut error, mut is_done) = (None, Reported::default(), None, false);
    for event in events {
        match event["type"].as_str() {
            Some("turn.started") => is_done = false,
            Some("item.completed")
                if event.pointer("/item/type") == Some(&"agent_message".into()) =>
            {
                text = event.pointer("/item/text").and_then(Value::as_str).map(str::to_owned);
            }
            Some("turn.completed") => {
                let told_of = |usage| {
                    let cached = total(usage, &["/cached_input_tokens"], CALL);
                    Reported { cached, ..used(usage) }
                };
                usage = event.get("usage").map(told_of).unwrap_or_default();
                (error, is_done) = (None, true);
            }
            Some("turn.failed") => error = event.get("error").map(words),
            Some("error") => error = error.or(Some(words(&event))),
            Some(_) | None => {}
        }
    }
    match (error, text) {
        (Some(error), _) => Some(failed(&error, usage)),
        (None, Some(text)) if is_done => Some(told(&text, usage)),
        (None, Some(_)) => Some(cut_off(usage)),
        (None, None) => None,
    }
}

/// One object; tokens are told by model.
fn gemini(value: &Value) -> Option<Result<Told, Failed>> {
    let models = value.pointer("/stats/models").and_then(Value::as_object);
    let told_of = |model| Reported {
        read: total(model, &["/tokens/prompt"], CALL),
        cached: total(model, &["/tokens/cached"], CALL),
        cache_write: None,
        written: total(model, &["/tokens/candidates", "/tokens/thoughts"], CALL),
    };
    let models = models.into_iter().flat_map(|models| models.values());
    let usage = models.map(told_of).reduce(Reported::and).unwrap_or_default();
    if let Some(error) = value.get("error").filter(|it| !it.is_null()) {
        return Some(failed(&words(error), usage));
    }
    value["response"].as_str().map(|text| told(text, usage))
}

/// Events; the reply is what is said after the last tool, and each step tells what it used.
fn opencode(events: impl Iterator<Item = Value>, exit: Exit) -> Option<Result<Told, Failed>> {
    let (mut text, mut usage, mut error) = (String::new(), None::<Reported>, None);
    for event in events {
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") => text += part["text"].as_str().unwrap_or_default(),
            Some("tool_use") => text.clear(),
            Some("step_finish") => {
                let tokens = &part["tokens"];
                let step = Reported {
                    read: total(tokens, &["/input", "/cache/read", "/cache/write"], CALL),
                    cached: total(tokens, &["/cache/read"], CALL),
                    cache_write: total(tokens, &["/cache/write"], CALL),
                    written: total(tokens, &["/output", "/reasoning"], CALL),
                };
                usage = Some(usage.map_or(step, |before| before.and(step)));
            }
            Some("error") => error = event.get("error").map(words),
            Some(_) | None => {}
        }
    }
    let usage = usage.unwrap_or_default();
    match (error, text.is_empty()) {
        (Some(error), _) => Some(failed(&error, usage)),
        (None, false) if exit == Exit::Code(0) => Some(told(&text, usage)),
        (None, false) => Some(cut_off(usage)),
        (None, true) => None,
    }
}
