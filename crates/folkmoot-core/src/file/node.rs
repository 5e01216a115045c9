//! A document as a tree whose nodes know where they stand.

use std::sync::Arc;

use serde_json::Value;

use crate::diagnostic::Span;

/// A part of a document, or what a flag says in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it comes from.
    pub origin: Origin,
    /// What it holds.
    pub value: Tree,
    /// How many nodes it has, itself and everything behind aliases included.
    pub size: u64,
    /// How many nodes stand inside one another, itself included.
    pub depth: usize,
}

/// Where a node comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file.
    File(Span),
    /// The flag, or other caller's word, of this name.
    Flag(Arc<str>),
    /// Nobody wrote it.
    Implied,
}

/// What a node holds. Children are shared, so that an alias costs nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// One value.
    Scalar(Scalar),
    /// Values in order.
    List(Arc<[Node]>),
    /// Values with keys.
    Map(Arc<[Entry]>),
}

/// One value as written: its text stays, what it means is its reader's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The text, escapes resolved.
    pub text: Arc<str>,
    /// Whether it stands without quotes and so may mean a number, a truth value or nothing.
    pub plain: bool,
}

/// A value and its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// Where the key comes from.
    pub origin: Origin,
    /// The value.
    pub value: Node,
}

impl Origin {
    /// Where it stands in the text.
    pub fn span(&self) -> Option<Span> {
        match self {
            Origin::File(span) => Some(*span),
            Origin::Flag(_) | Origin::Implied => None,
        }
    }
}

impl Node {
    /// A node that holds `value`.
    pub fn new(origin: Origin, value: Tree) -> Node {
        let (size, depth) = match &value {
            Tree::Scalar(_) => (0, 0),
            Tree::List(items) => measure(items.iter()),
            Tree::Map(entries) => measure(entries.iter().map(|entry| &entry.value)),
        };
        Node { origin, value, size: size.saturating_add(1), depth: depth + 1 }
    }

    /// A value without quotes.
    pub fn plain(origin: Origin, text: impl Into<Arc<str>>) -> Node {
        Node::new(origin, Tree::Scalar(Scalar { text: text.into(), plain: true }))
    }

    /// A text.
    pub fn text(origin: Origin, text: impl Into<Arc<str>>) -> Node {
        Node::new(origin, Tree::Scalar(Scalar { text: text.into(), plain: false }))
    }

    /// Values in order.
    pub fn list(origin: Origin, items: impl IntoIterator<Item = Node>) -> Node {
        Node::new(origin, Tree::List(items.into_iter().collect()))
    }

    /// Values with keys.
    pub fn map(origin: Origin, entries: impl IntoIterator<Item = Entry>) -> Node {
        Node::new(origin, Tree::Map(entries.into_iter().collect()))
    }

    /// A JSON value, as if it had been written where `origin` says.
    pub fn from_json(origin: &Origin, value: &Value) -> Node {
        let node = |value| Node::from_json(origin, value);
        match value {
            Value::String(text) => Node::text(origin.clone(), text.as_str()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                Node::plain(origin.clone(), value.to_string())
            }
            Value::Array(items) => Node::list(origin.clone(), items.iter().map(node)),
            Value::Object(map) => {
                let entry = |(key, value): (&String, _)| Entry {
                    key: key.as_str().into(),
                    origin: origin.clone(),
                    value: node(value),
                };
                Node::map(origin.clone(), map.iter().map(entry))
            }
        }
    }

    /// Whether it says that there is nothing, as an empty value and `null` do.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Tree::Scalar(scalar) if scalar.is_null())
    }
}

impl Scalar {
    /// Whether it is null in YAML 1.2.
    pub fn is_null(&self) -> bool {
        self.plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }
}

fn measure<'a>(children: impl Iterator<Item = &'a Node>) -> (u64, usize) {
    children.fold((0, 0), |(size, depth), child| {
        (child.size.saturating_add(size), child.depth.max(depth))
    })
}
