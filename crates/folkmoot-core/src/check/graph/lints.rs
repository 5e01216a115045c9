//! What is legal in a graph but probably not meant (graph.md §17).

use std::{collections::BTreeSet, sync::Arc};

use super::{conditions::is_approval, edges::mentioned};
use crate::{
    check::team::is_unset,
    diagnostic::{Diagnostic, Place, quoted, shown},
    file::item::{Fields, Item},
    programs::graph::{Condition, Graph, Guard, PARENT, Routing, Structure, Test, USUAL_CAP},
    team::{Agent, AgentId, Target, Team},
};

/// More edges than this in `flow` are hard to follow.
const ENOUGH_EDGES: usize = 6;

/// How many agents a topology has room for.
const ENOUGH_AGENTS: [(&str, usize); 3] = [("pipeline", 5), ("review-loop", 4), ("star", 10)];

/// Everything doubtful about a sound graph, which `given` describes,
/// and `shared` where it is one of several.
pub(super) fn warnings(
    graph: &Graph,
    given: &Fields,
    shared: &Fields,
    team: &Team,
) -> Vec<Diagnostic> {
    let structure = Structure::of(&graph.edges);
    let lints = Lints { graph, structure: &structure, given, shared, team };
    let mut found = lints.shape();
    found.extend(lints.decisions());
    found.extend(lints.conditions());
    found.extend(lints.judge());
    found.extend(lints.hints());
    found
}

struct Lints<'a> {
    graph: &'a Graph,
    structure: &'a Structure,
    given: &'a Fields,
    /// What holds for all stages, or for the only graph.
    shared: &'a Fields,
    team: &'a Team,
}

impl Lints<'_> {
    fn shape(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let ends = self.leads_to_an_exit();
        for (agent, id) in self.structure.agents.iter().enumerate() {
            let name = quoted(id.as_str());
            if !self.structure.is_reachable(agent) {
                let message =
                    format!("Disconnected node {name} is not reachable from parent entry point");
                found.push(self.warning("disconnected", message));
            } else if !ends[agent] {
                let message = format!("No exit can be reached from {name}");
                found.push(self.warning("dead_end", message));
            }
        }
        for edge in self.graph.edges.iter().filter(|it| it.exit && it.to.as_str() != PARENT) {
            let (from, to) = (quoted(edge.from.as_str()), quoted(edge.to.as_str()));
            let message = format!("Exit edge from {from} to {to}: {to} is not run through it");
            found.push(self.warning("exit_to_agent", message));
        }
        for (own, it) in self.structure.loops.iter().enumerate() {
            let enters = |agent: &&usize| {
                let mut into = self.structure.incoming(**agent).iter();
                into.any(|edge| {
                    let from = self.structure.source(*edge);
                    from.and_then(|from| self.structure.loop_of(from)) != Some(own)
                })
            };
            if it.agents.iter().filter(enters).nth(1).is_some() {
                let name = |agent: &usize| shown(self.structure.agents[*agent].as_str());
                let names = it.agents.iter().map(name).collect::<Vec<_>>().join(", ");
                let message = format!("The loop {names} can be entered at more than one agent");
                found.push(self.warning("two_entries", message));
            }
        }
        found
    }

    /// By agent: whether work can come to an exit from it. Walks the edges backwards once.
    fn leads_to_an_exit(&self) -> Vec<bool> {
        let mut ends = vec![false; self.structure.agents.len()];
        let mut rest: Vec<usize> = (0..self.graph.edges.len())
            .filter(|edge| self.graph.edges[*edge].exit)
            .filter_map(|edge| self.structure.source(edge))
            .collect();
        while let Some(agent) = rest.pop() {
            if !std::mem::replace(&mut ends[agent], true) {
                let into = self.structure.incoming(agent).iter();
                rest.extend(into.filter_map(|edge| self.structure.source(*edge)));
            }
        }
        ends
    }

    fn decisions(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (agent, id) in self.structure.agents.iter().enumerate() {
            if !self.structure.decides(agent) {
                continue;
            }
            let name = quoted(id.as_str());
            if self.structure.default(agent).is_none() {
                let message =
                    format!("{name} has no default edge: an unreadable choice fails the step");
                found.push(self.warning("no_default", message));
            }
            let guards = self.structure.out(agent).iter().map(|edge| &self.graph.edges[*edge]);
            let guards = guards.filter(|edge| !edge.is_for_failures());
            let (with, without): (Vec<_>, Vec<_>) = guards.partition(|edge| edge.when.is_some());
            if !with.is_empty() && !without.is_empty() {
                let message = format!("{name} has edges with and without when");
                found.push(self.warning("mixed_edges", message));
            }
        }
        found
    }

    fn conditions(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let conditions = self.graph.termination.as_ref().map(|group| group.conditions());
        for condition in conditions.into_iter().flatten() {
            if let Some((kind, why)) = self.never_holds(condition) {
                let message = format!("termination {kind} can never hold: {why}");
                found.push(self.warning_at("never_holds", message, "termination"));
            }
            if let Test::Matches { matchers, .. } = &condition.test {
                found.extend(literal(
                    matchers.contains.as_ref(),
                    self.given.place_of("termination"),
                ));
            }
        }
        for edge in &self.graph.edges {
            if let Some(Guard::Reply(matchers)) = &edge.when {
                found.extend(literal(matchers.contains.as_ref(), self.given.place_of("flow")));
            }
        }
        found
    }

    fn never_holds(&self, condition: &Condition) -> Option<(&'static str, String)> {
        let has_no_loop = self.structure.loops.is_empty();
        let no_loop = || "the graph has no loop".to_owned();
        let cap = self.graph.rounds();
        let beyond = |count: u32| (count > cap).then(|| format!("the cap is {cap}"));
        let outside = |agent: &AgentId| {
            let number = self.structure.number(agent);
            let own = number.and_then(|agent| self.structure.loop_of(agent));
            own.is_none().then(|| format!("{} is in no loop", quoted(agent.as_str())))
        };
        match &condition.test {
            Test::MaxIterations { rounds, of } => {
                let why = has_no_loop.then(no_loop);
                let why = why.or_else(|| outside(of.as_ref()?)).or_else(|| beyond(*rounds));
                Some(("max_iterations", why?))
            }
            Test::Stuck { repeats, agent } => {
                let why = has_no_loop.then(no_loop);
                let why = why.or_else(|| outside(agent.as_ref()?)).or_else(|| beyond(*repeats));
                Some(("stuck", why?))
            }
            Test::Matches { agent, .. } if agent.as_str() == PARENT => {
                let by_engine = self.graph.routing == Routing::Engine;
                let why = "the lead replies only under routing: lead".to_owned();
                by_engine.then_some(("result_matches", why))
            }
            Test::Matches { agent, matchers } => {
                let number = self.structure.number(agent);
                let is_reached = number.is_some_and(|agent| self.structure.is_reachable(agent));
                let name = quoted(agent.as_str());
                let why = (!is_reached).then(|| format!("{name} is not reached"));
                let once = || matchers.no_changes.then(|| outside(agent)).flatten();
                Some(("result_matches", why.or_else(once)?))
            }
            Test::Timeout(_) | Test::Converged { .. } | Test::Own(_) => None,
        }
    }

    fn judge(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let Some(judge) = &self.graph.judge else { return found };
        let participants = mentioned(&self.graph.edges);
        if participants.contains(judge) {
            let message = format!("The judge {} is a participant", quoted(judge.as_str()));
            found.push(self.warning_at("judge_takes_part", message, "judge"));
        }
        let first = self.model(self.team.agent(judge));
        let mut taking_part = self.team.everyone().filter(|it| participants.contains(&it.id));
        let all = participants.len() > 1 && taking_part.all(|it| self.model(it) == first);
        if let Some(model) = first.filter(|_| all) {
            let message = format!("All participants and the judge share model {}", quoted(&model));
            found.push(self.warning_at("one_model", message, "judge"));
        }
        found
    }

    /// The model that answers for an agent, or that its script stands in for.
    fn model(&self, agent: &Agent) -> Option<Arc<str>> {
        match &agent.target {
            Target::Model(model) if is_unset(model) => None,
            Target::Model(model) => Some(model.to_string().into()),
            Target::Script(script) => script.label.clone(),
            target @ (Target::Cli(_) | Target::Acp(_) | Target::A2a(_)) => {
                target.label().map(Into::into)
            }
            Target::Demo | Target::Team(_) => None,
        }
    }

    fn hints(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let custom = self.given.list("flow").len();
        if custom > ENOUGH_EDGES {
            let message = format!("{custom} custom edges: split the graph into stages");
            found.push(self.hint("many_edges", message, "flow"));
        }
        let loops = self.structure.loops.len();
        let is_capped =
            [self.given, self.shared].iter().any(|it| it.get("max_iterations").is_some());
        if loops > 0 && !is_capped {
            let message = format!(
                "Cycle detected in graph but max_iterations is not set, defaulting to {USUAL_CAP}"
            );
            found.push(self.hint("default_cap", message, "topology"));
        }
        if loops > 1 {
            let message = format!("{loops} loops share one max_iterations");
            found.push(self.hint("shared_cap", message, "max_iterations"));
        }
        let topology = self.given.text("topology").map(|name| name.trim().to_owned());
        let agents = self.given.list("agents").len();
        let most = ENOUGH_AGENTS.iter().find(|(name, _)| topology.as_deref() == Some(name));
        if let Some((name, most)) = most.filter(|(_, most)| agents > *most) {
            let message = format!("a {name} gains little above {most} agents; it has {agents}");
            found.push(self.hint("team_size", message, "agents"));
        }
        found
    }

    fn warning(&self, code: &'static str, message: String) -> Diagnostic {
        self.warning_at(code, message, "flow")
    }

    fn warning_at(&self, code: &'static str, message: String, key: &str) -> Diagnostic {
        Diagnostic::warning(code, message).at(self.place(key))
    }

    fn hint(&self, code: &'static str, message: String, key: &str) -> Diagnostic {
        Diagnostic::hint(code, message).at(self.place(key))
    }

    /// Where a key stands, else the topology, else the whole graph.
    fn place(&self, key: &str) -> &Place {
        let given = [key, "topology"].into_iter().find(|key| self.given.get(key).is_some());
        self.given.place_of(given.unwrap_or(key))
    }
}

/// The agents of the team that no graph uses.
pub(super) fn orphans(graphs: &[&Graph], file: &Fields, team: &Team) -> Vec<Diagnostic> {
    let used: BTreeSet<&AgentId> =
        graphs.iter().flat_map(|it| mentioned(&it.edges).into_iter().chain(&it.judge)).collect();
    let orphans = team.agents.iter().enumerate().filter(|(_, agent)| !used.contains(&agent.id));
    orphans
        .map(|(at, agent)| {
            let name = quoted(agent.id.as_str());
            let message = format!("Orphan agent {name} is not referenced in any edge");
            let item = file.list("agents").get(at).and_then(Item::fields);
            let place = item.map_or(&file.place, |agent| agent.place_of("name"));
            Diagnostic::warning("orphan_agent", message).at(place)
        })
        .collect()
}

/// A text looked for that its own negation holds too.
fn literal(contains: Option<&Arc<str>>, place: &Place) -> Option<Diagnostic> {
    let text = contains.filter(|text| is_approval(text))?;
    let message = format!("contains \"{text}\" is also true of \"NOT {text}\"");
    let told = Diagnostic::warning("literal_approval", message).at(place);
    Some(told.help("use verdict: approve".to_owned()))
}
