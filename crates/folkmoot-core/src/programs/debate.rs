//! Decisions that gain from opposition.

use serde::{Deserialize, Serialize};

use crate::{programs::Clocks, team::AgentId};

/// All participants argue for some rounds; a judge concludes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debate {
    /// The debaters in registration order.
    pub agents: Vec<AgentId>,
    /// How often they speak.
    pub rounds: u32,
    /// Who concludes.
    pub judge: AgentId,
    /// Its clocks.
    pub clocks: Clocks,
}
