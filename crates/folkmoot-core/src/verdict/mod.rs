//! The one place where meaning is read out of an agent's reply (rules.md §1, collaborate.md §8).
//!
//! A program hands over the named agent's own whole reply and the closed set it asks for; the reader
//! looks at nothing else, not at the task, a prompt or a colleague's words. A structured object
//! decides alone ([`Object`]); otherwise reasoning, code and quotations are taken out, and what counts
//! is the word by itself or behind its label ([`Words`], [`Names`], [`Scale`]). Ballots, plans and
//! agreement have literal forms of their own ([`ballot`], [`plan`], [`agreement`]).
//!
//! Every reading ends as a [`Reading`], and only a value can pass anything.
//!
//! Deliberately absent: substrings of prose, clamped scores, defaults, models, and the author's own
//! tests of a reply (`contains`, `regex`), which are literal.

pub mod agreement;
pub mod ballot;
mod clean;
mod fences;
mod forms;
mod json;
mod lines;
mod names;
mod object;
pub mod plan;
mod report;
mod scale;
mod signals;
mod words;

use std::fmt;

pub use fences::work;
pub use json::MAX_BYTES;
pub use names::Names;
pub use object::{Finding, Object, Severity, value};
pub use report::{MOST_FINDINGS, Report, report};
pub use scale::Scale;
pub use signals::{Ruling, Signal, Signals, first_word, literal_signals, signals};
pub use words::{DECISIONS, Decision, REVIEWS, Review, VERDICTS, Verdict, Words, converged};

use crate::{text::shorten, words::Language};

/// What was read out of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<T> {
    /// One value of the closed set.
    Value(T),
    /// The reply says nothing in any form that counts.
    None,
    /// Several values where one is wanted, in the order in which they stand.
    Ambiguous(Vec<T>),
    /// The reply says something where a value is due, and it is none.
    Unreadable(Unreadable),
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::None | Reading::Ambiguous(_) | Reading::Unreadable(_) => None,
        }
    }

    /// The one value among `values`, counted without repeats.
    fn one_of(values: impl IntoIterator<Item = T>) -> Reading<T>
    where
        T: PartialEq,
    {
        let mut distinct: Vec<T> = Vec::new();
        for value in values {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        match distinct.len() {
            0 => Reading::None,
            1 => distinct.pop().map_or(Reading::None, Reading::Value),
            _ => Reading::Ambiguous(distinct),
        }
    }
}

/// Why a reply cannot be read. Excerpts are shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Its object ends before it is complete.
    CutOff,
    /// Its object is not JSON.
    Malformed,
    /// Its object stands neither by itself nor in the last fence.
    Misplaced,
    /// A key of its object has a value that is not legal there.
    Illegal {
        /// The key.
        key: String,
        /// The value, as JSON.
        found: String,
    },
    /// It comes close to a value and is refused all the same: a slip, a reservation, a question, or
    /// something else behind the label.
    NearMiss(String),
    /// A number off the scale; it is neither clamped nor replaced.
    OutOfScale(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::CutOff => f.write_str("its JSON is cut off"),
            Unreadable::Malformed => f.write_str("its JSON is broken"),
            Unreadable::Misplaced => {
                f.write_str("its JSON stands neither by itself nor in its last fence")
            }
            Unreadable::Illegal { key, found } => write!(f, "{key} cannot be {found}"),
            Unreadable::NearMiss(text) => write!(f, "\"{text}\" is no value"),
            Unreadable::OutOfScale(text) => write!(f, "\"{text}\" is off the scale"),
        }
    }
}

/// An excerpt for people of what could not be read.
fn excerpt(text: &str) -> String {
    shorten(text.trim(), 120, Language::English).into_owned()
}
