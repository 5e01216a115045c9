//! A graph as somebody might draw it.

use serde_json::{Map, Value, json};

use crate::source::Choices;

const REMEDIES: [&str; 4] = ["lead", "stop", "skip", "ask"];

/// A graph of these agents, of one piece or in stages; what cannot be is refused by the check.
pub(super) fn graph(choices: &mut Choices<'_>, names: &[&str]) -> Value {
    if !choices.one_in(6) {
        return one(choices, names).into();
    }
    let stage = |choices: &mut Choices<'_>, name: &str| {
        let mut stage = one(choices, names);
        stage.insert("name".into(), name.into());
        stage
    };
    json!({ "stages": [stage(choices, "first"), stage(choices, "second")] })
}

fn one(choices: &mut Choices<'_>, names: &[&str]) -> Map<String, Value> {
    let mut graph = Map::new();
    if choices.one_in(2) {
        let topology = choices.pick(&["pipeline", "review-loop", "star"]);
        graph.insert("topology".into(), topology.into());
        graph.insert("agents".into(), names.into());
    }
    if !graph.contains_key("topology") || choices.one_in(3) {
        let edges: Vec<Value> = (0..=choices.below(10)).map(|_| edge(choices, names)).collect();
        graph.insert("flow".into(), edges.into());
    }
    if choices.one_in(2) {
        graph.insert("max_iterations".into(), choices.below(4).into());
    }
    if choices.one_in(2) {
        graph.insert("termination".into(), termination(choices, names));
    }
    if choices.one_in(4) {
        graph.insert("routing".into(), choices.pick(&["engine", "lead"]).into());
    }
    if choices.one_in(4) {
        graph.insert("judge".into(), choices.pick(names).into());
        graph.insert("judge_error".into(), choices.pick(&["stop", "ignore"]).into());
    }
    if choices.one_in(3) {
        graph.insert("on_failure".into(), on_failure(choices));
    }
    if choices.one_in(3) {
        let join = choices.pick(&[json!("all"), json!("any"), json!({ "quorum": 2 })]);
        let node = json!({ "join": join, "on_failure": on_failure(choices) });
        graph.insert("nodes".into(), json!({ choices.pick(names): node }));
    }
    if choices.one_in(4) {
        graph.insert("result".into(), choices.pick(names).into());
    }
    if choices.one_in(3) {
        graph.insert("findings".into(), true.into());
    }
    if choices.one_in(3) {
        graph.insert("timeout".into(), (f64::from(1 + choices.below(40)) / 10.0).into());
    }
    graph
}

/// An edge between any two, the lead among them.
fn edge(choices: &mut Choices<'_>, names: &[&str]) -> Value {
    let ends = [names, &["parent"]].concat();
    let (from, to) = (choices.pick(&ends), choices.pick(&ends));
    if choices.one_in(2) {
        return format!("{from} -> {to}").into();
    }
    let mut edge = json!({ "from": from, "to": to });
    if choices.one_in(3) {
        edge["label"] = choices.text().into();
    }
    if choices.one_in(4) {
        edge["exit"] = true.into();
    }
    if choices.one_in(4) {
        edge["default"] = true.into();
    }
    if choices.one_in(3) {
        edge["when"] = choices.pick(&[
            json!({ "failed": true }),
            json!({ "verdict": "approve" }),
            json!({ "contains": "same" }),
            json!({ "expr": "round > 1 or usage.calls > 3" }),
        ]);
    }
    if choices.one_in(4) {
        edge["requires"] = choices.pick(&[
            json!([{ "command": "make", "script": [false, true] }]),
            json!([{ "file": "notes.md" }, { "command": "true", "timeout": 9 }]),
        ]);
        edge["tries"] = choices.below(3).into();
    }
    edge
}

fn termination(choices: &mut Choices<'_>, names: &[&str]) -> Value {
    let conditions: Vec<Value> = (0..=choices.below(3))
        .map(|_| match choices.below(5) {
            0 => json!({ "max_iterations": 1 + choices.below(3) }),
            1 => json!({ "timeout_ms": 1 + u32::from(choices.byte()) * 40 }),
            2 => json!({ "converged": "all is well" }),
            3 => {
                json!({ "result_matches": { "agent": choices.pick(names), "verdict": "approve" } })
            }
            _ => json!({ "stuck": { "repeats": 2 } }),
        })
        .collect();
    json!({ choices.pick(&["any_of", "all_of"]): conditions })
}

fn on_failure(choices: &mut Choices<'_>) -> Value {
    let then = choices.pick(&REMEDIES);
    if choices.one_in(2) { then.into() } else { json!({ "retry": 1, "then": then }) }
}
