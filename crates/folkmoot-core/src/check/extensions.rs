//! From what a file says of topologies and conditions of its own to a registry that has them
//! (extensions.md §§1, 2).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    diagnostic::{Diagnostic, Place, Span, quoted},
    extension::{Expression, Kind, Parameters, Refused, Registry, Rule, Slip, Template},
    file::{
        collaboration::COLLABORATION,
        item::{Content, Fields, Item},
    },
    names,
    programs::graph::Topology,
    team::Team,
};

/// The code of what is wrong in an extension itself.
pub(super) const BAD_EXTENSION: &str = "bad_extension";

/// What can be named in a file: what is built in, what the caller adds, and what the file adds.
pub(super) struct Extensions<'a> {
    pub(super) registry: Registry,
    /// The topologies that are declared and cannot be read.
    pub(super) broken: BTreeSet<String>,
    /// The text of the file.
    pub(super) source: &'a str,
}

impl<'a> Extensions<'a> {
    /// Reads those of a file.
    pub(super) fn read(
        file: &Fields,
        registry: &Registry,
        source: &'a str,
        team: &Team,
        told: &mut Vec<Diagnostic>,
    ) -> Extensions<'a> {
        let mut found = Extensions { registry: registry.clone(), broken: BTreeSet::new(), source };
        let Some(given) = file.fields("extensions") else { return found };
        for (name, place, fields) in given.named("topologies") {
            let Some(topology) = found.topology(name, fields, told) else {
                found.broken.insert(name.to_string());
                continue;
            };
            if let Err(why) = found.registry.topology(name, topology) {
                told.push(refused("topology", &why, place));
            }
        }
        let agents: Vec<&str> = team.agents.iter().map(|agent| agent.id.as_str()).collect();
        for (name, place, fields) in given.named("conditions") {
            let Some(kind) = found.condition(name, fields, &agents, told) else { continue };
            if let Err(why) = found.registry.condition(name, kind) {
                told.push(refused("condition", &why, place));
            }
        }
        found
    }

    fn topology(
        &self,
        name: &str,
        fields: &Fields,
        told: &mut Vec<Diagnostic>,
    ) -> Option<Topology> {
        let params = defaults(fields, told)?;
        for key in params.keys().filter(|key| COLLABORATION.field(key).is_some()) {
            let message =
                format!("the name {key} is taken; call the parameter of {name} otherwise");
            told.push(Diagnostic::error(NAME_TAKEN, message).at(fields.place_of("params")));
        }
        let item = fields.get("edges")?;
        match Template::parse(item.text()?.clone()) {
            Ok(template) => {
                let topology = Topology::new(move |agents, params| template.edges(agents, params));
                Some(Topology { params, ..topology })
            }
            Err(slip) => {
                told.push(self.slip(&format!("topology {}", quoted(name)), &slip, item));
                None
            }
        }
    }

    fn condition(
        &self,
        name: &str,
        fields: &Fields,
        agents: &[&str],
        told: &mut Vec<Diagnostic>,
    ) -> Option<Kind> {
        let params = defaults(fields, told);
        let item = fields.get("expr")?;
        let expression = Expression::new(item.text()?.clone());
        let slips = expression.slips(agents);
        let what = format!("condition {}", quoted(name));
        told.extend(slips.iter().map(|slip| self.slip(&what, slip, item)));
        slips.is_empty().then_some(())?;
        Some(Kind {
            rule: Rule::Expr(expression),
            params: params?,
            bound: fields.flag("bound") == Some(true),
            describe: fields.text("describe").cloned(),
        })
    }

    /// What is wrong at a place of a text.
    pub(super) fn slip(&self, what: &str, slip: &Slip, item: &Item) -> Diagnostic {
        let Slip { why, at, help } = slip;
        let message = format!("{what}: {why}");
        let told = Diagnostic::error(BAD_EXTENSION, message).at(&item.place).help(help.clone());
        let text = item.text().map_or("", |text| &**text);
        match item.place.span.and_then(|span| within(self.source, span, text, *at)) {
            Some(span) => Diagnostic { at: Some(span), ..told },
            None => told,
        }
    }
}

const NAME_TAKEN: &str = "extension_name_taken";

fn refused(what: &str, why: &Refused, place: &Place) -> Diagnostic {
    let code = match why {
        Refused::Taken(_) => NAME_TAKEN,
        Refused::Malformed(_) => "bad_name",
    };
    Diagnostic::error(code, format!("{what}: {why}")).at(place)
}

/// The parameters of an extension with what they are unless given.
fn defaults(fields: &Fields, told: &mut Vec<Diagnostic>) -> Option<Parameters> {
    let Some(item) = fields.get("params") else {
        return (!fields.is_broken("params")).then(Parameters::new);
    };
    if let Content::Json(Value::Object(params)) = &item.content {
        return Some(params.clone());
    }
    let message = "params must be a map of names and values".to_owned();
    told.push(Diagnostic::error("bad_value", message).at(&item.place));
    None
}

/// Parameters as they are given where something of the team's own is used.
pub(super) struct Given<'a> {
    /// What they are of.
    pub(super) of: &'a str,
    /// What they are unless given.
    pub(super) defaults: &'a Parameters,
    /// Those that must be there, whether or not they have a default.
    pub(super) needed: BTreeSet<String>,
    /// Where it is used.
    pub(super) place: &'a Place,
}

impl Given<'_> {
    /// All parameters; nothing if something is wrong with those given.
    pub(super) fn with<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v str, &'v Place, &'v Value)>,
        told: &mut Vec<Diagnostic>,
    ) -> Option<Parameters> {
        let before = told.len();
        let mut params = self.defaults.clone();
        for (name, place, value) in values {
            let known = || self.defaults.keys().chain(&self.needed).map(String::as_str);
            if !known().any(|it| it == name) {
                let message = format!("unknown parameter {} of {}", quoted(name), self.of);
                let help = names::suggestion(name, known());
                told.push(Diagnostic::error("unknown_key", message).at(place).help(help));
                continue;
            }
            let usual = self.defaults.get(name).map_or("a value", kind);
            if usual != "a value" && usual != kind(value) {
                let message = format!("{name} must be {usual}, as its default is; got {value}");
                told.push(Diagnostic::error("bad_value", message).at(place));
            }
            params.insert(name.to_owned(), value.clone());
        }
        for name in self.needed.iter().filter(|name| !params.contains_key(*name)) {
            let message = format!("{} needs the parameter {name}", self.of);
            told.push(Diagnostic::error("missing_key", message).at(self.place));
        }
        (told.len() == before).then_some(params)
    }
}

/// What kind of value it is.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "a value",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Where in the file the byte `at` of a text stands that is written in `span`, if its lines can be
/// found there again.
fn within(source: &str, span: Span, text: &str, at: usize) -> Option<Span> {
    let before = &text[..text.floor_char_boundary(at)];
    let (line, in_line) =
        (before.matches('\n').count(), before.len() - before.rfind('\n').map_or(0, |at| at + 1));
    let raw = source.get(span.start..span.end)?;
    let mut from = 0;
    for (nth, wanted) in text.lines().enumerate() {
        let begin = from + raw.get(from..)?.find(wanted)?;
        if nth == line {
            let start = span.start + begin + in_line;
            return Some(Span { start, end: start + 1 });
        }
        from = begin + wanted.len();
    }
    None
}

/// The keys of the team's own in a map, where each stands, and its value.
pub(super) fn others(fields: &Fields) -> impl Iterator<Item = (&str, &Place, &Value)> {
    fields.others().iter().filter_map(|(name, place, item)| match &item.content {
        Content::Json(value) => Some((&**name, place, value)),
        _ => None,
    })
}

/// Tells of parameters of topologies where there is no topology of the team's own.
pub(super) fn misplaced(fields: &Fields) -> impl Iterator<Item = Diagnostic> {
    others(fields).map(|(name, place, _)| {
        let message = format!("unknown parameter {}", quoted(name));
        let help = "it belongs beside the topology that knows it";
        Diagnostic::error("unknown_key", message).at(place).help(help.to_owned())
    })
}
