//! What all runs of a phase may use together, and how much of that the next one may
//! (orchestrate.md §6).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{Card, Cards, Refusals, State, helped};
use crate::{
    limits::{Limits, Spent},
    money::Money,
};

/// A budget; an absent bound does not bind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Calls started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in US dollars.
    #[serde(deserialize_with = "usd", skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
}

/// An amount of money that is written in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dollars(pub Money);

impl Serialize for Dollars {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.usd())
    }
}

fn usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Dollars>, D::Error> {
    let Some(usd) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    if (0.0..=1e6).contains(&usd) {
        return Ok(Some(Dollars(Money::from_usd(usd))));
    }
    Err(D::Error::custom("cost is from 0 to 1000000 US dollars"))
}

/// What a run has used, or, while it may go on, what it may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Calls started.
    pub calls: u64,
    /// Tokens.
    pub tokens: u64,
    /// Money.
    pub cost: Money,
}

impl Taken {
    /// What a run that is over has used.
    pub fn used(spent: &Spent) -> Taken {
        Taken { calls: spent.calls, tokens: spent.tokens.total(), cost: spent.cost }
    }

    /// What a run may use that is not over.
    pub fn at_most(limits: &Limits) -> Taken {
        let cost = limits.cost.unwrap_or(Money(u64::MAX));
        let most = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        Taken { calls: most(limits.calls), tokens: most(limits.tokens), cost }
    }

    fn and(self, other: Taken) -> Taken {
        Taken {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
        }
    }
}

impl Budget {
    /// Whether it bounds nothing.
    pub fn is_none(&self) -> bool {
        *self == Budget::default()
    }

    /// A part of what is left of it when so much is taken, one of so many; nothing where nothing is
    /// left.
    fn part(&self, taken: Taken, parts: u64) -> Option<Limits> {
        let part = |limit: Option<u64>, taken: u64| match limit.map(|it| it.saturating_sub(taken)) {
            Some(0) => Err(()),
            left => Ok(left.map(|left| left.div_ceil(parts.max(1)))),
        };
        let cost = part(self.cost.map(|it| it.0.0), taken.cost.0).ok()?;
        Some(Limits {
            calls: part(self.calls, taken.calls).ok()?,
            tokens: part(self.tokens, taken.tokens).ok()?,
            cost: cost.map(Money),
            ..Limits::default()
        })
    }
}

impl Cards {
    /// The runs of the cards of a phase.
    pub fn runs_of(&self, phase_id: &str) -> Vec<Arc<str>> {
        let cards = self.of_phase(phase_id);
        cards.flat_map(|card| &card.runs).cloned().collect()
    }

    fn of_phase<'a>(&'a self, phase_id: &'a str) -> impl Iterator<Item = &'a Card> {
        self.all().iter().filter(move |card| card.phase_id.as_deref() == Some(phase_id))
    }

    /// What the next run of a card may use when the runs of its phase took so much: an even share of
    /// what is left among the cards that may still need a run, so that one leaves something to those
    /// beside it. Whoever comes later shares what earlier ones did not use.
    pub fn share(
        &self,
        card: &Card,
        taken: impl IntoIterator<Item = Taken>,
    ) -> Result<Limits, Refusals> {
        let phase = card.phase_id.as_deref().unwrap_or_default();
        let needs_a_run = |it: &&Card| {
            let is_done = it.state.is_final() || it.state == State::Reviewing;
            it.task_id == card.task_id || (!is_done && it.open_run.is_none())
        };
        let parts = self.of_phase(phase).filter(needs_a_run).count() as u64;
        part(card, taken, parts)
    }
}

fn part(
    card: &Card,
    taken: impl IntoIterator<Item = Taken>,
    parts: u64,
) -> Result<Limits, Refusals> {
    let taken = taken.into_iter().fold(Taken::default(), Taken::and);
    card.budget.part(taken, parts).ok_or_else(|| {
        let phase = card.phase_id.as_deref().unwrap_or_default();
        let message = format!("the runs of phase {phase} have taken up its limits");
        let help = "what is open there gives back what it does not use; \
                    plan what is left as another phase";
        vec![helped("phase_exhausted", message, help)]
    })
}

impl Card {
    /// All that is left of its phase's limits when the runs of the phase took so much.
    pub fn left(&self, taken: impl IntoIterator<Item = Taken>) -> Result<Limits, Refusals> {
        part(self, taken, 1)
    }
}
