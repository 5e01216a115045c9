//! What servers may run here: requests become specs and engines by the config of this machine.

mod machine;
mod powers;

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
    spec::Spec,
    team::{Agent, Sandbox, Target},
};
use folkmoot_runtime::engine::{Engine, Loaded};
use folkmoot_server::{Office, Ready};

use serde_json::{Map, Value};

use self::powers::powers;
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
    /// Where besides teams stand that requests may name.
    teams: Option<PathBuf>,
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
        let ceiling = Ceiling { sandbox, workspace, teams: None };
        Ok(Local { app, engine, owner, ceiling })
    }

    /// The same, where requests may also name the teams of this folder.
    pub(crate) fn with_teams(mut self, folder: Option<&Path>) -> Result<Local> {
        self.ceiling.teams = folder.map(std::fs::canonicalize).transpose()?;
        Ok(self)
    }

    /// The team of a request, with what is wrong with it and what passes what this server allows.
    fn team_of(&self, request: &Request) -> Result<Team, Refusal> {
        let is_inline = self.may_read(request.judge(false).members.as_ref())?;
        let team = Team::asked(&self.app, request.clone(), None);
        let mut team = team.map_err(|error| exit::refusal(&error))?;
        let spec = team.checked.spec.as_ref();
        let idle = spec.and_then(|spec| spec.team.agents.first());
        let idle = idle.filter(|agent| request.lets_write() && !can_edit(agent)).map(|agent| {
            let message = format!("{} cannot edit files", agent.name);
            Diagnostic::error("unsupported", message)
                .help("leave sandbox out, or name a coding agent".to_owned())
        });
        self.look_beyond(&mut team, is_inline);
        team.checked.diagnostics.splice(0..0, idle);
        Ok(team)
    }

    /// Whether a team comes with its request; refused if it is a file that this server may not read.
    fn may_read(&self, members: Option<&Members>) -> Result<bool, Refusal> {
        match members {
            Some(Members::File(path)) if !self.has_team(Path::new(path)) => {
                let message = format!("the team file {} lies outside the workspace", quoted(path));
                Err(Refusal::new("not_allowed", message))
            }
            Some(Members::Inline(_)) => Ok(true),
            Some(Members::File(_) | Members::Named(_)) | None => Ok(false),
        }
    }

    fn has_team(&self, path: &Path) -> bool {
        let teams = self.ceiling.teams.as_deref();
        let is_known = teams.is_some_and(|teams| path.parent() == Some(teams));
        is_known || self.is_inside(path)
    }

    /// Refuses what passes what this server allows.
    fn within(&self, spec: &Spec) -> Result<(), Refusal> {
        let beyond = self.beyond(spec, false);
        let refusals = beyond.iter().map(|finding| Refusal::found(finding, ""));
        Refusal::all(refusals).map_or(Ok(()), Err)
    }

    /// Finds what passes what this server allows.
    fn look_beyond(&self, team: &mut Team, is_inline: bool) {
        if let Some(spec) = &team.checked.spec {
            let beyond = self.beyond(spec, is_inline);
            team.checked.diagnostics.splice(0..0, beyond);
        }
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
            let help = "put the team into a file that the server is given, and name that";
            told.extend(powers(spec).into_iter().map(|power| {
                let message = format!("a team of a request may not have this: {power}");
                Diagnostic::error("not_allowed", message).help(help.to_owned())
            }));
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
        let team = self.team_of(request)?;
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
        self.within(&run.spec)?;
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
