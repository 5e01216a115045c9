//! What coding agents print of what they did (rules.md 12.4, 12.8).
//!
//! A record outranks the exit code. No record where one is due is a failure, whatever was printed;
//! events that are not known are passed over.

use folkmoot_core::call::{Answer, FailureKind, Tokens, Usage};
use serde_json::Value;

use crate::process::{Exit, Ran};

/// What a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Its reply and nothing else.
    Text,
    /// One JSON value with the reply.
    Json,
    /// JSON values, one a line, the last one with a reply counts.
    Jsonl,
    Claude,
    Codex,
    Gemini,
    Opencode,
}

/// A reply, and what it used, if that is told.
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    pub(super) answer: Answer,
    pub(super) usage: Option<Usage>,
}

/// Why there is no reply; without words of its own, what was printed last tells it.
#[derive(Debug, PartialEq)]
pub(crate) struct Failed {
    pub(crate) kind: FailureKind,
    pub(crate) text: Option<String>,
    /// What was used all the same, if that is told.
    pub(crate) usage: Option<Usage>,
}

/// Reads what a program printed.
pub(super) fn read(record: Record, ran: &Ran) -> Result<Told, Failed> {
    let found = match record {
        Record::Text => return text(ran),
        Record::Json => serde_json::from_str(ran.stdout.trim()).ok().and_then(|it| own(&it)),
        Record::Jsonl => {
            let last = values(&ran.stdout).filter_map(|it| own(&it)).last();
            // What it said before somebody ended it was not its last word.
            if matches!(ran.exit, Exit::Code(_)) {
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
    found.unwrap_or_else(|| {
        let is_broken = matches!(ran.exit, Exit::Code(0));
        let kind = if is_broken { FailureKind::Protocol } else { FailureKind::Harness };
        let text = is_broken.then(|| "it printed no record".to_owned());
        Err(Failed { kind, text, usage: None })
    })
}

/// Only who is declared to answer in plain text does.
fn text(ran: &Ran) -> Result<Told, Failed> {
    match ran.exit {
        Exit::Code(0) => Ok(Told { answer: Answer::text(ran.stdout.trim_end()), usage: None }),
        Exit::Code(_) | Exit::Killed(_) | Exit::TimedOut => {
            Err(Failed { kind: FailureKind::Harness, text: None, usage: None })
        }
    }
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

fn failed(text: &str, usage: Option<Usage>) -> Result<Told, Failed> {
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
fn cut_off(usage: Option<Usage>) -> Result<Told, Failed> {
    let text = Some("it ended before its turn was over".to_owned());
    Err(Failed { kind: FailureKind::Incomplete, text, usage })
}

fn told(text: &str, usage: Option<Usage>) -> Result<Told, Failed> {
    Ok(Told { answer: Answer::text(text), usage })
}

/// The record of any program: a text, or an object with a reply and perhaps its usage; any other
/// object is the reply itself.
fn own(value: &Value) -> Option<Result<Told, Failed>> {
    let usage = value.get("usage").map(|usage| used(usage, "input_tokens", "output_tokens"));
    if let Some(error) = value.get("error").filter(|it| !it.is_null() && **it != false) {
        return Some(failed(&words(error), usage));
    }
    let keys = ["reply", "result", "response", "text", "output"];
    let text = keys.iter().find_map(|key| value.get(key)?.as_str()).or(value.as_str());
    match (text, value) {
        (Some(text), _) => Some(told(text, usage)),
        (None, Value::Object(_) | Value::Array(_)) if usage.is_none() => {
            Some(Ok(Told { answer: Answer::json(value.clone()), usage }))
        }
        _ => None,
    }
}

fn words(error: &Value) -> String {
    let message = error.get("message").or_else(|| error.pointer("/data/message"));
    let text = message.and_then(Value::as_str).or(error.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn used(usage: &Value, input: &str, output: &str) -> Usage {
    let tokens = Tokens {
        input: number(usage, &format!("/{input}")),
        output: number(usage, &format!("/{output}")),
        ..Tokens::default()
    };
    Usage { tokens, cost: None, estimated: false }
}

/// One object of the type `result`. What was read from a cache and written to it is counted apart.
fn claude(value: &Value) -> Option<Result<Told, Failed>> {
    if value["type"] != "result" {
        return None;
    }
    let text = value["result"].as_str();
    let is_done = value["subtype"].as_str().is_none_or(|subtype| subtype == "success");
    let usage = value.get("usage").map(|usage| {
        let cached = number(usage, "/cache_read_input_tokens");
        let cache_write = number(usage, "/cache_creation_input_tokens");
        let known = used(usage, "input_tokens", "output_tokens");
        Usage { tokens: Tokens { cached, cache_write, ..known.tokens }, ..known }
    });
    if value["is_error"] == true || !is_done {
        return Some(failed(text.or(value["subtype"].as_str()).unwrap_or("it failed"), usage));
    }
    text.map(|text| told(text, usage))
}

/// Events, of which the last message of the agent is its reply once its turn is completed.
fn codex(events: impl Iterator<Item = Value>) -> Option<Result<Told, Failed>> {
    let (mut text, mut usage, mut error, mut is_done) = (None, None, None, false);
    for event in events {
        match event["type"].as_str() {
            Some("turn.started") => is_done = false,
            Some("item.completed")
                if event.pointer("/item/type") == Some(&"agent_message".into()) =>
            {
                text = event.pointer("/item/text").and_then(Value::as_str).map(str::to_owned);
            }
            Some("turn.completed") => {
                usage = event.get("usage").map(|usage| {
                    let cached = number(usage, "/cached_input_tokens");
                    let known = used(usage, "input_tokens", "output_tokens");
                    let input = known.tokens.input.saturating_sub(cached);
                    Usage { tokens: Tokens { input, cached, ..known.tokens }, ..known }
                });
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
    let usage = models.map(|models| {
        let sum = |pointer: &str| models.values().map(|model| number(model, pointer)).sum::<u64>();
        let cached = sum("/tokens/cached");
        let tokens = Tokens {
            input: sum("/tokens/prompt").saturating_sub(cached),
            cached,
            output: sum("/tokens/candidates") + sum("/tokens/thoughts"),
            ..Tokens::default()
        };
        Usage { tokens, cost: None, estimated: false }
    });
    if let Some(error) = value.get("error").filter(|it| !it.is_null()) {
        return Some(failed(&words(error), usage));
    }
    value["response"].as_str().map(|text| told(text, usage))
}

/// Events; the reply is what is said after the last tool, and each step tells what it used.
fn opencode(events: impl Iterator<Item = Value>, exit: Exit) -> Option<Result<Told, Failed>> {
    let (mut text, mut usage, mut error) = (String::new(), None::<Usage>, None);
    for event in events {
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") => text += part["text"].as_str().unwrap_or_default(),
            Some("tool_use") => text.clear(),
            Some("step_finish") => {
                let tokens = &part["tokens"];
                let step = Tokens {
                    input: number(tokens, "/input"),
                    cached: number(tokens, "/cache/read"),
                    cache_write: number(tokens, "/cache/write"),
                    output: number(tokens, "/output") + number(tokens, "/reasoning"),
                };
                let step = Usage { tokens: step, cost: None, estimated: false };
                usage = Some(usage.map_or(step, |usage| usage + step));
            }
            Some("error") => error = event.get("error").map(words),
            Some(_) | None => {}
        }
    }
    match (error, text.is_empty()) {
        (Some(error), _) => Some(failed(&error, usage)),
        (None, false) if exit == Exit::Code(0) => Some(told(&text, usage)),
        (None, false) => Some(cut_off(usage)),
        (None, true) => None,
    }
}
