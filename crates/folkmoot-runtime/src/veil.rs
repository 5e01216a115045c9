//! What lies between the world and what is recorded or shown of it: known secrets do not pass
//! (rules.md 14.6).

use std::sync::{Arc, Mutex, PoisonError};

use folkmoot_core::{
    call::{Answer, Fault, Outcome, ToolCall},
    session::{Decision, Session},
};
use serde_json::Value;

use crate::{
    backend::{Delta, OnDelta},
    secrets::Secrets,
};

/// What came of a call, with every secret masked.
pub(crate) fn outcome(secrets: &Secrets, outcome: Outcome) -> Outcome {
    match outcome {
        _ if secrets.is_empty() => outcome,
        Ok(answer) => Ok(answered(secrets, Arc::unwrap_or_clone(answer)).into()),
        Err(Fault::Failed { kind, text }) => Err(Fault::failed(kind, words(secrets, text))),
        Err(
            Fault::TimedOut
            | Fault::Deadline
            | Fault::Cancelled
            | Fault::OverBudget { .. }
            | Fault::Lost
            | Fault::Unwanted,
        ) => outcome,
    }
}

fn answered(secrets: &Secrets, answer: Answer) -> Answer {
    let Answer { text, json, reasoning, tool_calls, asks, provider, session, warnings } = answer;
    // The text of a structured answer is the structure.
    let is_structure = json.as_ref().is_some_and(|json| *text == *json.to_string());
    let json = json.map(|json| value(secrets, json));
    let text = match &json {
        Some(json) if is_structure => json.to_string().into(),
        Some(_) | None => words(secrets, text),
    };
    let called = |it: ToolCall| ToolCall {
        id: words(secrets, it.id),
        name: words(secrets, it.name),
        arguments: value(secrets, it.arguments),
    };
    Answer {
        text,
        json,
        reasoning: reasoning.map(|text| words(secrets, text)),
        tool_calls: tool_calls.into_iter().map(called).collect(),
        asks,
        provider: provider.map(|fields| value(secrets, fields)),
        session: session.map(|it| held(secrets, Arc::unwrap_or_clone(it)).into()),
        warnings: warnings.into_iter().map(|text| words(secrets, text)).collect(),
    }
}

fn held(secrets: &Secrets, session: Session) -> Session {
    let Session { program, decisions, unlisted, tool_calls, noise } = session;
    let decided = |it: Decision| Decision {
        what: words(secrets, it.what),
        tool: it.tool.map(|name| words(secrets, name)),
        allowed: it.allowed,
        digest: it.digest,
    };
    Session {
        program: program.map(|name| words(secrets, name)),
        decisions: decisions.into_iter().map(decided).collect(),
        unlisted,
        tool_calls,
        noise,
    }
}

fn words(secrets: &Secrets, text: Arc<str>) -> Arc<str> {
    secrets.masked(&text).map_or(text, Into::into)
}

/// The same value, secrets masked in names and texts.
fn value(secrets: &Secrets, value: Value) -> Value {
    let masked = |text: String| secrets.masked(&text).unwrap_or(text);
    match value {
        Value::String(text) => masked(text).into(),
        Value::Array(items) => items.into_iter().map(|it| self::value(secrets, it)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, it)| (masked(name), self::value(secrets, it))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// What comes in from one call, on its way to who looks on. What may be the beginning of a secret waits
/// until more has come.
pub(crate) struct Veil<'a> {
    secrets: &'a Secrets,
    show: OnDelta<'a>,
    held: Mutex<(Kind, String)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Reasoning,
}

impl Kind {
    fn delta(self, text: &str) -> Delta<'_> {
        match self {
            Kind::Text => Delta::Text(text),
            Kind::Reasoning => Delta::Reasoning(text),
        }
    }
}

impl<'a> Veil<'a> {
    pub(crate) fn new(secrets: &'a Secrets, show: OnDelta<'a>) -> Veil<'a> {
        Veil { secrets, show, held: Mutex::new((Kind::Text, String::new())) }
    }

    /// Shows what may be shown by now.
    pub(crate) fn show(&self, delta: Delta<'_>) {
        match delta {
            Delta::Text(text) => self.piece(Kind::Text, text),
            Delta::Reasoning(text) => self.piece(Kind::Reasoning, text),
            Delta::Retry(why) => {
                // What came before is void.
                self.held.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
                (self.show)(Delta::Retry(&self.secrets.mask(why)));
            }
        }
    }

    /// Shows the rest: nothing follows that would make it a secret.
    pub(crate) fn lift(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, text) = (held.0, std::mem::take(&mut held.1));
        if !text.is_empty() {
            (self.show)(kind.delta(&self.secrets.mask(&text)));
        }
    }

    fn piece(&self, kind: Kind, text: &str) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.0 != kind {
            let before = std::mem::replace(&mut *held, (kind, String::new()));
            if !before.1.is_empty() {
                (self.show)(before.0.delta(&self.secrets.mask(&before.1)));
            }
        }
        let mut masked = String::new();
        self.secrets.push(&mut held.1, text, &mut masked);
        if !masked.is_empty() {
            (self.show)(kind.delta(&masked));
        }
    }
}
