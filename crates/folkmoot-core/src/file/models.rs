//! Which models there are, and what a team file's names for them mean (agents.md §1).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    diagnostic::quoted,
    loops,
    money::Price,
    names,
    team::{FIRST_TARGET, Fallback, Model, Target},
};

/// The provider that is built in, offline, and needs no key.
pub const DEMO: &str = "demo";

/// The most targets of a chain, and the most aliases that may stand for one another in a row.
const LONGEST: usize = 16;

/// How many faults are told at once; more help nobody, and each is compared with all known names.
const ENOUGH: usize = 100;

/// What is configured on this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// What answers for agents without a back-end: a name as in a team file.
    pub default_model: Option<String>,
    /// Names that stand for a target, or for a chain of them.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// Names that stand for a target unless the config says otherwise: those of well-known assistants
    /// whose provider can be asked from here.
    pub built_in: BTreeMap<String, String>,
    /// Names that stand for a coding agent, and which.
    pub programs: BTreeMap<String, Target>,
    /// The providers that can be reached, besides `demo`.
    pub providers: BTreeSet<String>,
    /// The variables that hold their keys, set or not.
    pub keys: BTreeSet<String>,
    /// Prices, where known, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// The most tokens one reply may have, where set, by `provider/model`.
    pub max_output_tokens: BTreeMap<String, u64>,
    /// The most tokens a request and its reply may have together, where set, by `provider/model`.
    pub context_windows: BTreeMap<String, u64>,
}

/// What a name means: a chain of targets, of which the first that can answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The first target.
    pub target: Target,
    /// The later ones.
    pub fallbacks: Vec<Fallback>,
}

/// Why a name means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// `unknown_model`, `unknown_provider`, `unsupported`, `alias_cycle` or `alias_too_long`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Catalog {
    /// What `name` means: `provider/model`, or an alias.
    pub fn resolve(&self, name: &str) -> Result<Resolved, Unresolved> {
        let mut chain = Vec::new();
        self.expand(name.trim(), &mut Vec::new(), &mut chain)?;
        let mut targets = (FIRST_TARGET..).zip(chain);
        let (_, target) = targets.next().ok_or_else(|| self.unknown_model(name))?;
        let fallbacks = targets.map(|(number, target)| Fallback { number, target }).collect();
        Ok(Resolved { target, fallbacks })
    }

    /// What `name` means where well-known assistants are known by their names.
    pub(crate) fn resolve_alias(&self, name: &str) -> Result<Resolved, Unresolved> {
        let name = name.trim();
        let is_own = self.aliases.contains_key(name) || self.programs.contains_key(name);
        match self.built_in.get(name).filter(|_| !is_own) {
            Some(target) => self.resolve(target),
            None => self.resolve(name),
        }
    }

    /// The target that `name` comes down to, as it is written where no alias stands for it.
    pub fn meaning<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name.trim();
        for _ in 0..LONGEST {
            let alias = self.aliases.get(name).and_then(|targets| targets.first());
            let Some(target) = alias.or_else(|| self.built_in.get(name)) else { break };
            name = target.trim();
        }
        name
    }

    /// Adds what `name` stands for to `chain`; an alias inside a chain stands for all of its own.
    fn expand<'a>(
        &'a self,
        name: &'a str,
        trail: &mut Vec<&'a str>,
        chain: &mut Vec<Target>,
    ) -> Result<(), Unresolved> {
        let Some(targets) = self.aliases.get(name) else {
            chain.push(self.link(name).map_err(|error| error.through(trail))?);
            return if chain.len() > LONGEST { Err(too_long(trail)) } else { Ok(()) };
        };
        if trail.contains(&name) {
            return Err(cycle(trail, name));
        }
        if trail.len() == LONGEST {
            return Err(too_long(trail));
        }
        trail.push(name);
        if targets.is_empty() {
            return Err(empty(name));
        }
        for target in targets {
            self.expand(target.trim(), trail, chain)?;
        }
        trail.pop();
        Ok(())
    }

    /// What is wrong with the names of the config, the first hundred faults of it, each with the alias it
    /// stands behind; none is that of `default_model`.
    pub fn faults(&self) -> Vec<(Option<&str>, Unresolved)> {
        let own = self.aliases.iter().flat_map(|(alias, targets)| {
            let targets = targets.iter().map(|target| target.trim());
            let targets = targets.filter(|it| !self.aliases.contains_key(*it));
            targets.filter_map(|it| Some((Some(alias.as_str()), self.link(it).err()?)))
        });
        let mut faults: Vec<_> = own.take(ENOUGH).collect();
        faults.extend(self.circles());
        faults.sort_by_key(|(alias, _)| *alias);
        if faults.is_empty() {
            let resolve = |alias| Some((Some(alias), self.resolve(alias).err()?));
            faults.extend(self.aliases.keys().map(String::as_str).filter_map(resolve).take(ENOUGH));
        }
        faults.truncate(ENOUGH);
        let default = self.default_model.as_deref().filter(|name| {
            let name = name.trim();
            !self.aliases.contains_key(name) && !self.programs.contains_key(name)
        });
        let unknown = default.and_then(|name| self.link(name.trim()).err());
        faults.extend(unknown.map(|unresolved| (None, unresolved)));
        faults
    }

    /// The aliases that lead to themselves. Those that all lead to one another are told of once, at the
    /// first of them.
    fn circles(&self) -> Vec<(Option<&str>, Unresolved)> {
        let names: Vec<&str> = self.aliases.keys().map(String::as_str).collect();
        let places: BTreeMap<&str, usize> = names.iter().copied().zip(0..).collect();
        let place = |target: &String| places.get(target.trim()).copied();
        let next: Vec<Vec<usize>> =
            self.aliases.values().map(|it| it.iter().filter_map(place).collect()).collect();
        let first =
            loops::in_graph(&next).into_iter().filter_map(|members| members.first().copied());
        let told = |at: usize| {
            let way: Vec<&str> = loops::way_back(&next, at).iter().map(|at| names[*at]).collect();
            (Some(names[at]), cycle(&way, names[at]))
        };
        first.take(ENOUGH).map(told).collect()
    }

    /// The target `name`, which is no alias of targets.
    fn link(&self, name: &str) -> Result<Target, Unresolved> {
        let program = self.programs.get(name);
        program.map_or_else(|| self.target(name), |it| Ok(it.clone()))
    }

    fn target(&self, name: &str) -> Result<Target, Unresolved> {
        if name == DEMO {
            return Ok(Target::Demo);
        }
        let Some((provider, model)) = name.split_once('/') else {
            return Err(self.unknown_model(name));
        };
        if model.is_empty() {
            let message = format!("{} names a provider but no model", quoted(name));
            return Err(Unresolved { code: "unknown_model", message, help: None });
        }
        if provider == DEMO {
            return Ok(Target::Demo);
        }
        if !self.providers.contains(provider) {
            return Err(self.unknown_provider(provider, name));
        }
        Ok(Target::Model(Model {
            provider: provider.into(),
            model: model.into(),
            max_output_tokens: self.max_output_tokens.get(name).copied(),
            context_window: self.context_windows.get(name).copied(),
            price: self.prices.get(name).cloned(),
        }))
    }

    fn unknown_model(&self, name: &str) -> Unresolved {
        let known = self.aliases.keys().chain(self.programs.keys()).map(String::as_str);
        let help = names::suggestion(name, known)
            .unwrap_or_else(|| "write provider/model, or an alias of the config".into());
        let message = format!("unknown model {}", quoted(name));
        Unresolved { code: "unknown_model", message, help: Some(help) }
    }

    fn unknown_provider(&self, provider: &str, name: &str) -> Unresolved {
        let known = || self.providers.iter().map(String::as_str).chain([DEMO]);
        let help = names::suggestion(provider, known())
            .unwrap_or_else(|| format!("known: {}", known().collect::<Vec<_>>().join(", ")));
        let message = format!("unknown provider {} in {}", quoted(provider), quoted(name));
        Unresolved { code: "unknown_provider", message, help: Some(help) }
    }
}

impl Unresolved {
    /// The same, said of the alias that led there.
    fn through(self, trail: &[&str]) -> Unresolved {
        match trail.first() {
            None => self,
            Some(alias) => {
                let message =
                    format!("{}, which the alias {} stands for", self.message, quoted(alias));
                Unresolved { message, ..self }
            }
        }
    }
}

fn cycle(trail: &[&str], again: &str) -> Unresolved {
    let round: Vec<&str> = trail.iter().copied().skip_while(|name| *name != again).collect();
    let more = round.len().saturating_sub(LONGEST);
    let shown = round[..round.len() - more].join(" -> ");
    let left_out = if more > 0 { format!(" -> … ({more} more)") } else { String::new() };
    let message =
        format!("the alias {} leads to itself: {shown}{left_out} -> {again}", quoted(again));
    Unresolved { code: "alias_cycle", message, help: None }
}

fn empty(alias: &str) -> Unresolved {
    let message = format!("the alias {} stands for nothing", quoted(alias));
    Unresolved { code: "unknown_model", message, help: Some("name a target".into()) }
}

fn too_long(trail: &[&str]) -> Unresolved {
    let alias = quoted(trail.first().copied().unwrap_or_default());
    let message = format!("the alias {alias} stands for more than {LONGEST} targets or aliases");
    Unresolved { code: "alias_too_long", message, help: None }
}
