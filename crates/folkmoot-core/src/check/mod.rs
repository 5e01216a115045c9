//! From what a run is asked to be made of to a checked [`Spec`], or to everything that is wrong.

mod extensions;
mod filling;
mod grants;
pub mod graph;
mod import;
mod instructions;
mod lints;
mod listing;
mod names;
mod nested;
pub(crate) mod pattern;
mod programs;
mod roles;
mod secret;
mod servers;
mod strategies;
mod team;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use secret::{is_secret, tells};
pub use servers::{Hidden, Server, Times, Via};
pub use strategies::parameters;
pub use team::{Environment, Workplace, is_unset, left_out_of, server_name};

use crate::{
    bounds::{Bounds, Taken},
    check::{extensions::Extensions, instructions::Instructions, lints::Lints, servers::Found},
    diagnostic::{Diagnostic, ENOUGH, Severity},
    extension::Registry,
    file::{
        document::{self, Document},
        extensions::Declared,
        item::Fields,
        models::Catalog,
        node::{Entry, Node, Origin},
        overrides::{self, Override},
        reader::Reader,
        source,
        team::TEAM,
    },
    programs::{Clocks, Dispatch, controller::USUAL_CALLS},
    spec::{Choice, Collaboration, Mail, Recipe, Spec, TeamSource, Warning},
    team::{Agent, Target, Team},
};

/// All that a run is made of. The core reads no files and no environment, so it is given both.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The team.
    pub source: Source<'a>,
    /// What the team is called if it does not say.
    pub name: &'a str,
    /// Where its file stands, if it comes from one.
    pub path: Option<&'a str>,
    /// What wins over the file.
    pub overrides: &'a [Override],
    /// The task; `None` if nothing is to be run. Then a model may be missing.
    pub task: Option<&'a str>,
    /// The models there are.
    pub catalog: &'a Catalog,
    /// The environment's variables.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that the team file names, relative to it; an error says what is wrong.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// The text of a file of a workspace, given by the folder and its name, if it is there; an error
    /// says what is wrong.
    pub beside: &'a Beside<'a>,
    /// The names of the files in a folder that the team file names, likewise; none if there is no such
    /// folder. One that begins with `~/` is the user's.
    pub list: &'a dyn Fn(&str) -> Result<Vec<String>, String>,
    /// The files around it that name it as a team, the outermost first.
    pub around: &'a [Arc<str>],
}

/// Reads a file of a workspace, if it is there.
pub type Beside<'a> = dyn Fn(&str, &str) -> Result<Option<String>, String> + 'a;

/// Where a team comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The bytes of a team file.
    File(&'a [u8]),
    /// Names on the command line, of agents with the default model.
    Names(&'a [String]),
    /// Names on the command line, of offline agents.
    DemoNames(&'a [String]),
    /// The built-in offline team.
    Demo,
}

impl Input<'_> {
    /// What it takes to check the same again, without the files that are read; of a team that sets
    /// variables only where it stands. Values may be secrets, and an override by its place in the file
    /// may hold one.
    fn recipe(&self, place: &Workplace) -> Recipe {
        let (is_kept, variables) = (place.sets_nothing(), place.variables());
        let is_harmless = |it: &&Override| is_kept || it.name.starts_with("--");
        Recipe {
            team: if is_kept { self.source.stored() } else { TeamSource::Withheld(variables) },
            name: self.name.into(),
            path: self.path.map(Into::into),
            overrides: self.overrides.iter().filter(is_harmless).cloned().collect(),
            files: BTreeMap::new(),
        }
    }
}

impl Source<'_> {
    fn stored(&self) -> TeamSource {
        match self {
            Source::File(bytes) => TeamSource::File(String::from_utf8_lossy(bytes).into()),
            Source::Names(names) => TeamSource::Names(names.to_vec()),
            Source::DemoNames(names) => TeamSource::DemoNames(names.to_vec()),
            Source::Demo => TeamSource::Demo,
        }
    }
}

/// What came of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The text that the diagnostics point into.
    pub text: String,
    /// Everything found: errors first, then by place.
    pub diagnostics: Vec<Diagnostic>,
    /// What can be run; `None` if there is any error.
    pub spec: Option<Spec>,
    /// What the run takes.
    pub bounds: Option<Bounds>,
    /// The agents, as far as they could be read; see [`is_unset`] for models that could not.
    pub team: Team,
    /// Where they work.
    pub workplace: Workplace,
    found: Found,
    instructions: Instructions,
}

impl Checked {
    /// Whether a run may start.
    pub fn is_valid(&self) -> bool {
        self.of(Severity::Error).next().is_none()
    }

    /// What its graph looks like, or by stage those it has, if they are sound.
    pub fn graphs(&self) -> Vec<(Option<Arc<str>>, graph::GraphView)> {
        let graphs = self.spec.iter().flat_map(|spec| spec.collaboration.graphs());
        graphs.map(|(stage, graph)| (stage.map(Arc::from), graph::view(graph))).collect()
    }

    /// What each of its stages takes, if it has some and is sound.
    pub fn stages(&self) -> Vec<Taken> {
        let graphs = self.spec.iter().flat_map(|spec| spec.collaboration.graphs());
        let stages = graphs.filter(|(stage, _)| stage.is_some());
        stages.map(|(_, graph)| Taken::of(graph, &self.team)).collect()
    }

    /// The findings of one severity.
    pub fn of(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |diagnostic| diagnostic.severity == severity)
    }
}

/// The built-in offline team.
pub const DEMO_TEAM: &str = r#"{
  "name": "demo",
  "agents": [
    { "name": "researcher", "description": "Finds out what is known",
      "capabilities": ["research", "analysis"], "demo": true },
    { "name": "critic", "description": "Looks for what is wrong or missing",
      "capabilities": ["review", "testing"], "demo": true },
    { "name": "writer", "description": "Puts things into words",
      "capabilities": ["writing", "editing"], "demo": true }
  ]
}"#;

/// Checks what a run is to be made of; finds everything at once, and asks no model.
pub fn check(input: &Input<'_>) -> Checked {
    check_with(input, &Registry::default())
}

/// The same with topologies and conditions of the caller's own.
pub fn check_with(input: &Input<'_>, registry: &Registry) -> Checked {
    let files = RefCell::new(BTreeMap::new());
    let read = |name: &str| {
        let text = (input.read)(name)?;
        files.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    };
    let list = |folder: &str| {
        let names = (input.list)(folder)?;
        files.borrow_mut().insert(listing(folder), names.join("\n"));
        Ok(names)
    };
    let mut checked = check_reading(&Input { read: &read, list: &list, ..*input }, registry);
    if let Some(recipe) = checked.spec.as_mut().and_then(|spec| spec.recipe.as_mut())
        && !matches!(recipe.team, TeamSource::Withheld(_))
    {
        recipe.files = files.into_inner();
    }
    checked
}

/// Under what name the names of the files in a folder are kept among a recipe's files.
pub fn listing(folder: &str) -> String {
    format!("{}/", folder.trim_end_matches('/'))
}

fn check_reading(input: &Input<'_>, registry: &Registry) -> Checked {
    let (text, document) = document(input.source);
    let Document { root, diagnostics: mut told, damaged } = document;
    let root = import::apply(root, input, &mut told);
    let (root, unknown) = overrides::apply(root, input.overrides);
    told.extend(unknown);
    let declared =
        Declared::in_file(&root).and(registry.conditions().keys().cloned(), registry.parameters());
    let mut reader = Reader::new(&TEAM, damaged, input.variable).knowing(declared);
    let file = reader.read(&root);
    told.append(&mut reader.diagnostics);
    let is_cast = pattern::is_asked_for(&file);
    let members = if is_cast {
        team::nobody(&file, input)
    } else {
        team::members(&file, input, registry, &mut told)
    };
    let mut checked = Checked {
        text,
        diagnostics: Vec::new(),
        spec: None,
        bounds: None,
        team: members.team,
        workplace: members.workplace,
        found: Found::default(),
        instructions: Instructions::default(),
    };
    check_task(input.task, &mut told);
    told.extend(nested::displaced(&file, input));
    checked.found = servers::find(&root, &file, input, &mut told);
    checked.workplace.servers.extend(checked.found.servers.clone());
    checked.workplace.secrets.0.extend(checked.found.secrets.0.iter().cloned());
    checked.workplace.sets_values |= checked.found.sets_values;
    checked.instructions = Instructions::find(&file, input, &mut told);
    checked.hand_out();
    if !damaged && !members.incomplete {
        checked.work(&file, input, registry, &mut told);
    }
    let found = std::mem::take(&mut checked.found);
    found.check(&file, &checked.team, &checked.workplace.servers, &mut told);
    checked.diagnostics = ordered(told);
    checked.spec = checked.spec.take().filter(|_| checked.is_valid());
    let warnings = checked.warnings();
    if let Some(spec) = &mut checked.spec {
        spec.warnings = warnings;
    }
    checked
}

impl Checked {
    fn warnings(&self) -> Vec<Warning> {
        let warning =
            |it: &Diagnostic| Warning { code: it.code.into(), message: it.message.as_str().into() };
        self.of(Severity::Warning).map(warning).collect()
    }

    /// Checks how the team works, now that its members are known.
    fn work(
        &mut self,
        file: &Fields,
        input: &Input<'_>,
        registry: &Registry,
        told: &mut Vec<Diagnostic>,
    ) {
        let source = self.text.clone();
        if let Some(given) = file.fields("collaboration").filter(|_| pattern::is_asked_for(file)) {
            return self.by_a_pattern(file, given, input, told);
        }
        let extensions = Extensions::read(file, registry, &source, &self.team, told);
        let prompt = team::prompt(file, input, told).filter(|prompt| !prompt.trim().is_empty());
        let absent = Fields::none(file.place.clone());
        let given = match file.fields("collaboration") {
            Some(given) => given,
            None if file.is_broken("collaboration") => return,
            None => &absent,
        };
        if SHAPES.into_iter().any(|key| given.is_broken(key)) || file.is_broken("agents_from") {
            return;
        }
        let by_strategy = file.get("collaboration").is_some() || given.get("strategy").is_some();
        if let Some(prompt) = prompt.clone().filter(|_| !by_strategy) {
            return self.by_a_lead(file, input, prompt, told);
        }
        let is_flag = given.get("strategy").is_some_and(|item| item.place.span.is_none());
        if roles::is_asked_for(given) {
            return self.by_roles(file, given, input, told);
        }
        let has_program = given.get(programs::PROGRAM).is_some();
        if graph::is_asked_for(given) && !is_flag && !has_program {
            return self.along_a_graph(file, given, input, prompt, &extensions, told);
        }
        told.extend(extensions::misplaced(given));
        told.extend(unused_by_strategies(file));
        if has_program && !is_flag {
            return self.by_a_program(file, given, input, &extensions, told);
        }
        let resolved = strategies::resolve(given, &self.team, told);
        let Some((collaboration, auto)) = resolved else { return };
        let limits = team::limits(file);
        let bounds = Bounds::of(&collaboration, &self.team, &limits, input.task);
        let lints = Lints { file, given, team: &self.team };
        told.extend(lints.warnings(&collaboration, &bounds));
        self.settle(file, input, collaboration, auto, bounds);
    }

    /// Checks a team that works along a graph.
    fn along_a_graph(
        &mut self,
        file: &Fields,
        given: &Fields,
        input: &Input<'_>,
        prompt: Option<Arc<str>>,
        extensions: &Extensions,
        told: &mut Vec<Diagnostic>,
    ) {
        let lead = prompt.map(|prompt| team::lead(file, input, prompt, told));
        let judge = team::default_judge(file, input, graph::DEFAULT_JUDGE, told);
        self.team.staff = lead.into_iter().chain(judge).collect();
        self.hand_out();
        let resolved = graph::resolve(given, &self.team, extensions, input.read, told);
        let Some(found) = resolved else { return };
        self.team.staff.retain(|agent| found.needs(given, &agent.id));
        if told.iter().any(Diagnostic::is_error) {
            return;
        }
        told.extend(found.warnings(file, given, &self.team));
        let limits = team::limits(file);
        let bounds = Bounds::of(&found.collaboration, &self.team, &limits, input.task);
        let is_gated = found.needs_workspace();
        self.settle(file, input, found.collaboration, None, bounds);
        if let Some(spec) = self.spec.as_mut().filter(|_| is_gated) {
            spec.workspace = Some(self.workplace.workspace());
        }
    }

    /// Checks a team of roles that work by a pattern.
    fn by_a_pattern(
        &mut self,
        file: &Fields,
        given: &Fields,
        input: &Input<'_>,
        told: &mut Vec<Diagnostic>,
    ) {
        told.extend(nested::misplaced(file, "a pattern"));
        let Some(cast) = pattern::resolve(file, given, input, told) else { return };
        (self.team.agents, self.team.staff) = (cast.agents, cast.staff);
        self.hand_out();
        let Some(pattern) = cast.pattern.filter(|_| !told.iter().any(Diagnostic::is_error)) else {
            return;
        };
        told.extend(unused_by_strategies(file));
        let collaboration = Collaboration::Pattern(pattern);
        let limits = team::limits(file);
        let bounds = Bounds::of(&collaboration, &self.team, &limits, input.task);
        let lints = Lints { file, given, team: &self.team };
        told.extend(lints.warnings(&collaboration, &bounds));
        self.settle(file, input, collaboration, None, bounds);
    }

    /// Checks a team whose lead dispatches freely.
    fn by_a_lead(
        &mut self,
        file: &Fields,
        input: &Input<'_>,
        prompt: Arc<str>,
        told: &mut Vec<Diagnostic>,
    ) {
        if self.team.agents.is_empty() {
            return told
                .push(Diagnostic::error("no_agents", "the team has no agents").at(&file.place));
        }
        self.team.staff = vec![team::lead(file, input, prompt, told)];
        self.hand_out();
        let agents = self.team.agents.iter().map(|agent| agent.id.clone()).collect();
        let dispatch = Dispatch { agents, clocks: Clocks::default() };
        let collaboration = Collaboration::Dispatch(dispatch);
        let limits = team::limits(file);
        let bounds = Bounds::of(&collaboration, &self.team, &limits, input.task);
        self.settle(file, input, collaboration, None, bounds);
    }

    /// Checks a team that works as a program says that is not built in.
    fn by_a_program(
        &mut self,
        file: &Fields,
        given: &Fields,
        input: &Input<'_>,
        extensions: &Extensions,
        told: &mut Vec<Diagnostic>,
    ) {
        let resolved =
            programs::resolve(given, &self.team, &extensions.registry, folder_of(input.path), told);
        let Some(collaboration) = resolved else { return };
        if let Collaboration::Controller(controller) = &collaboration {
            self.team.staff = vec![controller.staff()];
        }
        let mut limits = team::limits(file);
        // A table bounds its own turns; what is not built in is bounded by nothing else.
        if !matches!(collaboration, Collaboration::Roundtable(_)) {
            limits.calls.get_or_insert(USUAL_CALLS);
        }
        let bounds = Bounds::of(&collaboration, &self.team, &limits, input.task);
        let lints = Lints { file, given, team: &self.team };
        told.extend(lints.warnings(&collaboration, &bounds));
        let is_process = matches!(collaboration, Collaboration::Controller(_));
        self.settle(file, input, collaboration, None, bounds);
        if let Some(spec) = &mut self.spec {
            spec.limits = limits;
            if is_process {
                spec.workspace = Some(self.workplace.workspace());
            }
        }
    }

    /// Checks a team of roles.
    fn by_roles(
        &mut self,
        file: &Fields,
        given: &Fields,
        input: &Input<'_>,
        told: &mut Vec<Diagnostic>,
    ) {
        told.extend(unused_by_strategies(file));
        told.extend(nested::misplaced(file, "the role team"));
        let mut casting = roles::Casting { file, given, input, told };
        let Some((agents, roles)) = casting.cast(&self.team.agents) else { return };
        self.team.agents = agents;
        self.hand_out();
        let collaboration = Collaboration::Roles(roles);
        let limits = team::limits(file);
        let bounds = Bounds::of(&collaboration, &self.team, &limits, input.task);
        let lints = Lints { file, given, team: &self.team };
        told.extend(lints.warnings(&collaboration, &bounds));
        self.settle(file, input, collaboration, None, bounds);
    }

    /// Gives agents what the team's surroundings have for them.
    fn hand_out(&mut self) {
        self.found.hand_out(&mut self.team);
        self.instructions.hand_out(&mut self.team);
    }

    /// Keeps what can be run.
    fn settle(
        &mut self,
        file: &Fields,
        input: &Input<'_>,
        collaboration: Collaboration,
        auto: Option<Choice>,
        bounds: Bounds,
    ) {
        self.bounds = Some(bounds);
        let works = |agent: &Agent| {
            let later = agent.fallbacks.iter().map(|later| &later.target);
            let mut targets = [&agent.target].into_iter().chain(later);
            let needs_one = |target: &Target| match target {
                Target::Cli(_) | Target::Acp(_) => true,
                Target::Team(nested) => nested.spec.workspace.is_some(),
                Target::Model(_) | Target::Script(_) | Target::Demo | Target::A2a(_) => false,
            };
            !agent.grants.is_empty() || targets.any(needs_one)
        };
        let needs_place = self.team.everyone().any(works);
        self.spec = Some(Spec {
            team: self.team.clone(),
            task: input.task.unwrap_or_default().into(),
            collaboration,
            auto,
            limits: team::limits(file),
            workspace: needs_place.then(|| self.workplace.workspace()),
            warnings: Vec::new(),
            recipe: Some(input.recipe(&self.workplace)),
            mail: if file.text("mail").is_some_and(|it| &**it == "off") {
                Mail::Off
            } else {
                Mail::On
            },
        });
    }
}

/// The folder of a team file: what the file names is found from there.
fn folder_of(path: Option<&str>) -> &str {
    let folder = path.and_then(|path| path.rsplit_once(['/', std::path::MAIN_SEPARATOR]));
    match folder {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => ".",
    }
}

/// The keys that make a collaboration something else than a strategy.
const SHAPES: [&str; 2] = ["pattern", "program"];

fn document(source: Source<'_>) -> (String, Document) {
    match source {
        Source::File(bytes) => {
            let (text, broken) = source::decode(bytes);
            let mut document = document::read(if broken.is_some() { "" } else { text });
            document.damaged |= broken.is_some();
            document.diagnostics.extend(broken);
            (text.to_owned(), document)
        }
        Source::Demo => (DEMO_TEAM.to_owned(), document::read(DEMO_TEAM)),
        Source::Names(names) => (String::new(), named(names, None)),
        Source::DemoNames(names) => (String::new(), named(names, Some("demo"))),
    }
}

/// A team of agents that have a name and perhaps a key that is true.
fn named(names: &[String], key: Option<&str>) -> Document {
    let origin = Origin::Flag("--agents".into());
    let entry = |key: &str, value| Entry { key: key.into(), origin: origin.clone(), value };
    let agents = names.iter().map(|name| {
        let name = entry("name", Node::text(origin.clone(), name.as_str()));
        let key = key.map(|key| entry(key, Node::plain(origin.clone(), "true")));
        Node::map(origin.clone(), [name].into_iter().chain(key))
    });
    let agents = entry("agents", Node::list(origin.clone(), agents));
    Document { root: Node::map(Origin::Implied, [agents]), diagnostics: Vec::new(), damaged: false }
}

fn check_task(task: Option<&str>, told: &mut Vec<Diagnostic>) {
    if task.is_some_and(|task| task.trim().is_empty()) {
        told.push(Diagnostic::error("empty_prompt", "the task is empty"));
    }
}

/// What stands at the top level for the lead means nothing where there is none.
fn unused_by_strategies(file: &Fields) -> Vec<Diagnostic> {
    const OF_THE_LEAD: [&str; 4] = ["prompt", "prompt_file", "script", "grants"];
    let given = OF_THE_LEAD.into_iter().filter(|key| file.get(key).is_some());
    let unused = given.map(|key| {
        let message = format!("{key} is the lead's, and no strategy has a lead");
        Diagnostic::hint("unused_lead", message).at(file.key(key))
    });
    unused.collect()
}

/// Errors first, each once, by place; what has none comes last, and what is too much not at all.
fn ordered(told: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut told: Vec<_> = told
        .into_iter()
        .filter(|told| seen.insert((told.code, told.message.clone(), told.at, told.file.clone())))
        .collect();
    told.sort_by_key(|told| (told.severity, told.file.clone(), told.at.is_none(), told.at));
    told.truncate(ENOUGH);
    told
}
