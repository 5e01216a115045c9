//! From team files to specs and diagnostics.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its strings so")]

mod convergence;
mod extensions;
mod files;
mod models;
mod names;
mod overrides;
mod programs;
mod properties;
mod roles;
mod schema;
mod scripts;
mod servers;
mod strategies;

use std::fmt::Write;

use expect_test::Expect;
use folkmoot_core::{
    check::{Checked, Input, Source, check},
    diagnostic::{Diagnostic, Position, Severity},
    file::{
        models::Catalog,
        overrides::{Given, Override},
    },
    money::Price,
    spec::Spec,
};

/// A machine with two providers, some aliases and one price.
fn catalog() -> Catalog {
    let price = Price::new(1.0, 4.0);
    let alias = |name: &str, chain: &[&str]| {
        (name.to_owned(), chain.iter().map(|target| (*target).to_owned()).collect())
    };
    Catalog {
        default_model: None,
        aliases: [
            alias("fast", &["openai/mini"]),
            alias("best", &["claude"]),
            alias("claude", &["anthropic/sonnet", "openai/gpt"]),
            alias("ring", &["round"]),
            alias("round", &["ring"]),
            alias("stale", &["gone/model"]),
        ]
        .into(),
        built_in: [].into(),
        programs: [].into(),
        providers: ["openai", "anthropic"].map(str::to_owned).into(),
        keys: ["OPENAI_API_KEY", "MY_KEY"].map(str::to_owned).into(),
        prices: [("openai/gpt".to_owned(), price)].into(),
        max_output_tokens: [("openai/gpt".to_owned(), 4096)].into(),
        context_windows: [("openai/gpt".to_owned(), 128_000)].into(),
    }
}

/// A check of a team, and what it may be given besides.
struct Case<'a> {
    source: Source<'a>,
    overrides: Vec<Override>,
    task: Option<&'a str>,
    catalog: Catalog,
    servers: Option<&'a str>,
    /// The `AGENTS.md` of the workspace.
    instructions: Option<&'a str>,
    /// The text of the agent file that is imported.
    imported: Option<&'a str>,
}

impl<'a> Case<'a> {
    fn new(file: &'a str) -> Case<'a> {
        Case::of(Source::File(file.as_bytes()))
    }

    fn of(source: Source<'a>) -> Case<'a> {
        let (overrides, task) = (Vec::new(), Some("the task"));
        let (servers, instructions, imported) = (None, None, None);
        Case { source, overrides, task, catalog: catalog(), servers, instructions, imported }
    }

    fn flag(self, name: &str, value: &str) -> Self {
        self.given(name, Given::Text(value.to_owned()))
    }

    fn given(mut self, name: &str, value: Given) -> Self {
        self.overrides.push(Override { name: name.to_owned(), value });
        self
    }

    fn check(&self) -> Checked {
        let checked = check(&Input {
            source: self.source,
            path: None,
            name: "unnamed",
            overrides: &self.overrides,
            task: self.task,
            catalog: &self.catalog,
            list: &|_| Err("no such folder".into()),
            around: &[],
            variable: &|name| (name == "HOST").then(|| "a: b # ${HOME}".to_owned()),
            beside: &|_, name| {
                let text = match name {
                    "AGENTS.md" => self.instructions,
                    _ => self.servers,
                };
                Ok(text.map(str::to_owned))
            },
            read: &|path| match path {
                "agent.md" if self.imported.is_some() => {
                    Ok(self.imported.unwrap_or_default().into())
                }
                "lead.md" => Ok("Lead well.\n".into()),
                "out.schema.json" => Ok("{\"type\": \"object\"}".into()),
                "list.json" => Ok("[]".into()),
                "broken.json" => Ok("{".into()),
                "odd.json" => Ok("{\"type\": \"text\"}".into()),
                _ => Err("no such file".into()),
            },
        });
        assert_eq!(checked.is_valid(), checked.spec.is_some(), "{:#?}", checked.diagnostics);
        checked
    }

    /// The spec of a sound team.
    fn spec(&self) -> Spec {
        self.check().spec.unwrap_or_else(|| panic!("refused:\n{}", self.told()))
    }

    /// Compares all that is told.
    fn tells(&self, expected: &Expect) {
        expected.assert_eq(&self.told());
    }

    /// All that is told, one finding a line.
    fn told(&self) -> String {
        let Checked { text, diagnostics, .. } = self.check();
        diagnostics.iter().map(|told| line(told, &text)).collect()
    }
}

fn line(told: &Diagnostic, text: &str) -> String {
    let severity = match told.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Hint => "hint",
    };
    let place = |offset| {
        let Position { line, column } = Position::of(text, offset);
        format!("{line}:{column}")
    };
    let at = told.at.map_or_else(|| "-".to_owned(), |at| place(at.start));
    let path = told.path.as_deref().unwrap_or("-");
    let mut line = format!("{at} {path} {severity}[{}] {}", told.code, told.message);
    for (span, what) in &told.also {
        write!(line, " | {} {what}", place(span.start)).expect("strings grow");
    }
    line.extend(told.help.as_ref().map(|help| format!(" | help: {help}")));
    line + "\n"
}
