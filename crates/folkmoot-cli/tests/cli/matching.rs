//! Deep comparison: maps may have more keys than wanted, lists may not have more items.

use serde_json::Value;

/// What was found differs from what the case expects.
#[derive(Debug)]
pub(crate) struct Mismatch(pub(crate) String);

pub(crate) fn need(holds: bool, why: impl FnOnce() -> String) -> Result<(), Mismatch> {
    if holds { Ok(()) } else { Err(Mismatch(why())) }
}

/// Compares what was `got` at `path` (nothing, if it is missing) with what is wanted.
pub(crate) fn matches(wanted: &Value, got: Option<&Value>, path: &str) -> Result<(), Mismatch> {
    match wanted {
        Value::Object(fields) if fields.contains_key("$absent") => {
            need(got.is_none(), || format!("{path} should be absent"))
        }
        Value::Object(fields) => {
            let got = got.ok_or_else(|| Mismatch(format!("{path} is missing")))?;
            let (matchers, plain): (Vec<_>, Vec<_>) =
                fields.iter().partition(|(key, _)| key.starts_with('$'));
            for (name, arg) in matchers {
                apply(name, arg, got, path)?;
            }
            need(
                !fields.is_empty() || got.as_object().is_some_and(serde_json::Map::is_empty),
                || format!("{path} should be an empty map: {got}"),
            )?;
            for (key, value) in plain {
                need(got.is_object(), || format!("{path} should be a map: {got}"))?;
                matches(value, got.get(key), &format!("{path}.{key}"))?;
            }
            Ok(())
        }
        Value::Array(items) => {
            let found = got.and_then(Value::as_array);
            let found = found.filter(|found| found.len() == items.len());
            let found = found.ok_or_else(|| {
                Mismatch(format!("{path} should be a list of {}: {got:?}", items.len()))
            })?;
            for (at, (wanted, got)) in items.iter().zip(found).enumerate() {
                matches(wanted, Some(got), &format!("{path}[{at}]"))?;
            }
            Ok(())
        }
        plain => need(got.is_some_and(|got| is_same(plain, got)), || {
            format!("{path} should be {plain}: {got:?}")
        }),
    }
}

/// Equal, with 1 and 1.0 the same number.
fn is_same(wanted: &Value, got: &Value) -> bool {
    match (wanted.as_f64(), got.as_f64()) {
        (Some(wanted), Some(got)) => wanted.to_bits() == got.to_bits(),
        _ => wanted == got,
    }
}

fn apply(name: &str, arg: &Value, got: &Value, path: &str) -> Result<(), Mismatch> {
    let complain = |wish: &str| format!("{path} should {wish} {arg}: {got}");
    let keys = || -> Vec<&str> {
        got.as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
    };
    let texts = || -> Vec<&str> {
        arg.as_array().map(|it| it.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    };
    match name {
        "$any" => Ok(()),
        "$num" => need(got.is_number(), || complain("be a number")),
        "$nonempty" => {
            let is_empty = size(got) == Some(0) || got.is_null();
            need(!is_empty, || complain("not be empty"))
        }
        "$keys" => {
            let (mut wanted, mut found) = (texts(), keys());
            wanted.sort_unstable();
            found.sort_unstable();
            need(got.is_object() && wanted == found, || complain("have exactly the keys"))
        }
        "$ordered_keys" => need(keys() == texts(), || complain("have in this order the keys")),
        "$len" => need(size(got) == arg.as_u64(), || complain("have length")),
        "$one_of" => {
            need(arg.as_array().is_some_and(|it| it.contains(got)), || complain("be one of"))
        }
        "$contains" => contains(arg, got, path),
        "$not_contains" => contains_not(arg, got, path),
        "$contains_record" => {
            let records = got.as_array().into_iter().flatten();
            let fits = records.into_iter().any(|record| matches(arg, Some(record), path).is_ok());
            need(fits, || complain("hold a record like"))
        }
        "$each" => {
            need(size(got).is_some_and(|size| size > 0), || complain("have items like"))?;
            let items = got.as_array().into_iter().flatten();
            let values = got.as_object().into_iter().flatten().map(|(_, value)| value);
            items.chain(values).try_for_each(|item| matches(arg, Some(item), path))
        }
        "$equals" => matches(arg, Some(got), path),
        name => panic!("unknown matcher {name}"),
    }
}

fn size(value: &Value) -> Option<u64> {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    u64::try_from(size).ok()
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parts(arg: &Value) -> impl Iterator<Item = String> {
    let list = arg.as_array().cloned().unwrap_or_else(|| vec![arg.clone()]);
    list.into_iter().map(|part| as_text(&part))
}

pub(crate) fn contains(arg: &Value, got: &Value, path: &str) -> Result<(), Mismatch> {
    let text = as_text(got);
    parts(arg).try_for_each(|part| {
        need(text.contains(&part), || format!("{path} lacks {part:?}: {text}"))
    })
}

pub(crate) fn contains_not(arg: &Value, got: &Value, path: &str) -> Result<(), Mismatch> {
    let text = as_text(got);
    parts(arg).try_for_each(|part| {
        need(!text.contains(&part), || format!("{path} should not contain {part:?}: {text}"))
    })
}

pub(crate) fn equals(arg: &Value, got: &Value, path: &str) -> Result<(), Mismatch> {
    matches(arg, Some(got), path)
}
