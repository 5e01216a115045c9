//! Roles that work by a pattern (collaborate.md §5).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Judged, Members,
    judging::{Judging, given, shown},
};
use crate::{
    check::pattern,
    file::collaboration::SIGNALS,
    programs::pattern::{Form, Role},
};

/// The codes in the order in which they are told; all others come behind.
const ORDER: [&str; 13] = [
    "too_large",
    "unknown_field",
    "unknown_pattern",
    "task_required",
    "invalid_sandbox",
    "invalid_max_rounds",
    "max_rounds_too_small",
    "invalid_timeout",
    "invalid_providers_json",
    "unknown_role",
    "unknown_provider",
    "invalid_judge",
    "invalid_signals",
];

/// The place of a code among those that are told.
pub(super) fn rank(code: &str) -> usize {
    ORDER.iter().position(|it| *it == code).unwrap_or(ORDER.len())
}

/// The patterns there are, for whoever asks.
pub fn patterns() -> Value {
    let pattern = |form: Form| {
        let shape = form.shape();
        let roles: Vec<&str> = form.roles().into_iter().map(Role::as_str).collect();
        json!({ "name": shape.name, "description": shape.description, "roles": roles })
    };
    json!({ "patterns": Form::ALL.map(pattern) })
}

/// Judges a request to collaborate; without a pattern there is no team.
pub(super) fn judge(judging: &mut Judging<'_>) -> Judged {
    let form = form(judging);
    let task = judging.task();
    let sandbox = judging.sandbox();
    let signals = signals(judging);
    let max_rounds = max_rounds(judging, form, signals.is_some());
    let timeout = judging.timeout();
    let providers = providers(judging, form);
    let judge = judging.name("judge", "invalid_judge");
    let workdir = judging.name("workdir", "invalid_workdir");
    let Some(form) = form else {
        return Judged {
            members: None,
            task,
            overrides: Vec::new(),
            wait_s: None,
            refused: Vec::new(),
        };
    };
    let fields = [
        ("pattern", Some(form.shape().name.into())),
        ("providers", providers.map(|it| json!(it))),
        ("max_rounds", max_rounds.map(Value::from)),
        ("timeout", timeout),
        ("judge", judge.map(Value::from)),
        ("signals", signals.map(Value::from)),
    ];
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let overrides = [
        Some(given("collaboration", Value::Object(fields.collect()))),
        sandbox.map(|level| given("sandbox", level.as_str().into())),
        workdir.map(|folder| given("workdir", folder.into())),
    ];
    Judged {
        members: Some(Members::Named(Vec::new())),
        task,
        overrides: overrides.into_iter().flatten().collect(),
        wait_s: None,
        refused: Vec::new(),
    }
}

fn form(judging: &mut Judging<'_>) -> Option<Form> {
    let name = match judging.fields.get("pattern") {
        None => "",
        Some(Value::String(name)) => name,
        Some(other) => &other.to_string(),
    };
    let form = Form::named(name);
    if form.is_none() {
        judging.found([pattern::unknown_pattern(name)]);
    }
    form
}

fn signals(judging: &mut Judging<'_>) -> Option<String> {
    let given = judging.fields.get("signals")?;
    let known = given.as_str().filter(|it| SIGNALS.contains(it)).map(str::to_owned);
    if known.is_none() {
        let message = format!("signals can only be literal, not {}", shown(given));
        judging.wrong("invalid_signals", message);
    }
    known
}

fn max_rounds(judging: &mut Judging<'_>, form: Option<Form>, literal: bool) -> Option<u64> {
    let number = judging.whole("max_rounds", "invalid_max_rounds")?;
    let form = form.filter(|_| number > 0);
    judging.found(form.and_then(|form| pattern::too_few(form, literal, number)));
    Some(number)
}

fn providers(judging: &mut Judging<'_>, form: Option<Form>) -> Option<BTreeMap<String, String>> {
    let targets = pattern::targets(judging.fields.get("providers")?);
    let Some(mut targets) = targets else {
        judging.found([pattern::no_providers()]);
        return None;
    };
    if let Some(form) = form {
        let is_role = |name: &str| form.roles().iter().any(|role| role.as_str() == name);
        let unknown: Vec<_> = targets.keys().filter(|name| !is_role(name)).cloned().collect();
        judging.found(unknown.iter().map(|name| pattern::unknown_role(form, name)));
        targets.retain(|name, _| is_role(name));
    }
    Some(targets)
}
