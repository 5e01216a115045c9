//! What a run depends on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    limits::Limits,
    programs::{Adaptive, Broadcast, Consensus, Debate, Relay, Sequential, Supervise},
    team::Team,
};

/// Everything a run depends on besides its log: checked, complete, unchangeable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Who takes part.
    pub team: Team,
    /// The task, as given.
    pub task: Arc<str>,
    /// How the team works on it.
    pub collaboration: Collaboration,
    /// Why `auto` chose this strategy, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Choice>,
    /// The run's limits.
    #[serde(default)]
    pub limits: Limits,
}

/// How a team works on a task: the closed set of programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collaboration {
    /// Independent views.
    Broadcast(Broadcast),
    /// One after the other.
    Sequential(Sequential),
    /// Opposition, then a judge.
    Debate(Debate),
    /// A plan, its parts, a report.
    Supervisor(Supervise),
    /// Proposals and votes.
    Consensus(Consensus),
    /// A draft from hand to hand.
    Relay(Relay),
    /// Chosen by the first answers.
    Adaptive(Adaptive),
}

/// What `auto` chose, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// `seed` or `adaptive`.
    pub rule: Arc<str>,
    /// The strategy.
    pub chose: Arc<str>,
    /// The reason in words.
    pub because: Arc<str>,
}
