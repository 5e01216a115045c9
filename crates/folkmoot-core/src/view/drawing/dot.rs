//! A drawing as a graph of Graphviz.

use std::fmt::Write;

use super::{Drawing, Kind, Way};

/// Writes it. Nodes are named by numbers, so that only labels hold foreign text.
pub(super) fn write(drawing: &Drawing) -> String {
    let mut page = String::from("digraph folkmoot {\n");
    let mut put = |line: String| writeln!(page, "  {line}").expect("a string takes any text");
    let heading: Vec<String> =
        [&drawing.title].into_iter().chain(&drawing.notes).cloned().collect();
    put(format!(
        "graph [label=\"{}\" labelloc=t bgcolor=transparent fontcolor=\"#767676\" fontname=\"sans-serif\"]",
        label(&heading)
    ));
    put("node [fontname=\"sans-serif\" shape=box style=\"filled,rounded\" color=\"#767676\" fillcolor=\"#e8eef7\" fontcolor=\"#1f2328\"]".to_owned());
    put("edge [fontname=\"sans-serif\" color=\"#767676\" fontcolor=\"#767676\"]".to_owned());
    for (at, node) in drawing.nodes.iter().enumerate() {
        put(format!("n{at} [label=\"{}\"{}]", label(&node.lines), style(node.kind)));
    }
    for link in &drawing.links {
        let (from, to, label) = (link.from, link.to, label(&link.lines));
        let mut style = Vec::new();
        if !label.is_empty() {
            style.push(format!("label=\"{label}\""));
        }
        match link.kind {
            Way::Plain => {}
            Way::Spare => style.push("style=dashed".to_owned()),
        }
        let style =
            if style.is_empty() { String::new() } else { format!(" [{}]", style.join(" ")) };
        put(format!("n{from} -> n{to}{style}"));
    }
    page + "}\n"
}

fn style(kind: Kind) -> &'static str {
    match kind {
        Kind::Outside => " shape=oval style=filled fillcolor=\"#e6f4ea\"",
        Kind::Place => " shape=box style=filled fillcolor=\"#eeeeee\"",
        Kind::Agent => "",
        Kind::Choice => " shape=hexagon style=filled fillcolor=\"#fff4d6\"",
        Kind::Failed => " color=\"#cf222e\" penwidth=2 fillcolor=\"#ffebe9\"",
        Kind::Absent => " style=\"filled,rounded,dashed\" fillcolor=\"#eeeeee\"",
    }
}

fn label(lines: &[String]) -> String {
    lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\\n")
}

/// Graphviz means something by quotation marks, backslashes, and the entities of HTML.
fn escaped(line: &str) -> String {
    line.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}
