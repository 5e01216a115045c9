use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;

use super::super::*;
use crate::{
    programs::graph::Edge,
    spec::{Collaboration, Spec},
    testing::{agent, play, spec},
};

/// What formats, terminals and readers trip over.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "\\",
    "\\n",
    "\\N",
    "]",
    "[",
    "})",
    "{{",
    "|",
    "-->",
    "-.->",
    "%%",
    "%%{init: {}}%%",
    "---",
    "end",
    "subgraph",
    "graph TD",
    ";",
    "#",
    "#quot;",
    "#35;",
    "&lt;",
    "&#60;",
    "&",
    "<script>",
    "</script>",
    "</text>",
    "]]>",
    "<!--",
    "<br/>",
    "`",
    "**",
    "1. ",
    "- ",
    "fa:fa-car",
    "http://x.y",
    "www.x.y",
    "$$",
    ":::",
    "style a: #x;",
    "\n",
    "\r\n",
    "\u{2028}",
    "\0",
    "\u{7}",
    "\u{1b}[31m",
    "\u{85}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{fffe}",
    "\u{ffff}",
    "评审员",
    "é",
    "👩\u{200d}🔧",
    "ש",
    "default",
    "click",
    "@{",
];

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-z ]{1,4}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// A team whose names, labels and errors are these.
fn hostile(names: &[String], labels: &[String], task: &str) -> Spec {
    let mut agents = vec![agent("a", &["A"]), agent("b", &[&format!("!{}", labels[1])])];
    for (agent, name) in agents.iter_mut().zip(names) {
        agent.name = name.as_str().into();
    }
    let edge = |from: &str, to: &str, label: &String| Edge {
        label: Some(label.as_str().into()),
        ..Edge::new(from, to)
    };
    let edges = vec![
        edge("parent", "a", &labels[0]),
        edge("a", "b", &labels[1]),
        edge("b", "parent", &labels[2]),
    ];
    let file = "agents: [{ name: a, script: {} }, { name: b, script: {} }]\ncollaboration: { topology: pipeline, agents: [a, b] }";
    let Collaboration::Graph(graph) = super::spec(file).collaboration else { panic!("it is one") };
    let mut spec =
        spec(agents, Collaboration::Graph(crate::programs::graph::Graph { edges, ..graph }));
    (spec.team.name, spec.task) = (names[2].as_str().into(), task.into());
    spec
}

fn lines(drawing: &Drawing) -> Vec<String> {
    let nodes = drawing.nodes.iter().flat_map(|node| node.lines.clone());
    nodes.chain(drawing.links.iter().flat_map(|link| link.lines.clone())).collect()
}

/// Whether nothing in it moves, hides or ends anything.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control()
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    })
}

/// The labels of a flowchart in which each line is one that is known by its form.
fn labels_of_mermaid(page: &str) -> Vec<String> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        let title = r#"title: "([^"\\\x00-\x1f%<]|\\u00[0-9a-f]{2})*""#;
        Regex::new(&format!("^---\n{title}\n---\nflowchart TD\n")).expect("a pattern")
    });
    static FORMS: LazyLock<[Regex; 4]> = LazyLock::new(|| {
        let label = r#"(?:[^"\x00-\x1f#%`<>\[\]{}|\\;*/!@$&()=]|#\d+;|<br/>)*"#;
        let forms = [
            format!(r#"^  n\d+(?:\(\[|\[|\{{\{{|\()"({label})"(?:\]\)|\]|\}}\}}|\))$"#),
            format!(r#"^  n\d+ (?:-->|-\.->)(?:\|"({label})"\|)? n\d+$"#),
            format!(r#"^  notes\["({label})"\]:::note$"#),
            "^  (?:classDef|class) [-a-z0-9,:# ]+$".to_owned(),
        ];
        forms.map(|form| Regex::new(&form).expect("a pattern"))
    });
    let rest = HEAD.replace(page, "");
    assert!(rest.len() < page.len(), "{page}");
    let mut labels = Vec::new();
    for line in rest.lines() {
        let found = FORMS.iter().find_map(|form| form.captures(line));
        let found = found.unwrap_or_else(|| panic!("{line}\nin\n{page}"));
        let lines = found.get(1).into_iter().flat_map(|label| label.as_str().split("<br/>"));
        labels.extend(lines.map(decoded));
    }
    labels
}

fn decoded(label: &str) -> String {
    static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"#(\d+);").expect("a pattern"));
    let sign = |found: &regex::Captures| {
        let code = found[1].parse().ok().and_then(char::from_u32);
        code.expect("it is one").to_string()
    };
    CODE.replace_all(label, sign).into_owned()
}

/// The labels of a graph in which each line is one that is known by its form.
fn labels_of_dot(page: &str) -> Vec<String> {
    static FORMS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        let text = r#""((?:[^"\\\x00-\x1f]|\\["\\n])*)""#;
        let attribute = format!(r#"(?:[a-z]+=(?:[a-z]+|\d+|{text}))"#);
        let line = format!(
            r"^  (?:(?:graph|node|edge|n\d+)|n\d+ -> n\d+)(?: \[{attribute}(?: {attribute})*\])?$"
        );
        [line, format!("label={text}")].map(|form| Regex::new(&form).expect("a pattern"))
    });
    let [line, label] = &*FORMS;
    let body = page.strip_prefix("digraph folkmoot {\n").and_then(|it| it.strip_suffix("}\n"));
    let mut labels = Vec::new();
    for each in body.expect("it is one graph").lines() {
        assert!(line.is_match(each), "{each}\nin\n{page}");
        if let Some(found) = label.captures(each) {
            let plain = found[1].replace("&amp;", "&");
            let lines = plain.replace("\\\\", "\0").replace("\\\"", "\"");
            labels.extend(lines.split("\\n").map(|line| line.replace('\0', "\\")));
        }
    }
    labels
}

/// The texts of a picture that is well formed and holds nothing but shapes and text.
fn labels_of_svg(page: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(page).unwrap_or_else(|why| panic!("{why}\n{page}"));
    let elements = document.descendants().filter(roxmltree::Node::is_element);
    let known = ["svg", "title", "desc", "marker", "path", "text", "g", "rect"];
    let attributes = [
        "xmlns",
        "width",
        "height",
        "viewBox",
        "role",
        "font-family",
        "font-size",
        "font-weight",
        "text-anchor",
        "id",
        "refX",
        "refY",
        "markerWidth",
        "markerHeight",
        "orient",
        "d",
        "fill",
        "x",
        "y",
        "rx",
        "transform",
        "stroke",
        "stroke-width",
        "stroke-dasharray",
        "marker-end",
    ];
    let mut texts = Vec::new();
    for element in elements {
        assert!(known.contains(&element.tag_name().name()), "{element:?}");
        for attribute in element.attributes() {
            assert!(attributes.contains(&attribute.name()), "{attribute:?}");
            assert!(
                !attribute.value().contains("url(") || attribute.value() == "url(#folkmoot-arrow)"
            );
        }
        if element.has_tag_name(("http://www.w3.org/2000/svg", "text")) {
            texts.push(element.text().unwrap_or_default().to_owned());
        }
    }
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_foreign_gets_out_of_its_label(
        names in prop::collection::vec(text(), 3),
        labels in prop::collection::vec(text(), 3),
        task in text(),
    ) {
        let spec = hostile(&names, &labels, &task);
        let sim = play(spec.clone());
        for drawing in [of_team(&spec), of_run("r1", &sim.spec, &sim.run, false)] {
            let lines = lines(&drawing);
            for (format, labels) in [
                (Format::Mermaid, labels_of_mermaid as fn(&str) -> Vec<String>),
                (Format::Dot, labels_of_dot),
                (Format::Svg, labels_of_svg),
            ] {
                let page = drawing.write(format);
                prop_assert!(page.lines().all(is_harmless), "{page}");
                let shown = labels(&page);
                for line in &lines {
                    prop_assert!(shown.contains(line), "{line:?} is not in {shown:?}");
                }
                prop_assert_eq!(page, drawing.write(format));
            }
        }
    }
}
