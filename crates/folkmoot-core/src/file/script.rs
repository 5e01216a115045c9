//! Scripted agents: `script:` in a team file (interface.md).

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    call::{FailureKind, Tokens, ToolCall},
    diagnostic::Diagnostic,
    file::{
        item::{Content, Fields, Item},
        shape::{ENDLESS, Field, List, MANY, Record, SOME, Shape},
    },
    team::{Says, Script, ScriptRule, ScriptedReply},
    time::Duration,
};

/// `script`.
pub static SCRIPT: Record = Record {
    name: "script",
    noun: "key",
    doc: "Replies written beforehand: a rehearsal of the agent without a model.",
    groups: &[&[
        Field::new("replies", REPLIES, "Its replies by number of its call in the run.")
            .default("[]; the last repeats, an empty list echoes the last message"),
        Field::new("rules", RULES, "Replies tried first, against the last message."),
    ]],
};

const REPLIES: Shape = Shape::List(List { of: &Shape::TextOr(&REPLY), what: "replies", ..MANY });
const RULES: Shape = Shape::List(List { of: &Shape::Record(&RULE), what: "rules", ..MANY });
const CALLS: Shape =
    Shape::List(List { of: &Shape::Record(&TOOL_CALL), what: "tool calls", ..SOME });
const MILLISECONDS: Shape = Shape::Whole { min: 0, max: 86_400_000 };
const TOKENS: Shape = Shape::Whole { min: 0, max: ENDLESS };

/// What an `error` may be of.
const KINDS: &[&str] = &[
    "auth",
    "rate_limited",
    "timeout",
    "transport",
    "incomplete",
    "protocol",
    "spawn",
    "harness",
    "config",
    "unsupported",
    "not_found",
    "io",
    "denied",
    "other",
];

static RULE: Record = Record {
    name: "rule",
    noun: "key",
    doc: "A reply given whenever the last message contains a text.",
    groups: &[&[
        Field::new("contains", Shape::Text, "The text looked for, literally.").required(),
        Field::new("reply", Shape::TextOr(&REPLY), "The reply.").required(),
    ]],
};

static REPLY: Record = Record {
    name: "reply",
    noun: "key",
    doc: "One reply: exactly one of reply, error, json and tool_calls.",
    groups: &[&[
        Field::new("reply", Shape::TextOr(&REPLY), "A text, or a further item."),
        Field::new("error", Shape::Text, "A failure in these words."),
        Field::new("json", Shape::Json, "A structured reply."),
        Field::new("tool_calls", CALLS, "Tools to use; the next item answers what came back."),
        Field::new("text", Shape::Text, "The text beside tool_calls."),
        Field::new("kind", Shape::Word(KINDS), "The kind of an error.").default("harness"),
        Field::new("delay_ms", MILLISECONDS, "How long the reply takes, in milliseconds.")
            .default("0"),
        Field::new("usage", Shape::Record(&USAGE), "The tokens it pretends to have used."),
    ]],
};

static TOOL_CALL: Record = Record {
    name: "tool_call",
    noun: "key",
    doc: "The use of a tool.",
    groups: &[&[
        Field::new("name", Shape::Text, "The tool, tool.action.").required(),
        Field::new("arguments", Shape::Json, "Its arguments.").default("{}"),
    ]],
};

static USAGE: Record = Record {
    name: "usage",
    noun: "key",
    doc: "Numbers of tokens.",
    groups: &[&[
        Field::new("input", TOKENS, "Tokens read.").default("0"),
        Field::new("output", TOKENS, "Tokens written.").default("0"),
    ]],
};

/// The script of an agent. What makes no sense is left out and told.
pub fn script(fields: &Fields, label: Option<Arc<str>>, told: &mut Vec<Diagnostic>) -> Script {
    let replies = fields.list("replies").iter().enumerate();
    let replies = replies.filter_map(|(nth, item)| reply(item, &nth.to_string(), told)).collect();
    let rules = fields.list("rules").iter().enumerate();
    let rules = rules.filter_map(|(nth, item)| rule(item.fields()?, nth, told)).collect();
    Script { replies, rules, label }
}

fn rule(fields: &Fields, nth: usize, told: &mut Vec<Diagnostic>) -> Option<ScriptRule> {
    let contains = fields.text("contains")?.clone();
    if contains.is_empty() {
        told.push(
            Diagnostic::error("bad_condition", "contains matches every reply")
                .at(fields.place_of("contains")),
        );
    }
    let reply = reply(fields.get("reply")?, &format!("rule-{nth}"), told)?;
    Some(ScriptRule { contains, reply })
}

/// One reply; `id` tells its tool calls from those of others.
fn reply(item: &Item, id: &str, told: &mut Vec<Diagnostic>) -> Option<ScriptedReply> {
    if let Some(text) = item.text() {
        return Some(saying(Says::Text(text.clone())));
    }
    let fields = item.fields()?;
    check(fields, told);
    let inner = match fields.get("reply") {
        Some(inner) => reply(inner, id, told)?,
        None => saying(says(fields, id)?),
    };
    let delay = Duration::from_millis(fields.whole("delay_ms").unwrap_or_default());
    let usage = fields.fields("usage").map_or(inner.usage, tokens);
    Some(ScriptedReply { delay: inner.delay + delay, usage, says: inner.says })
}

fn saying(says: Says) -> ScriptedReply {
    ScriptedReply { delay: Duration::default(), says, usage: Tokens::default() }
}

/// Tells of keys that exclude each other or stand alone.
fn check(fields: &Fields, told: &mut Vec<Diagnostic>) {
    const SAYS: [&str; 4] = ["reply", "error", "json", "tool_calls"];
    let there = |name: &&str| fields.get(name).is_some() || fields.is_broken(name);
    let found: Vec<_> = SAYS.into_iter().filter(there).collect();
    let mut tell = |place, message: String| {
        told.push(Diagnostic::error("bad_value", message).at(place));
    };
    match &found[..] {
        [_] => {}
        [] if fields.is_faulty() => {}
        [] => tell(&fields.place, format!("a reply needs one of {}", SAYS.join(", "))),
        [first, second, ..] => {
            tell(fields.key(second), format!("a reply is one thing; found {first} and {second}"));
        }
    }
    for (guest, host) in [("kind", "error"), ("text", "tool_calls")] {
        if there(&guest) && !there(&host) {
            tell(fields.key(guest), format!("{guest} stands only beside {host}"));
        }
    }
}

fn says(fields: &Fields, id: &str) -> Option<Says> {
    if let Some(text) = fields.text("error") {
        return Some(Says::Error { text: text.clone(), kind: kind(fields.text("kind")) });
    }
    if let Some(Content::Json(value)) = fields.get("json").map(|item| &item.content) {
        return Some(Says::Json(value.clone()));
    }
    let calls = fields.get("tool_calls").map(|_| fields.list("tool_calls"))?;
    let calls = calls.iter().filter_map(Item::fields).enumerate();
    let calls = calls.filter_map(|(nth, call)| tool_call(call, &format!("script-{id}-{nth}")));
    let text = fields.text("text").cloned().unwrap_or_else(|| "".into());
    Some(Says::Tools { calls: calls.collect(), text })
}

fn kind(word: Option<&Arc<str>>) -> FailureKind {
    let kind = word.and_then(|word| serde_json::from_value(Value::from(&**word)).ok());
    kind.unwrap_or(FailureKind::Harness)
}

fn tool_call(fields: &Fields, id: &str) -> Option<ToolCall> {
    let arguments = match fields.get("arguments").map(|item| &item.content) {
        Some(Content::Json(value)) => value.clone(),
        _ => Map::new().into(),
    };
    Some(ToolCall { id: id.into(), name: fields.text("name")?.clone(), arguments })
}

fn tokens(fields: &Fields) -> Tokens {
    let count = |name| fields.whole(name).unwrap_or_default();
    Tokens { input: count("input"), output: count("output"), ..Tokens::default() }
}
