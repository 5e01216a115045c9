//! Fields that only their provider understands (rules.md 10.7).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, map::Entry};

/// What one provider put into its reply beyond the protocol, to be sent back to it alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The provider.
    from: String,
    /// Fields of the message.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub message: Map<String, Value>,
    /// Fields of its tool calls, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Map<String, Value>>,
}

impl Kept {
    /// What is stored with an answer of `provider`; nothing if there is nothing to keep.
    pub(super) fn stored(
        provider: &str,
        message: Map<String, Value>,
        tool_calls: Vec<Map<String, Value>>,
    ) -> Option<Value> {
        if message.is_empty() && tool_calls.iter().all(Map::is_empty) {
            return None;
        }
        let kept = Kept { from: provider.to_owned(), message, tool_calls };
        Some(serde_json::to_value(kept).expect("it is plain data"))
    }

    /// What `provider` gets back of what is `stored` with a message; nothing if it came from another.
    pub(super) fn of(stored: Option<&Value>, provider: &str) -> Kept {
        let kept = stored.and_then(|stored| Kept::deserialize(stored).ok());
        kept.filter(|kept| kept.from == provider).unwrap_or_default()
    }
}

/// Adds the fields that a delta brings: texts and lists grow, objects are merged, the rest is
/// replaced.
pub(super) fn extend(kept: &mut Map<String, Value>, delta: Map<String, Value>) {
    for (name, more) in delta {
        match kept.entry(name) {
            _ if is_nothing(&more) => {}
            Entry::Vacant(vacant) => {
                vacant.insert(more);
            }
            Entry::Occupied(mut occupied) => match (occupied.get_mut(), more) {
                (Value::String(text), Value::String(more)) => text.push_str(&more),
                (Value::Array(list), Value::Array(more)) => list.extend(more),
                (Value::Object(fields), Value::Object(more)) => extend(fields, more),
                (value, more) => *value = more,
            },
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn what_deltas_bring_adds_up() {
        let mut kept = Map::new();
        extend(&mut kept, object(json!({"a": "x", "b": [1], "c": {"d": "u"}, "e": 1, "f": null})));
        extend(
            &mut kept,
            object(json!({"a": "y", "b": [2], "c": {"d": "v"}, "e": 2, "g": [], "h": ""})),
        );
        assert_eq!(Value::Object(kept), json!({"a": "xy", "b": [1, 2], "c": {"d": "uv"}, "e": 2}));
    }

    #[test]
    fn fields_return_to_their_provider_and_to_no_other() {
        let fields = object(json!({"reasoning_content": "so"}));
        let stored = Kept::stored("deepseek", fields.clone(), vec![Map::new()]);
        assert_eq!(Kept::of(stored.as_ref(), "deepseek").message, fields);
        assert_eq!(Kept::of(stored.as_ref(), "moonshot"), Kept::default());
        assert_eq!(Kept::of(Some(&json!("odd")), "deepseek"), Kept::default());
        assert_eq!(Kept::stored("deepseek", Map::new(), vec![Map::new()]), None);
    }
}
