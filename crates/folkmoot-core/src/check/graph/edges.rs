//! The edges of a graph: those of its topology, then those of `flow` (graph.md §§3, 4).

use std::collections::{BTreeMap, BTreeSet};

use super::{Reading, trial::Trials};
use crate::{
    check::extensions::{BAD_EXTENSION, Given, misplaced, others},
    diagnostic::{Diagnostic, Place, quoted},
    extension::Expression,
    file::item::{Fields, Item},
    names,
    programs::graph::{Edge, Guard, PARENT},
    team::AgentId,
};

/// An edge, and where it stands.
struct Placed {
    edge: Edge,
    place: Place,
    /// Whether it comes from `flow`.
    is_own: bool,
}

impl Reading<'_> {
    /// The merged edges; nothing if they cannot be trusted to be all of them.
    pub(super) fn edges(&mut self) -> Option<Vec<Edge>> {
        let before = self.told.len();
        let mut placed = self.topology();
        let template = placed.is_some();
        if !template && self.given.get("agents").is_some() && self.given.get("topology").is_none() {
            let message = "agents has no effect without topology";
            let place = self.given.key("agents").clone();
            self.told.push(Diagnostic::warning("unused_agents", message).at(&place));
        }
        if self.given.get("topology").is_none() {
            self.told.extend(misplaced(self.given));
        }
        let flow = self.flow();
        let named = self.given.text("topology").map(|name| name.trim());
        let is_broken = ["topology", "flow", "agents"].iter().any(|key| self.given.is_broken(key))
            || named.is_some_and(|name| self.extensions.broken.contains(name));
        let is_sound = self.told[before..].iter().all(|it| !it.is_error());
        placed.get_or_insert_default().extend(flow);
        let placed = placed.unwrap_or_default();
        if placed.is_empty() && is_sound && !is_broken {
            let message = "no edges defined — provide topology+agents or flow";
            self.tell("bad_config", message.to_owned(), &self.given.place);
            return None;
        }
        let merged = self.merged(placed);
        self.check_ends(&merged, is_sound && !is_broken);
        self.check_flags(&merged);
        let edges: Vec<Edge> = merged.iter().map(|placed| placed.edge.clone()).collect();
        let trials = Trials::of(&edges);
        for Placed { edge, place, .. } in &merged {
            self.told.extend(trials.of_guard(edge, place));
        }
        self.trials = Some(trials);
        Some(edges)
    }

    /// The edges of the topology, if there is one.
    fn topology(&mut self) -> Option<Vec<Placed>> {
        let extensions = self.extensions;
        let topologies = extensions.registry.topologies();
        let item = self.given.get("topology")?;
        let name = item.text()?.trim();
        let Some(topology) = topologies.get(name) else {
            if extensions.broken.contains(name) {
                return None;
            }
            let message = format!("unknown topology: {}", quoted(name));
            let help = names::suggestion(name, topologies.keys().map(|name| &**name));
            self.told.push(Diagnostic::error("bad_config", message).at(&item.place).help(help));
            return None;
        };
        if self.given.is_broken("agents") {
            return None;
        }
        let place = item.place.clone();
        let agents = self.listed();
        if agents.is_empty() {
            if self.given.list("agents").is_empty() {
                let message = "topology requires at least one agent in 'agents' field";
                self.tell("bad_config", message.to_owned(), &place);
            }
            return None;
        }
        let of = format!("topology {}", quoted(name));
        let (defaults, needed) = (&topology.params, BTreeSet::new());
        let given = Given { of: &of, defaults, needed, place: &place };
        let params = given.with(others(self.given), self.told)?;
        match (topology.edges)(&agents, &params) {
            Ok(edges) => Some(edges.into_iter().map(|edge| self.made(edge, &of, &place)).collect()),
            Err(why) => {
                self.tell(BAD_EXTENSION, format!("{of}: {why}"), &place);
                None
            }
        }
    }

    /// An edge that a topology has made.
    fn made(&mut self, edge: Edge, by: &str, place: &Place) -> Placed {
        let before = self.told.len();
        let line = edge.to_string();
        let edge = self.between_members(edge, place);
        for told in &mut self.told[before..] {
            told.message = format!("{by}: {} ({})", told.message, quoted(&line));
        }
        Placed { edge, place: place.clone(), is_own: false }
    }

    /// The agents of the topology, each once.
    fn listed(&mut self) -> Vec<AgentId> {
        let (mut agents, mut known) = (Vec::new(), BTreeSet::new());
        for item in self.given.list("agents") {
            if let Some(text) = item.text().filter(|_| item.is_bare) {
                let message = format!("agents must be a list of names; got {text}");
                self.tell("bad_value", message, &item.place);
                continue;
            }
            let Some(agent) = self.named("agents", item) else { continue };
            if known.insert(agent.clone()) {
                agents.push(agent);
            } else {
                let message = format!("{} is listed twice in agents", quoted(agent.as_str()));
                self.tell("bad_name", message, &item.place);
            }
        }
        agents
    }

    fn flow(&mut self) -> Vec<Placed> {
        let items = self.given.list("flow");
        items.iter().filter_map(|item| self.edge(item)).collect()
    }

    fn edge(&mut self, item: &Item) -> Option<Placed> {
        let place = item.place.clone();
        let Some(fields) = item.fields() else {
            let text = item.text()?;
            let Some(edge) = Edge::parse(text) else {
                let message = format!("invalid flow edge string: {}", quoted(text));
                let help = "write `a -> b` or `a -> b: label`, or a map with from and to";
                let told = Diagnostic::error("bad_edge", message).at(&place);
                self.told.push(told.help(help.to_owned()));
                return None;
            };
            let edge = self.between_members(edge, &place);
            return Some(Placed { edge, place, is_own: true });
        };
        if fields.is_faulty() {
            return None;
        }
        let name = |key| fields.text(key).map(|name| name.trim()).filter(|name| !name.is_empty());
        let (Some(from), Some(to)) = (name("from"), name("to")) else {
            self.tell("bad_edge", "invalid flow edge object".to_owned(), &place);
            return None;
        };
        let (from, to) = (self.end(from, "from", &place), self.end(to, "to", &place));
        let mut edge = Edge::new(from, to);
        self.check_keys(fields, &edge);
        edge.label = fields
            .text("label")
            .map(|it| it.trim().into())
            .filter(|it: &std::sync::Arc<str>| !it.is_empty());
        edge.exit |= fields.flag("exit") == Some(true);
        edge.default = fields.flag("default") == Some(true);
        edge.when = fields.fields("when").and_then(|guard| self.guard(guard));
        edge.requires = self.requires(fields);
        Some(Placed { edge, place, is_own: true })
    }

    /// Tells of keys that make no sense on an edge from, or to, the lead.
    fn check_keys(&mut self, fields: &Fields, edge: &Edge) {
        if edge.from.as_str() == PARENT {
            for key in ["exit", "when", "default", "requires", "tries"] {
                if fields.get(key).is_some() {
                    let message = format!("Edge from \"{PARENT}\" cannot have {key}");
                    self.tell("bad_edge", message, fields.key(key));
                }
            }
        } else if edge.to.as_str() == PARENT && fields.flag("exit") == Some(false) {
            let message = format!("Edge to \"{PARENT}\" cannot have exit: false");
            self.tell("bad_edge", message, fields.place_of("exit"));
        }
    }

    fn guard(&mut self, fields: &Fields) -> Option<Guard> {
        if let Some(failed) = fields.flag("failed") {
            if !failed {
                let message = "failed must be true; got false".to_owned();
                self.tell("bad_value", message, fields.place_of("failed"));
            }
            return Some(Guard::Failed);
        }
        let Some(item) = fields.get("expr") else {
            return self.matchers("when", fields).map(Guard::Reply);
        };
        if let Some(other) = fields.names().find(|name| *name != "expr") {
            let message = format!("expr stands alone in when; found {other}");
            self.tell("bad_condition", message, fields.key(other));
        }
        let expression = Expression::new(item.text()?.clone());
        let slips = expression.slips(&self.ids());
        for slip in &slips {
            self.told.push(self.extensions.slip("guard", slip, item));
        }
        for name in expression.parameters() {
            let message = format!("guard: there is no parameter {name}; a guard has none");
            self.tell(BAD_EXTENSION, message, &item.place);
        }
        slips.is_empty().then_some(Guard::Expr(expression))
    }

    /// The same edge with the ids of the agents that its ends name.
    fn between_members(&mut self, edge: Edge, place: &Place) -> Edge {
        let from = self.end(edge.from.as_str(), "from", place);
        let to = self.end(edge.to.as_str(), "to", place);
        Edge { from, to, ..edge }
    }

    /// The agent that one end of an edge names. An unknown one stands as written.
    fn end(&mut self, name: &str, field: &str, place: &Place) -> AgentId {
        if name == PARENT {
            return PARENT.into();
        }
        if let Some(agent) = self.roster.find(name) {
            return agent.id.clone();
        }
        let message =
            format!("Edge references unknown agent {} in \"{field}\" field", quoted(name));
        let help = self.nearest(name);
        self.told.push(Diagnostic::error("unknown_agent", message).at(place).help(help));
        name.into()
    }

    /// A later edge between the same agents takes the place of the earlier one.
    fn merged(&mut self, edges: Vec<Placed>) -> Vec<Placed> {
        let mut merged: Vec<Placed> = Vec::new();
        let mut known: BTreeMap<(AgentId, AgentId), usize> = BTreeMap::new();
        for placed in edges {
            let ends = (placed.edge.from.clone(), placed.edge.to.clone());
            let Some(&at) = known.get(&ends) else {
                known.insert(ends, merged.len());
                merged.push(placed);
                continue;
            };
            let earlier = std::mem::replace(&mut merged[at], placed);
            if earlier.is_own {
                let (from, to) = (quoted(ends.0.as_str()), quoted(ends.1.as_str()));
                let message = format!("Edge {from} -> {to} is given twice; the later one counts");
                let told = Diagnostic::warning("duplicate_edge", message).at(&merged[at].place);
                self.told.push(told.also(earlier.place.span, "given here first"));
            }
        }
        merged
    }

    fn check_ends(&mut self, edges: &[Placed], are_all: bool) {
        for Placed { edge, place, .. } in edges {
            if edge.from.as_str() == PARENT && edge.to.as_str() == PARENT {
                let message = format!("Edge from \"{PARENT}\" to \"{PARENT}\" is not allowed");
                self.tell("bad_edge", message, place);
            }
        }
        if !are_all {
            return;
        }
        let place = || {
            let key = ["flow", "topology"].into_iter().find(|key| self.given.get(key).is_some());
            key.map_or(&self.given.place, |key| self.given.key(key)).clone()
        };
        let place = place();
        if !edges.iter().any(|it| it.edge.exit) {
            let message = "No exit edge found: graph has no termination path";
            self.tell("no_exit", message.to_owned(), &place);
        }
        if !edges.iter().any(|it| it.edge.from.as_str() == PARENT) {
            let message = "No entry point found: graph must have at least one edge from \"parent\"";
            self.tell("no_entry", message.to_owned(), &place);
        }
    }

    fn check_flags(&mut self, edges: &[Placed]) {
        let mut leaving: BTreeMap<&AgentId, Vec<&Placed>> = BTreeMap::new();
        for placed in edges {
            leaving.entry(&placed.edge.from).or_default().push(placed);
        }
        for (agent, edges) in leaving {
            let agent = quoted(agent.as_str());
            if let [Placed { edge: Edge { when: Some(_), .. }, place, .. }] = edges[..] {
                let message = format!("The only edge from {agent} cannot have when");
                self.tell("bad_edge", message, place);
            }
            if let Some(second) = edges.iter().filter(|it| it.edge.default).nth(1) {
                let message = format!("Two default edges leave {agent}");
                self.tell("bad_edge", message, &second.place);
            }
        }
    }

    /// Whether the edges, as far as they can be read, mention an agent.
    pub(super) fn mentions(&self, agent: &AgentId) -> bool {
        let is_meant = |name: &str| self.roster.find(name).is_some_and(|it| it.id == *agent);
        let listed = self.given.get("topology").and(self.given.get("agents"));
        let listed = listed.map_or(&[][..], |_| self.given.list("agents"));
        let in_flow = self.given.list("flow").iter().any(|item| match item.fields() {
            Some(fields) => ["from", "to"]
                .iter()
                .any(|key| fields.text(key).is_some_and(|name| is_meant(name.trim()))),
            None => item
                .text()
                .and_then(|text| Edge::parse(text))
                .is_some_and(|edge| is_meant(edge.from.as_str()) || is_meant(edge.to.as_str())),
        });
        in_flow || listed.iter().filter_map(Item::text).any(|name| is_meant(name.trim()))
    }
}

/// The agents that edges mention.
pub(super) fn mentioned(edges: &[Edge]) -> BTreeSet<&AgentId> {
    let ends = edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
    ends.filter(|agent| agent.as_str() != PARENT).collect()
}
