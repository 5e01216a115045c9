//! Patterns of roles on the real binary: the conformance cases, what a request may not say, and what a
//! person answers.

use serde_json::{Map, Value, json};

use crate::{
    bench::{Bench, Called},
    conformance::try_all,
    matching::{Mismatch, need},
};

#[test]
fn every_pattern_case_holds() {
    try_all(include_str!("../cases/collaborate.yaml"), 65, try_case);
}

fn roles(pattern: &str) -> &'static [&'static str] {
    match pattern {
        "review" => &["implementer", "reviewer", "reviser"],
        "consensus" => &["analyst_impl", "analyst_design", "analyst_security", "synthesizer"],
        "debate" => &["advocate", "critic", "arbiter"],
        _ => &[],
    }
}

/// A folder in which the usual aliases are known, or only these.
fn bench(aliases: &[&str]) -> Bench {
    let bench = Bench::new();
    let lines: Vec<String> = aliases.iter().map(|it| format!("{it} = \"demo/{it}\"")).collect();
    bench.write("folkmoot.toml", &format!("[aliases]\n{}\n", lines.join("\n")));
    bench
}

const ALIASES: [&str; 3] = ["codex", "claude", "gemini"];

fn try_case(case: &Value) -> Result<(), Mismatch> {
    let (given, expect) = (&case["given"], &case["expect"]);
    let (args, settings) = (&given["args"], &given["settings"]);
    let bench = bench(&ALIASES);
    let pattern = args["pattern"].as_str().unwrap_or_default();
    let mut line = vec!["collaborate".to_owned(), "--json".to_owned()];
    if args["list_patterns"] == true {
        line.push("--list".to_owned());
    } else if !roles(pattern).is_empty() {
        bench.write("team.yaml", &cast(pattern, &given["agents"], settings).to_string());
        line.push("--team=team.yaml".to_owned());
    }
    for key in ["providers", "max_rounds", "sandbox", "timeout"] {
        if let Some(value) = args.get(key) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line.push(format!("--{}={text}", key.replace('_', "-")));
        }
    }
    let task = args["task"].as_str().unwrap_or_default();
    line.extend([pattern.to_owned(), task.to_owned()]);
    let mut called = bench.call(line.iter().map(String::as_str));
    if let Some(code) = expect.get("error") {
        return refused(code, expect, &called);
    }
    if let Some(answer) = given["then"]["answer"].as_str() {
        let run = called.try_json()?["run_id"].clone();
        called = bench.call(["answer", run.as_str().unwrap_or_default(), answer, "--json"]);
    }
    let record = called.try_json()?;
    compare(&record, expect)?;
    if expect.get("state").is_some() {
        need(called.exit == exit_of(&record), || format!("exit {}", called.shown()))?;
    }
    prompts(&bench, &record, &expect["prompt_of"])
}

fn cast(pattern: &str, said: &Value, settings: &Value) -> Value {
    let delay = settings["turn_ms"].as_u64();
    let script = |name: &str, replies: &Value| {
        let item = |reply: &Value| match delay {
            None => reply.clone(),
            Some(ms) => json!({ "delay_ms": ms, "reply": reply }),
        };
        let replies: Vec<Value> = replies.as_array().into_iter().flatten().map(item).collect();
        json!({ "name": name, "script": { "replies": replies } })
    };
    let usual = json!(["plain text"]);
    let agents = roles(pattern).iter().map(|role| script(role, said.get(*role).unwrap_or(&usual)));
    let judge = settings.get("judge").map(|replies| script("judge", replies));
    json!({ "name": "cast", "agents": agents.chain(judge).collect::<Vec<Value>>() })
}

fn refused(code: &Value, expect: &Value, called: &Called) -> Result<(), Mismatch> {
    let told = called.try_json()?;
    need(called.exit == 2 && told["error"]["code"] == *code, || called.shown())?;
    need(told.get("run_id").is_none(), || "it has become a run".into())?;
    let message = told["error"]["message"].as_str().unwrap_or_default();
    need(message.contains(expect["message"].as_str().unwrap_or_default()), || message.to_owned())
}

fn exit_of(record: &Value) -> i32 {
    match (record["state"].as_str(), record["converged"].as_bool(), record["reason"].as_str()) {
        (Some("COMPLETE"), Some(true), _) => 0,
        (Some("NEEDS_INPUT"), ..) => 3,
        (_, _, Some("max_rounds")) => 5,
        (_, _, Some("max_wall_time")) => 6,
        (_, _, Some("budget_exceeded")) => 4,
        _ => 1,
    }
}

fn compare(record: &Value, expect: &Value) -> Result<(), Mismatch> {
    let turns = || record["turns"].as_array().into_iter().flatten();
    for (key, wanted) in expect.as_object().into_iter().flatten() {
        let got = match &**key {
            "prompt_of" => continue,
            "record_keys" => {
                let lacks = wanted.as_array().into_iter().flatten();
                let mut lacks = lacks.filter(|it| record.get(it.as_str().unwrap_or("")).is_none());
                need(lacks.next().is_none(), || format!("the record lacks fields: {record}"))?;
                continue;
            }
            "stages" => stages(record),
            "unresolved" => record[key].as_array().is_some_and(|it| !it.is_empty()).into(),
            "last_turn_output" => record["last_turn"]["output"].clone(),
            "patterns" => {
                let names =
                    record[key].as_array().into_iter().flatten().map(|it| it["name"].clone());
                let mut names: Vec<Value> = names.collect();
                names.sort_by_key(ToString::to_string);
                names.into()
            }
            "providers" => of_roles(wanted, |role| record[key][role].clone()),
            "sandbox_of" => of_roles(wanted, |role| {
                let last = turns().rfind(|turn| turn["role"] == role);
                last.map_or(Value::Null, |turn| turn["sandbox"].clone())
            }),
            _ => record[key].clone(),
        };
        need(got == *wanted, || format!("{key}: got {got}, want {wanted}"))?;
    }
    Ok(())
}

fn of_roles(wanted: &Value, of: impl Fn(&str) -> Value) -> Value {
    let roles = wanted.as_object().into_iter().flatten();
    Value::Object(roles.map(|(role, _)| (role.clone(), of(role))).collect::<Map<String, Value>>())
}

/// Roles grouped by the number of their stage.
fn stages(record: &Value) -> Value {
    let mut stages: Vec<(Value, Vec<Value>)> = Vec::new();
    for turn in record["turns"].as_array().into_iter().flatten() {
        match stages.last_mut() {
            Some((stage, roles)) if *stage == turn["stage"] => roles.push(turn["role"].clone()),
            Some(_) | None => stages.push((turn["stage"].clone(), vec![turn["role"].clone()])),
        }
    }
    stages.into_iter().map(|(_, roles)| Value::from(roles)).collect()
}

fn prompts(bench: &Bench, record: &Value, wanted: &Value) -> Result<(), Mismatch> {
    let Some(wanted) = wanted.as_object() else { return Ok(()) };
    let run = record["run_id"].as_str().unwrap_or_default();
    let shown = bench.call(["show", run, "--json"]).try_json()?;
    for (place, parts) in wanted {
        let (role, nth) = place.trim_end_matches(']').split_once('[').expect("it is role[n]");
        let nth: usize = nth.parse().expect("it is a number");
        let mut calls = shown["calls"].as_array().into_iter().flatten();
        let call = calls.by_ref().filter(|call| call["agent"] == role).nth(nth);
        let text = call.map(|call| call["request"].to_string()).unwrap_or_default();
        let parts = &parts["contains"];
        let parts = parts.as_array().cloned().unwrap_or_else(|| vec![parts.clone()]);
        for part in parts.iter().filter_map(Value::as_str) {
            need(text.contains(part), || format!("{place} lacks {part}: {text}"))?;
        }
    }
    Ok(())
}

fn asked(bench: &Bench, replies: &str) -> Value {
    let cast = format!("agents:\n  - name: analyst_impl\n    script: {{ replies: {replies} }}\n");
    bench.write("team.yaml", &cast);
    bench.call(["collaborate", "consensus", "T", "--team", "team.yaml", "--json"]).must_be(3).json()
}

#[test]
fn a_refusal_tells_all_that_is_wrong_in_the_order_of_the_checks_and_what_is_allowed() {
    let bench = bench(&["codex"]);
    let line = ["collaborate", "debate", " ", "--sandbox=root", "--max-rounds=2", "--timeout=0"];
    let providers = r#"--providers={"critic": "ghost", "tester": "codex"}"#;
    let told = bench.call(line.into_iter().chain([providers, "--json"])).must_be(2).json();
    let codes: Vec<&Value> =
        told["errors"].as_array().into_iter().flatten().map(|it| &it["code"]).collect();
    assert_eq!(
        codes[..6],
        [
            "task_required",
            "invalid_sandbox",
            "max_rounds_too_small",
            "invalid_timeout",
            "unknown_role",
            "unknown_provider"
        ]
    );
    assert_eq!(told["error"], told["errors"][0]);
    assert_eq!(told["errors"][1]["allowed"], json!(["read-only", "write", "full"]));
    assert_eq!(told["errors"][4]["allowed"], json!(["advocate", "critic", "arbiter"]));
    assert_eq!(told["errors"][5]["allowed"], json!(["codex"]));
    let runs = bench.call(["runs", "--json"]).must_be(0).json();
    assert_eq!(runs, json!([]), "a refused request is no run");
}

#[test]
fn the_default_model_stands_in_for_a_role_but_never_for_a_name_that_was_given() {
    let bench = bench(&[]);
    let told = bench.call(["collaborate", "debate", "T", "--json"]).must_be(2).json();
    assert_eq!(told["error"]["code"], "unknown_provider");
    bench.write("folkmoot.toml", "default_model = \"demo/x\"\n");
    let told =
        bench.call(["collaborate", "review", "T", "--max-rounds=1", "--json"]).must_be(5).json();
    assert_eq!(told["warnings"][0]["code"], "role_fallback");
    assert_eq!(told["turns"][0]["model"], "codex");
    let given = r#"--providers={"reviewer": "ghost"}"#;
    let told = bench.call(["collaborate", "review", "T", given, "--json"]).must_be(2).json();
    assert_eq!(told["error"]["code"], "unknown_provider");
}

#[test]
fn the_judge_is_neither_who_works_nor_who_revises() {
    let bench = bench(&ALIASES);
    let judged = |judge: &str| {
        let flag = format!("--judge={judge}");
        bench.call(["collaborate", "review", "T", "--max-rounds=1", &flag, "--json"]).json()
    };
    assert_eq!(judged("codex")["error"]["code"], "invalid_judge");
    assert_eq!(judged("demo/codex")["error"]["code"], "invalid_judge");
    assert_eq!(judged("ghost")["error"]["code"], "unknown_provider");
    assert_eq!(judged("gemini")["reason"], "max_rounds");
}

#[test]
fn a_cast_takes_roles_by_name_and_keeps_the_label_of_the_role() {
    let bench = bench(&ALIASES);
    bench.write(
        "team.yaml",
        "agents:
  - { name: reviewer, prompt: Be strict., model: gemini, script: { replies: [LGTM] } }
  - { name: implementer, script: { replies: [CODE] } }
",
    );
    let line = ["collaborate", "review", "T", "--team", "team.yaml", "--json"];
    let told = bench.call(line).must_be(0).json();
    assert_eq!(
        told["providers"],
        json!({ "implementer": "codex", "reviewer": "gemini", "reviser": "codex" })
    );
    let line = line.into_iter().chain([r#"--providers={"reviewer": "claude"}"#]);
    assert_eq!(bench.call(line).must_be(0).json()["providers"]["reviewer"], "claude");
    bench.write("team.yaml", "agents: [{ name: tester, script: { replies: [x] } }]\n");
    let line = ["collaborate", "review", "T", "--team", "team.yaml", "--json"];
    assert_eq!(bench.call(line).must_be(2).json()["error"]["code"], "unknown_role");
}

#[test]
fn a_team_file_takes_the_same_parameters_and_tells_the_same_fields() {
    let bench = bench(&ALIASES);
    bench.write(
        "team.yaml",
        "collaboration: { pattern: review, max_rounds: 2, providers: { reviewer: gemini }, timeout: 30m }
agents: [{ name: reviewer, script: { replies: [LGTM] } }]
",
    );
    let told = bench.call(["run", "team.yaml", "T", "--json"]).must_be(0).json();
    assert_eq!((&told["pattern"], &told["strategy"]), (&json!("review"), &json!("review")));
    assert_eq!((&told["reason"], &told["converged"]), (&json!("max_rounds"), &json!(true)));
    assert_eq!(told["final"], told["final_artifact"]);
    assert_eq!(told["rounds"][0]["turns"][1]["output"], "LGTM");
    for (collaboration, code) in [
        ("{ pattern: Review }", "unknown_pattern"),
        ("{ pattern: debate, max_rounds: 2 }", "max_rounds_too_small"),
        ("{ pattern: review, providers: { tester: codex } }", "unknown_role"),
        ("{ pattern: review, providers: [codex] }", "invalid_providers_json"),
        ("{ pattern: review, judge: codex }", "invalid_judge"),
        ("{ pattern: review, strategy: debate }", "two_shapes"),
    ] {
        bench.write("team.yaml", &format!("collaboration: {collaboration}\n"));
        let told = bench.call(["check", "team.yaml", "--json"]).json();
        assert_eq!(told["errors"][0]["code"], code, "{collaboration}: {told}");
    }
}

#[test]
fn a_question_is_answered_by_its_key_where_several_are_open() {
    let bench = bench(&ALIASES);
    let cast = "agents:
  - { name: analyst_impl, script: { replies: [\"NEEDS_INPUT: which language?\", I] } }
  - { name: analyst_design, script: { replies: [\"NEEDS_INPUT: which style?\", D] } }
";
    bench.write("team.yaml", cast);
    let line = ["collaborate", "consensus", "T", "--team", "team.yaml", "--json"];
    let told = bench.call(line).must_be(3).json();
    assert_eq!((&told["status"], &told["reason"]), (&json!("needs_input"), &json!("needs_input")));
    assert_eq!(told["open_questions"].as_array().map(Vec::len), Some(2));
    let watched = bench.call(["watch", "last"]).must_be(3);
    assert!(watched.stderr.contains("folkmoot answer"), "{}", watched.shown());
    let unclear = bench.call(["answer", "last", "Rust"]).must_be(2);
    assert!(unclear.stderr.contains("person/turn-1, person/turn-2"), "{}", unclear.shown());
    let told = bench.call(["answer", "last", "Rust", "--json"]).must_be(2).json();
    assert_eq!(told["error"]["code"], "ambiguous_question");
    assert_eq!(told["error"]["allowed"], json!(["person/turn-1", "person/turn-2"]));
    let told =
        bench.call(["answer", "last", "x", "--key", "person/turn-9", "--json"]).must_be(2).json();
    assert_eq!(told["error"]["code"], "unknown_question");
    let told = bench
        .call(["answer", "last", "Rust", "--key", "person/turn-1", "--json"])
        .must_be(3)
        .json();
    assert_eq!(told["question"]["key"], "person/turn-2");
    let told = bench.call(["answer", "last", "plain", "--json"]).must_be(0).json();
    assert_eq!(told["turns"].as_array().map(Vec::len), Some(6));
    assert_eq!(
        bench.call(["answer", "last", "x", "--json"]).must_be(2).json()["error"]["code"],
        "no_open_question"
    );
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
}

#[test]
fn an_empty_answer_is_none_and_a_run_that_waits_can_be_cancelled() {
    let bench = bench(&ALIASES);
    asked(&bench, "[\"NEEDS_INPUT: which?\"]");
    assert_eq!(
        bench.call(["answer", "last", " ", "--json"]).must_be(2).json()["error"]["code"],
        "empty_answer"
    );
    bench.call(["cancel", "last"]).must_be(0);
    let told = bench.call(["show", "last", "--json"]).must_be(0).json();
    assert_eq!(told["run"]["status"], "cancelled");
}

#[test]
fn an_answer_can_be_amended_and_the_run_forked_with_another_ceiling() {
    let bench = bench(&ALIASES);
    bench.write(
        "team.yaml",
        "agents:
  - { name: reviewer, script: { replies: [\"[BLOCKING] x\"] } }
  - { name: reviser, script: { replies: [a, b, c, d] } }
",
    );
    let line = ["collaborate", "review", "T", "--team", "team.yaml", "--max-rounds=3", "--json"];
    bench.call(line).must_be(5);
    let set = ["fork", "last", "--set", "collaboration.max_rounds=5", "--json"];
    let told = bench.call(set).must_be(5).json();
    assert_eq!((&told["max_rounds"], told["turns"].as_array().map(Vec::len)), (&json!(5), Some(5)));
    assert_eq!(told["meta"]["usage"]["calls"], 2, "what was answered is taken over");
    let told = bench
        .call(["fork", "last", "--answer", "stage-2/reviewer=LGTM", "--json"])
        .must_be(0)
        .json();
    assert_eq!(told["reason"], "explicit_converged");
}

#[test]
fn the_patterns_are_listed_whatever_else_is_given() {
    let bench = Bench::new();
    bench.write("folkmoot.toml", "this is no config");
    let told = bench
        .call(["collaborate", "--list", "nonsense", "--max-rounds=-1", "--json"])
        .must_be(0)
        .json();
    let roles: Vec<usize> = told["patterns"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| Some(it["roles"].as_array()?.len()))
        .collect();
    assert_eq!(roles, [3, 4, 3]);
}

#[test]
fn people_are_told_what_is_asked_and_how_to_answer() {
    let bench = bench(&ALIASES);
    asked(&bench, "[\"NEEDS_INPUT: which language?\"]");
    let called = bench.call(["resume", "last"]).must_be(3);
    assert!(called.stderr.contains("which language?"), "{}", called.shown());
    assert!(called.stderr.contains("folkmoot answer"), "{}", called.shown());
}

#[test]
fn a_question_of_a_graph_is_answered_too_while_nobody_drives_it() {
    let bench = bench(&ALIASES);
    bench.write(
        "team.yaml",
        "agents:
  - { name: a, script: { replies: [{ error: down }, { error: down }, A2] } }
  - { name: b, script: { replies: [B] } }
collaboration: { topology: pipeline, agents: [a, b], on_failure: { retry: 1, then: ask } }
",
    );
    let told = bench.call(["run", "team.yaml", "T", "--json"]).must_be(3).json();
    assert_eq!(told["question"]["key"], told["open_questions"][0]["key"]);
    assert_eq!(told["question"]["role"], "a");
    let told = bench.call(["answer", "last", "retry", "--json"]).must_be(0).json();
    assert_eq!((&told["status"], &told["final"]), (&json!("done"), &json!("B")));
    assert_eq!(told.get("question"), None, "it is answered");
    bench.call(["replay", "last"]).must_be(0);
}
