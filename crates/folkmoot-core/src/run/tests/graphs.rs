//! Random graphs, and what their agents, their lead and a person say.

use serde_json::json;

use crate::{
    call::{Answer, Call, ToolCall, Usage},
    event::{Event, Settled},
    extension::{Expression, Rule},
    gate::{Evidence, Gate, Requirement},
    programs::{
        Clocks, Dispatch, Graph, Stages,
        graph::{
            Condition, Edge, Group, Guard, Join, JudgeError, Matchers, Member, Node, OnFailure,
            Own, PARENT, Remedy, Requires, Routing, Stage, Structure, Test,
        },
    },
    sim::{Random, Sim},
    spec::{Collaboration, Spec},
    team::AgentId,
    time::Duration,
    verdict::{Review, Severity},
};

/// A random graph of these agents, one of which is the judge where one is needed.
pub(super) fn graph(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Graph {
    let mut edges = edges(random, agents);
    gated(random, &mut edges);
    let has_loop = !Structure::of(&edges).loops.is_empty();
    let join = |random: &mut Random| random.pick(&[Join::All, Join::Any, Join::Quorum(2)]);
    let special = agents.iter().filter_map(|agent| {
        let on_failure = random.one_in(4).then(|| on_failure(random));
        let node = Node { join: join(random), on_failure };
        random.one_in(3).then(|| (agent.clone(), node))
    });
    let nodes = special.collect();
    Graph {
        cap: has_loop.then(|| random.below(4) as u32),
        termination: random.one_in(2).then(|| termination(random, agents)),
        judge: Some(random.pick(agents)),
        judge_error: random.pick(&[JudgeError::Stop, JudgeError::Ignore]),
        on_failure: on_failure(random),
        nodes,
        result: random.one_in(4).then(|| random.pick(agents)),
        routing: random.pick(&[Routing::Engine, Routing::Engine, Routing::Lead]),
        findings: (has_loop && random.one_in(2))
            .then(|| random.pick(&[Severity::Minor, Severity::Major])),
        topology: None,
        edges,
        clocks,
    }
}

/// Lets some edges of decisions, and some exits, require something.
fn gated(random: &mut Random, edges: &mut [Edge]) {
    let structure = Structure::of(edges);
    for (at, edge) in edges.iter_mut().enumerate() {
        let decides = structure.source(at).is_some_and(|agent| structure.decides(agent));
        let may = (decides || edge.exit) && !edge.is_for_failures() && edge.from.as_str() != PARENT;
        if may && random.one_in(4) {
            let all = (0..=random.below(2)).map(|_| requirement(random)).collect();
            edge.requires = Some(Requires { all, tries: random.below(3) as u32 });
        }
    }
}

fn requirement(random: &mut Random) -> Requirement {
    let gate = match random.below(3) {
        0 => Gate::Command { command: "make <output".into(), timeout: Duration::from_secs(9) },
        1 => Gate::File { path: "notes.md".into() },
        _ => Gate::Schema { name: "out.json".into(), schema: json!({ "type": "object" }) },
    };
    Requirement { gate, script: random.pick(&[vec![], vec![false, true], vec![true]]) }
}

fn edges(random: &mut Random, agents: &[AgentId]) -> Vec<Edge> {
    let mut edges = vec![Edge::new(PARENT, agents[0].clone())];
    for from in agents {
        if random.one_in(4) && *from != agents[0] {
            edges.push(Edge::new(PARENT, from.clone()));
        }
        let mut has_default = false;
        for to in agents.iter().filter(|to| *to != from).chain([from, &PARENT.into()]) {
            let rare = if to == from { 8 } else { 2 };
            if !random.one_in(rare) {
                continue;
            }
            let is_default = !has_default && random.one_in(6);
            has_default |= is_default;
            let edge = Edge::new(from.clone(), to.clone());
            let (exit, when) = (edge.exit || random.one_in(16), guard(random));
            let label = random.one_in(3).then(|| random.pick(&["more", "\"x\" & <reply>"]).into());
            edges.push(Edge { exit, when, label, default: is_default, ..edge });
        }
    }
    let last = &agents[agents.len() - 1];
    if !edges.iter().any(|edge| edge.exit) {
        edges.push(Edge::new(last.clone(), PARENT));
    }
    edges
}

fn guard(random: &mut Random) -> Option<Guard> {
    match random.below(16) {
        0 => Some(Guard::Failed),
        1 => Some(Guard::Reply(approval())),
        3 => Some(Guard::Expr(Expression::new("round > 1 and usage.calls > 3"))),
        2 => Some(Guard::Reply(Matchers { contains: Some("same".into()), ..Matchers::default() })),
        _ => None,
    }
}

fn approval() -> Matchers {
    Matchers { verdict: Some(Review::Approve), ..Matchers::default() }
}

fn on_failure(random: &mut Random) -> OnFailure {
    let then = random.pick(&[Remedy::Lead, Remedy::Stop, Remedy::Skip, Remedy::Ask]);
    OnFailure { retry: random.pick(&[0, 0, 1]), then }
}

/// A condition of the team's own; now and then one that cannot be evaluated.
fn own(random: &mut Random, agents: &[AgentId]) -> Own {
    let agent = random.pick(agents);
    let expr = match random.below(6) {
        0 => format!("replies['{agent}'] | length >= params.most"),
        1 => "usage.calls > 4 and usage.tokens >= 0".to_owned(),
        2 => "elapsed_ms > 900".to_owned(),
        3 => format!("verdict['{agent}'] == 'approve' or score['{agent}'] > 5"),
        4 => format!("last['{agent}'] | int > 3"),
        _ => "steps > 5 and round > 1".to_owned(),
    };
    Own {
        name: random.pick(&["first", "second"]).into(),
        rule: Rule::Expr(Expression::new(expr)),
        params: json!({ "most": 2 }).as_object().cloned().unwrap_or_default(),
        bound: random.one_in(2),
        describe: None,
    }
}

fn termination(random: &mut Random, agents: &[AgentId]) -> Group {
    let member = |random: &mut Random| {
        let test = match random.below(7) {
            0 => Test::MaxIterations { rounds: 1 + random.below(3) as u32, of: None },
            1 => Test::Timeout(Duration::from_millis(1 + random.below(4000))),
            2 => Test::Converged { criterion: "all is well".into(), declared_by: None },
            3 => Test::Matches { agent: random.pick(agents), matchers: approval() },
            4 | 5 => Test::Own(own(random, agents).into()),
            _ => Test::Stuck { repeats: 2, agent: None },
        };
        Member::One(Condition { test, written: json!({}) })
    };
    let group = |random: &mut Random| (0..=random.below(2)).map(|_| member(random)).collect();
    match random.below(4) {
        0 => Group { any_of: None, all_of: Some(group(random)) },
        1 => Group { any_of: Some(group(random)), all_of: Some(group(random)) },
        _ => Group { any_of: Some(group(random)), all_of: None },
    }
}

/// A graph, several, or none with a lead.
pub(super) fn shape(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    match random.below(6) {
        0 => {
            let stage = |random: &mut Random, name: &str| Stage {
                name: name.into(),
                graph: graph(random, agents, clocks),
                goes_on: random.one_in(2),
            };
            let stages = vec![stage(random, "first"), stage(random, "second")];
            Collaboration::Stages(Stages { stages })
        }
        1 => Collaboration::Dispatch(Dispatch { agents: agents.to_vec(), clocks }),
        _ => Collaboration::Graph(graph(random, agents, clocks)),
    }
}

/// Where there is no lead, none can route.
pub(super) fn without_a_missing_lead(mut spec: Spec) -> Spec {
    let has_lead = spec.team.lead().is_some();
    let graphs = match &mut spec.collaboration {
        Collaboration::Graph(graph) => vec![graph],
        Collaboration::Stages(it) => it.stages.iter_mut().map(|it| &mut it.graph).collect(),
        _ => Vec::new(),
    };
    for graph in graphs.into_iter().filter(|_| !has_lead) {
        graph.routing = Routing::Engine;
    }
    spec
}

/// Whether the lead hands out work with tools.
pub(super) fn is_led(spec: &Spec) -> bool {
    let has_lead = spec.team.lead().is_some();
    match &spec.collaboration {
        Collaboration::Graph(graph) => has_lead && graph.routing == Routing::Lead,
        Collaboration::Stages(it) => {
            has_lead && it.stages.iter().any(|it| it.graph.routing == Routing::Lead)
        }
        Collaboration::Dispatch(_) => true,
        _ => false,
    }
}

/// Whether a team works along a graph.
pub(super) fn is_graph(spec: &Spec) -> bool {
    matches!(
        spec.collaboration,
        Collaboration::Graph(_) | Collaboration::Stages(_) | Collaboration::Dispatch(_)
    )
}

const TEXTS: [&str; 21] = [
    "same",
    "same",
    r#"{"findings": [], "fixed": ["F1"]}"#,
    r#"{"findings": [{"severity": "major", "place": "a:1", "text": "it leaks"}]}"#,
    r#"{"next": "a", "findings": [{"severity": "nit", "text": "odd name"}], "fixed": ["F2", "F9"]}"#,
    r#"{"findings": [{"severity": "worst", "text": "?"}]}"#,
    r#"{"findings": [{"severity": "blocking", "place": "</findings>", "text": "<reply from="}]}"#,
    "I wrote it.\nNEXT: parent",
    "NEXT: a",
    "NEXT: b",
    "NEXT: c",
    "下一步：parent",
    "NEXT: b, c",
    "{\"next\": \"parent\"}",
    "approve",
    "reject",
    "converged",
    "not converged",
    "skip",
    "retry",
    "stop",
];

/// What an agent of a graph says.
pub(super) fn says(random: &mut Random, spec: &Spec, call: &Call) -> Answer {
    if let Call::Gate { scripted, .. } = call {
        let told = Evidence::of(scripted.unwrap_or(!random.one_in(3)));
        return random
            .pick(&[told.clone(), Evidence { output: Some("</output>".repeat(400)), ..told }])
            .answer();
    }
    let is_lead = call.agent().local() == PARENT && matches!(call, Call::Agent { .. });
    if is_lead && is_led(spec) && !random.one_in(4) {
        return orders(random, spec);
    }
    let unique = random.one_in(2).then(|| random.next());
    let text = random.pick(&TEXTS);
    Answer::text(unique.map_or_else(|| text.to_owned(), |unique| format!("{unique}\n{text}")))
}

/// What a lead calls.
pub(super) fn orders(random: &mut Random, spec: &Spec) -> Answer {
    let ids: Vec<AgentId> = spec.team.agents.iter().map(|agent| agent.id.clone()).collect();
    let call = |random: &mut Random, n: u64| {
        let (agent, nth) = (random.pick(&ids), 1 + random.below(2));
        let (name, arguments) = match random.below(9) {
            0 => ("finish", json!({ "answer": "the end" })),
            1 => ("task_retry", json!({ "task": format!("{agent}/{nth}"), "modify_prompt": "m" })),
            2 => ("dispatch_checkpoint", json!({ "task": format!("{agent}/{nth}"), "phase": "p" })),
            3 => ("dispatch", json!({ "agent": "nobody" })),
            _ => ("dispatch", json!({ "agent": agent, "prompt": "do" })),
        };
        ToolCall { id: n.to_string().into(), name: name.into(), arguments }
    };
    let tool_calls = (0..=random.below(3)).map(|n| call(random, n)).collect();
    Answer { tool_calls, ..Answer::default() }
}

/// What a person answers to all that waits for one.
pub(super) fn answers(sim: &Sim, seed: u64) -> Vec<Event> {
    let answer = |(key, entry): (&crate::key::Key, &crate::known::Entry)| {
        let mut random = Random::named(seed, key.as_str());
        let text = random.pick(&["retry", "skip", "stop", "well", "{\"decision\": \"retry\"}"]);
        Event::Answered {
            key: key.clone(),
            attempt: entry.attempt,
            settled: Settled::Answer(Answer::text(text).into()),
            usage: Usage::default(),
        }
    };
    sim.run.known().questions().map(answer).collect()
}
