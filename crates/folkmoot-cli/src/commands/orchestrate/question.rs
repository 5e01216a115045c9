//! Questions about cards that a person answers: ordinary runs, so `answer RUN` answers them.

use std::sync::Arc;

use anyhow::Result;
use folkmoot_core::{
    call::Call,
    spec::Spec,
    view::{self, Status},
};
use folkmoot_runtime::engine::{Engine, EngineError, RunId};
use serde_json::json;

use super::super::{
    drive::drive_quietly,
    team::{Origin, Team},
};
use crate::app::App;

/// Lets a run that was noted ask, unless it has. The question holds nothing that was written by others.
pub(super) async fn put(app: &App, engine: &Engine, run: &str, question: &str) -> Result<()> {
    let id = RunId::parse(run);
    let driver = match engine.load(&id).await {
        Err(EngineError::NoSuchRun(_)) => {
            engine.start_as(id, Arc::new(spec(app, question)?)).await?
        }
        Err(error) => return Err(error.into()),
        Ok(loaded) => match view::status(&loaded.run, loaded.is_alive()).0 {
            Status::Interrupted => engine.resume(&id).await?,
            _ => return Ok(()),
        },
    };
    drive_quietly(driver, app).await?;
    Ok(())
}

fn spec(app: &App, question: &str) -> Result<Spec> {
    let script = |replies: &[&str]| json!({ "replies": replies });
    let asks = format!("NEEDS_INPUT: {question}");
    // All roles are scripts: to ask a person needs no model.
    let file = json!({
        "name": "question",
        "agents": [
            { "name": "implementer", "script": script(&[&asks, "The answer is taken."]) },
            { "name": "reviewer", "script": script(&["CONVERGED"]) },
            { "name": "reviser", "script": script(&["The answer is taken."]) },
        ],
        "collaboration": { "pattern": "review" },
    });
    let team = Team::check(app, &Origin::Text(file.to_string()), Some(question), &[])?;
    Ok(team.sound_spec()?)
}

/// What a person said to a question; nothing yet if it is open.
pub(super) async fn answer(engine: &Engine, run: &str) -> Result<Option<String>> {
    let loaded = engine.load(&RunId::parse(run)).await?;
    let (status, _) = view::status(&loaded.run, loaded.is_alive());
    let mut said = loaded.run.known().iter().filter_map(|(_, entry)| {
        let reply = entry.outcome.as_ref().filter(|_| matches!(entry.call, Call::Person { .. }))?;
        Some(reply.as_ref().ok()?.text.trim().to_lowercase())
    });
    Ok(said.next().or_else(|| (status == Status::Cancelled).then(|| "deny".to_owned())))
}
