//! How single fields are judged, alike in every request.

use serde_json::{Map, Value};

use super::{LARGEST, LONGEST_WAIT};
use crate::{
    diagnostic::{Diagnostic, quoted},
    file::{
        collaboration::{PATTERNS, SIGNALS},
        overrides::{Given, Override},
        shape::{ENDLESS, LONGEST},
    },
    programs::pattern::Form,
    refusal::Refusal,
    team::Sandbox,
    time::Duration,
};

const LEVELS: [&str; 3] = ["read-only", "write", "full"];

/// What would be allowed where a mistake of this kind was made, if that can be listed.
pub(super) fn allowed(code: &str, form: Option<Form>) -> Vec<String> {
    match code {
        "unknown_pattern" => texts(PATTERNS),
        "invalid_sandbox" => texts(&LEVELS),
        "invalid_signals" => texts(SIGNALS),
        "unknown_role" => {
            form.into_iter().flat_map(Form::roles).map(|it| it.as_str().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Judges the fields one by one.
pub(super) struct Judging<'a> {
    pub(super) fields: &'a Map<String, Value>,
    pub(super) told: Vec<Refusal>,
}

impl Judging<'_> {
    pub(super) fn wrong(&mut self, code: &'static str, message: impl Into<String>) {
        self.told.push(Refusal::new(code, message));
    }

    /// Takes what a check of the same thing in a team file has found.
    pub(super) fn found(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        self.told.extend(found.into_iter().map(|it| Refusal::found(&it, "")));
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    pub(super) fn size_and_fields(&mut self, known: &'static [&'static str]) {
        let size: usize = self.fields.iter().map(|(key, value)| key.len() + size_of(value)).sum();
        if size > LARGEST {
            self.wrong("too_large", "the request is over 1 MiB");
        }
        for name in self.fields.keys().filter(|name| !known.contains(&&***name)) {
            let help = crate::names::suggestion(name, known.iter().copied());
            let message = format!("unknown field {}", quoted(name));
            self.told.push(Refusal { help, ..Refusal::new("unknown_field", message) });
        }
    }

    /// A text that may be long, and is judged where it is used.
    pub(super) fn words(&mut self, field: &str) -> String {
        match self.fields.get(field) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                self.wrong("bad_value", format!("{field} must be a text, not {}", kind_of(other)));
                String::new()
            }
        }
    }

    pub(super) fn task(&mut self) -> String {
        let task = self.text("task").unwrap_or_default().to_owned();
        if task.trim().is_empty() {
            self.wrong("task_required", "the task is missing");
        }
        task
    }

    pub(super) fn sandbox(&mut self) -> Option<Sandbox> {
        let given = self.fields.get("sandbox")?;
        let level = given.as_str().and_then(Sandbox::named);
        if level.is_none() {
            let message = format!("sandbox is {}, not {}", shown(given), LEVELS.join(", "));
            self.wrong("invalid_sandbox", message);
        }
        level
    }

    /// A whole number of at least 0.
    pub(super) fn whole(&mut self, field: &str, code: &'static str) -> Option<u64> {
        let given = self.fields.get(field)?;
        let is_digits =
            |text: &&str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let number = match given {
            Value::String(text) => {
                Some(text.trim()).filter(is_digits).and_then(|it| it.parse().ok())
            }
            Value::Number(number) => whole(number),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let number = number.filter(|number| *number <= ENDLESS);
        if number.is_none() {
            let message =
                format!("{field} must be a whole number of at least 0, not {}", shown(given));
            self.wrong(code, message);
        }
        number
    }

    /// Seconds, or `none`.
    pub(super) fn timeout(&mut self) -> Option<Value> {
        let given = self.fields.get("timeout")?;
        if given.as_str().is_some_and(|text| text.trim() == "none") {
            return Some("none".into());
        }
        let seconds = seconds(given).filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST);
        if seconds.is_none() {
            let message = format!("timeout must be a time above 0, not {}", shown(given));
            self.told
                .push(Refusal::new("invalid_timeout", message).help("seconds, or 30m, or none"));
        }
        seconds.map(Value::from)
    }

    /// How long the caller waits.
    pub(super) fn wait_s(&mut self) -> Option<f64> {
        let given = self.fields.get("wait_s")?;
        let wait = seconds(given).filter(|it| (0.0..=LONGEST_WAIT).contains(it));
        if wait.is_none() {
            let message = format!("wait_s must be from 0 to 3600 seconds, not {}", shown(given));
            self.wrong("invalid_wait_s", message);
        }
        wait
    }

    /// A text that is not blank.
    pub(super) fn name(&mut self, field: &str, code: &'static str) -> Option<String> {
        let given = self.fields.get(field)?;
        let name = given.as_str().map(str::trim).filter(|name| !name.is_empty());
        if name.is_none() {
            let message = format!("{field} must be a text, not {}", shown(given));
            self.wrong(code, message);
        }
        name.map(str::to_owned)
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, field: &str) -> bool {
        match self.fields.get(field) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                let message = format!("{field} must be true or false, not {}", shown(other));
                self.wrong("bad_value", message);
                false
            }
        }
    }
}

/// What wins over the team file.
pub(super) fn given(name: &str, value: Value) -> Override {
    Override { name: name.to_owned(), value: Given::Json(value) }
}

pub(super) fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// A foreign value as messages show it.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| crate::diagnostic::shown(&value.to_string()), quoted)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn seconds(given: &Value) -> Option<f64> {
    match given {
        Value::String(text) => Duration::parse(text).map(Duration::as_secs_f64),
        Value::Number(number) => number.as_f64(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn whole(number: &serde_json::Number) -> Option<u64> {
    let is_whole = |it: &f64| it.fract() == 0.0 && (0.0..=ENDLESS as f64).contains(it);
    number.as_u64().or_else(|| number.as_f64().filter(is_whole).map(|it| it as u64))
}

fn size_of(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}
