//! Why a request cannot be carried out as it stands: told alike wherever it comes from
//! (collaborate.md §1).

use std::fmt;

use serde_json::{Map, Value, json};

use crate::diagnostic::Diagnostic;

/// A request that cannot be carried out as it stands; nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of mistake it is, for programs.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// What would be allowed there, where that can be listed.
    pub allowed: Vec<String>,
    /// Where it is, if it is in a team file: its line, its column, its path and the like.
    pub place: Option<Box<Map<String, Value>>>,
    /// What is wrong besides.
    pub also: Vec<Refusal>,
}

impl Refusal {
    /// A refusal without more to say.
    pub fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        let (help, allowed, also) = (None, Vec::new(), Vec::new());
        Refusal { code, message: message.into(), help, allowed, place: None, also }
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Refusal {
        Refusal { help: Some(help.into()), ..self }
    }

    /// A finding in a team file of this text.
    pub fn found(finding: &Diagnostic, text: &str) -> Refusal {
        let located = serde_json::to_value(finding.located(text));
        let told = ["code", "message", "help"];
        let place = match located {
            Ok(Value::Object(located)) => {
                Some(located.into_iter().filter(|(key, _)| !told.contains(&&**key)).collect())
            }
            Ok(_) | Err(_) => None,
        };
        let help = finding.help.clone();
        let place = place.map(Box::new);
        Refusal { help, place, ..Refusal::new(finding.code, finding.message.clone()) }
    }

    /// All of them as one; nothing if there are none.
    pub fn all(refusals: impl IntoIterator<Item = Refusal>) -> Option<Refusal> {
        let mut refusals = refusals.into_iter();
        let first = refusals.next()?;
        Some(Refusal { also: refusals.collect(), ..first })
    }

    /// It, and what is wrong besides.
    pub fn each(&self) -> impl Iterator<Item = &Refusal> {
        std::iter::once(self).chain(&self.also)
    }

    /// The refusal as programs read it: the first mistake, and all of them.
    pub fn told(&self) -> Value {
        let errors: Vec<Value> = self.each().map(Refusal::alone).collect();
        json!({ "error": errors[0], "errors": errors })
    }

    /// This mistake alone.
    fn alone(&self) -> Value {
        let mut told = Map::new();
        told.insert("code".to_owned(), self.code.into());
        told.insert("message".to_owned(), self.message.as_str().into());
        let is_position = |key: &str| matches!(key, "line" | "column");
        let place = self.place.as_deref().cloned().unwrap_or_default();
        let (at, more): (Vec<_>, Vec<_>) = place.into_iter().partition(|(key, _)| is_position(key));
        told.extend(at);
        told.extend(self.help.as_deref().map(|help| ("help".to_owned(), help.into())));
        told.extend(more);
        if !self.allowed.is_empty() {
            told.insert("allowed".to_owned(), json!(self.allowed));
        }
        Value::Object(told)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
