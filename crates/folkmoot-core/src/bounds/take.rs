//! What parts of a run take, at least and at most.

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::most::Most;
use crate::money::Money;

/// The least and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

/// The least, and the most where something bounds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The least.
    pub min: u64,
    /// The most; none if nothing bounds it.
    pub max: Option<u64>,
}

/// Money at least, and at most where something bounds it and every price is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The least.
    pub min: Money,
    /// The most.
    pub max: Option<Money>,
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cost = serializer.serialize_struct("Cost", 2)?;
        cost.serialize_field("min", &self.min.usd())?;
        cost.serialize_field("max", &self.max.map(Money::usd))?;
        cost.end()
    }
}

/// What a run, a phase or an agent takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Take {
    /// Turns of agents: the calls of strategies.md §9. Of a whole graph those that it takes if no
    /// call fails, as graph.md §16 counts them.
    pub calls: Range,
    /// Requests to back-ends: one a call, with tools up to `max_steps`. Attempts that `retries`
    /// allow are no further requests; what they use is counted.
    pub requests: Range,
    /// What `limits.calls` counts: requests and tool calls.
    pub started: Span,
    /// Tokens read.
    pub input: Span,
    /// Tokens written.
    pub output: Span,
    /// Tokens read and written.
    pub tokens: Span,
    /// What they cost, in US dollars.
    #[serde(rename = "cost_usd")]
    pub cost: Cost,
}

impl Take {
    /// Nothing at all.
    pub(super) const NOTHING: Take = {
        let none = Span { min: 0, max: Some(0) };
        Take {
            calls: Range { min: 0, max: 0 },
            requests: Range { min: 0, max: 0 },
            started: none,
            input: none,
            output: none,
            tokens: none,
            cost: Cost { min: Money(0), max: Some(Money(0)) },
        }
    };

    /// Both.
    #[must_use]
    pub(super) fn and(self, other: Take) -> Take {
        self.with(other, u64::saturating_add, |one, other| one + other)
    }

    /// One of the two, whichever it turns out to be.
    #[must_use]
    pub(super) fn or(self, other: Take) -> Take {
        self.with(other, u64::min, Most::or)
    }

    /// The same, if two ways of counting come to different bounds.
    #[must_use]
    pub(super) fn narrowed(self, other: Take) -> Take {
        self.with(other, u64::max, Most::within)
    }

    /// The same, but perhaps not at all.
    #[must_use]
    pub(super) fn perhaps(self) -> Take {
        self.or(Take::NOTHING)
    }

    /// The same, so many times.
    #[must_use]
    pub(super) fn times(self, times: u64) -> Take {
        let range = |it: Range| Range {
            min: it.min.saturating_mul(times),
            max: Most::from(it.max).times(times).0.unwrap_or(u64::MAX),
        };
        let span =
            |it: Span| Span { min: it.min.saturating_mul(times), max: Most(it.max).times(times).0 };
        let cost = span(Span { min: self.cost.min.0, max: self.cost.max.map(|it| it.0) });
        Take {
            calls: range(self.calls),
            requests: range(self.requests),
            started: span(self.started),
            input: span(self.input),
            output: span(self.output),
            tokens: span(self.tokens),
            cost: Cost { min: Money(cost.min), max: cost.max.map(Money) },
        }
    }

    fn with(
        self,
        other: Take,
        least: impl Fn(u64, u64) -> u64,
        most: impl Fn(Most, Most) -> Most,
    ) -> Take {
        let span = |one: Span, other: Span| Span {
            min: least(one.min, other.min),
            max: most(Most(one.max), Most(other.max)).0,
        };
        let range = |one: Range, other: Range| Range {
            min: least(one.min, other.min),
            max: most(one.max.into(), other.max.into()).0.unwrap_or(u64::MAX),
        };
        let money = |cost: Cost| Span { min: cost.min.0, max: cost.max.map(|it| it.0) };
        let cost = span(money(self.cost), money(other.cost));
        Take {
            calls: range(self.calls, other.calls),
            requests: range(self.requests, other.requests),
            started: span(self.started, other.started),
            input: span(self.input, other.input),
            output: span(self.output, other.output),
            tokens: span(self.tokens, other.tokens),
            cost: Cost { min: Money(cost.min), max: cost.max.map(Money) },
        }
    }
}
