//! What servers may run here: requests become specs and engines by the config of this machine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use async_trait::async_trait;
use folkmoot_core::{
    diagnostic::{Diagnostic, quoted},
    refusal::Refusal,
    request::{Members, Request},
    spec::{Collaboration, Spec},
    team::{Agent, Sandbox, Target},
};
use folkmoot_runtime::engine::{Engine, Loaded};
use folkmoot_server::{Office, Ready};

use serde_json::{Map, Value};

use crate::{
    app::App,
    commands::{Team, asked},
    exit,
};

/// What a server lets its callers do at most.
#[derive(Debug)]
struct Ceiling {
    /// What agents may do.
    sandbox: Sandbox,
    /// Where teams stand and agents work: a folder and all below it.
    workspace: PathBuf,
}

/// The office of this machine.
pub(crate) struct Local {
    app: Arc<App>,
    engine: Engine,
    owner: String,
    ceiling: Ceiling,
}

impl Local {
    /// The office of the config and the store of `app`.
    pub(crate) fn new(app: Arc<App>, sandbox: Sandbox, workspace: &Path) -> Result<Local> {
        let (engine, owner) = (app.engine()?, app.owner()?);
        let workspace = std::fs::canonicalize(workspace)?;
        Ok(Local { app, engine, owner, ceiling: Ceiling { sandbox, workspace } })
    }

    /// Whether a path, as it is named, leads to a place below the workspace.
    fn is_inside(&self, path: &Path) -> bool {
        let place = self.ceiling.workspace.join(path);
        // What is not there cannot be read either, and is told so by whoever reads it.
        let place = std::fs::canonicalize(&place).or_else(|_| std::path::absolute(&place));
        let is_plain = |place: &PathBuf| !place.components().any(|it| it.as_os_str() == "..");
        place.is_ok_and(|place| is_plain(&place) && place.starts_with(&self.ceiling.workspace))
    }

    /// Everything that passes what this server allows.
    fn beyond(&self, spec: &Spec, is_inline: bool) -> Vec<Diagnostic> {
        let mut told = Vec::new();
        let workspace = spec.workspace.as_ref();
        let level = workspace.map_or(Sandbox::ReadOnly, |it| it.sandbox);
        if level > self.ceiling.sandbox {
            let (level, most) = (level.as_str(), self.ceiling.sandbox.as_str());
            let message = format!("sandbox is {level}, and this server allows {most} at most");
            let help = "whoever starts the server says so, with --sandbox";
            told.push(Diagnostic::error("not_allowed", message).help(help.to_owned()));
        }
        if let Some(outside) = workspace.filter(|it| !self.is_inside(Path::new(&*it.folder))) {
            let message = format!("{} lies outside the workspace", quoted(&outside.folder));
            told.push(Diagnostic::error("not_allowed", message));
        }
        if is_inline {
            told.extend(programs(spec));
        }
        told
    }
}

#[async_trait]
impl Office for Local {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn owner(&self) -> &str {
        &self.owner
    }

    fn ready(&self, request: &Request) -> Result<Ready, Refusal> {
        let members = request.judge(false).members;
        if let Some(Members::File(path)) = &members
            && !self.is_inside(Path::new(path))
        {
            let message = format!("the team file {} lies outside the workspace", quoted(path));
            return Err(Refusal::new("not_allowed", message));
        }
        let is_inline = matches!(members, Some(Members::Inline(_)));
        let team = Team::asked(&self.app, request.clone(), None);
        let mut team = team.map_err(|error| exit::refusal(&error))?;
        if let Some(spec) = &team.checked.spec {
            let beyond = self.beyond(spec, is_inline);
            let idle = spec.team.agents.first().filter(|_| request.lets_write());
            let idle = idle.filter(|agent| !can_edit(agent)).map(|agent| {
                let message = format!("{} cannot edit files", agent.name);
                Diagnostic::error("unsupported", message)
                    .help("leave sandbox out, or name a coding agent".to_owned())
            });
            team.checked.diagnostics.splice(0..0, idle.into_iter().chain(beyond));
        }
        let turns = team.checked.bounds.as_ref().map(|bounds| bounds.turns.max);
        let means = team.means();
        let spec = team.sound_spec()?;
        let form = request.form(&spec);
        Ok(Ready { spec, engine: means.given_to(self.engine.clone()), form, turns })
    }

    async fn orchestrate(&self, actor: &str, fields: Map<String, Value>) -> Result<Value, Refusal> {
        asked(&self.app, actor, &fields).await
    }

    fn engine_for(&self, run: &Loaded) -> Result<Engine, Refusal> {
        let engine = Team::engine_for(&self.app, self.engine.clone(), &run.spec, None);
        engine.map_err(|error| exit::refusal(&error))
    }
}

/// Whether somebody may change files.
fn can_edit(agent: &Agent) -> bool {
    match agent.target {
        Target::Cli(_) | Target::Acp(_) | Target::Team(_) => true,
        Target::Model(_) | Target::Script(_) | Target::Demo | Target::A2a(_) => agent.may_write(),
    }
}

/// What a team that comes with a request may not have: whatever starts programs of its own, or reaches
/// what the caller cannot see.
fn programs(spec: &Spec) -> Vec<Diagnostic> {
    let named = spec.team.agents.iter().chain(&spec.team.staff);
    let agents = named.filter(|agent| match agent.target {
        Target::Model(_) | Target::Script(_) | Target::Demo => {
            agent.grants.iter().any(|grant| grant.starts_with("mcp"))
        }
        Target::Cli(_) | Target::Acp(_) | Target::A2a(_) | Target::Team(_) => true,
    });
    let agents = agents.map(|agent| {
        let message = format!("{} is no model and no script, or uses MCP servers", agent.name);
        Diagnostic::error("not_allowed", message)
    });
    let is_process = matches!(spec.collaboration, Collaboration::Controller(_));
    let controller = is_process.then(|| {
        Diagnostic::error("not_allowed", "a team of a request has no controller of its own")
    });
    let required = spec.collaboration.requirements().into_iter();
    let commands = required.filter(|it| it.script.is_empty()).map(|it| {
        let message = format!("an edge requires {}, which a team of a request cannot", it.gate);
        Diagnostic::error("not_allowed", message)
    });
    let help = "put the team into a file of the workspace, and name that";
    let all = agents.chain(controller).chain(commands);
    all.map(|finding| finding.help(help.to_owned())).collect()
}
