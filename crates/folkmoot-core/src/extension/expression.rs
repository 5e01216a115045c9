//! Expressions that are true or false (extensions.md §2).

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, OnceLock},
};

use minijinja::{
    Value as Jinja, context,
    value::{Enumerator, Object, ValueKind},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    Parameters,
    engine::{self, FILTERS, TESTS, Word, environment, excess, why, words},
    kinds::mismatches,
};
use crate::{diagnostic::quoted, names, programs::graph::Facts, verdict::Review};

/// The variables of an expression.
const VARIABLES: [&str; 10] = [
    "params",
    "replies",
    "last",
    "verdict",
    "score",
    "round",
    "steps",
    "elapsed_ms",
    "usage",
    "task",
];

/// The variables that hold something of each agent.
const BY_AGENT: [&str; 4] = ["replies", "last", "verdict", "score"];

/// An expression over everything delivered so far, which is true or false.
#[derive(Clone, Default)]
pub struct Expression {
    text: Arc<str>,
    compiled: OnceLock<Result<Arc<Compiled>, Slip>>,
}

struct Compiled {
    expression: minijinja::Expression<'static, 'static>,
    /// What it looks up: `round`, `last`, `last.coder`.
    names: BTreeSet<String>,
}

/// What is wrong in an expression, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// What is wrong.
    pub why: String,
    /// The byte of the text at which it stands.
    pub at: usize,
    /// What would be right.
    pub help: Option<String>,
}

impl Slip {
    fn new(at: usize, why: String) -> Slip {
        Slip { why, at, help: None }
    }
}

impl Expression {
    /// An expression of this text.
    pub fn new(text: impl Into<Arc<str>>) -> Expression {
        Expression { text: text.into(), compiled: OnceLock::new() }
    }

    /// The expression as its author wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn compiled(&self) -> Result<&Compiled, &Slip> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).map(Arc::new));
        compiled.as_deref()
    }

    /// What its text alone shows to be wrong: its syntax, filters and tests that do not exist, and
    /// variables and agents other than these.
    pub fn slips(&self, agents: &[&str]) -> Vec<Slip> {
        let compiled = match self.compiled() {
            Ok(compiled) => compiled,
            Err(slip) => return vec![slip.clone()],
        };
        let words = words(&self.text);
        let mut slips: Vec<Slip> = (0..words.len()).filter_map(|at| unknown(&words, at)).collect();
        let place = |name: &str| {
            let mut named = words.iter().filter(|word| word.text == name);
            named.next().map_or(0, |word| word.at)
        };
        for [root, open, part] in words.array_windows() {
            let name = part.text.trim_matches(['"', '\'']);
            let is_agent = BY_AGENT.contains(&root.text) && open.text == "[";
            if is_agent && name.len() + 2 == part.text.len() && !agents.contains(&name) {
                let help = names::suggestion(name, agents.iter().copied());
                let why = format!("there is no agent {}", quoted(name));
                slips.push(Slip { help, ..Slip::new(part.at, why) });
            }
        }
        for name in &compiled.names {
            let mut parts = name.split('.');
            let (root, part) = (parts.next().unwrap_or_default(), parts.next());
            if !VARIABLES.contains(&root) {
                if root != "range" && root != "fail" {
                    let help = names::suggestion(root, VARIABLES);
                    let why = format!("there is no variable {root}");
                    slips.push(Slip { help, ..Slip::new(place(root), why) });
                }
                continue;
            }
            let known = match root {
                root if BY_AGENT.contains(&root) => agents,
                "usage" => &["tokens", "calls"],
                _ => continue,
            };
            if let Some(part) = part.filter(|part| !known.contains(part)) {
                let what = if root == "usage" { "there is no" } else { "there is no agent" };
                let shown =
                    if root == "usage" { format!("usage.{part}") } else { format!("\"{part}\"") };
                let help = names::suggestion(part, known.iter().copied());
                slips.push(Slip { help, ..Slip::new(place(part), format!("{what} {shown}")) });
            }
        }
        slips.extend(mismatches(&words));
        slips
    }

    /// The parameters that it mentions by name.
    pub fn parameters(&self) -> BTreeSet<String> {
        let names = self.compiled().map(|compiled| compiled.names.clone()).unwrap_or_default();
        let mentioned = names.iter().filter_map(|name| name.strip_prefix("params."));
        mentioned.map(|name| name.split('.').next().unwrap_or(name).to_owned()).collect()
    }

    /// Whether it asks what the run has used.
    pub(crate) fn asks_for_usage(&self) -> bool {
        self.compiled().is_ok_and(|it| it.names.iter().any(|name| name.starts_with("usage")))
    }

    /// Whether it holds; an error says why that cannot be told.
    pub fn holds(&self, facts: &Facts, params: &Parameters) -> Result<bool, String> {
        let compiled = self.compiled().map_err(|slip| slip.why.clone())?;
        let by_agent = |what| {
            let facts = facts.clone();
            Jinja::from_object(ByAgent { facts, what })
        };
        let usage = context! { tokens => facts.usage.tokens, calls => facts.usage.calls };
        let given = context! {
            params => engine::params(params),
            replies => by_agent(What::Replies),
            last => by_agent(What::Last),
            verdict => by_agent(What::Verdict),
            score => by_agent(What::Score),
            round => facts.round,
            steps => facts.steps,
            elapsed_ms => facts.elapsed.as_millis(),
            usage => usage,
            task => Jinja::from(facts.task.clone()),
        };
        let found = compiled.expression.eval(given).map_err(|error| why(&error, &self.text))?;
        match (found.kind(), found.is_true()) {
            (ValueKind::Bool, holds) => Ok(holds),
            (ValueKind::Undefined, _) => Err("a value is not there".to_owned()),
            (kind, _) => Err(format!("{NO_TRUTH} {kind}")),
        }
    }
}

/// How it is said that an expression is neither true nor false.
pub(crate) const NO_TRUTH: &str = "it must give true or false; it gives a value of type";

fn compile(text: &Arc<str>) -> Result<Compiled, Slip> {
    if let Some(excess) = excess(&words(text)) {
        return Err(Slip::new(0, excess));
    }
    let expression = environment().compile_expression_owned(text.to_string()).map_err(|error| {
        let at = error.range().map_or(0, |range| range.start);
        let help = unwritable(&words(text));
        Slip { help, ..Slip::new(at, why(&error, text)) }
    })?;
    let names = expression.undeclared_variables(true).into_iter().collect();
    Ok(Compiled { expression, names })
}

/// How the first agent is to be written whose id is no identifier.
fn unwritable(words: &[Word]) -> Option<String> {
    words.array_windows().find_map(|[root, dot, part]| {
        let is_agent = BY_AGENT.contains(&root.text) && dot.text == "." && is_name(part.text);
        (is_agent && !part.text.is_ascii())
            .then(|| format!("write {}[\"{}\"]", root.text, part.text))
    })
}

/// The filter or test named by the word at `at`, if there is none of that name.
fn unknown(words: &[Word], at: usize) -> Option<Slip> {
    let before = |back| at.checked_sub(back).map(|at| words[at].text);
    let (what, known) = match (before(2), before(1)?) {
        (_, "|") => ("filter", FILTERS),
        (_, "is") | (Some("is"), "not") => ("test", TESTS),
        _ => return None,
    };
    let Word { at, text } = words[at];
    let is_unknown = is_name(text) && text != "not" && !known.contains(&text);
    is_unknown.then(|| {
        let help = names::suggestion(text, known.iter().copied());
        Slip { help, ..Slip::new(at, format!("there is no {what} {text}")) }
    })
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Something of each agent, looked up when it is asked for.
#[derive(Debug)]
struct ByAgent {
    facts: Facts,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Replies,
    Last,
    Verdict,
    Score,
}

impl Object for ByAgent {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        let agent = key.as_str()?.into();
        let facts = &self.facts;
        let mut replies = facts.replies(&agent)?;
        let found = match self.what {
            What::Replies => {
                replies.map(|reply| Jinja::from(reply.text.clone())).collect::<Vec<_>>().into()
            }
            What::Last => {
                let last = replies.next_back();
                last.map_or_else(|| Jinja::from(""), |reply| Jinja::from(reply.text.clone()))
            }
            What::Verdict => Jinja::from(facts.verdict(&agent).map(Review::as_str)),
            What::Score => Jinja::from(facts.score(&agent)),
        };
        Some(found)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let agents = self.facts.agents();
        Enumerator::Values(agents.map(|agent| Jinja::from(agent.as_str())).collect())
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expression, D::Error> {
        Ok(Expression::new(Arc::<str>::deserialize(deserializer)?))
    }
}
