//! What an expression compares that can never be compared (extensions.md §3): the language orders a
//! text and a number somehow, so such a comparison is always true or always false.

use super::{engine::Word, expression::Slip};

/// What kind of value is written somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    List,
}

impl Kind {
    /// Of a variable that is not of agents, or of a part of one that is.
    fn of_variable(root: &str, has_part: bool) -> Option<Kind> {
        match (root, has_part) {
            ("last" | "verdict", true) | ("task", false) => Some(Kind::Text),
            ("replies", true) => Some(Kind::List),
            ("score" | "usage", true) | ("round" | "steps" | "elapsed_ms", false) => {
                Some(Kind::Number)
            }
            _ => None,
        }
    }

    fn of_literal(text: &str) -> Option<Kind> {
        match text.chars().next()? {
            '"' | '\'' => Some(Kind::Text),
            first if first.is_ascii_digit() => Some(Kind::Number),
            _ => None,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Kind::Text => "a text",
            Kind::Number => "a number",
            Kind::List => "a list",
        }
    }
}

/// A value, and where among the words it begins and ends.
struct Operand {
    kind: Kind,
    begin: usize,
    end: usize,
}

/// What stands on both sides of an operator and is not alike.
pub(super) fn mismatches(words: &[Word]) -> Vec<Slip> {
    (0..words.len()).filter_map(|at| mismatch(words, at)).collect()
}

fn mismatch(words: &[Word], at: usize) -> Option<Slip> {
    let sign = words[at].text;
    let next = words.get(at + 1).map(|word| word.text);
    let (is_order, right) = match (sign, next) {
        ("<" | ">" | "=" | "!", Some("=")) => (true, at + 2),
        ("<" | ">", _) => (true, at + 1),
        ("-" | "/", _) => (false, at + 1),
        _ => return None,
    };
    let before = before(words, at)?;
    let behind = behind(words, right)?;
    let alike = if is_order {
        before.kind == behind.kind
    } else {
        before.kind == Kind::Number && behind.kind == Kind::Number
    };
    if alike {
        return None;
    }
    let text =
        |it: &Operand| -> String { words[it.begin..it.end].iter().map(|word| word.text).collect() };
    let (left, right) = (text(&before), text(&behind));
    let why = format!("{left} is {}, and {right} is {}", before.kind.noun(), behind.kind.noun());
    let help = match (before.kind, behind.kind) {
        (Kind::Text, Kind::Number) => Some(format!("for a number write {left} | int")),
        (Kind::Number, Kind::Text) => Some(format!("for a number write {right} | int")),
        (Kind::List, Kind::Number) => Some(format!("for a number write {left} | length")),
        _ => None,
    };
    Some(Slip { why, at: words[before.begin].at, help })
}

/// Signs that make more of a value than it is alone.
const BINDING: [&str; 10] = [".", "|", "[", "(", "+", "-", "*", "/", "%", "~"];

fn is_bound(word: Option<&Word>) -> bool {
    word.is_some_and(|word| BINDING.contains(&word.text))
}

/// The value that ends before a place, if it stands there alone.
fn before(words: &[Word], end: usize) -> Option<Operand> {
    let text = |back: usize| end.checked_sub(back).map(|at| words[at].text);
    let (kind, length) = match (text(4), text(3), text(2), text(1)?) {
        (Some(root), Some("["), _, "]") => (Kind::of_variable(root, true)?, 4),
        (_, Some(root), Some("."), _) => (Kind::of_variable(root, true)?, 3),
        (.., alone) => (Kind::of_variable(alone, false).or(Kind::of_literal(alone))?, 1),
    };
    let begin = end - length;
    // An opening bracket before it is the sentence's own.
    let is_bound = begin > 0 && words[begin - 1].text != "(" && is_bound(words.get(begin - 1));
    (!is_bound).then_some(Operand { kind, begin, end })
}

/// The value that begins at a place, if it stands there alone.
fn behind(words: &[Word], begin: usize) -> Option<Operand> {
    let text = |on: usize| words.get(begin + on).map(|word| word.text);
    let (kind, length) = match (text(0)?, text(1), text(3)) {
        (root, Some("."), _) if Kind::of_literal(root).is_none() => {
            (Kind::of_variable(root, true)?, 3)
        }
        (root, Some("["), Some("]")) => (Kind::of_variable(root, true)?, 4),
        (number, Some("."), _) if number.starts_with(|c: char| c.is_ascii_digit()) => {
            (Kind::Number, 3)
        }
        (alone, ..) => (Kind::of_variable(alone, false).or(Kind::of_literal(alone))?, 1),
    };
    let end = begin + length;
    (!is_bound(words.get(end))).then_some(Operand { kind, begin, end })
}
