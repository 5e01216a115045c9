//! What flags and callers say in place of the file.

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
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The flag, `--rounds`, or the key, `rounds`; errors name it as it stands here.
    pub name: String,
    /// The value.
    pub value: Given,
}

/// A value from outside the file.
#[derive(Clone, Debug, PartialEq)]
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
        let path = path_of(&given.name);
        told.extend(path.is_none().then(|| unknown(&given.name)));
        match path.zip(given.node()) {
            Some((path, node)) => graft(root, &path, node),
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

fn path_of(name: &str) -> Option<Vec<&'static str>> {
    let meant = |field: &Field| field.flag == Some(name) || field.name == name;
    overridable().find(|(_, field)| meant(field)).map(|(path, _)| path)
}

fn unknown(name: &str) -> Diagnostic {
    let known: Vec<_> = overridable().map(|(_, field)| field.flag.unwrap_or(field.name)).collect();
    Diagnostic::error("unknown_key", format!("unknown parameter {}", quoted(name)))
        .at(&Place { span: None, path: name.into() })
        .help(names::suggestion(name, known))
}

/// Puts `node` at `path`, making maps on the way where there are none.
fn graft(root: Node, path: &[&str], node: Node) -> Node {
    let [key, rest @ ..] = path else { return node };
    let Tree::Map(entries) = &root.value else { return root };
    let (mut kept, replaced): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|entry| &*entry.key != *key);
    let origin = node.origin.clone();
    let map = replaced.into_iter().find(|old| !rest.is_empty() && !old.value.is_null());
    let entry = map.unwrap_or_else(|| Entry {
        key: (*key).into(),
        origin: origin.clone(),
        value: Node::map(origin, []),
    });
    kept.push(Entry { value: graft(entry.value, rest, node), ..entry });
    Node::map(root.origin, kept)
}
