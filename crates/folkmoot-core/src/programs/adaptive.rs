//! A strategy chosen by what the first answers show.

use serde::{Deserialize, Serialize};

use crate::programs::{Debate, Supervise};

/// Supervises if the plan has independent parts, else lets one worker do it; without a supervisor
/// it debates only where the first answers disagree (strategies.md §8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adaptive {
    /// A supervisor is given or named.
    Supervise(Supervise),
    /// There is none.
    Debate(Debate),
}

impl crate::scope::Program for Adaptive {
    fn run(&self, _: &crate::scope::Scope) -> crate::scope::Step<crate::event::Ending> {
        Ok(crate::event::Ending::failed("x", vec![]))
    }
}
