//! Chains of targets: who answers when somebody does not (agents.md §§1, 3, rules.md 10.7).

use folkmoot_stub::{Completion, Reply, Stub};
use serde_json::{Value, json};

use crate::bench::{Bench, Called};

const TEAM: &str = "
agents: [{ name: writer, model: best, retries: 0 }]
collaboration: { strategy: broadcast, rounds: 2 }
";

/// A chain of three: `near`, `far` without a key, and `far` with one.
const CONFIG: &str = r#"
[aliases]
best = ["near/small", "closed/shut", "distant"]
distant = "far/large"
[providers.near]
base_url = "NEAR"
[providers.closed]
base_url = "http://127.0.0.1:1/v1"
key_env = "CLOSED_KEY"
[providers.far]
base_url = "FAR"
[prices."near/small"]
input = 1.0
output = 1.0
[prices."far/large"]
input = 1000.0
output = 10000.0
"#;

fn bench(team: &str, near: &Stub, far: &Stub) -> Bench {
    let bench = Bench::with_team(team);
    let config = CONFIG.replace("NEAR", &near.base_url()).replace("FAR", &far.base_url());
    bench.write("folkmoot.toml", &config);
    bench
}

fn run(bench: &Bench) -> Called {
    bench.call(["run", "team.yaml", "Say hello", "--json"])
}

fn models(stub: &Stub) -> Vec<Value> {
    stub.seen().requests.iter().map(|it| it.body["model"].clone()).collect()
}

fn codes(result: &Value) -> Vec<&str> {
    let warnings = result["warnings"].as_array().expect("it is a list");
    warnings.iter().filter_map(|it| it["code"].as_str()).collect()
}

#[test]
fn the_next_target_answers_at_its_own_price_and_everything_tells_so() {
    let near = Stub::start([Reply::status(503), Reply::text("near again")]);
    let far = Stub::start([Reply::text("from afar")]);
    let bench = bench(TEAM, &near, &far);
    let called = bench.call(["run", "team.yaml", "Say hello", "--output", "stream-json"]);
    let lines = called.must_be(0).json_lines();
    let result = lines.last().expect("there is a result");
    assert_eq!(result["rounds"][0]["responses"]["writer"], "from afar");
    assert_eq!(result["rounds"][1]["responses"]["writer"], "near again");
    assert_eq!((models(&near), models(&far)), (vec![json!("small"); 2], vec![json!("large")]));
    assert_eq!(codes(result), ["target_left_out", "failed_over"]);
    let left_out = "target 2 of \"writer\" is left out: \
                    provider \"closed\" has no key: CLOSED_KEY is not set";
    assert_eq!(result["warnings"][0]["message"], left_out);
    let message = result["warnings"][1]["message"].as_str().expect("it is told");
    let head = "\"writer\": far/large answered in place of near/small (round-1/writer: \
                near/small: 503 ";
    assert!(message.starts_with(head), "{message}");
    let usage = &result["meta"]["usage"];
    assert_eq!((&usage["calls"], &usage["total"]["cost_usd"]), (&json!(3), &json!(0.060_015)));
    let asked: Vec<&Value> = lines.iter().filter(|it| it["event"] == "asked").collect();
    assert_eq!(asked[1]["key"], "round-1/writer/target-3");
    assert_eq!(
        (&asked[0]["call"]["target"], &asked[1]["call"]["target"]),
        (&Value::Null, &json!(3))
    );

    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    assert_eq!(
        (&shown["calls"][1]["model"], &shown["calls"][1]["target"]),
        (&json!("far/large"), &json!(3))
    );
    assert_eq!(
        (&shown["calls"][0]["model"], &shown["calls"][0]["target"]),
        (&json!("near/small"), &Value::Null)
    );
    let table = bench.call(["show", "last"]).must_be(0).stdout;
    assert!(table.contains("writer → far/large"), "{table}");
    let report = bench.call(["report", "last"]).must_be(0).stdout;
    assert!(report.contains("`round-1/writer/target-3` · far/large"), "{report}");
    assert!(report.contains("`failed_over`"), "{report}");
    let watched = bench.call(["watch", "last"]).must_be(0);
    assert!(
        watched.shown().contains("writer · far/large · round-1/target-3"),
        "{}",
        watched.shown()
    );
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn a_first_target_that_cannot_be_asked_refuses_the_run_before_anything_is_asked() {
    let (near, far) = (Stub::start([]), Stub::start([Reply::text("unasked")]));
    let bench =
        bench("agents: [{ name: a, model: closed/shut }, { name: b, model: best }]", &near, &far);
    let refused = run(&bench).must_be(2).json();
    assert_eq!(refused["error"]["code"], "unusable_model");
    assert_eq!(near.seen().requests.len() + far.seen().requests.len(), 0);
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
    let told = checked["warnings"].as_array().expect("it is a list");
    let told: Vec<_> = told.iter().filter_map(|it| it["code"].as_str()).collect();
    assert_eq!(told, ["unusable_model", "target_left_out"]);
    assert_eq!(checked["agents"][1]["fallbacks"], json!(["far/large"]));
    let listed = bench.call(["agents", "team.yaml"]).must_be(0).stdout;
    assert!(listed.contains("near/small → closed/shut → far/large"), "{listed}");
}

#[test]
fn what_another_target_would_refuse_too_stays_where_it_is() {
    let near =
        Stub::start([Reply::json(400, &json!({ "error": { "message": "prompt is too long" } }))]);
    let far = Stub::start([Reply::text("unasked")]);
    let bench = bench(TEAM, &near, &far);
    run(&bench).must_be(1);
    assert_eq!((near.seen().requests.len(), far.seen().requests.len()), (2, 0));
}

#[test]
fn a_wait_that_is_too_long_is_spent_with_the_next_target() {
    let near = Stub::start([Reply::status(429).header("retry-after", "86400")]);
    let far = Stub::start([Reply::text("from afar")]);
    let bench = bench(&TEAM.replace("retries: 0", "retries: 5"), &near, &far);
    let result = run(&bench).must_be(0).json();
    assert_eq!(result["rounds"][1]["responses"]["writer"], "from afar");
    assert_eq!((near.seen().requests.len(), far.seen().requests.len()), (2, 2));
    let message = result["warnings"][1]["message"].as_str().expect("it is told");
    assert!(
        message.contains("it asks to wait 86400 s") && message.ends_with("; and 1 more)"),
        "{message}"
    );
}

#[test]
fn dispatch_keeps_every_target_in_the_trail() {
    let near = Stub::start([Reply::status(401)]);
    let far = Stub::start([Reply::text("from afar")]);
    let bench = bench(TEAM, &near, &far);
    let record = bench.call(["dispatch", "best", "Say hello", "--json"]).must_be(0).json();
    assert_eq!(
        (&record["output"], &record["served_by"]),
        (&json!("from afar"), &json!("far/large"))
    );
    let trail = record["attempts"].as_array().expect("it is a list");
    let trail: Vec<_> =
        trail.iter().map(|it| (&it["target"], &it["status"], &it["kind"])).collect();
    let (success, error) = (json!("success"), json!("error"));
    let (small, large, auth) = (json!("near/small"), json!("far/large"), json!("auth"));
    assert_eq!(trail, [(&small, &error, &auth), (&large, &success, &Value::Null)]);
    assert_eq!(record["error"], Value::Null);
}

#[test]
fn a_call_that_is_out_of_time_fails_over_to_nobody() {
    let half = Reply::events(Completion::text(["Hel", "lo"]).events()[..2].iter());
    let near = Stub::start([half.left_open()]);
    let far = Stub::start([Reply::text("unasked")]);
    let bench = bench(TEAM, &near, &far);
    let run = ["run", "team.yaml", "Say hello", "--timeout", "0.2", "--rounds", "1", "--json"];
    let result = bench.call(run).must_be(1).json();
    assert_eq!(result["errors"][0]["error"], "timeout");
    assert_eq!(far.seen().requests.len(), 0);
}

#[test]
fn a_fork_between_two_targets_asks_the_next_and_not_the_one_that_failed() {
    let near = Stub::start([Reply::status(503)]);
    let far = Stub::start([Reply::text("asked before"), Reply::text("from afar")]);
    let bench = bench(TEAM, &near, &far);
    run(&bench).must_be(0);
    let asked = models(&near).len();
    let forked = bench.call(["fork", "last", "--at", "round-1/writer/target-3", "--json"]);
    let result = forked.must_be(0).json();
    assert_eq!(result["rounds"][0]["responses"]["writer"], "from afar");
    assert_eq!(models(&near).len(), asked + 1, "only the second round is asked again");
}
