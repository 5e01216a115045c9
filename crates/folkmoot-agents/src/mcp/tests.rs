//! Servers that behave and servers that do not: agents.md §6, rules.md §11.

use std::{fs, time::Instant};

use folkmoot_core::{
    call::{Outcome, ToolCall},
    check::{Server, Times, Via},
    gate::Workspace,
    key::Key,
    team::{Agent, Target},
    time::Duration,
};
use folkmoot_runtime::{place, tools::ToolRequest};
use folkmoot_stub::{Door, Received, Reply, SETTINGS, Stub, serve_tools_if_asked};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::testing::{is_running, until};

/// The stub server: this binary, started again.
#[test]
fn the_stub_serves_when_it_is_asked_to() {
    let _ = serve_tools_if_asked();
}

const TIMES: Times = Times {
    call: Some(Duration::from_secs(20)),
    idle: Some(Duration::from_secs(10)),
    start: Some(Duration::from_secs(20)),
};

/// A server, and an agent that is granted all of it.
struct Stage {
    folder: TempDir,
    reached: Arc<dyn Reached>,
    pinned: Vec<Pinned>,
}

impl Stage {
    async fn new(settings: Value) -> Stage {
        Stage::with(settings, TIMES).await
    }

    /// A server at an address.
    async fn at(url: String, times: Times) -> Stage {
        let headers = [("Authorization".into(), "Bearer s3cret-enough".into())];
        let via = Via::Http { url: url.into(), headers: headers.into() };
        let folder = tempfile::tempdir().expect("a folder");
        Stage::reaching(Server { via, times }, folder).await
    }

    async fn with(mut settings: Value, times: Times) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["starts", "tools", "log"] {
            settings[file] = folder.path().join(file).to_str().expect("a path").into();
        }
        let stub = std::env::current_exe().expect("this is a program");
        let stub = stub.to_str().expect("a path");
        let only = "mcp::tests::the_stub_serves_when_it_is_asked_to";
        let line = format!("{stub} --exact {only} --nocapture; exit $?");
        let command = ["/bin/sh", "-c", &line].map(Arc::from).to_vec();
        let variables = [(SETTINGS.into(), settings.to_string().into())];
        let via = Via::Command { command, variables: variables.into() };
        Stage::reaching(Server { via, times }, folder).await
    }

    async fn reaching(server: Server, folder: TempDir) -> Stage {
        let servers = [(Arc::from("stub"), server)];
        let clients = Clients::new([], servers.into(), Secrets::new(["s3cret-enough"]));
        let mut stage = Stage { folder, reached: clients.meet(), pinned: Vec::new() };
        let listed = stage.list().await.expect("it tells what it has");
        let listed = listed.json.clone().expect("a list");
        stage.pinned = serde_json::from_value(listed).expect("a list of tools");
        stage
    }

    fn agent(&self) -> Arc<Agent> {
        let grants = vec!["mcp.stub".into()];
        Agent { grants, sandbox: Sandbox::Full, ..Agent::new("a", Target::Demo) }.into()
    }

    fn place(&self) -> place::Place {
        let folder = self.folder.path().to_str().expect("a path").into();
        let workspace = Workspace { folder, sandbox: Sandbox::Full };
        place::Place { workspace, ..place::Place::default() }
    }

    async fn list(&self) -> Outcome {
        let (run, key, server) = ("r".into(), Key::parse("mcp/stub"), "stub".into());
        let request = ListRequest { run, key, server, agent: self.agent(), place: self.place() };
        self.reached.list(request).await.outcome
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let call = ToolCall { id: "1".into(), name: format!("mcp.stub.{tool}").into(), arguments };
        let (run, key) = ("r".into(), Key::parse("a/tool-1"));
        let (agent, place) = (self.agent(), self.place());
        let tool = ToolRequest { run, key, attempt: 1, agent, call, place };
        let request = ServerRequest { tool, pinned: self.pinned.clone() };
        self.reached.call(request).await.outcome
    }

    async fn text(&self, tool: &str, arguments: Value) -> String {
        match self.call(tool, arguments).await {
            Ok(answer) => answer.text.to_string(),
            Err(fault) => format!("error: {fault}"),
        }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// The processes of the server that were started so far.
    fn starts(&self) -> Vec<u32> {
        self.file("starts").lines().map(|line| line.parse().expect("a process")).collect()
    }

    /// Waits until the server has noted this.
    async fn until_noted(&self, text: &str) {
        while !self.file("log").contains(text) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_server_is_started_once_however_many_need_it_and_ends_with_its_run() {
    let stage = Stage::new(json!({})).await;
    let (one, two) = tokio::join!(
        stage.text("echo", json!({ "text": "one" })),
        stage.text("echo", json!({ "text": "two, s3cret-enough" }))
    );
    assert_eq!((one.as_str(), two.as_str()), ("one", "two, ***"));
    assert!(stage.list().await.is_ok());
    let starts = stage.starts();
    assert_eq!(starts.len(), 1);
    assert!(is_running(starts[0]));
    stage.reached.close().await;
    until(|| !is_running(starts[0]));
}

#[tokio::test]
async fn a_server_that_does_not_want_to_end_is_ended_whoever_lets_go_of_it() {
    let stage = Stage::new(json!({ "stubborn": true })).await;
    stage.reached.close().await;
    until(|| !is_running(stage.starts()[0]));
    let Stage { folder, reached, .. } = Stage::new(json!({ "stubborn": true })).await;
    drop(reached);
    let starts = fs::read_to_string(folder.path().join("starts")).expect("it has started");
    let process = starts.trim().parse().expect("a process");
    while is_running(process) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_not_granted_or_was_not_there_at_first_sight_is_denied() {
    let stage = Stage::new(json!({})).await;
    assert_eq!(stage.text("further", json!({})).await, "error: denied: mcp.stub.further");
    assert_eq!(stage.file("log"), "");
}

#[tokio::test]
async fn progress_moves_the_idle_limit_and_never_the_total_one() {
    let idle = Some(Duration::from_millis(400));
    let stage =
        Stage::with(json!({}), Times { call: Some(Duration::from_secs(2)), idle, ..TIMES }).await;
    let slow = stage.text("slow", json!({ "count": 6, "ms": 150 })).await;
    assert_eq!(slow, "done", "it takes longer than the idle limit in all");
    let hung = stage.text("hang", json!({})).await;
    assert_eq!(hung, "error: hang of MCP server stub: no sign of progress for 0.4 s");
    let forever = stage.text("forever", json!({})).await;
    assert_eq!(forever, "error: forever of MCP server stub: no result within 2 s");
    stage.until_noted("cancelled").await;
    assert_eq!(stage.text("echo", json!({ "text": "still here" })).await, "still here");
    assert_eq!(stage.starts().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_called_off_ends_at_once_and_leaves_the_server_as_it_is() {
    let stage = Stage::new(json!({})).await;
    let began = Instant::now();
    {
        let call = stage.call("late", json!({}));
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("it answers only what is called off"),
            () = stage.until_noted("call late") => {}
        }
    }
    stage.until_noted("cancelled").await;
    assert!(began.elapsed().as_secs() < 5);
    for _ in 0..3 {
        assert_eq!(stage.text("echo", json!({ "text": "on" })).await, "on");
    }
    assert_eq!(stage.starts().len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_fails_its_open_calls_at_once_and_is_started_on_its_next_use() {
    let stage = Stage::new(json!({})).await;
    let began = Instant::now();
    let (hung, died) = tokio::join!(stage.text("hang", json!({})), async {
        stage.until_noted("call hang").await;
        stage.text("die", json!({})).await
    });
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    let gone = "server gone (exit code 3), outcome unknown; its error output: out of luck";
    assert_eq!(died, format!("error: MCP server stub: die: {gone}"));
    assert_eq!(hung, format!("error: MCP server stub: hang: {gone}"));
    assert_eq!(stage.file("log").matches("call die").count(), 1);
    assert_eq!(stage.text("echo", json!({ "text": "again" })).await, "again");
    assert_eq!(stage.starts().len(), 2);
    until(|| !is_running(stage.starts()[0]));
}

#[tokio::test]
async fn what_is_no_message_is_skipped_and_told() {
    let stage = Stage::new(json!({ "noise": true })).await;
    let answer = stage.call("echo", json!({ "text": "clear" })).await.expect("it answers");
    assert_eq!(&*answer.text, "clear");
    assert_eq!(answer.warnings, ["MCP server stub: 5 lines of its output are no messages".into()]);
}

#[tokio::test]
async fn what_a_server_has_later_is_told_and_stays_denied() {
    let stage = Stage::new(json!({})).await;
    assert_eq!(stage.text("grow", json!({})).await, "grown");
    let answer = stage.call("echo", json!({ "text": "x" })).await.expect("it answers");
    let told = "the tools of MCP server stub are not what they were at first sight; new, and denied: further";
    assert_eq!(answer.warnings, [told.into()]);
    let answer = stage.call("echo", json!({ "text": "x" })).await.expect("it answers");
    assert_eq!(answer.warnings, [] as [Arc<str>; 0], "it is told once");
    assert_eq!(stage.text("further", json!({})).await, "error: denied: mcp.stub.further");
}

#[tokio::test]
async fn what_was_pinned_before_a_restart_is_compared_with_what_is_there_after_it() {
    let mut stage = Stage::new(json!({})).await;
    stage.pinned.retain(|tool| &*tool.name != "slow");
    stage.pinned.push(Pinned { name: "gone".into(), ..stage.pinned[0].clone() });
    stage.pinned[0].description = "It did something else.".into();
    let _ = stage.call("die", json!({})).await;
    let answer = stage.call("echo", json!({ "text": "x" })).await.expect("it answers");
    let told = "the tools of MCP server stub are not what they were at first sight; \
                new, and denied: slow; gone: gone; changed, and offered as before: echo";
    assert_eq!(&*answer.warnings[0], told);
}

#[tokio::test]
async fn results_that_are_large_or_binary_are_shown_in_part_and_never_cut_inside_their_json() {
    let stage = Stage::new(json!({})).await;
    let big = stage.text("big", json!({ "count": 600_000 })).await;
    assert!(big.len() <= results::LONGEST, "{}", big.len());
    assert!(big.starts_with("[3000000 bytes in all, blake3 "), "{}", &big[..60]);
    let items = stage.text("items", json!({ "count": 10_000 })).await;
    let (note, shown) = items.split_once('\n').expect("a note and what is shown");
    assert!(note.ends_with("shown in part, and not kept]"), "{note}");
    let shown: Vec<Value> = serde_json::from_str(shown).expect("it is JSON");
    assert_eq!(shown[0], json!({ "n": 0, "é": "ü" }));
    assert_eq!(shown.last(), Some(&json!("[… 9000 more items]")));
    let image = stage.text("image", json!({ "count": 700_000 })).await;
    assert!(image.starts_with("[image, image/png, 2100000 bytes, blake3 "), "{}", &image[..60]);
    assert!(image.contains(r#"{"picture":"[2800000 bytes of base64]","name":"sun"}"#), "{image}");
    assert_eq!(stage.text("fail", json!({})).await, "error: no such thing");
}

#[tokio::test]
async fn a_server_that_cannot_be_started_says_why() {
    let reach = |command: &[&str]| {
        let command = command.iter().map(|it| Arc::from(*it)).collect();
        let via = Via::Command { command, variables: BTreeMap::new() };
        let servers = [(Arc::from("stub"), Server { via, times: TIMES })];
        Clients::new([], servers.into(), Secrets::default()).meet()
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (command, why) in [
        (&["/no/such/program"][..], "/no/such/program of MCP server stub cannot be run: "),
        (
            &["/bin/sh", "-c", "echo broken >&2; exit 4"],
            "MCP server stub does not answer: exit code 4; its error output: broken",
        ),
    ] {
        let stage = Stage {
            folder: tempfile::tempdir_in(&folder).expect("a folder"),
            reached: reach(command),
            pinned: Vec::new(),
        };
        let fault = stage.list().await.expect_err("it cannot be started").to_string();
        assert!(fault.starts_with(why), "{fault}");
    }
}

/// A server over HTTP, which answers the call of a tool so.
fn remote(call: impl Fn(&Value) -> Reply + Send + 'static) -> Stub {
    remote_with(json!([{ "name": "echo", "inputSchema": { "type": "object" } }]), call)
}

/// The same, with these tools.
fn remote_with(tools: Value, call: impl Fn(&Value) -> Reply + Send + 'static) -> Stub {
    Stub::answering(move |request: &Received| {
        let (id, params) = (&request.body["id"], &request.body["params"]);
        let result = |result: Value| {
            Reply::json(200, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
        };
        match request.body["method"].as_str() {
            Some("initialize") => result(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "stub", "version": "1" },
            }))
            .header("mcp-session-id", "session-1"),
            Some("tools/list") => result(json!({ "tools": tools })),
            Some("tools/call") => call(&request.body),
            Some(_) => Reply::status(202),
            None if request.line.starts_with("DELETE") => Reply::status(200),
            None => Reply::status(405),
        }
    })
}

fn result_of(call: &Value) -> Value {
    let content = json!([{ "type": "text", "text": call["params"]["arguments"]["text"] }]);
    json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "content": content } })
}

/// The requests that a server over HTTP was sent so far, of one method.
fn requests(stub: &Stub, method: &str) -> Vec<Received> {
    let of = |request: &Received| request.body["method"] == method;
    stub.seen().requests.into_iter().filter(of).collect()
}

#[tokio::test]
async fn a_server_at_an_address_is_reached_over_http_with_its_headers_and_session() {
    let stub = remote(|call| {
        let token = &call["params"]["_meta"]["progressToken"];
        let params = json!({ "progressToken": token, "progress": 1 });
        let progress =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        Reply::events([progress.to_string(), result_of(call).to_string()])
    });
    let stage = Stage::at(stub.base_url(), TIMES).await;
    assert_eq!(stage.text("echo", json!({ "text": "far away" })).await, "far away");
    let call = &requests(&stub, "tools/call")[0];
    assert_eq!(call.header("authorization"), Some("Bearer s3cret-enough"));
    assert_eq!(call.header("mcp-session-id"), Some("session-1"));
    assert!(!call.body["params"]["_meta"]["progressToken"].is_null());
    assert_eq!(call.body["params"]["_meta"]["folkmoot/attempt"], 1);
    stage.reached.close().await;
}

#[tokio::test]
async fn a_tool_that_is_malformed_is_left_out_and_told_of_and_the_others_are_there() {
    let schema = json!({ "type": "object" });
    let tools = json!([{ "name": 5 }, { "name": "echo", "inputSchema": schema }, null]);
    let stub = remote_with(tools, |call| Reply::json(200, &result_of(call)));
    let stage = Stage::at(stub.base_url(), TIMES).await;
    assert_eq!(stage.text("echo", json!({ "text": "on" })).await, "on");
    let listed = stage.list().await.expect("it tells what it has");
    assert_eq!(&*listed.text, "1 tools");
    let told: Vec<&str> = listed.warnings.iter().map(|it| &**it).collect();
    assert_eq!(told, ["MCP server stub: unreadable tools left out: 2"]);
}

#[tokio::test]
async fn a_connection_that_breaks_fails_the_call_at_once_and_nothing_is_sent_again() {
    for reply in [Reply::sse(["data: {\"json"]).cut(), Reply::json(200, &json!({})).cut()] {
        let stub = remote(move |_| reply.clone());
        let stage = Stage::at(stub.base_url(), TIMES).await;
        let began = Instant::now();
        let told = stage.text("echo", json!({ "text": "x" })).await;
        assert!(told.contains("outcome unknown"), "{told}");
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        assert_eq!(requests(&stub, "tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_call_over_http_that_is_called_off_is_told_to_the_server() {
    let door = Door::closed();
    let closed = door.clone();
    let stub = remote(move |call| match call["params"]["arguments"]["text"].as_str() {
        Some("wait") => Reply::json(200, &result_of(call)).behind(&closed),
        _ => Reply::json(200, &result_of(call)),
    });
    let stage = Stage::at(stub.base_url(), TIMES).await;
    {
        let call = stage.call("echo", json!({ "text": "wait" }));
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("it waits"),
            () = stub.until(|seen| {
                seen.requests.iter().any(|it| it.body["method"] == "tools/call")
            }) => {}
        }
    }
    stub.until(|seen| {
        seen.requests.iter().any(|it| it.body["method"] == "notifications/cancelled")
    })
    .await;
    assert_eq!(stage.text("echo", json!({ "text": "on" })).await, "on");
    door.open();
}

#[tokio::test]
async fn a_server_that_is_not_there_says_so_without_a_secret() {
    let server = Server {
        via: Via::Http {
            url: "http://127.0.0.1:1/mcp?key=s3cret-enough".into(),
            headers: BTreeMap::new(),
        },
        times: TIMES,
    };
    let clients =
        Clients::new([], [(Arc::from("stub"), server)].into(), Secrets::new(["s3cret-enough"]));
    let folder = tempfile::tempdir().expect("a folder");
    let stage = Stage { folder, reached: clients.meet(), pinned: Vec::new() };
    let fault = stage.list().await.expect_err("nobody is there").to_string();
    assert!(fault.starts_with("MCP server stub does not answer: "), "{fault}");
    assert!(!fault.contains("s3cret"), "{fault}");
}
