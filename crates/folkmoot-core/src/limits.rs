//! Limits, and what is spent against them: a tree of reservations (run, scopes, agents).
//!
//! A call starts only with its worst case set aside at every level, and is settled by what it really
//! used. So calls that run side by side cannot jointly pass a limit, however their answers come in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    call::{Fault, Limit, Owner, Tokens, Usage},
    event::Reservation,
    key::Key,
    known::Entry,
    money::{Money, Rates},
    team::AgentId,
    time::{Duration, Time},
};

/// Bounds on what may be used; an absent one does not bind, zero lets nothing start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Calls started; attempts inside a call are not further calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tokens read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens read and written, of which the last call may take more than is left: a call sets aside
    /// the lesser of its worst case and the rest, so that only a rest of nothing refuses (agents.md §8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Active time: of the whole run, or summed over the calls of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Calls under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

impl Limits {
    /// The smaller of each of these and of those of the level around; none where neither sets one
    /// (rules.md 4.8).
    #[must_use]
    pub fn within(self, around: &Limits) -> Limits {
        fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Limits {
            calls: smaller(self.calls, around.calls),
            tokens: smaller(self.tokens, around.tokens),
            soft_tokens: smaller(self.soft_tokens, around.soft_tokens),
            cost: smaller(self.cost, around.cost),
            time: smaller(self.time, around.time),
            concurrency: smaller(self.concurrency, around.concurrency),
        }
    }
}

impl Limits {
    /// Whether nothing is bounded.
    pub(crate) fn are_none(&self) -> bool {
        *self == Limits::default()
    }

    /// Whether what a call uses counts against them, so that its worst case is set aside.
    pub(crate) fn is_metered(&self) -> bool {
        self.tokens.is_some() || self.soft_tokens.is_some() || self.cost.is_some()
    }
}

/// How many calls are under way at once unless a limit says otherwise.
pub const CONCURRENCY: u64 = 1024;

/// The shortest reply worth asking for; a call that has less room left is not started.
const LEAST_OUTPUT: u64 = 256;

/// The room a reply gets where its length matters and nobody set a bound.
pub(crate) const USUAL_OUTPUT: u64 = 8192;

/// What is used at one level of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls started.
    pub calls: u64,
    /// Calls under way.
    pub open: u64,
    /// Tokens used by what is settled.
    pub tokens: Tokens,
    /// Its cost, as far as it is known.
    pub cost: Money,
    /// How long the settled calls took together.
    pub time: Duration,
    /// The sum of the moments, in microseconds, at which the calls under way were asked.
    began: u64,
    /// Set aside for what is under way.
    reserved: Tokens,
    reserved_cost: Money,
}

impl Spent {
    /// When the calls under way will have used up `most` together with the settled ones.
    pub(crate) fn runs_out(&self, most: Duration) -> Option<Time> {
        let left = most.0.saturating_sub(self.time.0);
        let sum = self.began.saturating_add(left);
        (self.open > 0).then(|| Time(sum.div_ceil(self.open)))
    }
}

/// What is used at every level: a fold of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// By the whole run.
    pub run: Spent,
    /// By each agent; by one that a team answers for, what all of that team used.
    pub agents: BTreeMap<AgentId, Spent>,
    /// By each part of the run that has limits of its own.
    pub scopes: BTreeMap<Key, Spent>,
}

impl Ledger {
    fn levels(&mut self, entry: &Entry, book: impl Fn(&mut Spent)) {
        book(&mut self.run);
        for rank in entry.call.agent().ranks() {
            book(self.agents.entry(rank).or_default());
        }
        for scope in &entry.scopes {
            book(self.scopes.entry(scope.clone()).or_default());
        }
    }

    /// Books the start of a call.
    pub(crate) fn start(&mut self, entry: &Entry) {
        let aside = entry.reserved.unwrap_or_default();
        self.levels(entry, |spent| {
            spent.calls += 1;
            spent.open += 1;
            spent.began = spent.began.saturating_add(entry.asked_at.0);
            spent.reserved = spent.reserved + aside.tokens;
            spent.reserved_cost = spent.reserved_cost + aside.cost.unwrap_or_default();
        });
    }

    /// Books that a call under way sets aside this in place of what it did.
    pub(crate) fn reserve(&mut self, entry: &Entry, reserved: Reservation) {
        let aside = entry.reserved.unwrap_or_default();
        self.levels(entry, |spent| {
            spent.reserved = minus(spent.reserved, aside.tokens) + reserved.tokens;
            let less = spent.reserved_cost.0.saturating_sub(aside.cost.unwrap_or_default().0);
            spent.reserved_cost = Money(less) + reserved.cost.unwrap_or_default();
        });
    }

    /// Books the end of a call.
    pub(crate) fn settle(&mut self, entry: &Entry) {
        let aside = entry.reserved.unwrap_or_default();
        let took = entry.settled_at.since(entry.asked_at);
        self.levels(entry, |spent| {
            spent.open -= 1;
            spent.began = spent.began.saturating_sub(entry.asked_at.0);
            spent.reserved = minus(spent.reserved, aside.tokens);
            spent.reserved_cost =
                Money(spent.reserved_cost.0.saturating_sub(aside.cost.unwrap_or_default().0));
            spent.time = spent.time + took;
        });
    }

    /// Books usage; `earlier` is what was booked for the same attempt before.
    pub(crate) fn bill(&mut self, entry: &Entry, earlier: Usage, usage: Usage) {
        self.levels(entry, |spent| {
            spent.tokens = minus(spent.tokens, earlier.tokens) + usage.tokens;
            let earlier = earlier.cost.unwrap_or_default().0;
            spent.cost =
                Money(spent.cost.0.saturating_sub(earlier)) + usage.cost.unwrap_or_default();
        });
    }
}

fn minus(tokens: Tokens, less: Tokens) -> Tokens {
    Tokens {
        input: tokens.input.saturating_sub(less.input),
        cached: tokens.cached.saturating_sub(less.cached),
        cache_write: tokens.cache_write.saturating_sub(less.cache_write),
        output: tokens.output.saturating_sub(less.output),
    }
}

/// The worst case of a call before any limit is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorstCase {
    /// The most tokens the request can have.
    pub(crate) input: u64,
    /// The most tokens the reply can have, where something bounds it.
    pub(crate) output: Option<u64>,
    /// Whether the reply can be bounded by asking for a shorter one.
    pub(crate) can_shrink: bool,
    /// What a token costs at the most, where that is known.
    pub(crate) rates: Option<Rates>,
}

/// One level of the tree as admission sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level<'a> {
    pub(crate) owner: Owner,
    pub(crate) limits: &'a Limits,
    pub(crate) spent: Spent,
}

/// What admission says to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may start, with this set aside.
    Granted(Option<Reservation>),
    /// It may start once something under way is settled: this level is full until then.
    Later(Owner),
    /// It may not start.
    Refused(Fault),
    /// Something else was asked under its key: this is not the program that the log tells of.
    Diverged,
}

/// Whether a call with this worst case may start, asked at every level it counts against.
pub(crate) fn admit(levels: &[Level], worst: impl FnOnce() -> WorstCase) -> Admission {
    for level in levels {
        if let Some(limit) = level.exhausted() {
            return Admission::Refused(Fault::OverBudget { limit, of: level.owner });
        }
    }
    if let Some(full) = levels.iter().find(|level| level.is_full()) {
        return Admission::Later(full.owner);
    }
    let is_metered = |level: &Level| level.limits.is_metered();
    if !levels.iter().any(is_metered) {
        return Admission::Granted(None);
    }
    match reserve(levels, worst()) {
        Ok(reserved) => Admission::Granted(Some(reserved)),
        Err(refusal) => refusal,
    }
}

/// Sets the worst case aside, with a reply as long as every level has room for.
fn reserve(levels: &[Level], worst: WorstCase) -> Result<Reservation, Admission> {
    let mut output = worst.output.unwrap_or(USUAL_OUTPUT);
    if let Some(level) = levels.iter().find(|level| level.rest() == Some(0)) {
        // What is under way may use less than it set aside: wait before saying no.
        return Err(if level.spent.reserved.total() > 0 {
            Admission::Later(level.owner)
        } else {
            let (limit, of) = (Limit::Tokens, level.owner);
            Admission::Refused(Fault::OverBudget { limit, of })
        });
    }
    for level in levels {
        let least = if worst.can_shrink { output.min(LEAST_OUTPUT) } else { output };
        for (limit, room, committed) in
            [level.room_for_tokens(worst.input), level.room_for_money(&worst)].into_iter().flatten()
        {
            if room.is_some_and(|room| room >= least) {
                output = output.min(room.unwrap_or(output));
            } else if committed {
                // What is under way may use less than it set aside: wait before saying no.
                return Err(Admission::Later(level.owner));
            } else {
                return Err(Admission::Refused(Fault::OverBudget { limit, of: level.owner }));
            }
        }
    }
    let tokens = Tokens { input: worst.input, output, ..Tokens::default() };
    Ok(Reservation { tokens, cost: worst.rates.map(|rates| rates.of(tokens)) })
}

/// Whether a call under way can set aside `reserved` in place of `aside` at every level.
pub(crate) fn can_grow(levels: &[Level], aside: Reservation, reserved: Reservation) -> bool {
    let more = reserved.tokens.total().saturating_sub(aside.tokens.total());
    let dearer = |of: Reservation| of.cost.unwrap_or_default().0;
    let dearer = dearer(reserved).saturating_sub(dearer(aside));
    levels.iter().all(|level| {
        let tokens = (level.spent.tokens + level.spent.reserved).total().saturating_add(more);
        let cost = (level.spent.cost + level.spent.reserved_cost).0.saturating_add(dearer);
        level.limits.tokens.is_none_or(|most| tokens <= most)
            && level.limits.cost.is_none_or(|most| cost <= most.0)
    })
}

/// The limit, the most output tokens that fit beside the input (none if not even that fits), and
/// whether anything is set aside for calls under way.
type Room = (Limit, Option<u64>, bool);

impl Level<'_> {
    /// The limit by which nothing more may start, whatever it is.
    fn exhausted(&self) -> Option<Limit> {
        let Limits { calls, tokens, cost, time, concurrency, soft_tokens: _ } = *self.limits;
        if calls.is_some_and(|most| self.spent.calls >= most) || concurrency == Some(0) {
            Some(Limit::Calls)
        } else if self.owner != Owner::Run && time.is_some_and(|most| self.spent.time >= most) {
            Some(Limit::Time)
        } else if tokens == Some(0) {
            Some(Limit::Tokens)
        } else if cost == Some(Money(0)) {
            Some(Limit::Cost)
        } else {
            None
        }
    }

    /// Whether as many calls are under way as may be.
    fn is_full(&self) -> bool {
        let of_run = (self.owner == Owner::Run).then_some(CONCURRENCY);
        let most = self.limits.concurrency.or(of_run);
        most.is_some_and(|most| self.spent.open >= most)
    }

    /// What is left of its soft limit, if it has one. More than that may be set aside: then nothing is
    /// left.
    fn rest(&self) -> Option<u64> {
        let taken = (self.spent.tokens + self.spent.reserved).total();
        Some(self.limits.soft_tokens?.saturating_sub(taken))
    }

    fn room_for_tokens(&self, input: u64) -> Option<Room> {
        let taken = (self.spent.tokens + self.spent.reserved).total().saturating_add(input);
        let most = self.limits.tokens?;
        Some((Limit::Tokens, most.checked_sub(taken), self.spent.reserved.total() > 0))
    }

    fn room_for_money(&self, worst: &WorstCase) -> Option<Room> {
        let most = self.limits.cost?;
        // Under a limit of money nothing is asked whose price is not known.
        let Some(rates) = worst.rates else { return Some((Limit::Cost, None, false)) };
        let input = rates.of(Tokens { input: worst.input, ..Tokens::default() });
        let taken = self.spent.cost + self.spent.reserved_cost + input;
        let left = most.0.checked_sub(taken.0);
        let room = left.map(|left| left.checked_div(rates.output.0).unwrap_or(u64::MAX));
        Some((Limit::Cost, room, self.spent.reserved_cost.0 > 0))
    }
}

#[cfg(test)]
mod tests;
