//! Agents use the tools of MCP servers, which end with the run (agents.md §6, rules.md 6.10, 7.4, 11.8).

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use folkmoot_stub::{Completion, Reply, SETTINGS, Stub, serve_tools_if_asked};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bench::Bench;

/// The stub server: this binary, started again.
#[test]
fn the_stub_serves_when_it_is_asked_to() {
    let _ = serve_tools_if_asked();
}

/// A folder with a team, and a `.mcp.json` that names the server `stub`, behind a wrapper of the shell.
fn with_server(team: &str) -> Bench {
    let bench = Bench::with_team(team).with("STUB_TOKEN", "s3cret-enough");
    let server = server(&bench, "", "${STUB_TOKEN}");
    bench.write(".mcp.json", &json!({ "mcpServers": { "stub": server } }).to_string());
    bench
}

/// A server that notes what happens to it in files whose names begin so, and has a secret.
fn server(bench: &Bench, files: &str, secret: &str) -> Value {
    let files = ["starts", "log"]
        .map(|name| (name.to_owned(), json!(bench.path(format!("{files}{name}")))));
    let settings = Value::Object(files.into_iter().collect()).to_string();
    let stub = std::env::current_exe().expect("this is a program");
    let only = "servers::the_stub_serves_when_it_is_asked_to";
    let line = format!("{} --exact {only} --nocapture; exit $?", stub.display());
    json!({
        "command": "/bin/sh",
        "args": ["-c", line],
        "env": { SETTINGS: settings, "TOKEN": secret },
    })
}

const TEAM: &str = "
sandbox: full
agents:
  - name: ann
    grants: [mcp.stub]
    script:
      replies:
        - tool_calls:
            - { name: mcp.stub.echo, arguments: { text: hello s3cret-enough } }
            - { name: mcp.stub.nothing }
            - { name: mcp.other.echo }
        - done
collaboration: { strategy: sequential }
";

fn lines(bench: &Bench, file: &str) -> Vec<String> {
    let text = fs::read_to_string(bench.path(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The processes of the server that were started so far, and how many are still there.
fn starts(bench: &Bench) -> (usize, usize) {
    let starts = lines(bench, "starts");
    let is_alive = |process: &&String| {
        fs::read_to_string(format!("/proc/{process}/status"))
            .is_ok_and(|status| !status.contains("State:\tZ"))
    };
    (starts.len(), starts.iter().filter(is_alive).count())
}

/// Waits until this is so.
fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_mins(1), "it does not come to it");
        thread::yield_now();
    }
}

/// What was told of a call of the newest run.
fn told(bench: &Bench, name: &str) -> String {
    let shown = bench.last();
    let calls = shown["calls"].as_array().expect("there are some");
    let call = calls.iter().find(|call| call["key"].as_str().is_some_and(|it| it.ends_with(name)));
    let call = call.unwrap_or_else(|| panic!("{name} was called: {shown}"));
    call["reply"].as_str().or(call["fault"]["error"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_script_uses_a_server_of_the_workspace_and_only_a_run_starts_it() {
    let bench = with_server(TEAM);
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
    assert_eq!(checked["agents"][0]["grants"], json!(["mcp.stub"]));
    assert_eq!(checked["servers"], json!([{ "name": "stub", "reached": "/bin/sh" }]));
    bench.call(["simulate", "team.yaml", "Say hello"]).must_be(0);
    bench.call(["plan", "team.yaml", "Say hello"]).must_be(0);
    assert_eq!(starts(&bench), (0, 0));

    let result = bench.call(["run", "team.yaml", "Say hello", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "done");
    assert_eq!(told(&bench, "tool-1"), "hello ***");
    assert_eq!(told(&bench, "tool-2"), "denied: mcp.stub.nothing");
    assert_eq!(told(&bench, "tool-3"), "denied: mcp.other.echo");
    until(|| starts(&bench) == (1, 0));

    for command in ["replay", "verify", "show", "report", "graph"] {
        bench.call([command, "last"]).must_be(0);
    }
    until(|| starts(&bench) == (1, 0));
    let stored = String::from_utf8_lossy(&bench.stored()).into_owned();
    assert!(stored.contains("mcp.stub.echo") && !stored.contains("${STUB_TOKEN}"));
    assert!(!stored.contains("FOLKMOOT_STUB_TOOLS"), "nothing of how it is reached is kept");
}

#[test]
fn a_model_is_offered_what_is_granted_and_reads_what_came_of_it() {
    let call = json!({ "name": "mcp_stub_echo", "arguments": "{\"text\": \"far\"}" });
    let asks = json!({ "index": 0, "id": "c1", "type": "function", "function": call });
    let frame = |delta: Value, end: Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
        json!({ "choices": choices }).to_string()
    };
    let wants = Reply::events([
        frame(json!({ "tool_calls": [asks] }), Value::Null),
        frame(json!({}), json!("tool_calls")),
        "[DONE]".to_owned(),
    ]);
    let models = Stub::start([wants, Reply::stream(&Completion::text(["it said far"]))]);
    let team = "
sandbox: full
agents: [{ name: ann, model: openai/stub, grants: [mcp.stub.echo] }]
collaboration: { strategy: sequential }
";
    let bench = with_server(team)
        .with("OPENAI_BASE_URL", models.base_url())
        .with("OPENAI_API_KEY", "a key that is one");
    let result = bench.call(["run", "team.yaml", "Say far", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "it said far");
    let requests = models.seen().requests;
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let function =
        json!({ "name": "mcp_stub_echo", "description": "It does echo.", "parameters": schema });
    for request in &requests {
        assert_eq!(request.body["tools"], json!([{ "type": "function", "function": function }]));
    }
    let messages = requests[1].body["messages"].as_array().expect("a conversation");
    let result = messages.last().expect("a result")["content"].as_str().unwrap_or_default();
    assert!(result.starts_with("<result-") && result.contains("\nfar\n"), "{result}");
}

const HANGING: &str = "
sandbox: full
agents:
  - name: ann
    grants: [mcp.stub]
    script:
      rules: [{ contains: 'error: interrupted, outcome unknown', reply: I see }]
      replies:
        - tool_calls:
            - { name: mcp.stub.look, arguments: { text: seen } }
            - { name: mcp.stub.hang }
collaboration: { strategy: sequential }
";

#[test]
fn no_server_outlives_the_engine_however_that_ends() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let bench = with_server(HANGING);
        let run = bench.start(["run", "team.yaml", "Wait", "--json"]);
        until(|| lines(&bench, "log").iter().any(|line| line.starts_with("call hang")));
        assert_eq!(starts(&bench), (1, 1));
        run.signal(signal);
        let ended = run.finish();
        if signal != Signal::KILL {
            assert_eq!(ended.exit, 130, "{}", ended.shown());
        }
        until(|| starts(&bench) == (1, 0));
    }
}

#[test]
fn a_resumed_run_repeats_only_what_may_be_and_tells_the_agent_of_the_rest() {
    let bench = with_server(HANGING);
    let run = bench.start(["run", "team.yaml", "Wait"]);
    until(|| lines(&bench, "log").len() == 2);
    until(|| bench.last()["events"].to_string().contains("seen"));
    run.kill();
    let result = bench.call(["resume", "last", "--json"]).must_be(0).json();
    assert_eq!((&result["final"], &*told(&bench, "tool-2")), (&json!("I see"), "lost"));
    let calls = |name: &str| {
        lines(&bench, "log").iter().filter(|it| it.starts_with(&format!("call {name}"))).count()
    };
    assert_eq!((calls("hang"), calls("look")), (1, 1), "{result}");
    // What was pinned needs no server.
    until(|| starts(&bench) == (1, 0));
}

#[test]
fn servers_are_not_started_for_an_agent_that_has_its_own() {
    let team = "
sandbox: full
agents: [{ name: own, cli: { command: [echo, hello] }, grants: [mcp.stub] }]
collaboration: { strategy: sequential }
";
    let bench = with_server(team);
    bench.call(["run", "team.yaml", "Say hello"]).must_be(0);
    assert_eq!(starts(&bench), (0, 0));
}

#[test]
fn a_server_that_cannot_be_started_is_told_of_and_the_run_goes_on() {
    let bench =
        Bench::with_team(&format!("mcp_servers: {{ stub: {{ command: /no/such }} }}\n{TEAM}"));
    let result = bench.call(["run", "team.yaml", "Say hello", "--json"]).must_be(0).json();
    let mut warnings = result["warnings"].as_array().expect("a list").iter();
    let warning = warnings.find(|it| it["code"] == "mcp_server_unavailable");
    let warning = warning.expect("it is told");
    let message = warning["message"].as_str().unwrap_or_default();
    assert!(message.contains("/no/such of MCP server stub cannot be run: "), "{message}");
}

#[test]
fn teams_that_are_members_reach_servers_of_their_own_also_under_one_name() {
    let outer = "
sandbox: full
agents:
  - { name: left, team: left.yaml, grants: [mcp.stub] }
  - { name: right, team: right.yaml, grants: [mcp.stub] }
collaboration: { strategy: sequential }
";
    let bench = Bench::with_team(outer);
    for side in ["left", "right"] {
        let servers = json!({ "stub": server(&bench, side, &format!("{side}-s3cret")) });
        let team = TEAM.replace("s3cret-enough", &format!("{side}-s3cret"));
        bench.write(&format!("{side}.yaml"), &format!("mcp_servers: {servers}\n{team}"));
    }
    let result = bench.call(["run", "team.yaml", "Say hello", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "done", "{result}");
    assert_eq!(told(&bench, "step-2/right/step-1/ann/tool-1"), "hello ***");
    for side in ["left", "right"] {
        assert_eq!(lines(&bench, &format!("{side}starts")).len(), 1);
        let log = lines(&bench, &format!("{side}log"));
        assert_eq!(log.iter().filter(|it| it.starts_with("call echo")).count(), 1, "{log:?}");
    }
    let stored = String::from_utf8_lossy(&bench.stored()).into_owned();
    assert!(stored.contains("mcp/left/stub") && stored.contains("mcp/right/stub"));
    assert!(!stored.contains("left-s3cret\",") && !stored.contains("FOLKMOOT_STUB_TOOLS"));
    bench.call(["replay", "last"]).must_be(0);
}
