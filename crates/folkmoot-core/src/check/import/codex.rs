//! Agent files of Codex: TOML with the prompt in a field.

use toml::{Table, Value};

use super::{Said, entry, grants};
use crate::{
    diagnostic::{Diagnostic, Span, quoted},
    file::node::{Entry, Node, Origin},
};

/// The fields that mean something here.
const FIELDS: [&str; 5] =
    ["name", "description", "developer_instructions", "model", "sandbox_mode"];

/// The keys of an agent that a file stands for.
pub(super) fn entries(said: &mut Said<'_>) -> Vec<Entry> {
    let file = said.file.clone();
    let text = file.text.trim_start_matches('\u{feff}');
    let bom = file.text.len() - text.len();
    let table = match text.parse::<Table>() {
        Ok(table) => table,
        Err(error) => {
            let at = error.span().unwrap_or_default();
            let span = Span::from(at.start + bom..at.end + bom);
            let message = error.message().lines().next().unwrap_or("it is no TOML").to_owned();
            said.told.push(Diagnostic::error("syntax", message).spanning(span));
            Table::new()
        }
    };
    for field in table.keys().filter(|field| !FIELDS.contains(&&***field)) {
        said.unknown(field, &FIELDS, &["sandbox_mode"], None);
    }
    let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    for field in FIELDS.into_iter().filter(|key| table.contains_key(*key) && text(key).is_none()) {
        if field == "sandbox_mode" {
            said.told.push(Diagnostic::error("bad_value", "sandbox_mode is no text"));
        } else {
            said.warn("bad_value", format!("{field} is no text: it is left out"), None);
        }
    }
    let name = text("name").unwrap_or_else(|| said.stem().to_owned());
    let mut entries = vec![entry("name", Node::text(Origin::Implied, name))];
    let told = [("description", "description"), ("developer_instructions", "prompt")];
    for (field, key) in told {
        let node = text(field).map(|text| Node::text(Origin::Implied, text));
        entries.extend(node.map(|node| entry(key, node)));
    }
    entries.extend(text("model").and_then(|model| said.model(&model, None)));
    entries.push(grants(granted(said, text("sandbox_mode").as_deref())));
    entries
}

/// Such files name no tools, but say what processes may do.
fn granted(said: &mut Said<'_>, sandbox: Option<&str>) -> Vec<String> {
    let some = |grants: &[&str]| grants.iter().map(|it| (*it).to_owned()).collect();
    match sandbox {
        // A shell would be as free as the team's ceiling lets it be.
        Some("read-only") => some(&["file.read", "search"]),
        Some("workspace-write") => some(&["file", "search", "shell"]),
        Some("danger-full-access") | None => {
            let message = "it names no tools, so it may use all of them, as where it comes from";
            said.warn("all_tools", message.to_owned(), None);
            some(&["*"])
        }
        Some(other) => {
            let message = format!("unknown sandbox_mode {}: nothing is granted", quoted(other));
            said.warn("bad_value", message, None);
            Vec::new()
        }
    }
}
