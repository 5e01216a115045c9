//! The role team: explorer, planner, coder and reviewer in turn, each fresh (agents.md §7).

mod complexity;
pub(crate) mod handoff;
mod record;
pub(crate) mod review;
mod role;
mod work;

pub use complexity::{Complexity, Path, USUAL_THRESHOLD, Weighing};
pub use role::Role;
pub(crate) use work::MOST_QUESTIONS;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use self::work::{Stop, Work};
use super::Clocks;
use crate::{
    decimal::Decimal,
    event::Ending,
    limits::Limits,
    scope::{Program, Scope, Step},
    team::{AgentId, PARENT},
};

/// Four roles work on a task one after the other, each with its own tools and steps.
///
/// 1. A simple task is `general`'s alone, a complex one goes from explorer to planner to coder to
///    reviewer. Each is told the task and what those before handed on, nothing else of their work.
/// 2. If the reviewer reports issues, coder and reviewer have one more turn each.
/// 3. All of them pay from one budget; when little of it is left, the economy model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// For whom the roles work; it stands in what their agents are called.
    #[serde(default = "parent", skip_serializing_if = "is_parent")]
    pub parent: Arc<str>,
    /// What decides how complex the task is.
    pub weighing: Weighing,
    /// What all roles may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The tokens from which on a role hands off, by agent; one that is over them is not stopped.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hand_off_at: BTreeMap<AgentId, u64>,
    /// Its clocks.
    pub clocks: Clocks,
}

/// What one agent would have for the task, and how much more the role team has (agents.md §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The tokens of one agent.
    pub single: u64,
    /// How many times that.
    pub multiplier: Decimal,
}

impl Budget {
    /// The tokens of all roles together, rounded down.
    pub fn total(&self) -> u64 {
        self.multiplier.of(self.single)
    }
}

fn parent() -> Arc<str> {
    PARENT.into()
}

fn is_parent(parent: &Arc<str>) -> bool {
    **parent == *PARENT
}

impl Program for Roles {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let budgeted = self.budget.as_ref().map(|budget| {
            let soft_tokens = Some(budget.total());
            cx.limited(Limits { soft_tokens, ..Limits::default() })
        });
        let cx = budgeted.as_ref().unwrap_or(cx);
        let mut work = Work::new(self, cx);
        let path = work.complexity.path;
        let end = match path {
            Path::Single => work.alone(),
            Path::Roles => work.in_turn(),
        };
        let end = match end {
            Ok(end) | Err(Stop::Ended(end)) => end,
            Err(Stop::Halted(halt)) => {
                work.tell(None);
                return Err(halt);
            }
        };
        work.tell(Some(end));
        Ok(work.ending(end))
    }
}

impl Roles {
    /// A role team that nothing more is said of.
    pub fn usual() -> Roles {
        Roles {
            parent: parent(),
            weighing: Weighing::default(),
            budget: None,
            hand_off_at: BTreeMap::new(),
            clocks: Clocks::default(),
        }
    }

    /// What the agent of a role is called: its identity is whom it works for, its role and the run.
    pub fn label(&self, role: Role) -> String {
        format!("{}_{}", self.parent, role.name())
    }

    /// Who takes part in the work on `task`, or on any task.
    pub fn agents(&self, task: Option<&str>) -> Vec<Role> {
        let [team @ .., alone] = Role::ALL;
        match task.map(|task| self.weighing.of(task).path).or(self.weighing.path) {
            Some(Path::Single) => vec![alone],
            Some(Path::Roles) => team.to_vec(),
            None => Role::ALL.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
