//! From the members of a topology to its edges (graph.md §4).

use std::{fmt, sync::Arc};

use super::{Edge, PARENT};
use crate::{extension::Parameters, team::AgentId};

/// A topology: a function from agents and parameters to edges.
#[derive(Clone)]
pub struct Topology {
    /// The parameters that it knows, and what they are unless given.
    pub params: Parameters,
    /// The function; an error says why there are no edges.
    pub edges: Arc<Function>,
}

type Function = dyn Fn(&[AgentId], &Parameters) -> Result<Vec<Edge>, String> + Send + Sync;

pub(crate) type BuiltIn = fn(&[AgentId]) -> Vec<Edge>;

/// The topologies that are always there.
pub(crate) const TOPOLOGIES: [(&str, BuiltIn); 3] =
    [("pipeline", pipeline), ("review-loop", review_loop), ("star", star)];

impl Topology {
    /// A topology without parameters.
    pub fn new(
        edges: impl Fn(&[AgentId], &Parameters) -> Result<Vec<Edge>, String> + Send + Sync + 'static,
    ) -> Topology {
        Topology { params: Parameters::new(), edges: Arc::new(edges) }
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topology").field("params", &self.params).finish_non_exhaustive()
    }
}

fn pipeline(agents: &[AgentId]) -> Vec<Edge> {
    let out = agents.last().map(|last| Edge::new(last.clone(), PARENT));
    chain(agents).chain(out).collect()
}

fn review_loop(agents: &[AgentId]) -> Vec<Edge> {
    let labelled = |edge: Edge, label: &str| Edge { label: Some(label.into()), ..edge };
    let ends = agents.last().zip(agents.first()).into_iter().flat_map(|(last, first)| {
        let back = Edge::new(last.clone(), first.clone());
        [labelled(back, "loop"), labelled(Edge::new(last.clone(), PARENT), "exit")]
    });
    chain(agents).chain(ends).collect()
}

fn star(agents: &[AgentId]) -> Vec<Edge> {
    let pair =
        |agent: &AgentId| [Edge::new(PARENT, agent.clone()), Edge::new(agent.clone(), PARENT)];
    agents.iter().flat_map(pair).collect()
}

/// From the lead to the first, and from each to the next.
fn chain(agents: &[AgentId]) -> impl Iterator<Item = Edge> {
    let lead = AgentId::from(PARENT);
    let from = std::iter::once(lead).chain(agents.iter().cloned());
    from.zip(agents).map(|(from, to)| Edge::new(from, to.clone()))
}
