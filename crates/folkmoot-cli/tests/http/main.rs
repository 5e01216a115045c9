//! `folkmoot serve` as programs meet it: the real server over HTTP.

mod server;

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use server::{Server, client};

const QUICK: &str = "
agents:
  - { name: a, script: { replies: [one] } }
  - { name: b, script: { replies: [two] } }
collaboration: { strategy: sequential }
";

const SLOW: &str = "
agents:
  - { name: a, script: { replies: [{ delay_ms: 400, reply: one }] } }
  - { name: b, script: { replies: [{ delay_ms: 400, reply: two }] } }
collaboration: { strategy: sequential }
";

const ASKING: &str = "
agents:
  - { name: implementer, script: { replies: ['NEEDS_INPUT: Which port?', 'It listens at 80.'] } }
  - { name: reviewer, script: { replies: [CONVERGED] } }
  - { name: reviser, script: { replies: [x] } }
collaboration: { pattern: review }
";

const TEAMS: &[(&str, &str)] = &[("quick", QUICK), ("slow", SLOW), ("asking", ASKING)];

/// Every route that the server describes, with its method.
async fn routes(server: &Server) -> Vec<(Method, String)> {
    let described = server.get("/openapi.json").await.must_be(200);
    let paths = described["paths"].as_object().expect("it has paths").clone();
    let routes = paths.into_iter().flat_map(|(path, methods)| {
        let path = path.replace("{id}", "x").replace("{a}", "x").replace("{b}", "y");
        let methods = methods.as_object().expect("methods").clone().into_iter();
        let named = |name: String| Method::from_bytes(name.to_uppercase().as_bytes());
        methods.map(move |(name, _)| (named(name).expect("a method"), path.clone()))
    });
    routes.collect()
}

#[tokio::test]
async fn nobody_asks_without_a_token_and_who_may_only_read_changes_nothing() {
    let server = Server::with(TEAMS, &[]);
    let routes = routes(&server).await;
    assert!(routes.len() > 20, "{routes:?}");
    for (method, path) in routes {
        if path == "/healthz" {
            assert_eq!(server.ask_as("", method, &path, None).await.status, StatusCode::OK);
            continue;
        }
        let body = (method == Method::POST).then(|| json!({}));
        for token in ["", "wrong-token-0123456789"] {
            let told = server.ask_as(token, method.clone(), &path, body.as_ref()).await;
            assert_eq!(told.status, StatusCode::UNAUTHORIZED, "{method} {path}");
            if !path.starts_with("/v1/chat") && path != "/v1/models" {
                assert_eq!(told.kind, "application/problem+json", "{method} {path}");
            }
        }
        if method == Method::POST {
            let read = "read-token-0123456789";
            let told = server.ask_as(read, method.clone(), &path, body.as_ref()).await;
            assert_eq!(told.status, StatusCode::FORBIDDEN, "{method} {path}");
        }
        let told =
            server.ask_as("run-token-0123456789", method.clone(), &path, body.as_ref()).await;
        assert!(!told.status.is_server_error(), "{method} {path}: {told:?}");
    }
    let page = server.ask_as("", Method::GET, "/", None).await;
    assert!(page.status.is_success() && page.kind.starts_with("text/html"), "{page:?}");
}

#[tokio::test]
async fn another_name_and_another_origin_are_refused_on_every_method() {
    let server = Server::with(TEAMS, &[]);
    let asked = |method: Method, header: &'static str, value: &'static str| {
        let url = format!("{}v1/runs", server.url);
        client().request(method, url).bearer_auth("run-token-0123456789").header(header, value)
    };
    for method in [Method::GET, Method::POST, Method::OPTIONS] {
        for (header, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
            let told = asked(method.clone(), header, value).send().await.expect("it answers");
            assert_eq!(told.status(), StatusCode::FORBIDDEN, "{method} {header}");
            assert!(told.headers().get("access-control-allow-origin").is_none());
        }
    }
}

#[tokio::test]
async fn mistakes_are_the_callers_and_say_what_is_wrong() {
    let server = Server::with(TEAMS, &[]);
    let refused = async |body: Value| {
        let told = server.post("/v1/runs", &body).await;
        assert!(told.status.is_client_error(), "{body}: {told:?}");
        told.json()["code"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        refused(json!({ "team": "quick", "prompt": "x", "teem": 1 })).await,
        "unknown_field"
    );
    assert_eq!(refused(json!({ "team": "quik", "prompt": "x" })).await, "unknown_team");
    let starts = json!({
        "agents": [{ "name": "a", "cli": { "command": ["sh", "-c", "id"] } }],
        "collaboration": { "strategy": "sequential" }
    });
    assert_eq!(refused(json!({ "team_inline": starts, "prompt": "x" })).await, "not_allowed");
    let long = json!({ "team": "quick", "prompt": "x".repeat(1 << 20) });
    assert_eq!(server.post("/v1/runs", &long).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let unknown = server.get("/v1/runs/nosuchrun").await;
    assert_eq!(unknown.must_be(404)["code"], "unknown_run");
}

#[tokio::test]
async fn a_run_is_begun_once_however_often_its_request_comes_also_after_a_crash() {
    let mut server = Server::with(TEAMS, &[]);
    let ended = json!({ "team": "quick", "prompt": "x", "wait_s": 20 });
    let ended = server.post("/v1/runs", &ended).await.must_be(201);
    assert_eq!((&ended["status"], &ended["final"]), (&json!("done"), &json!("two")));
    let sent = async |server: &Server, prompt: &str| {
        let body = json!({ "team": "slow", "prompt": prompt }).to_string();
        let url = format!("{}v1/runs", server.url);
        let request = client().post(url).bearer_auth("run-token-0123456789");
        let request =
            request.header("idempotency-key", "k1").header("content-type", "application/json");
        let told = request.body(body).send().await.expect("it answers");
        let (status, text) = (told.status(), told.text().await.expect("a body"));
        (status, serde_json::from_str::<Value>(&text).expect("it is JSON"))
    };
    let (_, first) = sent(&server, "x").await;
    let (_, again) = sent(&server, "x").await;
    assert_eq!(first["run_id"], again["run_id"]);
    assert!(sent(&server, "y").await.0.is_client_error());
    server.restart(&[]);
    let (_, later) = sent(&server, "x").await;
    assert_eq!(first["run_id"], later["run_id"]);
    // The server goes on with what the one before has left.
    server.until(first["run_id"].as_str().expect("an id"), "done").await;
}

/// The numbers of the records in a stream, and whether its result came last.
fn numbers(stream: &str) -> (Vec<u64>, bool) {
    let ids = stream.lines().filter_map(|line| line.strip_prefix("id:"));
    let ids = ids.map(|id| id.trim().parse().expect("a number")).collect();
    let last = stream.lines().rfind(|line| line.starts_with("data:")).unwrap_or_default();
    (ids, last.contains("\"type\":\"result\""))
}

#[tokio::test]
async fn two_hundred_see_each_event_once_and_in_order() {
    let server = Server::with(TEAMS, &[]);
    let run = server.begin("slow").await;
    let watching = (0..200).map(|_| {
        let request = server.events(&run, None);
        tokio::spawn(async move {
            let response = request.send().await.expect("it answers");
            numbers(&response.text().await.expect("it ends"))
        })
    });
    let watching: Vec<_> = watching.collect();
    let mut seen = BTreeSet::new();
    for watcher in watching {
        seen.insert(watcher.await.expect("nobody panics"));
    }
    assert_eq!(seen.len(), 1, "{seen:?}");
    let (ids, is_ended) = seen.pop_first().expect("one");
    assert!(is_ended && ids.iter().copied().eq(1..=ids.len() as u64), "{ids:?}");
    // Who comes back sees what is left, and nothing twice.
    let late = server.events(&run, Some(3)).send().await.expect("it answers");
    let (rest, _) = numbers(&late.text().await.expect("it ends"));
    assert_eq!(rest, ids[3..]);
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_event_across_a_crash_of_the_server() {
    let mut server = Server::with(TEAMS, &[]);
    let run = server.begin("slow").await;
    let mut response = server.events(&run, None).send().await.expect("it answers");
    let mut before = String::new();
    while numbers(&before).0.len() < 2 {
        let chunk = response.chunk().await.expect("it is there").expect("it goes on");
        before += &String::from_utf8_lossy(&chunk);
    }
    server.restart(&[]);
    let (seen, _) = numbers(&before);
    let last = *seen.last().expect("some");
    let after = server.events(&run, Some(last)).send().await.expect("it answers");
    let (rest, is_ended) = numbers(&after.text().await.expect("it ends"));
    assert!(is_ended);
    let all: Vec<u64> = seen.into_iter().chain(rest).collect();
    assert!(all.iter().copied().eq(1..=all.len() as u64), "{all:?}");
}

#[tokio::test]
async fn more_runs_than_there_is_room_for_wait_visibly_and_all_end() {
    let server = Server::with(TEAMS, &["--max-runs", "1"]);
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(server.begin("slow").await);
    }
    let listed = server.get("/v1/runs").await.must_be(200);
    let queued = listed.as_array().expect("a list").iter().filter(|it| it["status"] == "queued");
    assert!(queued.count() >= 2, "{listed}");
    let given_up = runs.pop().expect("the last");
    let path = format!("/v1/runs/{given_up}/cancel");
    server.post(&path, &json!({})).await.must_be(200);
    for run in &runs {
        server.until(run, "done").await;
    }
    server.until(&given_up, "cancelled").await;
}

#[tokio::test]
async fn a_question_is_answered_and_a_run_is_forked_planned_and_compared() {
    let server = Server::with(TEAMS, &[]);
    let run = server.begin("asking").await;
    server.until(&run, "needs_input").await;
    let answer = json!({ "text": "80", "wait_s": 20 });
    server.post(&format!("/v1/runs/{run}/answer"), &answer).await.must_be(200);
    server.until(&run, "done").await;
    let quick = server.begin("quick").await;
    server.until(&quick, "done").await;
    let change = json!({ "key": "step-1/a", "text": "another" });
    let told = server.post(&format!("/v1/runs/{quick}/amend"), &change).await;
    assert_eq!(told.must_be(409)["code"], "run_has_ended");
    let fork = server.post(&format!("/v1/runs/{quick}/fork"), &json!({ "at": "step-2/b" })).await;
    let fork = fork.must_be(201)["run_id"].as_str().expect("an id").to_owned();
    server.until(&fork, "done").await;
    let compared = server.get(&format!("/v1/runs/{quick}/compare/{fork}")).await.must_be(200);
    assert!(compared["calls"].is_array(), "{compared}");
    let plan = json!({ "team": "quick", "prompt": "x" });
    let plan = server.post("/v1/plan", &plan).await.must_be(200);
    assert_eq!(plan["bounds"]["calls"]["max"].as_u64().or(plan["calls"]["max"].as_u64()), Some(2));
    let teams = server.get("/v1/teams").await.must_be(200);
    let names: Vec<&Value> =
        teams.as_array().expect("a list").iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("quick")), "{names:?}");
}

#[tokio::test]
async fn a_team_is_a_model() {
    let server = Server::with(TEAMS, &[]);
    let models = server.get("/v1/models").await.must_be(200);
    let ids: Vec<&Value> =
        models["data"].as_array().expect("models").iter().map(|it| &it["id"]).collect();
    assert!(ids.contains(&&json!("quick")), "{ids:?}");
    let messages = json!([
        { "role": "user", "content": "Before" },
        { "role": "assistant", "content": "I see" },
        { "role": "user", "content": "Now" },
    ]);
    let asked = json!({ "model": "quick", "messages": messages });
    let whole = server.post("/v1/chat/completions", &asked).await.must_be(200);
    assert_eq!(whole["choices"][0]["message"]["content"], "two");
    assert!(whole["usage"]["total_tokens"].is_u64(), "{whole}");
    let run = whole["run_id"].as_str().expect("an id");
    let shown = server.get(&format!("/v1/runs/{run}")).await.must_be(200);
    let task = shown["run"]["prompt"].as_str().expect("a task");
    assert!(task.contains("I see") && task.ends_with("Now"), "{task}");
    let asked = json!({ "model": "quick", "messages": messages, "stream": true });
    let streamed = server.post("/v1/chat/completions", &asked).await.text;
    assert!(
        streamed.contains("\"content\":\"two\"") && streamed.contains("data: [DONE]"),
        "{streamed}"
    );
    let unknown = json!({ "model": "nobody", "messages": messages });
    let unknown = server.post("/v1/chat/completions", &unknown).await.must_be(404);
    assert_eq!(unknown["error"]["code"], "unknown_model");
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_is_asked_to_end_lets_its_runs_be_resumed() {
    let mut server = Server::with(TEAMS, &[]);
    let run = server.begin("slow").await;
    assert_eq!(server.terminate(), Some(0));
    server.restart_ended();
    server.until(&run, "done").await;
}
