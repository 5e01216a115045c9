//! The ten tools as clients see them (collaborate.md §2).

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// What a tool does to the world.
#[derive(Clone, Copy)]
enum Effect {
    /// Nothing.
    Reads,
    /// Something is added.
    Adds,
    /// Something may be lost.
    Destroys,
}

/// All tools.
pub(super) fn tools() -> Vec<Tool> {
    let wait = json!({
        "type": ["number", "string"],
        "description": "How many seconds to wait for the end, 0 to 3600 (20 unless given); then a run_id comes back, and `status` gives the rest",
    });
    let text = |about: &str| json!({ "type": "string", "description": about });
    let number = |about: &str| json!({ "type": ["number", "string"], "description": about });
    let flag = |about: &str| json!({ "type": "boolean", "description": about });
    let names = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let one_of =
        |all: &[&str], about: &str| json!({ "type": "string", "enum": all, "description": about });
    let sandbox = one_of(&["read-only", "write", "full"], "What agents may do to files at most");
    let timeout = number("The most time: seconds, or as in 30m");
    let workdir = text("The folder to work in, below the server's own");
    vec![
        tool(
            "dispatch",
            "Give one task to one agent or model, and get its answer. For a second opinion or a task that needs no team.",
            &["task"],
            &json!({
                "task": text("The task"),
                "target": text("provider/model, or an alias of the config; the default model unless given"),
                "sandbox": sandbox, "max_retries": number("Attempts, 1 to 5"),
                "timeout": timeout, "provider_session": text("Not supported"),
                "workdir": workdir, "wait_s": wait,
            }),
            Effect::Adds,
        ),
        tool(
            "broadcast",
            "Give the same task to several agents or models at once, none of which sees the others. For comparing independent answers.",
            &["task", "targets"],
            &json!({
                "task": text("The task"), "targets": names("provider/model, or aliases of the config"),
                "compare": flag("Not supported"), "sandbox": sandbox, "timeout": timeout,
                "workdir": workdir, "wait_s": wait,
            }),
            Effect::Adds,
        ),
        tool(
            "collaborate",
            "Let roles work on one task by a pattern: review (implement, review, revise), consensus (three analysts and a synthesizer) or debate (advocate, critic, arbiter).",
            &[],
            &json!({
                "task": text("The task"), "pattern": text("review, consensus or debate"),
                "providers": { "type": ["object", "string"], "description": "Which target takes which role" },
                "max_rounds": number("The most turns; 0 is as many as the pattern usually has"),
                "timeout": timeout, "sandbox": sandbox,
                "list_patterns": flag("Lists the patterns and runs nothing"),
                "judge": text("Who is asked if a review gives no signal"),
                "signals": text("literal reads replies by plain keywords"),
                "workdir": workdir, "wait_s": wait,
            }),
            Effect::Adds,
        ),
        tool(
            "orchestrate",
            "Take a large goal from issues to merged cards, a request for each step: plan, phase-plan, phase-materialize, assign, execute, status, review, merge. Only execute calls agents.",
            &["action"],
            &json!({
                "action": text("plan, phase-plan, phase-materialize, assign, execute, status, review or merge"),
                "task": text("plan: the task"), "task_id": text("The card"), "branch": text("The branch of the card"),
                "issues_json": { "type": ["array", "string"], "description": "phase-plan: the issues" },
                "topology": text("parallel-team, star or pipeline"), "max_dev_teams": number("The most cards that write"),
                "collaboration_template": text("What the phase is delivered with"), "target": text("The branch the work goes into"),
                "phase_id": text("The phase"), "digest": text("The digest the plan must have"),
                "role": text("assign: what the agent is to be"), "agent": text("assign: who"),
                "verdict": text("review: approved or changes_requested"), "commit": text("review: what was looked at"),
                "findings": names("review: what is wrong"), "mode": text("merge: merge or record"),
                "sandbox": sandbox, "timeout": timeout, "limit": number("status: the most cards"), "wait_s": wait,
            }),
            Effect::Destroys,
        ),
        tool(
            "run_team",
            "Run a team of agents on a task: a team file of the workspace, or the team itself as an object of models or scripts.",
            &["team", "prompt"],
            &json!({
                "team": { "type": ["string", "object"], "description": "A path in the workspace, or the team" },
                "prompt": text("The task"),
                "overrides": { "type": "object", "description": "What wins over the team file, as strategy, rounds, limits.tokens, agents.coder.model" },
                "wait_s": wait,
            }),
            Effect::Adds,
        ),
        tool(
            "status",
            "How a run stands, with its result so far; or a card by task_id; or the latest runs.",
            &[],
            &json!({
                "run_id": text("The run, the beginning of its id, or last"), "task_id": text("The card"),
                "include": { "type": "array", "items": { "type": "string", "enum": ["record", "calls", "events"] }, "description": "What else to tell of a run" },
                "after": { "type": "integer", "minimum": 0, "description": "Events behind this one" },
                "limit": { "type": "integer", "minimum": 0, "description": "The most runs, calls or events (20)" },
            }),
            Effect::Reads,
        ),
        tool(
            "answer",
            "Answer what a run asks a person, and go on with it.",
            &["run_id"],
            &json!({
                "run_id": text("The run"), "key": text("The question, if there are several"),
                "text": text("The answer"), "decision": one_of(&["approve", "deny"], "Instead of a text"),
                "wait_s": wait,
            }),
            Effect::Adds,
        ),
        tool(
            "cancel",
            "Cancel a run, or give a card up.",
            &[],
            &json!({ "run_id": text("The run"), "task_id": text("The card"), "reason": text("Why") }),
            Effect::Destroys,
        ),
        tool(
            "mail",
            "Send and read mail between agents and people; mailboxes outlive every run. What is read is lent: ack it when it is done with.",
            &["action"],
            &json!({
                "action": one_of(&["send", "inbox", "read", "ack", "nack"], "What to do"),
                "to": text("send: to whom"), "body": text("send: what it says"), "subject": text("send: what it is about"),
                "refs": names("send: what it refers to"), "reply_to": text("send: the message it answers"),
                "key": text("send: under one key it is sent once"),
                "deliver": { "type": ["string", "object"], "description": "send: now, after_current, {at}, {delay_s} or {on_phase, run}" },
                "ttl_s": { "type": "integer", "minimum": 0 }, "max_attempts": { "type": "integer", "minimum": 0 },
                "future": flag("inbox: those too that may not be read yet"), "all": flag("inbox: those too that are done with"),
                "limit": { "type": "integer", "minimum": 0 }, "id": text("read, ack, nack: the message"),
                "lease": text("ack, nack: the token it came with"), "lease_s": { "type": "integer", "minimum": 0 },
                "delay_s": { "type": "integer", "minimum": 0 },
            }),
            Effect::Adds,
        ),
        tool(
            "board",
            "Show and fill boards: what people and agents leave for whoever looks.",
            &["action", "board"],
            &json!({
                "action": one_of(&["show", "post", "get", "set"], "What to do"), "board": text("The board"),
                "topic": text("post, show: the topic"), "text": text("post: what it says"), "refs": names("post: what it refers to"),
                "key": text("get, set: the cell"), "value": { "description": "set: what the cell is to hold" },
                "expect": { "type": "integer", "minimum": 0, "description": "set: the version that was seen, 0 for none" },
                "after": { "type": "integer", "minimum": 0 }, "limit": { "type": "integer", "minimum": 0 },
            }),
            Effect::Adds,
        ),
    ]
}

fn tool(
    name: &'static str,
    about: &'static str,
    required: &[&str],
    fields: &Value,
    effect: Effect,
) -> Tool {
    let input = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    let hints = ToolAnnotations::new().read_only(matches!(effect, Effect::Reads));
    let hints = match effect {
        Effect::Reads => hints.idempotent(true).open_world(false),
        Effect::Adds => hints.destructive(false),
        Effect::Destroys => hints.destructive(true),
    };
    let mut tool = Tool::new(name, about, object(input));
    tool.output_schema = Some(object(output()));
    tool.annotations = Some(hints);
    tool
}

/// What any result has, as far as it is told of a run: all else depends on the tool and the run.
fn output() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "properties": {
            "run_id": text, "status": text, "poll_after_s": { "type": "number" },
            "truncated": { "type": "boolean" }, "resource": text,
        },
        "additionalProperties": true,
    })
}

fn object(value: Value) -> Arc<JsonObject> {
    Arc::new(match value {
        Value::Object(object) => object,
        _ => Map::new(),
    })
}
