//! A team as somebody might write it.

use folkmoot_core::{check::Source, spec::Spec};
use serde_json::{Map, Value, json};

use super::graph::graph;
use crate::{names::NAMES, source::Choices, team_file::checked};

const STRATEGIES: [&str; 7] =
    ["broadcast", "sequential", "debate", "supervisor", "consensus", "relay", "auto"];

/// A team made up from bytes; nothing if it is none, which must have been told.
pub(super) fn team(choices: &mut Choices<'_>) -> Option<Spec> {
    let names = &NAMES[..=usize::from(choices.below(4))];
    let agents: Vec<Value> = names.iter().map(|name| agent(choices, name)).collect();
    let collaboration =
        if choices.one_in(2) { graph(choices, names) } else { strategy(choices, names) };
    let mut file = json!({
        "agents": agents,
        "collaboration": collaboration,
        "limits": limits(choices, 16),
    });
    if choices.one_in(3) {
        file["prompt"] = choices.text().into();
        file["max_steps"] = (1 + choices.below(6)).into();
    }
    let checked = checked(Source::File(file.to_string().as_bytes()), &[]);
    assert_eq!(checked.is_valid(), checked.spec.is_some(), "{:#?}", checked.diagnostics);
    checked.spec
}

fn agent(choices: &mut Choices<'_>, name: &str) -> Value {
    let mut agent = json!({ "name": name, "limits": limits(choices, 32) });
    match choices.below(5) {
        0 => agent["model"] = "openai/gpt".into(),
        1 => agent["model"] = "other/model".into(),
        2 => agent["model"] = "fast".into(),
        3 => agent["demo"] = true.into(),
        _ => agent["script"] = script(choices),
    }
    if choices.one_in(3) {
        agent["grants"] = json!(["file.read"]);
        agent["max_steps"] = (1 + choices.below(3)).into();
    }
    if choices.one_in(3) {
        agent["capabilities"] = json!(["rust", name]);
    }
    if choices.one_in(4) {
        agent["prompt"] = choices.text().into();
    }
    agent
}

fn script(choices: &mut Choices<'_>) -> Value {
    let replies: Vec<Value> = (0..choices.below(4)).map(|_| reply(choices)).collect();
    let rules: Vec<Value> = (0..choices.below(2))
        .map(|_| json!({ "contains": format!("{} ", choices.text()), "reply": reply(choices) }))
        .collect();
    json!({ "replies": replies, "rules": rules })
}

fn reply(choices: &mut Choices<'_>) -> Value {
    match choices.below(6) {
        0 => json!({ "error": choices.text() }),
        1 => json!({ "json": serde_json::from_str(&choices.text()).unwrap_or(Value::Null) }),
        2 => json!({ "delay_ms": choices.number() % 10_000, "reply": choices.text() }),
        3 => json!({ "tool_calls": [{ "name": "file.read" }], "text": choices.text() }),
        4 => json!({ "reply": choices.text(), "usage": { "input": choices.number() } }),
        _ => choices.text().into(),
    }
}

/// The parameters of a strategy; some that are another's are only warned of.
fn strategy(choices: &mut Choices<'_>, names: &[&str]) -> Value {
    let mut given = Map::new();
    given.insert("strategy".into(), choices.pick(&STRATEGIES).into());
    for parameter in ["judge", "supervisor"] {
        if choices.one_in(4) {
            given.insert(parameter.into(), choices.pick(names).into());
        }
    }
    for parameter in ["replan", "strict", "self_votes"] {
        if choices.one_in(4) {
            given.insert(parameter.into(), choices.one_in(2).into());
        }
    }
    if choices.one_in(2) {
        given.insert("rounds".into(), (1 + choices.below(3)).into());
    }
    if choices.one_in(4) {
        let order: Vec<&str> = (0..=choices.below(4)).map(|_| choices.pick(names)).collect();
        given.insert("order".into(), order.into());
    }
    if choices.one_in(4) {
        given.insert("max_tasks".into(), (1 + choices.below(4)).into());
    }
    if choices.one_in(4) {
        given.insert("convergence".into(), "normalized".into());
    }
    if choices.one_in(3) {
        given.insert("auto".into(), "adaptive".into());
    }
    for clock in ["timeout", "call_timeout"] {
        if choices.one_in(3) {
            given.insert(clock.into(), (f64::from(1 + choices.below(40)) / 10.0).into());
        }
    }
    given.into()
}

/// Each kind of limit once in `rare` cases, zero among them.
fn limits(choices: &mut Choices<'_>, rare: u8) -> Value {
    let mut limits = Map::new();
    if choices.one_in(rare) {
        limits.insert("calls".into(), choices.below(12).into());
    }
    if choices.one_in(rare) {
        limits.insert("tokens".into(), (u32::from(choices.byte()) * 64).into());
    }
    if choices.one_in(rare) {
        limits.insert("cost_usd".into(), (f64::from(choices.byte()) / 1e4).into());
    }
    if choices.one_in(rare) {
        limits.insert("time".into(), (f64::from(choices.byte()) / 10.0).into());
    }
    if choices.one_in(rare) {
        limits.insert("concurrency".into(), choices.below(3).into());
    }
    limits.into()
}
