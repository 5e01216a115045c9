//! The MCP server as clients meet it: the official SDK's client talks to the real program on its
//! standard input and output.

mod client;

use std::time::Duration;

use client::{Answers, Client, Place, object, scripted};
use serde_json::{Value, json};

#[tokio::test]
async fn there_are_ten_tools_with_schemas_and_hints() {
    let (_place, client) = Client::alone().await;
    let tools = client.peer.list_all_tools().await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(
        names,
        [
            "dispatch",
            "broadcast",
            "collaborate",
            "orchestrate",
            "run_team",
            "status",
            "answer",
            "cancel",
            "mail",
            "board"
        ]
    );
    for tool in &tools {
        assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        assert!(tool.output_schema.is_some(), "{}", tool.name);
    }
    let hints = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).expect("it is there");
        let hints = tool.annotations.clone().expect("it has some");
        (hints.read_only_hint, hints.destructive_hint)
    };
    assert_eq!(hints("status").0, Some(true));
    assert_eq!(hints("cancel").1, Some(true));
    assert_eq!(hints("orchestrate").1, Some(true));
    assert_eq!(hints("dispatch").1, Some(false));
}

#[tokio::test]
async fn a_team_of_the_request_runs_and_its_record_comes_back() {
    let (_place, client) = Client::alone().await;
    let told = client.told("run_team", json!({ "team": scripted(), "prompt": "T" })).await;
    assert_eq!(told["status"], "done", "{told}");
    assert!(told["final"].as_str().is_some_and(|it| it.contains("first")), "{told}");
}

#[tokio::test]
async fn a_team_file_of_the_workspace_runs_and_one_outside_does_not() {
    let place = Place::new();
    place.write("team.json", &scripted().to_string());
    let client = place.client().await;
    let told = client.told("run_team", json!({ "team": "team.json", "prompt": "T" })).await;
    assert_eq!(told["status"], "done", "{told}");
    let refused = client.refused("run_team", json!({ "team": "../x.yaml", "prompt": "T" })).await;
    assert_eq!(refused["error"]["code"], "not_allowed", "{refused}");
}

#[tokio::test]
async fn a_team_of_the_request_starts_no_programs_and_reads_no_files() {
    let (_place, client) = Client::alone().await;
    let program = json!({ "agents": [{ "name": "a", "cli": { "command": ["true"] } }] });
    let refused = client.refused("run_team", json!({ "team": program, "prompt": "T" })).await;
    assert_eq!(refused["error"]["code"], "not_allowed", "{refused}");
    let curious = json!({ "agents": [{ "name": "a", "prompt_file": "notes.txt", "demo": true }] });
    let refused = client.refused("run_team", json!({ "team": curious, "prompt": "T" })).await;
    assert!(refused.to_string().contains("names no files"), "{refused}");
}

#[tokio::test]
async fn refusals_are_those_of_the_command_line() {
    let place = Place::new();
    place.write("bad.json", &json!({ "agents": [{ "name": "a", "demmo": true }] }).to_string());
    let client = place.client().await;
    for (arguments, tool, fields) in [
        (
            vec!["collaborate", "Review", "T", "--max-rounds=-1"],
            "collaborate",
            json!({ "pattern": "Review", "task": "T", "max_rounds": "-1" }),
        ),
        (vec!["run", "bad.json", "T"], "run_team", json!({ "team": "bad.json", "prompt": "T" })),
        (vec!["dispatch", "nobody", "T"], "dispatch", json!({ "target": "nobody", "task": "T" })),
        (vec!["answer", "zzz", "yes"], "answer", json!({ "run_id": "zzz", "text": "yes" })),
        (vec!["cancel", "zzz"], "cancel", json!({ "run_id": "zzz" })),
        (
            vec!["orchestrate", "execute", "T9"],
            "orchestrate",
            json!({ "action": "execute", "task_id": "T9" }),
        ),
    ] {
        let printed = place.command(&arguments).await;
        let refused = client.refused(tool, fields).await;
        assert_eq!(refused, printed, "{arguments:?}");
    }
}

#[tokio::test]
async fn every_tool_refuses_unknown_fields_and_large_requests() {
    let (_place, client) = Client::alone().await;
    for tool in client.peer.list_all_tools().await.expect("tools") {
        let refused = client.refused(&tool.name, json!({ "nonsense": 1 })).await;
        let codes: Vec<&str> = refused["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["code"].as_str())
            .collect();
        assert!(codes.contains(&"unknown_field"), "{}: {refused}", tool.name);
        let large = json!({ "task": "x".repeat(1 << 20) });
        let refused = client.refused(&tool.name, large).await;
        assert_eq!(refused["error"]["code"], "too_large", "{}", tool.name);
    }
}

#[tokio::test]
async fn a_long_run_gives_its_id_at_once_and_is_followed_by_status() {
    let (_place, client) = Client::alone().await;
    let slow = json!({ "agents": [{ "name": "a", "script": { "replies": [{ "delay_ms": 300, "reply": "late" }] } }],
        "collaboration": { "strategy": "broadcast" } });
    let fields = json!({ "team": slow, "prompt": "T", "wait_s": 0 });
    let told = client.told("run_team", fields).await;
    assert_eq!(told["state"], "WORKING", "{told}");
    let run = told["run_id"].as_str().expect("an id").to_owned();
    let told = client.ended(&run).await;
    assert_eq!(told["status"], "done", "{told}");
    let told = client.told("status", json!({})).await;
    assert_eq!(told["runs"][0]["run_id"], run.as_str(), "{told}");
    let told =
        client.told("status", json!({ "run_id": run, "include": ["calls", "events"] })).await;
    assert!(told["calls"].is_array() && told["events"].is_array(), "{told}");
}

#[tokio::test]
async fn a_run_is_cancelled_by_the_tool() {
    let (_place, client) = Client::alone().await;
    let fields = json!({ "team": endless(), "prompt": "T", "wait_s": 0 });
    let run = client.told("run_team", fields).await["run_id"].as_str().expect("an id").to_owned();
    client.begun(&run).await;
    let told = client.told("cancel", json!({ "run_id": run })).await;
    assert_eq!(told["state"], "CANCELLED", "{told}");
}

#[tokio::test]
async fn a_question_is_answered_by_the_tool() {
    let (_place, client) = Client::alone().await;
    let told = client.told("run_team", json!({ "team": asking(), "prompt": "T" })).await;
    assert_eq!(told["status"], "needs_input", "{told}");
    let fields = json!({ "run_id": told["run_id"], "text": "red" });
    let told = client.told("answer", fields).await;
    assert_eq!(told["status"], "done", "{told}");
}

#[tokio::test]
async fn a_question_is_put_to_the_person_behind_a_client_that_can_ask() {
    let place = Place::new();
    let client = place.client_with(Answers::saying("red")).await;
    let told = client.told("run_team", json!({ "team": asking(), "prompt": "T" })).await;
    assert_eq!(told["status"], "done", "{told}");
    assert!(client.service.asked().iter().any(|it| it.contains("Which colour?")));
}

#[tokio::test]
async fn progress_goes_to_who_asked_for_it_and_never_falls() {
    let place = Place::new();
    let client = place.client_with(Answers::default()).await;
    client.told("run_team", json!({ "team": scripted(), "prompt": "T" })).await;
    // The SDK's client puts a token on every call.
    let noted = client.service.progress();
    assert!(!noted.is_empty(), "the last one is always told");
    assert!(noted.is_sorted(), "{noted:?}");
}

#[tokio::test]
async fn mail_and_boards_are_those_of_the_caller() {
    let (_place, client) = Client::alone().await;
    let sent =
        client.told("mail", json!({ "action": "send", "to": "user", "body": "hello" })).await;
    assert_eq!(sent["state"], "PENDING", "{sent}");
    let read = client.told("mail", json!({ "action": "read" })).await;
    assert_eq!(read["message"]["body"], "hello", "{read}");
    let fields = json!({ "action": "ack", "id": sent["id"], "lease": read["lease"] });
    assert_eq!(client.told("mail", fields).await["state"], "ACKNOWLEDGED");
    let read = client.told("mail", json!({ "action": "read" })).await;
    assert_eq!(read["message"], Value::Null, "{read}");
    let fields = json!({ "action": "post", "board": "plans", "topic": "t", "text": "x" });
    assert_eq!(client.told("board", fields).await["seq"], 1);
    let fields = json!({ "action": "set", "board": "plans", "key": "k", "value": 1, "expect": 0 });
    assert_eq!(client.told("board", fields).await["version"], 1);
    let shown = client.told("board", json!({ "action": "show", "board": "plans" })).await;
    assert_eq!(shown["entries"][0]["text"], "x", "{shown}");
}

#[tokio::test]
async fn cards_are_planned_and_shown() {
    let (_place, client) = Client::alone().await;
    let planned = client.told("orchestrate", json!({ "action": "plan", "task": "fix it" })).await;
    assert_eq!(planned["suggested_role"], "debugger", "{planned}");
    let shown = client.told("status", json!({ "task_id": planned["task_id"] })).await;
    assert_eq!(shown["state"], "PLANNED", "{shown}");
}

#[tokio::test]
async fn the_patterns_are_listed_without_a_task() {
    let (_place, client) = Client::alone().await;
    let told = client.told("collaborate", json!({ "list_patterns": true })).await;
    assert_eq!(told["patterns"].as_array().map(Vec::len), Some(3), "{told}");
}

#[tokio::test]
async fn a_run_is_a_resource() {
    let (_place, client) = Client::alone().await;
    let told = client.told("run_team", json!({ "team": scripted(), "prompt": "T" })).await;
    let read =
        client.read(&format!("folkmoot://runs/{}", told["run_id"].as_str().unwrap_or(""))).await;
    assert_eq!(read["status"], "done", "{read}");
}

#[tokio::test]
async fn when_the_client_goes_open_runs_are_let_go_and_can_be_resumed() {
    let place = Place::new();
    let mut client = place.client().await;
    let fields = json!({ "team": slow(), "prompt": "T", "wait_s": 0 });
    let run = client.told("run_team", fields).await["run_id"].as_str().expect("an id").to_owned();
    client.begun(&run).await;
    client.leave().await;
    let shown = place.command(&["show", &run]).await;
    assert_eq!(shown["run"]["status"], "interrupted", "{shown}");
    let resumed = place.command(&["resume", &run]).await;
    assert_eq!(resumed["status"], "done", "{resumed}");
}

#[tokio::test]
async fn when_the_server_is_killed_the_run_is_interrupted_and_can_be_resumed() {
    let place = Place::new();
    let mut client = place.client().await;
    let fields = json!({ "team": slow(), "prompt": "T", "wait_s": 0 });
    let run = client.told("run_team", fields).await["run_id"].as_str().expect("an id").to_owned();
    client.begun(&run).await;
    client.kill().await;
    let again = place.client().await;
    let told = again.told("status", json!({ "run_id": run })).await;
    assert_eq!(told["status"], "interrupted", "{told}");
    let resumed = place.command(&["resume", &run]).await;
    assert_eq!(resumed["status"], "done", "{resumed}");
}

#[tokio::test]
async fn a_dropped_request_keeps_its_run() {
    let (_place, client) = Client::alone().await;
    let fields = object(json!({ "team": slow(), "prompt": "dropped", "wait_s": 60 }));
    let call = client.call("run_team", fields);
    assert!(tokio::time::timeout(Duration::from_millis(500), call).await.is_err());
    let told = client.told("status", json!({})).await;
    let run = told["runs"][0]["run_id"].as_str().expect("it goes on").to_owned();
    assert_eq!(client.ended(&run).await["status"], "done");
}

/// A team that takes a second.
fn slow() -> Value {
    json!({
        "agents": [{ "name": "a", "script": { "replies": [{ "delay_ms": 1_000, "reply": "late" }] } }],
        "collaboration": { "strategy": "broadcast" },
    })
}

/// A team that would take an hour.
fn endless() -> Value {
    json!({
        "agents": [{ "name": "a", "script": { "replies": [{ "delay_ms": 3_600_000, "reply": "late" }] } }],
        "collaboration": { "strategy": "broadcast", "timeout": "none" },
    })
}

/// A team that asks a person.
fn asking() -> Value {
    json!({
        "agents": [
            { "name": "implementer", "script": { "replies": ["NEEDS_INPUT: Which colour?", "It is red."] } },
            { "name": "reviewer", "script": { "replies": ["CONVERGED"] } },
            { "name": "reviser", "script": { "replies": ["It is redder."] } },
        ],
        "collaboration": { "pattern": "review" },
    })
}
