//! The config: models, aliases, providers and prices of this machine (agents.md §1).
//!
//! The user's file, then the project's `./folkmoot.toml`, whose entries win.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use folkmoot_agents::{ProviderConfig, Providers, Secrets};
use folkmoot_core::{diagnostic::Position, file::models::Catalog, money::Price};
use serde::Deserialize;

use crate::exit::Refusal;

/// The name of a project's config, in the current directory.
const PROJECT: &str = "folkmoot.toml";

/// A config file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// What answers for agents that name no model.
    default_model: Option<String>,
    /// Names that stand for a target or a chain of them.
    aliases: BTreeMap<String, Alias>,
    /// Who serves models.
    providers: BTreeMap<String, ProviderConfig>,
    /// Prices in US dollars per million tokens, by `provider/model`.
    prices: BTreeMap<String, Price>,
    /// The most tokens one reply may have, by `provider/model`.
    max_output_tokens: BTreeMap<String, u64>,
    /// The most tokens a request and its reply may have together, by `provider/model`.
    context_windows: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "an alias stands for a target, or for a list of targets")]
enum Alias {
    One(String),
    Chain(Vec<String>),
    /// A coding agent, which this version cannot ask; teams that name it are told so.
    Program(Program),
}

/// A coding agent as an alias names it.
#[derive(Debug, Deserialize)]
struct Program {
    cli: String,
}

impl Alias {
    fn chain(&self) -> Vec<String> {
        match self {
            Alias::One(target) => vec![target.clone()],
            Alias::Chain(targets) => targets.clone(),
            Alias::Program(program) => vec![format!("the program {}", program.cli)],
        }
    }
}

impl Config {
    /// Reads the user's config and the project's.
    pub(crate) fn load() -> Result<Config, Refusal> {
        let user = home().map(|home| home.config_dir().join("config.toml"));
        let files = user.into_iter().chain([PathBuf::from(PROJECT)]);
        files
            .map(|file| Config::read(&file))
            .try_fold(Config::default(), |config, file| Ok(config.overlaid(file?)))
    }

    fn read(file: &Path) -> Result<Config, Refusal> {
        let bad = |place: &str, why: &str| {
            Refusal::new("bad_config", format!("{}{place}: {why}", file.display()))
        };
        match std::fs::read_to_string(file) {
            // The line itself is not shown, as it may hold a key.
            Ok(text) => toml::from_str(&text).map_err(|error: toml::de::Error| {
                let at = error.span().map_or(0, |span| span.start);
                let Position { line, column } = Position::of(&text, at);
                bad(&format!(":{line}:{column}"), error.message())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(bad("", &error.to_string())),
        }
    }

    fn overlaid(mut self, over: Config) -> Config {
        self.default_model = over.default_model.or(self.default_model);
        self.aliases.extend(over.aliases);
        self.providers.extend(over.providers);
        self.prices.extend(over.prices);
        self.max_output_tokens.extend(over.max_output_tokens);
        self.context_windows.extend(over.context_windows);
        self
    }

    /// The providers, with their keys from the environment.
    pub(crate) fn providers(&self) -> Providers {
        Providers::new(&self.providers, &variable)
    }

    /// The keys that the environment holds for the providers.
    pub(crate) fn secrets(&self) -> Secrets {
        let providers = self.providers();
        let variables = providers.statuses().filter_map(|status| status.key_variable.as_deref());
        let keys: Vec<String> = variables.filter_map(variable).collect();
        Secrets::new(keys.iter().map(String::as_str))
    }

    /// What team files may name.
    pub(crate) fn catalog(&self) -> Catalog {
        let providers = self.providers();
        Catalog {
            default_model: self.default_model.clone(),
            aliases: self.aliases.iter().map(|(name, it)| (name.clone(), it.chain())).collect(),
            providers: providers.statuses().map(|status| status.name.clone()).collect(),
            prices: self.prices.clone(),
            max_output_tokens: self.max_output_tokens.clone(),
            context_windows: self.context_windows.clone(),
        }
    }
}

/// A variable of the environment, if it is set to readable text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where the state lives unless a flag or variable says otherwise.
pub(crate) fn state_file() -> Result<PathBuf> {
    let home = home().context("there is no home directory; say where to keep runs with --db")?;
    let folder = home.state_dir().unwrap_or_else(|| home.data_dir());
    Ok(folder.join("folkmoot.db"))
}

fn home() -> Option<impl AppStrategy> {
    let (top_level_domain, author, app_name) =
        (String::new(), String::new(), "folkmoot".to_owned());
    choose_app_strategy(AppStrategyArgs { top_level_domain, author, app_name }).ok()
}
