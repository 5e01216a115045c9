//! Agents whose replies were written beforehand (interface.md, script agents).

use folkmoot_core::{
    call::{Answer, Usage},
    sim::Happening,
    team::Script,
    time::Duration,
};
use folkmoot_runtime::backend::{Delta, OnDelta, Request, Response};

/// Gives the scripted reply to this call after its delay.
///
/// The number of the call, not of the attempt, chooses the reply: there is nothing to try again.
pub(crate) async fn perform(script: &Script, request: &Request, on_delta: OnDelta<'_>) -> Response {
    let last = request.messages.last().map_or("", |message| &message.content);
    let Happening { after, outcome, usage } = happening(script, request.nth, last);
    if after > Duration::default() {
        tokio::time::sleep(after.into()).await;
    }
    if let Ok(answer) = &outcome
        && !answer.text.is_empty()
    {
        on_delta(Delta::Text(&answer.text));
    }
    Response { outcome, usage }
}

/// What comes of the `nth` call; an empty script echoes the last message.
pub(crate) fn happening(script: &Script, nth: u64, last: &str) -> Happening {
    match script.reply(nth, last) {
        Some(reply) => Happening {
            after: reply.delay,
            outcome: reply.outcome(),
            usage: Usage { tokens: reply.usage, ..Usage::default() },
        },
        None => Happening {
            after: Duration::default(),
            outcome: Ok(Answer::text(last).into()),
            usage: Usage::default(),
        },
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_core::{
        call::{FailureKind, Fault, Tokens, ToolCall},
        render::Role,
        team::{Says, ScriptRule, ScriptedReply, Target},
        time::Duration,
    };
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Shown, agent, message, request};

    fn text(text: &str) -> ScriptedReply {
        ScriptedReply::text(text)
    }

    fn reply(says: Says) -> ScriptedReply {
        ScriptedReply { says, ..text("") }
    }

    /// The response to the `nth` call, and what was shown meanwhile.
    async fn asked(script: &Script, nth: u64, last: &str) -> (Response, String) {
        let agent = agent("a", Target::Script(script.clone()));
        let request = Request { nth, ..request(agent, vec![message(Role::User, last)]) };
        let shown = Shown::default();
        let response = perform(script, &request, &|delta| shown.show(delta)).await;
        (response, shown.text())
    }

    async fn said(script: &Script, nth: u64, last: &str) -> String {
        let (response, shown) = asked(script, nth, last).await;
        let text = response.outcome.expect("it answers").text.to_string();
        assert_eq!(shown, text);
        text
    }

    #[tokio::test]
    async fn replies_go_by_the_number_of_the_call_and_rules_come_first() {
        let rule = ScriptRule { contains: "vote".into(), reply: text("vote:b") };
        let script =
            Script { replies: vec![text("one"), text("two")], rules: vec![rule], label: None };
        for (nth, last, expected) in
            [(1, "hi", "one"), (2, "hi", "two"), (7, "hi", "two"), (1, "please vote", "vote:b")]
        {
            assert_eq!(said(&script, nth, last).await, expected);
        }
    }

    #[tokio::test]
    async fn an_empty_script_echoes_and_uses_nothing() {
        assert_eq!(said(&Script::default(), 3, "hi").await, "hi");
        assert_eq!(asked(&Script::default(), 3, "hi").await.0.usage, Usage::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_passes_before_the_reply_and_usage_is_exact() {
        let tokens = Tokens { input: 7, output: 3, ..Tokens::default() };
        let late =
            ScriptedReply { delay: Duration::from_millis(300), usage: tokens, ..text("late") };
        let script = Script { replies: vec![late], ..Script::default() };
        let start = Instant::now();
        let (response, _) = asked(&script, 1, "hi").await;
        assert_eq!(start.elapsed(), std::time::Duration::from_millis(300));
        assert_eq!(response.usage, Usage { tokens, ..Usage::default() });
    }

    #[tokio::test]
    async fn an_error_has_its_kind_and_is_not_tried_again() {
        let says = Says::Error { text: "boom".into(), kind: FailureKind::Transport };
        let script = Script { replies: vec![reply(says), text("two")], ..Script::default() };
        let (response, shown) = asked(&script, 1, "hi").await;
        assert_eq!(response.outcome, Err(Fault::failed(FailureKind::Transport, "boom")));
        assert_eq!(shown, "");
    }

    #[tokio::test]
    async fn structured_replies_and_tool_calls_come_as_written() {
        let call = ToolCall { id: "1".into(), name: "file.read".into(), arguments: json!({}) };
        let says = Says::Tools { calls: vec![call.clone()], text: "look".into() };
        let json = Says::Json(json!({"b": 1, "a": 2}));
        let script = Script { replies: vec![reply(json), reply(says)], ..Script::default() };
        assert_eq!(said(&script, 1, "hi").await, r#"{"b":1,"a":2}"#);
        let answer = asked(&script, 2, "hi").await.0.outcome.expect("it answers");
        assert_eq!((&*answer.text, &answer.tool_calls), ("look", &vec![call]));
    }
}
