//! Which models there are, and what a team file's names for them mean (agents.md §1).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    diagnostic::quoted,
    money::Price,
    names,
    team::{Model, Target},
};

/// The provider that is built in, offline, and needs no key.
pub const DEMO: &str = "demo";

/// What is configured on this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// What answers for agents without a back-end: a name as in a team file.
    pub default_model: Option<String>,
    /// Names that stand for a target, or for a chain of them.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// The providers that can be reached, besides `demo`.
    pub providers: BTreeSet<String>,
    /// Prices, where known, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// The most tokens one reply may have, where set, by `provider/model`.
    pub max_output_tokens: BTreeMap<String, u64>,
    /// The most tokens a request and its reply may have together, where set, by `provider/model`.
    pub context_windows: BTreeMap<String, u64>,
}

/// What a name means.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The target.
    pub target: Target,
    /// The alias whose later targets are left out, as failover is yet to come.
    pub shortened: Option<String>,
}

/// Why a name means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// `unknown_model`, `unknown_provider` or `alias_cycle`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Catalog {
    /// What `name` means: `provider/model`, or an alias.
    pub fn resolve(&self, name: &str) -> Result<Resolved, Unresolved> {
        let mut trail = Vec::new();
        let mut shortened = None;
        let mut name = name.trim();
        while let Some(chain) = self.aliases.get(name) {
            if trail.contains(&name) {
                return Err(cycle(&trail, name));
            }
            trail.push(name);
            if chain.len() > 1 && shortened.is_none() {
                shortened = Some(name.to_owned());
            }
            name = chain.first().map_or("", |first| first.trim());
        }
        let target = self.target(name).map_err(|error| error.through(&trail))?;
        Ok(Resolved { target, shortened })
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
            price: self.prices.get(name).copied(),
        }))
    }

    fn unknown_model(&self, name: &str) -> Unresolved {
        let help = names::suggestion(name, self.aliases.keys().map(String::as_str))
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
    let round = trail.iter().skip_while(|name| **name != again).chain([&again]);
    let message = format!(
        "the alias {} leads to itself: {}",
        quoted(again),
        round.copied().collect::<Vec<_>>().join(" -> ")
    );
    Unresolved { code: "alias_cycle", message, help: None }
}
