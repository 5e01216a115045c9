//! Templates whose output is read as the lines of `flow` (extensions.md §1).

use std::{error::Error, sync::Arc};

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
            let is_own = error.source().is_some_and(<dyn Error>::is::<Failed>);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(template: &str) -> Result<Vec<Edge>, String> {
        let agents: Vec<AgentId> = ["a", "b", "c"].map(AgentId::from).to_vec();
        Template::parse(template).map_err(|slip| slip.why)?.edges(&agents, &Parameters::new())
    }

    #[test]
    fn what_a_template_makes_are_edges() {
        let made = edges(
            "parent -> {{ agents[0] }}: go\n\n{% for a in agents %}\n  {{ a }} -> parent\n{% endfor %}",
        );
        let made: Vec<String> =
            made.expect("they are edges").iter().map(ToString::to_string).collect();
        assert_eq!(made, ["parent -> a", "a -> parent", "b -> parent", "c -> parent"]);
    }

    /// On a small stack, so that what recurses too deeply is found.
    fn refused(template: &str, why: &str) {
        let run = || {
            std::thread::scope(|scope| {
                let builder = std::thread::Builder::new().stack_size(1 << 20);
                let thread = builder.spawn_scoped(scope, || edges(template)).expect("it starts");
                thread.join().expect("it does not panic")
            })
        };
        let told = run().expect_err("it is refused");
        assert!(told.contains(why), "{told}: {}", &template[..template.len().min(80)]);
    }

    #[test]
    fn a_hostile_template_ends_soon_and_makes_nothing() {
        let doubled = |sets: usize| "{% set x = x ~ x %}".repeat(sets);
        let nested = |count: usize, tag: &str, end: &str| {
            format!("{}{}", tag.repeat(count), end.repeat(count))
        };
        refused(
            "{% for a in range(99999) %}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% endfor %}",
            "100000 steps",
        );
        refused(
            "{% for a in range(3000) %}parent -> a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n{% endfor %}",
            "more than 64 KiB",
        );
        refused("{% for a in range(2000) %}parent -> a\n{% endfor %}", "more than 1000 edges");
        refused(&format!("{{% set x = 'ab' %}}{}", doubled(50)), "100000 steps");
        refused(&format!("{{% set x = 'ab' %}}{}", doubled(200)), "words and signs");
        refused(
            &format!("{{% set x = [1] %}}{}", "{% set x = x + x %}".repeat(40)),
            "adds more than",
        );
        refused("{{ range(10000000) | list }}", "too many elements");
        refused("{{ 'a' * 100000000 }}", "100000 steps");
        refused("{{ 'a' | indent(100000000) }}", "100000 steps");
        refused("{{ '%1000000000d' | format(1) }}", "");
        refused("{{ [[1]] | sum(start=[]) }}", "filter sum is unknown");
        refused("{% for x in [agents] recursive %}{{ loop([x]) }}{% endfor %}", "recursive");
        refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "macro");
        refused("{% include 'a' %}", "include");
        refused("{{ debug() }}", "debug is unknown");
        refused(&nested(24, "{% for i in range(99) %}x", "{% endfor %}"), "100000 steps");
        refused(&nested(70, "{% for i in [1] %}", "{% endfor %}"), "recursion");
        refused(&nested(400, "{% if 1 %}", "{% endif %}"), "words and signs");
        refused(&format!("{{{{ {}1{} }}}}", "(".repeat(30), ")".repeat(30)), "brackets");
        refused(&format!("{{{{ {}1 }}}}", "not ".repeat(400)), "");
        refused(&format!("{{{{ agents{} }}}}", "()".repeat(240)), "");
        refused(&format!("{{{{ agents{} }}}}", ".a".repeat(240)), "");
        refused(&format!("{{{{ 1{} }}}} -> a -> b", " | abs".repeat(240)), "invalid edge");
        refused("{{ 'unclosed", "");
        refused("{% for", "");
    }

    #[test]
    fn lists_that_are_taken_apart_again_and_again_end_soon() {
        let sliced = "{% set x = x[0:] %}".repeat(40);
        refused(&format!("{{% set x = agents %}}{sliced}{{{{ x | length }}}}"), "invalid edge");
        let doubled = "{% set x = x + x %}".repeat(16);
        let looped = "{% for y in x %}{% endfor %}";
        refused(&format!("{{% set x = agents %}}{doubled}{looped}"), "100000 steps");
    }
}
