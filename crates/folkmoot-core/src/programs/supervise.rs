//! Tasks that fall into parts.

use serde::{Deserialize, Serialize};

use crate::{programs::Clocks, team::AgentId};

/// A supervisor plans tasks, workers do them as their inputs become known, the supervisor reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervise {
    /// Who plans and reports.
    pub supervisor: AgentId,
    /// Who works, in registration order.
    pub workers: Vec<AgentId>,
    /// Whether a plan with structural defects is asked for once more.
    pub replan: bool,
    /// Whether a structural defect that is left ends the run.
    pub strict: bool,
    /// The most tasks that run.
    pub max_tasks: u32,
    /// Its clocks; `timeout` is per task while the tasks run.
    pub clocks: Clocks,
}

impl crate::scope::Program for Supervise {
    fn run(&self, _: &crate::scope::Scope) -> crate::scope::Step<crate::event::Ending> {
        Ok(crate::event::Ending::failed("x", vec![]))
    }
}
