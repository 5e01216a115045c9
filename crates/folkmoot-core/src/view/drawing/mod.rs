//! Pictures of a team and of a run: who hands what to whom, and who did.
//!
//! ```text
//! spec ──▶ team ──┐
//!                 ├──▶ Drawing ──▶ mermaid, dot, svg (through layout)
//! run  ──▶ run ───┘
//! ```
//!
//! A [`Drawing`] knows nothing of formats, and a format nothing of teams. All text in a drawing is
//! safe to show: one line, no control characters, nothing that turns or hides what stands beside it.
//! What a format means something by, the format escapes.

mod dot;
mod layout;
mod mermaid;
mod patterns;
mod run;
mod steps;
mod strategies;
mod svg;
mod team;
mod text;
mod turns;

#[cfg(test)]
mod tests;

pub use run::of_run;
pub use team::of_team;

use std::fmt;

/// How wide a line of a node or link may be, in columns.
const LINE: usize = 52;

/// How wide the title and a note may be, in columns.
const NOTE: usize = 100;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A flowchart of Mermaid, as Markdown pages show it.
    Mermaid,
    /// A graph of Graphviz.
    Dot,
    /// A picture that needs nothing else.
    Svg,
}

/// Who hands what to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    title: String,
    notes: Vec<String>,
    nodes: Vec<Node>,
    links: Vec<Link>,
}

/// Somebody, or a place where work begins, meets or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    kind: Kind,
    /// What stands in it; the first line is its name.
    lines: Vec<String>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Where work begins or ends.
    Outside,
    /// A place through which work of several goes, or where a stage begins.
    Place,
    /// Somebody who works.
    Agent,
    /// Somebody who chooses where the work goes.
    Choice,
    /// Somebody who failed.
    Failed,
    /// Somebody who did not work.
    Absent,
}

/// Work on its way from one node to another, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    from: usize,
    to: usize,
    kind: Way,
    lines: Vec<String>,
}

/// How work goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As it should.
    Plain,
    /// Only if something failed, or without what somebody should have done.
    Spare,
}

impl Drawing {
    fn new(title: &str) -> Drawing {
        let title = text::shown(title, NOTE);
        Drawing { title, notes: Vec::new(), nodes: Vec::new(), links: Vec::new() }
    }

    /// Writes it. The same drawing gives the same bytes.
    pub fn write(&self, format: Format) -> String {
        match format {
            Format::Mermaid => mermaid::write(self),
            Format::Dot => dot::write(self),
            Format::Svg => svg::write(self),
        }
    }

    /// How many links it has.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Adds a node with these lines, as far as they say anything; gives its number.
    fn node(&mut self, kind: Kind, lines: impl IntoIterator<Item = impl AsRef<str>>) -> usize {
        self.nodes.push(Node { kind, lines: safe(lines) });
        self.nodes.len() - 1
    }

    fn link(&mut self, from: usize, to: usize) {
        self.labelled(from, to, Way::Plain, [""]);
    }

    fn labelled(
        &mut self,
        from: usize,
        to: usize,
        kind: Way,
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) {
        self.links.push(Link { from, to, kind, lines: safe(lines) });
    }

    fn note(&mut self, note: impl fmt::Display) {
        self.notes.push(text::shown(&note.to_string(), NOTE));
    }
}

fn safe(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let lines = lines.into_iter().map(|line| text::shown(line.as_ref(), LINE));
    lines.filter(|line| !line.is_empty()).collect()
}

/// `many` things: `1 round`, `2 rounds`.
fn counted(many: impl Into<u64>, what: &str) -> String {
    match many.into() {
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}
