use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Result;
use clap::Args;
use folkmoot_agents::{Agents, Installed, ProviderStatus, Providers, installed, unenforceable};
use folkmoot_core::{
    file::models::{Catalog, Resolved},
    team::{CliProgram, Target},
};
use folkmoot_runtime::{refusals::ELSEWHERE, store::SqliteStore, told};
use serde_json::{Value, json};

use super::models;
use crate::{
    app::{self, App},
    config::{self, Config},
    exit::{Exit, Refusal},
    terminal::checkup::{self, Finding, State},
};

/// How long a provider may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Room on the disk below which runs will soon not be kept, in bytes.
const LITTLE_ROOM: u64 = 256 << 20;

/// When this was written, in microseconds since 1970; no clock can be right that says an earlier time.
const WRITTEN: u64 = 1_735_689_600_000_000;

/// Examines this machine: what is there, what is missing, and the way out.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Asks the providers that can be used whether they answer; otherwise nothing leaves the machine
    #[arg(long)]
    online: bool,
}

impl Doctor {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let mut findings = configs();
        let unreadable = findings.iter().any(|finding| finding.state == State::Bad);
        let default = Config::default();
        let config = match app.config() {
            Ok(config) => config,
            Err(refusal) => {
                // What is wrong inside a file was told of with the file.
                findings.extend(refusal.each().filter(|_| !unreadable).map(broken));
                &default
            }
        };
        let providers = config.providers();
        findings.push(state(app).await);
        findings.extend(self.providers(config, &providers).await);
        findings.extend(names(&config.catalog(), &providers));
        findings.extend(coding_agents().await);
        findings.extend([git(), locale(), clock()]);

        let is_ready = findings.iter().all(|finding| finding.state != State::Bad);
        if app.wants_json() {
            let providers: Vec<Value> = providers.statuses().map(models::provider).collect();
            app.print_json(
                &json!({ "ready": is_ready, "checks": findings, "providers": providers }),
            );
        } else {
            app.print(&checkup::page(&app.page(), &findings));
        }
        Ok(if is_ready { Exit::DONE } else { Exit::FAILED })
    }

    /// The providers that somebody cared for, each by itself; the others together.
    async fn providers(&self, config: &Config, providers: &Providers) -> Vec<Finding> {
        let bare = Providers::new(&std::collections::BTreeMap::new(), &|_| None);
        let is_as_ever = |status: &ProviderStatus| {
            let is_same =
                |it: &ProviderStatus| it.name == status.name && it.base_url == status.base_url;
            let has_key = status.key_variable.as_deref().and_then(config::variable).is_some();
            !has_key && !config.has_provider(&status.name) && bare.statuses().any(is_same)
        };
        let (others, own): (Vec<_>, Vec<_>) = providers.statuses().partition(|it| is_as_ever(it));
        let (local, keyless): (Vec<_>, Vec<_>) = others.into_iter().partition(|it| it.is_usable());
        let asked: Vec<_> = own.iter().chain(&local).filter(|it| it.is_usable()).collect();
        let answers = if self.online { ask(config, &asked).await } else { Vec::new() };
        let answer = |status: &ProviderStatus| {
            let answer = answers.iter().find(|(name, _)| *name == status.name);
            answer.map(|(_, answer)| answer.clone())
        };
        let mut findings: Vec<Finding> =
            own.iter().map(|status| provider(status, answer(status))).collect();
        let (running, silent): (Vec<_>, Vec<_>) =
            local.into_iter().partition(|status| matches!(answer(status), Some(Ok(()))));
        findings.extend(running.iter().map(|status| provider(status, answer(status))));
        if !silent.is_empty() {
            let names = listed(&silent);
            let finding = if self.online {
                Finding::missing("provider", format!("not running on this machine: {names}"))
            } else {
                Finding::missing("provider", format!("on this machine, if they run: {names}"))
                    .help("`folkmoot doctor --online` asks them".to_owned())
            };
            findings.push(finding);
        }
        if !keyless.is_empty() {
            let message = format!("without a key: {}", listed(&keyless));
            let variable = keyless.iter().find_map(|status| status.key_variable.as_deref());
            let help = variable.map(|variable| {
                format!(
                    "set its variable, for example {variable}; `folkmoot models` names them all"
                )
            });
            findings.push(Finding::missing("provider", message).help(help));
        }
        findings
    }
}

fn listed(statuses: &[&ProviderStatus]) -> String {
    statuses.iter().map(|status| &*status.name).collect::<Vec<_>>().join(", ")
}

/// The config files: read, broken, or not there.
fn configs() -> Vec<Finding> {
    let look = |file: std::path::PathBuf| match Config::read(&file) {
        Ok(Some(_)) => vec![Finding::ok("config", file.display().to_string())],
        Ok(None) => vec![Finding::missing("config", format!("no {}", file.display()))],
        Err(faults) => faults.iter().map(broken).collect(),
    };
    config::files().flat_map(look).collect()
}

fn broken(refusal: &Refusal) -> Finding {
    Finding::bad("config", &refusal.message).help(refusal.help.clone())
}

/// Whether runs can be kept. Like every command that needs it, this makes the file if there is none.
async fn state(app: &App) -> Finding {
    let file = match app.state_file() {
        Ok(file) => file,
        Err(error) => return Finding::bad("state", error.to_string()).help(ELSEWHERE.to_owned()),
    };
    let proved = match SqliteStore::open(&file) {
        Ok(store) => store.check_writable().await.map(|()| store.path().to_owned()),
        Err(error) => Err(error),
    };
    match proved {
        Ok(path) => room(&path),
        Err(error) => Finding::bad("state", error.to_string()).help(ELSEWHERE.to_owned()),
    }
}

/// How much room there is for the file.
fn room(path: &Path) -> Finding {
    let shown = path.display();
    match free_bytes(path) {
        Some(free) if free < LITTLE_ROOM => {
            let message = format!("{shown}, but only {} MB are free", free >> 20);
            Finding::missing("state", message).help("make room on its disk".to_owned())
        }
        Some(free) => Finding::ok(
            "state",
            format!("{shown}, {:.1} GB free", free as f64 / f64::from(1 << 30)),
        ),
        None => Finding::ok("state", shown.to_string()),
    }
}

#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// A provider by itself: whether it can be used, and what it said if it was asked.
fn provider(status: &ProviderStatus, answer: Option<std::result::Result<(), String>>) -> Finding {
    let ProviderStatus { name, protocol, base_url, key_variable, why_not } = status;
    if let Some(why) = why_not {
        let help = key_variable
            .as_ref()
            .map(|variable| format!("set {variable}, or mend [providers.{name}] in the config"));
        return Finding::missing("provider", why).help(help);
    }
    let key = match key_variable.as_deref().filter(|it| config::variable(it).is_some()) {
        Some(variable) => format!("key in {variable}"),
        None => "no key".to_owned(),
    };
    let address = base_url.as_deref().unwrap_or_default();
    let message = format!("{name}: {protocol} at {address}, {key}");
    match answer {
        None => Finding::ok("provider", message),
        Some(Ok(())) => Finding::ok("provider", format!("{message}, answers")),
        Some(Err(why)) => Finding::bad("provider", format!("{message}: {why}")).help(format!(
            "see its address and key: [providers.{name}] in the config, and the environment"
        )),
    }
}

/// Asks them all at once.
async fn ask(
    config: &Config,
    asked: &[&&ProviderStatus],
) -> Vec<(String, std::result::Result<(), String>)> {
    let agents = std::sync::Arc::new(Agents::new(config.providers()));
    let mut jobs = tokio::task::JoinSet::new();
    for name in asked.iter().map(|status| status.name.clone()) {
        let agents = agents.clone();
        jobs.spawn(async move {
            let answer = tokio::time::timeout(PATIENCE, agents.probe(&name)).await;
            let late = || Err(format!("it does not answer within {} s", PATIENCE.as_secs()));
            let answer = answer.unwrap_or_else(|_| late());
            (name, answer)
        });
    }
    jobs.join_all().await
}

/// The default model, and what the aliases stand for.
fn names(catalog: &Catalog, providers: &Providers) -> Vec<Finding> {
    let default = match &catalog.default_model {
        None => Finding::missing("model", "no default_model").help(
            "set default_model in folkmoot.toml, or name models in team files; --demo needs none"
                .to_owned(),
        ),
        Some(name) => match askable_chain(catalog, providers, name) {
            Ok(chain) if chain == *name => Finding::ok("model", format!("default_model {name}")),
            Ok(chain) => Finding::ok("model", format!("default_model {name}: {chain}")),
            Err(why) => Finding::bad("model", format!("default_model {name}: {why}"))
                .help("set the key, or choose another default_model".to_owned()),
        },
    };
    let names = catalog.aliases.keys().chain(catalog.programs.keys());
    let aliases = names.map(|alias| match askable_chain(catalog, providers, alias) {
        Ok(chain) => Finding::ok("alias", format!("{alias}: {chain}")),
        Err(why) => Finding::missing("alias", format!("{alias}: {why}")),
    });
    std::iter::once(default).chain(aliases).collect()
}

/// The chain that `name` stands for, or why it cannot be asked.
fn askable_chain(
    catalog: &Catalog,
    providers: &Providers,
    name: &str,
) -> std::result::Result<String, String> {
    let Resolved { target, fallbacks } =
        catalog.resolve(name).map_err(|unresolved| unresolved.message)?;
    if let Some(lack) = providers.lack(&target) {
        return Err(lack);
    }
    let label = |target: &Target| target.label().unwrap_or_default();
    let later = fallbacks.iter().map(|it| match providers.lack(&it.target) {
        None => label(&it.target),
        Some(why) => format!("({}: {why})", label(&it.target)),
    });
    Ok(std::iter::once(label(&target)).chain(later).collect::<Vec<_>>().join(" → "))
}

fn git() -> Finding {
    let asked = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            Finding::ok("git", String::from_utf8_lossy(&output.stdout).trim())
        }
        Ok(_) | Err(_) => Finding::missing(
            "git",
            "git cannot be run: no files are saved before agents change them",
        ),
    }
}

/// The coding agents that are installed, each by itself, and to what they can be held.
async fn coding_agents() -> Vec<Finding> {
    let ours = config::environment().collect();
    let there = installed(&ours).await;
    if there.is_empty() {
        let names = CliProgram::PRESETS.map(|(name, _)| name);
        let message = format!("none of {} is in PATH", names.join(", "));
        let help = "only teams that name one with `cli:` or `acp:` need it".to_owned();
        return vec![Finding::missing("agents", message).help(help)];
    }
    let levels = match unenforceable() {
        None => "at read-only, write and full".to_owned(),
        Some(_) => "at full only".to_owned(),
    };
    there.iter().map(|agent| coding_agent(agent, &levels)).collect()
}

fn coding_agent(agent: &Installed, levels: &str) -> Finding {
    let Installed { name, version, login } = agent;
    let version = version.as_deref().unwrap_or("does not tell its version");
    if let Some(login) = login {
        return Finding::ok("agents", format!("{name} {version}, login in {login}, {levels}"));
    }
    let by = name.trim_end_matches("-acp").trim_end_matches("-code");
    Finding::missing("agents", format!("{name} {version}, no login found, {levels}"))
        .help(format!("log in with `{by}`, unless it keeps its login elsewhere"))
}

/// Whether the terminal shows every script; on other systems than Unix it does.
fn locale() -> Finding {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| {
        let value = config::variable(name).filter(|value| !value.is_empty())?;
        Some((*name, value))
    });
    match set {
        Some((name, value)) => {
            let plain = value.to_lowercase().replace('-', "");
            if plain.contains("utf8") {
                Finding::ok("terminal", format!("{name}={value}"))
            } else {
                let message = format!("{name}={value} is not UTF-8: some text may look wrong");
                Finding::missing("terminal", message)
                    .help("set LANG, for example to C.UTF-8".to_owned())
            }
        }
        None if cfg!(unix) => {
            Finding::missing("terminal", "no locale is set: some text may look wrong")
                .help("set LANG, for example to C.UTF-8".to_owned())
        }
        None => Finding::ok("terminal", "UTF-8"),
    }
}

fn clock() -> Finding {
    let now = app::now();
    let shown = told::rfc3339(now / 1_000_000 * 1_000_000);
    if now < WRITTEN {
        let message = format!("it is not {shown}: no certificate will be accepted");
        return Finding::bad("clock", message).help("set the clock".to_owned());
    }
    Finding::ok("clock", shown)
}
