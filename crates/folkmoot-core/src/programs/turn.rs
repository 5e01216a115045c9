//! One turn of an agent: a request, and for an agent with tools whatever its tools need.
//!
//! A turn is a program of its own, nested in the place where it was asked for, so that every request
//! and every tool call is in the log, counts against the budget and survives a crash. An agent
//! without tools takes its turn in one call, which bears the turn's own name.

use crate::{
    call::{Call, FailureKind, Fault, Prompt, Reply, ToolCall},
    scope::{Scope, Step},
    team::Agent,
};

/// Takes a turn named `name`; gives the reply that wants no more tools.
pub(crate) fn take(cx: &Scope, name: &str, agent: &Agent, prompt: Prompt) -> Step<Reply> {
    let turn = cx.at(name);
    let mut reply = if agent.grants.is_empty() {
        cx.call(name, request(agent, prompt))?
    } else {
        turn.call("model-1", request(agent, prompt))?
    };
    let mut tools = 0;
    for step in 2..=agent.max_steps.max(1) {
        let calls = tool_calls(&reply);
        if calls.is_empty() {
            return Ok(reply);
        }
        let results = turn.all(calls, |call| {
            tools += 1;
            use_tool(&turn, &format!("tool-{tools}"), agent, call)
        })?;
        if let Some(stopped) = results.iter().find(|result| result.is_stopped()) {
            return Ok(Reply { outcome: stopped.outcome.clone(), ..reply });
        }
        let prompt = results.iter().fold(Prompt::after(&reply), Prompt::result);
        reply = turn.call(&format!("model-{step}"), request(agent, prompt))?;
    }
    Ok(if tool_calls(&reply).is_empty() { reply } else { out_of_steps(agent, reply) })
}

fn request(agent: &Agent, prompt: Prompt) -> Call {
    Call::Agent { agent: agent.id.clone(), prompt }
}

fn tool_calls(reply: &Reply) -> &[ToolCall] {
    reply.contribution().map_or(&[], |answer| &answer.tool_calls)
}

/// What is not granted is not executed: the model is told, and the refusal is recorded.
fn use_tool(turn: &Scope, name: &str, agent: &Agent, request: &ToolCall) -> Step<Reply> {
    let call = Call::Tool { agent: agent.id.clone(), request: request.clone(), repeatable: false };
    if agent.is_granted(&request.name) {
        turn.call(name, call)
    } else {
        let denied = Fault::failed(FailureKind::Denied, format!("denied: {}", request.name));
        turn.forbid(name, call, denied)
    }
}

fn out_of_steps(agent: &Agent, reply: Reply) -> Reply {
    let text = format!("no answer within {} steps", agent.max_steps);
    Reply { outcome: Err(Fault::failed(FailureKind::Other, text)), ..reply }
}
