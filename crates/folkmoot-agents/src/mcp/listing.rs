//! What a server says it has: from its words to what is pinned, and what differs later.

use std::{collections::BTreeSet, sync::Arc};

use folkmoot_core::mcp::Pinned;
use rmcp::model::Tool;
use serde_json::Value;

/// How many tools of a server are looked at, and how large a list may be, in bytes.
const MOST: usize = 1000;
const LARGEST: usize = 1 << 20;

/// How long the name of a tool may be, in bytes.
const LONGEST_NAME: usize = 128;

/// How many levels the schema of a tool may have.
const NESTING: u32 = 64;

/// The tools of `server` that can be pinned, and why others cannot; so many more could not be read.
pub(super) fn pinned(
    server: &str,
    (tools, unreadable): (Vec<Tool>, usize),
) -> (Vec<Pinned>, Vec<Arc<str>>) {
    let (mut pinned, mut left_out) = (Vec::new(), Vec::new());
    let (mut names, mut size) = (BTreeSet::new(), 0);
    for tool in tools {
        let name = tool.name.to_string();
        let tool = read(&tool);
        let its_size = tool.description.len() + tool.parameters.to_string().len();
        let why = if !is_name(&name) {
            "its name cannot be called"
        } else if !names.insert(name.clone()) {
            "its name comes twice"
        } else if !is_within(NESTING, &tool.parameters) {
            "its schema is nested too deeply"
        } else if pinned.len() >= MOST || size + its_size > LARGEST {
            "there are too many"
        } else {
            size += its_size;
            pinned.push(tool);
            continue;
        };
        let shown: String = name.chars().take(LONGEST_NAME).flat_map(char::escape_debug).collect();
        left_out.push(format!("MCP server {server}: tool \"{shown}\" is left out: {why}").into());
    }
    left_out.truncate(10);
    if unreadable > 0 {
        let told = format!("MCP server {server}: unreadable tools left out: {unreadable}");
        left_out.push(told.into());
    }
    (pinned, left_out)
}

fn read(tool: &Tool) -> Pinned {
    let repeatable = tool.annotations.as_ref().is_some_and(|told| {
        told.read_only_hint == Some(true) || told.idempotent_hint == Some(true)
    });
    Pinned {
        name: tool.name.as_ref().into(),
        description: tool.description.as_deref().or(tool.title.as_deref()).unwrap_or("").into(),
        parameters: Value::Object(tool.input_schema.as_ref().clone()),
        repeatable,
    }
}

/// Whether a tool can be granted and called by this name.
fn is_name(name: &str) -> bool {
    let is_seen = |c: char| !c.is_control() && !c.is_whitespace();
    (1..=LONGEST_NAME).contains(&name.len()) && name != "*" && name.chars().all(is_seen)
}

fn is_within(levels: u32, value: &Value) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => false,
        Value::Array(items) => items.iter().all(|item| is_within(levels - 1, item)),
        Value::Object(fields) => fields.values().all(|field| is_within(levels - 1, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// How what `server` has `now` differs from what is pinned, which remains what agents are offered.
pub(super) fn changes(server: &str, pinned: &[Pinned], now: &[Pinned]) -> Option<Arc<str>> {
    let find = |of: &[Pinned], name: &str| of.iter().find(|it| *it.name == *name).cloned();
    let names = |tools: Vec<&Pinned>| {
        let names: Vec<&str> = tools.iter().map(|it| &*it.name).take(10).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let new = now.iter().filter(|it| find(pinned, &it.name).is_none()).collect();
    let gone = pinned.iter().filter(|it| find(now, &it.name).is_none()).collect();
    let differs = |it: &&Pinned| find(now, &it.name).is_some_and(|now| now != **it);
    let changed = pinned.iter().filter(differs).collect();
    let parts = [
        names(new).map(|names| format!("new, and denied: {names}")),
        names(gone).map(|names| format!("gone: {names}")),
        names(changed).map(|names| format!("changed, and offered as before: {names}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let told = || {
        format!(
            "the tools of MCP server {server} are not what they were at first sight; {}",
            parts.join("; ")
        )
    };
    (!parts.is_empty()).then(|| told().into())
}
