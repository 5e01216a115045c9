//! What a role hands on, and the memory that the hand-offs of all roles make (agents.md §7).
//!
//! A hand-off is read from the role's own last reply; if there is none, rules take it from that reply
//! and the tool calls before it. Nothing of this is stored: a prompt names the replies, and the memory
//! is made of them whenever it is shown. So nobody who reads it can change it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    call::{Answer, Call, Part},
    key::Key,
    known::Known,
    render::guessed,
    text::{shorten, spaced},
    verdict::Object,
    words::Language,
};

/// The most tokens of a hand-off.
pub(crate) const MOST_TOKENS: u64 = 2000;

/// The most entries of a list in a hand-off, and the most characters of one.
const MOST_ENTRIES: usize = 50;
const LONGEST_ENTRY: usize = 400;

/// The most bytes that one hand-off adds to a prompt: no character of more than one byte is taken for
/// less than a token, nor are more than three of one byte, and each entry stands beside its role.
pub(crate) const MOST_BYTES: u64 = 4 * MOST_TOKENS + 3 * MOST_ENTRIES as u64 * 64 + 256;

/// What a role hands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandOff {
    summary: String,
    artifacts: Vec<String>,
    decisions: Vec<String>,
    errors: Vec<String>,
}

/// How a hand-off came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// By the role.
    ByRole,
    /// By the role, which tried to write what only Folkmoot writes.
    OverMemory,
    /// By rules, from what the role said and did.
    ByRules,
}

impl HandOff {
    /// What the reply `key` hands on.
    pub(crate) fn of(known: &Known, key: &Key, language: Language) -> (HandOff, Written) {
        let Some(answer) = answer(known, key) else {
            return (HandOff::default(), Written::ByRules);
        };
        let (found, written) = match read(answer) {
            Some((found, written)) => (found, written),
            None => (by_rules(known, key, answer), Written::ByRules),
        };
        (found.bounded(language), written)
    }

    fn told(&self) -> Value {
        let HandOff { summary, artifacts, decisions, errors } = self;
        json!({ "summary": summary, "artifacts": artifacts, "decisions": decisions, "errors": errors })
    }

    pub(super) fn size(&self) -> u64 {
        guessed(&self.told().to_string())
    }

    /// The same in at most so many tokens; what is left out is marked.
    fn bounded(mut self, language: Language) -> HandOff {
        for list in [&mut self.artifacts, &mut self.decisions, &mut self.errors] {
            list.truncate(MOST_ENTRIES);
            for entry in list {
                *entry = shorten(entry, LONGEST_ENTRY, language).into_owned();
            }
        }
        let mut most = self.summary.chars().count();
        while self.size() > MOST_TOKENS && most > LONGEST_ENTRY {
            most = (most * 3 / 4).max(LONGEST_ENTRY);
            self.summary = shorten(&self.summary, most, language).into_owned();
        }
        while self.size() > MOST_TOKENS {
            let lists = [&mut self.artifacts, &mut self.decisions, &mut self.errors];
            let longest = lists.into_iter().max_by_key(|list| list.len());
            if longest.and_then(Vec::pop).is_none() {
                break;
            }
        }
        self
    }
}

/// What the roles so far have handed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    summary: String,
    artifacts: Vec<(String, String)>,
    decisions: Vec<(String, String)>,
    errors: Vec<(String, String)>,
}

impl Memory {
    /// What these replies hand on, in this order.
    pub(crate) fn of<'k>(
        known: &Known,
        replies: impl IntoIterator<Item = &'k Key>,
        language: Language,
    ) -> Memory {
        let mut memory = Memory::default();
        for key in replies {
            let role = known.get(key.as_str()).map_or("", |entry| entry.call.agent().local());
            memory.take_in(role, HandOff::of(known, key, language).0);
        }
        memory
    }

    /// The summary is the last role's; lists only grow.
    fn take_in(&mut self, role: &str, HandOff { summary, artifacts, decisions, errors }: HandOff) {
        self.summary = summary;
        let own = |list: Vec<String>| list.into_iter().map(|entry| (role.to_owned(), entry));
        self.artifacts.extend(own(artifacts));
        self.decisions.extend(own(decisions));
        self.errors.extend(own(errors));
    }

    /// Its four fields, as prompts show them and records tell them.
    pub(crate) fn told(&self) -> Value {
        let list = |list: &[(String, String)]| {
            let entries = list.iter().map(|(role, text)| json!({ "role": role, "text": text }));
            Value::Array(entries.collect())
        };
        json!({
            "parent_session_summary": self.summary,
            "artifacts": list(&self.artifacts),
            "decisions": list(&self.decisions),
            "errors": list(&self.errors),
        })
    }
}

fn answer<'a>(known: &'a Known, key: &Key) -> Option<&'a Answer> {
    known.get(key.as_str())?.outcome.as_ref()?.as_deref().ok()
}

/// The hand-off that a role wrote, if it is sound: a summary, and lists of texts.
fn read(answer: &Answer) -> Option<(HandOff, Written)> {
    let object = Object::find(answer, "summary").ok().flatten()?;
    let summary = object.get("summary")?.as_str()?.trim();
    let list = |key: &str| match object.get(key).unwrap_or(&Value::Null) {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(|item| Some(spaced(item.as_str()?))).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    };
    let filled = |list: Vec<String>| list.into_iter().filter(|it| !it.is_empty()).collect();
    let written = match object.get("parent_session_summary") {
        None => Written::ByRole,
        Some(_) => Written::OverMemory,
    };
    let hand_off = HandOff {
        summary: (!summary.is_empty()).then(|| summary.to_owned())?,
        artifacts: filled(list("artifacts")?),
        decisions: filled(list("decisions")?),
        errors: filled(list("errors")?),
    };
    Some((hand_off, written))
}

/// The reply is the summary, files that were written are artifacts, and tools that failed are errors.
fn by_rules(known: &Known, key: &Key, answer: &Answer) -> HandOff {
    let mut hand_off = HandOff { summary: answer.text.trim().to_owned(), ..HandOff::default() };
    let mut seen = BTreeSet::new();
    for result in results(known, key) {
        let Some(entry) = known.get(result.as_str()) else { continue };
        let (Call::Tool { request, .. }, Some(outcome)) = (&entry.call, &entry.outcome) else {
            continue;
        };
        match outcome {
            Ok(_) if request.name.starts_with("file.write") => {
                let path = request.arguments.get("path").and_then(Value::as_str);
                hand_off.artifacts.extend(path.filter(|it| seen.insert(*it)).map(spaced));
            }
            Ok(_) => {}
            Err(fault) => hand_off.errors.push(spaced(&format!("{}: {fault}", request.name))),
        }
    }
    hand_off
}

/// The tool calls before a reply, in the order of its conversation.
fn results<'a>(known: &'a Known, key: &Key) -> Vec<&'a Key> {
    let mut requests = Vec::new();
    let mut next = known.get(key.as_str());
    while let Some(Call::Agent { prompt, .. }) = next.map(|entry| &entry.call) {
        requests.push(prompt);
        next = prompt.continues.as_ref().and_then(|key| known.get(key.as_str()));
    }
    let parts = requests.into_iter().rev().flat_map(|prompt| &prompt.parts);
    parts.filter_map(|part| if let Part::Result(key) = part { Some(key) } else { None }).collect()
}
