//! Whether the tools that agents are granted exist (agents.md §§5, 6).

use crate::{
    check::servers,
    diagnostic::{Diagnostic, quoted},
    file::item::Item,
    mcp, names,
    tools::{grantable, is_grantable},
};

/// Tells of grants of tools that do not exist.
pub(super) fn check(grants: &[Item], told: &mut Vec<Diagnostic>) {
    for item in grants {
        let Some(grant) = item.text() else { continue };
        // Whether there is such a server is told once the servers are known.
        let is_of_server = mcp::granted_server(grant).is_some_and(servers::is_name);
        if !is_of_server && !is_grantable(grant) {
            told.push(unknown(grant).at(&item.place));
        }
    }
}

fn unknown(grant: &str) -> Diagnostic {
    let known = grantable();
    let help = names::suggestion(grant, known.iter().map(String::as_str))
        .unwrap_or_else(|| format!("known: {}", known.join(", ")));
    Diagnostic::error("unknown_tool", format!("unknown tool {}", quoted(grant))).help(help)
}
