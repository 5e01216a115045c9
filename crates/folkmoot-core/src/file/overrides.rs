//! What flags and callers say in place of the file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    diagnostic::{Diagnostic, Place, quoted},
    file::{
        node::{Entry, Node, Origin, Tree},
        shape::{Field, Record},
        team::TEAM,
    },
    names,
};

/// One value that wins over the file's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The flag, `--rounds`, the key, `rounds`, or the path to it, `agents.coder.model`; errors name
    /// it as it stands here.
    pub name: String,
    /// The value.
    pub value: Given,
}

/// A value from outside the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// As it stands on a command line; lists are separated by commas.
    Text(String),
    /// As it stands in a request; null gives nothing.
    Json(Value),
}

/// The document with the overrides in place, and those that name nothing.
pub fn apply(root: Node, overrides: &[Override]) -> (Node, Vec<Diagnostic>) {
    let mut told = Vec::new();
    let root = overrides.iter().fold(root, |root, given| {
        let Some(path) = path_of(&given.name, &root) else {
            told.push(unknown(&given.name));
            return root;
        };
        match given.node() {
            Some(node) => graft(root, &path, node),
            None => root,
        }
    });
    (root, told)
}

impl Override {
    fn node(&self) -> Option<Node> {
        let origin = Origin::Flag(self.name.as_str().into());
        match &self.value {
            Given::Text(text) => Some(Node::plain(origin, text.as_str())),
            Given::Json(Value::Null) => None,
            Given::Json(value) => Some(Node::from_json(&origin, value)),
        }
    }
}

/// The maps of a team file whose keys can be overridden one by one.
const SECTIONS: [&str; 2] = ["collaboration", "limits"];

/// All keys that can be overridden, the parameters first, with the keys that lead to them.
fn overridable() -> impl Iterator<Item = (Vec<&'static str>, &'static Field)> {
    let sections = TEAM.fields().filter(|field| SECTIONS.contains(&field.name));
    let inner = sections.flat_map(|section| {
        let fields = section.shape.record().into_iter().flat_map(Record::fields);
        fields.map(|field| (vec![section.name, field.name], field))
    });
    inner.chain(TEAM.fields().map(|field| (vec![field.name], field)))
}

/// The keys that lead to what `name` means in the document.
fn path_of(name: &str, root: &Node) -> Option<Vec<String>> {
    let meant = |field: &Field| field.flag == Some(name) || field.name == name;
    let known = overridable().find(|(_, field)| meant(field)).map(|(path, _)| path);
    match known {
        Some(path) => Some(path.into_iter().map(str::to_owned).collect()),
        None => written_out(name, root),
    }
}

/// A path as it is written out, `agents.coder.model`: an agent by its name or id, all else by key.
fn written_out(path: &str, root: &Node) -> Option<Vec<String>> {
    let (first, rest) = path.split_once('.')?;
    let field = TEAM.fields().find(|field| field.spellings().any(|it| it == first))?;
    if field.name != "agents" {
        return Some([first].into_iter().chain(rest.split('.')).map(str::to_owned).collect());
    }
    let Tree::Map(entries) = &root.value else { return None };
    let agents = entries.iter().find(|entry| field.spellings().any(|it| it == &*entry.key))?;
    let Tree::List(items) = &agents.value.value else { return None };
    // A name may hold dots: the longest that is one counts.
    let ends = rest.rmatch_indices('.').map(|(at, _)| at);
    let (at, keys) = ends.into_iter().find_map(|end| {
        let at = items.iter().position(|item| is_called(item, &rest[..end]))?;
        Some((at, &rest[end + 1..]))
    })?;
    let begin = [agents.key.to_string(), at.to_string()];
    Some(begin.into_iter().chain(keys.split('.').map(str::to_owned)).collect())
}

fn is_called(agent: &Node, name: &str) -> bool {
    let Tree::Map(entries) = &agent.value else { return false };
    entries.iter().filter(|entry| &*entry.key == "name").any(|entry| {
        let Tree::Scalar(scalar) = &entry.value.value else { return false };
        &*scalar.text == name || names::slug(&scalar.text) == name
    })
}

fn unknown(name: &str) -> Diagnostic {
    let known: Vec<_> = overridable().map(|(_, field)| field.flag.unwrap_or(field.name)).collect();
    Diagnostic::error("unknown_key", format!("unknown parameter {}", quoted(name)))
        .at(&Place { span: None, path: name.into() })
        .help(names::suggestion(name, known))
}

/// Puts `node` at `path`, making maps on the way where there are none; a number counts list items.
fn graft(root: Node, path: &[String], node: Node) -> Node {
    let [key, rest @ ..] = path else { return node };
    match &root.value {
        Tree::Map(entries) => graft_into_map(&root.origin, entries, key, rest, node),
        Tree::List(items) => {
            let items = items.iter().enumerate().map(|(at, item)| {
                let is_meant = key.parse() == Ok(at);
                if is_meant { graft(item.clone(), rest, node.clone()) } else { item.clone() }
            });
            Node::list(root.origin.clone(), items)
        }
        Tree::Scalar(_) => root,
    }
}

fn graft_into_map(of: &Origin, entries: &[Entry], key: &str, rest: &[String], node: Node) -> Node {
    let (mut kept, replaced): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|entry| &*entry.key != key);
    let origin = node.origin.clone();
    let map = replaced.into_iter().find(|old| !rest.is_empty() && !old.value.is_null());
    let entry = map.unwrap_or_else(|| Entry {
        key: key.into(),
        origin: origin.clone(),
        value: Node::map(origin, []),
    });
    kept.push(Entry { value: graft(entry.value, rest, node), ..entry });
    Node::map(of.clone(), kept)
}
