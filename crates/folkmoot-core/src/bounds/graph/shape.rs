//! How many steps and calls a graph can take, if no call fails (graph.md §16).

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    bounds::Range,
    programs::graph::{Dispatch, Graph, Group, Join, Remedy, Requires, Routing, Structure, Test},
    team::Team,
};

/// How many calls a failed step may cost the lead.
const CALLS_OF_A_FAILURE: u64 = 2;

/// How many dispatches are still run after the end.
pub(super) const AFTER_THE_END: u64 = 3;

/// What a graph takes, if no call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Steps.
    pub turns: Range,
    /// Requests.
    pub calls: Range,
    /// The longest chain of steps of which each waits for the one before.
    pub critical_path: u64,
}

impl Taken {
    /// What one graph of a team takes, without its lead's closing call.
    pub fn of(graph: &Graph, team: &Team) -> Taken {
        Taken::by(&Shape::of(graph, &Structure::of(&graph.edges)), team)
    }

    /// What a graph takes, without its lead's closing call.
    pub(super) fn by(shape: &Shape, team: &Team) -> Taken {
        let runs = shape.runs(|own| shape.rounds(own));
        let steps = runs.iter().fold(0, |sum: u64, runs| sum.saturating_add(*runs));
        let (turns, calls) = match shape.graph.routing {
            Routing::Engine => {
                let beside = (0..)
                    .zip(&runs)
                    .map(|(agent, runs)| runs.saturating_mul(shape.calls_beside(agent)));
                (steps, beside.fold(steps, u64::saturating_add))
            }
            Routing::Lead => {
                let of_lead = team.lead().map_or(0, |lead| u64::from(lead.max_steps));
                let turns = steps.saturating_add(of_lead + AFTER_THE_END);
                let reports = if shape.graph.findings.is_some() { turns } else { 0 };
                (turns, turns.saturating_add(of_lead).saturating_add(reports))
            }
        };
        let least = shape.least_turns();
        Taken {
            turns: Range { min: least.min(turns), max: turns },
            calls: Range { min: least.min(calls), max: calls },
            critical_path: shape.critical_path(&runs),
        }
    }

    /// The same with the call in which the lead words the answer, or with its last turn.
    pub(super) fn closed(self, routing: Routing, team: &Team) -> Taken {
        let closing = u64::from(team.lead().is_some());
        let more = if routing == Routing::Engine { closing } else { 0 };
        let Range { min, max } = self.calls;
        Taken {
            calls: Range { min: min.saturating_add(closing), max: max.saturating_add(more) },
            ..self
        }
    }

    /// Both, one after the other.
    pub(super) fn then(self, next: Taken) -> Taken {
        let plus = |one: Range, other: Range| Range {
            min: one.min.saturating_add(other.min),
            max: one.max.saturating_add(other.max),
        };
        Taken {
            turns: plus(self.turns, next.turns),
            calls: plus(self.calls, next.calls),
            critical_path: self.critical_path.saturating_add(next.critical_path),
        }
    }

    /// What a lead takes that hands out work as it likes: in each of its turns it can dispatch
    /// everybody.
    pub(super) fn freely(dispatch: &Dispatch, steps: u64) -> Taken {
        let turns = Range { min: 0, max: steps.saturating_mul(dispatch.agents.len() as u64) };
        let calls = Range { min: 1, max: turns.max.saturating_add(steps) };
        Taken { turns, calls, critical_path: steps.saturating_mul(2) }
    }
}

/// A graph, as far as its edges tell how much it takes.
pub(super) struct Shape<'a> {
    pub(super) graph: &'a Graph,
    pub(super) structure: &'a Structure,
    /// Whether all work moves as one token.
    pub(super) is_single: bool,
}

impl<'a> Shape<'a> {
    pub(super) fn of(graph: &'a Graph, structure: &'a Structure) -> Shape<'a> {
        Shape { graph, structure, is_single: structure.is_single_track(&graph.edges) }
    }

    pub(super) fn count(&self) -> usize {
        self.structure.agents.len()
    }

    /// The rounds of a loop at the most, if nothing fails.
    pub(super) fn rounds(&self, own: usize) -> u64 {
        if self.is_single {
            u64::from(self.graph.cap_of(self.structure, &self.structure.loops[own]).max(1))
        } else {
            self.all_rounds()
        }
    }

    /// The rounds that the root cap allows.
    pub(super) fn all_rounds(&self) -> u64 {
        u64::from(self.graph.cap.unwrap_or(1).max(1))
    }

    /// By agent: how often it runs at the most, if its loop has so many rounds.
    pub(super) fn runs(&self, rounds: impl Fn(usize) -> u64) -> Vec<u64> {
        let behind_loops = self.behind_loops();
        let mut runs: Vec<Option<u64>> = vec![None; self.count()];
        for agent in 0..self.count() {
            let mut way = Vec::new();
            let mut at = agent;
            let known = loop {
                if let Some(known) = runs[at] {
                    break known;
                }
                if !self.structure.is_reachable(at) {
                    break 0;
                }
                if let Some(own) = self.structure.loop_of(at) {
                    break rounds(own);
                }
                if self.is_single {
                    break 1;
                }
                if self.structure.is_join(at) {
                    // One that does not wait for all starts again with what a later round brings.
                    let join = self.graph.join(&self.structure.agents[at]);
                    let is_late = join != Join::All && behind_loops.contains(&at);
                    break if is_late { self.all_rounds() } else { 1 };
                }
                // As often as its only source; the lead hands out once.
                let source = self.structure.inputs(at).next();
                let Some(source) = source.and_then(|edge| self.structure.source(edge)) else {
                    break 1;
                };
                way.push(at);
                at = source;
            };
            runs[at] = Some(known);
            for at in way {
                runs[at] = Some(known);
            }
        }
        runs.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The agents to which a loop can send work.
    fn behind_loops(&self) -> BTreeSet<usize> {
        let entered = self.structure.loops.iter().filter_map(|it| it.agents.first());
        self.structure.reached_from(entered.copied(), |_| true)
    }

    /// Whether an agent is asked once more for its choice.
    pub(super) fn is_asked_again(&self, agent: usize) -> bool {
        let mut out = self.structure.out(agent).iter().map(|edge| &self.graph.edges[*edge]);
        let has_guards = out.any(|edge| edge.when.is_some() && !edge.is_for_failures());
        self.structure.decides(agent) && !has_guards
    }

    /// The calls that one run of an agent may take beside its own.
    fn calls_beside(&self, agent: usize) -> u64 {
        let asked_again = u64::from(self.is_asked_again(agent));
        let is_judged = self.structure.loops.is_empty() || self.structure.closes(agent);
        let judged = if is_judged { 2 * self.criteria() } else { 0 };
        let policy = self.graph.policy(&self.structure.agents[agent]);
        let retries = u64::from(policy.retry);
        let by_lead = match policy.then {
            Remedy::Lead if policy.retry > 0 => CALLS_OF_A_FAILURE,
            _ => 0,
        };
        let Gated { looks, again } = self.gated(agent);
        let beside = asked_again + judged + retries + by_lead + u64::from(self.reports(agent));
        beside.saturating_add(looks).saturating_add(again)
    }

    /// Whether an agent is asked for findings, and once more if they cannot be read (convergence.md §1).
    pub(super) fn reports(&self, agent: usize) -> bool {
        self.graph.findings.is_some() && self.structure.closes(agent)
    }

    /// What one run of an agent may take because of what its edges require (convergence.md §2).
    pub(super) fn gated(&self, agent: usize) -> Gated {
        let out = self.structure.out(agent).iter().map(|edge| &self.graph.edges[*edge]);
        let required: Vec<&Requires> = out.filter_map(|edge| edge.requires.as_ref()).collect();
        let again: u64 = required.iter().map(|it| u64::from(it.tries)).sum();
        let gates: u64 = required.iter().map(|it| it.all.len() as u64).sum();
        Gated { looks: gates.saturating_mul(again + 1), again }
    }

    fn criteria(&self) -> u64 {
        let conditions = self.graph.termination.as_ref().map(Group::conditions);
        conditions.into_iter().flatten().filter(|it| is_criterion(&it.test)).count() as u64
    }
}

/// What the gates of an agent take in one of its runs.
pub(super) struct Gated {
    /// How often something is looked at.
    pub(super) looks: u64,
    /// How often the agent is asked again.
    pub(super) again: u64,
}

/// Whether it is the judge who knows if a condition holds.
pub(super) fn is_criterion(test: &Test) -> bool {
    matches!(test, Test::Converged { .. })
}
