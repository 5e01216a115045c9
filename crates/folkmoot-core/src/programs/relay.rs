//! One text that several hands improve.

use serde::{Deserialize, Serialize};

use crate::{programs::Clocks, team::AgentId};

/// A draft goes from hand to hand until a whole round leaves it unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The hands in order; one may come more than once.
    pub order: Vec<AgentId>,
    /// The most rounds.
    pub rounds: u32,
    /// When two drafts count as equal.
    pub convergence: Convergence,
    /// Its clocks.
    pub clocks: Clocks,
}

/// When two drafts count as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Convergence {
    /// Byte for byte.
    #[default]
    Exact,
    /// Up to line ends, blanks at line ends, runs of blank lines and outer blank lines.
    Normalized,
}
