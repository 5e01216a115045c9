//! What a result may weigh: a large record keeps states and reasons, and its texts are shortened.

use serde_json::{Value, json};

/// The largest result, in bytes of JSON.
pub(super) const LARGEST: usize = 256 * 1024;

/// How long a text may be, in characters, from one attempt to the next.
const TEXTS: [usize; 5] = [16_384, 4_096, 1_024, 256, 64];

/// How many items of a list are kept if shorter texts are not enough.
const ITEMS: usize = 20;

/// The same result within the limit; one that is shortened says so, and where the whole is.
pub(super) fn bounded(value: &Value) -> Value {
    if value.to_string().len() <= LARGEST {
        return value.clone();
    }
    // The mark itself takes some room.
    let room = LARGEST - 256;
    let shorter = TEXTS.iter().map(|&most| cut(value, most, usize::MAX));
    let fewer = TEXTS.iter().rev().take(1).map(|&most| cut(value, most, ITEMS));
    let fitting = shorter.chain(fewer).find(|it| it.to_string().len() <= room);
    let mut told = fitting.unwrap_or_else(|| {
        json!({ "run_id": value["run_id"], "status": value["status"], "state": value["state"], "reason": value["reason"] })
    });
    told["truncated"] = true.into();
    if let Some(run) = value["run_id"].as_str() {
        told["resource"] = super::resource(run).into();
    }
    told
}

fn cut(value: &Value, most: usize, items: usize) -> Value {
    match value {
        Value::String(text) if text.chars().nth(most).is_some() => {
            let kept: String = text.chars().take(most).collect();
            format!("{kept}… ({} bytes in all)", text.len()).into()
        }
        Value::Array(list) => list.iter().take(items).map(|it| cut(it, most, items)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, it)| (key.clone(), cut(it, most, items)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_record_keeps_its_state_and_says_where_the_whole_is() {
        let turns: Vec<Value> =
            (0..200).map(|n| json!({ "turn": n, "output": "x".repeat(5_000) })).collect();
        let record =
            json!({ "run_id": "r1", "status": "done", "reason": "completed", "turns": turns });
        let told = bounded(&record);
        assert!(told.to_string().len() <= LARGEST);
        assert_eq!(told["status"], "done");
        assert_eq!(told["reason"], "completed");
        assert_eq!(told["truncated"], true);
        assert_eq!(told["resource"], "folkmoot://runs/r1");
        assert_eq!(told["turns"].as_array().map(Vec::len), Some(200), "no turn is left out");
    }

    #[test]
    fn what_is_small_enough_stays_as_it_is() {
        let record = json!({ "run_id": "r1", "final": "x".repeat(200_000) });
        assert_eq!(bounded(&record), record);
    }

    #[test]
    fn whatever_cannot_be_shortened_is_told_by_its_state_alone() {
        let many: serde_json::Map<String, Value> =
            (0..40_000).map(|n| (format!("key-{n}"), json!(n))).collect();
        let told = bounded(&json!({ "run_id": "r1", "status": "done", "many": many }));
        assert!(told.to_string().len() <= LARGEST);
        assert_eq!(told["status"], "done");
    }
}
