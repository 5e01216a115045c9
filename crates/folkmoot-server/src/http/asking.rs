//! What is asked for without a team file, as the tools of the same names do (collaborate.md).

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use folkmoot_core::request::{self, Kind, Request};
use serde_json::{Map, Value};

use super::{Server, problem::Problem, reading::Fields};

/// How long a caller waits for the end of a run unless it says so.
const USUALLY: Duration = Duration::from_secs(20);

/// Lets roles work by a pattern.
#[utoipa::path(post, path = "/v1/collaborate", tag = "asking", request_body = Object, responses((status = 201, description = "The record, or `{run_id, state}` while it goes on")))]
pub(super) async fn collaborate(
    State(server): State<Server>,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Result<Response, Problem> {
    let request = Request::new(Kind::Collaborate, fields);
    if request.lists_patterns() {
        return Ok(Json(request::patterns()).into_response());
    }
    server.begin(&headers, &request, USUALLY).await
}

/// Gives one task to one target.
#[utoipa::path(post, path = "/v1/dispatch", tag = "asking", request_body = Object, responses((status = 201, description = "The record, or `{run_id, state}` while it goes on")))]
pub(super) async fn dispatch(
    State(server): State<Server>,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Result<Response, Problem> {
    server.ask(Kind::Dispatch, &headers, fields).await
}

/// Gives one task to many targets.
#[utoipa::path(post, path = "/v1/broadcast", tag = "asking", request_body = Object, responses((status = 201, description = "The record, or `{run_id, state}` while it goes on")))]
pub(super) async fn broadcast(
    State(server): State<Server>,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Result<Response, Problem> {
    server.ask(Kind::Broadcast, &headers, fields).await
}

impl Server {
    async fn ask(
        &self,
        kind: Kind,
        headers: &HeaderMap,
        fields: Map<String, Value>,
    ) -> Result<Response, Problem> {
        self.begin(headers, &Request::new(kind, fields), USUALLY).await
    }
}
