//! What the server over HTTP needs of this machine.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use folkmoot_agents::Secrets;
use folkmoot_core::{
    check::DEMO_TEAM,
    diagnostic::{Severity, quoted},
    file::overrides::Override,
    refusal::Refusal,
    request::{Judged, Request},
    spec::Spec,
};
use folkmoot_runtime::{
    driver::Driver,
    engine::{Engine, Loaded},
};
use folkmoot_server::http::{Machine, Masks, Rehearsal};
use serde_json::{Value, json};

use super::{Local, powers::powers};
use crate::{
    commands::{Origin, Team, Undo, label, plan, rehearsed, report},
    exit,
};

/// The name of the built-in offline team.
const DEMO: &str = "demo";

/// What the names of team files end in.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Hides the secrets of this machine.
struct Hidden(Secrets);

impl Masks for Hidden {
    fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.mask(text)
    }

    fn push(&self, held: &mut String, text: &str, masked: &mut String) {
        self.0.push(held, text, masked);
    }
}

#[async_trait]
impl Machine for Local {
    fn masks(&self) -> Arc<dyn Masks> {
        Arc::new(Hidden(self.app.secrets()))
    }

    fn sandbox(&self) -> &'static str {
        self.ceiling.sandbox.as_str()
    }

    fn teams(&self) -> Vec<Value> {
        let demo =
            serde_json::from_str::<Value>(DEMO_TEAM).map(|team| Origin::Text(team.to_string()));
        let files = self.files().into_iter().map(|(name, file)| (name, Origin::File(file)));
        let mut all: Vec<(String, Origin)> = files.collect();
        if let Ok(demo) = demo {
            all.push((DEMO.to_owned(), demo));
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.iter().map(|(name, origin)| self.known(name, origin)).collect()
    }

    fn team(&self, name: &str) -> Result<Value, Refusal> {
        let found = self.files().into_iter().find(|(known, _)| known == name);
        if let Some((_, file)) = found {
            return file.to_str().map(Value::from).ok_or_else(|| self.no_team(name));
        }
        let demo = serde_json::from_str(DEMO_TEAM).ok().filter(|_| name == DEMO);
        demo.ok_or_else(|| self.no_team(name))
    }

    fn check(&self, request: &Request) -> Result<Value, Refusal> {
        let mut team = self.looked_at(request)?;
        team.checked.diagnostics.extend(team.unusable(Severity::Warning));
        team.leave_out_unusable();
        Ok(report(&team))
    }

    fn plan(&self, request: &Request) -> Result<Value, Refusal> {
        let mut team = self.looked_at(request)?;
        team.checked.diagnostics.extend(team.unusable(Severity::Warning));
        let bounds = team.checked.bounds.clone();
        let spec = team.rehearsable_spec()?;
        Ok(plan::told(&spec, &bounds.expect("what can be run has bounds")))
    }

    async fn simulate(&self, request: &Request, rehearsal: &Rehearsal) -> Result<Value, Refusal> {
        let team = self.team_of(request)?;
        let spec = team.rehearsable_spec()?;
        let Rehearsal { seed, faults } = rehearsal;
        let outcome = rehearsed(&self.engine, spec, *seed, faults.as_deref()).await?;
        Ok(json!(outcome))
    }

    fn changed(
        &self,
        origin: &Loaded,
        changes: Vec<Override>,
    ) -> Result<(Arc<Spec>, Engine), Refusal> {
        let Some(recipe) = &origin.spec.recipe else {
            let message = format!("run {} keeps no team file: there was none", origin.id);
            return Err(Refusal::new("no_recipe", message));
        };
        self.within(&origin.spec)?;
        let team = Team::check_again(&self.app, recipe, &origin.spec, changes);
        let team = team.map_err(|error| exit::refusal(&error))?;
        let means = team.means();
        let spec = team.sound_spec()?;
        self.within(&spec)?;
        let had = powers(&origin.spec);
        if let Some(new) = powers(&spec).iter().find(|power| !had.contains(*power)) {
            let message = format!("the change goes beyond what run {} may do: {new}", origin.id);
            return Err(Refusal::new("not_allowed", message));
        }
        Ok((Arc::new(spec), means.given_to(self.engine.clone())))
    }

    async fn put_back(&self, origin: &Loaded, driver: &Driver) -> Result<(), Refusal> {
        let put_back = Undo::default().put_back(&self.app, origin, driver).await;
        put_back.map_err(|error| exit::refusal(&error))
    }
}

impl Local {
    /// The team files that requests may name, by their names without the ending; of two that have the same
    /// name the first one counts.
    fn files(&self) -> Vec<(String, PathBuf)> {
        let Some(folder) = &self.ceiling.teams else { return Vec::new() };
        let entries = folder.read_dir().into_iter().flatten();
        let mut files: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
        files.sort();
        let is_team = |file: &Path| {
            let ending = file.extension().and_then(|it| it.to_str());
            file.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending))
        };
        let mut named: Vec<(String, PathBuf)> = Vec::new();
        for file in files.into_iter().filter(|file| is_team(file)) {
            let name = file.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
            if let Some(name) = name.filter(|name| named.iter().all(|(known, _)| known != name)) {
                named.push((name, file));
            }
        }
        named
    }

    fn no_team(&self, name: &str) -> Refusal {
        let names = self.files().into_iter().map(|(name, _)| name).chain([DEMO.to_owned()]);
        let refusal = Refusal::new("unknown_team", format!("there is no team {}", quoted(name)));
        let help = "whoever starts the server says with --teams where they are";
        Refusal { allowed: names.collect(), ..refusal.help(help) }
    }

    /// A team as a list of them tells it.
    fn known(&self, name: &str, origin: &Origin) -> Value {
        let team = match Team::check(&self.app, origin, None, &[]) {
            Ok(team) => team,
            Err(error) => {
                let told = exit::refusal(&error).told();
                return json!({
                    "name": name, "title": name, "description": null, "strategy": null,
                    "agents": [], "valid": false, "errors": told["errors"],
                });
            }
        };
        let agent = |agent: &folkmoot_core::team::Agent| {
            json!({
                "id": agent.id,
                "name": agent.name,
                "description": agent.description,
                "model": label(&agent.target),
            })
        };
        let checked = &team.checked;
        json!({
            "name": name,
            "title": checked.team.name,
            "description": null,
            "strategy": checked.spec.as_ref().map(|spec| spec.collaboration.name()),
            "agents": checked.team.agents.iter().map(agent).collect::<Vec<_>>(),
            "valid": checked.is_valid(),
            "errors": team.findings(Severity::Error),
        })
    }

    /// The team of a request, with or without a task; nothing is refused but the request itself.
    fn looked_at(&self, request: &Request) -> Result<Team, Refusal> {
        let Judged { members, task, overrides, refused, .. } = request.judge(false);
        if let Some(refusal) = Refusal::all(refused) {
            return Err(refusal);
        }
        let is_inline = self.may_read(members.as_ref())?;
        let origin = members.map(Origin::from).ok_or_else(|| self.no_team(""))?;
        let task = Some(&*task).filter(|task| !task.trim().is_empty());
        let team = Team::check(&self.app, &origin, task, &overrides);
        let mut team = team.map_err(|error| exit::refusal(&error))?;
        self.look_beyond(&mut team, is_inline);
        Ok(team)
    }
}
