//! The MCP server: ten tools over the hall (collaborate.md §2).
//!
//! Refusals are results with `isError`; JSON-RPC errors are for broken protocol only. A request that is
//! dropped ends the waiting, never the run.

mod size;
mod table;
mod waiting;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use folkmoot_core::{
    refusal::Refusal,
    request::{self, Kind, LARGEST, Request},
    text::shorten,
    words::Language,
};
use folkmoot_runtime::{engine::RunId, told};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
        CreateTaskResult, DetailedTask, GetTaskParams, GetTaskResult, Implementation,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
        ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, Task, TaskPayload,
        TaskStatus,
    },
    service::RequestContext,
    transport::io::stdio_pipes,
};
use serde_json::{Map, Value, json};

use self::waiting::Waiting;
use crate::{
    fields::Fields,
    hall::{Hall, Underway},
    standing::{Given, Include, POLL_AFTER_S, Standing, working},
};

/// How long a call waits for the end of its run unless that is said.
const USUAL_WAIT: Duration = Duration::from_secs(20);

/// How much of an answer the text part of a result holds, in characters.
const SHORT: usize = 4_000;

/// What resources of runs begin with.
const RUNS: &str = "folkmoot://runs/";

/// The resource of a run: its whole record.
fn resource(run: &str) -> String {
    format!("{RUNS}{run}")
}

/// A server for one client.
#[derive(Clone)]
pub struct Server {
    hall: Hall,
    /// What the caller is called; no request changes it.
    caller: String,
}

/// What a tool gives back: a result, or a run that goes on.
enum Answered {
    /// What is told.
    Told(Value),
    /// It goes on.
    Open(RunId),
}

impl Server {
    /// A server over a hall, for a caller of this name.
    pub fn new(hall: Hall, caller: &str) -> Server {
        Server { hall, caller: caller.to_owned() }
    }

    /// Serves standard input and output until the client closes them. Gives why it could not be, if the
    /// client did not speak the protocol.
    pub async fn serve(self) -> Result<(), String> {
        let served = self.serve_io().await;
        served.map_err(|error| error.to_string())
    }

    async fn serve_io(self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let service = ServiceExt::<RoleServer>::serve(self, stdio_pipes()).await?;
        service.waiting().await?;
        Ok(())
    }

    async fn call(
        &self,
        name: &str,
        given: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, Refusal> {
        if Value::Object(given.clone()).to_string().len() > LARGEST {
            return Err(Refusal::new("too_large", "the request is over 1 MiB"));
        }
        match name {
            "run_team" => self.begin(Kind::RunTeam, given, context).await,
            "dispatch" => self.begin(Kind::Dispatch, given, context).await,
            "broadcast" => self.begin(Kind::Broadcast, given, context).await,
            "collaborate" => self.begin(Kind::Collaborate, given, context).await,
            "orchestrate" => self.orchestrate(given, context).await,
            "answer" => self.answer(&given, context).await,
            "status" => self.status(given).await.map(Answered::Told),
            "cancel" => self.cancel(&given).await.map(Answered::Told),
            "mail" => self.hall.mail(&self.caller, &given).await.map(Answered::Told),
            _ => self.hall.board(&self.caller, &given).await.map(Answered::Told),
        }
    }

    async fn begin(
        &self,
        kind: Kind,
        given: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, Refusal> {
        let request = Request::new(kind, given);
        if request.lists_patterns() {
            return Ok(Answered::Told(request::patterns()));
        }
        let wait = request.judge(false).wait_s.map_or(USUAL_WAIT, Duration::from_secs_f64);
        let underway = self.hall.begin(&request).await?;
        self.wait(underway, wait, context).await
    }

    async fn wait(
        &self,
        underway: Underway,
        wait: Duration,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, Refusal> {
        let id = underway.id.clone();
        let ended = Waiting { hall: &self.hall, context }.end_of(underway, wait).await?;
        Ok(ended.map_or(Answered::Open(id), Answered::Told))
    }

    async fn orchestrate(
        &self,
        mut given: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, Refusal> {
        let wait = wait_of(&mut given)?;
        let card = given.get("task_id").and_then(Value::as_str).map(str::to_owned);
        let (hall, caller) = (self.hall.clone(), self.caller.clone());
        let work = self.hall.spawn(async move { hall.office().orchestrate(&caller, given).await });
        tokio::select! {
            done = work => match done {
                Ok(told) => Ok(Answered::Told(told?)),
                Err(_) => Err(Refusal::new("failed", "it broke off")),
            },
            () = tokio::time::sleep(wait) => Ok(Answered::Told(self.open_card(card).await?)),
            () = context.ct.cancelled() => Ok(Answered::Told(json!({ "state": "WORKING" }))),
        }
    }

    /// How a card stands that is worked on.
    async fn open_card(&self, card: Option<String>) -> Result<Value, Refusal> {
        let mut fields = Map::new();
        fields.insert("action".to_owned(), "status".into());
        fields.extend(card.map(|card| ("task_id".to_owned(), card.into())));
        let card = self.hall.office().orchestrate(&self.caller, fields).await?;
        let run = card["runs"].as_array().and_then(|it| it.last()).cloned();
        Ok(json!({
            "run_id": run, "state": "WORKING", "poll_after_s": POLL_AFTER_S, "card": card,
        }))
    }

    async fn answer(
        &self,
        given: &Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, Refusal> {
        let mut given = given.clone();
        let wait = wait_of(&mut given)?;
        let mut fields = Fields::new(&given, &["run_id", "key", "text", "decision"]);
        let (run, key) = (fields.needed("run_id"), fields.text("key"));
        let text = match (fields.text("text"), fields.text("decision").as_deref()) {
            (Some(text), None) => text,
            (None, Some(decision @ ("approve" | "deny"))) => decision.to_owned(),
            (None, None) => String::new(),
            (Some(_) | None, Some(_)) => {
                fields.wrong("bad_value", "a text is given, or a decision: approve or deny");
                String::new()
            }
        };
        fields.judged()?;
        match self.hall.answer(&Given { run, key, text }).await? {
            Standing::Stands(told) => Ok(Answered::Told(told)),
            Standing::Underway(underway) => self.wait(underway, wait, context).await,
        }
    }

    async fn status(&self, given: Map<String, Value>) -> Result<Value, Refusal> {
        let known = ["run_id", "task_id", "include", "after", "limit"];
        let mut fields = Fields::new(&given, &known);
        let (run, card) = (fields.text("run_id"), fields.text("task_id"));
        let (include, after) = (fields.texts("include"), fields.number("after"));
        let limit = fields.number("limit").unwrap_or(20) as usize;
        for wanted in include.iter().filter(|it| !["record", "calls", "events"].contains(&&***it)) {
            fields.wrong(
                "bad_value",
                format!("include knows record, calls and events, not {wanted:?}"),
            );
        }
        fields.judged()?;
        let wants = |what: &str| include.iter().any(|it| it == what);
        let (calls, events) = (wants("calls"), wants("events"));
        let include = Include { calls, events, after: after.unwrap_or_default(), limit };
        match (run, card) {
            (Some(run), _) => self.hall.status(&run, include).await,
            (None, Some(card)) => {
                let mut fields = Map::new();
                fields.insert("action".to_owned(), "status".into());
                fields.insert("task_id".to_owned(), card.into());
                self.hall.office().orchestrate(&self.caller, fields).await
            }
            (None, None) => self.hall.runs(limit).await,
        }
    }

    async fn cancel(&self, given: &Map<String, Value>) -> Result<Value, Refusal> {
        let mut fields = Fields::new(given, &["run_id", "task_id", "reason"]);
        let (run, card, _) = (fields.text("run_id"), fields.text("task_id"), fields.text("reason"));
        if run.is_some() == card.is_some() {
            fields.wrong("missing_field", "run_id or task_id says what is cancelled");
        }
        fields.judged()?;
        match (run, card) {
            (Some(run), _) => self.hall.cancel(&run).await,
            (None, card) => {
                let mut fields = Map::new();
                fields.insert("action".to_owned(), "cancel".into());
                fields.insert("task_id".to_owned(), card.into());
                self.hall.office().orchestrate(&self.caller, fields).await
            }
        }
    }
}

/// Takes out how long the caller waits.
fn wait_of(given: &mut Map<String, Value>) -> Result<Duration, Refusal> {
    let mut wait = Map::new();
    wait.extend(given.shift_remove("wait_s").map(|it| ("wait_s".to_owned(), it)));
    let judged = Request::new(Kind::RunTeam, wait).judge(false);
    match judged.refused.into_iter().find(|it| it.code == "invalid_wait_s") {
        Some(refusal) => Err(refusal),
        None => Ok(judged.wait_s.map_or(USUAL_WAIT, Duration::from_secs_f64)),
    }
}

/// A result as clients read it: structured content, and a short text.
fn complete(value: &Value) -> CallToolResult {
    let bounded = size::bounded(value);
    let mut result = CallToolResult::structured(bounded);
    result.content = vec![ContentBlock::text(text_of(value))];
    result
}

fn refused(refusal: &Refusal) -> CallToolResult {
    let mut result = CallToolResult::structured_error(size::bounded(&refusal.told()));
    let told = refusal.each().map(|it| match &it.help {
        Some(help) => format!("{}: {} ({help})", it.code, it.message),
        None => format!("{}: {}", it.code, it.message),
    });
    let told: Vec<String> = told.take(20).collect();
    let text = told.join("\n");
    result.content =
        vec![ContentBlock::text(shorten(&text, SHORT, Language::of(&text)).into_owned())];
    result
}

/// What a result says in short.
fn text_of(value: &Value) -> String {
    let word = |key: &str| value[key].as_str().map(str::to_owned);
    let parts = [
        word("run_id").map(|run| format!("run {run}")),
        word("status").or_else(|| word("state")),
        word("reason"),
    ];
    let head: Vec<String> = parts.into_iter().flatten().collect();
    let answer = word("final").or_else(|| word("output"));
    let answer = answer.or_else(|| Some(value["question"]["text"].as_str()?.to_owned()));
    let text = match (head.is_empty(), answer) {
        (_, Some(answer)) => format!("{}\n\n{answer}", head.join(" · ")),
        (false, None) if value["results"].is_null() => head.join(" · "),
        (_, None) => value.to_string(),
    };
    shorten(&text, SHORT, Language::of(&text)).into_owned()
}

/// A run as a task of the protocol.
fn task(id: &str, status: TaskStatus) -> Task {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = told::rfc3339(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    Task::new(id, status, now.clone(), now).with_poll_interval_ms(POLL_AFTER_S * 1_000)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_tasks().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("folkmoot", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "Teams of AI agents that work on one task. dispatch asks one, broadcast asks many, \
             collaborate lets roles work by a pattern, run_team runs a team file, orchestrate takes a \
             large goal to merged cards. What takes long gives a run_id: follow it with status."
                .to_owned(),
        );
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(table::tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = &*request.name;
        if !table::tools().iter().any(|tool| tool.name == name) {
            return Err(ErrorData::invalid_params(format!("there is no tool {name:?}"), None));
        }
        let given = request.arguments.unwrap_or_default();
        let takes_tasks = context.client_capabilities().is_some_and(|it| it.supports_tasks());
        Ok(match self.call(name, given, &context).await {
            Ok(Answered::Told(value)) => complete(&value).into(),
            Ok(Answered::Open(id)) if takes_tasks => {
                let task = task(id.as_str(), TaskStatus::Working);
                CallToolResponse::Task(CreateTaskResult::new(task))
            }
            Ok(Answered::Open(id)) => complete(&working(&id)).into(),
            Err(refusal) => refused(&refusal).into(),
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let id = request.task_id;
        let include = Include { calls: false, events: false, after: 0, limit: 0 };
        let told = self.hall.status(&id, include).await.map_err(|it| broken(&it))?;
        let (status, payload) = match told["state"].as_str() {
            Some("WORKING") => (TaskStatus::Working, TaskPayload::Working),
            Some("CANCELLED") => (TaskStatus::Cancelled, TaskPayload::Cancelled),
            Some(_) | None => {
                let result = serde_json::to_value(complete(&told)).unwrap_or_default();
                let result = result.as_object().cloned().unwrap_or_default();
                (TaskStatus::Completed, TaskPayload::Completed { result })
            }
        };
        Ok(GetTaskResult::new(DetailedTask::new(task(&id, status), payload)))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.hall.cancel(&request.task_id).await.map(|_| ()).map_err(|it| broken(&it))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let runs = self.hall.runs(20).await.map_err(|it| broken(&it))?;
        let runs = runs["runs"].as_array().into_iter().flatten();
        let runs = runs.filter_map(|run| run["run_id"].as_str());
        let named = |run: &str| Resource::new(resource(run), format!("run {run}"));
        Ok(ListResourcesResult::with_all_items(runs.map(named).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(resource("{run_id}"), "run");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown = || ErrorData::resource_not_found(request.uri.clone(), None);
        let run = request.uri.strip_prefix(RUNS).ok_or_else(unknown)?;
        let include = Include { calls: false, events: false, after: 0, limit: 0 };
        let told = self.hall.status(run, include).await.map_err(|_| unknown())?;
        let contents = ResourceContents::TextResourceContents {
            uri: request.uri.clone(),
            mime_type: Some("application/json".to_owned()),
            text: told.to_string(),
            meta: None,
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// A refusal where only an error of the protocol can be told.
fn broken(refusal: &Refusal) -> ErrorData {
    ErrorData::invalid_params(refusal.message.clone(), Some(refusal.told()))
}
