//! The issues that a phase is made of (orchestrate.md §2).

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Refusals, Role, helped, refused};
use crate::{diagnostic::quoted, names, request::LARGEST};

/// The most issues of a phase.
const MOST: usize = 1_000;

/// The longest id, in bytes.
const LONGEST: usize = 200;

/// What issues look like.
const EXAMPLE: &str = r#"for example [{"id": "1", "title": "Parse durations"}]"#;

const FIELDS: [&str; 8] =
    ["id", "title", "body", "depends_on", "files", "write", "priority", "role"];

/// Something that is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// What it is called.
    pub id: Arc<str>,
    /// In a line.
    pub title: Arc<str>,
    /// At length.
    pub body: Arc<str>,
    /// The issues that must be done before.
    pub depends_on: Vec<Arc<str>>,
    /// The files that it will change; a folder ends in `/`.
    pub files: Vec<Arc<str>>,
    /// Whether anything is written for it.
    pub write: bool,
    /// The higher the earlier.
    pub priority: i64,
    /// Who is to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl Issue {
    /// The issues of a JSON array, or of the text of one; else all that is wrong with it
    /// (rules.md 3.7).
    pub fn read(given: &Value) -> Result<Vec<Issue>, Refusals> {
        let bad = |why: String| vec![helped("invalid_issues_json", why, EXAMPLE)];
        let parsed: Value;
        let given = match given {
            Value::String(text) if text.len() > LARGEST => {
                return Err(bad("the issues are over 1 MiB".to_owned()));
            }
            Value::String(text) => {
                let read = serde_json::from_str(text);
                parsed = read.map_err(|error| bad(format!("the issues are no JSON: {error}")))?;
                &parsed
            }
            other => other,
        };
        let Value::Array(items) = given else {
            return Err(bad("the issues are not an array".to_owned()));
        };
        if items.is_empty() || items.len() > MOST {
            return Err(bad(format!("there are 1 to {MOST} issues, not {}", items.len())));
        }
        let mut reading = Reading::default();
        let issues: Vec<Issue> =
            (items.iter().enumerate()).filter_map(|(at, item)| reading.issue(at, item)).collect();
        let mut ids = BTreeSet::new();
        for issue in &issues {
            if !ids.insert(&issue.id) {
                reading.wrong(format!("issue {} is there twice", quoted(&issue.id)));
            }
        }
        if reading.told.is_empty() { Ok(issues) } else { Err(reading.told) }
    }
}

#[derive(Default)]
struct Reading {
    told: Refusals,
    at: usize,
}

impl Reading {
    fn wrong(&mut self, why: impl Into<String>) {
        self.told.push(refused("invalid_issues_json", why));
    }

    fn field<'a>(
        &mut self,
        item: &'a Map<String, Value>,
        name: &str,
        wants: &str,
    ) -> Option<&'a Value> {
        let value = item.get(name).filter(|value| !value.is_null())?;
        let is_right = match wants {
            "a text" => value.is_string(),
            "true or false" => value.is_boolean(),
            "a whole number" => value.is_i64(),
            _ => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        };
        if !is_right {
            let at = self.at;
            self.wrong(format!("issue {at}: {name} is {wants}"));
        }
        Some(value).filter(|_| is_right)
    }

    fn text(&mut self, item: &Map<String, Value>, name: &str) -> Arc<str> {
        let text = self.field(item, name, "a text").and_then(Value::as_str);
        text.unwrap_or_default().into()
    }

    fn list(&mut self, item: &Map<String, Value>, name: &str) -> Vec<Arc<str>> {
        let list = self.field(item, name, "a list of texts").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(|it| it.trim().into()).collect()
    }

    fn issue(&mut self, at: usize, item: &Value) -> Option<Issue> {
        self.at = at + 1;
        let Value::Object(item) = item else {
            self.wrong(format!("issue {} is not an object", self.at));
            return None;
        };
        for name in item.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            let help = names::suggestion(name, FIELDS);
            let why = format!("issue {}: unknown field {}", self.at, quoted(name));
            self.told.push(crate::refusal::Refusal { help, ..refused("invalid_issues_json", why) });
        }
        let id: Arc<str> = self.text(item, "id").trim().into();
        if id.is_empty() || id.len() > LONGEST || id.chars().any(char::is_control) {
            let at = self.at;
            self.wrong(format!("issue {at}: id is one line of 1 to {LONGEST} bytes"));
        }
        let role = self.text(item, "role");
        let role = if role.is_empty() { None } else { self.role(&role) };
        let body = self.text(item, "body");
        let title = match self.text(item, "title") {
            title if title.trim().is_empty() => id.clone(),
            title => title,
        };
        Some(Issue {
            title,
            body,
            depends_on: self.list(item, "depends_on"),
            files: self.list(item, "files"),
            write: self.field(item, "write", "true or false").is_none_or(|it| *it == true),
            priority: self
                .field(item, "priority", "a whole number")
                .map_or(0, |it| it.as_i64().unwrap_or(0)),
            role,
            id,
        })
    }

    fn role(&mut self, name: &str) -> Option<Role> {
        match Role::named(name) {
            Ok(role) => Some(role),
            Err(unknown) => {
                self.told.extend(unknown);
                None
            }
        }
    }
}
