//! From YAML text to nodes.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};

use crate::{
    diagnostic::{Diagnostic, Span, quoted, shown},
    file::node::{Entry, Node, Origin, Scalar, Tree},
};

/// The most nodes a file may have, aliases counted at full length.
pub(super) const MAX_NODES: u64 = 100_000;

/// How many collections may stand inside one another.
pub(super) const MAX_DEPTH: usize = 64;

/// A text that could be read to its end.
#[derive(Debug)]
pub(super) struct Parsed {
    /// What it holds; nothing if there is nothing but comments.
    pub(super) root: Option<Node>,
    /// What the grammar allows and we do not.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Why a text could not be read to its end.
#[derive(Debug)]
pub(super) struct Stop {
    /// What is wrong.
    pub(super) diagnostic: Box<Diagnostic>,
    /// The byte from which on it is no YAML; none if it is too much of it.
    pub(super) syntax_at: Option<usize>,
}

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Parsed, Stop> {
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::new(text);
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| stop(text, &error))?;
        let tag_at = span.tag_start().and_then(|mark| mark.byte_offset());
        builder.take(event, span.byte_range().unwrap_or_default(), tag_at)?;
        if builder.documents > 1 {
            break;
        }
    }
    Ok(Parsed { root: builder.root, diagnostics: builder.diagnostics })
}

fn stop(text: &str, error: &ScanError) -> Stop {
    let at = error.marker().byte_offset().unwrap_or(text.len());
    let diagnostic = match error.kind() {
        ErrorKind::RecursionLimitExceeded => return too_much(too_deep(), at),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => tab(text, at),
        kind => not_yaml(at, kind),
    };
    let syntax_at = Some(diagnostic.at.map_or(at, |span| span.start));
    Stop { diagnostic: Box::new(diagnostic), syntax_at }
}

/// The parser stops before or behind the tab it complains of.
fn tab(text: &str, near: usize) -> Diagnostic {
    let (before, behind) = text.split_at(text.floor_char_boundary(near));
    let line = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let indented = before[line..].trim_start_matches([' ', '\t']).is_empty();
    let in_indent = before[line..].find('\t').filter(|_| indented).map(|tab| line + tab);
    let tab = in_indent.or(behind.find('\t').map(|tab| before.len() + tab));
    let span = tab.map_or(Span { start: near, end: near }, |tab| Span { start: tab, end: tab + 1 });
    Diagnostic::error("bad_yaml", "a tab cannot stand here: YAML is indented with blanks")
        .spanning(span)
}

fn not_yaml(at: usize, kind: &ErrorKind) -> Diagnostic {
    let help = match kind {
        ErrorKind::MappingValueNotAllowed => Some("a text that holds \": \" needs quotes"),
        ErrorKind::UnexpectedCharacter { character: '@' | '`' | '%' } => {
            Some("a text that begins with this sign needs quotes")
        }
        ErrorKind::DirectiveDisallowed => Some("files are YAML 1.2 without directives"),
        _ => None,
    };
    Diagnostic::error("bad_yaml", format!("this is not YAML: {kind}"))
        .spanning(Span { start: at, end: at })
        .help(help.map(str::to_owned))
}

fn too_much(message: String, at: usize) -> Stop {
    let diagnostic = Diagnostic::error("too_large", message).spanning(Span { start: at, end: at });
    Stop { diagnostic: Box::new(diagnostic), syntax_at: None }
}

fn too_many(at: usize) -> Stop {
    let message =
        format!("more than {MAX_NODES} values, aliases and merged maps counted at full length");
    too_much(message, at)
}

fn too_deep() -> String {
    format!("nested more than {MAX_DEPTH} levels deep")
}

/// The nodes that are not finished yet, and what is needed to finish them.
struct Builder<'t> {
    text: &'t str,
    root: Option<Node>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Option<Node>>,
    diagnostics: Vec<Diagnostic>,
    documents: u32,
    nodes: u64,
}

struct Open {
    span: Span,
    anchor: usize,
    children: Children,
}

enum Children {
    Items(Vec<Node>),
    Entries { done: Vec<(Node, Node)>, key: Option<Node> },
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Builder<'t> {
        Builder {
            text,
            root: None,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            diagnostics: Vec::new(),
            documents: 0,
            nodes: 0,
        }
    }

    fn take(&mut self, event: Event, range: Range<usize>, tag: Option<usize>) -> Result<(), Stop> {
        let span = self.first_line(range);
        match event {
            Event::DocumentStart(..) => self.begin_document(span),
            Event::Scalar(text, style, anchor, tagged) => {
                let is_text = self.read_tag(tagged.as_deref(), tag.unwrap_or(span.start));
                let plain = style == ScalarStyle::Plain && !is_text;
                let scalar = Scalar { text: text.into(), plain };
                self.finish(Node::new(Origin::File(span), Tree::Scalar(scalar)), anchor)?;
            }
            Event::SequenceStart(_, anchor, tagged) => {
                self.read_tag(tagged.as_deref(), tag.unwrap_or(span.start));
                self.begin(span, anchor, Children::Items(Vec::new()));
            }
            Event::MappingStart(_, anchor, tagged) => {
                self.read_tag(tagged.as_deref(), tag.unwrap_or(span.start));
                self.begin(span, anchor, Children::Entries { done: Vec::new(), key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::UnresolvedAlias(name) => {
                self.complain(span, format!("nothing above is named &{}", shown(&name)));
                self.finish(Node::plain(Origin::File(span), ""), 0)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Only the line in which something begins is worth showing, and not much of that.
    fn first_line(&self, range: Range<usize>) -> Span {
        const WORTH_SHOWING: usize = 200;
        let end = self.text.floor_char_boundary(range.end.min(range.start + WORTH_SHOWING));
        let shown = self.text.get(range.start..end).unwrap_or_default();
        let line = shown.find(['\n', '\r']).unwrap_or(shown.len());
        Span { start: range.start, end: range.start + line }
    }

    fn complain(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error("bad_yaml", message).spanning(span));
    }

    fn begin_document(&mut self, span: Span) {
        self.documents += 1;
        if self.documents > 1 {
            self.complain(span, "a second document begins here; a file holds one");
        }
    }

    /// Whether the tag makes a value a text; no other tag is known.
    fn read_tag(&mut self, tag: Option<&Tag>, at: usize) -> bool {
        let Some(tag) = tag else { return false };
        let is_text = tag.is_yaml_core_schema_tag("str");
        if !is_text {
            let message =
                format!("the tag {} is not known; a file needs none", shown(&tag.original()));
            self.complain(Span { start: at, end: at + 1 }, message);
        }
        is_text
    }

    fn begin(&mut self, span: Span, anchor: usize, children: Children) {
        let end = if span.start == span.end { self.text.len() } else { span.end };
        let span = self.first_line(span.start..end);
        self.anchors.extend((anchor > 0).then_some((anchor, None)));
        self.open.push(Open { span, anchor, children });
    }

    fn end(&mut self) -> Result<(), Stop> {
        let Some(Open { span, anchor, children }) = self.open.pop() else { return Ok(()) };
        let value = match children {
            Children::Items(items) => Tree::List(items.into()),
            Children::Entries { done, .. } => Tree::Map(self.entries(done)?.into()),
        };
        self.finish(Node::new(Origin::File(span), value), anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let node = self.anchors.get(&anchor).cloned().flatten();
        if node.is_none() {
            self.complain(span, "an alias cannot stand inside what it repeats");
        }
        self.finish(node.unwrap_or_else(|| Node::plain(Origin::File(span), "")), 0)
    }

    /// Puts a finished node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        let at = node.origin.span().map_or(0, |span| span.start);
        self.count(1, at)?;
        if node.size > MAX_NODES {
            return Err(too_many(at));
        }
        if node.depth + self.open.len() > MAX_DEPTH + 1 {
            return Err(too_much(too_deep(), at));
        }
        self.anchors.extend((anchor > 0).then(|| (anchor, Some(node.clone()))));
        match self.open.last_mut().map(|open| &mut open.children) {
            None => self.root = self.root.take().or(Some(node)),
            Some(Children::Items(items)) => items.push(node),
            Some(Children::Entries { done, key }) => match key.take() {
                None => *key = Some(node),
                Some(key) => done.push((key, node)),
            },
        }
        Ok(())
    }

    fn count(&mut self, nodes: u64, at: usize) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES { Err(too_many(at)) } else { Ok(()) }
    }

    /// The entries of a map: each key once, those of merged maps behind its own.
    fn entries(&mut self, pairs: Vec<(Node, Node)>) -> Result<Vec<Entry>, Stop> {
        let mut keys = Keys::default();
        let mut merges = Vec::new();
        for (key, value) in pairs {
            let span = key.origin.span().unwrap_or_default();
            let Tree::Scalar(Scalar { text, plain }) = key.value else {
                self.complain(span, "a key must be a text");
                continue;
            };
            let entry = Entry { key: text, origin: key.origin, value };
            let merge = plain && &*entry.key == "<<";
            if let Some(first) = keys.insert(&entry.key, span) {
                self.diagnostics.push(twice(&entry.key, span, first, "key"));
            } else if merge {
                merges.push(entry);
            } else {
                keys.entries.push(entry);
            }
        }
        for merge in merges {
            // Each merged entry is looked at, also where it is left out and so adds nothing to the size.
            self.count(merge.value.size, merge.origin.span().map_or(0, |span| span.start))?;
            self.merge(&mut keys, &merge);
        }
        Ok(keys.entries)
    }

    /// Adds what a merge key brings. Own keys win; between merged maps nothing decides.
    fn merge(&mut self, keys: &mut Keys, merge: &Entry) {
        let span = merge.origin.span().unwrap_or_default();
        let sources = match &merge.value.value {
            Tree::List(maps) => maps,
            Tree::Map(_) | Tree::Scalar(_) => std::slice::from_ref(&merge.value),
        };
        let mut merged = Keys::default();
        for source in sources {
            let Tree::Map(entries) = &source.value else {
                self.complain(span, "<< merges a map, or a list of maps");
                continue;
            };
            for entry in entries.iter().filter(|entry| !keys.seen.contains_key(&entry.key)) {
                let at = entry.origin.span().unwrap_or_default();
                match merged.insert(&entry.key, at) {
                    None => merged.entries.push(entry.clone()),
                    Some(first) => {
                        let twice = twice(&entry.key, span, first, "merged key");
                        self.diagnostics.push(twice.also(Some(at), "given here too"));
                    }
                }
            }
        }
        keys.seen.append(&mut merged.seen);
        keys.entries.append(&mut merged.entries);
    }
}

#[derive(Default)]
struct Keys {
    entries: Vec<Entry>,
    seen: BTreeMap<Arc<str>, Span>,
}

impl Keys {
    /// Notes a key; where it was noted before, if it was.
    fn insert(&mut self, key: &Arc<str>, span: Span) -> Option<Span> {
        match self.seen.get(key) {
            Some(first) => Some(*first),
            None => self.seen.insert(key.clone(), span),
        }
    }
}

fn twice(key: &str, again: Span, first: Span, what: &str) -> Diagnostic {
    Diagnostic::error("duplicate_key", format!("{what} {} is given twice", quoted(key)))
        .spanning(again)
        .also(Some(first), "given here first")
}
