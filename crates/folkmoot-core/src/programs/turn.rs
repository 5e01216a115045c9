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
    let turn = turn.going_on(&reply.key);
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

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::{
        programs::{Broadcast, Clocks},
        spec::{Collaboration, Spec},
        team::{Says, Script, ScriptRule, ScriptedReply, Target},
        testing::{agent, check, ids, spec},
        time::Duration,
    };

    fn wants(tools: &[&str]) -> ScriptedReply {
        let tool = |name: &&str| {
            let (id, name) = ((*name).into(), (*name).into());
            ToolCall { id, name, arguments: json!({ "path": "a.txt" }) }
        };
        let calls = tools.iter().map(tool).collect();
        ScriptedReply { says: Says::Tools { calls, text: "let me see".into() }, ..text("") }
    }

    fn text(text: &str) -> ScriptedReply {
        ScriptedReply::text(text)
    }

    /// One turn of an agent that may use `file`.
    fn turn(replies: Vec<ScriptedReply>, rules: Vec<ScriptRule>) -> Spec {
        let target = Target::Script(Script { replies, rules, label: None });
        let alone = Agent { grants: vec!["file".into()], target, ..agent("a", &[]) };
        let agents = ids(&["a"]);
        let broadcast = Broadcast { agents, rounds: 1, clocks: Clocks::default() };
        spec(vec![alone], Collaboration::Broadcast(broadcast))
    }

    #[test]
    fn tools_are_used_side_by_side_and_their_results_shown_in_the_order_asked_for() {
        check(
            turn(vec![wants(&["file.read", "file.list"]), text("done")], Vec::new()),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a/model-1 [task]
                  3     0 answered round-1/a/model-1: let me see
                  4     0 asked round-1/a/tool-1 tool
                  5     0 asked round-1/a/tool-2 tool
                  6     0 answered round-1/a/tool-2: {"path":"a.txt"}
                  7     0 answered round-1/a/tool-1: {"path":"a.txt"}
                  8     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1 · result round-1/a/tool-2]
                  9     0 answered round-1/a/model-2: done
                 10     0 ended answered
                = done answered: Some("done")
                  {"round":1,"kind":"broadcast","responses":{"a":"done"}}
            "#]],
        );
    }

    #[test]
    fn what_is_not_granted_is_not_done_and_the_model_is_told() {
        let rule = ScriptRule { contains: "error: denied: shell".into(), reply: text("I see") };
        check(
            turn(vec![wants(&["file.read", "shell"])], vec![rule]),
            expect![[r#"
                  1     0 started
                  2     0 asked round-1/a/model-1 [task]
                  3     0 answered round-1/a/model-1: let me see
                  4     0 asked round-1/a/tool-1 tool
                  5     0 refused round-1/a/tool-2: denied: shell
                  6     0 answered round-1/a/tool-1: {"path":"a.txt"}
                  7     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1 · result round-1/a/tool-2]
                  8     0 answered round-1/a/model-2: I see
                  9     0 ended answered
                = done answered: Some("I see")
                  {"round":1,"kind":"broadcast","responses":{"a":"I see"}}
            "#]],
        );
    }

    #[test]
    fn an_agent_without_any_grant_is_told_so_too() {
        let rule = ScriptRule { contains: "error: denied: shell".into(), reply: text("I see") };
        let mut spec = turn(vec![wants(&["shell"])], vec![rule]);
        spec.team.agents[0].grants.clear();
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a [task]
              3     0 answered round-1/a: let me see
              4     0 refused round-1/a/tool-1: denied: shell
              5     0 asked round-1/a/model-2 [after round-1/a · result round-1/a/tool-1]
              6     0 answered round-1/a/model-2: I see
              7     0 ended answered
            = done answered: Some("I see")
              {"round":1,"kind":"broadcast","responses":{"a":"I see"}}
        "#]],
        );
    }

    #[test]
    fn a_model_that_never_stops_using_tools_is_out_of_steps() {
        let mut spec = turn(vec![wants(&["file.read"])], Vec::new());
        spec.team.agents[0].max_steps = 2;
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a/model-1 [task]
              3     0 answered round-1/a/model-1: let me see
              4     0 asked round-1/a/tool-1 tool
              5     0 answered round-1/a/tool-1: {"path":"a.txt"}
              6     0 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1]
              7     0 answered round-1/a/model-2: let me see
              8     0 ended all_failed
            = failed all_failed: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"no answer within 2 steps"}}}
        "#]],
        );
    }

    #[test]
    fn every_tool_call_counts_against_the_budget_and_a_stopped_one_ends_the_turn() {
        let mut spec = turn(vec![wants(&["file.read", "file.list"]), text("done")], Vec::new());
        spec.limits.calls = Some(2);
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a/model-1 [task]
              3     0 answered round-1/a/model-1: let me see
              4     0 asked round-1/a/tool-1 tool
              5     0 refused round-1/a/tool-2: budget exhausted
              6     0 answered round-1/a/tool-1: {"path":"a.txt"}
              7     0 ended all_failed
            = budget_exhausted calls: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"budget exhausted"}}}
        "#]],
        );
    }

    #[test]
    fn the_clock_of_a_call_is_the_whole_turn_s() {
        let slow = |reply| ScriptedReply { delay: Duration::from_millis(400), ..reply };
        let mut spec = turn(vec![slow(wants(&["file.read"])), slow(text("late"))], Vec::new());
        let Collaboration::Broadcast(broadcast) = &mut spec.collaboration else { unreachable!() };
        broadcast.clocks.call_timeout = Some(Duration::from_millis(700));
        check(
            spec,
            expect![[r#"
              1     0 started
              2     0 asked round-1/a/model-1 [task]
              3   400 answered round-1/a/model-1: let me see
              4   400 asked round-1/a/tool-1 tool
              5   400 answered round-1/a/tool-1: {"path":"a.txt"}
              6   400 asked round-1/a/model-2 [after round-1/a/model-1 · result round-1/a/tool-1]
              7   700 ticked
              8   700 withdrawn round-1/a/model-2: timeout
              9   700 ended all_failed
            = failed all_failed: None
              {"round":1,"kind":"broadcast","responses":{"a":{"error":"timeout"}}}
        "#]],
        );
    }
}
