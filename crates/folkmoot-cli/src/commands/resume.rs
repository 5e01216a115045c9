use std::{collections::BTreeSet, path::PathBuf};

use anyhow::Result;
use clap::Args;
use folkmoot_core::{
    spec::{Recipe, Spec},
    team::AgentId,
};
use serde_json::{Value, json};

use super::{
    drive::drive,
    team::{Origin, Team},
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Goes on with a run that was interrupted; nothing that was answered is asked again.
///
/// A run keeps the team it began with. If agents were added to its file, removed or renamed since,
/// that is refused; other changes are warned of.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// Goes on with the team as it was, whatever its file says now
    #[arg(long)]
    as_recorded: bool,
    /// The team file that sets the variables of its programs, if it has moved since
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
}

impl Resume {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let (engine, id) = app.engine_and_run(&self.run).await?;
        let loaded = engine.load(&id).await?;
        if let Some(recipe) = loaded.spec.recipe.as_ref().filter(|_| !self.as_recorded) {
            compare(app, &loaded.spec, recipe)?;
        }
        let engine = Team::engine_for(app, engine, &loaded.spec, self.team.as_deref())?;
        drive(engine.resume(&id).await?, app).await
    }
}

/// Compares the team of a run with what its file says now.
fn compare(app: &App, spec: &Spec, recipe: &Recipe) -> Result<()> {
    let Some(path) = &recipe.path else { return Ok(()) };
    let origin = Origin::File(PathBuf::from(&**path));
    let now = match Team::check(app, &origin, Some(&spec.task), &recipe.overrides) {
        Ok(team) => team.checked.spec,
        Err(_) => None,
    };
    let Some(now) = now else {
        warn(app, &format!("{path} is gone or has mistakes; the run keeps the team it began with"));
        return Ok(());
    };
    let (mut gone, new) = (missing(spec, &now), missing(&now, spec));
    gone.extend(left_out(spec, &now));
    if !gone.is_empty() || !new.is_empty() {
        let parts = [("without", gone), ("with", new)].into_iter();
        let parts = parts.filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> =
            parts.map(|(how, names)| format!("{how} {}", names.join(", "))).collect();
        let message = format!("{path} has other agents now: {}", parts.join(" and "));
        let help =
            "--as-recorded goes on with the team as it was; `folkmoot fork` takes the new one";
        return Err(Refusal::new("team_changed", message).help(help).into());
    }
    let is_changed = |id: &&AgentId| spec.team.agent(id) != now.team.agent(id);
    let ids = spec.team.everyone().map(|agent| &agent.id);
    let parts = [
        ("collaboration", spec.collaboration != now.collaboration),
        ("limits", spec.limits != now.limits),
    ];
    let parts = parts.into_iter().filter(|(_, is_changed)| *is_changed).map(|(part, _)| part);
    let changed: Vec<&str> = ids.filter(is_changed).map(AgentId::as_str).chain(parts).collect();
    if !changed.is_empty() {
        let changed = changed.join(", ");
        let text = "has changed since the run began, which goes on with what it began with";
        warn(app, &format!("{path} {text}: {changed}"));
    }
    Ok(())
}

/// The agents of `one` that `other` does not have.
fn missing<'a>(one: &'a Spec, other: &Spec) -> Vec<&'a str> {
    let agents = one.team.everyone().filter(|agent| !other.team.has(&agent.id));
    agents.map(|agent| &*agent.name).collect()
}

/// The agents that took part in `one` and are still there in `other`, with no part in it.
fn left_out<'a>(one: &'a Spec, other: &Spec) -> Vec<&'a str> {
    let named = |spec: &Spec| names(&json!(spec.collaboration));
    let (before, now) = (named(one), named(other));
    let is_left_out = |id: &str| before.contains(id) && !now.contains(id);
    let agents = one.team.agents.iter().filter(|agent| other.team.has(&agent.id));
    agents.filter(|agent| is_left_out(agent.id.as_str())).map(|agent| &*agent.name).collect()
}

/// Every text in a value, among them the agents that it names.
fn names(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) => BTreeSet::from([text.clone()]),
        Value::Array(items) => items.iter().flat_map(names).collect(),
        Value::Object(fields) => fields.values().flat_map(names).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => BTreeSet::new(),
    }
}

fn warn(app: &App, text: &str) {
    app.tell(&format!("warning: {}", app.screen().line(text)));
}
