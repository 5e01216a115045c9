//! Remote agents as members of a team (agents.md §2).

use folkmoot_stub::{Received, Reply, Stub};
use serde_json::{Value, json};

use crate::bench::Bench;

const KEY: &str = "tok-1234567890";

/// A remote agent that wants to know the city before it tells the weather.
fn weather() -> Stub {
    Stub::answering(|received: &Received| {
        if received.line.starts_with("GET ") {
            let interface =
                json!({ "url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
            let card = json!({
                "name": "Weather", "version": "1", "supportedInterfaces": [interface],
                "capabilities": {}, "skills": [],
            });
            return Reply::json(200, &card);
        }
        let message = &received.body["params"]["message"];
        let parts = |text: &str| json!([{ "text": text }]);
        let task = if message["taskId"] == "t-1" {
            let told = message["parts"][0]["text"].as_str().unwrap_or_default();
            let made =
                json!([{ "artifactId": "a", "parts": parts(&format!("Rain. You said: {told}")) }]);
            json!({ "id": "t-1", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" }, "artifacts": made })
        } else {
            let asks =
                json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": parts("Which city?") });
            json!({ "id": "t-1", "contextId": "c", "status": { "state": "TASK_STATE_INPUT_REQUIRED", "message": asks } })
        };
        Reply::json(200, &json!({ "jsonrpc": "2.0", "id": 1, "result": { "task": task } }))
    })
}

fn team(stub: &Stub) -> String {
    let a2a = format!("{{ url: \"{}\", key_env: REMOTE_KEY }}", stub.base_url());
    format!(
        "agents:\n  - name: weather\n    a2a: {a2a}\n  - {{ name: host, demo: true }}\n\
         collaboration: {{ strategy: sequential }}\n"
    )
}

#[test]
fn what_a_remote_agent_asks_for_a_person_answers_and_the_same_task_goes_on() {
    let stub = weather();
    let bench = Bench::with_team(&team(&stub)).with("REMOTE_KEY", KEY);
    let asked = bench.call(["run", "team.yaml", "How is the weather?", "--json"]).must_be(3).json();
    assert_eq!(asked["status"], "needs_input");
    assert_eq!(asked["question"]["key"], "step-1/weather/person-1");
    let text = asked["question"]["text"].as_str().expect("it is asked");
    assert!(text.contains("Which city?"), "{text}");
    let done = bench.call(["answer", "last", "Bergen", "--json"]).must_be(0).json();
    assert_eq!(done["status"], "done");
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    assert_eq!(shown["calls"][2]["reply"], "Rain. You said: Bergen", "{shown}");
    let before = stub.seen().requests.len();
    bench.call(["replay", "last"]).must_be(0);
    assert_eq!(stub.seen().requests.len(), before, "a replay asks nobody");
    assert!(!String::from_utf8_lossy(&bench.stored()).contains(KEY));
}

#[test]
fn a_remote_agent_is_checked_before_anything_runs() {
    let bench = Bench::with_team(
        "agents: [{ name: a, a2a: { url: weather.example } }]\nlimits: { tokens: 100 }\n",
    );
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(2).json();
    let errors = checked["errors"].as_array().expect("there are some").iter();
    let codes: Vec<&Value> = errors.map(|error| &error["code"]).collect();
    assert_eq!(codes, ["bad_value", "unbounded_agent"], "{checked}");
}
