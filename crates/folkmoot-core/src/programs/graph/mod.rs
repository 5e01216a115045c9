//! Work that moves along a graph: who hands it to whom, and when that ends (graph.md).
//!
//! ```text
//! edges ──▶ structure ──▶ tokens ──▶ steps ──▶ choice ──▶ termination ──▶ tokens …
//! ```
//!
//! [`Structure`] is what the edges alone tell: loops, decisions, joins. `Tokens` is
//! where the work stands. `walk` is the program: it lets whoever may start be asked, and handles
//! the replies one at a time in the order of the log.

mod blocks;
mod choice;
mod ending;
mod facts;
mod failing;
mod free;
mod gates;
mod judging;
mod lead;
mod ledger;
mod matching;
mod prompt;
mod record;
mod review;
mod routed;
mod structure;
mod termination;
mod tokens;
mod topology;
mod walk;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use ending::{Stage, Stages};
pub use facts::{Facts, Used};
pub(crate) use failing::{MOST_RETRIES, is_about_failure};
pub use free::Dispatch;
pub(crate) use lead::tools;
pub(crate) use ledger::SHOWN;
pub use matching::{Matchers, Pattern};
pub(crate) use prompt::OUTPUT;
pub use structure::{Loop, Structure};
pub use topology::Topology;
pub(crate) use topology::{BuiltIn, TOPOLOGIES};

use super::Clocks;
pub use crate::team::PARENT;
use crate::{
    extension::{Expression, Parameters, Rule},
    gate::Requirement,
    team::{AgentId, Team},
    time::Duration,
    verdict::Severity,
    words::Language,
};

/// The cap of a graph with a loop that does not give one (graph.md §2).
pub const USUAL_CAP: u32 = 3;

/// Who hands work to whom.
///
/// 1. Each edge from the lead starts a token; an agent that holds tokens is asked once for all of them.
/// 2. Its reply goes on over all its edges, or over the one it chooses where it has a choice.
/// 3. It ends when no token is left, when its termination holds, or at its cap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The edges, merged.
    pub edges: Vec<Edge>,
    /// The topology that they come from, or some of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Arc<str>>,
    /// How many rounds there are at the most; none in a graph without loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
    /// When it ends before all work is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Group>,
    /// Who judges whether it has converged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<AgentId>,
    /// What a judge means that fails.
    #[serde(default)]
    pub judge_error: JudgeError,
    /// What a step means that fails.
    pub on_failure: OnFailure,
    /// What is special about single agents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<AgentId, Node>,
    /// Whose last reply is the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<AgentId>,
    /// Who routes.
    #[serde(default)]
    pub routing: Routing,
    /// From which severity on findings of those who close loops are material, if they are asked for
    /// findings (convergence.md §1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Severity>,
    /// Its clocks.
    pub clocks: Clocks,
}

/// One agent hands its work to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Who hands over; [`PARENT`] for the lead.
    pub from: AgentId,
    /// To whom; [`PARENT`] for the end.
    pub to: AgentId,
    /// What is handed over, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// Whether the work ends here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit: bool,
    /// Which replies take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Guard>,
    /// Whether it is taken where no choice can be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// What must be so before it is taken, and how often its agent is asked again where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Requires>,
}

/// What an edge requires (convergence.md §2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requires {
    /// What is looked at, in this order.
    pub all: Vec<Requirement>,
    /// How often the agent is asked again.
    pub tries: u32,
}

impl Edge {
    /// A plain edge; one to the lead is an exit.
    pub fn new(from: impl Into<AgentId>, to: impl Into<AgentId>) -> Edge {
        let (from, to) = (from.into(), to.into());
        let exit = to.as_str() == PARENT;
        Edge { from, to, label: None, exit, when: None, default: false, requires: None }
    }

    /// The edge that a line says, `a -> b` or `a -> b: label`: the first `->` and the first `:` behind
    /// it decide (graph.md §3).
    pub fn parse(line: &str) -> Option<Edge> {
        let (from, rest) = line.split_once("->")?;
        let (to, label) = match rest.split_once(':') {
            Some((to, label)) => (to, Some(label.trim()).filter(|label| !label.is_empty())),
            None => (rest, None),
        };
        let (from, to) = (from.trim(), to.trim());
        let is_name = |name: &str| {
            !name.is_empty() && !name.contains("->") && !name.contains([':', '\n', '\r'])
        };
        let edge = Edge { label: label.map(Into::into), ..Edge::new(from, to) };
        (is_name(from) && is_name(to)).then_some(edge)
    }

    /// Whether it is taken by what fails, and is no option otherwise (graph.md §12).
    pub fn is_for_failures(&self) -> bool {
        matches!(self.when, Some(Guard::Failed))
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.from, self.to)
    }
}

/// Which replies take an edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// None: a step that failed does.
    Failed,
    /// Those that match.
    Reply(Matchers),
    /// Those after which this holds.
    Expr(Expression),
}

/// What is special about an agent of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// With how many of its inputs it starts.
    #[serde(default)]
    pub join: Join,
    /// What its failing means, unless it is what the graph says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

/// With how many of its inputs an agent starts (graph.md §6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// With all that can still come.
    #[default]
    All,
    /// With the first.
    Any,
    /// With so many.
    Quorum(u32),
}

/// What a failed step means (graph.md §12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnFailure {
    /// How often the agent is asked again.
    #[serde(default)]
    pub retry: u32,
    /// And then.
    pub then: Remedy,
}

/// What is done about a step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// The lead decides.
    Lead,
    /// Its branch ends.
    Stop,
    /// Its work goes on without it.
    Skip,
    /// A person decides.
    Ask,
}

/// What a judge means that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeError {
    /// The run ends.
    #[default]
    Stop,
    /// It has not converged.
    Ignore,
}

/// Who routes along a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// The engine.
    #[default]
    Engine,
    /// The lead, with tools.
    Lead,
}

/// Conditions of which any, or all, must hold; both if both are given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// One of these must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_of: Option<Vec<Member>>,
    /// All of these must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_of: Option<Vec<Member>>,
}

/// A condition, or conditions again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// One condition.
    One(Condition),
    /// Several.
    Group(Group),
}

/// When a run ends (graph.md §9).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// What must be so.
    pub test: Test,
    /// The condition as its author wrote it, for records and prompts.
    pub written: Value,
}

impl Condition {
    /// It in words, for prompts: what its author says of it, else as it is written.
    pub(crate) fn shown(&self) -> String {
        let described = match &self.test {
            Test::Own(own) => own.describe.as_ref().map(ToString::to_string),
            Test::MaxIterations { .. }
            | Test::Timeout(_)
            | Test::Converged { .. }
            | Test::Matches { .. }
            | Test::Stuck { .. } => None,
        };
        described.unwrap_or_else(|| self.written.to_string())
    }
}

/// What must be so for a condition to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Some loop, or that of an agent, has finished so many rounds.
    MaxIterations {
        /// The rounds.
        rounds: u32,
        /// The agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<AgentId>,
    },
    /// The clock shows so much.
    Timeout(Duration),
    /// The judge says so.
    Converged {
        /// The criterion in words.
        criterion: Arc<str>,
        /// The agent that must declare the work done, where the criterion is no more than its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        declared_by: Option<AgentId>,
    },
    /// The latest reply of an agent matches.
    Matches {
        /// The agent.
        agent: AgentId,
        /// In all of these ways.
        matchers: Matchers,
    },
    /// Something of the team's own (extensions.md §2).
    Own(Box<Own>),
    /// The last replies of some agent, or of one, are equal.
    Stuck {
        /// How many.
        repeats: u32,
        /// The agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
    },
}

/// A condition of the team's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// Its name, which is the reason of a run that it ends.
    pub name: Arc<str>,
    /// When it holds.
    pub rule: Rule,
    /// Its parameters, defaults included.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub params: Parameters,
    /// Whether it ends a run without success.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// What prompts and reports say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub describe: Option<Arc<str>>,
}

impl Group {
    /// All conditions in it, outer ones first.
    pub fn conditions(&self) -> Vec<&Condition> {
        let mut found = Vec::new();
        let mut groups = vec![self];
        while let Some(group) = groups.pop() {
            for member in group.any_of.iter().chain(&group.all_of).flatten() {
                match member {
                    Member::One(condition) => found.push(condition),
                    Member::Group(group) => groups.push(group),
                }
            }
        }
        found
    }
}

impl Group {
    /// The conditions of the team's own in it.
    fn own_conditions_mut(&mut self) -> Vec<&mut Own> {
        let members = self.any_of.iter_mut().chain(&mut self.all_of).flatten();
        let own = members.flat_map(|member| match member {
            Member::One(Condition { test: Test::Own(own), .. }) => vec![&mut **own],
            Member::One(_) => Vec::new(),
            Member::Group(group) => group.own_conditions_mut(),
        });
        own.collect()
    }
}

impl Graph {
    /// The agents that it names.
    pub(crate) fn agents(&self) -> Vec<&AgentId> {
        let ends = self.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let named = ends.chain(&self.judge).chain(&self.result).chain(self.nodes.keys());
        named.filter(|agent| agent.as_str() != PARENT).collect()
    }

    /// The conditions of the team's own.
    pub(crate) fn own_conditions_mut(&mut self) -> Vec<&mut Own> {
        self.termination.iter_mut().flat_map(Group::own_conditions_mut).collect()
    }

    /// The most rounds; one pass at least.
    pub(crate) fn rounds(&self) -> u32 {
        self.cap.map_or(u32::MAX, |cap| cap.max(1))
    }

    /// How many rounds a loop has at the most: the root cap, or less if a condition that stands by
    /// itself ends it before (graph.md §8).
    pub(crate) fn cap_of(&self, structure: &Structure, of: &Loop) -> u32 {
        let root = self.cap.unwrap_or(u32::MAX);
        let Some(termination) = self.termination.as_ref().filter(|it| it.all_of.is_none()) else {
            return root;
        };
        let is_in_loop = |agent: &AgentId| {
            structure.number(agent).is_some_and(|agent| of.agents.contains(&agent))
        };
        let caps = termination.any_of.iter().flatten().filter_map(|member| match member {
            Member::One(Condition { test: Test::MaxIterations { rounds, of }, .. }) => {
                of.as_ref().is_none_or(is_in_loop).then_some(*rounds)
            }
            Member::One(_) | Member::Group(_) => None,
        });
        caps.fold(root, u32::min)
    }

    /// With how many of its inputs an agent starts.
    pub(crate) fn join(&self, agent: &AgentId) -> Join {
        self.nodes.get(agent).map_or(Join::All, |node| node.join)
    }

    /// What the system prompt of an agent tells of its place.
    pub(crate) fn role(&self, team: &Team, agent: &AgentId, language: Language) -> Option<String> {
        let name = |id: &AgentId| &*team.agent(id).name;
        self.role_in(&Structure::of(&self.edges), &name, agent, language)
    }

    /// The same where the structure is known, and the name of each agent.
    pub(crate) fn role_in<'n>(
        &self,
        structure: &Structure,
        name: &dyn Fn(&AgentId) -> &'n str,
        agent: &AgentId,
        language: Language,
    ) -> Option<String> {
        blocks::role(self, structure, name, agent, language)
    }

    /// What the failing of an agent means.
    pub(crate) fn policy(&self, agent: &AgentId) -> OnFailure {
        self.nodes.get(agent).and_then(|node| node.on_failure).unwrap_or(self.on_failure)
    }
}

#[cfg(test)]
mod tests;
