//! Reads nodes by a table, and says everything that is wrong with them at once.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    diagnostic::{Diagnostic, ENOUGH, Place, quoted, shown},
    file::{
        extensions::Declared,
        interpolate::{self, Unfilled},
        item::{Content, Fields, Item},
        node::{Entry, Node, Origin, Scalar, Tree},
        scalar,
        shape::{Field, LONGEST, List, Record, Shape, Zero},
    },
    names,
    time::Duration,
};

/// Reads nodes by a table.
pub struct Reader<'a> {
    /// What is wrong so far.
    pub diagnostics: Vec<Diagnostic>,
    root: &'static Record,
    variable: &'a dyn Fn(&str) -> Option<String>,
    damaged: bool,
    declared: Declared,
    path: String,
}

impl<'a> Reader<'a> {
    /// A reader of files of the shape `root`. In a damaged document nothing is missed, as it may
    /// have stood in the part that could not be read.
    pub fn new(
        root: &'static Record,
        damaged: bool,
        variable: &'a dyn Fn(&str) -> Option<String>,
    ) -> Reader<'a> {
        let (diagnostics, declared, path) = (Vec::new(), Declared::default(), String::new());
        Reader { diagnostics, root, variable, damaged, declared, path }
    }

    /// The same for a file that declares names of its own.
    #[must_use]
    pub fn knowing(self, declared: Declared) -> Reader<'a> {
        Reader { declared, ..self }
    }

    /// Reads a whole document.
    pub fn read(&mut self, node: &Node) -> Fields {
        self.record(self.root, node).unwrap_or_else(|| self.wreck(self.root, node))
    }

    /// What stands for a record that is none: nothing can be said about any key.
    fn wreck(&self, record: &'static Record, node: &Node) -> Fields {
        let broken = record.fields().map(|field| field.name).collect();
        Fields { broken, ..Fields::none(self.place(&node.origin)) }
    }

    fn value(&mut self, shape: &Shape, node: &Node) -> Option<Item> {
        let content = match (shape, &node.value) {
            (Shape::Later, _) => return self.refuse_later(node),
            (Shape::Json, _) => self.json(node).map(Content::Json),
            (Shape::Record(record), _)
            | (
                Shape::TextOr(record)
                | Shape::FlagOr(record)
                | Shape::WordOr(_, record)
                | Shape::LineOr { record, .. },
                Tree::Map(_),
            ) => self.record(record, node).map(Content::Fields),
            (Shape::Named(record), Tree::Map(entries)) => Some(self.named(record, entries)),
            (Shape::String { misfit, .. } | Shape::LineOr { misfit, .. }, _)
                if kind(node) != "string" =>
            {
                self.unfit(misfit, node)
            }
            (Shape::Filled, Tree::Scalar(_)) => self.filled(node).map(Content::Text),
            (Shape::Variables, Tree::Map(entries)) => {
                Some(self.variables(entries, "variable", interpolate::is_name))
            }
            (Shape::Headers, Tree::Map(entries)) => {
                Some(self.variables(entries, "header", is_header))
            }
            (Shape::List(list), Tree::List(items)) => self.list(list, items, node),
            (Shape::List(list), Tree::Scalar(scalar)) if scalar.plain && is_flag(node) => {
                self.list(list, &split(&node.origin, &scalar.text), node)
            }
            (_, Tree::Scalar(scalar)) if !scalar.is_null() || is_flag(node) => {
                self.scalar(shape, scalar, node)
            }
            _ => self.misfit(shape, node),
        };
        let is_bare = matches!(kind(node), "number" | "boolean");
        content.map(|content| Item { place: self.place(&node.origin), content, is_bare })
    }

    fn record(&mut self, record: &'static Record, node: &Node) -> Option<Fields> {
        let Tree::Map(entries) = &node.value else {
            return self.misfit(&Shape::Record(record), node);
        };
        let before = self.diagnostics.len();
        let mut fields = Fields::none(self.place(&node.origin));
        for entry in entries.iter() {
            match record.field(&entry.key) {
                Some(_) if entry.value.is_null() && !is_flag(&entry.value) => {}
                Some(field) => self.field(field, entry, &mut fields),
                None if self.declared.beside(record).contains(&entry.key) => {
                    self.other(entry, &mut fields);
                }
                None => self.unknown_key(record, entry),
            }
        }
        if !self.damaged {
            self.miss(record, &fields, node);
        }
        fields.faulty = self.damaged || self.diagnostics.len() > before;
        Some(fields)
    }

    /// Reads the value of a key of the team's own.
    fn other(&mut self, entry: &Entry, fields: &mut Fields) {
        if entry.value.is_null() {
            return;
        }
        let other = self.inside(&entry.key, |reader| {
            let item = reader.value(&Shape::Json, &entry.value)?;
            Some((entry.key.clone(), reader.place(&entry.origin), item))
        });
        fields.others.extend(other);
    }

    fn miss(&mut self, record: &'static Record, fields: &Fields, node: &Node) {
        let is_there = |name| fields.get(name).is_some() || fields.is_broken(name);
        for field in record.fields().filter(|field| field.required && !is_there(field.name)) {
            let message = format!("{} is missing", field.name);
            self.tell(&node.origin, Diagnostic::error("missing_key", message));
        }
    }

    fn field(&mut self, field: &'static Field, entry: &Entry, fields: &mut Fields) {
        if let Some((first, _)) = fields.entries.get(field.name) {
            let spellings = field.spellings().collect::<Vec<_>>().join(" and ");
            let message = format!("{spellings} mean the same; give one");
            let twice = Diagnostic::error("duplicate_key", message);
            return self.tell(&entry.origin, twice.also(first.span, "given here first"));
        }
        let before = self.diagnostics.len();
        let (place, item) = self.inside(field.name, |reader| {
            (reader.place(&entry.origin), reader.value(&field.shape, &entry.value))
        });
        if self.diagnostics.len() > before || item.is_none() {
            fields.broken.insert(field.name);
        }
        fields.entries.extend(item.map(|item| (field.name, (place, item))));
    }

    fn list(&mut self, list: &List, items: &[Node], node: &Node) -> Option<Content> {
        let List { of, what, least, most } = list;
        if !(*least..=*most).contains(&items.len()) {
            let (label, count) = (self.label(), items.len());
            let message = format!("{label} must have {least} to {most} {what}; it has {count}");
            self.tell(&node.origin, Diagnostic::error("bad_value", message));
            return None;
        }
        let numbered = items.iter().enumerate();
        Some(Content::List(numbered.filter_map(|(n, item)| self.list_item(of, n, item)).collect()))
    }

    fn list_item(&mut self, shape: &Shape, index: usize, node: &Node) -> Option<Item> {
        let length = self.path.len();
        self.path.extend(["[", &index.to_string(), "]"]);
        let item = self.value(shape, node).or_else(|| match shape {
            Shape::Record(record) => {
                let content = Content::Fields(self.wreck(record, node));
                Some(Item { place: self.place(&node.origin), content, is_bare: false })
            }
            _ => None,
        });
        self.path.truncate(length);
        item
    }

    fn scalar(&mut self, shape: &Shape, scalar: &Scalar, node: &Node) -> Option<Content> {
        match shape {
            Shape::Text
            | Shape::Suggested(_)
            | Shape::TextOr(_)
            | Shape::String { .. }
            | Shape::LineOr { .. } => Some(Content::Text(scalar.text.clone())),
            Shape::Word(words) | Shape::WordOr(words, _) => {
                match words.iter().find(|word| **word == &*scalar.text) {
                    Some(_) => Some(Content::Text(scalar.text.clone())),
                    None => self.misfit(shape, node),
                }
            }
            Shape::Flag | Shape::FlagOr(_) => {
                scalar.flag().map(Content::Flag).or_else(|| self.misfit(shape, node))
            }
            Shape::Whole { min, max } => scalar
                .number()
                .filter(|number| number.fract() == 0.0)
                .filter(|number| (*min as f64..=*max as f64).contains(number))
                .map(|number| Content::Whole(number as u64))
                .or_else(|| self.misfit(shape, node)),
            Shape::Number { min, max } => scalar
                .number()
                .filter(|number| (*min..=*max).contains(number))
                .map(Content::Number)
                .or_else(|| self.misfit(shape, node)),
            Shape::Decimal => {
                scalar.decimal().map(Content::Decimal).or_else(|| self.misfit(shape, node))
            }
            Shape::Time(zero) => self.time(*zero, scalar, node),
            Shape::List(_)
            | Shape::Filled
            | Shape::Variables
            | Shape::Headers
            | Shape::Record(_)
            | Shape::Named(_)
            | Shape::Json
            | Shape::Later => self.misfit(shape, node),
        }
    }

    fn time(&mut self, zero: Zero, scalar: &Scalar, node: &Node) -> Option<Content> {
        if &*scalar.text == "none" {
            return Some(Content::Time(None));
        }
        let time = match scalar.number() {
            Some(seconds) if seconds < 0.0 => return self.too_short(zero, node),
            Some(seconds) => (seconds <= LONGEST).then(|| Duration::from_secs_f64(seconds)),
            None if scalar::number(&scalar.text).is_some() => None,
            None => Duration::parse(&scalar.text).filter(|time| time.as_secs_f64() <= LONGEST),
        };
        match time {
            Some(Duration(0)) if zero == Zero::Refused => self.too_short(zero, node),
            Some(time) => Some(Content::Time(Some(time))),
            None => self.misfit(&Shape::Time(zero), node),
        }
    }

    fn too_short<T>(&mut self, zero: Zero, node: &Node) -> Option<T> {
        let expected = if zero == Zero::Allowed { "0 or more" } else { "greater than 0" };
        self.wrong(expected, None, node)
    }

    fn variables(
        &mut self,
        entries: &[Entry],
        noun: &str,
        is_name: impl Fn(&str) -> bool,
    ) -> Content {
        let mut variables = BTreeMap::new();
        for Entry { key, origin, value } in entries {
            let text = self.inside(key, |reader| {
                if !is_name(key) {
                    let message = format!("{} cannot name a {noun}", quoted(key));
                    reader.tell(origin, Diagnostic::error("bad_value", message));
                }
                reader.filled(value)
            });
            variables.extend(text.map(|text| (key.clone(), text)));
        }
        Content::Variables(variables)
    }

    fn named(&mut self, record: &'static Record, entries: &[Entry]) -> Content {
        let named = entries.iter().filter_map(|entry| {
            self.inside(&entry.key, |reader| {
                let fields = reader.record(record, &entry.value)?;
                Some((entry.key.clone(), reader.place(&entry.origin), fields))
            })
        });
        Content::Named(named.collect())
    }

    /// Says of a value in the words of its shape that it has the wrong kind.
    fn unfit<T>(&mut self, misfit: &str, node: &Node) -> Option<T> {
        let message = misfit.replace("{}", kind(node));
        self.tell(&node.origin, Diagnostic::error(BAD_CONFIG, message));
        None
    }

    /// A text in which the environment's variables are filled in.
    fn filled(&mut self, node: &Node) -> Option<Arc<str>> {
        let text = match &node.value {
            Tree::Scalar(scalar) if !scalar.is_null() => &scalar.text,
            Tree::Scalar(_) | Tree::List(_) | Tree::Map(_) => {
                return self.misfit(&Shape::Text, node);
            }
        };
        match interpolate::fill(text, self.variable) {
            Ok(filled) => Some(filled.into()),
            Err(failures) => {
                for failure in failures {
                    self.tell(&node.origin, unfilled(&failure));
                }
                None
            }
        }
    }

    fn json(&mut self, node: &Node) -> Option<serde_json::Value> {
        match &node.value {
            Tree::Scalar(scalar) => scalar.json().map_err(|why| {
                self.tell(&node.origin, Diagnostic::error("bad_value", why));
            }),
            Tree::List(items) => Ok(items.iter().filter_map(|item| self.json(item)).collect()),
            Tree::Map(entries) => Ok(entries
                .iter()
                .filter_map(|entry| Some((entry.key.to_string(), self.json(&entry.value)?)))
                .collect()),
        }
        .ok()
    }

    fn refuse_later<T>(&mut self, node: &Node) -> Option<T> {
        let message = format!("{} is not supported by this version", self.label());
        self.tell(&node.origin, Diagnostic::error("not_supported_yet", message));
        None
    }

    fn misfit<T>(&mut self, shape: &Shape, node: &Node) -> Option<T> {
        let help = match (shape, &node.value) {
            (Shape::Word(words) | Shape::WordOr(words, _), Tree::Scalar(scalar)) => {
                names::suggestion(&scalar.text, words.iter().copied())
            }
            (
                Shape::Flag
                | Shape::Whole { .. }
                | Shape::Number { .. }
                | Shape::Decimal
                | Shape::Time(_),
                _,
            ) if is_quoted_number(node) => Some("write it without quotes".into()),
            (Shape::Time(_), Tree::Scalar(_)) => Some("units are ms, s, m, h and d".into()),
            _ => None,
        };
        self.wrong(&shape.expectation(), help, node)
    }

    fn wrong<T>(&mut self, expected: &str, help: Option<String>, node: &Node) -> Option<T> {
        let message = format!("{} must be {expected}; got {}", self.label(), found(node));
        self.tell(&node.origin, Diagnostic::error("bad_value", message).help(help));
        None
    }

    fn unknown_key(&mut self, record: &'static Record, entry: &Entry) {
        if self.diagnostics.len() >= ENOUGH {
            return;
        }
        let own = self.declared.beside(record).iter().map(|name| &**name);
        let known: Vec<_> = record.fields().map(|field| field.name).chain(own).collect();
        let near = names::suggestion(&entry.key, known.iter().copied());
        let help = match (near, self.misplaced(&entry.key)) {
            (Some(near), Some(misplaced)) => format!("{near} {misplaced}"),
            (Some(help), None) | (None, Some(help)) => help,
            (None, None) => format!("known here: {}", known.join(", ")),
        };
        let message = format!("unknown {} {}", record.noun, quoted(&entry.key));
        let unknown = Diagnostic::error("unknown_key", message).help(help);
        self.inside(&entry.key, |reader| reader.tell(&entry.origin, unknown));
    }

    fn misplaced(&self, key: &str) -> Option<String> {
        let home = home(self.root, key, &mut Vec::new())?;
        let is_root = home == self.root.name;
        let place = if is_root { "at the top level".to_owned() } else { format!("in {home}") };
        Some(format!("{} belongs {place}", quoted(key)))
    }

    fn tell(&mut self, origin: &Origin, diagnostic: Diagnostic) {
        if self.diagnostics.len() < ENOUGH {
            let place = self.place(origin);
            self.diagnostics.push(diagnostic.at(&place));
        }
    }

    /// Does something one key deeper.
    fn inside<T>(&mut self, key: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(&shown(key));
        let done = act(self);
        self.path.truncate(length);
        done
    }

    fn place(&self, origin: &Origin) -> Place {
        let path = match origin {
            Origin::Flag(flag) => flag.clone(),
            Origin::File(_) | Origin::Implied => self.path.as_str().into(),
        };
        Place { span: origin.span(), path }
    }

    /// What the value under way is called: its key.
    fn label(&self) -> &str {
        let label = self.path.rsplit('.').next().unwrap_or_default();
        if label.is_empty() { "the file" } else { label }
    }
}

/// Flags come as bare texts, so their lists are separated by commas.
fn split(origin: &Origin, text: &str) -> Vec<Node> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| Node::plain(origin.clone(), part)).collect()
}

/// Whether a text can be the name of a header of HTTP.
fn is_header(name: &str) -> bool {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_of_token)
}

fn is_flag(node: &Node) -> bool {
    matches!(node.origin, Origin::Flag(_))
}

/// Where else a key would be right.
fn home(record: &'static Record, key: &str, seen: &mut Vec<&'static str>) -> Option<&'static str> {
    if seen.contains(&record.name) {
        return None;
    }
    seen.push(record.name);
    if record.field(key).is_some() {
        return Some(record.name);
    }
    let mut inner = record.fields().filter_map(|field| field.shape.record());
    inner.find_map(|record| home(record, key, seen))
}

fn unfilled(failure: &Unfilled) -> Diagnostic {
    match failure {
        Unfilled::Unset(name) => {
            let message = format!("the environment variable {name} is not set");
            let help = format!("set it, or give a default: ${{{name}:-…}}");
            Diagnostic::error("unset_variable", message).help(help)
        }
        Unfilled::Malformed(text) => {
            let message =
                format!("{} names no environment variable", quoted(&format!("${{{text}")));
            Diagnostic::error("bad_placeholder", message)
                .help("write ${NAME}, or $$ for a dollar sign".to_owned())
        }
    }
}

/// The code of what makes no shape of a collaboration.
const BAD_CONFIG: &str = "bad_config";

/// What kind of value it is, in the words of JSON.
fn kind(node: &Node) -> &'static str {
    match &node.value {
        Tree::List(_) => "array",
        Tree::Map(_) => "object",
        Tree::Scalar(_) if is_flag(node) => "string",
        Tree::Scalar(scalar) if scalar.is_null() => "null",
        Tree::Scalar(scalar) if scalar.flag().is_some() => "boolean",
        Tree::Scalar(scalar) if scalar.number().is_some() => "number",
        Tree::Scalar(_) => "string",
    }
}

/// A value as messages show it.
fn found(node: &Node) -> String {
    match &node.value {
        Tree::List(items) if items.is_empty() => "[]".into(),
        Tree::List(_) => "a list".into(),
        Tree::Map(_) => "a map".into(),
        Tree::Scalar(scalar) if scalar.is_null() && !is_flag(node) => "nothing".into(),
        Tree::Scalar(scalar) if is_quoted_number(node) => {
            format!("{} (a string)", quoted(&scalar.text))
        }
        Tree::Scalar(scalar) if scalar.number().is_some() || scalar.flag().is_some() => {
            shown(&scalar.text)
        }
        Tree::Scalar(scalar) => quoted(&scalar.text),
    }
}

/// Whether quotes make a text of what would be a number or a truth value without them.
fn is_quoted_number(node: &Node) -> bool {
    let Tree::Scalar(Scalar { text, plain: false }) = &node.value else { return false };
    let bare = Scalar { text: text.clone(), plain: true };
    bare.number().is_some() || bare.flag().is_some()
}
