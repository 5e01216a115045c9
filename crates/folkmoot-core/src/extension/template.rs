//! Templates whose output is read as the lines of `flow` (extensions.md §1).

use std::{error::Error, sync::Arc};

use minijinja::{Value as Jinja, context};

use super::{
    Parameters,
    engine::{self, Failed, environment, excess, why, words_in_tags},
    expression::Slip,
    growth,
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
        let names: usize = agents.iter().map(|agent| agent.as_str().len() + 1).sum();
        let given = (self.text.len() + names) as u64 + growth::size(params);
        if growth::factor(&words_in_tags(&self.text)).saturating_mul(given) > growth::LARGEST {
            return Err("it puts so much together that it could become too large".to_owned());
        }
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

    /// What comes of templates that are to be refused for these reasons, where it is something else. On a
    /// small stack, so that what recurses too deeply is found.
    fn not_refused<'a>(cases: impl IntoIterator<Item = (String, &'a str)>) -> Vec<String> {
        let outcome = |template: &str| {
            std::thread::scope(|scope| {
                let builder = std::thread::Builder::new().stack_size(1 << 20);
                let thread = builder.spawn_scoped(scope, || edges(template)).expect("it starts");
                thread.join().expect("it does not panic")
            })
        };
        let told = |(template, why): (String, &str)| {
            let outcome = outcome(&template);
            let is_as_wanted = outcome.as_ref().is_err_and(|told| told.contains(why));
            (!is_as_wanted).then(|| format!("{}: {outcome:?}", &template[..template.len().min(60)]))
        };
        cases.into_iter().filter_map(told).collect()
    }

    fn nested(count: usize, tag: &str, end: &str) -> String {
        format!("{}{}", tag.repeat(count), end.repeat(count))
    }

    /// A template that puts a value into another one thirty times, and then does this with it.
    fn shared(value: &str, then: &str) -> String {
        format!("{{% set x = agents %}}{}{then}", format!("{{% set x = {value} %}}").repeat(30))
    }

    #[test]
    fn what_runs_long_or_makes_much_runs_out_of_steps_or_room() {
        let doubled = "{% set x = x ~ x %}".repeat(50);
        let sliced = "{% set x = x[0:] %}".repeat(40);
        let joined = "{% set x = x + x %}".repeat(16);
        let long = "a".repeat(100);
        let cases = [
            (format!("{{% for a in range(99999) %}}{long}{{% endfor %}}"), "100000 steps"),
            (format!("{{% for a in range(1000) %}}parent -> {long}\n{{% endfor %}}"), "64 KiB"),
            ("{% for a in range(2000) %}parent -> a\n{% endfor %}".to_owned(), "1000 edges"),
            (format!("{{% set x = 'ab' %}}{doubled}"), "100000 steps"),
            (
                format!("{{% set x = agents %}}{joined}{{% for y in x %}}{{% endfor %}}"),
                "100000 steps",
            ),
            (format!("{{% set x = agents %}}{sliced}{{{{ x | length }}}}"), "invalid edge"),
            ("{{ range(10000000) | list }}".to_owned(), "too many elements"),
            ("{{ 'a' * 100000000 }}".to_owned(), "100000 steps"),
            ("{{ 'a' | indent(100000000) }}".to_owned(), ""),
            ("{{ '%1000000000d' | format(1) }}".to_owned(), ""),
            (nested(12, "{% for i in range(99) %}x", "{% endfor %}"), "100000 steps"),
        ];
        assert_eq!(not_refused(cases), [""; 0]);
    }

    #[test]
    fn what_fuel_does_not_see_is_refused_by_the_text_itself() {
        let many = |what: &str| format!("{{{{ agents{} }}}}", what.repeat(240));
        let cases = [
            (
                format!("{{% set x = 'ab' %}}{}", "{% set x = x ~ x %}".repeat(200)),
                "words and signs",
            ),
            (format!("{{% set x = [1] %}}{}", "{% set x = x + x %}".repeat(40)), "adds more than"),
            (shared("[x, x]", "{{ x }}"), "too large"),
            (shared("[x, x]", "{{ x == x }}"), "too large"),
            (shared("[x, x]", "{% for y in x %}{{ y }}{% endfor %}"), "too large"),
            (shared("(x, x)", "{{ x | string }}"), "too large"),
            (shared("x, x", "{{ x }}"), "too large"),
            (shared("{'a': x, 'b': x}", "{{ x }}"), "too large"),
            (shared("[x] * 2", "{{ x }}"), "too large"),
            ("{% set x = agents * params.n %}{{ x }}".to_owned(), "too large"),
            ("{% set x = [1] | zip([2]) %}{{ x }}".to_owned(), "filter zip is unknown"),
            (format!("{{{{ [{}] }}}}", shared("[x,x]", "")), ""),
            ("{{ [[1]] | sum(start=[]) }}".to_owned(), "filter sum is unknown"),
            ("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}".to_owned(), "recursive"),
            ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".to_owned(), "macro"),
            ("{% include 'a' %}".to_owned(), "include"),
            ("{{ debug() }}".to_owned(), "debug is unknown"),
            (nested(70, "{% for i in [1] %}", "{% endfor %}"), "recursion"),
            (nested(400, "{% if 1 %}", "{% endif %}"), "words and signs"),
            (format!("{{{{ {} }}}}", nested(30, "(", ")")), "brackets"),
            (format!("{{{{ {}1 }}}}", "not ".repeat(400)), ""),
            (many("()"), ""),
            (many(".a"), ""),
            (many(" | list"), "invalid edge"),
            ("{{ 'unclosed".to_owned(), ""),
            ("{% for".to_owned(), ""),
            ("{{ '".to_owned(), ""),
            ("{".to_owned(), "invalid edge"),
        ];
        assert_eq!(not_refused(cases), [""; 0]);
    }
}
