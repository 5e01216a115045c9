//! The language that extensions are written in: minijinja, narrowed to what is bounded and depends on
//! nothing but what it is given (extensions.md §3).
//!
//! Fuel bounds how long a text runs and how much it makes. What fuel does not see is bounded by the
//! text itself: lists that are joined lazily double without cost, and what nests deeply is taken apart
//! by recursion.

use std::{collections::BTreeMap, sync::LazyLock};

use minijinja::{Environment, ErrorKind, UndefinedBehavior, Value as Jinja};
use serde_json::Value;
use thiserror::Error;

use super::Parameters;
use crate::diagnostic::quoted;

/// How many steps one evaluation may take.
pub const FUEL: u64 = 100_000;

/// How many words and signs an expression, or all tags of a template, may have.
pub const MOST_WORDS: usize = 500;

/// How many brackets may stand inside one another.
const DEEPEST: usize = 24;

/// How often `+` may stand in one text.
const MOST_SUMS: usize = 16;

/// The filters that there are.
pub(super) const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
];

/// The tests that there are.
pub(super) const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

/// The language.
pub(super) fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(DEEPEST);
        environment.set_debug(false);
        for global in ["debug", "dict", "namespace"] {
            environment.remove_global(global);
        }
        // They join lists, or put the same one into many, without cost.
        for filter in ["batch", "chain", "slice", "sum", "zip"] {
            environment.remove_filter(filter);
        }
        environment.add_function("fail", |message: String| -> Result<Jinja, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message).with_source(Failed))
        });
        environment
    });
    &ENVIRONMENT
}

/// The mark of an error that an author has words of their own for.
#[derive(Debug, Error)]
#[error("fail")]
pub(super) struct Failed;

/// A word, a text in quotes, or a sign, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// The words and signs of an expression.
pub(super) fn words(expression: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = expression[at..].chars().next() {
        let length = length(&expression[at..], first);
        if !first.is_whitespace() {
            words.push(Word { at, text: &expression[at..at + length] });
        }
        at += length;
    }
    words
}

/// The words and signs in the tags of a template.
pub(super) fn words_in_tags(template: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = template[at..].find('{').map(|begin| at + begin) {
        let close = match template[begin + 1..].chars().next() {
            Some('{') => "}}",
            Some('%') => "%}",
            _ => {
                at = begin + 1;
                continue;
            }
        };
        at = begin + 2;
        while let Some(first) = template[at..].chars().next() {
            if template[at..].starts_with(close) {
                break;
            }
            let length = length(&template[at..], first);
            if !first.is_whitespace() {
                found.push(Word { at, text: &template[at..at + length] });
            }
            at += length;
        }
    }
    found
}

/// How many bytes the word at the beginning of `text` has.
fn length(text: &str, first: char) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    if matches!(first, '"' | '\'') {
        let mut escaped = false;
        let end = text[1..].char_indices().find(|(_, c)| {
            let ends = *c == first && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        return end.map_or(text.len(), |(at, _)| at + 2);
    }
    if is_part(first) { text.find(|c| !is_part(c)).unwrap_or(text.len()) } else { first.len_utf8() }
}

/// What is too much about a text of these words, if anything is.
pub(super) fn excess(words: &[Word]) -> Option<String> {
    if words.len() > MOST_WORDS {
        return Some(format!(
            "it has {} words and signs; at most {MOST_WORDS} are allowed",
            words.len()
        ));
    }
    if words.iter().filter(|word| word.text == "+").count() > MOST_SUMS {
        return Some(format!("it adds more than {MOST_SUMS} times"));
    }
    if words.iter().any(|word| word.text == "recursive") {
        return Some("loops cannot be recursive here".to_owned());
    }
    let mut depth: usize = 0;
    let deepest = words.iter().map(|word| {
        match word.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth
    });
    let is_deep = deepest.max().is_some_and(|deepest| deepest > DEEPEST);
    is_deep.then(|| format!("more than {DEEPEST} brackets stand inside one another"))
}

/// What the language says is wrong in `text`.
pub(super) fn why(error: &minijinja::Error, text: &str) -> String {
    let place = error.range().and_then(|range| text.get(range));
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => format!("it takes more than {FUEL} steps"),
        (_, Some(detail)) => detail.to_owned(),
        (ErrorKind::UndefinedError, None) => {
            format!("{} is not there", place.map_or_else(|| "a value".to_owned(), quoted))
        }
        (kind, None) => format!(
            "{kind}{}",
            place.map(|place| format!(" in {}", quoted(place))).unwrap_or_default()
        ),
    }
}

/// Parameters as the language has them.
pub(super) fn params(params: &Parameters) -> Jinja {
    params.iter().map(|(key, it)| (key.clone(), value(it))).collect::<BTreeMap<_, _>>().into()
}

/// A value as the language has it.
fn value(json: &Value) -> Jinja {
    match json {
        Value::Null => Jinja::from(()),
        Value::Bool(flag) => Jinja::from(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Jinja::from(number),
            (None, Some(number)) => Jinja::from(number),
            (None, None) => Jinja::from(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Jinja::from(text.as_str()),
        Value::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Value::Object(map) => params(map),
    }
}
