//! How large what a template makes of its input can become without that costing steps: lists can hold
//! the same list many times over, and whoever prints or compares one looks at all of it
//! (extensions.md §3).
//!
//! Nothing is bound but by text that stands there once, as there are no macros and no recursion. So what
//! each place can multiply by, taken together, is the most that anything can grow.

use serde_json::Value;

use super::{Parameters, engine::Word};

/// The most that may come of all input, in bytes and elements.
pub(super) const LARGEST: u64 = 1 << 25;

/// The factor of a product whose factors the text does not tell.
const ANY_FACTOR: u64 = 100_000_000;

/// By how much the tags of a template can multiply what they are given.
pub(super) fn factor(words: &[Word]) -> u64 {
    let (mut factor, mut groups) = (1_u64, Vec::new());
    for (at, word) in words.iter().enumerate() {
        let beside = || [at.checked_sub(1), at.checked_add(1)].into_iter().flatten();
        match word.text {
            "(" | "[" | "{" => groups.push(1_u64),
            ")" | "]" | "}" => factor = factor.saturating_mul(groups.pop().unwrap_or(1)),
            "," => match groups.last_mut() {
                Some(values) => *values += 1,
                None => factor = factor.saturating_mul(2),
            },
            "+" => factor = factor.saturating_mul(2),
            // What makes a text longer costs steps.
            "*" if beside().any(|at| is_text(words.get(at))) => {}
            "*" => {
                let number = |at: usize| words.get(at)?.text.parse::<u64>().ok();
                factor = factor.saturating_mul(beside().find_map(number).unwrap_or(ANY_FACTOR));
            }
            _ => {}
        }
    }
    groups.into_iter().fold(factor, u64::saturating_mul)
}

fn is_text(word: Option<&Word>) -> bool {
    word.is_some_and(|word| word.text.starts_with(['"', '\'']))
}

/// The size of parameters, in bytes and elements.
pub(super) fn size(params: &Parameters) -> u64 {
    params.iter().map(|(name, value)| name.len() as u64 + of(value)).sum()
}

fn of(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 1,
        Value::Array(items) => 1 + items.iter().map(of).sum::<u64>(),
        Value::Object(map) => 1 + size(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
