//! Templates whose output is read as the lines of `flow` (extensions.md §1).

use std::sync::Arc;

use minijinja::{Value as Jinja, context};

use super::{
    Parameters,
    engine::{self, Failed, environment, excess, why, words_in_tags},
    expression::Slip,
};
use crate::{diagnostic::quoted, programs::graph::Edge, team::AgentId};

/// The largest output, in bytes.
pub const LARGEST_OUTPUT: usize = 64 << 10;

/// The most edges.
pub const MOST_EDGES: usize = 1000;

/// A text that makes edges of agents and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: Arc<str>,
}

impl Template {
    /// A template of this text, or what its text alone shows to be wrong.
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Template, Slip> {
        let text = text.into();
        if let Some(excess) = excess(&words_in_tags(&text)) {
            return Err(Slip { why: excess, at: 0, help: None });
        }
        match environment().template_from_str(&text) {
            Ok(_) => Ok(Template { text: text.clone() }),
            Err(error) => {
                let at = error.range().map_or(0, |range| range.start);
                Err(Slip { why: why(&error, &text), at, help: None })
            }
        }
    }

    /// The edges for these agents; an error says why there are none, and names the line.
    pub fn edges(&self, agents: &[AgentId], params: &Parameters) -> Result<Vec<Edge>, String> {
        let output = self.output(agents, params)?;
        let lines = output.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let edges: Result<Vec<Edge>, String> = lines
            .map(|(at, line)| {
                let malformed = || {
                    format!(
                        "invalid edge in line {} of what it makes: {}",
                        at + 1,
                        quoted(line.trim())
                    )
                };
                Edge::parse(line).ok_or_else(malformed)
            })
            .take(MOST_EDGES + 1)
            .collect();
        let edges = edges?;
        if edges.len() > MOST_EDGES {
            return Err(format!("it makes more than {MOST_EDGES} edges"));
        }
        Ok(edges)
    }

    fn output(&self, agents: &[AgentId], params: &Parameters) -> Result<String, String> {
        let agents: Vec<Jinja> = agents.iter().map(|agent| Jinja::from(agent.as_str())).collect();
        let given = context! { agents => agents, params => engine::params(params) };
        let template =
            environment().template_from_str(&self.text).map_err(|error| why(&error, &self.text))?;
        let output = template.render(given).map_err(|error| {
            let is_own = std::error::Error::source(&error).is_some_and(|it| it.is::<Failed>());
            let line = error.line().filter(|_| !is_own);
            let place = line.map(|line| format!(" (line {line} of the template)"));
            why(&error, &self.text) + &place.unwrap_or_default()
        })?;
        if output.len() > LARGEST_OUTPUT {
            return Err(format!("it makes more than {} KiB", LARGEST_OUTPUT >> 10));
        }
        Ok(output)
    }
}
