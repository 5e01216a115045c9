//! Teams: which there are, and what is told of one before anybody is asked.

use axum::{Json, extract::State};
use folkmoot_core::refusal::Refusal;
use serde_json::Value;

use super::{Rehearsal, Server, problem::Problem, reading::Fields};

/// The teams that a request may name.
#[utoipa::path(get, path = "/v1/teams", tag = "teams", responses((status = 200, description = "A list")))]
pub(super) async fn list(State(server): State<Server>) -> Json<Value> {
    Json(server.machine.teams().into())
}

/// Checks a team, `{team | team_inline, …}`, as `check --json` does. No model is called.
#[utoipa::path(post, path = "/v1/check", tag = "teams", request_body = Object, responses((status = 200, description = "What was found")))]
pub(super) async fn check(
    State(server): State<Server>,
    Fields(fields): Fields,
) -> Result<Json<Value>, Problem> {
    let request = server.request_of(fields)?;
    Ok(Json(server.machine.check(&request)?))
}

/// What a run of a team can take at most and at least, as `plan --json` tells. No model is called.
#[utoipa::path(post, path = "/v1/plan", tag = "teams", request_body = Object, responses((status = 200, description = "Calls, tokens and money")))]
pub(super) async fn plan(
    State(server): State<Server>,
    Fields(fields): Fields,
) -> Result<Json<Value>, Problem> {
    let request = server.request_of(fields)?;
    Ok(Json(server.machine.plan(&request)?))
}

/// Rehearses a team against its scripts in virtual time, `{team | team_inline, prompt, seed?, faults?}`, as
/// `simulate --json` does. No model is called.
#[utoipa::path(post, path = "/v1/simulate", tag = "teams", request_body = Object, responses((status = 200, description = "The result")))]
pub(super) async fn simulate(
    State(server): State<Server>,
    Fields(mut fields): Fields,
) -> Result<Json<Value>, Problem> {
    let seed = match fields.remove("seed") {
        None | Some(Value::Null) => 0,
        Some(seed) => seed.as_u64().ok_or_else(|| {
            Refusal::new("bad_value", "seed must be a whole number of at least 0")
        })?,
    };
    let faults = match fields.remove("faults") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some("all".to_owned()),
        Some(Value::String(list)) => Some(list),
        Some(_) => return Err(Refusal::new("bad_value", "faults must be a list in words").into()),
    };
    let request = server.request_of(fields)?;
    Ok(Json(server.machine.simulate(&request, &Rehearsal { seed, faults }).await?))
}
