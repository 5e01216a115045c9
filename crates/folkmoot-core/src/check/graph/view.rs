//! A checked graph as programs and people are shown it (interface.md).

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::conditions::as_written;
use crate::{
    programs::graph::{Graph, Structure},
    team::AgentId,
    verdict::Severity,
};

/// A graph with all that its edges tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphView {
    /// The merged edges.
    pub edges: Vec<EdgeView>,
    /// The agents to which the lead hands work.
    pub entry: Vec<AgentId>,
    /// The agents that end work.
    pub exit_sources: Vec<AgentId>,
    /// The edges that close loops.
    pub back_edges: Vec<(AgentId, AgentId)>,
    /// The loops.
    pub loops: Vec<LoopView>,
    /// The root cap; none in a graph without loop.
    pub max_iterations: Option<u32>,
    /// The agents that choose.
    pub decisions: Vec<DecisionView>,
    /// From which severity on findings are material, if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Severity>,
    /// When it ends early, as its author wrote it.
    #[serde(skip)]
    pub termination: Option<Value>,
}

/// One edge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeView {
    /// Who hands over.
    pub from: AgentId,
    /// To whom.
    pub to: AgentId,
    /// What.
    pub label: Option<String>,
    /// Whether the work ends here.
    pub exit: bool,
    /// What it requires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

/// One loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopView {
    /// Its agents.
    pub agents: Vec<AgentId>,
    /// How many rounds it has at the most.
    pub cap: u32,
}

/// An agent that chooses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionView {
    /// The agent.
    pub agent: AgentId,
    /// The targets it can choose.
    pub options: Vec<AgentId>,
    /// The one taken where no choice can be read.
    pub default: Option<AgentId>,
}

/// What a graph looks like.
pub fn view(graph: &Graph) -> GraphView {
    let structure = Structure::of(&graph.edges);
    let id = |agent: usize| structure.agents[agent].clone();
    let mut known = BTreeSet::new();
    let exits = graph.edges.iter().filter(|edge| edge.exit);
    let exit_sources = exits.map(|edge| &edge.from).filter(|from| known.insert(*from));
    let edges = graph.edges.iter().map(|edge| EdgeView {
        from: edge.from.clone(),
        to: edge.to.clone(),
        label: edge.label.as_ref().map(ToString::to_string),
        exit: edge.exit,
        requires: edge
            .requires
            .iter()
            .flat_map(|it| &it.all)
            .map(|it| it.gate.to_string())
            .collect(),
    });
    let back = (0..graph.edges.len()).filter(|at| structure.is_back(*at));
    let decisions = (0..structure.agents.len()).filter(|agent| structure.decides(*agent));
    let options = |agent: usize| {
        let edges = structure.out(agent).iter().map(|at| &graph.edges[*at]);
        edges.filter(|edge| !edge.is_for_failures()).map(|edge| edge.to.clone()).collect()
    };
    GraphView {
        edges: edges.collect(),
        entry: structure.entries().map(id).collect(),
        exit_sources: exit_sources.cloned().collect(),
        back_edges: back
            .map(|at| (graph.edges[at].from.clone(), graph.edges[at].to.clone()))
            .collect(),
        loops: (structure.loops.iter())
            .map(|it| LoopView {
                agents: it.agents.iter().copied().map(id).collect(),
                cap: graph.cap_of(&structure, it),
            })
            .collect(),
        max_iterations: graph.cap,
        findings: graph.findings,
        decisions: decisions
            .map(|agent| DecisionView {
                agent: id(agent),
                options: options(agent),
                default: structure.default(agent).map(|at| graph.edges[at].to.clone()),
            })
            .collect(),
        termination: graph.termination.as_ref().map(as_written),
    }
}
