//! A drawing as a flowchart of Mermaid.

use std::fmt::Write;

use super::{Drawing, Kind, Way};

/// Writes it. Nodes are named by numbers, so that only labels hold foreign text.
pub(super) fn write(drawing: &Drawing) -> String {
    let mut page = format!("---\ntitle: {}\n---\nflowchart TD\n", title(&drawing.title));
    let mut put = |line: String| writeln!(page, "  {line}").expect("a string takes any text");
    for (at, node) in drawing.nodes.iter().enumerate() {
        let (open, close) = shape(node.kind);
        put(format!("n{at}{open}\"{}\"{close}", label(&node.lines)));
    }
    for link in &drawing.links {
        let arrow = match link.kind {
            Way::Plain => "-->",
            Way::Spare => "-.->",
        };
        let (from, to, label) = (link.from, link.to, label(&link.lines));
        put(if label.is_empty() {
            format!("n{from} {arrow} n{to}")
        } else {
            format!("n{from} {arrow}|\"{label}\"| n{to}")
        });
    }
    if !drawing.notes.is_empty() {
        put(format!("notes[\"{}\"]:::note", label(&drawing.notes)));
        put("classDef note fill:none,stroke:none,text-align:left".to_owned());
    }
    for (kind, class, style) in [
        (Kind::Failed, "failed", "stroke:#cf222e,stroke-width:2px"),
        (Kind::Absent, "absent", "stroke-dasharray:4"),
    ] {
        let nodes = drawing.nodes.iter().enumerate().filter(|(_, node)| node.kind == kind);
        let nodes: Vec<String> = nodes.map(|(at, _)| format!("n{at}")).collect();
        if !nodes.is_empty() {
            put(format!("class {} {class}", nodes.join(",")));
            put(format!("classDef {class} {style}"));
        }
    }
    page
}

fn shape(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Outside => ("([", "])"),
        Kind::Place => ("(", ")"),
        Kind::Agent | Kind::Failed | Kind::Absent => ("[", "]"),
        Kind::Choice => ("{{", "}}"),
    }
}

fn label(lines: &[String]) -> String {
    lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br/>")
}

/// Every sign that Mermaid, Markdown or HTML might mean something by, as its code. Mermaid also looks
/// for Markdown, links, icons, directives and comments in a label, so little is left as it is.
fn escaped(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    let mut before = None;
    while let Some(c) = rest.next() {
        let joins = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
        let is_plain = match c {
            ' ' | ',' => true,
            ':' => joins(before) && rest.peek() == Some(&' '),
            '.' => {
                let is_digit = |it: Option<char>| it.is_some_and(|it| it.is_ascii_digit());
                is_digit(before) && is_digit(rest.peek().copied())
            }
            '-' | '_' => joins(before) && joins(rest.peek().copied()),
            c => c.is_ascii_alphanumeric() || !c.is_ascii(),
        };
        if is_plain {
            safe.push(c);
        } else {
            write!(safe, "#{};", u32::from(c)).expect("a string takes any text");
        }
        before = Some(c);
    }
    safe
}

/// The title as a text of YAML, in which Mermaid would also find directives.
fn title(title: &str) -> String {
    let mut safe = String::from("\"");
    for c in title.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, ' ' | ',' | '.' | ':' | '-') {
            write!(safe, "\\u{:04x}", u32::from(c)).expect("a string takes any text");
        } else {
            safe.push(c);
        }
    }
    safe + "\""
}
