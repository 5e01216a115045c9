//! The same actions for whoever asks by a protocol: fields come in, and what is told goes out.

use folkmoot_core::{diagnostic::quoted, names::suggestion, refusal::Refusal};
use serde_json::{Map, Value};

use super::Orchestrate;
use crate::{app::App, exit};

/// The fields there are.
const FIELDS: [&str; 20] = [
    "action",
    "task",
    "task_id",
    "branch",
    "issues_json",
    "topology",
    "max_dev_teams",
    "collaboration_template",
    "target",
    "phase_id",
    "digest",
    "role",
    "agent",
    "verdict",
    "commit",
    "findings",
    "mode",
    "sandbox",
    "timeout",
    "wait_s",
];

/// How many cards are told of unless that is said.
const USUAL: usize = 20;

/// Carries out an action for `actor`; gives what is told of it.
pub(crate) async fn asked(
    app: &App,
    actor: &str,
    fields: &Map<String, Value>,
) -> Result<Value, Refusal> {
    let known = FIELDS.into_iter().chain(["limit"]);
    let unknown = fields.keys().filter(|name| !known.clone().any(|it| it == **name)).map(|name| {
        let help = suggestion(name, known.clone());
        let refusal = Refusal::new("unknown_field", format!("unknown field {}", quoted(name)));
        Refusal { help, allowed: known.clone().map(str::to_owned).collect(), ..refusal }
    });
    if let Some(refusal) = Refusal::all(unknown) {
        return Err(refusal);
    }
    let app = app.taking();
    let card = text(fields, "task_id").unwrap_or_default();
    let done = match text(fields, "action").as_deref() {
        Some("cancel") => super::cancel(&app, &card).await,
        Some(_) | None => request(actor, fields).run(&app).await,
    };
    let taken = app.taken();
    match (done, taken.refusal, taken.value) {
        (Err(error), ..) => Err(exit::refusal(&error)),
        (Ok(_), Some(refusal), _) => Err(refusal),
        (Ok(_), None, Some(value)) => Ok(value),
        (Ok(_), None, None) => Err(Refusal::new("failed", "nothing is told of it")),
    }
}

fn request(actor: &str, fields: &Map<String, Value>) -> Orchestrate {
    let text = |name: &str| text(fields, name);
    let findings = fields.get("findings").and_then(Value::as_array).into_iter().flatten();
    let limit = fields.get("limit").and_then(Value::as_u64).map_or(USUAL, |it| it as usize);
    Orchestrate {
        action: text("action").unwrap_or_default(),
        subject: None,
        task: text("task"),
        task_id: text("task_id"),
        branch: text("branch"),
        issues_json: text("issues_json"),
        topology: text("topology"),
        max_dev_teams: text("max_dev_teams"),
        collaboration_template: text("collaboration_template"),
        target: text("target"),
        phase_id: text("phase_id"),
        digest: text("digest"),
        role: text("role"),
        agent: text("agent"),
        verdict: text("verdict"),
        commit: text("commit"),
        findings: findings.filter_map(|it| Some(it.as_str()?.to_owned())).collect(),
        mode: text("mode"),
        sandbox: text("sandbox"),
        timeout: text("timeout"),
        wait_s: text("wait_s"),
        limit,
        me: Some(actor.to_owned()),
    }
}

/// A field as the command line would have it. There is no standard input to read a text from: it
/// belongs to the protocol.
fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::Null => None,
        Value::String(text) if text == "-" => Some("- ".to_owned()),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
