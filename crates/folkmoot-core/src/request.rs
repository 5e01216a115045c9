//! What a caller asks for without a team file: judged here, whoever reads the arguments, so that the
//! command line and other entries refuse alike (collaborate.md §§1, 5).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    check::pattern,
    diagnostic::{Diagnostic, quoted},
    file::{
        collaboration::{PATTERNS, SIGNALS},
        models::Catalog,
        overrides::{Given, Override},
        shape::{ENDLESS, LONGEST},
    },
    programs::pattern::{Form, Role},
    team::Sandbox,
    time::Duration,
};

/// The largest request, in bytes.
pub const LARGEST: usize = 1 << 20;

/// The fields of a request to collaborate, each as it was given: a text of a command line, or JSON.
const FIELDS: [&str; 11] = [
    "pattern",
    "task",
    "providers",
    "max_rounds",
    "timeout",
    "sandbox",
    "list_patterns",
    "judge",
    "signals",
    "workdir",
    "wait_s",
];

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

/// A request to let roles work by a pattern, not judged yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collaborate {
    fields: Map<String, Value>,
}

/// A request that was judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// The task.
    pub task: String,
    /// What wins over the team file, or makes a team without one; nothing without a pattern.
    pub overrides: Vec<Override>,
    /// What is wrong with it.
    pub refused: Vec<Refused>,
}

/// Something wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What kind of mistake it is, for programs.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// What would be allowed there, where that can be listed.
    pub allowed: Vec<String>,
}

impl Collaborate {
    /// A request of these fields; null is nothing given.
    pub fn new(fields: Map<String, Value>) -> Collaborate {
        let given = fields.into_iter().filter(|(_, value)| !value.is_null());
        Collaborate { fields: given.collect() }
    }

    /// The same with the text of a flag, if that is given.
    #[must_use]
    pub fn with(mut self, field: &str, text: Option<String>) -> Collaborate {
        self.fields.extend(text.map(|text| (field.to_owned(), text.into())));
        self
    }

    /// Whether only the patterns are to be listed, whatever else is given.
    pub fn lists(&self) -> bool {
        self.fields.get("list_patterns").is_some_and(|it| *it == Value::Bool(true))
    }

    /// Judges everything that can be judged without the team: nothing is started by it.
    pub fn judge(&self) -> Judged {
        let mut judging = Judging { fields: &self.fields, told: Vec::new() };
        judging.size_and_fields();
        let form = judging.form();
        let task = judging.task();
        let sandbox = judging.sandbox();
        let signals = judging.signals();
        let max_rounds = judging.max_rounds(form, signals.is_some());
        let timeout = judging.timeout();
        let providers = judging.providers(form);
        let judge = judging.name("judge", "invalid_judge");
        let workdir = judging.name("workdir", "invalid_workdir");
        let refused = refused(judging.told, form, None);
        let Some(form) = form else { return Judged { task, overrides: Vec::new(), refused } };
        let fields = [
            ("pattern", Some(form.shape().name.into())),
            ("providers", providers.map(|it| json!(it))),
            ("max_rounds", max_rounds.map(Value::from)),
            ("timeout", timeout),
            ("judge", judge.map(Value::from)),
            ("signals", signals.map(Value::from)),
        ];
        let given = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let collaboration = Value::Object(given.collect());
        let named = |name: &str, value: Value| Override {
            name: name.to_owned(),
            value: Given::Json(value),
        };
        let overrides = [
            Some(named("collaboration", collaboration)),
            sandbox.map(|level| named("sandbox", level.as_str().into())),
            workdir.map(|folder| named("workdir", folder.into())),
        ];
        Judged { task, overrides: overrides.into_iter().flatten().collect(), refused }
    }

    /// All that is wrong with the request and with the team that was made of it, in the order of its
    /// checks, each once.
    pub fn refusals(
        &self,
        judged: Judged,
        found: Vec<Diagnostic>,
        catalog: &Catalog,
    ) -> Vec<Refused> {
        let form = self.fields.get("pattern").and_then(Value::as_str).and_then(Form::named);
        let errors = found.into_iter().filter(Diagnostic::is_error);
        let mut all = judged.refused;
        for refused in refused(errors.collect(), form, Some(catalog)) {
            if !all.iter().any(|it| it.code == refused.code && it.message == refused.message) {
                all.push(refused);
            }
        }
        all.sort_by_key(|it| ORDER.iter().position(|code| *code == it.code).unwrap_or(ORDER.len()));
        all
    }
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

/// Mistakes as they are told, with what would be allowed.
fn refused(told: Vec<Diagnostic>, form: Option<Form>, catalog: Option<&Catalog>) -> Vec<Refused> {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let allowed = |code: &str| -> Vec<String> {
        match code {
            "unknown_field" => texts(&FIELDS),
            "unknown_pattern" => texts(PATTERNS),
            "invalid_sandbox" => texts(&LEVELS),
            "invalid_signals" => texts(SIGNALS),
            "unknown_role" => {
                form.into_iter().flat_map(Form::roles).map(|it| it.as_str().to_owned()).collect()
            }
            "unknown_provider" => catalog.into_iter().flat_map(names).collect(),
            _ => Vec::new(),
        }
    };
    let told = told.into_iter().map(|it| Refused {
        code: it.code,
        allowed: allowed(it.code),
        message: it.message,
        help: it.help,
    });
    told.collect()
}

/// The names that can stand for a target.
fn names(catalog: &Catalog) -> impl Iterator<Item = String> {
    catalog.aliases.keys().chain(catalog.built_in.keys()).cloned()
}

const LEVELS: [&str; 3] = ["read-only", "write", "full"];

/// Judges the fields one by one.
struct Judging<'a> {
    fields: &'a Map<String, Value>,
    told: Vec<Diagnostic>,
}

impl Judging<'_> {
    fn wrong(&mut self, code: &'static str, message: impl Into<String>) {
        self.told.push(Diagnostic::error(code, message));
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    fn size_and_fields(&mut self) {
        let size: usize = self.fields.iter().map(|(key, value)| key.len() + size_of(value)).sum();
        if size > LARGEST {
            self.wrong("too_large", "the request is over 1 MiB");
        }
        for name in self.fields.keys().filter(|name| !FIELDS.contains(&&***name)) {
            let help = crate::names::suggestion(name, FIELDS);
            let message = format!("unknown field {}", quoted(name));
            self.told.push(Diagnostic::error("unknown_field", message).help(help));
        }
    }

    fn form(&mut self) -> Option<Form> {
        let name = match self.fields.get("pattern") {
            None => "",
            Some(Value::String(name)) => name,
            Some(other) => &other.to_string(),
        };
        let form = Form::named(name);
        if form.is_none() {
            self.told.push(pattern::unknown_pattern(name));
        }
        form
    }

    fn task(&mut self) -> String {
        let task = self.text("task").unwrap_or_default().to_owned();
        if task.trim().is_empty() {
            self.wrong("task_required", "the task is missing");
        }
        task
    }

    fn sandbox(&mut self) -> Option<Sandbox> {
        let given = self.fields.get("sandbox")?;
        let level = given.as_str().and_then(Sandbox::named);
        if level.is_none() {
            let message = format!("sandbox is {}, not {}", shown(given), LEVELS.join(", "));
            self.wrong("invalid_sandbox", message);
        }
        level
    }

    fn signals(&mut self) -> Option<String> {
        let given = self.fields.get("signals")?;
        let known = given.as_str().filter(|it| SIGNALS.contains(it)).map(str::to_owned);
        if known.is_none() {
            self.wrong(
                "invalid_signals",
                format!("signals can only be literal, not {}", shown(given)),
            );
        }
        known
    }

    fn max_rounds(&mut self, form: Option<Form>, literal: bool) -> Option<u64> {
        let given = self.fields.get("max_rounds")?;
        let is_digits =
            |text: &&str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let number = match given {
            Value::String(text) => {
                Some(text.trim()).filter(is_digits).and_then(|it| it.parse().ok())
            }
            Value::Number(number) => whole(number),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let Some(number) = number.filter(|number| *number <= ENDLESS) else {
            let message =
                format!("max_rounds must be a whole number of at least 0, not {}", shown(given));
            self.wrong("invalid_max_rounds", message);
            return None;
        };
        let form = form.filter(|_| number > 0);
        self.told.extend(form.and_then(|form| pattern::too_few(form, literal, number)));
        Some(number)
    }

    /// Seconds, or `none`.
    fn timeout(&mut self) -> Option<Value> {
        let given = self.fields.get("timeout")?;
        if given.as_str().is_some_and(|text| text.trim() == "none") {
            return Some("none".into());
        }
        let seconds = match given {
            Value::String(text) => Duration::parse(text).map(Duration::as_secs_f64),
            Value::Number(number) => number.as_f64(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let seconds = seconds.filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST);
        if seconds.is_none() {
            let message = format!("timeout must be a time above 0, not {}", shown(given));
            let help = "seconds, or 30m, or none".to_owned();
            self.told.push(Diagnostic::error("invalid_timeout", message).help(help));
        }
        seconds.map(Value::from)
    }

    fn providers(&mut self, form: Option<Form>) -> Option<BTreeMap<String, String>> {
        let targets = pattern::targets(self.fields.get("providers")?);
        let Some(mut targets) = targets else {
            self.told.push(pattern::no_providers());
            return None;
        };
        if let Some(form) = form {
            let is_role = |name: &str| form.roles().iter().any(|role| role.as_str() == name);
            let unknown = targets.keys().filter(|name| !is_role(name));
            self.told.extend(unknown.map(|name| pattern::unknown_role(form, name)));
            targets.retain(|name, _| is_role(name));
        }
        Some(targets)
    }

    /// A text that is not blank.
    fn name(&mut self, field: &str, code: &'static str) -> Option<String> {
        let given = self.fields.get(field)?;
        let name = given.as_str().map(str::trim).filter(|name| !name.is_empty());
        if name.is_none() {
            let message = format!("{field} must be a text, not {}", shown(given));
            self.wrong(code, message);
        }
        name.map(str::to_owned)
    }
}

fn whole(number: &serde_json::Number) -> Option<u64> {
    let is_whole = |it: &f64| it.fract() == 0.0 && (0.0..=ENDLESS as f64).contains(it);
    number.as_u64().or_else(|| number.as_f64().filter(is_whole).map(|it| it as u64))
}

fn size_of(value: &Value) -> usize {
    value.as_str().map_or_else(|| value.to_string().len(), str::len)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(request: Value) -> Vec<&'static str> {
        let Value::Object(fields) = request else { panic!("it is an object") };
        Collaborate::new(fields).judge().refused.into_iter().map(|it| it.code).collect()
    }

    #[test]
    fn each_mistake_has_its_code_whether_it_comes_as_text_or_as_json() {
        for (fields, code) in [
            (json!({ "pattern": "Review" }), "unknown_pattern"),
            (json!({ "pattern": 5 }), "unknown_pattern"),
            (json!({ "task": " \n" }), "task_required"),
            (json!({ "sandbox": "root" }), "invalid_sandbox"),
            (json!({ "sandbox": "Write" }), "invalid_sandbox"),
            (json!({ "max_rounds": "-1" }), "invalid_max_rounds"),
            (json!({ "max_rounds": -1 }), "invalid_max_rounds"),
            (json!({ "max_rounds": 1.5 }), "invalid_max_rounds"),
            (json!({ "max_rounds": "many" }), "invalid_max_rounds"),
            (json!({ "max_rounds": "" }), "invalid_max_rounds"),
            (json!({ "max_rounds": true }), "invalid_max_rounds"),
            (json!({ "max_rounds": "99999999999999999999" }), "invalid_max_rounds"),
            (json!({ "pattern": "debate", "max_rounds": 2 }), "max_rounds_too_small"),
            (json!({ "timeout": "0" }), "invalid_timeout"),
            (json!({ "timeout": 0 }), "invalid_timeout"),
            (json!({ "timeout": "-5" }), "invalid_timeout"),
            (json!({ "timeout": "soon" }), "invalid_timeout"),
            (json!({ "providers": "{implementer: codex" }), "invalid_providers_json"),
            (json!({ "providers": "[\"codex\"]" }), "invalid_providers_json"),
            (json!({ "providers": { "reviewer": 5 } }), "invalid_providers_json"),
            (json!({ "providers": { "reviewer": " " } }), "invalid_providers_json"),
            (json!({ "providers": { "tester": "codex" } }), "unknown_role"),
            (json!({ "providers": "{\"tester\": \"codex\"}" }), "unknown_role"),
            (json!({ "judge": "" }), "invalid_judge"),
            (json!({ "signals": "loose" }), "invalid_signals"),
            (json!({ "rounds": 3 }), "unknown_field"),
            (json!({ "task": "x".repeat(LARGEST) }), "too_large"),
        ] {
            let mut request = json!({ "pattern": "review", "task": "T" });
            for (key, value) in fields.as_object().expect("it is one") {
                request[key] = value.clone();
            }
            assert_eq!(
                codes(request),
                [code],
                "{}",
                fields.to_string().chars().take(80).collect::<String>()
            );
        }
    }

    #[test]
    fn what_is_right_as_text_is_right_as_json() {
        for fields in [
            json!({ "max_rounds": "0", "timeout": "30m", "providers": "{\"reviewer\": \"x\"}" }),
            json!({ "max_rounds": 7, "timeout": 0.05, "providers": { "reviewer": "x" } }),
            json!({ "timeout": "none", "sandbox": "read-only", "judge": "x", "signals": "literal" }),
            json!({ "max_rounds": 3.0, "workdir": "here", "wait_s": 0, "list_patterns": false }),
        ] {
            let mut request = json!({ "pattern": "review", "task": "T" });
            for (key, value) in fields.as_object().expect("it is one") {
                request[key] = value.clone();
            }
            assert_eq!(codes(request), [""; 0], "{fields}");
        }
        let literally =
            json!({ "pattern": "consensus", "task": "T", "max_rounds": 2, "signals": "literal" });
        assert_eq!(codes(literally), [""; 0], "by plain keywords there is no least number");
    }

    #[test]
    fn all_mistakes_are_told_in_the_order_of_the_checks() {
        let request = json!({
            "timeout": 0, "max_rounds": -1, "providers": 5, "sandbox": "x", "task": "", "pattern": "x",
        });
        let order = [
            "unknown_pattern",
            "task_required",
            "invalid_sandbox",
            "invalid_max_rounds",
            "invalid_timeout",
            "invalid_providers_json",
        ];
        assert_eq!(codes(request), order);
    }

    #[test]
    fn what_is_allowed_is_listed() {
        let Value::Object(fields) = json!({ "pattern": "x", "task": "T" }) else {
            panic!("it is one")
        };
        let refused = Collaborate::new(fields).judge().refused;
        assert_eq!(refused[0].allowed, ["review", "consensus", "debate"]);
        assert!(refused[0].message.starts_with("Unknown pattern \"x\""), "{}", refused[0].message);
    }
}
