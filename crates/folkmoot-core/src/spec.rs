//! What a run depends on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{limits::Limits, team::Team};

/// Everything a run depends on besides its log: checked, complete, unchangeable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Who takes part.
    pub team: Team,
    /// The task, as given.
    pub task: Arc<str>,
    /// The run's limits.
    #[serde(default)]
    pub limits: Limits,
}
