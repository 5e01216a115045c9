//! How a command is told which team works on which task.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use clap::Args;
use folkmoot_agents::{Clients, Providers, Secrets, unenforceable};
use folkmoot_core::{
    check::{self, Checked, Environment, Input, Source},
    diagnostic::{Diagnostic, Severity},
    file::{
        models::Catalog,
        overrides::{Given, Override},
    },
    gate::Gate,
    programs::roles::Role,
    request::{Judged, Members, Request},
    spec::{Collaboration, Recipe, Spec, TeamSource, Warning},
    team::{Agent, AgentId, Fallback, Sandbox, Target},
};
use folkmoot_runtime::engine::Engine;
use serde_json::{Value, json};

use super::budget;
use crate::{
    app::App,
    config,
    exit::{self, Exit, Refusal},
    terminal::diagnostics,
};

/// The largest task, and the largest file of a team, in bytes.
const LARGEST: u64 = 1 << 20;

/// What a refusal is called whose team file cannot be read.
pub(super) const UNREADABLE: &str = "unreadable_team";

/// A team and a task.
#[derive(Debug, Args)]
pub(crate) struct TeamArgs {
    /// The team file; left out with --demo, --agents or --config
    #[arg(value_name = "TEAM")]
    team: Option<OsString>,
    /// The task; `-` reads it from standard input
    #[arg(value_name = "PROMPT")]
    task: Option<String>,
    /// What is told to be too much.
    #[arg(hide = true)]
    more: Vec<String>,
    /// The task
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// The team file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Uses the built-in offline team, or makes the agents of --agents offline ones
    #[arg(long)]
    demo: bool,
    /// Makes a team of these agents, with the default model
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    agents: Vec<String>,
    #[command(flatten)]
    overrides: Overrides,
}

/// What wins over the team file.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Instead of what the team file says")]
pub(crate) struct Overrides {
    /// How the team works: broadcast, sequential, debate, supervisor, consensus, relay or auto
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    strategy: Option<String>,
    /// A ready-made program in place of a strategy: roles
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    program: Option<String>,
    /// How many rounds
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    rounds: Option<String>,
    /// Who speaks in which order
    #[arg(long, value_name = "NAMES", allow_hyphen_values = true)]
    order: Option<String>,
    /// Who judges
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    judge: Option<String>,
    /// Who plans and reports
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    supervisor: Option<String>,
    /// Who works
    #[arg(long, value_name = "NAMES", allow_hyphen_values = true)]
    workers: Option<String>,
    /// The clock of one phase, step or task: seconds, `30m`, or `none`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// The model of agents that name none: provider/model, or an alias
    #[arg(long, value_name = "MODEL", allow_hyphen_values = true)]
    model: Option<String>,
    /// What agents may do at most: read-only, write or full
    #[arg(long, value_name = "LEVEL", allow_hyphen_values = true)]
    sandbox: Option<String>,
    /// The workspace
    #[arg(long, value_name = "FOLDER", allow_hyphen_values = true)]
    workdir: Option<String>,
    /// The most tokens the run may use
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_tokens: Option<String>,
    /// The most calls the run may make
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_calls: Option<String>,
    /// The most US dollars the run may cost
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    max_cost: Option<String>,
    /// The most time the run may take: seconds, `30m`, or `none`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    deadline: Option<String>,
}

impl Overrides {
    fn given(&self) -> Vec<Override> {
        let flags = [
            ("--strategy", &self.strategy),
            ("--program", &self.program),
            ("--rounds", &self.rounds),
            ("--order", &self.order),
            ("--judge", &self.judge),
            ("--supervisor", &self.supervisor),
            ("--workers", &self.workers),
            ("--timeout", &self.timeout),
            ("--model", &self.model),
            ("--sandbox", &self.sandbox),
            ("--workdir", &self.workdir),
            ("--max-tokens", &self.max_tokens),
            ("--max-calls", &self.max_calls),
            ("--max-cost", &self.max_cost),
            ("--deadline", &self.deadline),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| {
            let value = Given::Text(value.clone()?);
            Some(Override { name: flag.to_owned(), value })
        });
        given.collect()
    }
}

/// Where a team comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    File(PathBuf),
    Agents(Vec<String>),
    DemoAgents(Vec<String>),
    Demo,
    /// What would stand in a file, from a request or of Folkmoot's own.
    Text(String),
}

impl TeamArgs {
    /// Checks the team for the task.
    pub(crate) fn check(&self, app: &App) -> Result<Team> {
        let (origin, prompt) = self.origin_and_prompt()?;
        let prompt = prompt.ok_or_else(no_prompt)?;
        Team::check(app, &origin, Some(&prompt), &self.overrides.given())
    }

    /// Checks the team, for the task if there is one.
    pub(crate) fn check_for_any_task(&self, app: &App) -> Result<Team> {
        let (origin, prompt) = self.origin_and_prompt()?;
        Team::check(app, &origin, prompt.as_deref(), &self.overrides.given())
    }

    /// Checks the team for a task in a folder, unless another folder is named.
    pub(crate) fn check_in(&self, app: &App, task: &str, folder: &Path) -> Result<Team> {
        let (origin, _) = self.origin_and_prompt()?;
        let mut given = self.overrides.given();
        if self.overrides.workdir.is_none() {
            let value = Given::Text(folder.to_string_lossy().into_owned());
            given.push(Override { name: "--workdir".to_owned(), value });
        }
        Team::check(app, &origin, Some(task), &given)
    }

    fn origin_and_prompt(&self) -> Result<(Origin, Option<String>)> {
        let more = self.task.iter().chain(&self.more).map(OsString::from);
        let mut words = self.team.iter().cloned().chain(more);
        // A program brings its own agents, so one word beside it is the task, unless it is a file.
        let has_program = self.overrides.program.is_some();
        let is_file = self.team.as_ref().is_some_and(|word| Path::new(word).is_file());
        let given = words.clone().count() + usize::from(self.prompt.is_some());
        let is_task = has_program && given < 2 && !is_file;
        let origin = match (&self.config, self.demo, &self.agents[..]) {
            (None, true, []) if has_program => {
                Origin::DemoAgents(Role::ALL.map(|role| role.name().to_owned()).to_vec())
            }
            (None, false, []) if is_task => Origin::Agents(Vec::new()),
            (Some(file), false, []) => Origin::File(file.clone()),
            (None, true, []) => Origin::Demo,
            (None, true, names) => Origin::DemoAgents(names.to_vec()),
            (None, false, []) => Origin::File(words.next().ok_or_else(no_team)?.into()),
            (None, false, names) => Origin::Agents(names.to_vec()),
            (Some(_), _, _) => {
                let message = "a team file and --demo or --agents are given; one of them is enough";
                return Err(Refusal::new("two_teams", message).into());
            }
        };
        let prompt = match (words.next(), words.next(), &self.prompt) {
            (Some(prompt), None, None) => Some(prompt.into_string().map_err(|_| no_text())?),
            (None, None, Some(prompt)) => Some(prompt.clone()),
            (None, None, None) => None,
            _ => {
                let message =
                    "the task is given twice, or there are more words than a team and a task";
                return Err(Refusal::new("two_prompts", message).help("quote the task").into());
            }
        };
        Ok((origin, prompt.map(from_stdin_if_asked).transpose()?))
    }
}

fn no_team() -> Refusal {
    Refusal::new("no_team", "no team is given").help(
        "name a team file, or try `folkmoot run --demo \"a task\"`; `folkmoot init` writes one",
    )
}

fn no_text() -> Refusal {
    Refusal::new("unreadable_prompt", "the task is not UTF-8")
}

fn no_prompt() -> Refusal {
    Refusal::new("empty_prompt", "the task is missing")
        .help("put it behind the team, or after --prompt, or pipe it in with -")
}

/// The task that was given, or the one on standard input if `-` was.
pub(super) fn from_stdin_if_asked(given: String) -> Result<String> {
    if given != "-" {
        return Ok(given);
    }
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(LARGEST + 1);
    input
        .read_to_string(&mut text)
        .map_err(|error| Refusal::new("unreadable_prompt", format!("standard input: {error}")))?;
    if text.len() as u64 > LARGEST {
        return Err(Refusal::new("too_large", "standard input is over 1 MiB").into());
    }
    Ok(text)
}

/// A team that was checked, soundly or not.
pub(crate) struct Team {
    pub(crate) checked: Checked,
    providers: Providers,
    /// What diagnostics call the text they point into.
    name: String,
    /// The request that it was made for, with what is wrong with that.
    asked: Option<(Request, Vec<Refusal>)>,
    /// The names that can stand for a target.
    targets: Vec<String>,
}

impl Team {
    /// Checks the team that a request makes, or the one of a file beside it.
    pub(crate) fn asked(app: &App, request: Request, file: Option<PathBuf>) -> Result<Team> {
        let Judged { members, task, overrides, refused, .. } = request.judge(file.is_some());
        let origin = file.map(Origin::File).or_else(|| members.map(Origin::from));
        let Some(origin) = origin else {
            let refusal = Refusal::all(request.refusals(refused, [], &[]));
            return Err(refusal.expect("a request without a team is refused").into());
        };
        // Told already, by its own name.
        let is_missing = refused.iter().any(|it| it.code == "task_required");
        let task = Some(&*task).filter(|_| !is_missing);
        let team = Team::check(app, &origin, task, &overrides)?;
        Ok(Team { asked: Some((request, refused)), ..team })
    }

    /// Checks a team; without a task only the team is checked.
    pub(crate) fn check(
        app: &App,
        origin: &Origin,
        task: Option<&str>,
        overrides: &[Override],
    ) -> Result<Team> {
        let config = app.config()?;
        let (catalog, providers) = (config.catalog(), config.providers());
        let bytes = match origin {
            Origin::File(file) => read(file).map_err(|error| unreadable(file, &error))?,
            Origin::Text(text) => text.as_bytes().to_vec(),
            Origin::Agents(_) | Origin::DemoAgents(_) | Origin::Demo => Vec::new(),
        };
        let source = match origin {
            Origin::File(_) | Origin::Text(_) => Source::File(&bytes),
            Origin::Agents(names) => Source::Names(names),
            Origin::DemoAgents(names) => Source::DemoNames(names),
            Origin::Demo => Source::Demo,
        };
        let folder = match origin {
            Origin::File(file) => file.parent().unwrap_or(Path::new("")).to_owned(),
            Origin::Agents(_) | Origin::DemoAgents(_) | Origin::Demo | Origin::Text(_) => {
                PathBuf::new()
            }
        };
        let name = origin.name();
        let path = match origin {
            Origin::File(file) => std::path::absolute(file).ok(),
            Origin::Agents(_) | Origin::DemoAgents(_) | Origin::Demo | Origin::Text(_) => None,
        };
        let home = config::home_dir();
        let place = |name: &str| place(&folder, home.as_deref(), name);
        // Whoever sends a team must not learn by it what stands in files and variables here.
        let is_sent = matches!(origin, Origin::Text(_));
        let within = |name: &str| {
            let sent = "a team that is no file names no files".to_owned();
            if is_sent { Err(sent) } else { place(name) }
        };
        let read = |name: &str| read_text(&within(name)?);
        let list = |name: &str| {
            let from = within(name)?;
            stays(&folder, name, &from)?;
            names_in(&from)
        };
        let variable = |name: &str| config::variable(name).filter(|_| !is_sent);
        let checked = check::check(&Input {
            source,
            name: &name,
            path: path.as_deref().and_then(Path::to_str),
            overrides,
            task,
            catalog: &catalog,
            variable: &variable,
            read: &read,
            beside: &|folder, name| beside(Path::new(folder), name),
            list: &list,
            around: &[],
        });
        let (asked, targets) = (None, targets(&catalog));
        Ok(Team { checked, providers, name: origin.place(), asked, targets })
    }

    /// Checks the team of a recorded run again, with values of its file changed.
    pub(crate) fn check_again(
        app: &App,
        recipe: &Recipe,
        spec: &Spec,
        changes: impl IntoIterator<Item = Override>,
    ) -> Result<Team> {
        let config = app.config()?;
        let (catalog, providers) = (config.catalog(), config.providers());
        let source = match &recipe.team {
            TeamSource::File(text) => Source::File(text.as_bytes()),
            TeamSource::Names(names) => Source::Names(names),
            TeamSource::DemoNames(names) => Source::DemoNames(names),
            TeamSource::Demo => Source::Demo,
            TeamSource::Withheld(_) => {
                let message = "the run keeps no team file, since it sets variables";
                let refusal = Refusal::new("no_recipe", message).help("name one with --team");
                return Err(refusal.into());
            }
        };
        let changes: Vec<Override> = changes.into_iter().collect();
        let moves = changes.iter().any(|change| change.name.ends_with("workdir"));
        let overrides: Vec<Override> = recipe.overrides.iter().cloned().chain(changes).collect();
        let read = |name: &str| {
            let file = recipe.files.get(name).cloned();
            file.ok_or_else(|| "the run was not made with this file".to_owned())
        };
        // The workspace is the one of the run, wherever this is said.
        let workspace = spec.workspace.as_ref().map(|it| &*it.folder);
        let list = |folder: &str| {
            let names = recipe.files.get(&check::listing(folder));
            let names = names.ok_or_else(|| "the run was not made with this folder".to_owned())?;
            Ok(names.lines().map(str::to_owned).collect())
        };
        let mut checked = check::check(&Input {
            source,
            name: &recipe.name,
            path: recipe.path.as_deref(),
            overrides: &overrides,
            task: Some(&spec.task),
            catalog: &catalog,
            variable: &config::variable,
            read: &read,
            beside: &|folder, name| beside(Path::new(workspace.unwrap_or(folder)), name),
            list: &list,
            around: &[],
        });
        // What a file calls its workspace may be another folder from here.
        if !moves {
            let folder = spec.workspace.as_ref().map(|it| it.folder.clone());
            let now = checked.spec.as_mut().and_then(|it| it.workspace.as_mut());
            if let (Some(now), Some(folder)) = (now, &folder) {
                now.folder = folder.clone();
            }
            checked.workplace.workdir = folder;
        }
        let (asked, targets) = (None, targets(&catalog));
        Ok(Team { checked, providers, name: recipe.name.to_string(), asked, targets })
    }

    /// What a run of it needs of this machine.
    pub(crate) fn means(&self) -> Means {
        let place = &self.checked.workplace;
        let secrets = Secrets::new(place.secrets.0.iter().map(|it| &**it));
        let servers = Clients::new(config::environment(), place.servers.clone(), secrets);
        let set = place.environments.values().flat_map(|it| &it.set);
        let set = config::secret_values(set.map(|(name, value)| (&**name, &**value)));
        let of_servers = place.secrets.0.iter().map(|it| &**it).filter(|it| check::tells(it));
        let secrets = Secrets::new(set.chain(of_servers));
        Means { environments: place.environments.clone(), servers, secrets }
    }

    /// The engine for a run that goes on with the team that it began with. What its file sets of the
    /// environment of programs no log holds, so it is read in the file that is `given`, or again where
    /// it stood.
    pub(crate) fn engine_for(
        app: &App,
        engine: Engine,
        spec: &Spec,
        given: Option<&Path>,
    ) -> Result<Engine> {
        let Some(recipe) = &spec.recipe else { return Ok(engine) };
        let TeamSource::Withheld(variables) = &recipe.team else {
            return Ok(Team::check_again(app, recipe, spec, [])?.means().given_to(engine));
        };
        let file = given.or(recipe.path.as_deref().map(Path::new)).unwrap_or(Path::new(""));
        let team =
            Team::check(app, &Origin::File(file.to_owned()), Some(&spec.task), &recipe.overrides);
        let team = team.ok();
        let is_set = |agent: &AgentId, name: &Arc<str>| {
            let environments = team.as_ref().map(|team| &team.checked.workplace.environments);
            let environment = environments.and_then(|it| it.get(agent));
            environment.is_some_and(|environment| environment.set.contains_key(name))
        };
        let missing = variables.iter().flat_map(|(agent, names)| {
            let missing = names.iter().filter(|name| !is_set(agent, name));
            missing.map(move |name| format!("{name} of {}", spec.team.agent(agent).name))
        });
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() {
            return Ok(match team {
                Some(team) => team.means().given_to(engine),
                None => engine,
            });
        }
        let missing = missing.join(", ");
        let message = format!(
            "{} does not set {missing}, which no record holds the values of",
            file.display()
        );
        let help = "--team names a file that sets them for agents of these names";
        Err(Refusal::new("variables_missing", message).help(help).into())
    }

    /// The spec of a run that asks its models, or the exit of a command that has told what is wrong.
    pub(crate) fn spec(mut self, app: &App) -> std::result::Result<Spec, Exit> {
        self.look();
        self.warn_of_exposed(app);
        Ok(in_its_folder(self.rehearsed_spec(app)?))
    }

    /// The same for whoever tells nothing but why it is refused.
    pub(crate) fn sound_spec(mut self) -> std::result::Result<Spec, Refusal> {
        self.look();
        let refusal = self.refusal();
        match (self.checked.spec, refusal) {
            (Some(spec), None) => Ok(in_its_folder(spec)),
            (_, Some(refusal)) => Err(refusal),
            (None, None) => Err(Refusal::new("failed", "the team cannot be run")),
        }
    }

    /// Warns if its programs may change the record of its runs.
    pub(crate) fn warn_of_exposed(&mut self, app: &App) {
        let Some(told) = self.exposed(app) else { return };
        let warning = Warning { code: told.code.into(), message: told.message.as_str().into() };
        self.checked.diagnostics.push(told);
        if let Some(spec) = &mut self.checked.spec {
            spec.warnings.push(warning);
        }
    }

    /// The spec of a run that asks no model, or everything that is wrong.
    pub(crate) fn rehearsable_spec(self) -> std::result::Result<Spec, Refusal> {
        match (self.refusal(), self.checked.spec) {
            (None, Some(spec)) => Ok(spec),
            (Some(refusal), _) => Err(refusal),
            (None, None) => Err(Refusal::new("failed", "the team cannot be run")),
        }
    }

    /// Looks whether all that it needs is there.
    fn look(&mut self) {
        let unusable = self.unusable(Severity::Error);
        self.checked.diagnostics.extend(unusable);
        self.checked.diagnostics.extend(self.unconfined());
        self.checked.diagnostics.extend(self.displaced());
        self.leave_out_unusable();
    }

    /// Everything that is wrong with the request, and with the team.
    fn refusal(&self) -> Option<Refusal> {
        let errors = self.checked.of(Severity::Error);
        let found = errors.map(|finding| Refusal::found(finding, &self.checked.text));
        match &self.asked {
            None => Refusal::all(found),
            Some((request, refused)) => {
                Refusal::all(request.refusals(refused.clone(), found, &self.targets))
            }
        }
    }

    /// That the file in which runs are kept lies where programs of agents may write, if it does.
    fn exposed(&self, app: &App) -> Option<Diagnostic> {
        let spec = self.checked.spec.as_ref()?;
        let sandbox = spec.workspace.as_ref()?.sandbox;
        let real = |path: &Path| path.ancestors().find_map(|path| path.canonicalize().ok());
        let store = std::path::absolute(app.state_file().ok()?).ok()?;
        let workspace = self.checked.workplace.workdir.as_deref().unwrap_or(".");
        let is_inside = real(&store)?.starts_with(real(&std::path::absolute(workspace).ok()?)?);
        let all = spec.team.all();
        let runs_programs = |agent: &&Agent| {
            let is_program = matches!(agent.target, Target::Cli(_) | Target::Acp(_));
            let writes = ["shell", "file.write"].into_iter().any(|it| agent.is_granted(it));
            if is_program { writes } else { agent.is_granted("shell") || !agent.servers.is_empty() }
        };
        let agent = all.iter().find(runs_programs).filter(|_| sandbox > Sandbox::ReadOnly)?;
        let message = format!(
            "the runs are kept inside the workspace, in {}, where programs of {} may change them",
            store.display(),
            agent.name
        );
        let help = "keep them elsewhere: --db FILE, or FOLKMOOT_DB".to_owned();
        is_inside.then(|| Diagnostic::warning("exposed_store", message).help(help))
    }

    /// That the workspace is not there, if it is named and is not.
    fn displaced(&self) -> Option<Diagnostic> {
        let folder = self.checked.workplace.workdir.as_deref()?;
        let why = match Path::new(folder).metadata() {
            Ok(found) if found.is_dir() => return None,
            Ok(_) => "it is no folder".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("the workspace {folder} cannot be used: {why}");
        let help = "make that folder, or name another by workdir or --workdir".to_owned();
        Some(Diagnostic::error("invalid_workdir", message).help(help))
    }

    /// Why a controller, a command of an agent, or one that an edge requires, cannot be run here, if there
    /// is one and it cannot.
    fn unconfined(&self) -> Option<Diagnostic> {
        let spec = self.checked.spec.as_ref()?;
        let is_confined = spec.workspace.as_ref()?.sandbox < Sandbox::Full;
        let why = is_confined.then(unenforceable)??;
        let all = spec.team.all();
        let is_program = |it: &&Agent| matches!(it.target, Target::Cli(_) | Target::Acp(_));
        if let Some(agent) = all.iter().find(is_program) {
            let message = format!("{} cannot be held to its level: {why}", agent.name);
            let help = "sandbox: full in the team file runs it unconfined";
            return Some(Diagnostic::error("sandbox_unavailable", message).help(help.to_owned()));
        }
        let is_scripted = |agent: &Agent| !matches!(agent.target, Target::Model(_));
        let mut agents = all.iter().filter(|agent| !is_scripted(agent));
        if let Some(agent) = agents.find(|agent| agent.is_granted("shell")) {
            let message = format!("{} cannot run commands: {why}", agent.name);
            let help = "sandbox: full in the team file runs them unconfined";
            return Some(Diagnostic::error("sandbox_unavailable", message).help(help.to_owned()));
        }
        if let Collaboration::Controller(controller) = &spec.collaboration {
            let message =
                format!("the controller `{}` cannot be run: {why}", controller.staff().name);
            let help = "sandbox: full in the team file runs it unconfined".to_owned();
            return Some(Diagnostic::error("sandbox_unavailable", message).help(help));
        }
        let required = spec.collaboration.requirements().into_iter();
        let mut commands = required.filter(|it| it.script.is_empty());
        let command = commands.find(|it| matches!(it.gate, Gate::Command { .. }))?;
        let message = format!("the command `{}` cannot be run: {why}", command.gate);
        let help = "sandbox: full in the team file runs it unconfined; a script beside it stands in for it";
        Some(Diagnostic::error("sandbox_unavailable", message).help(help.to_owned()))
    }

    /// Leaves out what cannot be asked of the later targets of chains, and tells so.
    pub(crate) fn leave_out_unusable(&mut self) {
        let Team { checked, providers, .. } = self;
        let told = leave_out(&mut checked.team, providers);
        if let Some(spec) = &mut checked.spec {
            leave_out(&mut spec.team, providers);
            let warning = |it: &Diagnostic| Warning {
                code: it.code.into(),
                message: it.message.as_str().into(),
            };
            spec.warnings.extend(told.iter().map(warning));
        }
        checked.diagnostics.extend(told);
    }

    /// The spec of a run that asks no model, or the exit of a command that has told what is wrong.
    pub(crate) fn rehearsed_spec(self, app: &App) -> std::result::Result<Spec, Exit> {
        let refusal = self.refusal();
        self.tell(app, refusal.as_ref());
        self.checked.spec.filter(|_| refusal.is_none()).ok_or(Exit::USAGE)
    }

    /// The same team, refused if a run of it could pass a limit, or if that cannot be ruled out.
    pub(crate) fn within_budget(mut self, is_strict: bool) -> Team {
        let bounds = self.checked.bounds.as_ref().filter(|_| is_strict);
        let beyond = bounds.map(budget::beyond).unwrap_or_default();
        self.checked.diagnostics.extend(beyond);
        self
    }

    /// Why `target` cannot be asked for an agent. Whoever sets its own `PATH` may find what we do not.
    fn lack(&self, agent: &Agent, target: &Target) -> Option<String> {
        let environment = self.checked.workplace.environments.get(&agent.id);
        let has_own_path = environment.is_some_and(|it| it.set.contains_key("PATH"));
        let is_found_there = has_own_path && matches!(target, Target::Cli(_) | Target::Acp(_));
        if is_found_there { None } else { self.providers.lack(target) }
    }

    /// Why agents cannot be asked from here, such as a key that is not set.
    pub(crate) fn unusable(&self, severity: Severity) -> Vec<Diagnostic> {
        let mut reasons: BTreeMap<(bool, String), Vec<String>> = BTreeMap::new();
        let team = &self.checked.team;
        for agent in team.all() {
            if let Some(lack) = self.lack(&agent, &agent.target) {
                let is_program = matches!(agent.target, Target::Cli(_) | Target::Acp(_));
                let name = team.full_name(&agent.id);
                reasons.entry((is_program, lack)).or_default().push(name);
            }
        }
        let told = reasons.into_iter().map(|((is_program, reason), agents)| {
            let (code, help) = if is_program {
                ("not_installed", "`folkmoot doctor` tells which coding agents are there")
            } else {
                ("unusable_model", "`folkmoot models` lists what can be asked")
            };
            let message = format!("{}: {reason}", agents.join(", "));
            Diagnostic { severity, ..Diagnostic::error(code, message).help(help.to_owned()) }
        });
        told.collect()
    }

    /// Tells what is wrong or doubtful: to people all of it, to programs why it is refused.
    fn tell(&self, app: &App, refusal: Option<&Refusal>) {
        let is_of_request = self.asked.as_ref().is_some_and(|(_, refused)| !refused.is_empty());
        if !app.wants_json() && !is_of_request {
            return self.tell_people(app);
        }
        if let Some(refusal) = refusal {
            exit::tell(refusal, app);
        }
    }

    /// The findings of one severity as programs read them.
    pub(crate) fn findings(&self, severity: Severity) -> Vec<Value> {
        let text = &self.checked.text;
        self.checked.of(severity).map(|finding| json!(finding.located(text))).collect()
    }

    /// Tells people all findings.
    pub(crate) fn tell_people(&self, app: &App) {
        let source = diagnostics::Source { name: &self.name, text: &self.checked.text };
        app.tell(&diagnostics::render(&app.screen(), source, &self.checked.diagnostics));
    }
}

/// What a run needs of this machine and its spec does not hold: it may be secret.
pub(crate) struct Means {
    /// What the programs of its agents get of the environment.
    environments: BTreeMap<AgentId, Environment>,
    servers: Clients,
    secrets: Secrets,
}

impl Means {
    /// The same engine, with these.
    pub(crate) fn given_to(self, engine: Engine) -> Engine {
        let servers = Arc::new(self.servers);
        let engine = engine.keeping(&self.secrets);
        engine.with_environments(self.environments).with_servers(servers)
    }
}

impl Origin {
    /// What a team is called if its file does not say.
    fn name(&self) -> String {
        match self {
            Origin::File(file) => {
                file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Origin::Agents(_) => "agents".to_owned(),
            Origin::DemoAgents(_) | Origin::Demo => "demo".to_owned(),
            Origin::Text(_) => "inline".to_owned(),
        }
    }

    fn place(&self) -> String {
        match self {
            Origin::File(file) => file.display().to_string(),
            Origin::Agents(_) | Origin::DemoAgents(_) | Origin::Demo | Origin::Text(_) => {
                self.name()
            }
        }
    }
}

impl From<Members> for Origin {
    fn from(members: Members) -> Origin {
        match members {
            Members::File(path) => Origin::File(path.into()),
            Members::Inline(text) => Origin::Text(text),
            Members::Named(names) => Origin::Agents(names),
        }
    }
}

/// The names that can stand for a target.
fn targets(catalog: &Catalog) -> Vec<String> {
    catalog.aliases.keys().chain(catalog.built_in.keys()).cloned().collect()
}

/// The same spec wherever the run goes on from.
fn in_its_folder(mut spec: Spec) -> Spec {
    if let Some(workspace) = &mut spec.workspace {
        let folder = std::path::absolute(&*workspace.folder).ok();
        let folder = folder.as_deref().and_then(Path::to_str).map(Into::into);
        workspace.folder = folder.unwrap_or_else(|| workspace.folder.clone());
    }
    spec
}

/// The bytes of a file; of one that is too large as many as tell so.
fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where a file is that a team file in `folder` names; one that begins with `~/` is the user's.
fn place(folder: &Path, home: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    match name.strip_prefix("~/") {
        None => Ok(folder.join(name)),
        Some(name) => {
            let home = home.ok_or_else(|| "there is no home directory".to_owned())?;
            Ok(home.join(name))
        }
    }
}

/// The names of the files in a folder that names can be written of, in order.
fn names_in(folder: &Path) -> Result<Vec<String>, String> {
    let entries = folder.read_dir().map_err(|error| error.to_string())?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.contains(['\n', '\r'])).collect();
    names.sort();
    Ok(names)
}

/// Refuses a folder beside the team file that leads out of where that stands, itself or by a file in it:
/// those files nobody named. A folder elsewhere is one that the user chose.
fn stays(beside: &Path, name: &str, folder: &Path) -> Result<(), String> {
    if name.starts_with("~/") {
        return Ok(());
    }
    let real = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.canonicalize().map_err(|error| error.to_string())
    };
    let is_inside = Path::new(name)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    let root = real(if is_inside { beside } else { folder })?;
    let outside = |path: &Path| path.canonicalize().is_ok_and(|path| !path.starts_with(&root));
    if outside(folder) {
        return Err("it is a link that leads out of the workspace".to_owned());
    }
    match names_in(folder)?.into_iter().find(|name| outside(&folder.join(name))) {
        Some(name) => Err(format!("{name} is a link that leads out of the workspace")),
        None => Ok(()),
    }
}

/// The text of a file beside the team file.
fn read_text(file: &Path) -> Result<String, String> {
    let bytes = read(file).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err("it is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The text of a file of a workspace, if it is there; what a link leads to outside is none of it.
fn beside(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let file = folder.join(name);
    if !file.is_file() {
        return Ok(None);
    }
    let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    let file = real(&file)?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !file.starts_with(real(folder)?) {
        return Err("it is a link that leads out of the workspace".to_owned());
    }
    read_text(&file).map(Some)
}

/// Takes out of the chains of `team` what cannot be asked later on; says what and why.
fn leave_out(team: &mut folkmoot_core::team::Team, providers: &Providers) -> Vec<Diagnostic> {
    let mut told = Vec::new();
    for agent in team.agents.iter_mut().chain(&mut team.staff) {
        if let Some(nested) = agent.team_mut() {
            told.extend(leave_out(&mut nested.spec.team, providers));
        }
        let mut is_usable = |Fallback { number, target }: &Fallback| {
            let lack = providers.lack(target);
            told.extend(lack.iter().map(|why| check::left_out_of(&agent.name, *number, why)));
            lack.is_none()
        };
        agent.fallbacks.retain(&mut is_usable);
        agent.economy.retain(&mut is_usable);
    }
    told
}

fn unreadable(file: &Path, error: &std::io::Error) -> Refusal {
    let message = format!("cannot read the team file {}: {error}", file.display());
    Refusal::new(UNREADABLE, message)
}
