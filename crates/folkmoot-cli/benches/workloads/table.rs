//! The table that is printed, as Markdown.

use std::fmt;

/// The first lines.
pub(crate) const HEAD: &str = "\
| workload | Folkmoot | reference | | ratio | goal | met |
|---|---:|---|---:|---:|---:|---|";

/// What a figure of ours should come to.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    Most(f64),
    Least(f64),
}

/// A row with its medians.
pub(crate) struct Row {
    pub title: &'static str,
    pub ours: Option<f64>,
    pub reference: Option<&'static str>,
    pub theirs: Option<f64>,
    pub ratio: Option<f64>,
    pub goal: Option<Goal>,
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Goal::Most(most) => value <= most,
            Goal::Least(least) => value >= least,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::Most(most) => write!(f, "≤ {}", number(*most)),
            Goal::Least(least) => write!(f, "≥ {}", number(*least)),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { title, ours, reference, theirs, ratio, goal } = self;
        let text = |value: &Option<f64>| {
            value.filter(|it| it.is_finite()).map_or_else(|| "–".to_owned(), number)
        };
        let (ours, theirs, ratio) = (text(ours), text(theirs), text(ratio));
        let reference = reference.unwrap_or("–");
        let wanted = goal.map_or_else(|| "–".to_owned(), |goal| goal.to_string());
        let met = match goal.zip(self.ours).map(|(goal, ours)| goal.is_met(ours)) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        write!(f, "| {title} | {ours} | {reference} | {theirs} | {ratio} | {wanted} | {met} |")
    }
}

/// Three digits that count, thousands marked.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        it if it < 1.0 => format!("{value:.3}"),
        it if it < 10.0 => format!("{value:.2}"),
        it if it < 100.0 => format!("{value:.1}"),
        it if it < 1000.0 => format!("{value:.0}"),
        _ => {
            let whole = value.round() as i64;
            format!("{},{:03}", whole / 1000, whole % 1000)
        }
    }
}
