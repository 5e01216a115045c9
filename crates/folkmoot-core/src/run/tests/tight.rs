//! Where the bounds of a graph are reached, and not only kept: graph.md §16.
//!
//! In every small random graph of such a shape some run takes as many steps and calls as the bounds
//! say: everybody is asked twice where it may be, work goes back as often as it can and on over all
//! edges at once.

use std::sync::Arc;

use crate::{
    bounds::Bounds,
    call::{Answer, Call, Usage},
    event::Event,
    key::Key,
    known::Entry,
    programs::{
        Graph,
        graph::{Edge, PARENT, Structure},
    },
    run::Run,
    sim::{Happening, Random, Sim, World},
    spec::{Collaboration, Spec},
    team::{Agent, AgentId, Script, Target},
    testing::{self, agent, ids, spec},
    time::Duration,
};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A random graph, most edges of which lead from earlier agents to later ones.
fn graph(random: &mut Random) -> Graph {
    let agents = ids(&NAMES[..=random.below(5) as usize]);
    let mut edges = vec![Edge::new(PARENT, agents[0].clone())];
    for (at, from) in agents.iter().enumerate() {
        if at > 0 && random.one_in(6) {
            edges.push(Edge::new(PARENT, from.clone()));
        }
        for (other, to) in agents.iter().enumerate() {
            if random.one_in(if at < other { 2 } else { 7 }) {
                edges.push(Edge::new(from.clone(), to.clone()));
            }
        }
        if random.one_in(3) || at + 1 == agents.len() {
            edges.push(Edge::new(from.clone(), PARENT));
        }
    }
    let graph = testing::graph(edges);
    Graph { cap: graph.cap.map(|_| random.below(5) as u32), ..graph }
}

/// Whether nothing about a graph loosens its bounds: each loop has one way in and one back edge to
/// it, none stands behind another, and what its closing agent leads on to waits for all.
fn is_tight(graph: &Graph, structure: &Structure) -> bool {
    let is_single = structure.is_single_track(&graph.edges);
    structure.loops.iter().enumerate().all(|(own, it)| {
        let is_own = |agent: usize| structure.loop_of(agent) == Some(own);
        let edges = 0..graph.edges.len();
        let back: Vec<usize> = edges
            .clone()
            .filter(|at| structure.is_back(*at) && structure.source(*at).is_some_and(is_own))
            .collect();
        let [back] = back[..] else { return false };
        let (closing, head) = (structure.source(back), structure.target(back));
        let is_entered_there = edges.clone().all(|at| {
            let to = structure.target(at).filter(|to| is_own(*to));
            to.is_none() || structure.source(at).is_some_and(is_own) || to == head
        });
        let reached = structure.reached_from(it.agents.iter().copied(), |_| true);
        let is_last =
            reached.into_iter().all(|at| structure.loop_of(at).is_none_or(|it| it == own));
        let leads_on = edges.filter(|at| structure.source(*at) == closing).all(|at| {
            let to = structure.target(at).filter(|to| !is_own(*to));
            is_single || to.is_none_or(|to| structure.is_join(to))
        });
        let is_reached = it.agents.iter().all(|agent| structure.is_reachable(*agent));
        is_entered_there && is_last && leads_on && is_reached
    })
}

/// Agents of whom everything is asked twice, and that go on as long as they can.
struct Eager;

impl World for Eager {
    fn answer(&mut self, spec: &Spec, _: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let Call::Agent { agent, .. } = &entry.call else { return None };
        let Collaboration::Graph(graph) = &spec.collaboration else { return None };
        let mut parts = key.as_str().split('/').skip(1);
        let round: u32 = parts.next().and_then(|nth| nth.parse().ok()).unwrap_or(1);
        let text = match parts.next() {
            Some(_) => format!("NEXT: {}", choice(graph, agent, round).join(", ")),
            None => "thinking".to_owned(),
        };
        let structure = Structure::of(&graph.edges);
        let is_in_loop = structure.number(agent).and_then(|it| structure.loop_of(it)).is_some();
        // What a round sends out of its loop is done with before the next one sends more.
        let after = Duration::from_millis(u64::from(is_in_loop));
        let outcome = Ok(Arc::new(Answer::text(text)));
        Some(Happening { after, outcome, usage: Usage::default() })
    }
}

/// Where an agent sends its work in its so many-th run: back, else on to everybody, else out.
fn choice(graph: &Graph, agent: &AgentId, round: u32) -> Vec<String> {
    let structure = Structure::of(&graph.edges);
    let own = structure.number(agent).expect("it is in the graph");
    let id = |edge: &usize| graph.edges[*edge].to.to_string();
    let all: Vec<usize> = structure.out(own).to_vec();
    let back: Vec<String> = all.iter().filter(|it| structure.is_back(**it)).map(id).collect();
    if !back.is_empty() && round < graph.cap.unwrap_or(1).max(1) {
        return back;
    }
    let onward = all.iter().filter(|it| !structure.is_back(**it));
    let onward: Vec<usize> = onward.copied().filter(|it| structure.target(*it).is_some()).collect();
    let out = all.iter().filter(|it| structure.target(**it).is_none()).take(1);
    let chosen: Vec<usize> = if onward.is_empty() { out.copied().collect() } else { onward };
    chosen.iter().map(id).collect()
}

/// A team of the agents of a graph, with a lead or without.
fn team(graph: Graph, random: &mut Random) -> Spec {
    let members = NAMES.iter().map(|name| agent(name, &[]));
    let mut spec = spec(members.collect(), Collaboration::Graph(graph));
    if random.one_in(2) {
        let target = Target::Script(Script::default());
        spec.team.staff = vec![Agent::new(PARENT, target)];
    }
    spec
}

#[test]
fn some_run_takes_as_many_steps_and_calls_as_the_bounds_of_a_small_graph_say() {
    let (mut tried, mut with_loops) = (0, 0);
    for seed in 0..6000 {
        let mut random = Random::new(seed);
        let graph = graph(&mut random);
        let structure = Structure::of(&graph.edges);
        if !is_tight(&graph, &structure) {
            continue;
        }
        (tried, with_loops) = (tried + 1, with_loops + usize::from(!structure.loops.is_empty()));
        let shown: Vec<String> = graph.edges.iter().map(ToString::to_string).collect();
        let spec = team(graph, &mut random);
        let bounds = Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task));
        let sim = Sim::start(Arc::new(spec), seed, 0, &mut Eager).finish(&mut Eager);
        let calls = sim.log.iter().filter(|it| matches!(it.event, Event::Asked { .. })).count();
        let rounds = sim.run.account(sim.spec.program(), &sim.spec).rounds;
        let steps: usize =
            rounds.iter().filter_map(|it| it["steps"].as_array()).map(Vec::len).sum();
        let (taken, proved) = ((steps, calls), (bounds.turns.max, bounds.total.calls.max));
        assert_eq!((taken.0 as u64, taken.1 as u64), proved, "seed {seed}: {shown:?}");
    }
    assert!(tried > 500 && with_loops > 100, "only {tried}, {with_loops} of them with loops");
}
