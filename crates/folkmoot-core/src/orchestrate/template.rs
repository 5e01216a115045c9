//! What a phase is delivered with (orchestrate.md §3).

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Budget, Role};
use crate::team::Sandbox;

/// Who works on the cards of a phase, how far they may go, and what their work must pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Template {
    /// The targets of each role, in the order in which they are to be asked.
    pub roles: BTreeMap<Role, Vec<Arc<str>>>,
    /// A team file that works on cards in place of the roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<Arc<str>>,
    /// What whoever writes may do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Commands that must succeed on the work.
    pub gates: Vec<Arc<str>>,
    /// What all runs of a phase may use together.
    #[serde(skip_serializing_if = "Budget::is_none")]
    pub limits: Budget,
    /// Whether a person releases a merge.
    pub release: Release,
}

/// Whether a person releases a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// Somebody is asked.
    #[default]
    Asked,
    /// Nobody needs to be.
    Waived,
}

impl Template {
    /// The name of the built-in template.
    pub const BUILT_IN: &'static str = "phase_delivery_team";

    /// The built-in template: `target` plans, writes, reviews and tests.
    pub fn built_in(target: Option<&str>) -> Template {
        let roles = [Role::Planner, Role::Implementer, Role::Reviewer, Role::Tester];
        let bound = |role| (role, target.into_iter().map(Into::into).collect());
        Template { roles: roles.into_iter().map(bound).collect(), ..Template::default() }
    }

    /// Who says how an issue is to be done: the first target of the planner, if there is one.
    pub fn planner(&self) -> Option<&Arc<str>> {
        self.roles.get(&Role::Planner)?.first()
    }

    /// The targets for a role: those bound to it, else those of the implementer.
    pub fn candidates(&self, role: Role) -> &[Arc<str>] {
        let of = |role| self.roles.get(&role).filter(|targets| !targets.is_empty());
        of(role).or_else(|| of(Role::Implementer)).map_or(&[], Vec::as_slice)
    }
}
