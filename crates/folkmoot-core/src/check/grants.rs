//! Whether the tools that agents are granted exist (agents.md §§5, 6).

use crate::{
    diagnostic::{Diagnostic, quoted},
    file::item::Item,
    names,
};

/// The built-in tools and their actions.
const TOOLS: &[(&str, &[&str])] = &[
    ("file", &["read", "list", "write"]),
    ("search", &[]),
    ("shell", &[]),
    ("fetch", &[]),
    ("mail", &["send", "inbox", "read", "ack", "nack"]),
    ("board", &["show", "post", "get", "set"]),
];

/// Tells of grants of tools that do not exist.
pub(super) fn check(grants: &[Item], told: &mut Vec<Diagnostic>) {
    for item in grants {
        let Some(grant) = item.text() else { continue };
        if grant.starts_with("mcp.") {
            let message = format!("{} is not supported by this version", quoted(grant));
            told.push(Diagnostic::error("not_supported_yet", message).at(&item.place));
        } else if !known().any(|known| known == **grant) {
            told.push(unknown(grant).at(&item.place));
        }
    }
}

fn known() -> impl Iterator<Item = String> {
    let grants = TOOLS.iter().flat_map(|(tool, actions)| {
        let actions = actions.iter().map(move |action| format!("{tool}.{action}"));
        [(*tool).to_owned()].into_iter().chain(actions)
    });
    ["*".to_owned()].into_iter().chain(grants)
}

fn unknown(grant: &str) -> Diagnostic {
    let known: Vec<_> = known().collect();
    let help = names::suggestion(grant, known.iter().map(String::as_str))
        .unwrap_or_else(|| format!("known: {}", known.join(", ")));
    Diagnostic::error("unknown_tool", format!("unknown tool {}", quoted(grant))).help(help)
}
