//! The config: models, aliases, providers and prices of this machine (agents.md §1).
//!
//! The user's file, then the project's `./folkmoot.toml`, whose entries win.

mod reading;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use etcetera::{AppStrategy, AppStrategyArgs, choose_app_strategy};
use folkmoot_agents::{ProviderConfig, Providers, Reach, Secrets};
use folkmoot_core::{
    check,
    diagnostic::Position,
    file::models::{Catalog, Unresolved},
    money::Price,
    orchestrate::Template,
    team::{Acp, Cli, CliProgram, Target},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;

use self::reading::Fault;
use crate::exit::Refusal;

/// The name of a project's config, in the current directory.
const PROJECT: &str = "folkmoot.toml";

/// The largest config that is read, in bytes (rules.md 3.9).
const MAX_BYTES: usize = 1 << 18;

/// What is configured.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// What answers for agents that name no model.
    default_model: Option<Placed<String>>,
    /// Names that stand for a target or a chain of them.
    aliases: BTreeMap<String, Placed<Alias>>,
    /// Who serves models.
    providers: BTreeMap<String, ProviderConfig>,
    prices: BTreeMap<String, Price>,
    max_output_tokens: BTreeMap<String, u64>,
    context_windows: BTreeMap<String, u64>,
    reach: Reach,
    owner: Option<String>,
    templates: BTreeMap<String, Template>,
}

/// A value, and the place where it stands.
#[derive(Debug)]
struct Placed<T> {
    value: T,
    at: usize,
    source: Arc<Source>,
}

/// The text of a config file. Places are counted in it when one is told, not for every name.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: String,
}

/// A config file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    default_model: Option<Spanned<String>>,
    aliases: BTreeMap<String, Spanned<Alias>>,
    providers: BTreeMap<String, ProviderConfig>,
    /// Prices in US dollars per million tokens, by `provider/model`.
    prices: BTreeMap<String, Price>,
    /// The most tokens one reply may have, by `provider/model`.
    max_output_tokens: BTreeMap<String, u64>,
    /// The most tokens a request and its reply may have together, by `provider/model`.
    context_windows: BTreeMap<String, u64>,
    fetch: Fetch,
    /// Whose mailboxes, boards and cards are meant.
    owner: Option<String>,
    /// What phases are delivered with.
    templates: BTreeMap<String, Template>,
}

/// What the tool `fetch` may do.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fetch {
    /// Hosts that it may reach though their addresses are private, as `host` or `host:port`.
    allow: Reach,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "an alias stands for a target, a list of targets, { cli = \"…\" } with claude, codex, gemini or opencode, or { acp = [command] }"
)]
enum Alias {
    One(String),
    Chain(Vec<String>),
    /// A coding agent on the command line.
    Program(Program),
    /// A coding agent that is talked to in the Agent Client Protocol.
    Acp(AcpProgram),
}

/// A coding agent as an alias names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    #[serde(deserialize_with = "preset")]
    cli: CliProgram,
    model: Option<Arc<str>>,
}

/// A coding agent by its command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcpProgram {
    #[serde(deserialize_with = "command")]
    acp: Vec<Arc<str>>,
}

/// A program and its arguments.
fn command<'de, D: Deserializer<'de>>(words: D) -> Result<Vec<Arc<str>>, D::Error> {
    let words = Vec::deserialize(words)?;
    if words.is_empty() { Err(D::Error::custom("a command needs a program")) } else { Ok(words) }
}

/// One that is known by name.
fn preset<'de, D: Deserializer<'de>>(name: D) -> Result<CliProgram, D::Error> {
    let name = String::deserialize(name)?;
    CliProgram::preset(&name).ok_or_else(|| D::Error::custom("no coding agent is called so"))
}

impl Alias {
    fn chain(&self) -> Option<Vec<String>> {
        match self {
            Alias::One(target) => Some(vec![target.clone()]),
            Alias::Chain(targets) => Some(targets.clone()),
            Alias::Program(_) | Alias::Acp(_) => None,
        }
    }

    fn program(&self) -> Option<Target> {
        match self {
            Alias::One(_) | Alias::Chain(_) => None,
            Alias::Program(Program { cli, model }) => {
                Some(Target::Cli(Cli { program: cli.clone(), model: model.clone() }))
            }
            Alias::Acp(AcpProgram { acp }) => Some(Target::Acp(Acp { command: acp.clone() })),
        }
    }
}

impl Config {
    /// Reads the user's config and the project's, or tells everything that is wrong with them.
    pub(crate) fn load() -> Result<Config, Refusal> {
        let (mut config, mut faults) = (Config::default(), Vec::new());
        for file in files() {
            match Config::read(&file) {
                Ok(Some(over)) => config = config.overlaid(over),
                Ok(None) => {}
                Err(told) => faults.extend(told),
            }
        }
        // In half of a config names may be missing that the other half has.
        if faults.is_empty() {
            faults = config.unknown_names();
        }
        Refusal::all(faults).map_or(Ok(config), Err)
    }

    /// Reads one file, nothing if it is not there.
    pub(crate) fn read(path: &Path) -> Result<Option<Config>, Vec<Refusal>> {
        let text = match text_of(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(vec![bad(&path.display().to_string(), &error.to_string())]),
        };
        let source = Source { path: path.to_owned(), text };
        match reading::read::<File>(&source.text) {
            Ok(file) => Ok(Some(Config::of(file, &Arc::new(source)))),
            Err(faults) => {
                let told = |Fault { span, message }| bad(&source.place(span.start), &message);
                Err(faults.into_iter().map(told).collect())
            }
        }
    }

    fn of(file: File, source: &Arc<Source>) -> Config {
        let aliases = file.aliases.into_iter().map(|(name, it)| (name, Placed::of(it, source)));
        Config {
            default_model: file.default_model.map(|it| Placed::of(it, source)),
            aliases: aliases.collect(),
            providers: file.providers,
            prices: file.prices,
            max_output_tokens: file.max_output_tokens,
            context_windows: file.context_windows,
            reach: file.fetch.allow,
            owner: file.owner,
            templates: file.templates,
        }
    }

    fn overlaid(mut self, over: Config) -> Config {
        self.default_model = over.default_model.or(self.default_model);
        self.aliases.extend(over.aliases);
        self.providers.extend(over.providers);
        self.prices.extend(over.prices);
        self.max_output_tokens.extend(over.max_output_tokens);
        self.context_windows.extend(over.context_windows);
        self.reach.extend(over.reach);
        self.templates.extend(over.templates);
        self.owner = over.owner.or(self.owner.take());
        self
    }

    /// The names that mean nothing.
    fn unknown_names(&self) -> Vec<Refusal> {
        let catalog = self.catalog();
        let told = |(alias, unresolved): (Option<&str>, Unresolved)| {
            let Unresolved { message, help, .. } = unresolved;
            let alias = alias.and_then(|alias| Some(self.aliases.get(alias)?.place()));
            let default = || self.default_model.as_ref().map(Placed::place);
            let place = alias.or_else(default).unwrap_or_default();
            Refusal { help, ..bad(&place, &message) }
        };
        catalog.faults().into_iter().map(told).collect()
    }

    /// Whose mailboxes and boards are meant, if that is said.
    pub(crate) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// What a phase is delivered with, by its name; one template is built in.
    pub(crate) fn template(&self, name: &str) -> Option<Template> {
        let built_in = || {
            let target = self.default_model.as_ref().map(|it| it.value.as_str());
            (name == Template::BUILT_IN).then(|| Template::built_in(target))
        };
        self.templates.get(name).cloned().or_else(built_in)
    }

    /// The names of the templates.
    pub(crate) fn templates(&self) -> Vec<String> {
        let built_in = [Template::BUILT_IN.to_owned()];
        let own = self.templates.keys().filter(|name| *name != Template::BUILT_IN).cloned();
        built_in.into_iter().chain(own).collect()
    }

    /// The hosts that pages may be fetched from though their addresses are private.
    pub(crate) fn reach(&self) -> Reach {
        self.reach.clone()
    }

    /// The providers, with their keys from the environment.
    pub(crate) fn providers(&self) -> Providers {
        Providers::new(&self.providers, &variable)
    }

    /// Whether a provider has an entry of its own.
    pub(crate) fn has_provider(&self, name: &str) -> bool {
        self.providers.contains_key(name)
    }

    /// The keys that the environment holds for the providers, and what else in it is secret by its name.
    pub(crate) fn secrets(&self) -> Secrets {
        let providers = self.providers();
        let variables = providers.statuses().filter_map(|status| status.key_variable.as_deref());
        let keys: Vec<String> = variables.filter_map(variable).collect();
        let around: Vec<(String, String)> = environment().collect();
        let others = secret_values(around.iter().map(|(name, value)| (&**name, &**value)));
        Secrets::new(keys.iter().map(String::as_str).chain(others))
    }

    /// What team files may name.
    pub(crate) fn catalog(&self) -> Catalog {
        let providers = self.providers();
        let chain = |(name, it): (&String, &Placed<Alias>)| Some((name.clone(), it.value.chain()?));
        let program =
            |(name, it): (&String, &Placed<Alias>)| Some((name.clone(), it.value.program()?));
        Catalog {
            default_model: self.default_model.as_ref().map(|it| it.value.clone()),
            aliases: self.aliases.iter().filter_map(chain).collect(),
            built_in: built_in(&providers),
            programs: self.aliases.iter().filter_map(program).collect(),
            providers: providers.statuses().map(|status| status.name.clone()).collect(),
            keys: providers.key_variables().collect(),
            prices: self.prices.clone(),
            max_output_tokens: self.max_output_tokens.clone(),
            context_windows: self.context_windows.clone(),
        }
    }
}

/// What well-known assistants are called, and the model of their provider that stands for each.
const ASSISTANTS: [(&str, &str); 3] = [
    ("codex", "openai/gpt-5"),
    ("claude", "anthropic/claude-sonnet-4-5"),
    ("gemini", "gemini/gemini-2.5-pro"),
];

/// Those whose provider can be asked.
fn built_in(providers: &Providers) -> BTreeMap<String, String> {
    let is_usable = |target: &str| {
        let provider = target.split_once('/').map_or(target, |(provider, _)| provider);
        providers.check(provider).is_ok()
    };
    let known = ASSISTANTS.into_iter().filter(|(_, target)| is_usable(target));
    known.map(|(name, target)| (name.to_owned(), target.to_owned())).collect()
}

impl<T> Placed<T> {
    fn of(value: Spanned<T>, source: &Arc<Source>) -> Placed<T> {
        let at = value.span().start;
        Placed { value: value.into_inner(), at, source: source.clone() }
    }

    fn place(&self) -> String {
        self.source.place(self.at)
    }
}

impl Source {
    /// The place of a byte: `folkmoot.toml:3:9`.
    fn place(&self, at: usize) -> String {
        let Position { line, column } = Position::of(&self.text, at);
        format!("{}:{line}:{column}", self.path.display())
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(io::Error::other("it is larger than 256 KiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn bad(place: &str, why: &str) -> Refusal {
    Refusal::new("bad_config", format!("{place}: {why}"))
}

/// The config files, whether they are there or not; the entries of later ones win.
pub(crate) fn files() -> impl Iterator<Item = PathBuf> {
    let user = home().map(|home| home.config_dir().join("config.toml"));
    user.into_iter().chain([PathBuf::from(PROJECT)])
}

/// A variable of the environment, if it is set to readable text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The environment, as far as it is readable text.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    let readable = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(readable)
}

/// The values of those variables that are secret, as far as they can be told from other text: the path of
/// something that is there is none.
pub(crate) fn secret_values<'a>(
    variables: impl Iterator<Item = (&'a str, &'a str)>,
) -> impl Iterator<Item = &'a str> {
    let secret = variables.filter(|(name, value)| check::is_secret(name) && check::tells(value));
    secret.map(|(_, value)| value).filter(|value| !Path::new(value).exists())
}

/// Where the state lives unless a flag or variable says otherwise.
pub(crate) fn state_file() -> Result<PathBuf> {
    let home = home().context("there is no home directory; say where to keep runs with --db")?;
    let folder = home.state_dir().unwrap_or_else(|| home.data_dir());
    Ok(folder.join("folkmoot.db"))
}

/// The home directory of the user.
pub(crate) fn home_dir() -> Option<PathBuf> {
    home().map(|home| home.home_dir().to_owned())
}

fn home() -> Option<impl AppStrategy> {
    let (top_level_domain, author, app_name) =
        (String::new(), String::new(), "folkmoot".to_owned());
    choose_app_strategy(AppStrategyArgs { top_level_domain, author, app_name }).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFIG: &str = r#"default_model = 'a/b' # the usual one

[aliases]
fast = "a/b"
best = ['x/y', 'a/b']
"代码" = { cli = "codex" }
[providers.a]
protocol = 'gemini'
headers = { X-A = """b
""" }
stream_usage = false
[prices.'a/b']
input = 0.5
output = 1e3
[max_output_tokens]
'a/b' = 0x1F
"#;

    /// Reads a config, or checks that its faults have a place in it.
    fn survives(text: &str) -> bool {
        let read = reading::read::<File>(text);
        for Fault { span, message } in read.as_ref().err().into_iter().flatten() {
            assert!(text.get(span.clone()).is_some(), "{message} in {text:?}");
            assert!(!message.is_empty(), "{text:?}");
        }
        read.is_ok()
    }

    #[test]
    fn the_config_that_is_mutated_is_sound() {
        assert!(survives(CONFIG));
    }

    #[test]
    fn hostile_configs_are_refused_at_once() {
        for unit in ["[", "a.", "a=[", "a={b=", "[[a]]\n", "\"", "a='b'\n", "[a.b]\n", "'''"] {
            assert!(!survives(&unit.repeat(MAX_BYTES / unit.len())), "{unit}");
        }
        let many = |value: &str| -> String {
            let lines = (0..MAX_BYTES / 16).map(|n| format!("a{n} = {value}\n"));
            ["[aliases]\n".to_owned()].into_iter().chain(lines).collect()
        };
        assert!(survives(&many("'b'")));
        assert!(!survives(&many("3")));
    }

    proptest! {
        #[test]
        fn a_config_with_a_part_replaced_is_survived(
            at in 0..CONFIG.len(),
            length in 0..20_usize,
            piece in prop_oneof![
                "[\\[\\]{}=.,\"'#\n\r ]{0,4}",
                "\\PC{0,3}",
                "-?[0-9]{1,25}(e[0-9]{1,4})?",
            ],
        ) {
            let at = CONFIG.floor_char_boundary(at);
            let end = CONFIG.ceil_char_boundary((at + length).min(CONFIG.len()));
            survives(&[&CONFIG[..at], &piece, &CONFIG[end..]].concat());
        }
    }
}
