//! The language of the tables that say what a file may hold.
//!
//! One table is the check (`reader`), the JSON Schema for editors (`schema`) and the documentation.
//! What a table cannot say, for example that two keys exclude each other, is checked later in code.

/// A map with known keys.
#[derive(Debug)]
pub struct Record {
    /// What it is called in messages, `limits`, and in the schema.
    pub name: &'static str,
    /// What its keys are called in messages.
    pub noun: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its keys, in groups that several records may share.
    pub groups: &'static [&'static [Field]],
}

/// A key of a record.
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// Other spellings of it.
    pub aliases: &'static [&'static str],
    /// What it may hold; null always means that it is absent.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
    /// What holds without it, in words.
    pub default: Option<&'static str>,
    /// The flag of the command line that wins over it.
    pub flag: Option<&'static str>,
    /// What it is for, with unit.
    pub doc: &'static str,
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A text, kept as written.
    Text,
    /// A text, usually one of these; judged elsewhere.
    Suggested(&'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number in a range; without an upper end, [`ENDLESS`].
    Whole {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number in a range.
    Number {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A decimal number of at least zero, kept exactly.
    Decimal,
    /// A length of time: seconds, `30m`, or `none` for no end; at most [`LONGEST`].
    Time(Zero),
    /// Values in order.
    List(List),
    /// A text in which `${NAME}` is filled.
    Filled,
    /// Environment variables with texts in which `${NAME}` is filled.
    Variables,
    /// Headers of HTTP with texts in which `${NAME}` is filled.
    Headers,
    /// A map with known keys.
    Record(&'static Record),
    /// A text, or a map with known keys.
    TextOr(&'static Record),
    /// True or false, or a map with known keys.
    FlagOr(&'static Record),
    /// One of these words, or a map with known keys.
    WordOr(&'static [&'static str], &'static Record),
    /// A text, usually one of these, and nothing that could be a number or a truth value.
    String {
        /// The usual ones.
        known: &'static [&'static str],
        /// What is said of anything else; `{}` is its kind.
        misfit: &'static str,
    },
    /// A text, or a map with known keys, and nothing that could be a number or a truth value.
    LineOr {
        /// The keys.
        record: &'static Record,
        /// What is said of anything else; `{}` is its kind.
        misfit: &'static str,
    },
    /// Maps with known keys, by names such as those of agents.
    Named(&'static Record),
    /// Anything that JSON can say.
    Json,
    /// Known, but not supported by this version.
    Later,
}

/// Values in order.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// What each may be.
    pub of: &'static Shape,
    /// What they are called.
    pub what: &'static str,
    /// How many there must be.
    pub least: usize,
    /// How many there may be.
    pub most: usize,
}

/// Whether nothing is a length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// It is.
    Allowed,
    /// It would make no sense.
    Refused,
}

/// The upper end of whole numbers that have none of their own: up to here all are kept exactly, and
/// none that is larger is taken for one of them.
pub const ENDLESS: u64 = (1 << 53) - 1;

/// The longest time, in seconds: a year.
pub const LONGEST: f64 = 365.0 * 86400.0;

/// A list of agents' names.
pub const NAMES: Shape = Shape::List(List { of: &Shape::Text, what: "names", ..MANY });

/// A list of as many values as people write down, or none.
pub const MANY: List = List { of: &Shape::Json, what: "values", least: 0, most: 1000 };

/// A list that is not empty.
pub const SOME: List = List { least: 1, ..MANY };

impl Record {
    /// Its keys.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The key written `name`.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.spellings().any(|spelling| spelling == name))
    }
}

impl Field {
    /// A key that may be absent.
    pub const fn new(name: &'static str, shape: Shape, doc: &'static str) -> Field {
        let (aliases, default, flag) = (&[], None, None);
        Field { name, aliases, shape, required: false, default, flag, doc }
    }

    /// The same key with other spellings.
    #[must_use]
    pub const fn or(self, aliases: &'static [&'static str]) -> Field {
        Field { aliases, ..self }
    }

    /// The same key, but it must be there.
    #[must_use]
    pub const fn required(self) -> Field {
        Field { required: true, ..self }
    }

    /// The same key with the default `default`.
    #[must_use]
    pub const fn default(self, default: &'static str) -> Field {
        Field { default: Some(default), ..self }
    }

    /// The same key with the flag `flag`.
    #[must_use]
    pub const fn flag(self, flag: &'static str) -> Field {
        Field { flag: Some(flag), ..self }
    }

    /// Every way to write it.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.aliases.iter().copied())
    }
}

impl Shape {
    /// The record that stands here, or in the list that stands here.
    pub fn record(&self) -> Option<&'static Record> {
        match self {
            Shape::Record(record)
            | Shape::TextOr(record)
            | Shape::FlagOr(record)
            | Shape::WordOr(_, record)
            | Shape::LineOr { record, .. }
            | Shape::Named(record) => Some(record),
            Shape::List(list) => list.of.record(),
            Shape::Text
            | Shape::Suggested(_)
            | Shape::String { .. }
            | Shape::Word(_)
            | Shape::Flag
            | Shape::Whole { .. }
            | Shape::Number { .. }
            | Shape::Decimal
            | Shape::Time(_)
            | Shape::Filled
            | Shape::Variables
            | Shape::Headers
            | Shape::Json
            | Shape::Later => None,
        }
    }

    /// What a value should have been.
    pub fn expectation(&self) -> String {
        match self {
            Shape::Text | Shape::Filled | Shape::Suggested(_) | Shape::String { .. } => {
                "a text".into()
            }
            Shape::Word(words) => alternatives(words),
            Shape::Flag => "true or false".into(),
            Shape::Whole { min, max: ENDLESS } => format!("a whole number of at least {min}"),
            Shape::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Shape::Number { min, max } => format!("a number from {min} to {max}"),
            Shape::Decimal => "a number of at least 0, such as 1.5".into(),
            Shape::Time(_) => "a time up to 365d, such as 30 (seconds), 0.5 or 30m, or none".into(),
            Shape::List(List { what, .. }) => format!("a list of {what}"),
            Shape::Variables => "a map of variables and texts".into(),
            Shape::Headers => "a map of headers and texts".into(),
            Shape::Record(_) => "a map".into(),
            Shape::TextOr(_) | Shape::LineOr { .. } => "a text or a map".into(),
            Shape::FlagOr(_) => "true, false or a map".into(),
            Shape::WordOr(words, _) => format!("{}, or a map", alternatives(words)),
            Shape::Named(_) => "a map of names and maps".into(),
            Shape::Json | Shape::Later => "a value".into(),
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
