//! Time limits and cancels on real connections (rules.md §6).

use folkmoot_stub::{Door, Reply, Stub};
use serde_json::{Value, json};

use crate::bench::{Bench, until};

fn panel(limits: &str) -> String {
    format!(
        "
agents:
  - {{ name: a, model: openai/stub, limits: {{ {limits} }} }}
  - {{ name: b, model: openai/stub, limits: {{ {limits} }} }}
  - {{ name: c, model: openai/stub, limits: {{ {limits} }} }}
collaboration: {{ strategy: broadcast }}
"
    )
}

// A limit that is accepted is enforced, and what ran into it is gone.
#[test]
fn every_limit_of_time_ends_its_calls_and_their_connections() {
    for (limits, flags, exit, fault) in [
        ("time: 0.3", &[][..], 1, "budget exhausted"),
        ("", &["--timeout", "0.3"], 1, "timeout"),
        ("", &["--deadline", "0.3"], 6, "deadline"),
    ] {
        let stub = Stub::start([Reply::text("late").behind(&Door::closed())]);
        let bench = Bench::with_models(&panel(limits), &stub);
        let arguments = [&["run", "team.yaml", "task", "--json"], flags].concat();
        let result = bench.call(arguments).must_be(exit).json();
        until(&stub, |seen| seen.under_way == 0 && seen.hung_up == 3);
        assert_eq!(stub.seen().requests.len(), 3, "nothing is tried again");
        for response in ["a", "b", "c"].map(|name| &result["rounds"][0]["responses"][name]) {
            assert_eq!(*response, json!({ "error": fault }));
        }
        let elapsed = result["meta"]["elapsed_seconds"].as_f64().expect("it is a number");
        assert!((0.3..10.0).contains(&elapsed), "{elapsed}");
        bench.call(["replay", "last"]).must_be(0);
    }
}

// One append ends the run and withdraws all; cancelled is a state of its own, and what was
// cut off is estimated.
#[test]
fn a_cancel_ends_three_calls_at_once_and_says_so_everywhere() {
    let stub = Stub::start([Reply::text("late").behind(&Door::closed())]);
    let bench = Bench::with_models(&panel(""), &stub);
    let run = bench.start(["run", "team.yaml", "task", "--json"]);
    until(&stub, |seen| seen.requests.len() == 3);
    bench.call(["cancel", "last"]).must_be(0);
    let result = run.finish().must_be(1).json();
    until(&stub, |seen| seen.under_way == 0 && seen.hung_up == 3);

    let shown = bench.last();
    let events = shown["events"].as_array().expect("a run has events");
    let end = &events[events.len() - 5..];
    let kinds: Vec<&str> = end.iter().filter_map(|it| it["event"].as_str()).collect();
    assert_eq!(kinds, ["cancel_requested", "withdrawn", "withdrawn", "withdrawn", "ended"]);
    assert!(end.iter().all(|it| it["at"] == end[0]["at"]));
    assert!(end[1..4].iter().all(|it| it["fault"] == "cancelled"), "{end:?}");
    let calls = shown["calls"].as_array().expect("calls are a list").iter();
    assert!(calls.clone().all(|call| call["state"] == "withdrawn"));
    assert!(calls.clone().all(|call| call["usage"]["estimated"] == true));
    for status in [&result["status"], &shown["run"]["status"], &bench.runs()[0]["status"]] {
        assert_eq!(status, "cancelled");
    }
    let usage = &result["meta"]["usage"]["total"];
    assert_eq!(usage["estimated"], true);
    assert!(usage["prompt_tokens"].as_u64() > Some(0), "{usage}");
}

// What ended well is not called cancelled by its clean-up.
#[test]
fn a_run_that_is_done_is_called_so_whoever_cleans_up_and_cancels_behind_it() {
    let stub = Stub::start([Reply::text("done")]);
    let bench = Bench::with_models(&panel(""), &stub);
    let result = bench.call(["run", "team.yaml", "task", "--json"]).must_be(0).json();
    assert_eq!(result["status"], "done");
    let late = bench.call(["cancel", "last", "--json"]).must_be(0).json();
    assert_eq!((&late["status"], &late["cancelled"]), (&json!("done"), &json!(false)));
    assert_eq!(bench.last()["run"]["status"], "done");
    assert_eq!(bench.last()["run"]["final"].as_str(), result["final"].as_str());
    assert_ne!(result["final"], Value::Null);
}
