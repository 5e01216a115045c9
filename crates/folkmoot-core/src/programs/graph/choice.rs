//! Where an agent wants its work to go, read from its own reply (graph.md §7).

use super::{Edge, Facts, Graph, Guard, PARENT, Structure};
use crate::{
    call::Answer,
    extension::Parameters,
    scope::Scope,
    team::AgentId,
    verdict::{Names, Reading},
};

/// How a choice came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The field `next`.
    Field,
    /// A line `NEXT: …`.
    Line,
    /// A guard that holds.
    Guard,
    /// Named when asked once more.
    Asked,
    /// Nothing else could be read.
    Default,
    /// What the chosen one requires was not so.
    Gate,
}

impl Why {
    /// Its word in records.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Why::Field => "field",
            Why::Line => "line",
            Why::Guard => "guard",
            Why::Asked => "asked",
            Why::Default => "default",
            Why::Gate => "gate",
        }
    }
}

/// The ways that a decision agent may send its work in some round.
#[derive(Clone, Debug)]
pub(super) struct Options<'g> {
    graph: &'g Graph,
    structure: &'g Structure,
    agent: usize,
    /// The edges that it may take.
    pub(super) open: Vec<usize>,
    /// Those that would lead to a round beyond the cap.
    pub(super) closed: Vec<usize>,
}

impl<'g> Options<'g> {
    /// The options of an agent in a round of which `is_closed` tells what is beyond the cap.
    pub(super) fn of(
        graph: &'g Graph,
        structure: &'g Structure,
        agent: usize,
        is_closed: impl Fn(usize) -> bool,
    ) -> Options<'g> {
        let edges = structure.out(agent).iter().copied();
        let edges = edges.filter(|edge| !graph.edges[*edge].is_for_failures());
        let (closed, open) = edges.partition(|edge| is_closed(*edge));
        Options { graph, structure, agent, open, closed }
    }

    /// The targets that are open.
    pub(super) fn targets(&self) -> Vec<&'g AgentId> {
        self.open.iter().map(|edge| &self.graph.edges[*edge].to).collect()
    }

    /// Whether some edge has a guard, so that the agent is not asked once more.
    pub(super) fn are_guarded(&self) -> bool {
        self.all().any(|edge| self.edge(edge).when.is_some())
    }

    /// The edge taken where no choice can be read.
    pub(super) fn default(&self) -> Option<usize> {
        self.structure.default(self.agent)
    }

    /// All of them, those beyond the cap last.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.open.iter().chain(&self.closed).copied()
    }

    fn edge(&self, edge: usize) -> &'g Edge {
        &self.graph.edges[edge]
    }

    /// The edges that a reply names: one, or several that all go forward.
    pub(super) fn named(&self, cx: &Scope, reply: &Answer) -> Option<(Vec<usize>, Why)> {
        let mut names: Vec<(&str, usize)> = Vec::new();
        for edge in self.all() {
            let Edge { to, label, .. } = self.edge(edge);
            names.push((to.as_str(), edge));
            if to.as_str() != PARENT {
                names.push((cx.name(to), edge));
            }
            names.extend(label.as_deref().map(|label| (label, edge)));
        }
        let labels = ["next", "下一步"];
        let (reading, is_field) =
            Names { key: "next", labels: &labels, names: &names }.choice(reply);
        let Reading::Value(edges) = reading else { return None };
        let goes_on =
            |edge: &usize| !self.structure.is_back(*edge) && self.structure.target(*edge).is_some();
        let is_one_choice = edges.len() == 1 || edges.iter().all(goes_on);
        let why = if is_field { Why::Field } else { Why::Line };
        is_one_choice.then_some((edges, why))
    }

    /// The first edge whose guard holds; an error names the guard that cannot be evaluated.
    pub(super) fn guarded(
        &self,
        reply: &Answer,
        before: Option<&Answer>,
        facts: &dyn Fn(bool) -> Facts,
    ) -> Result<Option<usize>, String> {
        let mut edges: Vec<usize> = self.all().collect();
        edges.sort_unstable();
        for at in edges {
            let edge = self.edge(at);
            let holds = match &edge.when {
                Some(Guard::Reply(matchers)) => matchers.hold(reply, before),
                Some(Guard::Expr(expr)) => expr
                    .holds(&facts(expr.asks_for_usage()), &Parameters::new())
                    .map_err(|why| format!("guard of {edge}: {why}"))?,
                Some(Guard::Failed) | None => false,
            };
            if holds {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}
