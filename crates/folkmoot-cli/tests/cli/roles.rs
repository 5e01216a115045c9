//! Role teams on the real binary: the cases of `tests/cases/roles.yaml`, and what is told of them.

use serde_json::{Map, Value, json};

use crate::{
    bench::Bench,
    conformance::try_all,
    matching::{Mismatch, matches, need},
};

const ROLES: [&str; 5] = ["explorer", "planner", "coder", "reviewer", "general"];

/// The keys of a case that are parameters of the team.
const PARAMETERS: [&str; 9] = [
    "complexity",
    "complexity_threshold",
    "intents",
    "past_steps",
    "path",
    "single_agent_budget",
    "multiplier",
    "economy_model",
    "program",
];

#[test]
fn every_role_case_holds() {
    try_all(include_str!("../cases/roles.yaml"), 30, try_case);
}

/// The team of a case: scripted roles, of which the reviewer says what the case tells.
fn team_of(given: &Value) -> Value {
    let agents = ROLES.map(|role| {
        let replies: Vec<Value> = (0..6).map(|n| reply(given, role, n)).collect();
        json!({ "name": role, "model": "premium", "script": { "replies": replies } })
    });
    let given_by_name = |name: &&str| Some(((*name).to_owned(), given.get(*name)?.clone()));
    let mut work: Map<String, Value> = PARAMETERS.iter().filter_map(given_by_name).collect();
    work.entry("program").or_insert("roles".into());
    if work.contains_key("single_agent_budget") {
        work.entry("economy_model").or_insert("economy".into());
    }
    let mut team = json!({ "sandbox": "write", "agents": agents, "collaboration": work });
    for (key, value) in given["team"].as_object().into_iter().flatten() {
        team[key] = value.clone();
    }
    team
}

/// What a role says when it is asked for the `n`th time, from 0.
fn reply(given: &Value, role: &str, n: usize) -> Value {
    if given["fails"][role].as_array().is_some_and(|fails| fails.contains(&json!(n))) {
        return json!({ "error": "boom" });
    }
    let consumed = ROLES.iter().position(|it| *it == role).map(|at| &given["consume"][at]);
    let tokens = match &given["tokens"][role] {
        Value::Null => consumed.filter(|it| n == 0 && !it.is_null()).cloned().unwrap_or(0.into()),
        Value::Array(list) => list[n.min(list.len() - 1)].clone(),
        number => number.clone(),
    };
    let word = match &given["reviews"][n] {
        Value::Null => "PASS",
        word => word.as_str().expect("a review is a text"),
    };
    let mut said = match (role, word) {
        ("reviewer", "PASS") => json!({ "json": { "verdict": "PASS", "findings": [] } }),
        ("reviewer", "ISSUES") => {
            let findings = json!([{ "severity": "blocking", "text": "x" }]);
            json!({ "json": { "verdict": "ISSUES", "findings": findings } })
        }
        ("reviewer", word) => json!({ "reply": word }),
        (role, _) => json!({ "reply": format!("{role} did its part") }),
    };
    said["usage"] = json!({ "input": tokens, "output": 0 });
    said
}

fn try_case(case: &Value) -> Result<(), Mismatch> {
    let (given, expect) = (&case["given"], &case["expect"]);
    let bench = Bench::with_team(&team_of(given).to_string());
    if given["check"] == true {
        let checked = bench.call(["check", "team.yaml", "--json"]);
        return try_check(expect, &checked.json());
    }
    let task = given["input"].as_str().unwrap_or("T");
    let called = bench.call(["run", "team.yaml", task, "--json"]);
    let record = called.json();
    let of_turns = |key: &str| -> Value {
        record["turns"].as_array().into_iter().flatten().map(|turn| turn[key].clone()).collect()
    };
    let budget = &record["budget"];
    let consumed = given["consume"].as_array().map_or(0, Vec::len);
    let inside = budget["consumed"].as_array().into_iter().flatten().map(|it| it["inside"].clone());
    let got = json!({
        "path": record["path"], "state": record["state"], "reason": record["reason"],
        "rework": record["rework"], "failed_role": record["failed_role"], "exit": called.exit,
        "runs": of_turns("role"), "models": of_turns("model"), "events": record["phases"],
        "used": budget["used"], "total": budget["total"], "remaining": budget["remaining"],
        "returns": inside.take(consumed).collect::<Value>(),
        "model": of_turns("model")[consumed],
    });
    for key in expect.as_object().into_iter().flat_map(|it| it.keys()) {
        need(got.get(key).is_some(), || format!("nothing is known of {key}"))?;
    }
    matches(expect, Some(&got), "record")?;
    let open = record["unresolved"].as_array().map_or(0, Vec::len);
    match record["state"].as_str() {
        Some("DONE") => need(open == 0, || format!("{open} findings are open"))?,
        Some("DONE_WITH_FINDINGS") => need(open > 0, || "no finding is open".to_owned())?,
        _ => {}
    }
    if called.exit != 3 {
        bench.call(["replay", "last"]).must_be(0);
    }
    Ok(())
}

fn try_check(expect: &Value, report: &Value) -> Result<(), Mismatch> {
    let agents = report["agents"].as_array().into_iter().flatten();
    let by_name = agents.map(|it| (it["name"].as_str().unwrap_or_default().to_owned(), it.clone()));
    let by_name: Map<String, Value> = by_name.collect();
    let got = json!({ "agents": by_name, "error": report["errors"][0]["code"] });
    matches(expect, Some(&got), "report")
}

#[test]
fn the_offline_team_shows_a_review_that_is_heard() {
    for task in
        ["Fix the parser: first find the bug, then test it", "先找出解析器的错误，然后修复并测试"]
    {
        let bench = Bench::new();
        let called = bench.call(["run", "--demo", "--program", "roles", task, "--json"]);
        let record = called.must_be(0).json();
        assert_eq!((&record["reason"], &record["rework"]), (&json!("review_passed"), &json!(1)));
    }
}

/// The lines of `stream-json` whose type is none of those that every run has.
fn public(stdout: &str) -> Vec<Value> {
    let lines = stdout.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    let usual = ["record", "delta", "result"].map(|it| json!(it));
    lines.filter(|line: &Value| !usual.contains(&line["type"])).collect()
}

#[test]
fn the_stream_of_a_run_tells_its_phases_and_whoever_watches_it_sees_the_same() {
    let bench = Bench::with_team(
        &team_of(&json!({ "complexity": 9, "tokens": { "coder": 7 } })).to_string(),
    );
    let streamed = bench.call(["run", "team.yaml", "T", "--output", "stream-json"]).must_be(0);
    let told = public(&streamed.stdout);
    let kinds: Vec<&str> = told.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "task_phase_change",
            "task_phase_change",
            "task_phase_change",
            "task_phase_change",
            "pipeline_complete"
        ]
    );
    let coding = &told[2];
    assert_eq!((&coding["phase"], &coding["role"]), (&json!("coding_complete"), &json!("coder")));
    assert_eq!((&coding["tokens"], &coding["session_id"]), (&json!(7), &json!("parent")));
    assert!(coding["run_id"].is_string() && coding["duration_ms"].is_number(), "{coding}");
    let watched = bench.call(["watch", "last", "--json"]).must_be(0);
    assert_eq!(public(&watched.stdout), told);
}

#[test]
fn a_role_team_needs_no_file() {
    let bench = Bench::new();
    bench.write("folkmoot.toml", "default_model = \"demo/any\"\n");
    let record =
        bench.call(["run", "--program", "roles", "fix the bug", "--json"]).must_be(0).json();
    assert_eq!((&record["strategy"], &record["state"]), (&json!("roles"), &json!("DONE")));
    assert_eq!(record["turns"].as_array().map(Vec::len), Some(6), "the demo finds fault once");
    let simple = bench.call(["run", "--program", "roles", "hello", "--json"]).must_be(0).json();
    assert_eq!(simple["path"], "single");
    let offline = bench.call(["run", "--demo", "--program", "roles", "hello", "--json"]).must_be(0);
    assert_eq!(offline.json()["path"], "single");
    bench.write("team.yaml", "agents: []\n");
    let untold = bench.call(["run", "team.yaml", "--program", "roles", "--json"]).must_be(2).json();
    assert_eq!(untold["error"]["code"], "empty_prompt", "a file is no task");
    let unknown = bench.call(["run", "--program", "role", "hello", "--json"]).must_be(2).json();
    assert_eq!(unknown["error"]["code"], "unknown_program");
}

#[test]
fn a_role_that_asked_speaks_again_once_it_is_answered() {
    let bench = Bench::with_team(
        &team_of(&json!({ "complexity": 9, "reviews": ["NEEDS_INPUT", "PASS"] })).to_string(),
    );
    let asked = bench.call(["run", "team.yaml", "T", "--json"]).must_be(3).json();
    let listed = bench.call(["runs", "--json"]).must_be(0).json();
    assert_eq!((&listed[0]["status"], &listed[0]["ended_at"]), (&asked["status"], &Value::Null));
    assert!(bench.call(["runs"]).must_be(0).stdout.contains("needs_input"));
    let key = asked["question"]["key"].as_str().expect("a question has a key").to_owned();
    bench.call(["amend", "last", &key, "Yes, both"]).must_be(0);
    let answered = bench.call(["runs", "--json"]).must_be(0).json();
    assert_eq!(answered[0]["status"], "interrupted", "nobody goes on with it yet");
    let record = bench.call(["resume", "last", "--json"]).must_be(0).json();
    assert_eq!(
        (&record["state"], record["turns"].as_array().map(Vec::len)),
        (&json!("DONE"), Some(5))
    );
    let shown = bench.call(["show", "last", "--json"]).must_be(0).stdout;
    assert!(shown.contains("Yes, both"), "it is pinned into what is asked");
}

#[test]
fn a_run_that_goes_on_in_another_process_keeps_to_the_models_that_answered() {
    let team = team_of(&json!({
        "complexity": 9, "single_agent_budget": 100, "consume": [130], "reviews": ["NEEDS_INPUT", "PASS"],
    }));
    let bench = Bench::with_team(&team.to_string());
    bench.call(["run", "team.yaml", "T", "--json"]).must_be(3);
    bench.call(["amend", "last", "person/question-1", "go on"]).must_be(0);
    let record = bench.call(["resume", "last", "--json"]).must_be(0).json();
    let models: Vec<&Value> =
        record["turns"].as_array().into_iter().flatten().map(|it| &it["model"]).collect();
    assert_eq!(json!(models), json!(["premium", "economy", "economy", "economy", "economy"]));
    bench.call(["replay", "last"]).must_be(0);
}
