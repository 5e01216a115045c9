//! The ways in which a team works on one task. One file each, all shaped alike.

mod adaptive;
mod broadcast;
mod consensus;
mod debate;
mod relay;
mod sequential;
mod supervise;

pub use adaptive::Adaptive;
pub use broadcast::Broadcast;
pub use consensus::Consensus;
pub use debate::Debate;
pub use relay::{Convergence, Relay};
pub use sequential::Sequential;
pub use supervise::Supervise;

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// The clocks of a strategy; `None` is a clock switched off (strategies.md §1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// Of one parallel phase, one single step, one task.
    pub timeout: Option<Duration>,
    /// Of one call, from its start, inside `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_timeout: Option<Duration>,
}

impl Default for Clocks {
    /// Ten minutes are enough for one turn of a coding agent.
    fn default() -> Clocks {
        Clocks { timeout: Some(Duration::from_secs(600)), call_timeout: None }
    }
}
