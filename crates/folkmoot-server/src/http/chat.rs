//! A team as a model: programs that know how to ask a model API can ask a team (server.md §2).
//!
//! What such programs send beside the model and the messages, such as a temperature, has no meaning for a
//! team and is left aside.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName},
    response::{IntoResponse, Response, Sse, sse},
};
use folkmoot_core::refusal::Refusal;
use folkmoot_runtime::engine::RunId;
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{Server, problem::Problem, reading::Fields};
use crate::{
    conversation,
    hall::{Stage, Underway},
};

/// Keeps the run going when the client goes away.
const KEEP: HeaderName = HeaderName::from_static("x-folkmoot-keep");

/// How often something is said while nothing happens.
const BEAT: Duration = Duration::from_secs(15);

/// The teams that can be asked as models.
#[utoipa::path(get, path = "/v1/models", tag = "models", responses((status = 200, description = "A list, as model APIs tell it")))]
pub(super) async fn models(State(server): State<Server>) -> Json<Value> {
    let teams = server.machine.teams();
    let valid = teams.iter().filter(|team| team["valid"] == true);
    let model = |team: &Value| json!({ "id": team["name"], "object": "model", "created": 0, "owned_by": "folkmoot" });
    Json(json!({ "object": "list", "data": valid.map(model).collect::<Vec<_>>() }))
}

/// Lets a team answer the last message of a user; earlier ones are context. A client that goes away
/// cancels the run, unless it sends `X-Folkmoot-Keep: 1`.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    tag = "models",
    request_body = Object,
    params(("X-Folkmoot-Keep" = Option<String>, Header, description = "1 keeps the run going when the client goes away")),
    responses((status = 200, description = "A completion, or chunks of it as server-sent events; `run_id` beside"))
)]
pub(super) async fn completions(
    State(server): State<Server>,
    headers: HeaderMap,
    Fields(fields): Fields,
) -> Result<Response, Problem> {
    let model = fields.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
    let team = server.machine.team(&model).map_err(|_| {
        let message = format!("there is no team {model:?}");
        Refusal::new("unknown_model", message).help("GET /v1/models lists them")
    })?;
    let task = task(fields.get("messages"))?;
    let asked = Map::from_iter([("team".to_owned(), team), ("prompt".to_owned(), task.into())]);
    let request =
        folkmoot_core::request::Request::new(folkmoot_core::request::Kind::RunTeam, asked);
    let mut underway = server.hall.begin(&request).await?;
    let is_kept = headers.get(KEEP).is_some_and(|keep| keep.as_bytes() == b"1");
    let away = Away { server: server.clone(), run: (!is_kept).then(|| underway.id.clone()) };
    let completion = Completion::new(model, underway.id.clone());
    if fields.get("stream") == Some(&Value::Bool(true)) {
        let chunks = Chunks::new(&server, completion, &underway, away);
        let events = stream::unfold(chunks, async |mut chunks| {
            let event = chunks.next().await?;
            Some((Ok::<_, Infallible>(event), chunks))
        });
        return Ok(Sse::new(events)
            .keep_alive(sse::KeepAlive::new().interval(BEAT))
            .into_response());
    }
    let record = ended(&mut underway).await;
    away.has_heard(&record).await;
    let answer = Answer::of(&*record?)?;
    Ok(Json(completion.whole(&answer)).into_response())
}

/// The end of a run, however long that takes.
async fn ended(underway: &mut Underway) -> Result<Arc<Value>, Refusal> {
    loop {
        if let Some(ended) = underway.ended(Duration::from_hours(1)).await {
            return ended;
        }
    }
}

/// Cancels a run when it is dropped: then the client has gone away.
struct Away {
    server: Server,
    run: Option<RunId>,
}

impl Away {
    /// The client has heard what came of it. A run that a client is told to be left, since the server
    /// ends, goes on for nobody.
    async fn has_heard(mut self, end: &Result<Arc<Value>, Refusal>) {
        let run = self.run.take();
        if let (Some(run), Err(Refusal { code: "server_ends", .. })) = (run, end) {
            // What cannot be cancelled any longer has ended.
            let _ = self.server.engine().cancel(&run).await;
        }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            let engine = self.server.engine().clone();
            // What cannot be cancelled any longer has ended.
            tokio::spawn(async move { engine.cancel(&run).await });
        }
    }
}

/// The task that messages mean: the last one of a user, and what was said before as context.
fn task(messages: Option<&Value>) -> Result<String, Refusal> {
    let messages = messages
        .and_then(Value::as_array)
        .ok_or_else(|| Refusal::new("bad_value", "messages must be a list"))?;
    let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
    let last = messages.iter().rposition(|message| role(message) == "user");
    let last =
        last.ok_or_else(|| Refusal::new("task_required", "no message of a user is given"))?;
    let task = text(&messages[last]["content"])?;
    if task.trim().is_empty() {
        return Err(Refusal::new("task_required", "the last message of a user is blank"));
    }
    let said = messages[..last].iter();
    let said = said.map(|message| Ok((role(message), text(&message["content"])?)));
    let said = said.collect::<Result<Vec<_>, Refusal>>()?;
    Ok(conversation::task(&task, said.iter().map(|(role, text)| (&**role, &**text))))
}

/// The text of a message: itself, or that of its parts.
fn text(content: &Value) -> Result<String, Refusal> {
    let unreadable = || Refusal::new("unsupported", "a message holds something other than text");
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        Value::Array(parts) => {
            let text = |part: &Value| {
                let is_text = part["type"] == "text";
                part["text"].as_str().filter(|_| is_text).map(str::to_owned).ok_or_else(unreadable)
            };
            Ok(parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(unreadable()),
    }
}

/// What a team has answered.
struct Answer {
    text: String,
    finish: &'static str,
    usage: Value,
    status: Value,
}

impl Answer {
    /// The answer in a run's record. A run that has none is refused in a way that no client takes for a
    /// reason to ask again.
    fn of(record: &Value) -> Result<Answer, Refusal> {
        let status = record["status"].as_str().unwrap_or_default();
        let question = record["open_questions"][0]["text"].as_str();
        let question = question.or(record["question"]["text"].as_str());
        let (text, finish) = match (record["final"].as_str(), status) {
            (Some(text), "done") => (text, "stop"),
            (Some(text), _) => (text, "length"),
            (None, "needs_input") => (question.unwrap_or_default(), "stop"),
            (None, _) => match record["partial"]["text"].as_str() {
                Some(text) if status != "failed" && status != "cancelled" => (text, "length"),
                Some(_) | None => {
                    let (run, reason) = (&record["run_id"], &record["reason"]);
                    let run = run.as_str().unwrap_or_default();
                    let reason = reason.as_str().unwrap_or(status);
                    let message = format!("run {run} has no answer: {status}, {reason}");
                    return Err(Refusal::new("no_answer", message));
                }
            },
        };
        let usage = record["meta"]["usage"]["total"].clone();
        Ok(Answer { text: text.to_owned(), finish, usage, status: record["status"].clone() })
    }
}

/// What a completion and its chunks have in common.
struct Completion {
    model: String,
    run: RunId,
    created: u64,
}

impl Completion {
    fn new(model: String, run: RunId) -> Completion {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Completion { model, run, created: since.as_secs() }
    }

    fn object(&self, object: &str, choice: &Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.run),
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "run_id": self.run.as_str(),
        })
    }

    fn whole(&self, answer: &Answer) -> Value {
        let message = json!({ "role": "assistant", "content": answer.text });
        let choice = json!({ "index": 0, "message": message, "finish_reason": answer.finish });
        let mut told = self.object("chat.completion", &choice);
        told["usage"] = answer.usage.clone();
        told["status"] = answer.status.clone();
        told
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        self.object("chat.completion.chunk", &choice)
    }
}

/// A completion as it comes.
struct Chunks {
    server: Server,
    completion: Completion,
    stages: watch::Receiver<Stage>,
    /// The client, until it has heard all of it.
    away: Option<Away>,
    waiting: VecDeque<Value>,
    is_over: bool,
    is_done: bool,
}

impl Chunks {
    fn new(server: &Server, completion: Completion, underway: &Underway, away: Away) -> Chunks {
        let begin = completion.chunk(&json!({ "role": "assistant", "content": "" }), None);
        let mut stages = underway.stages();
        stages.mark_changed();
        Chunks {
            server: server.clone(),
            completion,
            stages,
            away: Some(away),
            waiting: VecDeque::from([begin]),
            is_over: false,
            is_done: false,
        }
    }

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(chunk) = self.waiting.pop_front() {
                let line = chunk.to_string();
                return Some(sse::Event::default().data(&*self.server.masks.mask(&line)));
            }
            if self.is_done {
                return None;
            }
            if self.is_over {
                self.is_done = true;
                return Some(sse::Event::default().data("[DONE]"));
            }
            // The sender says the end before it goes.
            self.stages.changed().await.ok()?;
            let stage = self.stages.borrow_and_update().clone();
            self.stage(&stage).await;
        }
    }

    async fn stage(&mut self, stage: &Stage) {
        let Some(end) = &stage.end else {
            if let Some(now) = &stage.now {
                let most = stage.ceiling.map(|it| format!(" of at most {it}")).unwrap_or_default();
                let text = format!("{now} speaks (turn {}{most})\n", stage.turns + 1);
                let delta = json!({ "reasoning_content": text });
                self.waiting.push_back(self.completion.chunk(&delta, None));
            }
            return;
        };
        self.is_over = true;
        if let Some(away) = self.away.take() {
            away.has_heard(end).await;
        }
        match end.clone().and_then(|record| Answer::of(&record)) {
            Ok(answer) => {
                let content = json!({ "content": answer.text });
                self.waiting.push_back(self.completion.chunk(&content, None));
                let mut last = self.completion.chunk(&json!({}), Some(answer.finish));
                last["usage"] = answer.usage;
                last["status"] = answer.status;
                self.waiting.push_back(last);
            }
            Err(refusal) => {
                let problem = Problem::from(refusal);
                self.waiting.push_back(problem.told_as_models_do());
            }
        }
    }
}
