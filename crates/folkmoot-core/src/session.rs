//! What a coding agent did on the way to its reply, as far as it can be told (rules.md 15.4).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A session with a coding agent that asks before it acts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The name and the version that it gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
    /// What it asked for and what it was told, in order; the first [`Session::LISTED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// How many decisions there were beyond those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// How many tools it says that it used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u64,
    /// How many lines it wrote that were no messages; they were skipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise: u64,
}

/// What a coding agent asked for, and whether it was allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What it asked for, in its own words or as it was asked of us.
    pub what: Arc<str>,
    /// The tool whose grant decides; none if there is none for it, which is a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// Whether it was allowed, this once.
    pub allowed: bool,
    /// A digest of the arguments.
    pub digest: Arc<str>,
}

impl Session {
    /// The most decisions that are listed.
    pub const LISTED: usize = 200;

    /// Notes a decision.
    pub fn decided(&mut self, decision: Decision) {
        if self.decisions.len() < Session::LISTED {
            self.decisions.push(decision);
        } else {
            self.unlisted += 1;
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
