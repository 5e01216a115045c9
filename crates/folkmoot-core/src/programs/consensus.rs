//! Choosing among proposals.

use serde::{Deserialize, Serialize};

use crate::{programs::Clocks, team::AgentId};

/// All participants propose and vote; a judge settles what the votes leave open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consensus {
    /// The participants in registration order.
    pub agents: Vec<AgentId>,
    /// Who decides when the votes do not.
    pub judge: AgentId,
    /// Whether a vote for oneself is valid.
    pub self_votes: bool,
    /// Its clocks.
    pub clocks: Clocks,
}
