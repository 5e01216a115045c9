//! A lead that hands out work with tools (graph.md §14).
//!
//! The lead is a model, or a script, that works in turns: it calls tools until it finishes, or until
//! it replies without a call, which is its answer. What its calls mean is the [`Desk`]'s business: a
//! graph moves along its edges, free dispatch hands out whatever is asked for.

use serde_json::{Map, Value, json};

use crate::{
    call::{Part, Prompt, Reply, Tool, ToolCall},
    event::{Ending, Text},
    programs::{language, turn::Chain},
    scope::{Scope, Step},
    team::{Agent, AgentId},
    words::Language,
};

/// The tools of a lead, by name.
pub(super) const DISPATCH: &str = "dispatch";
pub(super) const CHECKPOINT: &str = "dispatch_checkpoint";
pub(super) const RETRY: &str = "task_retry";
pub(super) const FINISH: &str = "finish";

/// What a lead is offered (graph.md §14).
pub(crate) fn tools(language: Language) -> Vec<Tool> {
    let tool = |name: &str, [english, chinese]: [&'static str; 2], fields: &[(&str, [&str; 2])]| {
        let field = |(name, [english, chinese]): &(&str, [&str; 2])| {
            let schema =
                json!({ "type": "string", "description": language.pick(english, chinese) });
            ((*name).to_owned(), schema)
        };
        let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let properties: Map<String, Value> = fields.iter().map(field).collect();
        let parameters =
            json!({ "type": "object", "properties": properties, "required": required });
        Tool { name: name.into(), description: language.pick(english, chinese).into(), parameters }
    };
    vec![
        tool(
            DISPATCH,
            [
                "Lets an agent of the team work; its reply is the result. Several calls in one turn \
                 run side by side.",
                "让团队中的一名成员开始工作；结果就是它的回复。同一轮里的多个调用并行执行。",
            ],
            &[
                ("agent", ["The agent's id.", "成员的 id。"]),
                ("prompt", ["What it is to do.", "交代给它的事情。"]),
            ],
        ),
        tool(
            CHECKPOINT,
            [
                "Notes how far a task has come, for another attempt at it.",
                "记录一项任务的进度，供重试时使用。",
            ],
            &[
                ("task", ["The key of the step.", "步骤的键。"]),
                ("phase", ["Where it stands.", "所处阶段。"]),
                ("completed", ["What is done.", "已完成的部分。"]),
                ("remaining", ["What is left.", "剩余的部分。"]),
            ],
        ),
        tool(
            RETRY,
            [
                "Lets a failed task be tried again, in the same conversation.",
                "让失败的任务在同一段对话中重试。",
            ],
            &[
                ("task", ["The key of the failed step.", "失败步骤的键。"]),
                ("modify_prompt", ["What to add to its prompt.", "补充到提示中的内容。"]),
            ],
        ),
        tool(
            FINISH,
            ["Ends the work with an answer to the task.", "给出任务的答案，结束工作。"],
            &[("answer", ["The whole answer.", "完整的答案。"])],
        ),
    ]
}

/// Where a lead hands out work.
pub(super) trait Desk {
    /// Lets an agent work with a prompt of the lead's; or says why it does not.
    fn dispatch(&mut self, order: Order) -> Result<AgentId, String>;

    /// Waits until everybody who works has replied, and takes the replies in; gives each agent's.
    fn settle(&mut self) -> Step<Vec<(AgentId, Reply)>>;

    /// Takes note of what the lead itself says.
    fn hear(&mut self, _reply: &Reply) {}

    /// How things stand, for the lead; nothing where there is nothing to say.
    fn state(&self) -> Option<String>;

    /// Ends the work, or says once what is still due.
    fn finish(&mut self) -> Result<(), String>;

    /// Whether nothing more can be done, as the run was stopped from outside or failed.
    fn is_halted(&self) -> bool;

    /// The end of a lead that has used up its steps.
    fn out_of_steps(&self) -> Ending;

    /// How the work has ended, with the lead's answer or without.
    fn ending(&self, answer: Option<Text>) -> Ending;
}

/// What a lead asks for.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The agent, or the step of one that is to be tried again, as the lead calls it.
    pub(super) whom: Whom,
    /// The lead's own words.
    pub(super) prompt: String,
    /// What the lead has noted about the step so far.
    pub(super) checkpoint: Option<String>,
}

/// Whom an order is for.
#[derive(Clone, Debug)]
pub(super) enum Whom {
    /// An agent, by its id or name.
    Agent(String),
    /// The agent of a step that failed, by the step's key.
    Task(String),
}

/// What came of one call of the lead.
enum Given {
    /// The reply of this agent will answer it.
    Working(AgentId),
    /// Text answers it.
    Text(String),
    /// It is to end the run with this answer, once everybody who works has replied.
    Answer(String),
}

/// Lets the lead work until it has an answer.
pub(super) fn run(cx: &Scope, lead: &Agent, desk: &mut dyn Desk) -> Step<Ending> {
    let place = cx.at("lead");
    let mut chain = Chain::of(lead);
    let mut notes = Notes::default();
    let mut prompt = with_state(Prompt::task(), desk);
    for step in 1..=lead.max_steps.max(1) {
        let reply = chain.ask(&place, &format!("model-{step}"), prompt)?;
        if reply.contribution().is_some() {
            desk.hear(&reply);
        }
        let calls = match reply.contribution() {
            _ if reply.is_stopped() => return Ok(desk.ending(None)),
            None => return Ok(Ending::failed("error", Vec::new())),
            Some(answer) if answer.tool_calls.is_empty() => {
                // A reply without a call is the answer, whatever is still due.
                let _ = desk.finish().or_else(|_| desk.finish());
                return Ok(desk.ending(Some(Text::Replies(vec![reply.key.clone()]))));
            }
            Some(answer) => &answer.tool_calls,
        };
        let mut given: Vec<Given> = calls.iter().map(|call| notes.take(desk, call)).collect();
        let replies = desk.settle()?;
        if desk.is_halted() {
            return Ok(desk.ending(None));
        }
        for given in &mut given {
            if let Given::Answer(answer) = given {
                match desk.finish() {
                    Ok(()) => {
                        let answer = Text::Literal(answer.as_str().into());
                        return Ok(desk.ending(Some(answer)));
                    }
                    Err(due) => *given = Given::Text(due),
                }
            }
        }
        prompt = Prompt::after(&reply);
        for (call, given) in calls.iter().zip(given) {
            prompt.parts.push(returned(call, given, &replies));
        }
        prompt = with_state(prompt, desk);
    }
    Ok(desk.out_of_steps())
}

fn with_state(prompt: Prompt, desk: &dyn Desk) -> Prompt {
    desk.state().into_iter().fold(prompt, Prompt::say)
}

/// What a call is answered with.
fn returned(call: &ToolCall, given: Given, replies: &[(AgentId, Reply)]) -> Part {
    let to = call.id.clone();
    let text = match given {
        Given::Text(text) | Given::Answer(text) => text,
        Given::Working(agent) => {
            let reply = replies.iter().find(|(id, _)| *id == agent).map(|(_, reply)| reply);
            match reply.map(|reply| (reply.contribution(), reply)) {
                Some((Some(_), reply)) => return Part::Returned { to, key: reply.key.clone() },
                Some((None, Reply { outcome: Err(fault), .. })) => format!("failed: {fault}"),
                Some((None, _)) | None => "failed: blank".to_owned(),
            }
        }
    };
    Part::Told { to, text: text.into() }
}

/// What the lead has noted about steps.
#[derive(Debug, Default)]
struct Notes(Vec<(String, String)>);

impl Notes {
    /// Does what a call asks for, as far as that can be done at once.
    fn take(&mut self, desk: &mut dyn Desk, call: &ToolCall) -> Given {
        let text = |key: &str| call.arguments.get(key).and_then(Value::as_str).map(str::to_owned);
        let order = match &*call.name {
            DISPATCH => match text("agent") {
                None => return Given::Text("error: dispatch needs an agent".to_owned()),
                Some(agent) => Order {
                    whom: Whom::Agent(agent),
                    prompt: text("prompt").unwrap_or_default(),
                    checkpoint: None,
                },
            },
            RETRY => match text("task") {
                None => return Given::Text("error: task_retry needs a task".to_owned()),
                Some(task) => Order {
                    checkpoint: self.of(&task).map(str::to_owned),
                    whom: Whom::Task(task),
                    prompt: text("modify_prompt").unwrap_or_default(),
                },
            },
            CHECKPOINT => {
                let Some(task) = text("task") else {
                    return Given::Text("error: dispatch_checkpoint needs a task".to_owned());
                };
                self.0.push((task, call.arguments.to_string()));
                return Given::Text("stored".to_owned());
            }
            FINISH => return Given::Answer(text("answer").unwrap_or_default()),
            unknown => return Given::Text(format!("error: there is no tool {unknown}")),
        };
        match desk.dispatch(order) {
            Ok(agent) => Given::Working(agent),
            Err(guidance) => Given::Text(guidance),
        }
    }

    /// The latest note about a step.
    fn of(&self, task: &str) -> Option<&str> {
        let notes = self.0.iter().rev();
        let mut notes = notes.filter(|(of, _)| of == task).map(|(_, note)| &**note);
        notes.next()
    }
}

/// What an agent is asked with the words of its lead: behind all else, or in front of all else where
/// a step is tried again.
pub(super) fn ordered(cx: &Scope, mut prompt: Prompt, order: &Order) -> Prompt {
    let language = language(cx);
    let note = order.checkpoint.as_ref().map(|note| match language {
        Language::English => format!("What was noted about it so far: {note}"),
        Language::Chinese => format!("目前为止的记录：{note}"),
    });
    prompt = note.into_iter().fold(prompt, Prompt::say);
    let own = Some(&order.prompt).filter(|words| !words.trim().is_empty());
    match (own, &order.whom) {
        (None, _) => {}
        (Some(own), Whom::Agent(_)) => prompt = prompt.say(own.clone()),
        (Some(own), Whom::Task(_)) => prompt.parts.insert(0, Part::Say(own.as_str().into())),
    }
    prompt
}

/// The agent of a step's key, `[stage/]agent/n…`.
pub(super) fn agent_of(task: &str) -> &str {
    let parts: Vec<&str> = task.split('/').collect();
    let number = parts.iter().rposition(|part| part.parse::<u32>().is_ok());
    number.and_then(|at| parts.get(at.checked_sub(1)?)).copied().unwrap_or(task)
}

/// An agent as guidance lists it.
pub(super) fn list(ids: &[AgentId]) -> String {
    let ids: Vec<&str> = ids.iter().map(AgentId::as_str).collect();
    if ids.is_empty() { "nobody".to_owned() } else { ids.join(", ") }
}

/// Guidance for a call that is not done.
pub(super) fn guidance(why: &str, due: &[AgentId], can_finish: bool) -> String {
    let finish = if can_finish { "finishing is open" } else { "finishing is not open" };
    format!("not run: {why}; due now: {}; {finish}", list(due))
}
