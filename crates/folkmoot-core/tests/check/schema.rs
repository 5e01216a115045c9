//! The JSON Schema that editors use is the table that files are checked by.

use folkmoot_core::file::{
    schema,
    shape::{Field, Record},
    team::TEAM,
};
use serde_json::{Value, json};

use crate::Case;

/// Every record of the table, by name.
fn records(record: &'static Record, found: &mut Vec<&'static Record>) {
    if found.iter().any(|known| known.name == record.name) {
        return;
    }
    found.push(record);
    for inner in record.fields().filter_map(|field| field.shape.record()) {
        records(inner, found);
    }
}

#[test]
fn every_key_of_the_table_stands_in_the_schema_with_its_documentation() {
    let schema = schema(&TEAM);
    let mut all = Vec::new();
    records(&TEAM, &mut all);
    assert_eq!(schema["$defs"].as_object().map(serde_json::Map::len), Some(all.len()));
    let mut keys = 0;
    for record in all {
        let definition = &schema["$defs"][record.name];
        assert_eq!(definition["description"], record.doc);
        for field in record.fields() {
            for key in field.spellings() {
                let doc = definition["properties"][key]["description"].as_str().unwrap_or_default();
                assert!(
                    doc.starts_with(field.doc) && !field.doc.is_empty(),
                    "{}.{key}",
                    record.name
                );
                keys += 1;
            }
        }
    }
    assert!(keys > 80, "only {keys} keys");
}

#[test]
fn the_keys_of_a_record_are_different_and_its_flags_too() {
    let mut all = Vec::new();
    records(&TEAM, &mut all);
    let mut flags: Vec<_> = Vec::new();
    for record in all {
        let mut keys: Vec<_> = record.fields().flat_map(Field::spellings).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "{}", record.name);
        flags.extend(record.fields().filter_map(|field| field.flag));
    }
    let count = flags.len();
    flags.sort_unstable();
    flags.dedup();
    assert_eq!(flags.len(), count);
}

/// Values that some key takes and others do not.
fn values() -> Vec<Value> {
    vec![
        json!("word"),
        json!("30m"),
        json!("none"),
        json!("debate"),
        json!("read-only"),
        json!("exact"),
        json!("auth"),
        json!("12"),
        json!(""),
        json!(true),
        json!(0),
        json!(1),
        json!(2.0),
        json!(1.5),
        json!(-1),
        json!(64),
        json!(5000),
        json!(1e15),
        json!([]),
        json!(["a"]),
        json!(["a", 7, true]),
        json!([{ "name": "a" }]),
        json!([{ "contains": "x", "reply": "y" }]),
        json!([["a"]]),
        json!({}),
        json!({ "A_1": "x" }),
        json!({ "1A": "x" }),
        json!({ "input": 3 }),
        json!({ "replies": ["x", { "error": "y" }] }),
        json!({ "strategy": "relay", "rounds": 2 }),
        json!({ "tokens": 5, "time": 0 }),
        json!({ "unheard_of": 1 }),
        json!(null),
    ]
}

/// What a table alone can find; the rest is found in code.
const OF_THE_TABLE: [&str; 4] = ["bad_value", "unknown_key", "missing_key", "not_supported_yet"];

#[test]
fn the_schema_accepts_what_the_check_accepts() {
    let validator = jsonschema::draft202012::new(&schema(&TEAM)).expect("a schema");
    let files = |key: &str, value: Value| {
        [
            json!({ "agents": [{ "name": "a", "demo": true }], key: value }),
            json!({ "agents": [{ "name": "a", "demo": true, key: value }] }),
            json!({ "agents": [{ "name": "a", "demo": true }], "collaboration": { key: value } }),
            json!({ "agents": [{ "name": "a", "demo": true }], "limits": { key: value } }),
        ]
    };
    let mut all = Vec::new();
    records(&TEAM, &mut all);
    let keys: Vec<_> =
        all.iter().take(4).flat_map(|record| record.fields()).map(|it| it.name).collect();
    let (mut accepted, mut refused) = (0, 0);
    for file in keys.iter().flat_map(|key| values().into_iter().flat_map(|value| files(key, value)))
    {
        let told = Case::new(&file.to_string()).check().diagnostics;
        let complaint =
            told.iter().find(|told| OF_THE_TABLE.contains(&told.code) && !in_code(&told.message));
        assert_eq!(validator.is_valid(&file), complaint.is_none(), "{file}\n{complaint:#?}");
        if complaint.is_none() { accepted += 1 } else { refused += 1 }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Complaints with a code of the table's that no table can say.
fn in_code(message: &str) -> bool {
    const KNOWN: [&str; 8] = [
        "a reply needs",
        "a reply is",
        "stands only beside",
        "give prompt or",
        "the lead's tools",
        "must not be empty",
        "must be a criterion",
        "needs a lead",
    ];
    KNOWN.iter().any(|known| message.contains(known))
}

#[test]
fn the_schema_knows_where_names_of_ones_own_may_stand() {
    let validator = jsonschema::draft202012::new(&schema(&TEAM)).expect("a schema");
    let file = |collaboration: Value| {
        let topologies = json!({ "ring": { "edges": "parent -> a", "params": { "label": "x" } } });
        let conditions = json!({ "content": { "expr": "round > 1", "describe": "it is good" } });
        json!({
            "agents": [{ "name": "a", "demo": true }],
            "extensions": { "topologies": topologies, "conditions": conditions },
            "collaboration": collaboration,
        })
    };
    for good in [
        json!({ "topology": "ring", "agents": ["a"], "label": "y" }),
        json!({ "stages": [{ "name": "s", "topology": "ring", "agents": ["a"], "label": "y" }] }),
        json!({ "topology": "star", "termination": { "any_of": [{ "content": { "most": 1 } }] } }),
        json!({ "flow": [{ "from": "a", "to": "parent", "when": { "expr": "round > 1" } }] }),
    ] {
        assert!(validator.is_valid(&file(good.clone())), "{good}");
    }
    for bad in [
        json!({ "topology": "star", "agents": ["a"], "label": "y" }),
        json!({ "strategy": "relay", "label": "y" }),
        json!({ "topology": "star", "termination": { "any_of": [{ "content": 3 }] } }),
        json!({ "topology": "star", "termination": { "some_of": [] } }),
    ] {
        assert!(!validator.is_valid(&file(bad.clone())), "{bad}");
    }
}

#[test]
fn replies_of_scripts_nest_in_the_schema() {
    let validator = jsonschema::draft202012::new(&schema(&TEAM)).expect("a schema");
    let script =
        |reply: Value| json!({ "agents": [{ "name": "a", "script": { "replies": [reply] } }] });
    for good in [
        json!("x"),
        json!({ "delay_ms": 3, "reply": { "reply": { "error": "boom", "kind": "auth" } } }),
        json!({ "json": { "any": [1, null] } }),
        json!({ "tool_calls": [{ "name": "search", "arguments": { "q": 1 } }] }),
    ] {
        assert!(validator.is_valid(&script(good.clone())), "{good}");
    }
    for bad in [
        json!(null),
        json!({ "reply": { "rely": "x" } }),
        json!({ "error": "x", "kind": "bad" }),
        json!({ "tool_calls": [{}] }),
    ] {
        assert!(!validator.is_valid(&script(bad.clone())), "{bad}");
    }
}
