//! Whether the tools that agents are granted exist (agents.md §§5, 6).

use crate::{
    diagnostic::{Diagnostic, quoted},
    file::item::Item,
    names,
    tools::{grantable, is_grantable},
};

/// Tells of grants of tools that do not exist.
pub(super) fn check(grants: &[Item], told: &mut Vec<Diagnostic>) {
    for item in grants {
        let Some(grant) = item.text() else { continue };
        if grant.starts_with("mcp.") {
            let message = format!("{} is not supported by this version", quoted(grant));
            told.push(Diagnostic::error("not_supported_yet", message).at(&item.place));
        } else if !is_grantable(grant) {
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
