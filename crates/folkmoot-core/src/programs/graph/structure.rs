//! What the edges of a graph alone tell (graph.md §5).

use std::collections::{BTreeMap, BTreeSet};

use super::{Edge, PARENT};
use crate::{loops, team::AgentId};

/// What the edges of a graph alone tell. Agents are numbered in the order in which edges name them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structure {
    /// The agents.
    pub agents: Vec<AgentId>,
    /// Their numbers.
    numbers: BTreeMap<AgentId, usize>,
    /// By edge: its agents' numbers; `None` is the lead.
    ends: Vec<(Option<usize>, Option<usize>)>,
    /// By edge: whether it leads back to where the walk from the lead came from.
    back: Vec<bool>,
    /// By edge: whether it ends work.
    exit: Vec<bool>,
    /// By agent: the edges that leave it, those for failures among them.
    out: Vec<Vec<usize>>,
    /// By agent: the edges that lead to it and end nothing.
    into: Vec<Vec<usize>>,
    /// By agent: whether work can reach it.
    reachable: Vec<bool>,
    /// The loops.
    pub loops: Vec<Loop>,
    /// By agent: its loop.
    loop_of: Vec<Option<usize>>,
    /// By agent: whether its reply chooses.
    decides: Vec<bool>,
    /// By agent: the edge taken where no choice can be read.
    default: Vec<Option<usize>>,
}

/// Agents that can all reach one another.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Their numbers.
    pub agents: Vec<usize>,
    /// Those of them with a back edge.
    pub closing: Vec<usize>,
}

impl Structure {
    /// The structure of a graph with these edges. Near-linear in their number.
    pub fn of(edges: &[Edge]) -> Structure {
        let mut structure = Structure::numbered(edges);
        structure.walk(edges);
        structure.find_loops();
        structure.find_decisions(edges);
        structure
    }

    fn numbered(edges: &[Edge]) -> Structure {
        let mut numbers: BTreeMap<AgentId, usize> = BTreeMap::new();
        let mut agents: Vec<AgentId> = Vec::new();
        let mut number = |id: &AgentId| {
            id.as_str().ne(PARENT).then(|| {
                *numbers.entry(id.clone()).or_insert_with(|| {
                    agents.push(id.clone());
                    agents.len() - 1
                })
            })
        };
        let ends: Vec<_> =
            edges.iter().map(|edge| (number(&edge.from), number(&edge.to))).collect();
        let mut out = vec![Vec::new(); agents.len()];
        let mut into = vec![Vec::new(); agents.len()];
        for (at, (from, to)) in ends.iter().enumerate() {
            if let Some(from) = *from {
                out[from].push(at);
            }
            if let Some(to) = to.filter(|_| !edges[at].exit) {
                into[to].push(at);
            }
        }
        Structure {
            back: vec![false; edges.len()],
            exit: edges.iter().map(|edge| edge.exit).collect(),
            reachable: vec![false; agents.len()],
            loop_of: vec![None; agents.len()],
            decides: vec![false; agents.len()],
            default: vec![None; agents.len()],
            loops: Vec::new(),
            agents,
            numbers,
            ends,
            out,
            into,
        }
    }

    /// Walks depth first from the lead, in the order of the edges; an edge to an agent on the way is a
    /// back edge. Iterative, as a graph may be a chain of thousands.
    fn walk(&mut self, edges: &[Edge]) {
        let mut on_way = vec![false; self.agents.len()];
        for at in 0..edges.len() {
            let (None, Some(entry)) = self.ends[at] else { continue };
            if self.exit[at] || self.reachable[entry] {
                continue;
            }
            let mut way = vec![(entry, 0)];
            (self.reachable[entry], on_way[entry]) = (true, true);
            while let Some((agent, next)) = way.last_mut() {
                let Some(&edge) = self.out[*agent].get(*next) else {
                    on_way[*agent] = false;
                    way.pop();
                    continue;
                };
                *next += 1;
                let Some(to) = self.target(edge) else { continue };
                if on_way[to] {
                    self.back[edge] = true;
                } else if !self.reachable[to] {
                    (self.reachable[to], on_way[to]) = (true, true);
                    way.push((to, 0));
                }
            }
        }
    }

    /// The loops, exits left out.
    fn find_loops(&mut self) {
        let targets =
            |edges: &Vec<usize>| edges.iter().filter_map(|edge| self.target(*edge)).collect();
        let next: Vec<Vec<usize>> = self.out.iter().map(targets).collect();
        for agents in loops::in_graph(&next) {
            for agent in &agents {
                self.loop_of[*agent] = Some(self.loops.len());
            }
            let closes = |agent: &usize| self.out[*agent].iter().any(|edge| self.back[*edge]);
            let closing = agents.iter().copied().filter(closes).collect();
            self.loops.push(Loop { agents, closing });
        }
    }

    fn find_decisions(&mut self, edges: &[Edge]) {
        for agent in 0..self.agents.len() {
            let options: Vec<usize> = self.options(edges, agent).collect();
            let is_special = |at: &usize| {
                self.back[*at] || self.exit[*at] || edges[*at].when.is_some() || edges[*at].default
            };
            self.decides[agent] = options.len() > 1 && options.iter().any(is_special);
            if self.decides[agent] {
                let declared = options.iter().copied().find(|at| edges[*at].default);
                let mut back = options.iter().copied().filter(|at| self.back[*at]);
                let only_back = back.next().filter(|_| back.next().is_none());
                self.default[agent] = declared.or(only_back);
            }
        }
    }

    fn options<'a>(&'a self, edges: &'a [Edge], agent: usize) -> impl Iterator<Item = usize> + 'a {
        self.out[agent].iter().copied().filter(|at| !edges[*at].is_for_failures())
    }

    /// The number of an agent.
    pub fn number(&self, agent: &AgentId) -> Option<usize> {
        self.numbers.get(agent).copied()
    }

    /// The agent to which an edge takes work; none if it ends it.
    pub fn target(&self, edge: usize) -> Option<usize> {
        self.ends[edge].1.filter(|_| !self.exit[edge])
    }

    /// The agent whose edge it is; none if it is the lead's.
    pub fn source(&self, edge: usize) -> Option<usize> {
        self.ends[edge].0
    }

    /// The edges that leave an agent, in order.
    pub fn out(&self, agent: usize) -> &[usize] {
        &self.out[agent]
    }

    /// The edges over which work comes to an agent, in order.
    pub fn incoming(&self, agent: usize) -> &[usize] {
        &self.into[agent]
    }

    /// Whether an edge closes a loop.
    pub fn is_back(&self, edge: usize) -> bool {
        self.back[edge]
    }

    /// Whether work can reach an agent.
    pub fn is_reachable(&self, agent: usize) -> bool {
        self.reachable[agent]
    }

    /// The loop that an agent belongs to.
    pub fn loop_of(&self, agent: usize) -> Option<usize> {
        self.loop_of[agent]
    }

    /// Whether the reply of an agent chooses where its work goes.
    pub fn decides(&self, agent: usize) -> bool {
        self.decides[agent]
    }

    /// The edge taken where no choice of an agent can be read.
    pub fn default(&self, agent: usize) -> Option<usize> {
        self.default[agent]
    }

    /// Whether an agent closes a loop.
    pub fn closes(&self, agent: usize) -> bool {
        self.out[agent].iter().any(|edge| self.back[*edge])
    }

    /// Whether an agent judges the work of others rather than writing some of its own: it hands it
    /// back to another agent (graph.md §13).
    pub fn judges(&self, agent: usize) -> bool {
        self.out[agent].iter().any(|edge| self.back[*edge] && self.target(*edge) != Some(agent))
    }

    /// Whether several inputs meet at an agent: forward edges from where work can come.
    pub fn is_join(&self, agent: usize) -> bool {
        self.inputs(agent).nth(1).is_some()
    }

    /// The forward edges over which work can come to an agent.
    pub fn inputs(&self, agent: usize) -> impl Iterator<Item = usize> + '_ {
        self.into[agent].iter().copied().filter(|edge| {
            !self.back[*edge] && self.ends[*edge].0.is_none_or(|from| self.reachable[from])
        })
    }

    /// The agents that can be reached from `from` over edges that `allows`, itself only over a way that
    /// leads back to it.
    pub fn reached(&self, from: usize, allows: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        self.reached_from([from], allows)
    }

    /// The same from any of several agents.
    pub fn reached_from(
        &self,
        from: impl IntoIterator<Item = usize>,
        allows: impl Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut rest: Vec<usize> = from.into_iter().collect();
        while let Some(agent) = rest.pop() {
            let edges = self.out[agent].iter().copied().filter(|edge| allows(*edge));
            for to in edges.filter_map(|edge| self.target(edge)) {
                if reached.insert(to) {
                    rest.push(to);
                }
            }
        }
        reached
    }

    /// The agents to which the lead hands work, in the order of the edges.
    pub fn entries(&self) -> impl Iterator<Item = usize> + '_ {
        let of_lead = self.ends.iter().filter(|(from, _)| from.is_none());
        of_lead.filter_map(|(_, to)| *to)
    }

    /// Whether all work moves as one token (graph.md §16): one edge leaves the lead, and every agent has
    /// one edge or chooses among at most one that goes forward.
    pub fn is_single_track(&self, edges: &[Edge]) -> bool {
        let is_forward = |edge: &usize| !self.back[*edge] && !self.exit[*edge];
        let is_narrow = |agent| {
            let options: Vec<usize> = self.options(edges, agent).collect();
            options.len() <= 1
                || self.decides[agent] && options.iter().filter(|it| is_forward(it)).count() <= 1
        };
        self.entries().count() == 1 && (0..self.agents.len()).all(is_narrow)
    }
}
