//! The steps of a run along a graph: the edge that each took, and why.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Drawing, Kind, Way, counted, run,
    team::{guard, lead, name, test},
};
use crate::{
    key::{Key, push_segment},
    known::{Entry, Known},
    programs::graph::{Edge, Graph, Group, Join, PARENT, Structure},
    run::Run,
    spec::Spec,
    team::AgentId,
    time::Time,
    view::Outcome,
};

/// Draws the steps of these stages; one without a name is the whole graph.
pub(super) fn draw(
    drawing: &mut Drawing,
    spec: &Spec,
    run: &Run,
    outcome: &Outcome,
    stages: &[(Option<&str>, &Graph)],
) {
    let known = run.known();
    let mut from = drawing.node(Kind::Outside, [lead(&spec.team), "the task"]);
    let steps = Step::all(outcome, known);
    let mut drawn: Option<Pass> = None;
    for (stage, graph) in stages {
        let own: Vec<&Step> = steps.iter().filter(|it| it.stage.as_deref() == *stage).collect();
        let has_begun = known.iter().any(|(key, _)| key.is_under(&path(*stage)));
        if stage.is_some() && !has_begun {
            break;
        }
        if let Some(stage) = stage {
            let place = drawing.node(Kind::Place, [format!("stage {stage}")]);
            match drawn.take() {
                Some(before) => before.links(drawing, Some(place)),
                None => drawing.link(from, place),
            }
            from = place;
        }
        let nodes = own.iter().map(|step| step.node(drawing, spec)).collect();
        let (structure, stage) = (Structure::of(&graph.edges), *stage);
        drawn = Some(Pass {
            spec,
            known,
            outcome,
            graph,
            structure,
            stage,
            from,
            steps: own,
            nodes,
            absent: BTreeMap::new(),
        });
    }
    let end = run::end(drawing, outcome);
    let closing = known.get("lead/final").map(|entry| {
        let (kind, fault) = state(entry);
        drawing.node(kind, [lead(&spec.team), "words the answer", fault.as_str()])
    });
    if let (Some(closing), Some(end)) = (closing, end) {
        drawing.link(closing, end);
    }
    if let Some(last) = drawn {
        last.links(drawing, closing.or(end));
    }
}

/// Where the calls of a stage stand.
fn path(stage: Option<&str>) -> String {
    let mut path = String::new();
    if let Some(stage) = stage {
        push_segment(&mut path, stage);
        path.push('/');
    }
    path
}

/// The look of what was asked, and what is to be said of it.
pub(super) fn state(entry: &Entry) -> (Kind, String) {
    match &entry.outcome {
        None => (Kind::Absent, "at work".to_owned()),
        Some(Ok(_)) => (Kind::Agent, String::new()),
        Some(Err(_)) if entry.withdrawn => (Kind::Absent, "called off".to_owned()),
        Some(Err(fault)) if entry.refused => (Kind::Absent, format!("refused: {fault}")),
        Some(Err(fault)) => (Kind::Failed, format!("failed: {fault}")),
    }
}

/// One step, as the result tells it, and where it stands in the log.
struct Step {
    number: u64,
    agent: AgentId,
    stage: Option<String>,
    round: u32,
    attempt: u64,
    error: Option<String>,
    decides: bool,
    next: Vec<AgentId>,
    why: Option<String>,
    /// The record in which it was asked; none if nobody was.
    asked: Option<u64>,
    /// The record in which it was answered.
    settled: u64,
    /// When, in words.
    at: String,
}

impl Step {
    /// All steps in the order of their numbers.
    fn all(outcome: &Outcome, known: &Known) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for round in &outcome.rounds {
            let stage = round["stage"].as_str();
            let of_round = round["steps"].as_array().into_iter().flatten();
            steps.extend(of_round.map(|step| Step::read(stage, &round["round"], step)));
        }
        steps.sort_by_key(|step| step.number);
        let mut runs: BTreeMap<String, u64> = BTreeMap::new();
        for step in &mut steps {
            let mut key = path(step.stage.as_deref());
            push_segment(&mut key, &step.agent);
            let nth = runs.entry(key.clone()).or_default();
            *nth += u64::from(step.attempt == 1);
            key = format!("{key}/{nth}");
            if step.attempt > 1 {
                key = format!("{key}/try-{}", step.attempt);
            }
            if let Some(entry) = known.get(&key) {
                let turn = known.turn(&Key::parse(&key));
                step.asked = Some(entry.asked);
                step.settled = turn.iter().map(|it| it.settled).max().unwrap_or(entry.settled);
                step.at = entry.settled_at.since(Time::default()).to_string();
            }
        }
        steps
    }

    fn read(stage: Option<&str>, round: &Value, step: &Value) -> Step {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let next = step["next"].as_array().into_iter().flatten();
        Step {
            number: step["step"].as_u64().unwrap_or_default(),
            agent: AgentId(step["agent"].as_str().unwrap_or_default().into()),
            stage: stage.map(str::to_owned),
            round: round.as_u64().unwrap_or_default() as u32,
            attempt: step["attempt"].as_u64().unwrap_or(1),
            error: text(&step["response"]["error"]),
            decides: step["options"].is_array(),
            next: next.filter_map(|it| Some(AgentId(it.as_str()?.into()))).collect(),
            why: text(&step["why"]),
            asked: None,
            settled: 0,
            at: String::new(),
        }
    }

    fn node(&self, drawing: &mut Drawing, spec: &Spec) -> usize {
        let kind = match (&self.error, self.decides) {
            (Some(_), _) => Kind::Failed,
            (None, true) => Kind::Choice,
            (None, false) => Kind::Agent,
        };
        let title = format!("{} · {}", self.number, name(&spec.team, &self.agent));
        let attempt =
            if self.attempt > 1 { format!(", attempt {}", self.attempt) } else { String::new() };
        let at = if self.at.is_empty() { String::new() } else { format!(", at {}", self.at) };
        let when = format!("round {}{attempt}{at}", self.round);
        let failed =
            self.error.as_ref().map(|error| format!("failed: {error}")).unwrap_or_default();
        drawing.node(kind, [title, when, failed])
    }

    /// Whether it was asked after another had been answered.
    fn follows(&self, before: &Step) -> bool {
        self.number > before.number && self.asked.is_none_or(|asked| asked > before.settled)
    }
}

/// One pass through a graph.
struct Pass<'a> {
    spec: &'a Spec,
    known: &'a Known,
    outcome: &'a Outcome,
    graph: &'a Graph,
    structure: Structure,
    stage: Option<&'a str>,
    from: usize,
    steps: Vec<&'a Step>,
    nodes: Vec<usize>,
    /// Those that work went to and that did not take it as a step.
    absent: BTreeMap<AgentId, usize>,
}

impl Pass<'_> {
    /// Draws how work went from step to step, and where it ended.
    fn links(mut self, drawing: &mut Drawing, end: Option<usize>) {
        let mut entered: Vec<&AgentId> = Vec::new();
        let graph = self.graph;
        for edge in graph.edges.iter().filter(|edge| edge.from.as_str() == PARENT) {
            if !entered.contains(&&edge.to) {
                entered.push(&edge.to);
                let first = self.steps.iter().position(|it| it.agent == edge.to);
                let to = match first {
                    Some(first) => self.nodes[first],
                    None => self.pending(drawing, &edge.to, 0),
                };
                drawing.labelled(self.from, to, Way::Plain, edge.label.as_deref());
            }
        }
        let before = drawing.links.len();
        for (at, step) in self.steps.clone().into_iter().enumerate() {
            for to in &step.next {
                self.went(drawing, at, to, end);
            }
            let Some(end) = end.filter(|_| step.next.is_empty()) else { continue };
            if step.error.is_some() {
                drawing.labelled(self.nodes[at], end, Way::Spare, ["its branch ended"]);
            } else {
                drawing.labelled(self.nodes[at], end, Way::Plain, [self.stopped(step)]);
            }
        }
        // A lead may finish without taking an exit.
        let last = self.nodes.last().copied().unwrap_or(self.from);
        if let Some(end) = end
            && drawing.links[before..].iter().all(|link| link.to != end)
        {
            drawing.labelled(last, end, Way::Spare, ["then"]);
        }
    }

    fn went(&mut self, drawing: &mut Drawing, at: usize, to: &AgentId, end: Option<usize>) {
        let (step, from) = (self.steps[at], self.nodes[at]);
        let edge = self.edge(&step.agent, to);
        if to.as_str() == PARENT {
            let Some(end) = end else { return };
            return drawing.labelled(from, end, Way::Plain, why(step, edge));
        }
        let is_retry = step.error.is_some() && *to == step.agent;
        let is_spare = step.error.is_some() && !is_retry;
        let mut label = if is_retry { vec!["again".to_owned()] } else { why(step, edge) };
        if is_spare && !edge.is_some_and(Edge::is_for_failures) {
            label.push("passed over".to_owned());
        }
        let way = if is_spare { Way::Spare } else { Way::Plain };
        // What is tried again takes up no new work, so nothing else can have been asked before it.
        let takes = |it: &Step| it.agent == *to && (is_retry || it.follows(step));
        let taker = self.steps.iter().enumerate().skip(at + 1).find(|(_, it)| takes(it));
        let target = match taker {
            Some((_, taker)) if self.came_too_late(step, to, taker) => {
                let name = name(&self.spec.team, to);
                drawing.node(Kind::Absent, [name, "had started without it"])
            }
            Some((taker, _)) => self.nodes[taker],
            None => self.pending(drawing, to, step.settled),
        };
        drawing.labelled(from, target, way, label);
    }

    /// Whether an agent that does not wait for all had started before work came that it needed no more.
    fn came_too_late(&self, step: &Step, to: &AgentId, taker: &Step) -> bool {
        let waits = self.graph.join(to) == Join::All;
        let edge = self.graph.edges.iter().position(|it| it.from == step.agent && it.to == *to);
        let goes_back = edge.is_some_and(|edge| self.structure.is_back(edge));
        !waits && taker.round > step.round + u32::from(goes_back)
    }

    /// The edge between two agents, the exit for the lead.
    fn edge(&self, from: &AgentId, to: &AgentId) -> Option<&Edge> {
        let is_exit = to.as_str() == PARENT;
        let mut edges = self.graph.edges.iter().filter(|edge| edge.from == *from);
        edges.find(|edge| if is_exit { edge.exit } else { edge.to == *to && !edge.exit })
    }

    /// Somebody to whom work went that is not told of as a step.
    fn pending(&mut self, drawing: &mut Drawing, agent: &AgentId, since: u64) -> usize {
        if let Some(node) = self.absent.get(agent) {
            return *node;
        }
        let mut place = path(self.stage);
        push_segment(&mut place, agent);
        place.push('/');
        let calls = self.known.iter().filter(|(key, it)| key.is_under(&place) && it.asked > since);
        let latest = calls.map(|(_, entry)| entry).max_by_key(|entry| entry.asked);
        let graph = self.outcome.graph.as_ref();
        let skipped = graph.and_then(|graph| graph["skipped"].as_array()).into_iter().flatten();
        let mut why =
            skipped.filter(|it| it["agent"] == *agent.as_str()).filter_map(|it| it["why"].as_str());
        let has_ended = self.outcome.reason.is_some();
        let (kind, what) = match (latest, why.next_back()) {
            (Some(entry), _) if entry.is_open() || entry.fault().is_some() => state(entry),
            (_, Some(why)) => (Kind::Absent, format!("not run: {why}")),
            (_, None) if has_ended => (Kind::Absent, "not run".to_owned()),
            (_, None) => (Kind::Absent, "due".to_owned()),
        };
        let node = drawing.node(kind, [name(&self.spec.team, agent), what.as_str()]);
        self.absent.insert(agent.clone(), node);
        node
    }

    /// Why the work of a step went nowhere.
    fn stopped(&self, step: &Step) -> String {
        let Some(graph) = &self.outcome.graph else { return String::new() };
        let (by, at) = (&graph["stopped_by"], graph["at_step"].as_u64());
        // What is told of the end is told of the last stage.
        if self.steps.last().is_some_and(|last| at > Some(last.number)) {
            return String::new();
        }
        let reason = || self.outcome.reason.clone().unwrap_or_default().replace('_', " ");
        let agent = self.structure.number(&step.agent);
        let is_dead_end = agent.is_some_and(|agent| self.structure.out(agent).is_empty());
        match by["root"].as_bool() {
            Some(true) if step.decides => {
                let cap = by["max_iterations"].as_u64().unwrap_or_default();
                format!("at the cap of {}", counted(cap, "round"))
            }
            None if at == Some(step.number) && !by.is_null() => {
                let conditions = self.graph.termination.iter().flat_map(Group::conditions);
                let held = conditions.into_iter().find(|condition| condition.written == *by);
                held.map_or_else(reason, |condition| test(&self.spec.team, &condition.test))
            }
            Some(_) | None if is_dead_end => "no edge leads on".to_owned(),
            Some(_) | None => reason(),
        }
    }
}

/// What is said of an edge that was taken: its label, and why it was.
fn why(step: &Step, edge: Option<&Edge>) -> Vec<String> {
    let when = || edge.and_then(|edge| edge.when.as_ref()).map_or_else(String::new, guard);
    let label = edge.and_then(|edge| edge.label.as_ref()).map(ToString::to_string);
    let why = match step.why.as_deref() {
        Some("field") => "named in its field next".to_owned(),
        Some("line") => "named in its line NEXT".to_owned(),
        Some("guard") => when(),
        Some("asked") => "named when asked once more".to_owned(),
        Some("default") => "by default".to_owned(),
        Some("lead") => "the lead chose it".to_owned(),
        Some(other) => other.to_owned(),
        None if step.error.is_some() => when(),
        None => String::new(),
    };
    label.into_iter().chain([why]).collect()
}
