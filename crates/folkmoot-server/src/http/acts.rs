//! What people say to runs: one external event each.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use folkmoot_core::{
    file::overrides::{Given as Value_, Override},
    key::Key,
    refusal::Refusal,
    replay,
    request::Form,
    view,
};
use folkmoot_runtime::engine::{Change, Engine, Loaded};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    Server,
    problem::Problem,
    reading::Body,
    runs::{created, working},
};
use crate::standing::{Given, Standing};

/// Nothing is said with it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// An answer to a question of a run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// The question; the only one unless given
    key: Option<String>,
    /// What the person says
    text: Option<String>,
    /// `approve` or `deny`, instead of a text
    decision: Option<String>,
    /// How long to wait for the run's end, in seconds
    wait_s: Option<f64>,
}

/// Answers a question of a run, which goes on with it.
#[utoipa::path(
    post,
    path = "/v1/runs/{id}/answer",
    tag = "runs",
    params(("id" = String, Path, description = "The run")),
    request_body = Answer,
    responses((status = 200, description = "`{run_id, status}`, or its record if it ends within `wait_s`"))
)]
pub(super) async fn answer(
    State(server): State<Server>,
    Path(run): Path<String>,
    Body(answer): Body<Answer>,
) -> Result<Json<Value>, Problem> {
    let text = match (answer.text, answer.decision.as_deref()) {
        (Some(text), None) => text,
        (None, Some(decision @ ("approve" | "deny"))) => decision.to_owned(),
        (None, Some(_)) => {
            return Err(Refusal::new("bad_value", "decision must be approve or deny").into());
        }
        (Some(_), Some(_)) => {
            let message = "text and decision are given; one of them is enough";
            return Err(Refusal::new("bad_value", message).into());
        }
        (None, None) => String::new(),
    };
    let key = answer.key.clone();
    let wait = wait(answer.wait_s)?;
    let told = match server.hall.answer(&Given { run, key: answer.key, text }).await? {
        Standing::Stands(told) => told,
        Standing::Underway(mut underway) => {
            if let Some(ended) = underway.ended(wait).await {
                Value::clone(&*ended?)
            } else {
                let mut told = working(&underway);
                told["key"] = json!(key);
                told
            }
        }
    };
    Ok(Json(told))
}

/// Cancels a run, whoever drives it.
#[utoipa::path(
    post,
    path = "/v1/runs/{id}/cancel",
    tag = "runs",
    params(("id" = String, Path, description = "The run")),
    request_body = Nothing,
    responses((status = 200, description = "`{run_id, status, cancelled}`"))
)]
pub(super) async fn cancel(
    State(server): State<Server>,
    Path(run): Path<String>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(server.hall.cancel(&run).await?))
}

/// Goes on with a run that was interrupted.
#[utoipa::path(
    post,
    path = "/v1/runs/{id}/resume",
    tag = "runs",
    params(("id" = String, Path, description = "The run")),
    request_body = Nothing,
    responses((status = 202, description = "`{run_id, status}`"))
)]
pub(super) async fn resume(
    State(server): State<Server>,
    Path(run): Path<String>,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Response, Problem> {
    let id = server.engine().find(&run).await.map_err(Refusal::from)?;
    let underway = server.hall.resume(&id).await.map_err(Refusal::from)?;
    Ok((StatusCode::ACCEPTED, Json(working(&underway))).into_response())
}

/// What is tried again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    /// The call to begin from; what failed or was refused unless given
    from: Option<String>,
    /// Words that are added to it
    prompt: Option<String>,
}

/// Makes another attempt at a run.
#[utoipa::path(
    post,
    path = "/v1/runs/{id}/retry",
    tag = "runs",
    params(("id" = String, Path, description = "The run")),
    request_body = Retry,
    responses((status = 201, description = "`{run_id, status}` of the new run"))
)]
pub(super) async fn retry(
    State(server): State<Server>,
    Path(run): Path<String>,
    Body(Retry { from, prompt }): Body<Retry>,
) -> Result<Response, Problem> {
    if prompt.as_deref().is_some_and(|it| it.trim().is_empty()) {
        return Err(Refusal::new("empty_prompt", "prompt adds nothing: it is empty").into());
    }
    let origin = server.loaded(&run).await?;
    let engine = server.machine.engine_for(&origin)?;
    let retry =
        replay::Retry { from: from.as_deref().map(Key::parse), prompt: prompt.map(Into::into) };
    let driver = engine.retry(&origin, retry).await.map_err(Refusal::from)?;
    server.go_on(&origin, engine, driver).await
}

/// Another answer in place of the one that was given.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Amendment {
    /// The call
    key: String,
    /// What it is to have answered
    text: String,
}

/// Puts another text in place of an answer of a run that has not ended; what was made from it is asked
/// again.
#[utoipa::path(
    post,
    path = "/v1/runs/{id}/amend",
    tag = "runs",
    params(("id" = String, Path, description = "The run")),
    request_body = Amendment,
    responses((status = 200, description = "`{run_id, key, status, asked_again}`"))
)]
pub(super) async fn amend(
    State(server): State<Server>,
    Path(run): Path<String>,
    Body(Amendment { key, text }): Body<Amendment>,
) -> Result<Json<Value>, Problem> {
    let id = server.engine().find(&run).await.map_err(Refusal::from)?;
    let key = Key::parse(&key);
    let again = server.engine().amend(&id, &key, text.into()).await.map_err(Refusal::from)?;
    let loaded = server.loaded(id.as_str()).await?;
    let (status, _) = view::status(&loaded.run, loaded.is_alive());
    Ok(Json(json!({ "run_id": id.as_str(), "key": key, "status": status, "asked_again": again })))
}

/// What a fork changes.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The last event to take over, or the call before which it begins
    #[schema(value_type = Option<String>)]
    at: Option<Value>,
    /// Values of the team file, by their paths
    #[serde(default)]
    #[schema(value_type = Object)]
    set: Map<String, Value>,
    /// Other answers, by their calls
    #[serde(default)]
    #[schema(value_type = Object)]
    answers: Map<String, Value>,
}

/// Makes a run that goes on from another with something changed.
#[utoipa::path(
    post,
    path = "/v1/runs/{id}/fork",
    tag = "runs",
    params(("id" = String, Path, description = "The run")),
    request_body = Fork,
    responses((status = 201, description = "`{run_id, status}` of the new run"))
)]
pub(super) async fn fork(
    State(server): State<Server>,
    Path(run): Path<String>,
    Body(Fork { at, set, answers }): Body<Fork>,
) -> Result<Response, Problem> {
    let id = server.engine().find(&run).await.map_err(Refusal::from)?;
    let number = at.as_ref().and_then(|at| at.as_u64().or_else(|| at.as_str()?.parse().ok()));
    let origin = server.engine().load_until(&id, number.unwrap_or(u64::MAX)).await;
    let origin = origin.map_err(Refusal::from)?;
    let at = match (at.as_ref().filter(|it| !it.is_null()), number) {
        (None, _) => None,
        (Some(_), Some(number)) if number <= origin.run.seq() => Some(number),
        (Some(Value::String(key)), None) => {
            Some(origin.call(key).map_err(Refusal::from)?.1.asked - 1)
        }
        (Some(at), _) => {
            let last = origin.run.seq();
            let message = format!("run {id} has no event {at}; its last is {last}");
            return Err(Refusal::new("unknown_event", message).into());
        }
    };
    let answers = answers.into_iter().map(|(key, text)| match text {
        Value::String(text) => Ok((Key::parse(&key), Arc::from(text))),
        _ => Err(Refusal::new("bad_value", format!("answers.{key} must be a text"))),
    });
    let answers = answers.collect::<Result<_, Refusal>>()?;
    let (spec, engine) = if set.is_empty() {
        (None, server.machine.engine_for(&origin)?)
    } else {
        let changes =
            set.into_iter().map(|(name, value)| Override { name, value: Value_::Json(value) });
        let (spec, engine) = server.machine.changed(&origin, changes.collect())?;
        (Some(spec), engine)
    };
    let change = Change { at, spec, answers, retry: None };
    let driver = engine.fork(&origin, change).await.map_err(Refusal::from)?;
    server.go_on(&origin, engine, driver).await
}

impl Server {
    /// Drives a run that goes on from another.
    async fn go_on(
        &self,
        origin: &Loaded,
        engine: Engine,
        driver: folkmoot_runtime::driver::Driver,
    ) -> Result<Response, Problem> {
        self.machine.put_back(origin, &driver).await?;
        let underway = self.hall.drive(engine, driver, Form::Unified, None).await?;
        Ok(created(&underway.id, &working(&underway)))
    }
}

/// How long somebody waits for the end of a run.
fn wait(wait_s: Option<f64>) -> Result<Duration, Refusal> {
    let wait = wait_s.unwrap_or_default();
    if (0.0..=folkmoot_core::request::LONGEST_WAIT).contains(&wait) {
        return Ok(Duration::from_secs_f64(wait));
    }
    Err(Refusal::new("invalid_wait_s", "wait_s must be from 0 to 3600 seconds"))
}
