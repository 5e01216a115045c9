//! Limits, beside what a run can take of them.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{Share, Take};
use crate::{
    call::Limit,
    limits::{CONCURRENCY, Limits},
    money::Money,
    team::Team,
    time::Duration,
};

/// A limit that is set, and the most that can be taken of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Whose limit it is: an agent's, by name, or the run's.
    pub agent: Option<Arc<str>>,
    /// What it bounds.
    pub limit: Limit,
    /// How much it allows; money as [`Money`] counts it.
    pub allowed: u64,
    /// How much can be taken at most, if the limit did not bind.
    pub most: Option<u64>,
}

impl Fit {
    /// Whether it stops nothing; unknown if nothing else bounds what is taken. A limit of nothing
    /// lets nothing start.
    pub fn holds(&self) -> Option<bool> {
        if self.allowed == 0 { Some(false) } else { self.most.map(|most| most <= self.allowed) }
    }
}

impl Serialize for Fit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fit = serializer.serialize_struct("Fit", 5)?;
        fit.serialize_field("agent", &self.agent)?;
        fit.serialize_field("limit", &self.limit)?;
        if self.limit == Limit::Cost {
            fit.serialize_field("allowed", &Money(self.allowed).usd())?;
            fit.serialize_field("most", &self.most.map(|most| Money(most).usd()))?;
        } else {
            fit.serialize_field("allowed", &self.allowed)?;
            fit.serialize_field("most", &self.most)?;
        }
        fit.serialize_field("fits", &self.holds())?;
        fit.end()
    }
}

/// The limits that hold, in the units of team files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// Calls, tool calls included.
    pub calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Seconds.
    pub time: Option<f64>,
    /// Calls at once.
    pub concurrency: u64,
}

impl From<Limits> for Effective {
    fn from(limits: Limits) -> Effective {
        Effective {
            calls: limits.calls,
            tokens: limits.tokens,
            cost_usd: limits.cost.map(Money::usd),
            time: limits.time.map(Duration::as_secs_f64),
            concurrency: limits.concurrency.unwrap_or(CONCURRENCY),
        }
    }
}

/// Whether all of them hold; no doubt makes up for one that does not.
pub(super) fn hold(all: &[Fit]) -> Option<bool> {
    let fails = all.iter().any(|fit| fit.holds() == Some(false));
    if fails { Some(false) } else { all.iter().all(|fit| fit.holds().is_some()).then_some(true) }
}

/// Every limit on calls, tokens and money, the run's first.
pub(super) fn all(run: &Take, limits: &Limits, agents: &[Share], team: &Team) -> Vec<Fit> {
    let of_agents =
        agents.iter().zip(team.everyone()).filter(|(share, _)| share.take.calls.max > 0);
    let of_agents = of_agents.map(|(share, agent)| (Some(&share.name), &share.take, &agent.limits));
    let levels = [(None, run, limits)].into_iter().chain(of_agents);
    levels.flat_map(|(agent, take, limits)| of_level(agent, take, limits)).collect()
}

fn of_level(agent: Option<&Arc<str>>, take: &Take, limits: &Limits) -> Vec<Fit> {
    let money = |money: Option<Money>| money.map(|it| it.0);
    let all = [
        (Limit::Calls, limits.calls, take.started.max),
        (Limit::Tokens, limits.tokens, take.tokens.max),
        (Limit::Cost, money(limits.cost), money(take.cost.max)),
    ];
    let set = all.into_iter().filter_map(|(limit, allowed, most)| {
        Some(Fit { agent: agent.cloned(), limit, allowed: allowed?, most })
    });
    set.collect()
}
