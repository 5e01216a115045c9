//! Where the work of a graph stands, and who may take it up (graph.md §6).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Graph, Join, PARENT, Structure};
use crate::{key::Key, team::AgentId};

/// Work on its way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Token {
    /// Its round, from 1.
    pub(super) round: u32,
    /// The replies that are the work.
    pub(super) works: Vec<Key>,
    /// What judges said about it since it was last written.
    pub(super) remarks: Vec<Key>,
    /// Who was passed over, and why.
    pub(super) missing: Vec<(AgentId, Arc<str>)>,
}

impl Token {
    /// What several tokens bring, as one.
    pub(super) fn merged<'a>(tokens: impl IntoIterator<Item = &'a Token>) -> Token {
        let mut merged = Token::default();
        for token in tokens {
            merged.round = merged.round.max(token.round);
            add(&mut merged.works, &token.works);
            add(&mut merged.remarks, &token.remarks);
            add(&mut merged.missing, &token.missing);
        }
        merged
    }
}

fn add<T: Clone + PartialEq>(to: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !to.contains(item) {
            to.push(item.clone());
        }
    }
}

/// One run of an agent: what it took, and when that counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    /// The agent.
    pub(super) agent: usize,
    /// How often it has run, this time included.
    pub(super) nth: u32,
    /// Its round.
    pub(super) round: u32,
    /// What it took, by edge.
    pub(super) taken: BTreeMap<usize, Token>,
}

impl Turn {
    /// What it took, as one token of the turn's round.
    pub(super) fn token(&self) -> Token {
        Token { round: self.round, ..Token::merged(self.taken.values()) }
    }
}

/// A token that moves no more.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    /// The edge over which it ended, or to the agent at which it did.
    pub(super) edge: usize,
    /// What it carried.
    pub(super) token: Token,
    /// How.
    pub(super) how: End,
}

/// How a token ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At an exit, or at an agent without edges.
    Normally,
    /// At the cap.
    Capped,
    /// With a step that failed, or waiting for one.
    Failed,
}

/// Someone who was passed over, and why.
pub(super) type Skipped = (AgentId, Arc<str>);

/// All tokens of a graph: a fold of what was delivered.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'g> {
    graph: &'g Graph,
    structure: &'g Structure,
    /// By agent: what came over which edge and is not taken yet.
    held: Vec<BTreeMap<usize, Token>>,
    /// The agents that run, and what they took.
    running: BTreeMap<usize, Turn>,
    /// By agent: how often it has run, and its last round.
    runs: Vec<(u32, u32)>,
    /// By agent: up to which round its inputs are no longer wanted, and why it does not start.
    closed: Vec<(u32, Option<Arc<str>>)>,
    /// What moves no more.
    pub(super) ended: Vec<Ended>,
    /// Who was passed over.
    pub(super) skipped: Vec<Skipped>,
}

impl<'g> Tokens<'g> {
    /// One token over each edge from the lead, with works that are there already.
    pub(super) fn new(graph: &'g Graph, structure: &'g Structure, works: &[Key]) -> Tokens<'g> {
        let count = structure.agents.len();
        let mut tokens = Tokens {
            graph,
            structure,
            held: vec![BTreeMap::new(); count],
            running: BTreeMap::new(),
            runs: vec![(0, 0); count],
            closed: vec![(0, None); count],
            ended: Vec::new(),
            skipped: Vec::new(),
        };
        for (edge, it) in graph.edges.iter().enumerate() {
            if it.from.as_str() == PARENT {
                let works = works.to_vec();
                tokens.send(edge, Token { round: 1, works, ..Token::default() });
            }
        }
        tokens
    }

    /// Whether no token is left.
    pub(super) fn are_used_up(&self) -> bool {
        self.running.is_empty() && self.holders().next().is_none()
    }

    /// A turn of an agent that moves nothing, after the end.
    pub(super) fn extra(&mut self, agent: usize) -> Turn {
        let (runs, round) = self.runs[agent];
        self.runs[agent] = (runs + 1, round);
        Turn { agent, nth: runs + 1, round: round.max(1), taken: BTreeMap::new() }
    }

    /// Leaves all that is held or runs where it stands.
    pub(super) fn leave(&mut self, why: &Arc<str>) {
        for agent in 0..self.held.len() {
            let is_due = self.running.remove(&agent).is_some() || !self.held[agent].is_empty();
            for (edge, token) in std::mem::take(&mut self.held[agent]) {
                self.ended.push(Ended { edge, token, how: End::Normally });
            }
            if is_due {
                self.skip(agent, why);
            }
        }
    }

    /// Who holds tokens and does not run, in declared order.
    fn holders(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.held.len()).filter(|at| self.is_waiting(*at))
    }

    fn is_waiting(&self, agent: usize) -> bool {
        !self.held[agent].is_empty() && !self.running.contains_key(&agent)
    }

    /// Whether somebody else may still reply in the round of a turn, or in an earlier one, of those that
    /// `is_meant` tells.
    pub(super) fn are_awaited(&self, turn: &Turn, is_meant: impl Fn(usize) -> bool) -> bool {
        let is_due = |at: &usize| {
            let runs = self.running.get(at).is_some_and(|it| it.round <= turn.round);
            *at != turn.agent && (runs || self.held[*at].values().any(|it| it.round <= turn.round))
        };
        let onward = |edge: usize| !self.structure.is_back(edge);
        (0..self.held.len())
            .filter(is_due)
            .any(|at| is_meant(at) || self.structure.reached(at, onward).into_iter().any(&is_meant))
    }

    /// Who runs.
    pub(super) fn running(&self) -> impl Iterator<Item = &Turn> {
        self.running.values()
    }

    /// Everyone who runs or holds tokens, in declared order.
    pub(super) fn unfinished(&self) -> Vec<AgentId> {
        let is_due = |at: &usize| self.running.contains_key(at) || !self.held[*at].is_empty();
        let due = (0..self.held.len()).filter(is_due);
        due.map(|at| self.structure.agents[at].clone()).collect()
    }

    /// Who may start now, in declared order.
    pub(super) fn due(&self) -> Vec<usize> {
        let holders: Vec<usize> = self.holders().collect();
        if self.running.is_empty() && holders.len() <= 1 {
            return holders;
        }
        let patient: Vec<usize> =
            holders.iter().copied().filter(|agent| !self.awaits_more(*agent)).collect();
        let free: Vec<usize> = patient
            .iter()
            .copied()
            .filter(|agent| !self.awaits_its_loop(*agent, &patient))
            .collect();
        if free.is_empty() && self.running.is_empty() {
            return holders.into_iter().take(1).collect();
        }
        free
    }

    /// Whether an agent waits because more can still come to it.
    fn awaits_more(&self, agent: usize) -> bool {
        let wants_all = match self.graph.join(&self.structure.agents[agent]) {
            Join::All => self.structure.is_join(agent) || self.came_back(agent),
            Join::Any => self.came_back(agent),
            Join::Quorum(least) => self.held[agent].len() < least as usize,
        };
        wants_all && self.can_still_come(agent)
    }

    /// Whether another token can still reach an agent.
    fn can_still_come(&self, agent: usize) -> bool {
        let own = self.structure.loop_of(agent);
        let allows = |edge: usize| {
            let closes_own = self.structure.is_back(edge)
                && own.is_some()
                && self.structure.source(edge).and_then(|it| self.structure.loop_of(it)) == own;
            !closes_own
        };
        let others = (0..self.held.len()).filter(|at| *at != agent);
        let stand = others.filter(|at| self.running.contains_key(at) || !self.held[*at].is_empty());
        stand.into_iter().any(|at| self.structure.reached(at, allows).contains(&agent))
    }

    fn came_back(&self, agent: usize) -> bool {
        self.held[agent].keys().any(|edge| self.structure.is_back(*edge))
    }

    /// Whether an agent waits because its loop has not finished the round before.
    fn awaits_its_loop(&self, agent: usize, patient: &[usize]) -> bool {
        let Some(own) = self.structure.loop_of(agent).filter(|_| self.came_back(agent)) else {
            return false;
        };
        let of_loop = |at: usize| at != agent && self.structure.loop_of(at) == Some(own);
        self.running.keys().any(|at| of_loop(*at))
            || patient.iter().any(|at| of_loop(*at) && !self.came_back(*at))
    }

    /// Lets an agent take what it holds. Nothing if that would be a round too many: its tokens then end
    /// at the cap.
    pub(super) fn start(&mut self, agent: usize) -> Option<Turn> {
        let taken = std::mem::take(&mut self.held[agent]);
        let (runs, last) = self.runs[agent];
        let round = taken.values().map(|token| token.round).max().unwrap_or(1).max(last + 1);
        if round > self.graph.rounds() {
            let capped = taken.into_iter().map(|(edge, token)| (edge, token, End::Capped));
            capped.for_each(|(edge, token, how)| self.ended.push(Ended { edge, token, how }));
            return None;
        }
        self.runs[agent] = (runs + 1, round);
        let turn = Turn { agent, nth: runs + 1, round, taken };
        self.running.insert(agent, turn.clone());
        if self.graph.join(&self.structure.agents[agent]) != Join::All {
            self.closed[agent] = (round, None);
            self.withdraw_what_ends_in(agent, round);
        }
        Some(turn)
    }

    /// Whether a turn has too few inputs for its agent's quorum.
    pub(super) fn lacks_quorum(&self, turn: &Turn) -> bool {
        match self.graph.join(&self.structure.agents[turn.agent]) {
            Join::Quorum(least) => turn.taken.len() < least as usize,
            Join::All | Join::Any => false,
        }
    }

    /// Withdraws what could only end in a join that has started.
    fn withdraw_what_ends_in(&mut self, join: usize, round: u32) {
        let leads_elsewhere = |from: usize| {
            let edges = |edge: usize| self.structure.target(edge) != Some(join);
            let mut ways = self.structure.reached(from, edges);
            ways.insert(from);
            ways.remove(&join);
            ways.into_iter().any(|at| {
                let out = self.structure.out(at);
                out.is_empty() || out.iter().any(|edge| self.structure.target(*edge).is_none())
            })
        };
        let lost: Vec<usize> = (0..self.held.len())
            .filter(|at| *at != join && self.structure.reached(*at, |_| true).contains(&join))
            .filter(|at| !leads_elsewhere(*at))
            .collect();
        let why: Arc<str> = format!("{} has started", self.structure.agents[join]).into();
        for agent in lost {
            let before = self.held[agent].len();
            self.held[agent].retain(|_, token| token.round > round);
            let ran = self.running.get(&agent).is_some_and(|turn| turn.round <= round);
            if ran {
                self.running.remove(&agent);
            }
            if ran || self.held[agent].len() < before {
                self.skip(agent, &why);
            }
        }
    }

    /// Ends the turn of an agent.
    pub(super) fn finish(&mut self, agent: usize) {
        self.running.remove(&agent);
    }

    /// Notes that an agent was passed over.
    pub(super) fn skip(&mut self, agent: usize, why: &Arc<str>) {
        self.skipped.push((self.structure.agents[agent].clone(), why.clone()));
    }

    /// Whether an edge would lead to a round beyond the cap.
    pub(super) fn is_closed(&self, edge: usize, round: u32) -> bool {
        self.structure.is_back(edge) && round >= self.graph.rounds()
    }

    /// Sends a token over an edge. It counts for its round, or for the one after if the edge leads back.
    pub(super) fn send(&mut self, edge: usize, token: Token) {
        if self.is_closed(edge, token.round) {
            self.ended.push(Ended { edge, token, how: End::Capped });
            return;
        }
        let Some(to) = self.structure.target(edge) else {
            self.ended.push(Ended { edge, token, how: End::Normally });
            return;
        };
        let round = token.round + u32::from(self.structure.is_back(edge));
        let token = Token { round, ..token };
        let (closed, why) = self.closed[to].clone();
        if round > closed {
            self.held[to].insert(edge, token);
        } else if let Some(why) = why {
            self.ended.push(Ended { edge, token, how: End::Failed });
            self.skip_once(to, &why);
        }
    }

    /// Whether nothing moves but the turn of an agent.
    pub(super) fn is_alone(&self, agent: usize) -> bool {
        self.holders().next().is_none()
            && self.held[agent].is_empty()
            && self.running.keys().all(|at| *at == agent)
    }

    /// Leaves a token where the run is ended, before an edge.
    pub(super) fn stand(&mut self, edge: usize, token: Token) {
        self.ended.push(Ended { edge, token, how: End::Normally });
    }

    /// Ends the token of an agent that hands it to nobody.
    pub(super) fn end(&mut self, agent: usize, token: Token, how: End) {
        self.ended.push(Ended { edge: self.place(agent), token, how });
    }

    /// The edge by which what stands at an agent is ordered: its first one, else the first to it.
    pub(super) fn place(&self, agent: usize) -> usize {
        let edges = self.structure.out(agent).iter().chain(self.structure.incoming(agent));
        edges.copied().next().unwrap_or_default()
    }

    /// Ends a token with a failed step; a join that waited for it will not start in its round.
    pub(super) fn fail(&mut self, agent: usize, token: Token) {
        let round = token.round;
        let why: Arc<str> = format!("{} failed", self.structure.agents[agent]).into();
        self.end(agent, token, End::Failed);
        for join in self.joins_behind(agent) {
            self.closed[join] = (self.closed[join].0.max(round), Some(why.clone()));
            let held = std::mem::take(&mut self.held[join]);
            let (late, due): (BTreeMap<_, _>, BTreeMap<_, _>) =
                held.into_iter().partition(|(_, token)| token.round > round);
            self.held[join] = late;
            if due.is_empty() {
                continue;
            }
            for (edge, token) in due {
                self.ended.push(Ended { edge, token, how: End::Failed });
            }
            self.skip_once(join, &why);
        }
    }

    fn skip_once(&mut self, agent: usize, why: &Arc<str>) {
        if !self.skipped.iter().any(|(id, _)| *id == self.structure.agents[agent]) {
            self.skip(agent, why);
        }
    }

    /// The joins that want all of their inputs and to which an agent could have contributed.
    fn joins_behind(&self, agent: usize) -> BTreeSet<usize> {
        let mut behind = self.structure.reached(agent, |edge| !self.structure.is_back(edge));
        behind.remove(&agent);
        behind.retain(|at| {
            let join = self.graph.join(&self.structure.agents[*at]);
            self.structure.is_join(*at) && join == Join::All && !self.running.contains_key(at)
        });
        behind
    }

    /// Whether what an agent sends over these edges is all that is left, and ends by exits.
    pub(super) fn would_complete(&self, agent: usize, edges: &[usize]) -> bool {
        self.is_alone(agent) && edges.iter().all(|edge| self.structure.target(*edge).is_none())
    }

    /// What stood where the run was ended, and what had ended before, in the order of the edges.
    pub(super) fn works(&self, counts: impl Fn(End) -> bool) -> Vec<Key> {
        let mut standing: Vec<(usize, &Token)> =
            self.ended.iter().filter(|it| counts(it.how)).map(|it| (it.edge, &it.token)).collect();
        standing.extend(self.held.iter().flatten().map(|(edge, token)| (*edge, token)));
        let running = self.running.values().flat_map(|turn| &turn.taken);
        standing.extend(running.map(|(edge, token)| (*edge, token)));
        standing.sort_by_key(|(edge, _)| *edge);
        Token::merged(standing.into_iter().map(|(_, token)| token)).works
    }
}
