//! A drawing as a picture that needs nothing else.
//!
//! Text in boxes is dark on light; all else is of a grey that can be read on white and on black. There
//! is no style sheet, font, script or link in it.

use std::fmt::{Display, Write};

use super::{
    Drawing, Kind, Link, Node, Way,
    layout::{Edge, Point, Route, Size, layout, whole},
};
use crate::width;

/// About as wide as a column is.
const COLUMN: i64 = 8;

/// The height of a line in a node, and of one at a link.
const LINE: i64 = 18;
const SMALL: i64 = 15;

/// What is left free in a node, and around the whole.
const PADDING: i64 = 12;
const MARGIN: i64 = 20;

/// A grey for lines and text without a box.
const GREY: &str = "#767676";

/// The colour of text in boxes.
const DARK: &str = "#1f2328";

/// Writes it.
pub(super) fn write(drawing: &Drawing) -> String {
    let nodes: Vec<Size> = drawing.nodes.iter().map(size).collect();
    let edges: Vec<Edge> = drawing
        .links
        .iter()
        .map(|link| Edge { from: link.from, to: link.to, label: label_size(link) })
        .collect();
    let layout = layout(&nodes, &edges);
    let head = MARGIN + LINE + MARGIN;
    let caption = drawing.notes.iter().chain([&drawing.title]).map(|it| columns(it) * COLUMN).max();
    let width = layout.size.width.max(caption.unwrap_or_default()) + 2 * MARGIN;
    let left = (width - layout.size.width) / 2;
    let foot = head + layout.size.height + MARGIN;
    let height = foot + SMALL * whole(drawing.notes.len()) + MARGIN;
    let mut page = Page(String::new());
    page.put(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"system-ui, sans-serif\" \
         font-size=\"13\" text-anchor=\"middle\">"
    ));
    page.put(format_args!("<title>{}</title>", escaped(&drawing.title)));
    page.put(format_args!("<desc>{}</desc>", escaped(&description(drawing))));
    page.put(format_args!(
        "<marker id=\"folkmoot-arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"6\" \
         markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{GREY}\"/></marker>"
    ));
    let middle = Point { x: width / 2, y: MARGIN + LINE - 5 };
    page.text(middle, GREY, "font-weight=\"bold\"", &drawing.title);
    page.put(format_args!("<g transform=\"translate({left} {head})\">"));
    for (link, route) in drawing.links.iter().zip(&layout.routes) {
        page.line(link, route);
    }
    for (node, (size, at)) in drawing.nodes.iter().zip(nodes.iter().zip(&layout.nodes)) {
        page.node(node, *size, *at);
    }
    for (link, route) in drawing.links.iter().zip(&layout.routes) {
        page.label(link, route);
    }
    page.put("</g>");
    for (nth, note) in (1..).zip(&drawing.notes) {
        let at = Point { x: MARGIN, y: foot + nth * SMALL - 4 };
        page.text(at, GREY, "font-size=\"11\" text-anchor=\"start\"", note);
    }
    page.put("</svg>");
    page.0
}

fn columns(text: &str) -> i64 {
    whole(width::columns(text))
}

fn size(node: &Node) -> Size {
    let columns = node.lines.iter().map(|line| columns(line)).max().unwrap_or_default();
    let sides = match node.kind {
        Kind::Outside | Kind::Choice => 4 * PADDING,
        Kind::Place | Kind::Agent | Kind::Failed | Kind::Absent => 2 * PADDING,
    };
    Size { width: columns * COLUMN + sides, height: whole(node.lines.len()) * LINE + PADDING }
}

fn label_size(link: &Link) -> Size {
    let columns = link.lines.iter().map(|line| columns(line)).max();
    let Some(columns) = columns else { return Size::default() };
    Size { width: columns * (COLUMN - 1) + PADDING, height: whole(link.lines.len()) * SMALL + 4 }
}

/// What a picture shows, for those who cannot see it.
fn description(drawing: &Drawing) -> String {
    let name = |at: usize| drawing.nodes[at].lines.join(", ");
    let links = drawing.links.iter().map(|link| {
        let label = if link.lines.is_empty() {
            String::new()
        } else {
            format!(" ({})", link.lines.join(", "))
        };
        format!("{} → {}{label}", name(link.from), name(link.to))
    });
    let linked = |at: &usize| drawing.links.iter().any(|link| link.from == *at || link.to == *at);
    let alone = (0..drawing.nodes.len()).filter(|at| !linked(at)).map(name);
    links.chain(alone).chain(drawing.notes.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// The lines of the file so far.
struct Page(String);

impl Page {
    fn put(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").expect("a string takes any text");
    }

    fn text(&mut self, at: Point, fill: &str, look: &str, text: &str) {
        let Point { x, y } = at;
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\" {look}>{}</text>",
            escaped(text)
        ));
    }

    fn line(&mut self, link: &Link, route: &Route) {
        let path = path(route);
        let dashes = match link.kind {
            Way::Plain => "",
            Way::Spare => " stroke-dasharray=\"5 4\"",
        };
        self.put(format_args!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{GREY}\" stroke-width=\"1.5\"{dashes} \
             marker-end=\"url(#folkmoot-arrow)\"/>"
        ));
    }

    fn node(&mut self, node: &Node, size: Size, at: Point) {
        let Size { width, height } = size;
        let (left, top) = (at.x - width / 2, at.y - height / 2);
        let look = match node.kind {
            Kind::Outside => format!("fill=\"#e6f4ea\" stroke=\"{GREY}\""),
            Kind::Place => format!("fill=\"#eeeeee\" stroke=\"{GREY}\""),
            Kind::Agent => format!("fill=\"#e8eef7\" stroke=\"{GREY}\""),
            Kind::Choice => format!("fill=\"#fff4d6\" stroke=\"{GREY}\""),
            Kind::Failed => "fill=\"#ffebe9\" stroke=\"#cf222e\"".to_owned(),
            Kind::Absent => {
                format!("fill=\"#eeeeee\" stroke=\"{GREY}\" stroke-dasharray=\"4 3\"")
            }
        };
        let round = match node.kind {
            Kind::Outside => height / 2,
            Kind::Place | Kind::Choice => 0,
            Kind::Agent | Kind::Failed | Kind::Absent => 6,
        };
        if node.kind == Kind::Choice {
            let (right, bottom, y) = (left + width, top + height, at.y);
            let (from, to) = (left + PADDING, right - PADDING);
            self.put(format_args!(
                "<path d=\"M{left} {y}L{from} {top}H{to}L{right} {y}L{to} {bottom}H{from}z\" {look}/>"
            ));
        } else {
            self.put(format_args!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
                 rx=\"{round}\" {look}/>"
            ));
        }
        for (nth, line) in (0..).zip(&node.lines) {
            let look = if nth == 0 { "font-weight=\"bold\"" } else { "font-size=\"12\"" };
            let at = Point { x: at.x, y: top + PADDING / 2 + nth * LINE + 13 };
            self.text(at, DARK, look, line);
        }
    }

    fn label(&mut self, link: &Link, route: &Route) {
        if link.lines.is_empty() {
            return;
        }
        let (Size { width, height }, at) = (label_size(link), route.label);
        let (left, top) = (at.x - width / 2, at.y - height / 2);
        self.put(format_args!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"4\" \
             fill=\"#f6f8fa\"/>"
        ));
        for (nth, line) in (0..).zip(&link.lines) {
            let at = Point { x: at.x, y: top + 2 + nth * SMALL + 11 };
            self.text(at, DARK, "font-size=\"11\"", line);
        }
    }
}

/// A smooth line that leaves and enters each layer upright.
fn path(route: &Route) -> String {
    let mut path = String::new();
    let Some(first) = route.points.first() else { return path };
    write!(path, "M{} {}", first.x, first.y).expect("a string takes any text");
    if let ([from, side, to], true) = (&route.points[..], route.is_own) {
        write!(path, "C{x} {} {x} {} {} {}", from.y, to.y, to.x, to.y, x = side.x)
            .expect("a string takes any text");
        return path;
    }
    for pair in route.points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let middle = i64::midpoint(from.y, to.y);
        write!(path, "C{} {middle} {} {middle} {} {}", from.x, to.x, to.x, to.y)
            .expect("a string takes any text");
    }
    path
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
