//! Runs: beginning them, and looking at them.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{ACCEPT, CONTENT_TYPE, LOCATION},
    },
    response::{IntoResponse, Response},
};
use folkmoot_core::{
    refusal::Refusal,
    request::{Kind, Request},
    view::{self, comparison, drawing},
};
use folkmoot_runtime::{
    engine::{Loaded, RunId},
    promises::Promise,
    told,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use super::{
    Server,
    guard::Caller,
    problem::Problem,
    reading::{Asked, Fields},
};
use crate::hall::Underway;

/// Under which name a request is sent again without making a second run.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How many runs are listed unless a number is given.
const LISTED: usize = 100;

/// The most runs that are listed at once.
const MOST_LISTED: usize = 1_000;

/// Begins a run: `{team | team_inline, prompt, strategy?, params?, limits?, wait_s?}`.
#[utoipa::path(
    post,
    path = "/v1/runs",
    tag = "runs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Sent again, it means the same run")),
    request_body = Object,
    responses(
        (status = 201, description = "`{run_id, status}`, or the result if it ends within `wait_s`"),
        (status = 422, description = "It cannot be run as it stands"),
        (status = 429, description = "Too many runs wait already")
    )
)]
pub(super) async fn start(
    State(server): State<Server>,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Result<Response, Problem> {
    let request = server.request_of(fields)?;
    server.begin(&headers, &request, Duration::ZERO).await
}

/// Which runs are listed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// How many at most
    limit: Option<usize>,
}

/// The runs there are, newest first, as `runs --json` lists them.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(Page), responses((status = 200, description = "A list")))]
pub(super) async fn list(
    State(server): State<Server>,
    Asked(page): Asked<Page>,
) -> Result<Json<Value>, Problem> {
    let limit = page.limit.unwrap_or(LISTED).min(MOST_LISTED);
    let runs = server.engine().list(None, limit).await.map_err(Refusal::from)?;
    let listed = |run| {
        let mut listed = told::listed(run);
        if server.hall.underway(&run.id).is_some_and(|it| it.is_waiting()) {
            listed["status"] = "queued".into();
        }
        listed
    };
    Ok(Json(runs.iter().map(listed).collect()))
}

/// What of a run is shown.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Shown {
    /// Its events too
    #[serde(default)]
    events: bool,
}

/// A run, as `show --json` tells it: its result so far and its calls.
#[utoipa::path(
    get,
    path = "/v1/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "The run"), Shown),
    responses((status = 200, description = "`{run, calls}`"), (status = 404, description = "There is none"))
)]
pub(super) async fn show(
    State(server): State<Server>,
    Path(id): Path<String>,
    Asked(shown): Asked<Shown>,
) -> Result<Json<Value>, Problem> {
    let loaded = server.loaded(&id).await?;
    let Loaded { id, spec, run, records, .. } = &loaded;
    let outcome = view::outcome(id.as_str(), spec, run, loaded.is_alive());
    let calls: Vec<Value> = view::calls(spec, run).iter().map(told::call).collect();
    let mut told = json!({ "run": outcome, "calls": calls });
    if server.hall.underway(id).is_some_and(|it| it.is_waiting()) {
        told["run"]["status"] = "queued".into();
    }
    if shown.events {
        told["events"] = json!(records);
    }
    Ok(Json(told))
}

/// Which calls are shown.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// The only call that is meant
    key: Option<String>,
}

/// The calls of a run, in the order in which they were asked.
#[utoipa::path(
    get,
    path = "/v1/runs/{id}/calls",
    tag = "runs",
    params(("id" = String, Path, description = "The run"), Which),
    responses((status = 200, description = "A list"), (status = 404, description = "There is none"))
)]
pub(super) async fn calls(
    State(server): State<Server>,
    Path(id): Path<String>,
    Asked(which): Asked<Which>,
) -> Result<Json<Value>, Problem> {
    let loaded = server.loaded(&id).await?;
    if let Some(key) = &which.key {
        loaded.call(key).map_err(Refusal::from)?;
    }
    let calls = view::calls(&loaded.spec, &loaded.run);
    let meant =
        calls.iter().filter(|it| which.key.as_deref().is_none_or(|key| it.key.as_str() == key));
    Ok(Json(meant.map(told::call).collect()))
}

/// How a run is drawn.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Drawn {
    /// `mermaid`, `dot` or `svg`
    format: Option<String>,
}

/// A picture of a run: SVG if that is accepted, else JSON with the drawing in it.
#[utoipa::path(
    get,
    path = "/v1/runs/{id}/graph",
    tag = "runs",
    params(("id" = String, Path, description = "The run"), Drawn),
    responses((status = 200, description = "`{run_id, format, drawing}`, or `image/svg+xml`"))
)]
pub(super) async fn graph(
    State(server): State<Server>,
    Path(id): Path<String>,
    Asked(drawn): Asked<Drawn>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let accepts = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let wants_svg = accepts.split(',').any(|it| it.trim().starts_with("image/svg+xml"));
    let named = drawn.format.as_deref().unwrap_or(if wants_svg { "svg" } else { "mermaid" });
    let format = match named {
        "mermaid" => drawing::Format::Mermaid,
        "dot" => drawing::Format::Dot,
        "svg" => drawing::Format::Svg,
        other => {
            let refusal = Refusal::new("unknown_format", format!("unknown format {other:?}"));
            let allowed = ["mermaid", "dot", "svg"].map(str::to_owned).to_vec();
            return Err(Refusal { allowed, ..refusal }.into());
        }
    };
    let loaded = server.loaded(&id).await?;
    let id = loaded.id.as_str();
    let drawing = drawing::of_run(id, &loaded.spec, &loaded.run, loaded.is_alive()).write(format);
    if wants_svg && named == "svg" {
        return Ok(([(CONTENT_TYPE, "image/svg+xml")], drawing).into_response());
    }
    Ok(Json(json!({ "run_id": id, "format": named, "drawing": drawing })).into_response())
}

/// Two runs side by side: which calls are the same, which changed, which only one has.
#[utoipa::path(
    get,
    path = "/v1/runs/{a}/compare/{b}",
    tag = "runs",
    params(("a" = String, Path, description = "A run"), ("b" = String, Path, description = "Another one")),
    responses((status = 200, description = "`{a, b, calls, totals}`"))
)]
pub(super) async fn compare(
    State(server): State<Server>,
    Path((a, b)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let (a, b) = (server.loaded(&a).await?, server.loaded(&b).await?);
    let mut compared = json!(comparison::of((&a.spec, &a.run), (&b.spec, &b.run)));
    for (side, loaded) in [("a", &a), ("b", &b)] {
        compared[side] = told::listed(&loaded.listed());
    }
    Ok(Json(compared))
}

/// Who asks, and how busy the server is.
#[utoipa::path(get, path = "/v1/session", tag = "server", responses((status = 200, description = "`{role, version, sandbox, max_runs, running, queued}`")))]
pub(super) async fn session(State(server): State<Server>, caller: Caller) -> Json<Value> {
    let load = server.hall.load();
    Json(json!({
        "role": caller.role.as_str(),
        "version": env!("CARGO_PKG_VERSION"),
        "sandbox": server.machine.sandbox(),
        "max_runs": server.hall.at_once(),
        "running": load.driven,
        "queued": load.waiting,
    }))
}

impl Server {
    pub(super) fn engine(&self) -> &folkmoot_runtime::engine::Engine {
        self.hall.office().engine()
    }

    /// The run that is meant, as it stands.
    pub(super) async fn loaded(&self, given: &str) -> Result<Loaded, Refusal> {
        let id = self.engine().find(given).await?;
        Ok(self.engine().load(&id).await?)
    }

    /// The request that the fields of a route mean: a team by its name or itself, its strategy, its
    /// parameters and its limits.
    pub(super) fn request_of(&self, mut fields: Map<String, Value>) -> Result<Request, Refusal> {
        let team = match (fields.remove("team"), fields.remove("team_inline")) {
            (Some(Value::String(name)), None) => self.machine.team(&name)?,
            (None, Some(team @ Value::Object(_))) => team,
            (None | Some(Value::Null), None | Some(Value::Null)) => Value::Null,
            (Some(_), Some(_)) => {
                let message = "team and team_inline are given; one of them is enough";
                return Err(Refusal::new("two_teams", message));
            }
            (Some(_), None) => {
                return Err(Refusal::new("bad_value", "team must be the name of a team"));
            }
            (None, Some(_)) => {
                return Err(Refusal::new("bad_value", "team_inline must be an object"));
            }
        };
        let mut overrides = Map::new();
        let strategy = fields.remove("strategy").filter(|it| !it.is_null());
        overrides.extend(strategy.map(|strategy| ("collaboration.strategy".to_owned(), strategy)));
        for (section, place) in [("params", "collaboration"), ("limits", "limits")] {
            match fields.remove(section) {
                None | Some(Value::Null) => {}
                Some(Value::Object(values)) => {
                    for (name, value) in values {
                        let name = plain(section, &name, &value)?;
                        overrides.insert(format!("{place}.{name}"), value);
                    }
                }
                Some(_) => {
                    let message = format!("{section} must be an object");
                    return Err(Refusal::new("bad_value", message));
                }
            }
        }
        fields.insert("team".to_owned(), team);
        fields.insert("overrides".to_owned(), Value::Object(overrides));
        Ok(Request::new(Kind::RunTeam, fields))
    }

    /// Begins what is asked for, once for each `Idempotency-Key`, and tells what came of it if that
    /// comes in time.
    pub(super) async fn begin(
        &self,
        headers: &HeaderMap,
        request: &Request,
        usually: Duration,
    ) -> Result<Response, Problem> {
        let wait = request.judge(false).wait_s.map_or(usually, Duration::from_secs_f64);
        let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
            let underway = self.hall.begin(request).await?;
            return Ok(self.begun(underway, wait).await?);
        };
        let key = key.to_str().ok().filter(|key| !key.trim().is_empty() && key.len() <= 255);
        let key = key.ok_or_else(|| {
            let message = "Idempotency-Key must be from 1 to 255 visible characters";
            Refusal::new("bad_idempotency_key", message)
        })?;
        let asked = format!("{request:?}");
        let promised = self.engine().promised("http", key, &asked).await.map_err(Refusal::from)?;
        if let Some(Promise::Made(id)) = &promised
            && let Some(response) = self.made(id, wait).await?
        {
            return Ok(response);
        }
        let ready = self.hall.office().ready(request)?;
        let promise = self.engine().promise("http", key, &asked).await.map_err(Refusal::from)?;
        match promise {
            Promise::New(id) => {
                let underway = self.hall.begin_as(id, ready).await?;
                Ok(self.begun(underway, wait).await?)
            }
            // It was promised, but the run was never made; or the same request makes it just now.
            Promise::Made(id) => match self.hall.begin_as(id.clone(), ready).await {
                Ok(underway) => Ok(self.begun(underway, wait).await?),
                Err(refusal) => match self.made(&id, wait).await? {
                    Some(response) => Ok(response),
                    None => Err(refusal.into()),
                },
            },
            Promise::Taken => {
                let message = "this Idempotency-Key was used for another request";
                Err(Refusal::new("idempotency_conflict", message).into())
            }
        }
    }

    /// What is told of a run that was made for a request which comes again; nothing if there is none.
    async fn made(&self, id: &RunId, wait: Duration) -> Result<Option<Response>, Refusal> {
        if let Some(underway) = self.hall.underway(id) {
            return self.begun(underway, wait).await.map(Some);
        }
        match self.engine().load(id).await {
            Err(folkmoot_runtime::engine::EngineError::NoSuchRun(_)) => Ok(None),
            loaded => {
                let loaded = loaded?;
                let outcome =
                    view::outcome(id.as_str(), &loaded.spec, &loaded.run, loaded.is_alive());
                Ok(Some(created(id, &json!(outcome))))
            }
        }
    }

    /// What is told of a run that goes on here, or of its end if that comes in time.
    pub(super) async fn begun(
        &self,
        mut underway: Underway,
        wait: Duration,
    ) -> Result<Response, Refusal> {
        match underway.ended(wait).await {
            Some(ended) => Ok(created(&underway.id, &*ended?)),
            None => Ok(created(&underway.id, &working(&underway))),
        }
    }
}

/// What is told of a run that goes on here.
pub(super) fn working(underway: &Underway) -> Value {
    let mut told = crate::standing::working(&underway.id);
    told["status"] = if underway.is_waiting() { "queued" } else { "running" }.into();
    told
}

/// The answer to who made a run, or has it made again.
pub(super) fn created(id: &RunId, told: &Value) -> Response {
    let mut response = (StatusCode::CREATED, Json(told)).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/runs/{id}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// The name of a value that a request may give: it must be plain, for what is not may start programs.
fn plain<'a>(section: &str, name: &'a str, value: &Value) -> Result<&'a str, Refusal> {
    let is_plain = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
    let is_allowed = match value {
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    if is_allowed && is_name {
        return Ok(name);
    }
    let message = format!("{section}.{name} may be a word, a number or a list of them");
    Err(Refusal::new("not_allowed", message).help("a team file may say more"))
}
