//! Agent files with front matter: YAML between two marks, then the prompt.

use super::{Said, entry, grants};
use crate::{
    diagnostic::{Diagnostic, Span, quoted},
    file::{
        document,
        node::{Entry, Node, Origin, Tree},
    },
    names,
    team::covers,
    tools::grantable,
};

/// What the front matter may say.
const FIELDS: [&str; 7] =
    ["name", "description", "tools", "disallowedTools", "model", "maxTurns", "mcpServers"];

/// The tools that such files know, and what they are called here.
const TOOLS: [(&str, &str); 8] = [
    ("Read", "file.read"),
    ("Glob", "file.list"),
    ("Grep", "search"),
    ("Write", "file.write"),
    ("Edit", "file.write"),
    ("NotebookEdit", "file.write"),
    ("Bash", "shell"),
    ("WebFetch", "fetch"),
];

/// Those that narrow what the agent may do: what may have been meant as one of them is an error, for an
/// agent must not be freer than its file wants it (rules.md 13.2).
const LIMITS: [&str; 5] = ["tools", "disallowedTools", "maxTurns", "allowed-tools", "max-turns"];

/// Fields and tools that mean something where such files come from, and nothing here.
const ELSEWHERE: [&str; 10] = [
    "permissionMode",
    "hooks",
    "skills",
    "memory",
    "effort",
    "background",
    "isolation",
    "color",
    "initialPrompt",
    "version",
];
const TOOLS_ELSEWHERE: [&str; 11] = [
    "Agent",
    "AskUserQuestion",
    "BashOutput",
    "ExitPlanMode",
    "KillShell",
    "LS",
    "MultiEdit",
    "Skill",
    "Task",
    "TodoWrite",
    "WebSearch",
];

const MARK: &str = "---";

/// The most model calls that a turn may take here.
const MOST_STEPS: u64 = 1000;

/// The keys of an agent that a file stands for.
pub(super) fn entries(said: &mut Said<'_>) -> Vec<Entry> {
    let file = said.file.clone();
    let (front, body) = split(&file.text);
    let is_open = front.is_none() && opens(&file.text);
    let fields = front.map(|front| read(said, front)).unwrap_or_default();
    if is_open {
        let message = "its front matter does not stand between two lines of ---";
        let help = "begin the file with one such line, and end the fields with another";
        said.told.push(Diagnostic::error("bad_front_matter", message).help(help.to_owned()));
    } else if front.is_none() {
        let message = "it has no front matter between two lines of ---: all of it is the prompt";
        said.warn("no_front_matter", message.to_owned(), None);
    }
    let text = |key: &str| {
        let found = fields.iter().find(|field| &*field.key == key)?;
        Some((scalar(&found.value)?.to_owned(), found.value.origin.span()))
    };
    for field in &fields {
        if ELSEWHERE.contains(&&*field.key) {
            let message =
                format!("field {} means nothing here: it is left out", quoted(&field.key));
            said.warn("unknown_field", message, field.origin.span());
        } else if !FIELDS.contains(&&*field.key) {
            said.unknown(&field.key, &FIELDS, &LIMITS, field.origin.span());
        }
    }
    let name = text("name").map_or_else(|| said.stem().to_owned(), |(name, _)| name);
    let mut entries = vec![entry("name", Node::text(Origin::Implied, name))];
    let description = text("description").map(|(text, _)| Node::text(Origin::Implied, text));
    entries.extend(description.map(|node| entry("description", node)));
    if !body.trim().is_empty() {
        entries.push(entry("prompt", Node::text(Origin::Implied, body)));
    }
    entries.extend(text("model").and_then(|(model, at)| said.model(&model, at)));
    if let Some((turns, at)) = text("maxTurns") {
        let most = turns.parse::<u64>().ok().filter(|most| (1..=MOST_STEPS).contains(most));
        if let Some(most) = most {
            entries.push(entry("max_steps", Node::plain(Origin::Implied, most.to_string())));
        } else {
            let message = format!("maxTurns {} is none from 1 to {MOST_STEPS}", quoted(&turns));
            said.warn("bad_value", message, at);
        }
    }
    let field = |key: &str| fields.iter().find(|field| &*field.key == key);
    servers(said, field("mcpServers"));
    entries.push(grants(granted(said, field("tools"), field("disallowedTools"))));
    entries
}

/// The front matter with its place, up to its second mark, and what comes behind it.
fn split(text: &str) -> (Option<Span>, &str) {
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut lines = text[bom..].split_inclusive('\n');
    let is_mark = |line: &str| line.trim_end() == MARK;
    let Some(first) = lines.next().filter(|line| is_mark(line)) else {
        return (None, &text[bom..]);
    };
    let start = bom + first.len();
    let mut end = start;
    for line in lines {
        if is_mark(line) {
            return (Some(Span { start, end }), &text[end + line.len()..]);
        }
        end += line.len();
    }
    (None, &text[bom..])
}

/// Whether a text begins with a mark, blank lines aside: then its author meant fields to follow.
fn opens(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().lines().next().map(str::trim_end) == Some(MARK)
}

/// The fields of the front matter; what is wrong with it is told where it stands.
fn read(said: &mut Said<'_>, front: Span) -> Vec<Entry> {
    let text = said.file.text.clone();
    let keep = |byte: u8| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' };
    let before: String = text[..front.start].bytes().map(keep).collect();
    let document = document::read(&(before + &text[front.start..front.end]));
    said.told.extend(document.diagnostics);
    match &document.root.value {
        Tree::Map(entries) => entries.to_vec(),
        Tree::Scalar(_) | Tree::List(_) => {
            let message = "front matter is a map of fields";
            said.told.push(Diagnostic::error("bad_value", message).spanning(front));
            Vec::new()
        }
    }
}

fn scalar(node: &Node) -> Option<&str> {
    match &node.value {
        Tree::Scalar(scalar) if !scalar.is_null() => Some(&scalar.text),
        _ => None,
    }
}

/// The names in a list, or in a text in which commas separate them.
fn listed(node: &Node) -> Vec<String> {
    match &node.value {
        Tree::List(items) => items.iter().filter_map(scalar).map(str::to_owned).collect(),
        Tree::Map(entries) => entries.iter().map(|entry| entry.key.to_string()).collect(),
        Tree::Scalar(_) => {
            let (mut names, mut depth) = (vec![String::new()], 0_u32);
            for c in scalar(node).unwrap_or_default().chars() {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    ',' if depth == 0 => {
                        names.push(String::new());
                        continue;
                    }
                    _ => {}
                }
                names.last_mut().expect("there is one").push(c);
            }
            let names = names.into_iter().map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        }
    }
}

/// What may be used: the tools that are listed, or all, without those that are not allowed.
fn granted(said: &mut Said<'_>, tools: Option<&Entry>, denied: Option<&Entry>) -> Vec<String> {
    for field in [tools, denied].into_iter().flatten().filter(|field| field.value.is_null()) {
        let message = format!("{} names no tools", field.key);
        let help = "name some, or leave the field out; [] is none".to_owned();
        let mut told = Diagnostic::error("bad_value", message).help(help);
        told.at = field.origin.span();
        said.told.push(told);
    }
    let mut forbidden = Vec::new();
    for name in denied.map(|field| listed(&field.value)).unwrap_or_default() {
        // What is forbidden in part is not granted at all.
        let whole = name.split('(').next().unwrap_or(&name).trim();
        let known = TOOLS.into_iter().find(|(tool, _)| *tool == whole);
        let known = known.map(|(_, grant)| grant.to_owned()).or_else(|| of_server(whole));
        match known {
            Some(grant) => forbidden.push(grant),
            None => unknown_tool(said, &name, denied, true),
        }
    }
    let mut grants: Vec<String> = Vec::new();
    match tools {
        Some(field) => {
            for name in listed(&field.value) {
                let known = TOOLS.into_iter().find(|(tool, _)| *tool == name);
                if let Some((_, grant)) = known {
                    grants.push(grant.to_owned());
                } else if let Some(grant) = of_server(&name) {
                    let server = grant.split('.').nth(1).unwrap_or_default();
                    if said.servers.iter().any(|it| &**it == server) {
                        grants.push(grant);
                    } else {
                        let message = format!(
                            "tool {} is left out: the team has no MCP server {}",
                            quoted(&name),
                            quoted(server)
                        );
                        said.warn("unknown_tool", message, field.value.origin.span());
                    }
                } else {
                    unknown_tool(said, &name, Some(field), false);
                }
            }
        }
        None if forbidden.is_empty() => {
            let message = "it names no tools, so it may use all of them, as where it comes from";
            said.warn("all_tools", message.to_owned(), None);
            return vec!["*".to_owned()];
        }
        None => {
            let message = "it names no tools, so it may use all but those that it forbids";
            said.warn("all_tools", message.to_owned(), None);
            // Reading covers listing, writing all else of files: whole tools would cover too much.
            let single = |it: &String| !["*", "file", "shell.run"].contains(&&**it);
            grants = grantable().into_iter().filter(single).collect();
        }
    }
    let is_free =
        |grant: &String| !forbidden.iter().any(|it| covers(grant, it) || covers(it, grant));
    grants.retain(is_free);
    let mut kept: Vec<String> = Vec::new();
    for grant in grants {
        if !kept.contains(&grant) {
            kept.push(grant);
        }
    }
    kept
}

/// The grant of a tool of an MCP server, or of all its tools.
fn of_server(name: &str) -> Option<String> {
    let rest = name.strip_prefix("mcp__")?;
    let (server, tool) = rest.split_once("__").unwrap_or((rest, ""));
    match (server, tool) {
        ("", _) => None,
        (server, "" | "*") => Some(format!("mcp.{server}")),
        (server, tool) => Some(format!("mcp.{server}.{tool}")),
    }
}

/// Tells of a tool that there is not here. If it is forbidden and may be another, that is an error: the
/// other would stay granted.
fn unknown_tool(said: &mut Said<'_>, name: &str, field: Option<&Entry>, is_forbidden: bool) {
    let whole = name.split('(').next().unwrap_or(name).trim();
    let is_narrowed = whole != name && TOOLS.into_iter().any(|(tool, _)| tool == whole);
    let message = if is_narrowed {
        format!("tool {} is left out: no grant is as narrow", quoted(name))
    } else {
        format!("unknown tool {}: it is left out", quoted(name))
    };
    let help = names::suggestion(name, TOOLS.into_iter().map(|(tool, _)| tool));
    let mut told = if is_forbidden && help.is_some() && !TOOLS_ELSEWHERE.contains(&whole) {
        Diagnostic::error("unknown_tool", format!("unknown tool {}", quoted(name)))
    } else {
        Diagnostic::warning("unknown_tool", message)
    };
    told = told.help(help);
    told.at = field.and_then(|field| field.value.origin.span());
    said.told.push(told);
}

/// Tells of servers that the team does not have.
fn servers(said: &mut Said<'_>, field: Option<&Entry>) {
    let Some(field) = field.filter(|field| !field.value.is_null()) else { return };
    for name in listed(&field.value) {
        if !said.servers.iter().any(|it| **it == *name) {
            let message =
                format!("the team has no MCP server {}: its tools are left out", quoted(&name));
            said.warn("unknown_server", message, field.value.origin.span());
        }
    }
}
