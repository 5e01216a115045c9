//! What graphs take: each call of each agent, with the most that it can read (graph.md §16).
//!
//! How often an agent runs follows from the edges, and so does what it is shown: the works that its
//! inputs carry. Where work can go round and nobody who passes it on writes it anew, all that was
//! ever said stands for it. Attempts that failures allow are counted, and also the questions they
//! lead to; only the numbers of turns and calls suppose, by their definition, that no call fails.

mod paths;
mod shape;

pub use shape::Taken;
use shape::{AFTER_THE_END, Gated, Shape, is_criterion};

use std::collections::BTreeMap;

use super::{
    forecast::{Forecast, WORDS},
    member::escaped,
    most::Most,
    take::Take,
};
use crate::{
    programs::{
        ERROR,
        graph::{
            Dispatch, Graph, Join, MOST_RETRIES, OUTPUT, Remedy, Routing, SHOWN, Stages, Structure,
            Test,
        },
    },
    render::FRAME,
    team::{AgentId, Team},
    words::Language,
};

/// The most bytes of a character.
const CHARACTER: u64 = 4;

/// Folkmoot's own words about findings in one prompt, and the reason why some could not be read.
const REPORT: u64 = 5 * WORDS;

/// What one prompt tells of a gate that failed: its name, why, and the end of its output.
const GATE: u64 = (2 * ERROR + OUTPUT) as u64 * CHARACTER + 3 * WORDS;

/// How many calls a question takes: it is asked once more if its answer cannot be read.
const ASKED: u64 = 2;

impl Forecast<'_> {
    pub(in crate::bounds) fn graph(&mut self, graph: &Graph, team: &Team) {
        let structure = Structure::of(&graph.edges);
        let shape = Shape::of(graph, &structure);
        self.unfailing = Some(Taken::by(&shape, team).closed(graph.routing, team));
        self.path = self.unfailing.map_or(0, |taken| taken.critical_path);
        self.brief_all(&[&shape], team);
        let works = self.along("graph", &shape, team, Most::NOTHING);
        match graph.routing {
            Routing::Engine => self.closing(works, team),
            Routing::Lead => self.leading("lead", team),
        }
    }

    pub(in crate::bounds) fn stages(&mut self, stages: &Stages, team: &Team) {
        let structures: Vec<Structure> =
            stages.stages.iter().map(|it| Structure::of(&it.graph.edges)).collect();
        let shapes: Vec<Shape> = (stages.stages.iter().zip(&structures))
            .map(|(stage, structure)| Shape::of(&stage.graph, structure))
            .collect();
        let taken = shapes.iter().map(|shape| Taken::by(shape, team)).reduce(Taken::then);
        self.unfailing = taken.map(|taken| taken.closed(Routing::Engine, team));
        self.path = self.unfailing.map_or(0, |taken| taken.critical_path);
        self.brief_all(&shapes.iter().collect::<Vec<_>>(), team);
        let mut works = Most::NOTHING;
        for (stage, shape) in stages.stages.iter().zip(&shapes) {
            works = self.along(&stage.name, shape, team, works);
            match stage.graph.routing {
                Routing::Engine => {}
                Routing::Lead => self.leading(&stage.name, team),
            }
        }
        self.closing(works, team);
    }

    pub(in crate::bounds) fn dispatch(&mut self, dispatch: &Dispatch, team: &Team) {
        let Some(lead) = team.lead() else { return };
        let steps = u64::from(lead.max_steps.max(1));
        self.unfailing = Some(Taken::freely(dispatch, steps));
        self.path = self.unfailing.map_or(0, |taken| taken.critical_path);
        let order = self.order(&lead.id);
        for agent in &dispatch.agents {
            let member = self.member(agent);
            let own = member.said(Most::UNKNOWN) + FRAME;
            let turn = member.turn(member.opening + own + order + WORDS);
            let take = turn.take.perhaps().times(steps);
            self.add("dispatch", &dispatch.agents, take).any = true;
            self.charge(agent, take);
        }
        self.leading("lead", team);
    }

    /// What each agent is told of its place.
    fn brief_all(&mut self, shapes: &[&Shape], team: &Team) {
        let names: BTreeMap<&AgentId, &str> =
            team.everyone().map(|agent| (&agent.id, &*agent.name)).collect();
        let name = |id: &AgentId| names[id];
        for agent in team.everyone() {
            let role = |language| {
                let roles = shapes
                    .iter()
                    .filter_map(|it| it.graph.role_in(it.structure, &name, &agent.id, language));
                roles.map(|role| role.len() as u64 + 2).sum::<u64>()
            };
            self.brief(&agent.id, role(Language::English).max(role(Language::Chinese)));
        }
    }

    /// The lead words the answer.
    fn closing(&mut self, works: Most, team: &Team) {
        let Some(lead) = team.lead() else { return };
        let member = self.member(&lead.id);
        let take = member.turn(member.opening + works + WORDS).take.perhaps();
        self.add("lead", std::slice::from_ref(&lead.id), take);
        self.charge(&lead.id, take);
    }

    /// The lead works in turns of its own; each of its requests is a call.
    fn leading(&mut self, phase: &str, team: &Team) {
        let Some(lead) = team.lead() else { return };
        let names: u64 = team.agents.iter().map(|it| 8 * it.name.len() as u64 + 64).sum();
        self.lead(&lead.id);
        let member = self.member(&lead.id);
        let turn = member.turn(member.opening + (names + 2 * WORDS));
        let take = Take { calls: turn.take.requests, ..turn.take };
        self.add(phase, std::slice::from_ref(&lead.id), take);
        self.charge(&lead.id, take);
    }

    /// What a lead adds to a prompt: its own words, those to another attempt, and what it has noted.
    fn order(&self, lead: &AgentId) -> Most {
        escaped(self.member(lead).said(Most::UNKNOWN)).times(3) + WORDS
    }

    /// One graph, to whose first agents these works come. Gives what its works come to.
    fn along(&mut self, phase: &str, shape: &Shape, team: &Team, carried: Most) -> Most {
        let mut runs = shape.runs(|_| shape.all_rounds());
        if shape.graph.routing == Routing::Lead {
            // After the end anybody may be dispatched, also whom no work can reach.
            for runs in &mut runs {
                *runs = runs.saturating_add(AFTER_THE_END);
            }
        }
        let sizes = self.sizes(shape, &runs, team, carried);
        let who: Vec<AgentId> = (shape.structure.agents.iter().zip(&runs))
            .filter(|(_, runs)| **runs > 0)
            .map(|(agent, _)| agent.clone())
            .collect();
        let first = shape.surely_asked();
        for (agent, runs) in runs.iter().enumerate().filter(|(_, runs)| **runs > 0) {
            let id = &shape.structure.agents[agent];
            let asks = match (shape.graph.routing, team.lead()) {
                (Routing::Lead, Some(lead)) => u64::from(lead.max_steps.max(1)),
                (Routing::Engine | Routing::Lead, _) => runs.saturating_mul(attempts(shape, id)),
            };
            let member = self.member(id);
            let turn = member.turn(sizes.read[agent]);
            let mut take = turn.take.perhaps().times(asks);
            if first == Some(agent) {
                take = turn.take.and(turn.take.perhaps().times(asks - 1));
            }
            if shape.is_asked_again(agent) && shape.graph.routing == Routing::Engine {
                let again = member.turn(turn.kept + (shape.options(agent, team) + FRAME + WORDS));
                take = take.and(again.take.perhaps().times(asks));
            }
            if shape.reports(agent) {
                let again = member.turn(turn.kept + (FRAME + REPORT));
                take = take.and(again.take.perhaps().times(asks));
            }
            let Gated { looks, again } = shape.gated(agent);
            let mut kept = turn.kept;
            for _ in 0..again {
                let told = shape.options(agent, team) + GATE + FRAME;
                let turn = member.turn(kept + told);
                take = take.and(turn.take.perhaps().times(asks));
                kept = turn.kept;
            }
            take.started.max =
                take.started.max.and_then(|most| most.checked_add(looks.saturating_mul(asks)));
            self.add(phase, &who, take).any = who.len() > 1;
            self.charge(id, take);
        }
        self.judging(phase, shape, &runs, &sizes);
        self.failing(phase, shape, &runs, team);
        sizes.all
    }

    /// The judge is asked about each criterion, and shown the last words of everybody.
    fn judging(&mut self, phase: &str, shape: &Shape, runs: &[u64], sizes: &Sizes) {
        let (Some(judge), Some(termination)) = (&shape.graph.judge, &shape.graph.termination)
        else {
            return;
        };
        let is_judged = |agent| shape.structure.loops.is_empty() || shape.structure.closes(agent);
        let usual = (0..).zip(runs).filter(|(agent, _)| is_judged(*agent));
        let usual: u64 = usual.map(|(_, runs)| runs).sum();
        let (mut questions, mut longest) = (0, 0);
        for condition in termination.conditions().into_iter().filter(|it| is_criterion(&it.test)) {
            let Test::Converged { criterion, declared_by } = &condition.test else { continue };
            longest = longest.max(criterion.len() as u64 * 2);
            questions += match declared_by {
                Some(agent) => shape.structure.number(agent).map_or(0, |agent| runs[agent]),
                None => usual,
            };
        }
        let member = self.member(judge);
        let shown: Most = sizes.quotes.iter().copied().sum();
        let name = 3 * shape.longest_name(|id| &self.member(id).agent.name);
        let turn = member.turn(member.opening + shown + (longest + name + WORDS));
        let take = turn.take.perhaps().times(questions.saturating_mul(ASKED));
        self.add(phase, std::slice::from_ref(judge), take);
        self.charge(judge, take);
    }

    /// The lead decides what becomes of steps that failed.
    fn failing(&mut self, phase: &str, shape: &Shape, runs: &[u64], team: &Team) {
        let Some(lead) = team.lead().filter(|_| shape.graph.routing == Routing::Engine) else {
            return;
        };
        let asked = (shape.structure.agents.iter().zip(runs))
            .filter(|(id, _)| shape.graph.policy(id).then == Remedy::Lead)
            .fold(0_u64, |sum, (_, runs)| sum.saturating_add(*runs));
        let failures = asked.saturating_mul(u64::from(MOST_RETRIES) + 1);
        let member = self.member(&lead.id);
        let name = 4 * shape.longest_name(|id| &self.member(id).agent.name);
        let state: u64 = team.agents.iter().map(|it| 8 * it.name.len() as u64 + 64).sum();
        let errors = 2 * ERROR as u64 * CHARACTER;
        let read = member.opening + (state + name + errors + 2 * WORDS);
        let take = member.turn(read).take.perhaps().times(failures.saturating_mul(ASKED));
        self.add(phase, std::slice::from_ref(&lead.id), take);
        self.charge(&lead.id, take);
    }

    /// What each agent reads at most, and how long what is quoted of it can be.
    fn sizes(&mut self, shape: &Shape, runs: &[u64], team: &Team, carried: Most) -> Sizes {
        let count = shape.count();
        let id = |agent: usize| &shape.structure.agents[agent];
        let order = match team.lead().filter(|_| shape.graph.routing == Routing::Lead) {
            Some(lead) => self.order(&lead.id),
            None => Most::NOTHING,
        };
        // What can hold its own words, or come from what does, has no end where it repeats them.
        let quote = |agent: usize, said: Most| {
            self.member(id(agent)).quote(said) + shape.longest_label(agent)
        };
        let goes_round = |agent: usize| shape.structure.loop_of(agent).is_some() || runs[agent] > 1;
        let blind = |agent: usize| quote(agent, self.member(id(agent)).said(Most::UNKNOWN));
        let all: Most =
            (0..count).map(|agent| blind(agent).times(runs[agent])).sum::<Most>() + carried;
        let mut sizes =
            Sizes { all, read: vec![Most::NOTHING; count], quotes: vec![Most::NOTHING; count] };
        let mut carries: Vec<Option<Most>> = (0..count)
            .map(|agent| {
                let is_known = goes_round(agent) && !shape.passes_on(agent);
                is_known.then(|| blind(agent))
            })
            .collect();
        let missing: u64 = team.agents.iter().map(|it| 2 * it.name.len() as u64 + 64).sum();
        let unreachable = (0..count).filter(|agent| !shape.structure.is_reachable(*agent));
        for agent in shape.onward().into_iter().chain(unreachable) {
            let member = self.member(id(agent));
            let mut shown = Most::NOTHING;
            for edge in shape.structure.incoming(agent) {
                shown += match shape.structure.source(*edge) {
                    Some(from) => carries[from].unwrap_or(all),
                    None => carried,
                };
            }
            let shown = shown.within(all);
            let failures = attempts(shape, id(agent)) * (ERROR as u64 * CHARACTER + 64);
            let told = missing + failures + shape.options(agent, team) + 2 * WORDS;
            let told = told + shape.findings(agent);
            let mut read = member.opening + shown + order + told;
            if shape.may_be_advised(agent, team) {
                let advice =
                    team.lead().map(|lead| escaped(self.member(&lead.id).said(Most::UNKNOWN)));
                read += advice.unwrap_or(Most::NOTHING).times(u64::from(MOST_RETRIES));
            }
            // What takes the place of a reply was said by someone who had read more.
            let is_replaced = shape.gated(agent).again > 0;
            let is_endless = goes_round(agent) || is_replaced;
            let said = member.said(if is_endless { Most::UNKNOWN } else { read });
            if runs[agent] > 1 {
                read += said + FRAME;
            }
            let own = quote(agent, said);
            sizes.read[agent] = read;
            sizes.quotes[agent] = own;
            carries[agent] = Some(if shape.passes_on(agent) { shown + own } else { own });
        }
        let members = (0..count).filter(|at| goes_round(*at)).map(|at| self.member(id(at)));
        let echoes = members.filter(|it| it.repeats()).map(|it| it.agent.name.clone());
        let echoes: Vec<_> = echoes.collect();
        self.echoes.extend(echoes);
        sizes
    }
}

/// How large what agents read and say can be, by agent.
struct Sizes {
    read: Vec<Most>,
    quotes: Vec<Most>,
    /// The quotes of all that is ever said.
    all: Most,
}

/// How often one run of an agent can be tried.
fn attempts(shape: &Shape, agent: &AgentId) -> u64 {
    let policy = shape.graph.policy(agent);
    let more = match policy.then {
        Remedy::Lead | Remedy::Ask => MOST_RETRIES,
        Remedy::Stop | Remedy::Skip => 0,
    };
    1 + u64::from(policy.retry) + u64::from(more)
}

impl Shape<'_> {
    /// The agent that is asked in any case: the only one to which the lead hands work.
    fn surely_asked(&self) -> Option<usize> {
        let mut entries = self.structure.entries();
        let (only, None) = (entries.next()?, entries.next()) else { return None };
        let starts = match self.graph.join(&self.structure.agents[only]) {
            Join::All | Join::Any => true,
            Join::Quorum(least) => least <= 1,
        };
        (starts && self.graph.routing == Routing::Engine).then_some(only)
    }

    /// Whether an agent may hand on works that it did not write.
    fn passes_on(&self, agent: usize) -> bool {
        let policy = self.graph.policy(&self.structure.agents[agent]);
        let is_passed_over = match policy.then {
            Remedy::Skip | Remedy::Lead | Remedy::Ask => true,
            Remedy::Stop => self.graph.routing == Routing::Lead,
        };
        let mut out = self.structure.out(agent).iter();
        let is_spared = out.any(|edge| self.graph.edges[*edge].is_for_failures());
        self.structure.judges(agent) || is_passed_over || is_spared
    }

    /// Whether a lead may add words to another attempt of an agent.
    fn may_be_advised(&self, agent: usize, team: &Team) -> bool {
        let policy = self.graph.policy(&self.structure.agents[agent]);
        policy.then == Remedy::Lead && team.lead().is_some()
    }

    /// The agents that work can reach, each after those that send it work and do not follow it.
    fn onward(&self) -> Vec<usize> {
        let sources =
            |agent| self.structure.inputs(agent).filter_map(|it| self.structure.source(it));
        let reachable = |agent: &usize| self.structure.is_reachable(*agent);
        let mut waits: Vec<usize> = (0..self.count()).map(|agent| sources(agent).count()).collect();
        let mut onward: Vec<usize> =
            (0..self.count()).filter(reachable).filter(|agent| waits[*agent] == 0).collect();
        let mut next = 0;
        while let Some(agent) = onward.get(next).copied() {
            next += 1;
            for edge in self.structure.out(agent).iter().filter(|it| !self.structure.is_back(**it))
            {
                let Some(to) = self.structure.target(*edge) else { continue };
                waits[to] -= 1;
                if waits[to] == 0 {
                    onward.push(to);
                }
            }
        }
        onward
    }

    /// What the label of an edge adds to a quote.
    fn longest_label(&self, agent: usize) -> u64 {
        let out = self.structure.out(agent).iter().map(|edge| &self.graph.edges[*edge]);
        let labels = out.filter_map(|edge| edge.label.as_ref());
        labels.map(|label| 6 * label.len() as u64 + 8).max().unwrap_or_default()
    }

    /// How long what an agent is told of findings can be.
    fn findings(&self, agent: usize) -> u64 {
        let is_told = self.graph.findings.is_some() && self.structure.loop_of(agent).is_some();
        if is_told { SHOWN as u64 * CHARACTER + REPORT } else { 0 }
    }

    /// How long the list of an agent's options is.
    fn options(&self, agent: usize, team: &Team) -> u64 {
        if !self.structure.decides(agent) {
            return 0;
        }
        let out = self.structure.out(agent).iter().map(|edge| &self.graph.edges[*edge]);
        let line = |edge: &crate::programs::graph::Edge| {
            let label = edge.label.as_ref().map_or(0, |label| label.len());
            let name = if team.has(&edge.to) { team.agent(&edge.to).name.len() } else { 16 };
            2 * (label + name + edge.to.as_str().len()) as u64 + 32
        };
        out.map(line).sum()
    }

    fn longest_name<'n>(&self, name: impl Fn(&AgentId) -> &'n std::sync::Arc<str>) -> u64 {
        let names = self.structure.agents.iter().map(|id| name(id).len() as u64);
        names.max().unwrap_or_default()
    }
}
