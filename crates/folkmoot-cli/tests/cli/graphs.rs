//! Runs the conformance cases of collaboration graphs on the real binary.
//!
//! The steps of a case are both the scripts of its agents and what is expected of them. The head of
//! the case file explains the form.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::{
    bench::Bench,
    conformance::{exit_of, try_all},
    matching::{Mismatch, need},
};

const TASK: &str = "Build the thing.";

#[test]
fn every_graph_case_holds() {
    try_all(include_str!("../cases/graph.yaml"), 297, try_case);
}

fn try_case(case: &Value) -> Result<(), Mismatch> {
    let bench = Bench::with_team(&team_of(case).to_string());
    match text(&case["kind"]) {
        "config" => try_config(&case["expect"], &bench),
        "trace" => try_trace(case, &bench),
        "prompt" => try_prompts(&case["expect"], &bench),
        kind => panic!("unknown kind of case: {kind}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text is expected: {value}"))
}

/// A list, or one item as a list; nothing if it is not given.
fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    }
}

fn slug(name: &str) -> String {
    name.trim().to_lowercase().split_whitespace().collect::<Vec<_>>().join("-")
}

fn same(what: &str, wanted: &Value, got: &Value) -> Result<(), Mismatch> {
    need(wanted == got, || format!("{what} should be {wanted}: {got}"))
}

fn same_set(what: &str, wanted: &[Value], got: &[Value]) -> Result<(), Mismatch> {
    let sorted = |items: &[Value]| {
        let mut texts: Vec<String> = items.iter().map(|it| sorted_keys(it).to_string()).collect();
        texts.sort();
        texts
    };
    need(sorted(wanted) == sorted(got), || {
        format!("{what} should be {}: {}", json!(wanted), json!(got))
    })
}

fn sorted_keys(value: &Value) -> Value {
    match value.as_object() {
        Some(fields) => fields.iter().collect::<BTreeMap<_, _>>().into_iter().map(pair).collect(),
        None => value.clone(),
    }
}

fn pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

fn holds(what: &str, parts: &Value, got: &str) -> Result<(), Mismatch> {
    items(parts).iter().try_for_each(|part| {
        need(got.contains(text(part)), || format!("{what} should have {part}: {got}"))
    })
}

// ---- the team of a case

fn team_of(case: &Value) -> Value {
    let (input, steps) = (&case["input"], items(&case["steps"]));
    let collaboration = &input["collaboration"];
    let scripts = scripts_of(&steps);
    let names: Vec<Value> = items(&input["subagents"]);
    let mut agents: Vec<Value> = names
        .iter()
        .map(|name| {
            let id = slug(text(name));
            let says = || vec![json!(format!("{id} says so"))];
            let replies = scripts.get(&id).cloned().unwrap_or_else(says);
            let mut agent = Map::new();
            agent.insert("name".into(), name.clone());
            agent.insert("script".into(), json!({ "replies": replies }));
            agent.extend(input["agents"][text(name)].as_object().cloned().unwrap_or_default());
            agent.into()
        })
        .collect();
    let verdicts = steps.iter().filter(|step| step.get("judge").is_some());
    let mut verdicts: Vec<Value> =
        verdicts.flat_map(|step| items(&step["judge"])).map(|it| verdict(&it)).collect();
    let needs_judge =
        collaboration.to_string().contains("converged") && !names.contains(&json!("judge"));
    if !verdicts.is_empty() || needs_judge {
        if verdicts.is_empty() {
            verdicts.push(verdict(&json!(false)));
        }
        agents.push(json!({ "name": "judge", "script": { "replies": verdicts } }));
    }
    let mut team = json!({ "name": case["id"], "agents": agents });
    if let Some(lead) = input.get("lead") {
        let is_led = collaboration.is_null() || collaboration["routing"] == "lead";
        let replies = match input.get("lead_replies") {
            Some(replies) => replies.clone(),
            None if is_led => turns_of(&steps).into(),
            None => json!(["The closing answer."]),
        };
        team["prompt"] = lead.clone();
        team["script"] = json!({ "replies": replies });
    }
    for key in ["collaboration", "limits"] {
        if let Some(given) = input.get(key).filter(|given| !given.is_null()) {
            team[key] = given.clone();
        }
    }
    team
}

fn verdict(answer: &Value) -> Value {
    match answer {
        Value::Bool(converged) => json!({ "json": { "converged": converged } }),
        Value::String(text) if text == "error" => json!({ "error": "boom" }),
        text => text.clone(),
    }
}

/// The replies of each agent. A step starts when the latest step that names its agent has delivered.
fn scripts_of(steps: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut scripts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut started: BTreeMap<String, u64> = BTreeMap::new();
    let runs = steps.iter().filter(|it| it.get("run").is_some() && it.get("refused").is_none());
    for step in runs {
        let agent = text(&step["run"]);
        let since = started.get(agent).copied().unwrap_or_default();
        let replies = scripts.entry(agent.to_owned()).or_default();
        replies.extend(replies_of(step, replies.len() + 1, since));
        let delivered = step["at_ms"].as_u64().unwrap_or(since);
        for target in items(&step["next"]) {
            let since = started.entry(text(&target).to_owned()).or_default();
            *since = delivered.max(*since);
        }
    }
    scripts
}

/// Tool calls, the reply, and what is said when asked once more for a choice.
fn replies_of(step: &Value, nth: usize, started: u64) -> Vec<Value> {
    let usual = format!("{} {nth}", text(&step["run"]));
    let mut said = step["output"].as_str().map_or(usual, str::to_owned);
    let choices: Vec<String> =
        items(&step["choose"]).iter().map(|choice| text(choice).to_owned()).collect();
    if !choices.is_empty() {
        said = format!("{said}\nNEXT: {}", choices.join(", "));
    }
    let mut reply = match (step.get("failed"), step.get("json")) {
        (Some(Value::Bool(true)), _) => json!({ "error": "boom" }),
        (_, Some(value)) => json!({ "json": value }),
        (_, None) => json!({ "reply": said }),
    };
    if let Some(at) = step["at_ms"].as_u64().filter(|at| *at > started) {
        reply["delay_ms"] = json!(at - started);
    }
    let tools = step.get("tools").map(|tools| json!({ "tool_calls": tools }));
    tools.into_iter().chain([reply]).chain(step.get("asked").cloned()).collect()
}

/// The lead's script: one turn for each step, or several calls in one.
fn turns_of(steps: &[Value]) -> Vec<Value> {
    let mut turns: Vec<Value> = Vec::new();
    for step in steps {
        let call = if let Some(answer) = step.get("finish") {
            json!({ "name": "finish", "arguments": { "answer": answer } })
        } else if let Some(task) = step.get("retry") {
            json!({ "name": "task_retry", "arguments": task })
        } else {
            let prompt = format!("Your part please, {}.", text(&step["run"]));
            json!({ "name": "dispatch", "arguments": { "agent": step["run"], "prompt": prompt } })
        };
        let together = step["together"] == true;
        match turns.last_mut().filter(|_| together).and_then(|it| it["tool_calls"].as_array_mut()) {
            Some(calls) => calls.push(call),
            None => turns.push(json!({ "tool_calls": [call] })),
        }
    }
    turns.push("That is all.".into());
    turns
}

// ---- what `check` says

fn try_config(wanted: &Value, bench: &Bench) -> Result<(), Mismatch> {
    let called = bench.call(["check", "team.yaml", "--json"]);
    let report = called.try_json()?;
    same("valid", &wanted["valid"], &report["valid"])?;
    let exit = if wanted["valid"] == true { 0 } else { 2 };
    need(called.exit == exit, || called.shown())?;
    let kinds = ["errors", "warnings", "hints"];
    let found = |kind: &str, key: &str| -> Vec<Value> {
        items(&report[kind]).iter().map(|it| it[key].clone()).collect()
    };
    for it in ["errors", "warnings"].into_iter().flat_map(|kind| items(&report[kind])) {
        let is_placed = ["line", "column"].into_iter().all(|key| it[key].as_u64() > Some(0));
        need(it["code"].is_string() && is_placed, || format!("no code or place: {it}"))?;
    }
    for kind in kinds {
        let messages = found(kind, "message");
        if let Some(wanted) = wanted.get(kind) {
            same_set(kind, &items(wanted), &messages)?;
        }
        holds(
            kind,
            &wanted[&*format!("{kind}_has")],
            &json!(messages).to_string().replace("\\\"", "\""),
        )?;
    }
    let all: Vec<Value> = kinds.into_iter().flat_map(|kind| found(kind, "message")).collect();
    for part in items(&wanted["not_reported"]) {
        let is_told = all.iter().any(|message| text(message).contains(text(&part)));
        need(!is_told, || format!("{part} should not be told: {}", json!(all)))?;
    }
    let codes: Vec<Value> = kinds.into_iter().flat_map(|kind| found(kind, "code")).collect();
    let has_all = items(&wanted["codes"]).iter().all(|code| codes.contains(code));
    need(has_all, || format!("codes {} are missing: {}", wanted["codes"], json!(codes)))?;
    let help: Vec<Value> =
        ["errors", "warnings"].into_iter().flat_map(|kind| found(kind, "help")).collect();
    let help: Vec<&str> = help.iter().filter_map(Value::as_str).collect();
    holds("help", &wanted["help_has"], &help.join(" | "))?;
    check_graph(wanted, &report)
}

fn check_graph(wanted: &Value, report: &Value) -> Result<(), Mismatch> {
    let graph = &report["graph"];
    if wanted.get("edges").is_some() {
        same_set("edges", &edges(&wanted["edges"]), &edges(&graph["edges"]))?;
    }
    for key in ["entry", "exit_sources", "back_edges"] {
        if let Some(wanted) = wanted.get(key) {
            same_set(key, &items(wanted), &items(&graph[key]))?;
        }
    }
    if let Some(wanted) = wanted.get("loops") {
        let has_cap = items(wanted).iter().any(|it| it.get("cap").is_some());
        let number = if has_cap { "cap" } else { "none" };
        same_set("loops", &loops(wanted, number), &loops(&graph["loops"], number))?;
    }
    if let Some(wanted) = wanted.get("decisions") {
        same_set("decisions", &decisions(wanted), &decisions(&graph["decisions"]))?;
    }
    if let Some(wanted) = wanted.get("max_iterations") {
        same("max_iterations", wanted, &graph["max_iterations"])?;
    }
    if let Some(wanted) = wanted.get("termination") {
        same("termination", wanted, &report["termination"])?;
    }
    if let Some(wanted) = wanted.get("stages") {
        let names: Vec<Value> =
            items(&report["stages"]).iter().map(|stage| stage["name"].clone()).collect();
        same("stages", wanted, &json!(names))?;
    }
    wanted.get("bounds").map_or(Ok(()), |wanted| part_of(wanted, &report["bounds"]))
}

fn part_of(wanted: &Value, got: &Value) -> Result<(), Mismatch> {
    match wanted.as_object() {
        Some(fields) => fields.iter().try_for_each(|(key, wanted)| part_of(wanted, &got[key])),
        None => same("bounds", wanted, got),
    }
}

fn edges(list: &Value) -> Vec<Value> {
    let edge = |it: &Value| {
        let label = it["label"].as_str().filter(|label| !label.is_empty());
        json!({ "from": it["from"], "to": it["to"], "label": label, "exit": it["exit"] == true })
    };
    items(list).iter().map(edge).collect()
}

fn loops(list: &Value, number: &str) -> Vec<Value> {
    let one = |it: &Value| json!({ "agents": sorted(&it["agents"]), "number": it[number] });
    items(list).iter().map(one).collect()
}

fn decisions(list: &Value) -> Vec<Value> {
    let one = |it: &Value| json!({ "agent": it["agent"], "options": sorted(&it["options"]), "default": it["default"] });
    items(list).iter().map(one).collect()
}

fn sorted(list: &Value) -> Vec<Value> {
    let mut list = items(list);
    list.sort_by_key(ToString::to_string);
    list
}

// ---- how a run goes

pub(crate) fn steps_of(result: &Value) -> Vec<Value> {
    let mut steps: Vec<Value> = Vec::new();
    for entry in items(&result["rounds"]) {
        for mut step in items(&entry["steps"]) {
            (step["round"], step["stage"]) = (entry["round"].clone(), entry["stage"].clone());
            steps.push(step);
        }
    }
    steps.sort_by_key(|step| step["step"].as_u64());
    steps
}

fn try_trace(case: &Value, bench: &Bench) -> Result<(), Mismatch> {
    let wanted = &case["expect"];
    let called = bench.call(["simulate", "team.yaml", TASK, "--json"]);
    let result = called.try_json()?;
    need(result.get("rounds").is_some(), || called.shown())?;
    let (graph, steps) = (&result["graph"], steps_of(&result));
    let ran = || {
        let agents: Vec<&Value> = steps.iter().map(|step| &step["agent"]).collect();
        format!("{} after {}", result["reason"], json!(agents))
    };
    let mut refused = items(&graph["refused"]).into_iter();
    let mut number = 0;
    for step in items(&case["steps"]) {
        if step.get("refused").is_some() {
            check_refusal(&step, &refused.next().unwrap_or_default(), number)?;
        } else if step.get("finish").is_none() {
            number += 1;
            let got = steps.get(number - 1);
            check_step(&step, got.ok_or_else(|| Mismatch(format!("step {number}: {}", ran())))?)?;
        }
    }
    if wanted["ends"] == false {
        return need(number < steps.len(), || format!("it should go on: {}", ran()));
    }
    need(number == steps.len(), || format!("it should end after {number} steps: {}", ran()))?;
    for key in ["reason", "final"] {
        wanted.get(key).map_or(Ok(()), |wanted| same(key, wanted, &result[key]))?;
    }
    let status = wanted["status"].as_str().unwrap_or_else(|| status_of(text(&wanted["reason"])));
    same("status", &json!(status), &result["status"])?;
    need(exit_of(status) == Some(called.exit), || called.shown())?;
    check_record(wanted, &result)
}

fn status_of(reason: &str) -> &'static str {
    match reason {
        "completed" | "converged" | "result_match" => "done",
        "stuck" | "max_iterations" | "timeout" => "bound_reached",
        "error" => "failed",
        "calls" => "budget_exhausted",
        reason => panic!("a reason without a status: {reason}"),
    }
}

fn check_step(wanted: &Value, got: &Value) -> Result<(), Mismatch> {
    let task = wanted["retry"]["task"].as_str().and_then(|task| task.split('/').next());
    let agent = wanted["run"].as_str().or(task).expect("a step has an agent");
    let place = format!("step {}", got["step"]);
    same(&place, &json!(agent), &got["agent"])?;
    let fails = !matches!(wanted["failed"], Value::Null | Value::Bool(false));
    let has_failed = got["response"].get("error").is_some();
    need(fails == has_failed, || format!("{place}: {}", got["response"]))?;
    for key in ["next", "options"] {
        if let Some(wanted) = wanted.get(key) {
            same_set(&format!("{place}, {key}"), &items(wanted), &items(&got[key]))?;
        }
    }
    for key in ["round", "why", "stage", "attempt"] {
        if let Some(wanted) = wanted.get(key) {
            same(&format!("{place}, {key}"), wanted, &got[key])?;
        }
    }
    Ok(())
}

fn check_refusal(wanted: &Value, got: &Value, after_step: usize) -> Result<(), Mismatch> {
    let is_so = json!([wanted["run"], wanted["refused"], after_step]);
    same("a refusal", &is_so, &json!([got["agent"], got["why"], got["after_step"]]))?;
    let due = wanted.get("due");
    due.map_or(Ok(()), |due| same_set("due", &items(due), &items(&got["due"])))
}

fn check_record(wanted: &Value, result: &Value) -> Result<(), Mismatch> {
    for key in ["final", "partial", "errors", "warnings"] {
        holds(key, &wanted[&*format!("{key}_has")], &result[key].to_string())?;
    }
    let graph = &result["graph"];
    let skipped: Vec<Value> =
        items(&graph["skipped"]).iter().map(|it| it["agent"].clone()).collect();
    for (key, got) in [
        ("partial", result["partial"]["text"].clone()),
        ("stopped_by", graph["stopped_by"].clone()),
        ("calls", result["meta"]["usage"]["calls"].clone()),
        ("also", json!(sorted(&graph["also"]))),
        ("unfinished", json!(sorted(&graph["unfinished"]))),
        ("skipped", json!(sorted(&json!(skipped)))),
    ] {
        let Some(wanted) = wanted.get(key) else { continue };
        let wanted = if wanted.is_array() { json!(sorted(wanted)) } else { wanted.clone() };
        same(key, &sorted_keys(&wanted), &sorted_keys(&got))?;
    }
    wanted.get("loops").map_or(Ok(()), |wanted| {
        same_set("loops", &loops(wanted, "rounds"), &loops(&graph["loops"], "rounds"))
    })
}

// ---- what agents are told

fn try_prompts(wanted: &Value, bench: &Bench) -> Result<(), Mismatch> {
    let called = bench.call(["run", "team.yaml", TASK, "--json"]);
    let result = called.try_json()?;
    let run = result["run_id"].as_str().ok_or_else(|| Mismatch(called.shown()))?;
    let calls = items(&bench.call(["show", run, "--json"]).try_json()?["calls"]);
    for request in items(&wanted["requests"]) {
        let mine: Vec<&Value> = (calls.iter())
            .filter(|call| call["request"]["messages"].is_array())
            .filter(|call| slug(text(&call["agent"])) == text(&request["agent"]))
            .collect();
        let nth = request["n"].as_i64().expect("a number");
        let from_end = || mine.len().checked_sub(usize::try_from(-nth).ok()?);
        let at = usize::try_from(nth - 1).ok().or_else(from_end);
        let call = at.and_then(|at| mine.get(at));
        let call = call.ok_or_else(|| Mismatch(format!("no such request: {request}")))?;
        let said = items(&call["request"]["messages"]);
        let said: Vec<&str> = said.iter().filter_map(|it| it["content"].as_str()).collect();
        let said = said.join("\n");
        for (key, is_wanted) in [("has", true), ("lacks", false)] {
            for pattern in items(&request[key]) {
                let regex = Regex::new(text(&pattern)).expect("the pattern is one");
                need(regex.is_match(&said) == is_wanted, || format!("{key} {pattern}: {said}"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_run_with_extensions_needs_its_file_no_more() {
    let bench = Bench::new();
    for (file, reason) in
        [("own-condition.yaml", "well_tested"), ("own-topology.yaml", "completed")]
    {
        let text = std::fs::read_to_string(format!(
            "{}/../../examples/{file}",
            env!("CARGO_MANIFEST_DIR")
        ));
        bench.write(file, &text.expect("it is an example"));
        let ran = bench.call(["run", file, "Do it", "--json"]).must_be(0).json();
        assert_eq!(ran["reason"], reason);
        bench.write(file, "agents: []\n");
        bench.call(["replay", "last"]).must_be(0);
        let report = bench.call(["report", "last"]).must_be(0).stdout;
        let words = if reason == "completed" { reason } else { "at least twice and nothing fails" };
        assert!(report.contains(words), "{report}");
    }
}

#[test]
fn programs_are_shown_the_edges_and_conditions_that_extensions_make() {
    let bench = Bench::new();
    for file in ["own-condition.yaml", "own-topology.yaml"] {
        let text = std::fs::read_to_string(format!(
            "{}/../../examples/{file}",
            env!("CARGO_MANIFEST_DIR")
        ));
        bench.write(file, &text.expect("it is an example"));
    }
    let checked = bench.call(["check", "own-topology.yaml", "--json"]).must_be(0).json();
    assert_eq!(checked["graph"]["edges"][1]["label"], "your part");
    assert_eq!(checked["graph"]["edges"].as_array().map(Vec::len), Some(6));
    let checked = bench.call(["check", "own-condition.yaml", "--json"]).must_be(0).json();
    assert_eq!(checked["termination"]["any_of"][0]["well_tested"]["rounds"], 2);
    assert_eq!(checked["bounds"]["turns"]["min"], 1, "it may hold at once");
}
