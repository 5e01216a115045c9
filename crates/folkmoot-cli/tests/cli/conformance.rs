//! Runs the conformance cases of `tests/cases` on the real binary.
//!
//! Each case becomes a team of scripted agents, which is run in a scratch folder with its own
//! database and compared with what the case expects. The head of the case file explains the form.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use folkmoot_stub::{Completion, Reply, Stub};
use serde_json::{Map, Value, json};

use crate::{
    bench::{Bench, Called},
    matching::{Mismatch, contains, contains_not, equals, matches, need},
};

#[test]
fn every_strategy_case_holds() {
    try_all(include_str!("../cases/strategies.yaml"), 200, try_case);
}

#[test]
fn every_fault_case_holds() {
    try_all(include_str!("../cases/faults.yaml"), 120, try_case);
}

/// Tries every case of a file that has more than `least` of them.
pub(crate) fn try_all(
    cases: &str,
    least: usize,
    try_case: impl Fn(&Value) -> Result<(), Mismatch> + Sync,
) {
    // YAML 1.2: `y` is a name, not a truth value.
    let options = serde_saphyr::options! { strict_booleans: true };
    let cases: Value =
        serde_saphyr::from_str_with_options(cases, options).expect("the case file is YAML");
    let cases = cases["cases"].as_array().expect("the file has a list of cases");
    let cases: Vec<Value> = cases.iter().flat_map(variants).collect();
    assert!(cases.len() > least, "cases are missing: there are only {}", cases.len());
    let failures = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(Mismatch(why)) = try_case(case) {
                        let failure = format!("{} ({}): {why}", case["id"], case["title"]);
                        failures.lock().expect("no holder panics").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no holder panics");
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

/// A case once for each of its variants, or as it is: a variant says what stands for the words in
/// capitals, and may have an `expect` of its own.
fn variants(case: &Value) -> Vec<Value> {
    let Some(variants) = case["variants"].as_array() else { return vec![case.clone()] };
    let variant = |(n, variant): (usize, &Value)| {
        let mut words = variant.as_object().expect("a variant is a map").clone();
        let expect = words.shift_remove("expect");
        let mut case = case.clone();
        case["id"] = format!("{} #{}", text(&case["id"]), n + 1).into();
        case["expect"] = expect.unwrap_or(case["expect"].take());
        fill(&mut case, &words);
        case
    };
    variants.iter().enumerate().map(variant).collect()
}

/// Puts the values of `words` where they stand in `value`: the whole of a text or key, or a part of a
/// text.
fn fill(value: &mut Value, words: &Map<String, Value>) {
    match value {
        Value::String(text) => match words.get(text) {
            Some(word) => *value = word.clone(),
            None => {
                for (word, by) in words {
                    *text = text.replace(word, by.as_str().unwrap_or(word));
                }
            }
        },
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, words)),
        Value::Object(fields) => {
            for (key, mut field) in std::mem::take(fields) {
                fill(&mut field, words);
                let key = words.get(&key).and_then(Value::as_str).map_or(key, str::to_owned);
                fields.insert(key, field);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn try_case(case: &Value) -> Result<(), Mismatch> {
    match case["kind"].as_str() {
        Some("cli") => try_command(case),
        Some("vote") => try_team(&ballot_case(case)),
        Some("run") | None => try_team(case),
        Some(kind) => panic!("unknown kind of case: {kind}"),
    }
}

fn run_team(bench: &Bench, mode: &str, prompt: &str, strategy: Option<&str>) -> Called {
    let args = [mode, "team.yaml", "--prompt", prompt, "--json"].into_iter();
    bench.call(args.chain(strategy.into_iter().flat_map(|strategy| ["--strategy", strategy])))
}

fn try_team(case: &Value) -> Result<(), Mismatch> {
    let file = file_of(case);
    let stub = case["stub"].as_array().map(|it| Stub::start(it.iter().map(stub_reply)));
    let bench = match &stub {
        Some(stub) => Bench::with_models(&file, stub),
        None => Bench::with_team(&file),
    };
    let expect = &case["expect"];
    if let Some(warmup) = case.get("warmup") {
        run_team(&bench, "run", text(&warmup["prompt"]), warmup["strategy"].as_str());
    }
    let mode = case["mode"].as_str().unwrap_or("run");
    let called = run_team(&bench, mode, text(&case["prompt"]), case["strategy"].as_str());
    if let Some(error) = expect.get("error") {
        return check_refusal(error, &called);
    }
    let result = called.try_json()?;
    check_result(expect, &called, &result)?;
    if ["calls", "inputs", "log"].iter().any(|key| expect.get(key).is_some()) {
        check_calls(expect, &calls(&bench, text(&result["run_id"]))?)
    } else {
        Ok(())
    }
}

fn try_command(case: &Value) -> Result<(), Mismatch> {
    let bench = Bench::with_team(&file_of(case));
    let expect = &case["expect"];
    let args = case["args"].as_array().expect("a cli case has args").iter();
    let args = args.map(text).map(|arg| if arg == "{team}" { "team.yaml" } else { arg });
    let called = bench.call(args);
    need(Some(i64::from(called.exit)) == expect["exit"].as_i64(), || called.shown())?;
    if let Some(wanted) = expect.get("json") {
        matches(wanted, Some(&called.try_json()?), "$")?;
    }
    let output = Value::from(format!("{}{}", called.stdout, called.stderr));
    expect.get("output_contains").map_or(Ok(()), |it| contains(it, &output, "the output"))?;
    let not = expect.get("output_not_contains");
    not.map_or(Ok(()), |it| contains_not(it, &output, "the output"))
}

/// The calls of a run that were really made, in order.
fn calls(bench: &Bench, run: &str) -> Result<Vec<Value>, Mismatch> {
    let shown = bench.call(["show", run, "--json"]).try_json()?;
    let calls = shown["calls"].as_array().cloned().unwrap_or_default();
    Ok(calls.into_iter().filter(|call| call["state"] != "refused").collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text is expected: {value}"))
}

/// A reply of the model server: a text, with `reasoning` beside it in a field of its own.
fn stub_reply(reply: &Value) -> Reply {
    let reasoning = reply["reasoning"].as_str().map(str::to_owned);
    let said = reply["text"].as_str().or(reply.as_str()).expect("a reply has a text");
    Reply::stream(&Completion { reasoning, ..Completion::text([said]) })
}

/// The bytes of the team file: as they are given, or made of what the case says.
fn file_of(case: &Value) -> String {
    case["file"].as_str().map_or_else(|| team_of(case).to_string(), str::to_owned)
}

fn team_of(case: &Value) -> Value {
    let agents = match case.get("agents_generated") {
        Some(many) => (1..=many["count"].as_u64().expect("a count"))
            .map(|n| json!({ "name": format!("{}{n}", text(&many["prefix"])), "replies": [many["reply"]] }))
            .collect(),
        None => case["agents"].as_array().cloned().unwrap_or_default(),
    };
    let agents: Vec<Value> = agents.into_iter().map(agent_of).collect();
    let mut team = json!({ "name": case["id"], "agents": agents });
    if case.get("strategy").is_some() || case.get("params").is_some() {
        let mut collaboration = Map::new();
        collaboration
            .insert("strategy".into(), case.get("strategy").cloned().unwrap_or("auto".into()));
        collaboration.extend(case["params"].as_object().cloned().unwrap_or_default());
        team["collaboration"] = collaboration.into();
    }
    if let Some(limits) = case.get("limits") {
        team["limits"] = limits.clone();
    }
    team
}

fn agent_of(mut agent: Value) -> Value {
    let fields = agent.as_object_mut().expect("an agent is a map");
    let mut script = Map::new();
    for key in ["replies", "rules"] {
        script.extend(fields.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    if !fields.contains_key("model") || !script.is_empty() {
        fields.insert("script".into(), script.into());
    }
    agent
}

/// Casts the text as the ballot of the first candidate; the others abstain, and nobody elected leaves
/// it to the first.
fn ballot_case(case: &Value) -> Value {
    let names = case["candidates"].as_array().expect("a vote has candidates");
    let agents: Vec<Value> = (0..)
        .zip(names)
        .map(|(at, name)| match at {
            0 => json!({ "name": name, "replies": ["P", case["text"], "J"] }),
            _ => json!({ "name": name, "replies": ["P", "abstain"] }),
        })
        .collect();
    let vote = &case["expect"];
    let elected: Vec<&Value> = Some(vote).filter(|vote| !vote.is_null()).into_iter().collect();
    let mut ballots = Map::new();
    ballots.insert(text(&names[0]).into(), json!({ "text": case["text"], "vote": vote }));
    let record = json!({ "step": "vote", "votes": { "$keys": elected }, "ballots": ballots });
    let any = json!({ "$any": true });
    json!({
        "id": case["id"], "agents": agents, "prompt": "P", "strategy": "consensus",
        "expect": { "result": { "rounds": [any, record, any] } },
    })
}

fn check_refusal(wanted: &Value, called: &Called) -> Result<(), Mismatch> {
    need(called.exit == 2, || format!("should be refused: {}", called.shown()))?;
    need(!called.stdout.contains("\"run_id\""), || "a refused request has become a run".into())?;
    if let Some(code) = wanted.get("code") {
        let answer = called.try_json()?;
        let errors = answer["errors"].as_array().cloned().unwrap_or_default();
        let mut codes = errors.iter().chain([&answer["error"]]).map(|error| &error["code"]);
        let wanted = code.as_array().cloned().unwrap_or_else(|| vec![code.clone()]);
        let all = wanted.iter().all(|code| codes.any(|it| it == code));
        need(all, || format!("codes {code} are missing: {}", called.shown()))?;
    }
    let output = Value::from(format!("{}{}", called.stdout, called.stderr));
    wanted.get("contains").map_or(Ok(()), |it| contains(it, &output, "the refusal"))
}

pub(crate) fn exit_of(status: &str) -> Option<i32> {
    match status {
        "done" => Some(0),
        "failed" | "cancelled" => Some(1),
        "needs_input" => Some(3),
        "budget_exhausted" => Some(4),
        "bound_reached" => Some(5),
        "deadline" => Some(6),
        _ => None,
    }
}

fn check_result(expect: &Value, called: &Called, result: &Value) -> Result<(), Mismatch> {
    let exit = expect["exit"].as_i64().unwrap_or(0);
    need(i64::from(called.exit) == exit, || called.shown())?;
    let status = text(&result["status"]);
    need(exit_of(status) == Some(called.exit), || format!("status {status} with exit {exit}"))?;
    if let Some(wanted) = expect.get("result") {
        matches(wanted, Some(result), "$")?;
    }
    let elapsed = result["meta"]["elapsed_seconds"].as_f64().unwrap_or(f64::NAN);
    within(&expect["wall_ms"], called.wall_ms, "real time")?;
    within(&expect["elapsed_ms"], elapsed * 1000.0, "meta.elapsed_seconds")
}

fn within(bounds: &Value, value: f64, what: &str) -> Result<(), Mismatch> {
    let least = bounds["min"].as_f64().unwrap_or(0.0);
    let most = bounds["max"].as_f64().unwrap_or(f64::INFINITY);
    need(bounds.is_null() || (least..=most).contains(&value.round()), || {
        format!("{what} is {value:.0} ms, outside {bounds}")
    })
}

fn check_calls(expect: &Value, calls: &[Value]) -> Result<(), Mismatch> {
    for (agent, number) in expect["calls"].as_object().into_iter().flatten() {
        let made = calls_of(agent, calls).len();
        need(Some(made as u64) == number.as_u64(), || format!("{agent} was called {made} times"))?;
    }
    if let Some(log) = expect.get("log") {
        matches(log, Some(&calls.to_vec().into()), "log")?;
    }
    let mut inputs = expect["inputs"].as_array().into_iter().flatten();
    inputs.try_for_each(|wanted| check_input(wanted, calls))
}

fn calls_of<'a>(agent: &str, calls: &'a [Value]) -> Vec<&'a Value> {
    calls.iter().filter(|call| call["agent"] == agent).collect()
}

/// The request as (role, text) pairs.
fn messages_of(call: &Value) -> Vec<(&str, &str)> {
    let messages = call["request"]["messages"].as_array().into_iter().flatten();
    messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn check_input(wanted: &Value, calls: &[Value]) -> Result<(), Mismatch> {
    let mine = calls_of(text(&wanted["agent"]), calls);
    let nth = |value: &Value| {
        let nth = value.as_u64().and_then(|nth| usize::try_from(nth).ok()).expect("a number");
        mine.get(nth - 1).ok_or_else(|| Mismatch(format!("there are only {} requests", mine.len())))
    };
    let messages = messages_of(nth(&wanted["call"])?);
    let said = |role: &str| -> Vec<&str> {
        messages.iter().filter(|(who, _)| *who == role).map(|(_, text)| *text).collect()
    };
    let all: Vec<&str> = messages.iter().map(|(_, text)| *text).collect();
    for (name, arg) in wanted.as_object().expect("an input is a map") {
        let (view, matcher) = name.split_once('_').unwrap_or((name, ""));
        let seen: Value = match view {
            "agent" | "call" => continue,
            "extends" => {
                let earlier = messages_of(nth(arg)?);
                need(extends(&earlier, &messages), || {
                    format!("does not begin with request {arg}")
                })?;
                continue;
            }
            "sees" => all.join("\n").into(),
            "user" => said("user").join("\n").into(),
            "message" => said("user").last().copied().unwrap_or_default().into(),
            "assistant" => said("assistant").into(),
            view => panic!("unknown view {view}"),
        };
        let place = format!("request {} of {} ({view})", wanted["call"], wanted["agent"]);
        match matcher {
            "contains" => contains(arg, &seen, &place)?,
            "not_contains" => contains_not(arg, &seen, &place)?,
            "equals" => equals(arg, &seen, &place)?,
            matcher => panic!("unknown matcher {matcher}"),
        }
    }
    Ok(())
}

/// Whether one request begins with another, whose last message may have grown.
fn extends(earlier: &[(&str, &str)], later: &[(&str, &str)]) -> bool {
    let Some(((role, text), head)) = earlier.split_last() else { return false };
    later.starts_with(head)
        && later.get(head.len()).is_some_and(|(who, grown)| who == role && grown.starts_with(text))
}
