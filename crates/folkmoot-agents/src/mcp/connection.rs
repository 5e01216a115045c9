//! One start of a server: from its first message to its end.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use folkmoot_core::{
    call::{FailureKind, Fault},
    check::{Environment, Times, Via},
};
use rmcp::{
    ClientHandler, RoleClient, ServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
        CancelledNotificationParam, ClientCapabilities, ClientRequest, CustomResult,
        Implementation, InitializeRequestParams, ListToolsRequest, ListToolsResult,
        PaginatedRequestParams, RequestId, RequestMetaObject, ServerResult, Tool,
    },
    service::{NotificationContext, Peer, PeerRequestOptions, RunningService, ServiceError},
};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::{
    runtime::Handle,
    sync::Mutex,
    time::{Instant, timeout_at},
};

use super::{Result, lines::Lines, remote, server::Place};
use crate::{
    Secrets,
    process::{self, Beyond, Process, Running, unstarted},
};

/// How much of what a server writes on its error output is kept, in bytes.
const ERRORS: usize = 4 << 10;

/// How many pages a list of tools may have.
const PAGES: usize = 100;

/// How long the end of a program is waited for to tell how it ended.
const TOLD: Duration = Duration::from_millis(200);

/// A server that was reached. Dropping it ends it.
pub(super) struct Connection {
    name: Arc<str>,
    service: RunningService<RoleClient, Ours>,
    process: Mutex<Option<Running>>,
    noise: Arc<AtomicU64>,
    changed: Arc<AtomicBool>,
    secrets: Secrets,
}

/// What we do for a server: nothing, but we hear that its tools have changed.
struct Ours {
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Ours {
    fn get_info(&self) -> InitializeRequestParams {
        let us = Implementation::new("folkmoot", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(ClientCapabilities::default(), us)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

/// A call of a tool.
pub(super) struct Call<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: Map<String, Value>,
    pub(super) attempt: u32,
    pub(super) times: Times,
}

impl Connection {
    /// Starts a server and introduces us to it.
    pub(super) async fn open(
        name: &Arc<str>,
        via: &Via,
        place: &Place,
        ours: &BTreeMap<String, String>,
        secrets: &Secrets,
    ) -> Result<Connection> {
        let (changed, noise) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let us = Ours { changed: changed.clone() };
        let refused = |why: String, errors: &str| {
            let text = format!("MCP server {name} does not answer: {why}{}", behind(errors));
            Fault::failed(FailureKind::Protocol, secrets.mask(&text))
        };
        let (service, process) = match via {
            Via::Http { url, headers } => {
                let service = us.serve(remote::transport(url, headers)?).await;
                (service.map_err(|error| refused(error.to_string(), ""))?, None)
            }
            Via::Command { command, variables } => {
                let (process, input, output) = start(name, command, variables, place, ours).await?;
                let lines = Lines::new(input, output, process.ended(), noise.clone());
                match us.serve(lines).await {
                    Ok(service) => (service, Some(process)),
                    Err(error) => {
                        let ended = process.ended_within(TOLD).await.map(|exit| exit.to_string());
                        let why = ended.unwrap_or_else(|| error.to_string());
                        let errors = process.errors();
                        process.wind_down().await;
                        return Err(refused(why, &errors));
                    }
                }
            }
        };
        let (name, secrets, process) = (name.clone(), secrets.clone(), Mutex::new(process));
        Ok(Connection { name, service, process, noise, changed, secrets })
    }

    /// Whether it can be spoken with.
    pub(super) fn is_open(&self) -> bool {
        !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Whether it has told that its tools have changed since this was last asked.
    pub(super) fn has_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// How many lines that are no messages it has said since this was last asked.
    pub(super) fn noise(&self) -> u64 {
        self.noise.swap(0, Ordering::Relaxed)
    }

    /// Asks which tools it has; gives also how many there are that cannot be read.
    pub(super) async fn tools(&self, until: Option<Instant>) -> Result<(Vec<Tool>, usize)> {
        let asking = async {
            let (mut tools, mut unreadable, mut cursor) = (Vec::new(), 0, None);
            for _ in 0..PAGES {
                let params = PaginatedRequestParams::default().with_cursor(cursor);
                let page = match self.service.peer().list_tools(Some(params.clone())).await {
                    // One that is malformed would hide the others.
                    Err(ServiceError::UnexpectedResponse) => self.page(params).await,
                    page => page.map(|page| (page, 0)),
                };
                let (page, skipped) = match page {
                    Ok(page) => page,
                    Err(error) => return Err(self.fault(&error, "list its tools").await),
                };
                tools.extend(page.tools);
                unreadable += skipped;
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            Ok((tools, unreadable))
        };
        match until {
            Some(until) => timeout_at(until, asking).await.unwrap_or_else(|_| {
                let text = format!("MCP server {} does not tell its tools in time", self.name);
                Err(Fault::failed(FailureKind::Timeout, text))
            }),
            None => asking.await,
        }
    }

    /// What can be read of a page of its tools, and how many of them cannot.
    async fn page(
        &self,
        params: PaginatedRequestParams,
    ) -> std::result::Result<(ListToolsResult, usize), ServiceError> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let result = self.service.peer().send_request(request).await?;
        let ServerResult::CustomResult(CustomResult(mut page)) = result else {
            return Err(ServiceError::UnexpectedResponse);
        };
        let Some(Value::Array(tools)) = page.get_mut("tools") else {
            return Err(ServiceError::UnexpectedResponse);
        };
        let count = tools.len();
        tools.retain(|tool| Tool::deserialize(tool).is_ok());
        let skipped = count - tools.len();
        let page = serde_json::from_value(page).map_err(|_| ServiceError::UnexpectedResponse)?;
        Ok((page, skipped))
    }

    /// Uses a tool. Dropping the future tells the server that nobody waits any longer.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<CallToolResult> {
        let Call { tool, arguments, attempt, times } = call;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = CallToolRequest::new(params);
        let mut meta = RequestMetaObject::default();
        meta.insert("folkmoot/attempt".to_owned(), attempt.into());
        let mut options = PeerRequestOptions::no_options().with_meta(meta);
        options.timeout = times.idle.map(Into::into);
        options.max_total_timeout = times.call.map(Into::into);
        let peer = self.service.peer();
        let request = ClientRequest::CallToolRequest(request);
        let asked =
            peer.send_cancellable_request(request, options.reset_timeout_on_progress()).await;
        let handle = match asked {
            Ok(handle) => handle,
            Err(error) => return Err(self.fault(&error, tool).await),
        };
        let mut waiting = Waiting { peer: peer.clone(), id: Some(handle.id.clone()) };
        let answer = handle.await_response().await;
        waiting.id = None;
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(_) => {
                let text = format!("MCP server {} answered {tool} with no result", self.name);
                Err(Fault::failed(FailureKind::Protocol, text))
            }
            Err(ServiceError::Timeout { timeout }) => Err(self.late(tool, timeout, &times)),
            Err(error) => Err(self.fault(&error, tool).await),
        }
    }

    fn late(&self, tool: &str, after: Duration, times: &Times) -> Fault {
        let is_idle = times.idle.map(Duration::from) == Some(after);
        let why = if is_idle { "no sign of progress for" } else { "no result within" };
        let text = format!("{tool} of MCP server {}: {why} {} s", self.name, after.as_secs_f64());
        Fault::failed(FailureKind::Timeout, text)
    }

    /// Why a request has no answer.
    async fn fault(&self, error: &ServiceError, what: &str) -> Fault {
        let (kind, text) = match error {
            ServiceError::McpError(error) => {
                let text = format!("{what}: error {}: {}", error.code.0, error.message);
                (FailureKind::Other, text)
            }
            ServiceError::TransportSend(error) => {
                (FailureKind::Transport, format!("{what}: outcome unknown: {error}"))
            }
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                let process = self.process.lock().await;
                let (how, errors) = match &*process {
                    Some(process) => (process.ended_within(TOLD).await, process.errors()),
                    None => (None, String::new()),
                };
                let how = how.map(|how| format!(" ({how})")).unwrap_or_default();
                (
                    FailureKind::Transport,
                    format!("{what}: server gone{how}, outcome unknown{}", behind(&errors)),
                )
            }
            error => (FailureKind::Protocol, format!("{what}: {error}")),
        };
        let text = format!("MCP server {}: {text}", self.name);
        let text: String = text.chars().take(ERRORS).collect();
        Fault::failed(kind, self.secrets.mask(&text))
    }

    /// Ends it.
    pub(super) async fn close(&self) {
        self.service.cancellation_token().cancel();
        if let Some(process) = self.process.lock().await.take() {
            process.wind_down().await;
        }
    }
}

/// Tells a server that nobody waits any longer, unless the answer came (rules.md 11.4).
struct Waiting {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the call was called off".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let notice = CancelledNotification::new(params);
            let _ = peer.send_notification(notice.into()).await;
        });
    }
}

async fn start(
    name: &str,
    command: &[Arc<str>],
    variables: &BTreeMap<Arc<str>, Arc<str>>,
    place: &Place,
    ours: &BTreeMap<String, String>,
) -> Result<(Running, tokio::process::ChildStdin, tokio::process::ChildStdout)> {
    let argv: Vec<String> = command.iter().map(ToString::to_string).collect();
    let policy = Environment { set: variables.clone(), ..Environment::default() };
    let environment = process::environment(&policy, ours);
    let folder = Path::new(&*place.folder);
    let process = Process {
        argv: &argv,
        dir: folder,
        environment: &environment,
        stdin: &[],
        sandbox: place.sandbox,
        beyond: Beyond::default(),
        workspace: folder,
        time: Duration::MAX,
        kept: (0, ERRORS),
        merged: false,
    };
    let what = format!("{} of MCP server {name}", argv.first().map_or("", |it| it));
    Running::begin(&process).await.map_err(|error| unstarted(what, &error))
}

fn behind(errors: &str) -> String {
    match errors.trim() {
        "" => String::new(),
        errors => format!("; its error output: {errors}"),
    }
}
