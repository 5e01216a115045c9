//! From what a file says of a graph to one that can be walked (graph.md §§2, 17).

mod conditions;
mod edges;
mod gates;
mod lints;
mod trial;
mod view;

pub use view::{GraphView, view};

use std::collections::BTreeMap;

use trial::Trials;

use crate::{
    check::{
        extensions::{Extensions, misplaced},
        listing::Roster,
    },
    diagnostic::{Diagnostic, ENOUGH, Place, quoted},
    file::{
        collaboration::PARAMETERS,
        graph::{GRAPH, STAGES},
        item::{Fields, Item},
    },
    names,
    programs::{
        Clocks,
        graph::{
            Edge, Graph, Join, JudgeError, Node, OnFailure, PARENT, Remedy, Routing, Stage, Stages,
            Structure, USUAL_CAP,
        },
    },
    spec::Collaboration,
    team::{AgentId, Team},
    time::Duration,
};

/// The judge of a team that names none: its model, without any agent's prompt. No agent's id holds a
/// blank.
pub(super) const DEFAULT_JUDGE: &str = "default judge";

/// Whether a collaboration says anything that only a graph knows.
pub(super) fn is_asked_for(given: &Fields) -> bool {
    let keys = GRAPH.iter().chain(STAGES).map(|field| field.name);
    let mut keys = keys.filter(|key| given.get(key).is_some() || given.is_broken(key));
    keys.next().is_some()
}

/// Whether only a graph knows a key.
pub(super) fn knows(key: &str) -> bool {
    GRAPH.iter().chain(STAGES).any(|field| field.name == key)
}

/// Reads a file by its name, or tells why it cannot.
pub(super) type Read<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Reads one graph: the whole collaboration, or a stage of it.
pub(super) struct Reading<'a> {
    /// What the file says of it.
    pub(super) given: &'a Fields,
    /// What it says of all stages, for what a stage does not say itself.
    pub(super) shared: Option<&'a Fields>,
    /// The team, with its lead if it has one.
    pub(super) team: &'a Team,
    /// Its members by name.
    pub(super) roster: &'a Roster<'a>,
    /// The topologies and conditions that can be named.
    pub(super) extensions: &'a Extensions<'a>,
    /// Histories to try expressions out on, once its edges are known.
    trials: Option<Trials>,
    /// What reads the files that it names.
    pub(super) read: Read<'a>,
    /// What is wrong so far.
    pub(super) told: &'a mut Vec<Diagnostic>,
}

impl Reading<'_> {
    /// The graph; nothing if it has an error.
    pub(super) fn graph(&mut self) -> Option<Graph> {
        let before = self.told.len();
        let edges = self.edges();
        let termination = self.termination();
        let judge = self.judge();
        let nodes = self.nodes(edges.as_deref().unwrap_or_default());
        let result = self.agent("result");
        let routing = match self.word("routing") {
            Some("lead") => Routing::Lead,
            _ => Routing::Engine,
        };
        if routing == Routing::Lead && self.team.lead().is_none() {
            let message = "routing: lead needs a lead: give the team a prompt";
            let place = self.get("routing").map_or(&self.given.place, |item| &item.place).clone();
            self.tell("no_lead", message.to_owned(), &place);
        }
        let on_failure = self.get("on_failure").and_then(on_failure).unwrap_or(OnFailure {
            retry: 0,
            then: if self.team.lead().is_some() { Remedy::Lead } else { Remedy::Stop },
        });
        let edges = edges?;
        let has_loop = !Structure::of(&edges).loops.is_empty();
        let findings = self.findings(has_loop);
        self.check_gates(&edges, routing);
        let given = self.get("max_iterations").and_then(Item::whole).map(|cap| cap as u32);
        let is_sound = self.told[before..].iter().all(|it| !it.is_error());
        (is_sound && !self.given.is_faulty()).then(|| Graph {
            cap: given.or(has_loop.then_some(USUAL_CAP)).filter(|_| has_loop),
            topology: self.given.text("topology").map(|name| name.trim().into()),
            edges,
            termination,
            judge,
            judge_error: match self.word("judge_error") {
                Some("ignore") => JudgeError::Ignore,
                _ => JudgeError::Stop,
            },
            on_failure,
            nodes,
            result,
            routing,
            findings,
            clocks: Clocks {
                timeout: self.clock("timeout", Clocks::default().timeout),
                call_timeout: self.clock("call_timeout", None),
            },
        })
    }

    /// What is said of a key: here, else of all stages.
    fn get(&self, key: &str) -> Option<&Item> {
        self.given.get(key).or_else(|| self.shared?.get(key))
    }

    fn word(&self, key: &str) -> Option<&str> {
        self.get(key)?.text().map(|word| &**word)
    }

    /// A clock; `usual` if nothing is said of it.
    fn clock(&self, key: &str, usual: Option<Duration>) -> Option<Duration> {
        let given = self.given.time(key).or_else(|| self.shared?.time(key));
        given.unwrap_or(usual)
    }

    fn tell(&mut self, code: &'static str, message: String, place: &Place) {
        self.told.push(Diagnostic::error(code, message).at(place));
    }

    /// The agent that a key names.
    fn agent(&mut self, key: &str) -> Option<AgentId> {
        let item = self.get(key)?.clone();
        self.named(key, &item)
    }

    /// The agent that stands at `item`, as `what` refers to it.
    fn named(&mut self, what: &str, item: &Item) -> Option<AgentId> {
        let name = item.text()?.trim();
        let found = self.roster.find(name).map(|agent| agent.id.clone());
        if found.is_none() {
            let message = format!("{what} references unknown agent {}", quoted(name));
            let help = self.nearest(name);
            self.told.push(Diagnostic::error("unknown_agent", message).at(&item.place).help(help));
        }
        found
    }

    /// The ids of the team's members.
    fn ids(&self) -> Vec<&str> {
        self.team.agents.iter().map(|agent| agent.id.as_str()).collect()
    }

    fn nearest(&self, name: &str) -> Option<String> {
        // No more findings than these are told.
        if self.told.len() >= ENOUGH {
            return None;
        }
        let agents = self.team.agents.iter();
        let known = agents.flat_map(|agent| {
            let other = Some(&*agent.name).filter(|name| *name != agent.id.as_str());
            [agent.id.as_str()].into_iter().chain(other)
        });
        names::suggestion(name, known.chain([PARENT]))
    }

    /// Who judges: who is named, else an agent called judge that is no part of the graph, else the
    /// team's model.
    fn judge(&mut self) -> Option<AgentId> {
        let asks = self.asks_a_judge();
        if self.get("judge").is_some() {
            return self.agent("judge");
        }
        let place = asks?;
        let is_part = |agent: &AgentId| self.mentions(agent);
        let called = AgentId::from("judge");
        if self.team.has(&called) && !is_part(&called) {
            return Some(called);
        }
        let default = AgentId::from(DEFAULT_JUDGE);
        if self.team.has(&default) {
            return Some(default);
        }
        let message = "converged needs a judge: name one or give a model";
        self.tell("no_judge", message.to_owned(), &place);
        None
    }

    fn nodes(&mut self, edges: &[Edge]) -> BTreeMap<AgentId, Node> {
        let structure = Structure::of(edges);
        let mut nodes = BTreeMap::new();
        for (name, place, fields) in self.given.named("nodes") {
            let Some(agent) = self.roster.find(name) else {
                let message = format!("nodes references unknown agent {}", quoted(name));
                let help = self.nearest(name);
                self.told.push(Diagnostic::error("unknown_agent", message).at(place).help(help));
                continue;
            };
            let into = structure.number(&agent.id).map_or(0, |at| structure.incoming(at).len());
            let join = self.join(fields, into);
            nodes.insert(
                agent.id.clone(),
                Node { join, on_failure: fields.get("on_failure").and_then(on_failure) },
            );
        }
        nodes
    }

    fn join(&mut self, of: &Fields, into: usize) -> Join {
        let Some(item) = of.get("join") else { return Join::All };
        if let Some(fields) = item.fields() {
            let Some(quorum) = fields.whole("quorum") else { return Join::All };
            if quorum as usize > into {
                let message =
                    format!("quorum must be a whole number from 1 to {into}; got {quorum}");
                self.tell("bad_value", message, fields.place_of("quorum"));
            }
            return Join::Quorum(quorum as u32);
        }
        if item.text().is_some_and(|word| &**word == "any") { Join::Any } else { Join::All }
    }
}

/// What a failing step means, as `item` says.
fn on_failure(item: &Item) -> Option<OnFailure> {
    let remedy = |word: &str| match word {
        "lead" => Remedy::Lead,
        "skip" => Remedy::Skip,
        "ask" => Remedy::Ask,
        _ => Remedy::Stop,
    };
    match item.fields() {
        Some(fields) => Some(OnFailure {
            retry: fields.whole("retry")? as u32,
            then: remedy(fields.text("then")?),
        }),
        None => Some(OnFailure { retry: 0, then: remedy(item.text()?) }),
    }
}

/// The keys that may stand beside `stages`: what holds for each stage that does not say otherwise.
const BESIDE_STAGES: [&str; 8] = [
    "stages",
    "routing",
    "judge",
    "judge_error",
    "on_failure",
    "max_iterations",
    "timeout",
    "call_timeout",
];

/// The parameters of strategies that graphs know as well; `strategy` itself is an error there.
const SHARED_WITH_STRATEGIES: [&str; 5] =
    ["strategy", "agents", "judge", "timeout", "call_timeout"];

/// What a file asks for: one graph, or several one after another.
pub(super) fn resolve(
    given: &Fields,
    team: &Team,
    extensions: &Extensions,
    read: Read,
    told: &mut Vec<Diagnostic>,
) -> Option<Found> {
    let roster = &Roster::of(team);
    if given.get("strategy").is_some() {
        let message = "a collaboration is one thing; found strategy and the keys of a graph";
        told.push(Diagnostic::error("bad_config", message).at(given.key("strategy")));
    }
    let is_of_strategies = |key: &&str| {
        let mut own = PARAMETERS.iter().filter(|it| !SHARED_WITH_STRATEGIES.contains(&it.name));
        own.any(|it| it.name == *key)
    };
    if given.get("stages").is_none() {
        for key in given.names().filter(is_of_strategies) {
            let message = format!("{key} has no effect in a graph");
            told.push(Diagnostic::warning("ignored_parameter", message).at(given.key(key)));
        }
        if given.is_broken("stages") {
            return None;
        }
        let graph =
            Reading { given, shared: None, team, roster, extensions, trials: None, read, told }
                .graph()?;
        return Some(Found { collaboration: Collaboration::Graph(graph) });
    }
    for key in given.names().filter(|key| !BESIDE_STAGES.contains(key)) {
        let message = format!("{key} cannot stand beside stages");
        told.push(Diagnostic::error("bad_config", message).at(given.key(key)));
    }
    told.extend(misplaced(given));
    let items = given.list("stages");
    if items.is_empty() {
        let message = "stages must not be empty";
        told.push(Diagnostic::error("bad_value", message).at(given.place_of("stages")));
    }
    let mut stages: Vec<Option<Stage>> = Vec::new();
    for fields in items.iter().filter_map(Item::fields) {
        let shared = Some(given);
        let graph =
            Reading { given: fields, shared, team, roster, extensions, trials: None, read, told }
                .graph();
        let name = fields.text("name").map(|name| name.trim());
        let is_taken = |it: &Option<Stage>| it.as_ref().is_some_and(|it| Some(&*it.name) == name);
        if stages.iter().any(is_taken) {
            let message = format!("two stages are named {}", quoted(name.unwrap_or_default()));
            told.push(Diagnostic::error("bad_name", message).at(fields.place_of("name")));
        }
        let goes_on = fields.text("on_bound").is_some_and(|word| &**word == "continue");
        let stage =
            name.zip(graph).map(|(name, graph)| Stage { name: name.into(), graph, goes_on });
        stages.push(stage);
    }
    let stages: Option<Vec<Stage>> = stages.into_iter().collect();
    let stages = stages.filter(|stages| !stages.is_empty() && !given.is_faulty())?;
    Some(Found { collaboration: Collaboration::Stages(Stages { stages }) })
}

/// A sound graph, or several.
pub(super) struct Found {
    pub(super) collaboration: Collaboration,
}

impl Found {
    /// The graphs, and where each is described.
    fn graphs<'a>(&'a self, given: &'a Fields) -> Vec<(&'a Graph, &'a Fields)> {
        let mut items = given.list("stages").iter().filter_map(Item::fields);
        let place = |(stage, graph): (Option<&str>, &'a Graph)| match stage {
            None => Some((graph, given)),
            Some(_) => Some((graph, items.next()?)),
        };
        self.collaboration.graphs().into_iter().filter_map(place).collect()
    }

    /// Whether somebody who is no member of the team has work to do.
    pub(super) fn needs(&self, given: &Fields, agent: &AgentId) -> bool {
        let mut graphs = self.graphs(given).into_iter();
        agent.as_str() == PARENT || graphs.any(|(graph, _)| graph.judge.as_ref() == Some(agent))
    }

    /// Whether some edge requires what only the workspace can tell.
    pub(super) fn needs_workspace(&self) -> bool {
        let mut required = self.collaboration.requirements().into_iter();
        required.any(|it| it.script.is_empty() && it.gate.needs_workspace())
    }

    /// What is doubtful about it.
    pub(super) fn warnings(&self, file: &Fields, given: &Fields, team: &Team) -> Vec<Diagnostic> {
        let graphs = self.graphs(given);
        let all: Vec<&Graph> = graphs.iter().map(|(graph, _)| *graph).collect();
        let mut told = lints::orphans(&all, file, team);
        let lints = |(graph, own): &(&Graph, &Fields)| lints::warnings(graph, own, given, team);
        told.extend(graphs.iter().flat_map(lints));
        told
    }
}
