//! What topologies, conditions and programs there are, by name (extensions.md §5).

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Expression, Parameters};
use crate::{
    programs::{
        Coded,
        graph::{BuiltIn, Facts, TOPOLOGIES, Topology},
    },
    scope::Program,
    spec::{Collaboration, Spec},
};

/// The topologies, conditions and programs that a team file can name. What is always there is in it from the
/// beginning; whatever is added must have a name of its own.
#[derive(Clone, Debug)]
pub struct Registry {
    topologies: BTreeMap<Arc<str>, Topology>,
    conditions: BTreeMap<Arc<str>, Kind>,
    programs: BTreeMap<Arc<str>, Arc<dyn Program>>,
}

/// A kind of condition.
#[derive(Clone, Debug)]
pub struct Kind {
    /// When it holds.
    pub rule: Rule,
    /// The parameters that are what they are unless given.
    pub params: Parameters,
    /// Whether it ends a run without success.
    pub bound: bool,
    /// What prompts and reports say of it.
    pub describe: Option<Arc<str>>,
}

/// When a condition of one's own holds: a pure function of what was delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// When an expression is true; its text stands in the log.
    Expr(Expression),
    /// When a function says so, which a log knows by the name of its condition alone.
    Code(Code),
}

/// A function of what was delivered, and parameters.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Code {
    #[serde(skip)]
    function: Option<Arc<Function>>,
}

type Function = dyn Fn(&Facts, &Parameters) -> bool + Send + Sync;

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Something has it already.
    #[error("the name {0} is taken")]
    Taken(Arc<str>),
    /// It cannot be written everywhere.
    #[error(
        "{0} is no name: letters, digits, hyphens and underscores are allowed, and a letter comes first"
    )]
    Malformed(Arc<str>),
}

/// What no condition can be called: the built-in kinds, what stands beside them, and the reasons for
/// which runs end.
const TAKEN: [&str; 28] = [
    "max_iterations",
    "loop",
    "timeout_ms",
    "converged",
    "result_matches",
    "stuck",
    "any_of",
    "all_of",
    "result_match",
    "timeout",
    "completed",
    "error",
    "failed",
    "expr",
    "max_steps",
    "calls",
    "tokens",
    "cost",
    "deadline",
    "cancelled",
    "findings",
    "no_material_findings",
    "oscillation",
    "plateau",
    "no_answer",
    "needs_input",
    "budget_exhausted",
    "bound_reached",
];

/// How long a name may be, in characters.
const LONGEST_NAME: usize = 64;

impl Default for Registry {
    fn default() -> Registry {
        let named = |(name, edges): (&str, BuiltIn)| {
            (Arc::from(name), Topology::new(move |agents, _| Ok(edges(agents))))
        };
        let topologies = TOPOLOGIES.into_iter().map(named).collect();
        Registry { topologies, conditions: BTreeMap::new(), programs: BTreeMap::new() }
    }
}

impl Registry {
    /// Adds a topology.
    pub fn topology(&mut self, name: &str, topology: Topology) -> Result<(), Refused> {
        let name = checked(name, self.topologies.contains_key(name))?;
        self.topologies.insert(name, topology);
        Ok(())
    }

    /// Adds a kind of condition.
    pub fn condition(&mut self, name: &str, kind: Kind) -> Result<(), Refused> {
        let is_taken = TAKEN.contains(&name) || self.conditions.contains_key(name);
        let name = checked(name, is_taken)?;
        self.conditions.insert(name, kind);
        Ok(())
    }

    /// Adds a program.
    pub fn program(&mut self, name: &str, program: impl Program + 'static) -> Result<(), Refused> {
        let name = checked(name, self.programs.contains_key(name))?;
        self.programs.insert(name, Arc::new(program));
        Ok(())
    }

    /// Gives what is code in a spec, conditions and programs, its functions, which no log holds.
    pub fn bind(&self, spec: &mut Spec) {
        if let Collaboration::Coded(coded) = &mut spec.collaboration {
            coded.program = self.programs.get(&coded.name).cloned();
        }
        let members = spec.team.agents.iter_mut().chain(&mut spec.team.staff);
        for nested in members.filter_map(crate::team::Agent::team_mut) {
            self.bind(&mut nested.spec);
        }
        for own in spec.collaboration.own_conditions_mut() {
            if let (Rule::Code(code), Some(kind)) = (&mut own.rule, self.conditions.get(&own.name))
                && let Rule::Code(known) = &kind.rule
            {
                *code = known.clone();
            }
        }
    }

    /// The topologies by name.
    pub(crate) fn topologies(&self) -> &BTreeMap<Arc<str>, Topology> {
        &self.topologies
    }

    /// The program of a name.
    pub(crate) fn coded(&self, name: &str) -> Option<Coded> {
        let (name, program) = self.programs.get_key_value(name)?;
        Some(Coded { name: name.clone(), program: Some(program.clone()) })
    }

    /// The names of the programs.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(|name| &**name)
    }

    /// The names of the parameters of topologies.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Arc<str>> {
        let topologies = self.topologies.values();
        topologies.flat_map(|topology| topology.params.keys()).map(|name| name.as_str().into())
    }

    /// The kinds of conditions by name.
    pub(crate) fn conditions(&self) -> &BTreeMap<Arc<str>, Kind> {
        &self.conditions
    }
}

fn checked(name: &str, is_taken: bool) -> Result<Arc<str>, Refused> {
    if is_taken {
        return Err(Refused::Taken(name.into()));
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let begins = name.starts_with(char::is_alphabetic);
    if !begins || !name.chars().all(is_part) || name.chars().count() > LONGEST_NAME {
        return Err(Refused::Malformed(name.into()));
    }
    Ok(name.into())
}

impl Kind {
    /// A kind of condition that holds when a function says so.
    pub fn new(function: impl Fn(&Facts, &Parameters) -> bool + Send + Sync + 'static) -> Kind {
        let rule = Rule::Code(Code { function: Some(Arc::new(function)) });
        Kind { rule, params: Parameters::new(), bound: false, describe: None }
    }
}

impl Rule {
    /// Whether it holds; an error says why that cannot be told.
    pub(crate) fn holds(&self, facts: &Facts, params: &Parameters) -> Result<bool, String> {
        match self {
            Rule::Expr(expression) => expression.holds(facts, params),
            Rule::Code(Code { function: Some(function) }) => Ok(function(facts, params)),
            Rule::Code(Code { function: None }) => Err("its code is not here".to_owned()),
        }
    }

    /// Whether it is code that is not here, as in a spec that was read from a log.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Rule::Code(Code { function: None }))
    }

    /// Whether it may ask what the run has used.
    pub(crate) fn asks_for_usage(&self) -> bool {
        match self {
            Rule::Expr(expression) => expression.asks_for_usage(),
            Rule::Code(_) => true,
        }
    }
}

impl PartialEq for Code {
    /// Functions are known by the names of their conditions.
    fn eq(&self, _: &Code) -> bool {
        true
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("code")
    }
}
