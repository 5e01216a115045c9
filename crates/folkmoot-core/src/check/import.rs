//! Agent files of other programs: what they say is put into the team file as if it stood there, so that
//! it is judged like all else (agents.md §11). They are read, never written.

mod codex;
mod front_matter;

use std::{collections::BTreeMap, sync::Arc};

use super::Input;
use crate::{
    diagnostic::{Diagnostic, Place, Text, quoted},
    file::node::{Entry, Node, Origin, Scalar, Tree},
    names,
};

/// The document with all agents in place that it imports.
pub(super) fn apply(root: Node, input: &Input<'_>, told: &mut Vec<Diagnostic>) -> Node {
    let Tree::Map(entries) = &root.value else { return root };
    let servers = servers(entries);
    let mut importer = Importer { input, servers, told };
    let is_list = |entry: &Entry| matches!(&*entry.key, "agents" | "subagents");
    let from = entries.iter().find(|entry| &*entry.key == "agents_from");
    let folder = from.map_or_else(Vec::new, |entry| importer.folder(entry));
    let has_list = entries.iter().any(is_list);
    let mut is_added = false;
    let merged = entries.iter().map(|entry| match &entry.value.value {
        Tree::List(items) if is_list(entry) => {
            let own: Vec<Node> = items.iter().map(|item| importer.member(item)).collect();
            let named: Vec<&str> = own.iter().filter_map(|node| text(node, "name")).collect();
            let more = folder.iter().filter(|node| {
                !is_added && text(node, "name").is_none_or(|name| !named.contains(&name))
            });
            let more: Vec<Node> = more.cloned().collect();
            is_added = true;
            let items = own.into_iter().chain(more);
            Entry { value: Node::list(entry.value.origin.clone(), items), ..entry.clone() }
        }
        _ => entry.clone(),
    });
    let merged: Vec<Entry> = merged.collect();
    let only = (!has_list && !folder.is_empty()).then(|| Entry {
        key: "agents".into(),
        origin: Origin::Implied,
        value: Node::list(Origin::Implied, folder),
    });
    Node::map(root.origin.clone(), merged.into_iter().chain(only))
}

/// The names of the MCP servers that the team has.
fn servers(entries: &[Entry]) -> Vec<Arc<str>> {
    let found = entries.iter().find(|entry| &*entry.key == "mcp_servers");
    match found.map(|entry| &entry.value.value) {
        Some(Tree::Map(servers)) => servers.iter().map(|entry| entry.key.clone()).collect(),
        _ => Vec::new(),
    }
}

/// The text of a key of a map.
fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    let Tree::Map(entries) = &node.value else { return None };
    let entry = entries.iter().find(|entry| &*entry.key == key)?;
    match &entry.value.value {
        Tree::Scalar(scalar) if !scalar.is_null() => Some(&scalar.text),
        _ => None,
    }
}

struct Importer<'a> {
    input: &'a Input<'a>,
    servers: Vec<Arc<str>>,
    told: &'a mut Vec<Diagnostic>,
}

impl Importer<'_> {
    /// An agent with what its file says, unless it says it itself.
    fn member(&mut self, item: &Node) -> Node {
        let (Some(file), Tree::Map(own)) = (text(item, "file"), &item.value) else {
            return item.clone();
        };
        let place = own.iter().find(|entry| &*entry.key == "file");
        let place = place.and_then(|entry| entry.value.origin.span());
        let imported = match (self.input.read)(file) {
            Ok(text) => self.entries(file, &text),
            Err(why) => {
                let message = format!("{} cannot be read: {why}", quoted(file));
                let at = Place { span: place, path: "file".into() };
                self.told.push(Diagnostic::error("bad_file", message).at(&at));
                vec![entry("name", Node::text(Origin::Implied, names::file_stem(file)))]
            }
        };
        let has = |key: &str| own.iter().any(|entry| &*entry.key == key && !entry.value.is_null());
        // Whoever says what answers for it, or what it is told, says it in place of the file.
        let answers = super::team::BACK_ENDS.into_iter().any(has);
        let is_told = has("prompt") || has("prompt_file");
        let kept = imported.into_iter().filter(|entry| match &*entry.key {
            "model" => !answers,
            "prompt" => !is_told,
            key => !has(key),
        });
        let own = own.iter().filter(|entry| !entry.value.is_null());
        Node::map(item.origin.clone(), own.cloned().chain(kept))
    }

    /// The agents of a folder, and of the user's folder of that name; those of the project win.
    fn folder(&mut self, from: &Entry) -> Vec<Node> {
        let Tree::Scalar(Scalar { text: folder, .. }) = &from.value.value else {
            return Vec::new();
        };
        let folder = folder.trim_end_matches('/');
        let mut found: BTreeMap<String, Node> = BTreeMap::new();
        let at = Place { span: from.value.origin.span(), path: "agents_from".into() };
        for folder in users(folder).into_iter().chain([folder.to_owned()]) {
            let names = match (self.input.list)(&folder) {
                Ok(names) => names,
                Err(_) if folder.starts_with("~/") => continue,
                Err(why) => {
                    let message = format!("{} cannot be read: {why}", quoted(&folder));
                    self.told.push(Diagnostic::error("bad_file", message).at(&at));
                    continue;
                }
            };
            for name in names.iter().filter(|name| is_agent_file(name)) {
                let file = format!("{folder}/{name}");
                match (self.input.read)(&file) {
                    Ok(text) => {
                        let entries = self.entries(&file, &text);
                        found.insert(name.clone(), Node::map(Origin::Implied, entries));
                    }
                    Err(why) => {
                        let message = format!("{} cannot be read: {why}", quoted(&file));
                        self.told.push(Diagnostic::error("bad_file", message).at(&at));
                    }
                }
            }
        }
        if found.is_empty() {
            let message = format!("there is no agent file in {}", quoted(folder));
            self.told.push(Diagnostic::warning("no_agent_files", message).at(&at));
        }
        found.into_values().collect()
    }

    /// What an agent file says, as the keys of an agent.
    fn entries(&mut self, path: &str, text: &str) -> Vec<Entry> {
        let file = Arc::new(Text { path: path.into(), text: text.into() });
        let mut said =
            Said { file, told: Vec::new(), catalog: self.input.catalog, servers: &self.servers };
        let entries = if path.rsplit_once('.').is_some_and(|(_, ending)| ending == "toml") {
            codex::entries(&mut said)
        } else {
            front_matter::entries(&mut said)
        };
        let Said { file, told, .. } = said;
        self.told.extend(told.into_iter().map(|it| it.of(&file)));
        entries
    }
}

/// The user's folder that goes with one of a project.
fn users(folder: &str) -> Option<String> {
    let known = [".claude/agents", ".codex/agents"];
    let found = known.into_iter().find(|known| {
        folder.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })?;
    (!folder.starts_with('~')).then(|| format!("~/{found}"))
}

fn is_agent_file(name: &str) -> bool {
    [".md", ".toml"].into_iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// A key of an agent and its value.
fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.into(), origin: Origin::Implied, value }
}

/// An agent file that is read, and what is told of it.
struct Said<'a> {
    file: Arc<Text>,
    told: Vec<Diagnostic>,
    catalog: &'a crate::file::models::Catalog,
    servers: &'a [Arc<str>],
}

impl Said<'_> {
    fn warn(&mut self, code: &'static str, message: String, at: Option<crate::diagnostic::Span>) {
        let mut told = Diagnostic::warning(code, message);
        told.at = at;
        self.told.push(told);
    }

    /// Tells of a field that means nothing here. One that may be meant for one of `limits` is an error.
    fn unknown(
        &mut self,
        field: &str,
        known: &[&str],
        limits: &[&str],
        at: Option<crate::diagnostic::Span>,
    ) {
        // Other programs tell neither case nor hyphens apart in the names of some fields.
        let loose = names::loosened(field);
        let meant = known.iter().find(|name| names::loosened(name) == loose).copied();
        let near = meant.or_else(|| names::nearest(field, known.iter().chain(limits).copied()));
        let mut told = if near.is_some_and(|near| limits.contains(&near)) {
            Diagnostic::error("unknown_field", format!("unknown field {}", quoted(field)))
        } else {
            let message = format!("unknown field {}: it is left out", quoted(field));
            Diagnostic::warning("unknown_field", message)
        };
        told = told.help(near.map(|near| format!("did you mean \"{near}\"?")));
        told.at = at;
        self.told.push(told);
    }

    /// The model that is meant, if it can be asked here.
    fn model(&mut self, model: &str, at: Option<crate::diagnostic::Span>) -> Option<Entry> {
        if model == "inherit" || model.is_empty() {
            return None;
        }
        if self.catalog.resolve(model).is_err() {
            let message = format!("model {} is not known: the default answers", quoted(model));
            self.warn("unknown_model", message, at);
            return None;
        }
        Some(entry("model", Node::text(Origin::Implied, model)))
    }

    /// The name that a file has, if it does not say one itself.
    fn stem(&self) -> &str {
        names::file_stem(&self.file.path)
    }
}

/// A list of grants.
fn grants(of: impl IntoIterator<Item = String>) -> Entry {
    let items = of.into_iter().map(|grant| Node::text(Origin::Implied, grant));
    entry("grants", Node::list(Origin::Implied, items))
}
