//! The picture of a team: who can hand what to whom.

use std::collections::BTreeSet;

use super::{Drawing, Kind, Way, counted, patterns, strategies};
use crate::{
    programs::graph::{
        Dispatch, Edge, Graph, Group, Guard, Join, Matchers, Member, OnFailure, PARENT, Remedy,
        Routing, Stages, Structure, Test,
    },
    spec::{Collaboration, Spec},
    team::{AgentId, Team},
    verdict::Review,
};

/// Draws the team of a spec.
pub fn of_team(spec: &Spec) -> Drawing {
    let team = &spec.team;
    let name = if team.name.is_empty() { "Team" } else { &team.name };
    let mut drawing = Drawing::new(&format!("{name}: {}", spec.collaboration.name()));
    match &spec.collaboration {
        Collaboration::Graph(graph) => whole(&mut drawing, team, graph),
        Collaboration::Stages(stages) => staged(&mut drawing, team, stages),
        Collaboration::Dispatch(it) => dispatched(&mut drawing, team, it),
        Collaboration::Roles(it) => strategies::roles(&mut drawing, team, it, &spec.task),
        Collaboration::Controller(it) => {
            programmed(&mut drawing, team, &it.staff().name, &it.agents);
        }
        Collaboration::Coded(it) => {
            let agents: Vec<AgentId> = team.agents.iter().map(|agent| agent.id.clone()).collect();
            programmed(&mut drawing, team, &it.name, &agents);
        }
        Collaboration::Pattern(it) => patterns::pattern(&mut drawing, team, it),
        Collaboration::Roundtable(it) => strategies::roundtable(&mut drawing, team, it),
        Collaboration::Broadcast(it) => strategies::broadcast(&mut drawing, team, it),
        Collaboration::Sequential(it) => strategies::sequential(&mut drawing, team, it),
        Collaboration::Debate(it) => strategies::debate(&mut drawing, team, it),
        Collaboration::Supervisor(it) => strategies::supervisor(&mut drawing, team, it),
        Collaboration::Consensus(it) => strategies::consensus(&mut drawing, team, it),
        Collaboration::Relay(it) => strategies::relay(&mut drawing, team, it),
        Collaboration::Adaptive(it) => strategies::adaptive(&mut drawing, team, it),
    }
    if let Some(auto) = &spec.auto {
        drawing.note(format!("auto chose {}: {}", auto.chose, auto.because));
    }
    drawing
}

/// Where the work comes from.
fn begin(drawing: &mut Drawing, team: &Team) -> usize {
    drawing.node(Kind::Outside, [lead(team), "the task"])
}

/// Where it ends.
fn end(drawing: &mut Drawing, team: &Team) -> usize {
    let words = if team.lead().is_some() { "words the answer" } else { "the answer" };
    drawing.node(Kind::Outside, [lead(team), words])
}

/// What stands for the lead: its name, if there is one.
pub(super) fn lead(team: &Team) -> &str {
    team.lead().map_or(PARENT, |lead| &lead.name)
}

/// The display name of an agent, or what stands for the lead.
pub(super) fn name<'t>(team: &'t Team, id: &'t AgentId) -> &'t str {
    if id.as_str() == PARENT { lead(team) } else { &team.agent(id).name }
}

fn whole(drawing: &mut Drawing, team: &Team, graph: &Graph) {
    let from = begin(drawing, team);
    let nodes = nodes(drawing, team, graph);
    let to = end(drawing, team);
    links(drawing, team, graph, &nodes, (from, to));
    notes(drawing, team, graph, None);
    idle(drawing, team, &[graph]);
}

/// Each stage has a place from which its work begins, and at which that of the stage before ends.
fn staged(drawing: &mut Drawing, team: &Team, stages: &Stages) {
    let mut from = begin(drawing, team);
    let mut last: Option<(&Graph, Vec<usize>)> = None;
    for (n, stage) in stages.stages.iter().enumerate() {
        let place = drawing.node(
            Kind::Place,
            [
                format!("stage {}", stage.name).as_str(),
                if n == 0 { "" } else { "shown the works of the stage before" },
            ],
        );
        if let Some((graph, nodes)) = last.take() {
            links(drawing, team, graph, &nodes, (from, place));
        } else {
            drawing.link(from, place);
        }
        last = Some((&stage.graph, nodes(drawing, team, &stage.graph)));
        from = place;
        notes(drawing, team, &stage.graph, Some(&stage.name));
        if stage.goes_on {
            drawing.note(format!(
                "{}: the next stage follows even if this one ends at a bound",
                stage.name
            ));
        }
    }
    let to = end(drawing, team);
    if let Some((graph, nodes)) = last {
        links(drawing, team, graph, &nodes, (from, to));
    }
    let graphs: Vec<&Graph> = stages.stages.iter().map(|stage| &stage.graph).collect();
    idle(drawing, team, &graphs);
}

/// A program that is not built in may ask anybody.
fn programmed(drawing: &mut Drawing, team: &Team, program: &str, agents: &[AgentId]) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let program = drawing.node(Kind::Choice, [program, "says who does what"]);
    drawing.link(from, program);
    for agent in agents {
        let agent = drawing.node(Kind::Agent, [name(team, agent)]);
        drawing.link(program, agent);
        drawing.link(agent, program);
    }
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.link(program, to);
}

fn dispatched(drawing: &mut Drawing, team: &Team, dispatch: &Dispatch) {
    let from = drawing.node(Kind::Outside, ["the task"]);
    let lead = drawing.node(Kind::Choice, [lead(team), "hands out the work as it sees fit"]);
    drawing.link(from, lead);
    for agent in &dispatch.agents {
        let agent = drawing.node(Kind::Agent, [name(team, agent)]);
        drawing.link(lead, agent);
        drawing.link(agent, lead);
    }
    let to = drawing.node(Kind::Outside, ["the answer"]);
    drawing.labelled(lead, to, Way::Plain, ["finish"]);
}

/// The agents of a graph, in the order in which its edges name them.
fn nodes(drawing: &mut Drawing, team: &Team, graph: &Graph) -> Vec<usize> {
    let structure = Structure::of(&graph.edges);
    let node = |agent: usize| {
        let id = &structure.agents[agent];
        let kind = match (structure.decides(agent), structure.is_reachable(agent)) {
            (_, false) => Kind::Absent,
            (true, true) => Kind::Choice,
            (false, true) => Kind::Agent,
        };
        let alone = if structure.is_reachable(agent) { "" } else { "no work comes here" };
        let choice = if structure.decides(agent) { "chooses where the work goes" } else { "" };
        let join = join(graph.join(id), structure.is_join(agent));
        let own = graph.nodes.get(id).and_then(|node| node.on_failure);
        let failing = own.map(|it| format!("if it fails: {}", remedy(it))).unwrap_or_default();
        drawing.node(kind, [name(team, id), alone, join.as_str(), choice, failing.as_str()])
    };
    (0..structure.agents.len()).map(node).collect()
}

fn join(join: Join, is_join: bool) -> String {
    match join {
        Join::All if is_join => "waits for all that can come".to_owned(),
        Join::All => String::new(),
        Join::Any => "starts with the first that comes".to_owned(),
        Join::Quorum(inputs) => format!("starts with {}", counted(inputs, "input")),
    }
}

fn remedy(on_failure: OnFailure) -> String {
    let then = match on_failure.then {
        Remedy::Lead => "the lead decides",
        Remedy::Stop => "its branch ends",
        Remedy::Skip => "it is passed over",
        Remedy::Ask => "a person decides",
    };
    match on_failure.retry {
        0 => then.to_owned(),
        1 => format!("1 more try, then {then}"),
        tries => format!("{tries} more tries, then {then}"),
    }
}

/// The edges of a graph, between where its work begins and where it ends.
fn links(
    drawing: &mut Drawing,
    team: &Team,
    graph: &Graph,
    nodes: &[usize],
    (begin, end): (usize, usize),
) {
    let structure = Structure::of(&graph.edges);
    for (at, edge) in graph.edges.iter().enumerate() {
        let from = structure.source(at).map_or(begin, |agent| nodes[agent]);
        let to = structure.target(at).map_or(end, |agent| nodes[agent]);
        let kind = if edge.is_for_failures() { Way::Spare } else { Way::Plain };
        drawing.labelled(from, to, kind, words(team, graph, &structure, at, edge));
    }
}

/// What stands at an edge: its label, who takes it, and how often.
fn words(team: &Team, graph: &Graph, structure: &Structure, at: usize, edge: &Edge) -> Vec<String> {
    let mut lines: Vec<String> = edge.label.iter().map(ToString::to_string).collect();
    lines.extend(edge.when.as_ref().map(guard));
    let source = structure.source(at);
    if source.is_some_and(|agent| structure.decides(agent) && structure.default(agent) == Some(at))
    {
        lines.push("by default".to_owned());
    }
    let own = source.and_then(|agent| structure.loop_of(agent)).filter(|_| structure.is_back(at));
    if let Some(own) = own {
        let cap = graph.cap_of(structure, &structure.loops[own]).max(1);
        lines.push(format!("at most {}", counted(cap, "round")));
    }
    if edge.exit && edge.to.as_str() != PARENT {
        lines.push(format!("ends here; {} is not run", name(team, &edge.to)));
    }
    lines
}

/// Which replies take an edge, in words.
pub(super) fn guard(guard: &Guard) -> String {
    match guard {
        Guard::Failed => "if it failed".to_owned(),
        Guard::Reply(matchers) => format!("if {}", matching(matchers)),
        Guard::Expr(expression) => format!("if {}", expression.as_str()),
    }
}

fn matching(matchers: &Matchers) -> String {
    let Matchers { contains, regex, score_gte, score_label, no_changes, verdict } = matchers;
    let label = score_label.as_deref().unwrap_or("score");
    let verdict = verdict.map(|verdict| match verdict {
        Review::Approve => "it approves".to_owned(),
        Review::Reject => "it rejects".to_owned(),
    });
    let ways = [
        verdict,
        contains.as_ref().map(|text| format!("it contains \"{text}\"")),
        regex.as_ref().map(|pattern| format!("it matches /{}/", pattern.as_str())),
        score_gte.map(|least| format!("{label} ≥ {least}")),
        no_changes.then(|| "nothing changed".to_owned()),
    ];
    ways.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// What holds for all of a graph.
fn notes(drawing: &mut Drawing, team: &Team, graph: &Graph, stage: Option<&str>) {
    let place = stage.map(|stage| format!("{stage}: ")).unwrap_or_default();
    if graph.routing == Routing::Lead {
        drawing.note(format!("{place}{} says who is next among those that are due", lead(team)));
    }
    if let Some(termination) = &graph.termination {
        for condition in ends(team, termination) {
            drawing.note(format!("{place}ends as soon as {condition}"));
        }
    }
    if let Some(judge) = &graph.judge {
        drawing.note(format!("{place}{} judges whether it has converged", name(team, judge)));
    }
    if let Some(result) = &graph.result {
        drawing.note(format!("{place}the answer is the last reply of {}", name(team, result)));
    }
    let usual = if team.lead().is_some() { Remedy::Lead } else { Remedy::Stop };
    if graph.on_failure != (OnFailure { retry: 0, then: usual }) {
        drawing.note(format!("{place}if a step fails: {}", remedy(graph.on_failure)));
    }
}

/// What ends a graph: each condition for itself, where any of them does.
fn ends(team: &Team, group: &Group) -> Vec<String> {
    match (&group.any_of, &group.all_of) {
        (Some(any), None) => any.iter().map(|member| of_member(team, member)).collect(),
        _ => vec![of_group(team, group)],
    }
}

fn of_member(team: &Team, member: &Member) -> String {
    match member {
        Member::One(condition) => test(team, &condition.test),
        Member::Group(group) => format!("({})", of_group(team, group)),
    }
}

fn of_group(team: &Team, group: &Group) -> String {
    let list = |members: &Option<Vec<Member>>, word| {
        let members = members.as_ref()?.iter().map(|member| of_member(team, member));
        Some(members.collect::<Vec<_>>().join(word))
    };
    match (list(&group.any_of, " or "), list(&group.all_of, " and ")) {
        (Some(any), Some(all)) => format!("({any}) and {all}"),
        (any, all) => any.or(all).unwrap_or_default(),
    }
}

/// What must be so for a graph to end, in words.
pub(super) fn test(team: &Team, test: &Test) -> String {
    match test {
        Test::MaxIterations { rounds, of } => {
            let of = of.as_ref().map(|agent| format!(" of {}", name(team, agent)));
            let of = of.unwrap_or_default();
            format!("a loop{of} has had {}", counted(*rounds, "round"))
        }
        Test::Timeout(time) => format!("{time} have passed"),
        Test::Converged { declared_by: Some(agent), .. } => {
            format!("{} declares the work done", name(team, agent))
        }
        Test::Converged { criterion, declared_by: None } => format!("converged: {criterion}"),
        Test::Matches { agent, matchers } => {
            format!("{}: {}", name(team, agent), matching(matchers))
        }
        Test::Own(own) => own.describe.as_ref().unwrap_or(&own.name).to_string(),
        Test::Stuck { repeats, agent } => {
            let of = agent.as_ref().map_or("somebody", |agent| name(team, agent));
            format!("{of} said the same {repeats} times")
        }
    }
}

/// The agents that no edge names and that judge nothing.
fn idle(drawing: &mut Drawing, team: &Team, graphs: &[&Graph]) {
    let named: BTreeSet<&AgentId> = graphs.iter().flat_map(|graph| graph.agents()).collect();
    for agent in team.agents.iter().filter(|agent| !named.contains(&agent.id)) {
        drawing.node(Kind::Absent, [&*agent.name, "no edge names it"]);
    }
}
