//! Brainstorming and independent views.

use serde::{Deserialize, Serialize};

use crate::{programs::Clocks, team::AgentId};

/// All participants answer the same task at once; in later rounds they see what the others said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    /// The participants in registration order.
    pub agents: Vec<AgentId>,
    /// How often they are asked.
    pub rounds: u32,
    /// Its clocks.
    pub clocks: Clocks,
}
