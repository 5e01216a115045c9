//! The shortest and the longest ways through a graph (graph.md §16).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::shape::Shape;
use crate::programs::graph::{Group, Member, Test};

/// How many ways through a graph are tried to find the shortest; with more of them it is only known
/// that every way has the length of the shortest path.
const MOST_WAYS: usize = 4096;

impl Shape<'_> {
    /// The fewest steps that use up all tokens when every choice is the cheapest, or after which a
    /// condition on a reply can hold.
    pub(super) fn least_turns(&self) -> u64 {
        let all = self.cheapest_way();
        let early = self.graph.termination.as_ref().and_then(|group| self.earliest(group));
        early.map_or(all, |early| early.min(all))
    }

    fn cheapest_way(&self) -> u64 {
        let choices: Vec<(usize, Vec<usize>)> = (0..self.count())
            .filter(|agent| self.structure.decides(*agent))
            .map(|agent| (agent, self.onward_from(agent).collect()))
            .filter(|(_, options): &(usize, Vec<usize>)| !options.is_empty())
            .collect();
        let ways = choices.iter().try_fold(1_usize, |ways, (_, options)| {
            ways.checked_mul(options.len()).filter(|ways| *ways <= MOST_WAYS)
        });
        let Some(ways) = ways else { return self.shortest_path() };
        let target = |edge: &usize| self.structure.target(*edge);
        let mut onward: Vec<Vec<usize>> = (0..self.count())
            .map(|agent| {
                let edges = self.onward_from(agent).filter(|_| !self.structure.decides(agent));
                edges.filter_map(|edge| target(&edge)).collect()
            })
            .collect();
        let least = (0..ways).map(|mut way| {
            for (agent, options) in &choices {
                onward[*agent] = target(&options[way % options.len()]).into_iter().collect();
                way /= options.len();
            }
            self.steps_along(&onward)
        });
        least.min().unwrap_or_default()
    }

    /// The edges of an agent that lead forward, or out.
    fn onward_from(&self, agent: usize) -> impl Iterator<Item = usize> + '_ {
        self.structure.out(agent).iter().copied().filter(|edge| {
            !self.structure.is_back(*edge) && !self.graph.edges[*edge].is_for_failures()
        })
    }

    /// How many agents run if each hands its work to these and to no others.
    fn steps_along(&self, onward: &[Vec<usize>]) -> u64 {
        let mut has_run = vec![false; self.count()];
        let mut rest: Vec<usize> = self.structure.entries().collect();
        let mut steps = 0;
        while let Some(agent) = rest.pop() {
            if !std::mem::replace(&mut has_run[agent], true) {
                steps += 1;
                rest.extend(&onward[agent]);
            }
        }
        steps
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
                // When one of the team's own holds first, nobody can tell.
                Test::Own(own) => (!own.bound).then_some(1),
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
    pub(super) fn critical_path(&self, runs: &[u64]) -> u64 {
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
        let stays = |edge: &usize| {
            let to = self.structure.target(*edge);
            to.is_some_and(|to| self.structure.loop_of(to) == Some(own))
        };
        let out = agents.iter().flat_map(|agent| self.structure.out(*agent));
        let edges: Vec<usize> = out.copied().filter(stays).collect();
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
        let cap = self.graph.cap_of(self.structure, &self.structure.loops[own]).max(1);
        u64::from(cap).saturating_mul(longest_path(agents, &forward))
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
