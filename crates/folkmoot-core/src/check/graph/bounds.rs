//! How many steps and calls a graph can take, if no call fails (graph.md §16).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::view;
use crate::{
    check::bounds::Range,
    programs::graph::{Dispatch, Graph, Group, Member, Remedy, Routing, Stages, Structure, Test},
    team::Team,
};

/// How many ways through a graph are tried to find the shortest; with more of them it is only known
/// that every way has the length of the shortest path.
const MOST_WAYS: usize = 4096;

/// How many calls a failed step may cost the lead.
const CALLS_OF_A_FAILURE: u64 = 2;

/// How many dispatches are still run after the end.
const AFTER_THE_END: u64 = 3;

/// What a graph takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) struct Taken {
    pub(in crate::check) turns: Range,
    pub(in crate::check) calls: Range,
    pub(in crate::check) critical_path: u64,
}

/// What one graph takes, with its lead's closing call.
pub(in crate::check) fn of_graph(graph: &Graph, team: &Team) -> Taken {
    with_closing(of(graph, team), team)
}

/// What stages take together.
pub(in crate::check) fn of_stages(stages: &Stages, team: &Team) -> Taken {
    let none = Range { min: 0, max: 0 };
    let start = Taken { turns: none, calls: none, critical_path: 0 };
    let sum =
        stages.stages.iter().map(|stage| of(&stage.graph, team)).fold(start, |sum, it| Taken {
            turns: plus(sum.turns, it.turns),
            calls: plus(sum.calls, it.calls),
            critical_path: sum.critical_path.saturating_add(it.critical_path),
        });
    with_closing(sum, team)
}

/// What a lead takes that hands out work as it likes: in each of its turns it can dispatch everybody.
pub(in crate::check) fn of_dispatch(dispatch: &Dispatch, team: &Team) -> Taken {
    let steps = team.lead().map_or(0, |lead| u64::from(lead.max_steps));
    let agents = dispatch.agents.len() as u64;
    let turns = Range { min: 0, max: steps.saturating_mul(agents) };
    let calls = Range { min: 1, max: turns.max.saturating_add(steps) };
    Taken { turns, calls, critical_path: 2 * steps }
}

fn plus(one: Range, other: Range) -> Range {
    let (min, max) = (one.min.saturating_add(other.min), one.max.saturating_add(other.max));
    Range { min, max }
}

fn with_closing(taken: Taken, team: &Team) -> Taken {
    let closing = u64::from(team.lead().is_some());
    Taken { calls: plus(taken.calls, Range { min: closing, max: closing }), ..taken }
}

fn of(graph: &Graph, team: &Team) -> Taken {
    let structure = Structure::of(&graph.edges);
    let shape =
        Shape { graph, structure: &structure, is_single: structure.is_single_track(&graph.edges) };
    let runs = shape.runs();
    let mut turns = runs.iter().fold(0, |sum: u64, runs| sum.saturating_add(*runs));
    let mut calls = turns;
    for (agent, runs) in runs.iter().enumerate() {
        let per_run = shape.calls_beside(agent);
        calls = calls.saturating_add(runs.saturating_mul(per_run));
    }
    let least = shape.least_turns();
    if graph.routing == Routing::Lead {
        let steps = team.lead().map_or(0, |lead| u64::from(lead.max_steps));
        turns = turns.saturating_add(steps + AFTER_THE_END);
        calls = turns.saturating_add(steps);
    }
    Taken {
        turns: Range { min: least.min(turns), max: turns },
        calls: Range { min: least.min(calls), max: calls },
        critical_path: shape.critical_path(&runs),
    }
}

struct Shape<'a> {
    graph: &'a Graph,
    structure: &'a Structure,
    /// Whether all work moves as one token.
    is_single: bool,
}

impl Shape<'_> {
    fn count(&self) -> usize {
        self.structure.agents.len()
    }

    /// The rounds of a loop at the most.
    fn rounds(&self, own: usize) -> u64 {
        if self.is_single {
            let cap = view::cap(self.graph, self.structure, &self.structure.loops[own]);
            u64::from(cap.max(1))
        } else {
            u64::from(self.graph.cap.unwrap_or(1).max(1))
        }
    }

    /// By agent: how often it runs at the most.
    fn runs(&self) -> Vec<u64> {
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
                    break self.rounds(own);
                }
                if self.is_single || self.structure.is_join(at) {
                    break 1;
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
            way.into_iter().for_each(|at| runs[at] = Some(known));
        }
        runs.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The calls that one run of an agent may take beside its own.
    fn calls_beside(&self, agent: usize) -> u64 {
        let out = self.structure.out(agent).iter().map(|edge| &self.graph.edges[*edge]);
        let has_guards = out.into_iter().any(|edge| edge.when.is_some() && !edge.is_for_failures());
        let asked_again = u64::from(self.structure.decides(agent) && !has_guards);
        let is_judged = self.structure.loops.is_empty() || self.structure.closes(agent);
        let judged = if is_judged { 2 * self.criteria() } else { 0 };
        let policy = self.graph.policy(&self.structure.agents[agent]);
        let retries = u64::from(policy.retry);
        let by_lead = match policy.then {
            Remedy::Lead if policy.retry > 0 => CALLS_OF_A_FAILURE,
            _ => 0,
        };
        asked_again + judged + retries + by_lead
    }

    fn criteria(&self) -> u64 {
        let conditions = self.graph.termination.as_ref().map(Group::conditions);
        let is_criterion = |test: &Test| matches!(test, Test::Converged { .. });
        conditions.into_iter().flatten().filter(|it| is_criterion(&it.test)).count() as u64
    }

    /// The fewest steps that use up all tokens when every choice is the cheapest, or after which a
    /// condition on a reply can hold.
    fn least_turns(&self) -> u64 {
        let all = self.cheapest_way();
        let early = self.graph.termination.as_ref().and_then(|group| self.earliest(group));
        early.map_or(all, |early| early.min(all))
    }

    fn cheapest_way(&self) -> u64 {
        let choices: Vec<(usize, Vec<usize>)> = (0..self.count())
            .filter(|agent| self.structure.decides(*agent))
            .map(|agent| {
                let out = self.structure.out(agent).iter().copied();
                let onward = out.filter(|edge| {
                    !self.structure.is_back(*edge) && !self.graph.edges[*edge].is_for_failures()
                });
                (agent, onward.collect())
            })
            .filter(|(_, options): &(usize, Vec<usize>)| !options.is_empty())
            .collect();
        let ways = choices.iter().try_fold(1_usize, |ways, (_, options)| {
            ways.checked_mul(options.len()).filter(|ways| *ways <= MOST_WAYS)
        });
        let Some(ways) = ways else { return self.shortest_path() };
        let least = (0..ways).map(|mut way| {
            let chosen: BTreeMap<usize, usize> = (choices.iter())
                .map(|(agent, options)| {
                    let option = options[way % options.len()];
                    way /= options.len();
                    (*agent, option)
                })
                .collect();
            self.steps_with(&chosen)
        });
        least.min().unwrap_or_default()
    }

    /// How many agents run if these choices are made and nothing goes back.
    fn steps_with(&self, chosen: &BTreeMap<usize, usize>) -> u64 {
        let mut ran: BTreeSet<usize> = self.structure.entries().collect();
        let mut rest: Vec<usize> = ran.iter().copied().collect();
        while let Some(agent) = rest.pop() {
            let edges: Vec<usize> = match chosen.get(&agent) {
                Some(edge) => vec![*edge],
                None if self.structure.decides(agent) => Vec::new(),
                None => self.structure.out(agent).to_vec(),
            };
            for edge in edges {
                let is_onward =
                    !self.structure.is_back(edge) && !self.graph.edges[edge].is_for_failures();
                if let Some(to) = self.structure.target(edge).filter(|_| is_onward)
                    && ran.insert(to)
                {
                    rest.push(to);
                }
            }
        }
        ran.len() as u64
    }

    /// The fewest agents on a way from the lead to an end.
    fn shortest_path(&self) -> u64 {
        let depths = self.depths();
        let ends = (0..self.count()).filter(|agent| {
            let out = self.structure.out(*agent);
            out.is_empty() || out.iter().any(|edge| self.structure.target(*edge).is_none())
        });
        let nearest = ends.filter_map(|agent| depths[agent]).min().unwrap_or(1);
        nearest.max(self.structure.entries().count() as u64)
    }

    /// By agent: the fewest steps after which it has replied.
    fn depths(&self) -> Vec<Option<u64>> {
        let mut depths = vec![None; self.count()];
        let mut rest = VecDeque::new();
        for entry in self.structure.entries() {
            depths[entry] = Some(1);
            rest.push_back((entry, 1));
        }
        while let Some((agent, depth)) = rest.pop_front() {
            for edge in self.structure.out(agent) {
                if let Some(to) = self.structure.target(*edge).filter(|to| depths[*to].is_none()) {
                    depths[to] = Some(depth + 1);
                    rest.push_back((to, depth + 1));
                }
            }
        }
        depths
    }

    /// The fewest steps after which conditions on replies can hold.
    fn earliest(&self, group: &Group) -> Option<u64> {
        let depths = self.depths();
        let one = |member: &Member| match member {
            Member::One(condition) => match &condition.test {
                Test::Matches { agent, .. } => {
                    self.structure.number(agent).and_then(|agent| depths[agent])
                }
                Test::MaxIterations { .. }
                | Test::Timeout(_)
                | Test::Converged { .. }
                | Test::Stuck { .. } => None,
            },
            Member::Group(group) => self.earliest(group),
        };
        let any = group.any_of.as_ref().map(|any| any.iter().filter_map(one).min());
        let all = group.all_of.as_ref().map(|all| {
            let each: Option<Vec<u64>> = all.iter().map(one).collect();
            each.and_then(|each| each.into_iter().max())
        });
        match (any, all) {
            (Some(any), Some(all)) => Some(any?.max(all?)),
            (one, other) => one.or(other)?,
        }
    }

    /// The heaviest path from the lead, with each loop as one place.
    fn critical_path(&self, runs: &[u64]) -> u64 {
        let place = |agent: usize| match self.structure.loop_of(agent) {
            Some(own) => self.count() + own,
            None => agent,
        };
        let places = self.count() + self.structure.loops.len();
        let mut weight = vec![1; places];
        for own in 0..self.structure.loops.len() {
            weight[self.count() + own] = self.weight_of_loop(own, runs);
        }
        let mut onward: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); places];
        let mut waits = vec![0_usize; places];
        for edge in 0..self.graph.edges.len() {
            let (Some(from), Some(to)) = (self.structure.source(edge), self.structure.target(edge))
            else {
                continue;
            };
            let (from, to) = (place(from), place(to));
            if from != to && onward[from].insert(to) {
                waits[to] += 1;
            }
        }
        let mut longest: Vec<u64> = vec![0; places];
        for entry in self.structure.entries() {
            longest[place(entry)] = weight[place(entry)];
        }
        let mut rest: Vec<usize> = (0..places).filter(|at| waits[*at] == 0).collect();
        while let Some(at) = rest.pop() {
            for &to in &onward[at] {
                if longest[at] > 0 {
                    longest[to] = longest[to].max(longest[at].saturating_add(weight[to]));
                }
                waits[to] -= 1;
                if waits[to] == 0 {
                    rest.push(to);
                }
            }
        }
        longest.into_iter().max().unwrap_or_default()
    }

    fn weight_of_loop(&self, own: usize, runs: &[u64]) -> u64 {
        let agents = &self.structure.loops[own].agents;
        let is_inside = |edge: usize| {
            let from = self.structure.source(edge).filter(|it| agents.contains(it));
            from.is_some() && self.structure.target(edge).is_some_and(|it| agents.contains(&it))
        };
        let edges: Vec<usize> = (0..self.graph.edges.len()).filter(|at| is_inside(*at)).collect();
        let back = edges.iter().filter(|edge| self.structure.is_back(**edge));
        let heads: BTreeSet<Option<usize>> =
            back.map(|edge| self.structure.target(*edge)).collect();
        if heads.len() > 1 && !self.is_single {
            return agents.iter().fold(0, |sum: u64, agent| sum.saturating_add(runs[*agent]));
        }
        let forward: Vec<(usize, usize)> = (edges.into_iter())
            .filter(|edge| !self.structure.is_back(*edge))
            .filter_map(|edge| Some((self.structure.source(edge)?, self.structure.target(edge)?)))
            .collect();
        self.rounds(own).saturating_mul(longest_path(agents, &forward))
    }
}

/// How many agents stand on the longest path over edges without a cycle.
fn longest_path(agents: &[usize], edges: &[(usize, usize)]) -> u64 {
    let mut waits: BTreeMap<usize, usize> = agents.iter().map(|agent| (*agent, 0)).collect();
    let mut onward: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (from, to) in edges {
        *waits.entry(*to).or_default() += 1;
        onward.entry(*from).or_default().push(*to);
    }
    let mut longest: BTreeMap<usize, u64> = agents.iter().map(|agent| (*agent, 1)).collect();
    let free = waits.iter().filter(|(_, waits)| **waits == 0);
    let mut rest: Vec<usize> = free.map(|(agent, _)| *agent).collect();
    while let Some(agent) = rest.pop() {
        let so_far = longest[&agent];
        for to in onward.get(&agent).into_iter().flatten() {
            let length = longest.entry(*to).or_default();
            *length = (*length).max(so_far + 1);
            let left = waits.entry(*to).or_default();
            *left -= 1;
            if *left == 0 {
                rest.push(*to);
            }
        }
    }
    longest.into_values().max().unwrap_or_default()
}
