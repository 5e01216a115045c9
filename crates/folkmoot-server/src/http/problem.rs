//! Refusals as HTTP tells them: `application/problem+json`, with the codes that every caller is told
//! (server.md §1).

use axum::{
    Json,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use folkmoot_core::refusal::Refusal;
use serde_json::{Value, json};

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    refusal: Box<Refusal>,
    headers: HeaderMap,
}

impl Problem {
    /// A problem of this status.
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
    ) -> Problem {
        let refusal = Box::new(Refusal::new(code, message));
        Problem { status, refusal, headers: HeaderMap::new() }
    }

    /// The same with a header.
    pub(super) fn with(mut self, name: HeaderName, value: &'static str) -> Problem {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// It in the shape in which model APIs tell errors.
    pub(super) fn told_as_models_do(&self) -> Value {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        let Refusal { code, message, .. } = &*self.refusal;
        json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let status = status(refusal.code);
        Problem { status, refusal: Box::new(refusal), headers: HeaderMap::new() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let told = self.refusal.told();
        let mut problem = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.refusal.message,
        });
        let first = told["error"].as_object().cloned().unwrap_or_default();
        if let Some(problem) = problem.as_object_mut() {
            problem.extend(first.into_iter().filter(|(key, _)| key != "message"));
            problem.insert("errors".to_owned(), told["errors"].clone());
        }
        let kind = [(CONTENT_TYPE, "application/problem+json")];
        let told = (self.status, self.headers.clone(), kind, problem.to_string());
        let mut response = told.into_response();
        // A route may tell it in another shape.
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer of a route that model APIs have too: errors as these tell them.
pub(super) fn as_models_do(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    (problem.status, problem.headers.clone(), Json(problem.told_as_models_do())).into_response()
}

/// A route that is there, asked in a way that it is not.
pub(super) async fn wrong_method() -> Problem {
    let message = "this cannot be asked so; `GET /openapi.json` tells what there is";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// What a code means for whoever asked. What is not listed is a mistake in what was asked.
fn status(code: &str) -> StatusCode {
    match code {
        "bad_json" | "bad_query" => StatusCode::BAD_REQUEST,
        "not_allowed" => StatusCode::FORBIDDEN,
        "unknown_run" | "unknown_call" | "unknown_team" | "unknown_task_id" | "unknown_board"
        | "not_available" | "no_such_message" | "unknown_cell" | "unknown_action"
        | "unknown_model" => StatusCode::NOT_FOUND,
        "run_is_owned"
        | "run_has_ended"
        | "no_open_question"
        | "ambiguous_question"
        | "nothing_to_retry"
        | "not_taken_over"
        | "ambiguous_run"
        | "conflict"
        | "lease_lost"
        | "terminal"
        | "busy"
        | "stale_commit"
        | "not_approved"
        | "gates_not_passed"
        | "must_be_reviewing"
        | "must_be_assigned"
        | "blocked_by_dependency"
        | "not_materialized"
        | "branch_in_use"
        | "branch_required"
        | "plan_drift"
        | "no_phase_plan"
        | "task_id_exists"
        | "no_recipe"
        | "variables_missing" => StatusCode::CONFLICT,
        "too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "too_many_runs" => StatusCode::TOO_MANY_REQUESTS,
        "server_ends" | "unusable_store" => StatusCode::SERVICE_UNAVAILABLE,
        "store" | "broken_record" | "unreadable_record" | "diverged" | "failed" => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
