//! Questions about cards that a person answers: ordinary runs, so `answer RUN` answers them.

use std::sync::Arc;

use anyhow::Result;
use folkmoot_core::{call::Call, view::Status};
use folkmoot_runtime::engine::{Engine, RunId};
use serde_json::json;

use super::super::{
    drive::drive_quietly,
    team::{Origin, Team},
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Asks; gives the run that does. The question holds nothing that was written by others.
pub(super) async fn ask(app: &App, engine: &Engine, question: &str) -> Result<RunId> {
    let script = |replies: &[&str]| json!({ "replies": replies });
    let asks = format!("NEEDS_INPUT: {question}");
    let file = json!({
        "name": "question",
        "agents": [
            { "name": "implementer", "script": script(&[&asks, "The answer is taken."]) },
            { "name": "reviewer", "script": script(&["CONVERGED"]) },
        ],
        "collaboration": { "pattern": "review" },
    });
    let team = Team::check(app, &Origin::Text(file.to_string()), Some(question), &[])?;
    let spec = team.spec(app).map_err(|_: Exit| Refusal::new("failed", "nobody can be asked"))?;
    let driver = engine.start(Arc::new(spec)).await?;
    let id = driver.id().clone();
    drive_quietly(driver, app).await?;
    Ok(id)
}

/// What a person said to a question; nothing yet if it is open.
pub(super) async fn answer(engine: &Engine, run: &str) -> Result<Option<String>> {
    let loaded = engine.load(&RunId::parse(run)).await?;
    let (status, _) = folkmoot_core::view::status(&loaded.run, loaded.is_alive());
    let mut said = loaded.run.known().iter().filter_map(|(_, entry)| {
        let reply = entry.outcome.as_ref().filter(|_| matches!(entry.call, Call::Person { .. }))?;
        Some(reply.as_ref().ok()?.text.trim().to_lowercase())
    });
    Ok(said.next().or_else(|| (status == Status::Cancelled).then(|| "deny".to_owned())))
}
