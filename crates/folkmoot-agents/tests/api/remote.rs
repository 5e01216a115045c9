//! Remote agents that are talked to in the Agent2Agent protocol (agents.md §2).

use std::sync::{Arc, Mutex};

use folkmoot_agents::{Agents, parted};
use folkmoot_core::{
    call::{FailureKind, Fault},
    render::Role,
    team::{A2a, Agent, Target},
};
use folkmoot_runtime::backend::{Backend, Delta, Request, Response};
use folkmoot_stub::{Door, Received, Reply, Stub};
use serde_json::{Value, json};

use crate::asking::{KEY, agents, message, request};

/// A host whose agent has this card; `answer` is told the method and the parameters.
fn host(streaming: bool, mut answer: impl FnMut(&str, &Value) -> Reply + Send + 'static) -> Stub {
    Stub::answering(move |received: &Received| match method(received) {
        None => Reply::json(200, &card("/a2a/v1", "1.0", streaming)),
        Some(method) => answer(method, &received.body["params"]),
    })
}

fn card(url: &str, version: &str, streaming: bool) -> Value {
    json!({
        "name": "Weather", "description": "Tells the weather.", "version": "2",
        "supportedInterfaces": [
            { "url": "grpc.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
            { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": version },
        ],
        "capabilities": { "streaming": streaming }, "skills": [],
    })
}

/// The method of a request, unless it asks for the card.
fn method(received: &Received) -> Option<&str> {
    let asks_for_card = received.line.starts_with("GET /.well-known/agent-card.json ");
    if asks_for_card { None } else { received.body["method"].as_str() }
}

fn result(result: &Value) -> Reply {
    Reply::json(200, &json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
}

fn task(state: &str, said: Option<&str>, made: &[&str]) -> Value {
    let parts = |text: &str| json!([{ "text": text }]);
    let message = |text| json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": parts(text) });
    let artifact =
        |(n, text): (usize, &&str)| json!({ "artifactId": n.to_string(), "parts": parts(text) });
    json!({
        "id": "t-1", "contextId": "c-1",
        "status": { "state": format!("TASK_STATE_{state}"), "message": said.map(message) },
        "artifacts": made.iter().enumerate().map(artifact).collect::<Vec<_>>(),
    })
}

fn asks(stub: &Stub) -> Request {
    asks_at(stub.base_url(), 0)
}

fn asks_at(url: String, retries: u32) -> Request {
    let a2a = A2a { url: url.into(), key_env: Some("REMOTE_KEY".into()) };
    let agent = Agent { retries, ..Agent::new("weather", Target::A2a(a2a)) };
    Request { agent: Arc::new(agent), ..request(0) }
}

fn with_key(stub: &Stub) -> Agents {
    agents(stub).with_environment([("REMOTE_KEY".to_owned(), KEY.to_owned())])
}

async fn perform(stub: &Stub, request: Request) -> Response {
    with_key(stub).perform(request, &|_| {}).await
}

#[tokio::test]
async fn a_task_is_followed_to_its_end_and_what_it_made_is_the_reply() {
    let mut looks = 0;
    let stub = host(false, move |method, _| {
        if method == "SendMessage" {
            return result(&json!({ "task": task("SUBMITTED", None, &[]) }));
        }
        looks += 1;
        result(&if looks == 1 {
            task("WORKING", Some("one moment"), &[])
        } else {
            task("COMPLETED", Some("here you are"), &["晴天", "22 °C"])
        })
    });
    let response = perform(&stub, asks(&stub)).await;
    let answer = response.outcome.expect("it answers");
    assert_eq!((&*answer.text, answer.asks), ("晴天\n\n22 °C", false));
    assert!(response.usage.estimated && response.usage.tokens.total() > 0, "{:?}", response.usage);
    let requests = stub.seen().requests;
    let methods: Vec<Option<&str>> = requests.iter().map(method).collect();
    assert_eq!(methods, [None, Some("SendMessage"), Some("GetTask"), Some("GetTask")]);
    for request in &requests {
        assert_eq!(request.header("authorization"), Some(&*format!("Bearer {KEY}")));
        assert_eq!(request.header("a2a-version"), Some("1.0"));
    }
    let sent = &requests[1].body["params"]["message"];
    assert_eq!(sent["parts"], json!([{ "text": "Be brief.\n\nSay hello." }]));
    assert_eq!(sent["role"], "ROLE_USER");
    assert!(requests[1].line.starts_with("POST /a2a/v1 "), "{}", requests[1].line);
}

#[tokio::test]
async fn an_agent_may_answer_with_a_message_and_the_conversation_goes_on_where_it_was() {
    let stub = host(false, |_, _| {
        let parts = json!([{ "text": "hello" }, { "data": { "n": 1 } }, { "raw": "AAAA", "filename": "a.png" }]);
        result(
            &json!({ "message": { "messageId": "m", "contextId": "c-9", "role": "ROLE_AGENT", "parts": parts } }),
        )
    });
    let first = perform(&stub, asks(&stub)).await.outcome.expect("it answers");
    assert_eq!(&*first.text, "hello\n{\"n\":1}\n[a.png, unknown type, 3 bytes, left out]");
    let mut second = asks(&stub);
    let mut own = message(Role::Assistant, &first.text);
    own.provider.clone_from(&first.provider);
    second.messages.extend([own, message(Role::User, "And now?")]);
    perform(&stub, second).await.outcome.expect("it answers");
    let seen = stub.seen();
    let [_, first, _, second] = &seen.requests[..] else { panic!("two cards, two messages") };
    let sent = |it: &Received| it.body["params"]["message"].clone();
    assert_eq!(sent(second)["contextId"], "c-9");
    assert_eq!(sent(second)["parts"], json!([{ "text": "And now?" }]));
    assert_eq!(sent(second)["taskId"], Value::Null, "what is over is over");
    assert_eq!(sent(first)["messageId"], sent(second)["messageId"], "one call, one name");
}

#[tokio::test]
async fn a_stream_is_shown_as_it_comes_and_where_it_breaks_the_task_is_looked_at() {
    let event = |result: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
    let artifact = move |text: &str, append: bool| {
        let artifact = json!({ "artifactId": "a", "parts": [{ "text": text }] });
        event(
            json!({ "artifactUpdate": { "taskId": "t-1", "contextId": "c-1", "artifact": artifact, "append": append } }),
        )
    };
    let whole = [
        event(json!({ "task": task("WORKING", None, &[]) })),
        artifact("It is ", false),
        artifact("sunny.", true),
        event(
            json!({ "statusUpdate": { "taskId": "t-1", "contextId": "c-1", "status": { "state": "TASK_STATE_COMPLETED" } } }),
        ),
    ];
    for cut in 1..=whole.len() {
        let events = whole[..cut].to_vec();
        let stub = host(true, move |method, _| match method {
            "SendStreamingMessage" => Reply::events(&events).cut(),
            _ => result(&task("COMPLETED", None, &["It is sunny."])),
        });
        let shown = Mutex::new(String::new());
        let show = |delta: Delta<'_>| {
            if let Delta::Text(text) = delta {
                shown.lock().expect("nobody panics").push_str(text);
            }
        };
        let response = with_key(&stub).perform(asks(&stub), &show).await;
        assert_eq!(&*response.outcome.expect("it answers").text, "It is sunny.", "cut after {cut}");
        let expected = ["", "It is ", "It is sunny.", "It is sunny."][cut - 1];
        assert_eq!(shown.into_inner().expect("nobody panics"), expected);
    }
}

#[tokio::test]
async fn a_task_that_asks_for_more_goes_on_with_the_answer() {
    let stub = host(false, |_, params| {
        let is_told = params["message"]["taskId"] == "t-1";
        let said = if is_told {
            task("COMPLETED", None, &["Rain."])
        } else {
            task("INPUT_REQUIRED", Some("哪个城市？"), &[])
        };
        result(&json!({ "task": said }))
    });
    let asked = perform(&stub, asks(&stub)).await.outcome.expect("it answers");
    assert_eq!((&*asked.text, asked.asks), ("哪个城市？", true));
    parted().await;
    assert_eq!(stub.seen().requests.len(), 2, "what waits for an answer is not cancelled");
    let mut next = asks(&stub);
    let mut own = message(Role::Assistant, &asked.text);
    own.provider.clone_from(&asked.provider);
    next.messages.extend([own, message(Role::User, "Bergen")]);
    let answer = perform(&stub, next).await.outcome.expect("it answers");
    assert_eq!((&*answer.text, answer.asks), ("Rain.", false));
}

#[tokio::test]
async fn each_way_to_fail_has_its_kind_and_its_words() {
    let ended = |state, said| {
        move |_: &str, _: &Value| result(&json!({ "task": task(state, Some(said), &[]) }))
    };
    let no_card = || Stub::answering(|_| Reply::status(404));
    let other_card = |url: &'static str, version: &'static str| {
        Stub::answering(move |_| Reply::json(200, &card(url, version, false)))
    };
    let error =
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "bad parts" } });
    let refused = |status: u16| host(false, move |_, _| Reply::status(status).send("no"));
    for (stub, kind, words) in [
        (no_card(), FailureKind::NotFound, "404"),
        (
            other_card("http://198.51.100.1/", "1.0"),
            FailureKind::Config,
            "leads to http://198.51.100.1",
        ),
        (other_card("/a2a", "0.3.0"), FailureKind::Unsupported, "version 1"),
        (Stub::answering(|_| Reply::status(200).send("<html>")), FailureKind::Protocol, "card"),
        (host(false, ended("FAILED", "no data")), FailureKind::Harness, "its task failed: no data"),
        (
            host(false, ended("REJECTED", "not mine")),
            FailureKind::Harness,
            "refused the task: not mine",
        ),
        (
            host(false, ended("CANCELED", "stopped")),
            FailureKind::Harness,
            "cancelled there: stopped",
        ),
        (host(false, ended("AUTH_REQUIRED", "sign in")), FailureKind::Auth, "sign-in: sign in"),
        (
            host(false, move |_, _| Reply::json(200, &error)),
            FailureKind::Harness,
            "error -32602: bad parts",
        ),
        (refused(401), FailureKind::Auth, "401"),
        (refused(429), FailureKind::RateLimited, "429"),
        (refused(503), FailureKind::Transport, "503"),
    ] {
        let response = perform(&stub, asks(&stub)).await;
        let Err(Fault::Failed { kind: found, text }) = &response.outcome else {
            panic!("{words}: {response:?}")
        };
        assert_eq!(*found, kind, "{text}");
        assert!(text.contains(words) && text.starts_with("127.0.0.1:"), "{text}");
    }
    let stub = no_card();
    let without = agents(&stub).perform(asks(&stub), &|_| {}).await.outcome.expect_err("no key");
    assert!(without.to_string().contains("set REMOTE_KEY"), "{without}");
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_as_often_as_the_agent_may() {
    let mut busy = 2;
    let stub = host(false, move |_, _| {
        busy -= 1;
        if busy > 0 {
            return Reply::status(503);
        }
        result(&json!({ "task": task("COMPLETED", None, &["done"]) }))
    });
    let response = perform(&stub, asks_at(stub.base_url(), 1)).await;
    assert_eq!(&*response.outcome.expect("it answers").text, "done");
}

#[tokio::test]
async fn whoever_no_longer_waits_cancels_the_task() {
    let stub = host(false, |method, _| match method {
        "SendMessage" => result(&json!({ "task": task("WORKING", None, &[]) })),
        "GetTask" => Reply::text("never").behind(&Door::closed()),
        _ => result(&task("CANCELED", None, &[])),
    });
    let agents = with_key(&stub);
    let request = asks(&stub);
    let calling = agents.perform(request, &|_| {});
    let looked = stub.until(|seen| seen.requests.iter().any(|it| method(it) == Some("GetTask")));
    tokio::select! {
        response = calling => panic!("nothing came: {response:?}"),
        () = looked => {}
    }
    parted().await;
    let seen = stub.seen();
    let last = seen.requests.last().expect("there are some");
    assert_eq!((method(last), &last.body["params"]["id"]), (Some("CancelTask"), &json!("t-1")));
}

#[tokio::test]
async fn a_key_that_the_other_side_repeats_is_neither_answered_nor_told() {
    let stub = host(false, |_, _| {
        result(&json!({ "task": task("COMPLETED", None, &[&format!("your key is {KEY}")]) }))
    });
    let answer = perform(&stub, asks(&stub)).await.outcome.expect("it answers");
    assert_eq!(&*answer.text, "your key is ***");
    let stub = host(false, |_, _| Reply::status(400).send(format!("bad key {KEY}")));
    let fault = perform(&stub, asks(&stub)).await.outcome.expect_err("it fails");
    assert!(fault.to_string().contains("bad key ***"), "{fault}");
}

#[tokio::test]
async fn what_answers_another_request_or_tells_of_another_task_breaks_the_protocol() {
    let forged = |id: Value| {
        let done = json!({ "task": task("COMPLETED", None, &["forged"]) });
        move |_: &str, _: &Value| {
            Reply::json(200, &json!({ "jsonrpc": "2.0", "id": id, "result": done }))
        }
    };
    let other = |method: &str, _: &Value| {
        if method == "SendMessage" {
            return result(&json!({ "task": task("WORKING", None, &[]) }));
        }
        let mut other = task("COMPLETED", None, &["forged"]);
        other["id"] = json!("t-2");
        result(&other)
    };
    for stub in [
        host(false, forged(json!(2))),
        host(false, forged(json!("1"))),
        host(false, forged(Value::Null)),
        host(false, other),
    ] {
        let fault = perform(&stub, asks(&stub)).await.outcome.expect_err("it fails");
        let is_broken = matches!(&fault, Fault::Failed { kind: FailureKind::Protocol, .. });
        assert!(is_broken, "{fault}");
    }
}

#[tokio::test]
async fn what_comes_in_pieces_is_bounded_like_a_whole_reply() {
    let piece = "x".repeat(1 << 20);
    let event = |n: usize| {
        let artifact = json!({ "artifactId": "a", "parts": [{ "text": piece }] });
        let update =
            json!({ "taskId": "t-1", "contextId": "c-1", "artifact": artifact, "append": n > 0 });
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "artifactUpdate": update } }).to_string()
    };
    let events: Vec<String> = (0..18).map(event).collect();
    let stub = host(true, move |method, _| match method {
        "SendStreamingMessage" => Reply::events(&events),
        _ => result(&task("COMPLETED", None, &["fine"])),
    });
    let fault = perform(&stub, asks(&stub)).await.outcome.expect_err("it fails");
    assert!(fault.to_string().contains("larger than 16777216 bytes"), "{fault}");
}

#[tokio::test]
async fn a_task_that_is_done_without_a_text_has_no_reply() {
    let stub = host(false, |_, _| result(&json!({ "task": task("COMPLETED", None, &[]) })));
    let fault = perform(&stub, asks(&stub)).await.outcome.expect_err("it fails");
    let is_incomplete = matches!(&fault, Fault::Failed { kind: FailureKind::Incomplete, .. });
    assert!(is_incomplete && fault.to_string().contains("without a text"), "{fault}");
}
