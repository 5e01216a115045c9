//! What a run can take, in calls, tokens and money, before any of it happens (strategies.md §9).
//!
//! A bound holds for every run that is not interrupted, whatever is answered and whatever fails, if
//! back-ends keep their word: a model reads and writes within its window, its reply keeps to the
//! bound it was sent, and one that has no tools asks for none. What cannot be bounded is not
//! guessed: it is unknown, and it is said what would bound it.

mod asked;
mod fits;
mod forecast;
mod graph;
mod member;
mod most;
mod pattern;
mod programs;
mod roles;
mod roundtable;
mod strategies;
mod take;
mod unknown;

use std::sync::Arc;

use serde::Serialize;

pub use self::{
    fits::{Effective, Fit},
    forecast::Phase,
    graph::Taken,
    take::{Cost, Range, Span, Take},
    unknown::Unknown,
};
use self::{forecast::Forecast, most::Most};
use crate::{
    limits::Limits,
    spec::Collaboration,
    team::{AgentId, Team},
};

/// What a run takes at least and at most; one that is stopped may take less.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// All of it, whatever the limits.
    #[serde(flatten)]
    pub total: Take,
    /// Turns: in a strategy each call is one, in a graph each step (graph.md §16).
    pub turns: Range,
    /// Tokens at most, as the work or the run's limit bounds them.
    pub tokens_max: Option<u64>,
    /// The longest chain of calls of which each waits for the one before.
    pub critical_path: u64,
    /// Its phases, in their order.
    pub phases: Vec<Phase>,
    /// Its agents, in registration order, and its staff.
    pub agents: Vec<Share>,
    /// The run's limits, with those that hold unless set.
    pub limits: Effective,
    /// Each limit on calls, tokens and money that is set, beside what can be taken of it.
    pub against: Vec<Fit>,
    /// Whether none of them can be passed; none if that cannot be proved.
    pub fits: Option<bool>,
    /// What keeps a bound from being known.
    pub unknown: Vec<Unknown>,
}

/// What an agent's part of a run takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The agent's id.
    pub id: AgentId,
    /// Its name.
    pub name: Arc<str>,
    /// All of it, whatever the limits.
    #[serde(flatten)]
    pub take: Take,
    /// The smallest limits set at any level (rules.md 4.8).
    pub limits: Effective,
}

impl Bounds {
    /// The bounds of a team's work on `task`, or on any task.
    pub fn of(
        collaboration: &Collaboration,
        team: &Team,
        limits: &Limits,
        task: Option<&str>,
    ) -> Bounds {
        let forecast = Forecast::of(collaboration, team, limits, task);
        let total = forecast.total();
        let shares = team.everyone().map(|agent| {
            let take = forecast.shares[&agent.id];
            let member = forecast.member(&agent.id);
            let exact = member.in_order(take.requests);
            Share {
                id: agent.id.clone(),
                name: agent.name.clone(),
                take: exact.map_or(take, |exact| take.narrowed(exact)),
                limits: agent.limits.within(limits).into(),
            }
        });
        let agents: Vec<Share> = shares.collect();
        // Who does a task is known only on the way: all agents together may come to more than all
        // phases, or to less, where scripts say what each call uses.
        let sum = agents.iter().fold(Take::NOTHING, |sum, agent| sum.and(agent.take));
        let total = total.narrowed(sum);
        let (turns, calls) = match forecast.unfailing {
            Some(taken) => (taken.turns, taken.calls),
            None => (total.calls, total.calls),
        };
        let total = Take { calls, ..total };
        let against = fits::all(&total, limits, &agents, team);
        Bounds {
            turns,
            tokens_max: Most(total.tokens.max).within(Most(limits.tokens)).0,
            critical_path: forecast.path,
            fits: fits::hold(&against),
            against,
            unknown: unknown::all(&forecast, task.is_some(), &total, &agents),
            limits: (*limits).into(),
            phases: forecast.phases,
            total,
            agents,
        }
    }
}

#[cfg(test)]
mod tests;
