//! A client of the official SDK, and the program that it talks to.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex},
};

use rmcp::{
    ClientHandler, RoleClient, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ElicitRequestParams, ElicitResult, ElicitationAction, Implementation, JsonObject,
        ProgressNotificationParam, ReadResourceRequestParams, ResourceContents,
    },
    service::{NotificationContext, Peer, RequestContext, RunningService},
};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// A folder of its own with a store of its own.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// What the person behind the client says, and what came to it.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    says: Option<String>,
    asked: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

/// A client that is connected.
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) service: Answers,
    running: Option<RunningService<RoleClient, Answers>>,
    child: Child,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("it is written");
    }

    fn program(&self) -> Command {
        let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_folkmoot")));
        let home = self.folder.path().join("home");
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("USER", "user")
            .env("FOLKMOOT_DB", self.folder.path().join("runs.db"))
            .kill_on_drop(true);
        command
    }

    /// What a command prints with `--json`.
    pub(crate) async fn command(&self, arguments: &[&str]) -> Value {
        let output = self.program().args(arguments).arg("--json").output().await.expect("it ran");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_with(Answers::default()).await
    }

    pub(crate) async fn client_with(&self, answers: Answers) -> Client {
        let mut command = self.program();
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let pipes = (child.stdout.take().expect("out"), child.stdin.take().expect("in"));
        let running = answers.clone().serve(pipes).await.expect("they agree");
        Client { peer: running.peer().clone(), service: answers, running: Some(running), child }
    }
}

impl Answers {
    pub(crate) fn saying(text: &str) -> Answers {
        Answers { says: Some(text.to_owned()), ..Answers::default() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }

    pub(crate) fn progress(&self) -> Vec<f64> {
        self.progress.lock().expect("no panic").clone()
    }
}

impl ClientHandler for Answers {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.says {
            Some(_) => ClientCapabilities::builder().enable_elicitation().build(),
            None => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().expect("no panic").push(message);
        }
        let mut result = ElicitResult::new(ElicitationAction::Accept);
        result.content = Some(json!({ "answer": self.says }));
        Ok(result)
    }

    async fn on_progress(
        &self,
        note: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().expect("no panic").push(note.progress);
    }
}

impl Client {
    /// A client in a folder of its own.
    pub(crate) async fn alone() -> (Place, Client) {
        let place = Place::new();
        let client = place.client().await;
        (place, client)
    }

    pub(crate) async fn call(&self, tool: &str, fields: JsonObject) -> CallToolResult {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(fields);
        self.peer.call_tool(params).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    /// What a tool tells.
    pub(crate) async fn told(&self, tool: &str, fields: Value) -> Value {
        let result = self.call(tool, object(fields)).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        result.structured_content.expect("it is structured")
    }

    /// Why a tool refuses.
    pub(crate) async fn refused(&self, tool: &str, fields: Value) -> Value {
        let result = self.call(tool, object(fields)).await;
        assert_eq!(result.is_error, Some(true), "{tool}: {result:?}");
        result.structured_content.expect("it is structured")
    }

    pub(crate) async fn read(&self, uri: &str) -> Value {
        let read = self
            .peer
            .read_resource(ReadResourceRequestParams::new(uri))
            .await
            .expect("it is there");
        let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else {
            panic!("it is a text")
        };
        serde_json::from_str(text).expect("it is JSON")
    }

    /// How a run stands once it is in the store.
    pub(crate) async fn begun(&self, run: &str) {
        let mut told = self.told("status", json!({ "run_id": run })).await;
        while told["queued"] == true {
            told = self.told("status", json!({ "run_id": run })).await;
        }
    }

    /// How a run stands once it goes on no longer.
    pub(crate) async fn ended(&self, run: &str) -> Value {
        loop {
            let told = self.told("status", json!({ "run_id": run })).await;
            if told["state"] != "WORKING" {
                return told;
            }
        }
    }

    /// Closes the server's standard input, and waits for its end.
    pub(crate) async fn leave(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel().await.expect("it ends");
        }
        self.child.wait().await.expect("it ends");
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("it dies");
    }
}

/// A team whose agents are scripts.
pub(crate) fn scripted() -> Value {
    json!({
        "agents": [
            { "name": "a", "script": { "replies": ["first"] } },
            { "name": "b", "script": { "replies": ["second"] } },
        ],
        "collaboration": { "strategy": "broadcast" },
    })
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(fields) => fields,
        other => panic!("it is no object: {other}"),
    }
}
