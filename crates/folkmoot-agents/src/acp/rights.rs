//! What a coding agent may do, by its grants (agents.md §5).

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SelectedPermissionOutcome,
    ToolKind,
};
use folkmoot_core::{
    session::Decision,
    team::{Agent, Sandbox},
};
use serde::Serialize;

/// The most characters of what was asked for that are kept.
const SHOWN: usize = 200;

/// The rights of an agent, at the level that it works at.
#[derive(Debug)]
pub(super) struct Rights {
    pub(super) agent: Arc<Agent>,
    pub(super) level: Sandbox,
}

impl Rights {
    /// Whether it may use a tool of ours.
    pub(super) fn allow(&self, tool: &str) -> bool {
        let writes = tool == "file.write" && self.level == Sandbox::ReadOnly;
        self.agent.is_granted(tool) && !writes
    }

    /// Whether it may use a tool of its own. Its own commands reach the network as it does, so whoever
    /// only reads runs none.
    pub(super) fn allow_own(&self, tool: &str) -> bool {
        let runs = tool == "shell" && self.level == Sandbox::ReadOnly;
        self.allow(tool) && !runs
    }
}

/// The tool of ours whose grant decides on a tool of its own; none for what nobody is granted.
pub(super) fn tool_of(kind: ToolKind) -> Option<&'static str> {
    match kind {
        ToolKind::Read => Some("file.read"),
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Some("file.write"),
        ToolKind::Search => Some("search"),
        ToolKind::Execute => Some("shell"),
        ToolKind::Fetch => Some("fetch"),
        // Kinds that come later are not granted either.
        ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other | _ => None,
    }
}

/// The option that says yes or no, this once. Nothing is allowed for good.
pub(super) fn choice(
    is_allowed: bool,
    options: &[PermissionOption],
) -> (bool, RequestPermissionOutcome) {
    let find = |kind: PermissionOptionKind| options.iter().find(|option| option.kind == kind);
    let yes = find(PermissionOptionKind::AllowOnce).filter(|_| is_allowed);
    let no = || {
        find(PermissionOptionKind::RejectOnce).or_else(|| find(PermissionOptionKind::RejectAlways))
    };
    let chosen = yes.or_else(no).map(|option| option.option_id.clone());
    let outcome = chosen.map_or(RequestPermissionOutcome::Cancelled, |id| {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id))
    });
    (yes.is_some(), outcome)
}

/// As much of what was asked for as is kept.
pub(super) fn shown(what: &str) -> String {
    what.chars().take(SHOWN).collect()
}

/// A decision on what was asked with these arguments.
pub(super) fn decision(
    what: &str,
    tool: Option<&str>,
    allowed: bool,
    arguments: &impl Serialize,
) -> Decision {
    let arguments = serde_json::to_vec(arguments).unwrap_or_default();
    let digest = &blake3::hash(&arguments).to_hex()[..16];
    Decision {
        what: shown(what).into(),
        tool: tool.map(Into::into),
        allowed,
        digest: digest.into(),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::PermissionOptionId;
    use folkmoot_core::team::Target;

    use super::*;

    fn rights(level: Sandbox, grants: &[&str]) -> Rights {
        let grants = grants.iter().map(|it| (*it).into()).collect();
        Rights { agent: Arc::new(Agent { grants, ..Agent::new("a", Target::Demo) }), level }
    }

    #[test]
    fn what_is_not_granted_is_denied_and_whoever_only_reads_writes_nothing() {
        let tools = ["file.read", "file.write", "search", "shell", "fetch"];
        let own = |level, grants: &[&str]| {
            let rights = rights(level, grants);
            tools.into_iter().filter(|it| rights.allow_own(it)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(own(Sandbox::Full, &[]), "");
        assert_eq!(own(Sandbox::Write, &["file"]), "file.read file.write");
        assert_eq!(own(Sandbox::ReadOnly, &["*"]), "file.read search fetch");
        assert_eq!(own(Sandbox::Full, &["shell", "fetch"]), "shell fetch");
        assert!(rights(Sandbox::ReadOnly, &["shell"]).allow("shell"), "ours are confined");
    }

    #[test]
    fn a_permission_is_given_once_or_not_at_all() {
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        let chosen = |is_allowed, kinds: &[PermissionOptionKind]| {
            let option = |kind: &PermissionOptionKind| {
                PermissionOption::new(PermissionOptionId::new(format!("{kind:?}")), "x", *kind)
            };
            let options: Vec<_> = kinds.iter().map(option).collect();
            match choice(is_allowed, &options) {
                (said_yes, RequestPermissionOutcome::Selected(it)) => {
                    format!("{said_yes} {}", it.option_id)
                }
                (said_yes, _) => format!("{said_yes} cancelled"),
            }
        };
        let all = [AllowAlways, RejectAlways, AllowOnce, RejectOnce];
        assert_eq!(chosen(true, &all), "true AllowOnce");
        assert_eq!(chosen(false, &all), "false RejectOnce");
        assert_eq!(chosen(true, &[AllowAlways, RejectOnce]), "false RejectOnce");
        assert_eq!(chosen(false, &[AllowOnce, RejectAlways]), "false RejectAlways");
        assert_eq!(chosen(false, &[AllowOnce]), "false cancelled");
        assert_eq!(chosen(true, &[]), "false cancelled");
    }

    #[test]
    fn kinds_that_no_grant_knows_are_nobodys() {
        for kind in [ToolKind::Think, ToolKind::SwitchMode, ToolKind::Other] {
            assert_eq!(tool_of(kind), None);
        }
    }
}
