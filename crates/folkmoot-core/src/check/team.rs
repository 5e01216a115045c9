//! From what a file says about agents to agents with everything filled in.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    check::{Hidden, Input, Server, grants, names, nested},
    diagnostic::{Diagnostic, Place, quoted},
    extension::Registry,
    file::{
        item::{Content, Fields, Item},
        models::{Resolved, Unresolved},
        script,
    },
    gate::Workspace,
    limits::Limits,
    money::Money,
    names::{slug, suggestion},
    team::{
        A2a, Acp, Agent, AgentId, Cli, CliInput, CliOutput, CliProgram, ECONOMY, FIRST_TARGET,
        Fallback, MAX_STEPS, Model, OwnProgram, PARENT, Sandbox, Target, Team,
    },
};

/// How many model calls a turn of the lead may take, unless given.
const LEAD_STEPS: u32 = 50;

/// Attempts of a model beside the first, unless given.
const MODEL_RETRIES: u64 = 2;

/// Where and how the agents of a team work: what this machine needs to know and the run's spec does
/// not, as it may hold secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The ceiling for all agents.
    pub sandbox: Sandbox,
    /// The workspace.
    pub workdir: Option<Arc<str>>,
    /// The environment of each agent's processes.
    pub environments: BTreeMap<AgentId, Environment>,
    /// The MCP servers there are, those of teams that are members behind the [name](server_name) of
    /// their team.
    pub servers: BTreeMap<Arc<str>, Server>,
    /// What of their environments and headers must not be shown.
    pub secrets: Hidden,
    /// Whether the file holds values of theirs.
    pub(super) sets_values: bool,
}

impl Workplace {
    /// Where what edges require is looked at.
    pub(super) fn workspace(&self) -> Workspace {
        let folder = self.workdir.clone().unwrap_or_else(|| ".".into());
        Workspace { folder, sandbox: self.sandbox }
    }

    /// The variables that are given values, by agent.
    pub(super) fn variables(&self) -> BTreeMap<AgentId, Vec<Arc<str>>> {
        let set = self.environments.iter().filter(|(_, environment)| !environment.set.is_empty());
        set.map(|(agent, it)| (agent.clone(), it.set.keys().cloned().collect())).collect()
    }

    /// Whether its file may be kept with a run. Values may be secrets, and the log holds names only.
    pub(super) fn sets_nothing(&self) -> bool {
        !self.sets_values && self.environments.values().all(|it| it.set.is_empty())
    }
}

/// What a server is called among those of all teams of a run, where `team` is empty for the outermost.
pub fn server_name(team: &str, server: &str) -> Arc<str> {
    if team.is_empty() { server.into() } else { format!("{team}/{server}").into() }
}

/// The environment of an agent's processes (agents.md §4). Values may be secrets, so they are not
/// shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables that are set; these win.
    pub set: BTreeMap<Arc<str>, Arc<str>>,
    /// Variables that are passed on.
    pub allow: Vec<Arc<str>>,
    /// Whether all are passed on.
    pub inherit: bool,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("set", &self.set.keys())
            .field("allow", &self.allow)
            .field("inherit", &self.inherit)
            .finish()
    }
}

/// What is made of a file's agents.
pub(super) struct Members {
    /// The team.
    pub(super) team: Team,
    /// Where it works.
    pub(super) workplace: Workplace,
    /// Whether some agent is missing from it because of a fault.
    pub(super) incomplete: bool,
}

/// The agents of a file.
pub(super) fn members(
    file: &Fields,
    input: &Input<'_>,
    registry: &Registry,
    told: &mut Vec<Diagnostic>,
) -> Members {
    let items = file.list("agents");
    let named: Vec<Named<'_>> = items.iter().filter_map(Named::of).collect();
    names::check(&named, told);
    let mut builder = Builder { file, input, told };
    let mut agents: Vec<_> = named.iter().map(|agent| builder.agent(agent)).collect();
    builder.check_costs(&named, &mut agents);
    builder.check_unbounded(&named, &mut agents);
    let mut environments: BTreeMap<AgentId, Environment> =
        named.iter().map(|agent| (agent.id(), environment(agent))).collect();
    // A team that is a member works in the workspace of the run, whatever its file says.
    let workdir = file.text("workdir").map_or(".", |folder| folder);
    let beside = |_: &str, name: &str| (input.beside)(workdir, name);
    let inside = Input { beside: &beside, ..*input };
    let mut inner_servers = BTreeMap::new();
    let (mut secrets, mut sets_values) = (Hidden::default(), false);
    let mut incomplete = false;
    for (named, agent) in named.iter().zip(&mut agents) {
        let Some(item) = named.fields.get("team") else { continue };
        match nested::answer_for(agent, item, &inside, registry, told) {
            Some(inner) => {
                let of_team = |(id, it): (AgentId, _)| (id.in_team(&agent.id), it);
                environments.extend(inner.environments.into_iter().map(of_team));
                let of_team =
                    |(name, it): (Arc<str>, _)| (server_name(agent.id.as_str(), &name), it);
                inner_servers.extend(inner.servers.into_iter().map(of_team));
                secrets.0.extend(inner.secrets.0);
                sets_values |= inner.sets_values;
            }
            None => incomplete = true,
        }
        let limit = |of: &Fields| of.fields("limits").map(|_| limits(of)).unwrap_or_default();
        let around = limit(file).within(&limit(named.fields));
        let unbounded = nested::unbounded(agent, around.is_metered(), around.cost.is_some());
        told.extend(unbounded.into_iter().map(|it| it.at(&item.place)));
    }
    Members {
        workplace: Workplace {
            sandbox: ceiling(file),
            workdir: file.text("workdir").cloned(),
            environments,
            servers: inner_servers,
            secrets,
            sets_values,
        },
        team: Team::new(file.text("name").cloned().unwrap_or(input.name.into()), agents),
        incomplete: incomplete
            || named.len() < items.len()
            || items.is_empty() && file.is_broken("agents"),
    }
}

/// Nobody, in the place where the agents of a file work: for a collaboration that casts them itself.
pub(super) fn nobody(file: &Fields, input: &Input<'_>) -> Members {
    let named: Vec<Named<'_>> = file.list("agents").iter().filter_map(Named::of).collect();
    Members {
        workplace: Workplace {
            sandbox: ceiling(file),
            workdir: file.text("workdir").cloned(),
            environments: named.iter().map(|agent| (agent.id(), environment(agent))).collect(),
            ..Workplace::default()
        },
        team: Team::new(file.text("name").cloned().unwrap_or(input.name.into()), Vec::new()),
        incomplete: named.len() < file.list("agents").len(),
    }
}

/// What all agents may do at most.
pub(super) fn ceiling(file: &Fields) -> Sandbox {
    file.text("sandbox").and_then(|level| Sandbox::named(level)).unwrap_or_default()
}

/// The lead of a team whose prompt is given: it takes the keys of an agent at the level of the team.
pub(super) fn lead(
    file: &Fields,
    input: &Input<'_>,
    prompt: Arc<str>,
    told: &mut Vec<Diagnostic>,
) -> Agent {
    let name: Arc<str> = PARENT.into();
    let named = Named { name: &name, fields: file };
    let agent = Builder { file, input, told }.agent(&named);
    let max_steps = file.whole("max_steps").map_or(LEAD_STEPS, |it| it as u32);
    // What is said of the team and of its run is not said of the lead.
    Agent { prompt: Some(prompt), description: None, limits: Limits::default(), max_steps, ..agent }
}

/// An agent of which the file says nothing: the team's model answers for it, or the machine's.
/// Nothing is told if there is none and it is not `needed`.
pub(super) fn unnamed(
    name: &str,
    file: &Fields,
    input: &Input<'_>,
    needed: Needed,
    told: &mut Vec<Diagnostic>,
) -> Agent {
    let has_model = file.get("model").is_some() || input.catalog.default_model.is_some();
    if needed == Needed::No && !has_model {
        return Agent::new(name, unset());
    }
    let (name, fields) = (name.into(), Fields::none(file.place.clone()));
    Builder { file, input, told }.agent(&Named { name: &name, fields: &fields })
}

/// Whether a run asks an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// It may.
    Yes,
    /// It does not.
    No,
}

/// What answers for the agents when a budget runs low, in order.
pub(super) fn economy(
    name: &str,
    place: &Place,
    file: &Fields,
    input: &Input<'_>,
    told: &mut Vec<Diagnostic>,
) -> Vec<Fallback> {
    let (target, later) = Builder { file, input, told }.resolve(name, place);
    let first = Fallback { number: FIRST_TARGET, target };
    let chain = [first].into_iter().chain(later);
    chain.map(|it| Fallback { number: ECONOMY - FIRST_TARGET + it.number, ..it }).collect()
}

/// The team's own model as a judge, if it has one.
pub(super) fn default_judge(
    file: &Fields,
    input: &Input<'_>,
    id: &str,
    told: &mut Vec<Diagnostic>,
) -> Option<Agent> {
    let item = file.get("model");
    let (name, place) = match (item, &input.catalog.default_model) {
        (Some(item), _) => (item.text()?.to_string(), item.place.clone()),
        (None, Some(name)) => (name.clone(), Place { span: None, path: "default_model".into() }),
        (None, None) => return None,
    };
    let (target, fallbacks) = Builder { file, input, told }.resolve(&name, &place);
    let retries = if matches!(target, Target::Model(_)) { MODEL_RETRIES as u32 } else { 0 };
    Some(Agent { name: "judge".into(), retries, fallbacks, ..Agent::new(id, target) })
}

/// An agent of a file that has a name.
pub(super) struct Named<'f> {
    /// Its name.
    pub(super) name: &'f Arc<str>,
    /// All that is said about it.
    pub(super) fields: &'f Fields,
}

impl<'f> Named<'f> {
    /// The agent that stands there, if it has a name.
    pub(super) fn of(item: &'f Item) -> Option<Named<'f>> {
        let fields = item.fields()?;
        Some(Named { name: fields.text("name")?, fields })
    }

    /// Its id.
    pub(super) fn id(&self) -> AgentId {
        AgentId(slug(self.name).into())
    }
}

fn environment(agent: &Named<'_>) -> Environment {
    let set = match agent.fields.get("env").map(|item| &item.content) {
        Some(Content::Variables(variables)) => variables.clone(),
        _ => BTreeMap::new(),
    };
    Environment {
        set,
        allow: agent.fields.texts("env_allow"),
        inherit: agent.fields.flag("inherit_env").unwrap_or(false),
    }
}

/// The limits of a run or an agent.
pub(super) fn limits(of: &Fields) -> Limits {
    let Some(limits) = of.fields("limits") else { return Limits::default() };
    Limits {
        calls: limits.whole("calls"),
        tokens: limits.whole("tokens"),
        soft_tokens: None,
        cost: limits.number("cost_usd").map(Money::from_usd),
        time: limits.time("time").flatten(),
        concurrency: limits.whole("concurrency"),
    }
}

/// The prompt of the lead or an agent, given or read from a file.
pub(super) fn prompt(
    of: &Fields,
    input: &Input<'_>,
    told: &mut Vec<Diagnostic>,
) -> Option<Arc<str>> {
    let Some(file) = of.text("prompt_file") else { return of.text("prompt").cloned() };
    if of.text("prompt").is_some() {
        let twice = Diagnostic::error("bad_value", "give prompt or prompt_file, not both");
        let other = of.key("prompt").span;
        told.push(twice.at(of.key("prompt_file")).also(other, "the other one"));
    }
    match (input.read)(file) {
        Ok(text) => Some(text.trim_start_matches('\u{feff}').into()),
        Err(why) => {
            let message = format!("{} cannot be read: {why}", quoted(file));
            told.push(Diagnostic::error("bad_file", message).at(of.place_of("prompt_file")));
            None
        }
    }
}

/// Fills in agents.
pub(super) struct Builder<'a> {
    pub(super) file: &'a Fields,
    pub(super) input: &'a Input<'a>,
    pub(super) told: &'a mut Vec<Diagnostic>,
}

impl Builder<'_> {
    fn agent(&mut self, agent: &Named<'_>) -> Agent {
        let chain = self.chain(agent);
        self.agent_with(agent, chain)
    }

    /// An agent that this answers for.
    pub(super) fn agent_with(&mut self, agent: &Named<'_>, (target, fallbacks): Chain) -> Agent {
        let fields = agent.fields;
        grants::check(fields.list("grants"), self.told);
        let retries = if matches!(target, Target::Model(_)) { MODEL_RETRIES } else { 0 };
        Agent {
            id: agent.id(),
            name: agent.name.clone(),
            description: fields.text("description").cloned(),
            prompt: prompt(fields, self.input, self.told),
            capabilities: fields.texts("capabilities"),
            grants: fields.texts("grants"),
            servers: Vec::new(),
            max_steps: fields.whole("max_steps").map_or(MAX_STEPS, |it| it as u32),
            sandbox: ceiling(self.file),
            retries: fields.whole("retries").unwrap_or(retries) as u32,
            limits: limits(fields),
            target,
            fallbacks,
            economy: Vec::new(),
        }
    }

    /// What answers for an agent: one thing, or the chain of its model, the team's or the machine's.
    pub(super) fn chain(&mut self, agent: &Named<'_>) -> Chain {
        let fields = agent.fields;
        self.check_back_ends(agent);
        if let Some(script) = fields.fields("script") {
            let label = fields.text("model").cloned();
            return alone(Target::Script(script::script(script, label, self.told)));
        }
        if fields.flag("demo") == Some(true) {
            return alone(Target::Demo);
        }
        if let Some(item) = fields.get("cli") {
            return alone(self.cli(item));
        }
        if let Some(acp) = fields.fields("acp") {
            return alone(Target::Acp(Acp { command: acp.texts("command") }));
        }
        if let Some(a2a) = fields.fields("a2a") {
            return alone(self.remote(a2a));
        }
        // What the team is stands in its own file.
        if fields.get("team").is_some() {
            return alone(unset());
        }
        if BACK_ENDS.into_iter().any(|key| fields.is_broken(key)) {
            return alone(unset());
        }
        if let Some(item) = fields.get("model").or_else(|| self.file.get("model")) {
            let resolved = item.text().map(|model| self.resolve(model, &item.place));
            return resolved.unwrap_or_else(|| alone(unset()));
        }
        match &self.input.catalog.default_model {
            _ if self.file.is_broken("model") => alone(unset()),
            Some(model) => self.resolve(model, &Place { span: None, path: "default_model".into() }),
            None => alone(self.without_model(agent)),
        }
    }

    /// A coding agent on the command line.
    fn cli(&mut self, item: &Item) -> Target {
        let name = item.text().map_or("", |name| name);
        let program = item.fields().map(own_program).or_else(|| CliProgram::preset(name));
        let Some(program) = program else {
            self.told.push(unknown_cli(name).at(&item.place));
            return unset();
        };
        Target::Cli(Cli { program, model: None })
    }

    /// A remote agent.
    fn remote(&mut self, fields: &Fields) -> Target {
        let url = fields.text("url").cloned().unwrap_or_default();
        let is_address = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        if let (Some(item), false) = (fields.get("url"), is_address) {
            let message = format!("{} is no address of a remote agent", quoted(&url));
            let help = "it begins with https://, or http:// on this machine".to_owned();
            self.told.push(Diagnostic::error("bad_value", message).at(&item.place).help(help));
        }
        Target::A2a(A2a { url, key_env: fields.text("key_env").cloned() })
    }

    /// Nothing answers: that keeps a run from starting, but a file is no worse for it. Where it has
    /// other faults, the model may be among them.
    fn without_model(&mut self, agent: &Named<'_>) -> Target {
        let message = format!("agent {} has no model", quoted(agent.name));
        let told = match self.input.task {
            Some(_) => Diagnostic::error("no_model", message),
            None => Diagnostic::warning("no_model", message),
        };
        let help = "give it or the team a model, or set default_model in the config".to_owned();
        let told = told.at(&agent.fields.place).help(help);
        self.told.extend((!agent.fields.is_faulty()).then_some(told));
        unset()
    }

    fn check_back_ends(&mut self, agent: &Named<'_>) {
        let there = |key: &&str| match *key {
            "demo" => agent.fields.flag("demo") == Some(true),
            key => agent.fields.get(key).is_some(),
        };
        let mut found: Vec<_> = BACK_ENDS.into_iter().filter(there).collect();
        if found == ["model", "script"] {
            return;
        }
        found.sort_by_key(|key| agent.fields.key(key).span);
        if let [first, .., last] = found[..] {
            let name = quoted(agent.name);
            let message = format!("agent {name} has two back-ends, {first} and {last}; give one");
            let first = agent.fields.key(first).span;
            let twice = Diagnostic::error("two_back_ends", message).at(agent.fields.key(last));
            self.told.push(twice.also(first, "the other one"));
        }
    }

    fn resolve(&mut self, model: &str, place: &Place) -> Chain {
        match self.input.catalog.resolve(model) {
            Ok(Resolved { target, fallbacks }) => (target, fallbacks),
            Err(Unresolved { code, message, help }) => {
                self.told.push(Diagnostic::error(code, message).at(place).help(help));
                alone(unset())
            }
        }
    }

    /// What a coding agent uses nobody knows before it is done, so no limit of tokens or money can be
    /// kept that it counts against.
    pub(super) fn check_unbounded(&mut self, named: &[Named<'_>], agents: &mut [Agent]) {
        let limit_of = |fields: &Fields| {
            let limits = fields.fields("limits")?;
            let item = limits.get("tokens").or_else(|| limits.get("cost_usd"))?;
            Some(item.place.clone())
        };
        let run = limit_of(self.file);
        for (named, agent) in named.iter().zip(agents) {
            let Some(limit) = limit_of(named.fields).or_else(|| run.clone()) else { continue };
            let help = || "limit calls and time instead".to_owned();
            if let Some(name) = agent.target.unmetered() {
                let message =
                    format!("the limit cannot be kept: nobody knows what {name} will use");
                let told = Diagnostic::error("unbounded_agent", message).at(&limit);
                self.told.push(told.help(help()));
            }
            agent.fallbacks.retain(|Fallback { number, target }| {
                let Some(name) = target.unmetered() else { return true };
                let why = format!("nobody knows what {name} will use, and a limit is to be kept");
                let told = left_out_of(&agent.name, *number, &why).at(&limit);
                self.told.push(told.help(help()));
                false
            });
        }
    }

    /// A limit of money holds only where prices are known; later targets without one are left out.
    pub(super) fn check_costs(&mut self, named: &[Named<'_>], agents: &mut [Agent]) {
        let limit_of = |fields: &Fields| {
            let limits = fields.fields("limits")?;
            limits.get("cost_usd").map(|item| item.place.clone())
        };
        let run = limit_of(self.file);
        for (named, agent) in named.iter().zip(agents) {
            let Some(limit) = limit_of(named.fields).or_else(|| run.clone()) else { continue };
            if let Some(model) = unpriced(&agent.target) {
                let message = format!("cost_usd cannot be kept: the price of {model} is not known");
                let told = Diagnostic::error("unknown_price", message).at(&limit);
                self.told.push(told.help(price_of(model)));
            }
            agent.fallbacks.retain(|Fallback { number, target }| {
                let Some(model) = unpriced(target) else { return true };
                let why = format!("the price of {model} is not known, and cost_usd is to be kept");
                let told = left_out_of(&agent.name, *number, &why).at(&limit);
                self.told.push(told.help(price_of(model)));
                false
            });
        }
    }
}

/// What answers for an agent, and what answers in its place.
pub(super) type Chain = (Target, Vec<Fallback>);

/// A chain of one target.
pub(super) fn alone(target: Target) -> Chain {
    (target, Vec::new())
}

/// Says that a target of a chain is left out.
pub fn left_out_of(whose: &str, number: u32, why: &str) -> Diagnostic {
    let whose = quoted(whose);
    let message = match number.checked_sub(ECONOMY) {
        None => format!("target {number} of {whose} is left out: {why}"),
        Some(before) => {
            format!("target {} of the economy model of {whose} is left out: {why}", before + 1)
        }
    };
    Diagnostic::warning("target_left_out", message)
}

/// The model of a target that has a price, but none that is known.
fn unpriced(target: &Target) -> Option<&Model> {
    match target {
        Target::Model(model) => Some(model).filter(|it| it.price.is_none() && !is_unset(it)),
        Target::Script(_)
        | Target::Demo
        | Target::Cli(_)
        | Target::Acp(_)
        | Target::A2a(_)
        | Target::Team(_) => None,
    }
}

fn price_of(model: &Model) -> String {
    format!("give it in the config, under [prices.\"{model}\"]")
}

fn own_program(fields: &Fields) -> CliProgram {
    CliProgram::Own(OwnProgram {
        command: fields.texts("command"),
        input: match fields.text("input").map(|it| &**it) {
            Some("file") => CliInput::File,
            Some("arg") => CliInput::Arg,
            Some(_) | None => CliInput::Stdin,
        },
        output: match fields.text("output").map(|it| &**it) {
            Some("json") => CliOutput::Json,
            Some("jsonl") => CliOutput::Jsonl,
            Some(_) | None => CliOutput::Text,
        },
    })
}

/// Says that there is no such coding agent.
fn unknown_cli(name: &str) -> Diagnostic {
    let known = CliProgram::PRESETS.map(|(name, _)| name);
    let help = suggestion(name, known)
        .unwrap_or_else(|| format!("known: {}; or {{ command: [...] }}", known.join(", ")));
    let message = format!("unknown coding agent {}", quoted(name));
    Diagnostic::error("unknown_cli", message).help(help)
}

/// The keys that say what answers for an agent.
pub(super) const BACK_ENDS: [&str; 7] = ["model", "script", "demo", "acp", "cli", "a2a", "team"];

/// What stands for a model that is not known; a file with such an agent can be checked, not run.
pub(super) fn unset() -> Target {
    Target::Model(Model::new("", ""))
}

/// Whether a model stands for one that is not known, as in a team that can only be checked.
pub fn is_unset(model: &Model) -> bool {
    model.provider.is_empty()
}
