//! What edges require, and whether findings are asked for (convergence.md).

use serde_json::Value;

use super::Reading;
use crate::{
    diagnostic::{Diagnostic, quoted},
    file::item::{Content, Fields, Item},
    gate::{Gate, Requirement, USUAL_TIMEOUT, USUAL_TRIES},
    programs::graph::{Edge, PARENT, Requires, Routing, Structure},
    verdict::Severity,
};

/// The kinds of requirements.
const KINDS: [&str; 3] = ["command", "file", "schema"];

/// How large a schema may be, in bytes.
const LARGEST_SCHEMA: usize = 64 * 1024;

impl Reading<'_> {
    /// From which severity on findings are material, if they are asked for.
    pub(super) fn findings(&mut self, has_loop: bool) -> Option<Severity> {
        let item = self.given.get("findings")?.clone();
        let materiality = match &item.content {
            Content::Flag(false) => return None,
            Content::Fields(fields) => fields.text("materiality").cloned(),
            _ => None,
        };
        if !has_loop {
            let message = "findings needs a loop: nobody reviews anything again".to_owned();
            let told = Diagnostic::error("bad_config", message).at(self.given.key("findings"));
            let help = "take topology: review-loop, or add an edge that leads back";
            self.told.push(told.help(help.to_owned()));
        }
        let given = materiality.as_deref().map(Severity::parse);
        given.unwrap_or(Some(Severity::Minor))
    }

    /// What an edge requires.
    pub(super) fn requires(&mut self, of: &Fields) -> Option<Requires> {
        if of.get("requires").is_none() {
            if of.get("tries").is_some() {
                let message = "tries has no meaning without requires".to_owned();
                self.tell("bad_edge", message, of.key("tries"));
            }
            return None;
        }
        let items = of.list("requires");
        if items.is_empty() {
            let message = "requires must not be empty".to_owned();
            self.tell("bad_value", message, of.place_of("requires"));
        }
        let items = items.iter().filter_map(Item::fields);
        let all: Vec<Requirement> = items.filter_map(|it| self.requirement(it)).collect();
        let tries = of.whole("tries").map_or(USUAL_TRIES, |tries| tries as u32);
        Some(Requires { all, tries })
    }

    fn requirement(&mut self, of: &Fields) -> Option<Requirement> {
        if of.is_faulty() {
            return None;
        }
        let kinds: Vec<&str> = KINDS.into_iter().filter(|key| of.get(key).is_some()).collect();
        let [kind] = kinds[..] else {
            let found = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
            let message =
                format!("a requirement names exactly one of command, file, schema; found {found}");
            self.tell("bad_value", message, &of.place);
            return None;
        };
        if kind != "command" && of.get("timeout").is_some() {
            let message = "timeout stands only beside command".to_owned();
            self.tell("bad_value", message, of.key("timeout"));
        }
        let what = of.text(kind)?.clone();
        if what.trim().is_empty() {
            let message = format!("{kind} must not be empty");
            self.tell("bad_value", message, of.place_of(kind));
            return None;
        }
        let gate = match kind {
            "command" => {
                let given = of.time("timeout").unwrap_or(Some(USUAL_TIMEOUT));
                let Some(timeout) = given else {
                    let message = "timeout of a command must have an end; got none".to_owned();
                    self.tell("bad_value", message, of.place_of("timeout"));
                    return None;
                };
                Gate::Command { command: what, timeout }
            }
            "file" => {
                if !is_inside(&what) {
                    let message =
                        format!("file must be a path inside the workspace; got {}", quoted(&what));
                    self.tell("bad_value", message, of.place_of("file"));
                }
                Gate::File { path: what }
            }
            _ => Gate::Schema { schema: self.schema(&what, of)?, name: what },
        };
        let script = of.texts("script").iter().map(|word| &**word == "pass").collect();
        Some(Requirement { gate, script })
    }

    /// The schema in a file, which is part of the run from now on.
    fn schema(&mut self, name: &str, of: &Fields) -> Option<Value> {
        let told = match (self.read)(name) {
            Err(why) => format!("{} cannot be read: {why}", quoted(name)),
            Ok(text) if text.len() > LARGEST_SCHEMA => {
                format!(
                    "{} is too large: {} bytes, at most {LARGEST_SCHEMA}",
                    quoted(name),
                    text.len()
                )
            }
            Ok(text) => match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                Ok(schema @ (Value::Object(_) | Value::Bool(_))) => {
                    match jsonschema::validator_for(&schema) {
                        Ok(_) => return Some(schema),
                        Err(error) => format!("{} is no JSON Schema: {error}", quoted(name)),
                    }
                }
                Ok(_) => format!("{} is no JSON Schema: it is no object", quoted(name)),
                Err(error) => format!("{} is no JSON Schema: {error}", quoted(name)),
            },
        };
        self.tell("bad_file", told, of.place_of("schema"));
        None
    }

    /// Tells of edges that may not require anything.
    pub(super) fn check_gates(&mut self, edges: &[Edge], routing: Routing) {
        let structure = Structure::of(edges);
        let gated = edges.iter().enumerate().filter(|(_, edge)| edge.requires.is_some());
        // What of the lead's own edges is wrong is told where it stands.
        let gated = gated.filter(|(_, edge)| edge.from.as_str() != PARENT);
        for (at, edge) in gated {
            let (from, to) = (quoted(edge.from.as_str()), quoted(edge.to.as_str()));
            let decides = structure.source(at).is_some_and(|agent| structure.decides(agent));
            let why = if routing == Routing::Lead {
                "the lead chooses, under routing: lead"
            } else if edge.is_for_failures() {
                "it is taken by what fails"
            } else if !decides && !edge.exit {
                "it is neither chosen nor an exit"
            } else {
                continue;
            };
            let message = format!("Edge {from} -> {to} cannot have requires: {why}");
            let place = self.given.place_of("flow").clone();
            self.tell("bad_edge", message, &place);
        }
    }
}

/// Whether a path stays inside the folder that it starts from.
fn is_inside(path: &str) -> bool {
    let is_drive = path.as_bytes().get(1) == Some(&b':');
    let mut parts = path.split(['/', '\\']);
    !is_drive && !path.starts_with(['/', '\\', '~']) && !parts.any(|part| part == "..")
}
