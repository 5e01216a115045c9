//! What `extensions` may hold, and where names of a team's own may stand (extensions.md).

use std::sync::Arc;

use crate::file::{
    node::{Node, Tree},
    shape::{Field, Record, Shape},
};

/// `extensions`.
pub static EXTENSIONS: Record = Record {
    name: "extensions",
    noun: "key",
    doc: "Topologies and conditions of the team's own.",
    groups: &[&[
        Field::new("topologies", Shape::Named(&TOPOLOGY), "Topologies, by name."),
        Field::new("conditions", Shape::Named(&CONDITION), "Conditions, by name."),
    ]],
};

static TOPOLOGY: Record = Record {
    name: "own_topology",
    noun: "key",
    doc: "A shape of graphs: a template that makes edges of the agents of a graph.",
    groups: &[&[
        Field::new("edges", Shape::Text, "A template; what it makes is read as lines of flow.")
            .required(),
        Field::new("params", Shape::Json, "Its parameters, and what they are unless given.")
            .default("none"),
    ]],
};

static CONDITION: Record = Record {
    name: "own_condition",
    noun: "key",
    doc: "A condition under which a graph ends: an expression that is true or false.",
    groups: &[&[
        Field::new("expr", Shape::Text, "The expression.").required(),
        Field::new("params", Shape::Json, "Its parameters, and what they are unless given.")
            .default("none"),
        Field::new("bound", Shape::Flag, "Whether it ends a run without success.").default("false"),
        Field::new("describe", Shape::Text, "What prompts and reports say of it.")
            .default("the condition as written"),
    ]],
};

/// Names of a team's own that may stand as keys beside those of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// None.
    Refused,
    /// The names of conditions.
    Conditions,
    /// The names of parameters of topologies.
    Parameters,
}

impl Others {
    /// Those of a record.
    pub fn of(record: &Record) -> Others {
        match record.name {
            "condition" => Others::Conditions,
            "collaboration" | "stage" => Others::Parameters,
            _ => Others::Refused,
        }
    }
}

/// The names of a team's own that a file declares, as far as they can be read without a table.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    conditions: Vec<Arc<str>>,
    parameters: Vec<Arc<str>>,
}

impl Declared {
    /// Those of a whole file.
    pub fn in_file(root: &Node) -> Declared {
        let extensions = below(root, "extensions").into_iter();
        let all = |key| extensions.clone().filter_map(move |it| below(it, key));
        let conditions = all("conditions").flat_map(keys).collect();
        let topologies = all("topologies").flat_map(values);
        let parameters = topologies.filter_map(|it| below(it, "params")).flat_map(keys).collect();
        Declared { conditions, parameters }
    }

    /// The same and others that are known already.
    #[must_use]
    pub fn and(
        mut self,
        conditions: impl IntoIterator<Item = Arc<str>>,
        parameters: impl IntoIterator<Item = Arc<str>>,
    ) -> Declared {
        self.conditions.extend(conditions);
        self.parameters.extend(parameters);
        self
    }

    /// Those that may stand in a record.
    pub fn beside(&self, record: &Record) -> &[Arc<str>] {
        match Others::of(record) {
            Others::Refused => &[],
            Others::Conditions => &self.conditions,
            Others::Parameters => &self.parameters,
        }
    }
}

fn below<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Tree::Map(entries) = &node.value else { return None };
    entries.iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
}

fn keys(node: &Node) -> Vec<Arc<str>> {
    let Tree::Map(entries) = &node.value else { return Vec::new() };
    entries.iter().map(|entry| entry.key.clone()).collect()
}

fn values(node: &Node) -> Vec<&Node> {
    let Tree::Map(entries) = &node.value else { return Vec::new() };
    entries.iter().map(|entry| &entry.value).collect()
}
