//! A team that works on a task (collaborate.md §2).

use serde_json::Value;

use super::{
    Judged, Members,
    judging::{Judging, given, shown},
};

/// Judges a request to run a team: a path to its file, or the team itself.
pub(super) fn judge(judging: &mut Judging<'_>) -> Judged {
    let members = members(judging);
    let task = judging.words("prompt");
    let overrides = match judging.fields.get("overrides") {
        None => Vec::new(),
        Some(Value::Object(named)) => {
            named.iter().map(|(name, value)| given(name, value.clone())).collect()
        }
        Some(other) => {
            let message = format!("overrides must be an object, not {}", shown(other));
            judging.wrong("bad_value", message);
            Vec::new()
        }
    };
    Judged { members, task, overrides, wait_s: None, refused: Vec::new() }
}

fn members(judging: &mut Judging<'_>) -> Option<Members> {
    match judging.fields.get("team") {
        Some(Value::String(path)) if !path.trim().is_empty() => Some(Members::File(path.clone())),
        Some(team @ Value::Object(_)) => Some(Members::Inline(team.to_string())),
        None | Some(Value::Null | Value::String(_)) => {
            judging.wrong("no_team", "no team is given");
            None
        }
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_))) => {
            let message = format!("team must be a path or an object, not {}", shown(other));
            judging.wrong("bad_value", message);
            None
        }
    }
}
