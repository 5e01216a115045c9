//! Work with an order: analyse, design, build, check.

use serde::{Deserialize, Serialize};

use crate::{programs::Clocks, team::AgentId};

/// Agents speak one after the other, each seeing everything said before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequential {
    /// The speakers in order; one may speak more than once.
    pub order: Vec<AgentId>,
    /// Its clocks.
    pub clocks: Clocks,
}
