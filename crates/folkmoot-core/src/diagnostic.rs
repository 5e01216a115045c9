//! What is wrong, or doubtful, and where.

use std::{ops::Range, sync::Arc};

use serde::Serialize;

/// One finding about what a run is to be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// What kind of finding it is, for programs; never changes for the same finding.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// Where in the text; nowhere if it came from a flag.
    pub at: Option<Span>,
    /// The key concerned, `agents[1].limits.calls`, or the flag, `--rounds`.
    pub path: Option<Arc<str>>,
    /// Other places that belong to it, and what they have to do with it.
    pub also: Vec<(Span, String)>,
    /// The file that it is about, if that is not the team's own but one that the team's file names.
    pub file: Option<Arc<Text>>,
}

/// A file that a team's file names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    /// Its path, as it follows from the names in the files.
    pub path: Arc<str>,
    /// What it holds.
    pub text: Arc<str>,
}

/// How many findings are told at once; more help nobody.
pub const ENOUGH: usize = 200;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing starts.
    Error,
    /// Probably not what was meant.
    Warning,
    /// Worth knowing.
    Hint,
}

impl Diagnostic {
    /// A finding that keeps a run from starting.
    pub fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, code, message.into())
    }

    /// A finding that a run may have all the same.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, message.into())
    }

    /// A finding for those who ask for it.
    pub fn hint(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Hint, code, message.into())
    }

    fn new(severity: Severity, code: &'static str, message: String) -> Diagnostic {
        Diagnostic {
            severity,
            code,
            message,
            help: None,
            at: None,
            path: None,
            also: Vec::new(),
            file: None,
        }
    }

    /// Whether it keeps a run from starting.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Says where it is.
    #[must_use]
    pub fn at(mut self, place: &Place) -> Diagnostic {
        self.at = place.span;
        self.path = Some(place.path.clone()).filter(|path| !path.is_empty());
        self
    }

    /// Says where it is, where no key is concerned.
    #[must_use]
    pub fn spanning(mut self, span: Span) -> Diagnostic {
        self.at = Some(span);
        self
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<Option<String>>) -> Diagnostic {
        self.help = help.into();
        self
    }

    /// Says in which file it is, unless that is said already.
    #[must_use]
    pub fn of(mut self, file: &Arc<Text>) -> Diagnostic {
        self.file.get_or_insert_with(|| file.clone());
        self
    }

    /// The text that its places are in: that of its file, or of the team's.
    pub fn text<'a>(&'a self, source: &'a str) -> &'a str {
        self.file.as_ref().map_or(source, |file| &file.text)
    }

    /// Points at another place that belongs to it.
    #[must_use]
    pub fn also(mut self, span: Option<Span>, text: &str) -> Diagnostic {
        self.also.extend(span.map(|span| (span, text.to_owned())));
        self
    }

    /// This finding as programs read it, with lines and columns in `source`.
    pub fn located(&self, source: &str) -> Located<'_> {
        let source = self.text(source);
        let at = self.at.map(|span| Position::of(source, span.start));
        let also = self.also.iter().map(|(span, message)| {
            let Position { line, column } = Position::of(source, span.start);
            Related { message, line, column }
        });
        Located {
            code: self.code,
            message: &self.message,
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            help: self.help.as_deref(),
            path: self.path.as_deref(),
            also: also.collect(),
            file: self.file.as_ref().map(|file| &*file.path),
        }
    }
}

/// Something in a team file, or given by a flag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Where it stands in the text; nowhere if it came from a flag.
    pub span: Option<Span>,
    /// The key, `agents[1].name`, or the flag, `--rounds`.
    pub path: Arc<str>,
}

/// A part of the text: a range of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Span {
        Span { start: range.start, end: range.end }
    }
}

/// A place in a text as people count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

impl Position {
    /// Where the byte `offset` of `source` stands. Lines end as in YAML: with LF, CR or both.
    pub fn of(source: &str, offset: usize) -> Position {
        let before = &source[..source.floor_char_boundary(offset)];
        let breaks = before.matches('\n').count() + before.matches('\r').count();
        let line = 1 + breaks - before.matches("\r\n").count();
        let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        Position { line, column: before[start..].chars().count() + 1 }
    }
}

/// A foreign text as messages show it: in quotes, on one line, not too long.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

/// A foreign text on one line, not too long.
pub fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown = String::new();
    for character in text.chars().take(LONGEST) {
        if character.is_control() || is_invisible(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown.push_str(if text.chars().nth(LONGEST).is_some() { "…" } else { "" });
    shown
}

/// Whether a character changes how a line looks without being seen.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A finding as programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Located<'a> {
    /// See [`Diagnostic::code`].
    pub code: &'static str,
    /// See [`Diagnostic::message`].
    pub message: &'a str,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The character in the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// See [`Diagnostic::help`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<&'a str>,
    /// See [`Diagnostic::path`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    /// See [`Diagnostic::also`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Related<'a>>,
    /// The file, if it is not the team's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
}

/// Another place that belongs to a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related<'a> {
    /// What it has to do with it.
    pub message: &'a str,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one_in_characters() {
        let text = "äb\r\nc\rd\n\nxy";
        let at = |offset| {
            let Position { line, column } = Position::of(text, offset);
            (line, column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (1, 2), "ä is one column and two bytes");
        assert_eq!(at(5), (2, 1), "CRLF is one line end");
        assert_eq!(at(7), (3, 1), "so is a lone CR");
        assert_eq!(at(11), (5, 2));
        assert_eq!(at(99), (5, 3), "what lies behind the text is at its end");
        assert_eq!(at(1), (1, 1), "what lies inside a character is at its beginning");
    }

    #[test]
    fn foreign_text_stays_on_one_line_and_short() {
        assert_eq!(quoted("a\n\u{1b}[2J"), "\"a\\u{a}\\u{1b}[2J\"");
        assert_eq!(quoted("a\u{202e}b"), "\"a\\u{202e}b\"");
        assert_eq!(quoted(&"é".repeat(60)), format!("\"{}\"", "é".repeat(60)));
        assert_eq!(quoted(&"é".repeat(61)), format!("\"{}…\"", "é".repeat(60)));
    }

    #[test]
    fn programs_get_the_line_of_every_place() {
        let finding = Diagnostic::error("duplicate_key", "key \"a\" is given twice")
            .spanning(Span { start: 5, end: 6 })
            .also(Some(Span { start: 0, end: 1 }), "first given here");
        let json = serde_json::to_value(finding.located("a: 1\na: 2\n")).expect("plain data");
        assert_eq!(
            json,
            serde_json::json!({
                "code": "duplicate_key", "message": "key \"a\" is given twice",
                "line": 2, "column": 1,
                "also": [{ "message": "first given here", "line": 1, "column": 1 }],
            })
        );
    }
}
