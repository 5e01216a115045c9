//! A world that says what it likes.

use folkmoot_core::{
    call::{Answer, Call, FailureKind, Fault, Outcome, ToolCall, Usage},
    key::Key,
    known::Entry,
    render,
    run::Run,
    sim::{Happening, World},
    spec::Spec,
    team::Target,
    time::Duration,
};
use serde_json::{Value, json};

use crate::{names::NAMES, source::Choices};

/// Scripts say what they are to say; everybody else what the bytes hold.
pub(super) struct Hostile<'a, 'b>(pub(super) &'a mut Choices<'b>);

impl World for Hostile<'_, '_> {
    fn answer(&mut self, spec: &Spec, run: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let agent = spec.team.agent(entry.call.agent());
        let last = match &entry.call {
            Call::Agent { prompt, .. } => {
                let messages = render::messages(spec, run.known(), agent, prompt);
                messages.last().map(|message| message.content.clone())
            }
            Call::Team { .. }
            | Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => None,
        };
        if let (Some(last), Target::Script(script)) = (&last, &agent.target) {
            let echo = folkmoot_core::team::ScriptedReply::text(last.clone());
            let reply = script.reply(entry.nth, last).unwrap_or(&echo);
            let usage = Usage { tokens: reply.usage, ..Usage::default() };
            return Some(Happening { after: reply.delay, outcome: reply.outcome(), usage });
        }
        let is_timed = entry.expires.is_some() || spec.limits.time.is_some();
        if is_timed && self.0.one_in(16) {
            return None;
        }
        let is_offered = !agent.grants.is_empty() || !spec.tools(&agent.id, run.known()).is_empty();
        // The demo uses no tools, whatever it is offered.
        let has_tools = is_offered && last.is_some() && agent.target != Target::Demo;
        let outcome = self.outcome(has_tools);
        let after = Duration::from_millis(self.0.number() % 10_000);
        Some(Happening { after, outcome, usage: self.usage() })
    }
}

impl Hostile<'_, '_> {
    /// What comes of a call. Whoever has no tools asks for none, or the bounds would not hold.
    fn outcome(&mut self, has_tools: bool) -> Outcome {
        let choices = &mut *self.0;
        let answer = match choices.below(8) {
            0 | 1 => Answer::text(choices.text()),
            2 => match serde_json::from_str::<Value>(&choices.text()) {
                Ok(value) => Answer::json(value),
                Err(error) => Answer::text(error.to_string()),
            },
            3 => return Err(Fault::failed(FailureKind::Other, choices.text())),
            4 => return Err(choices.pick(&[Fault::TimedOut, Fault::Lost, Fault::Unwanted])),
            5 if has_tools => {
                Answer { tool_calls: tool_calls(choices), ..Answer::text(choices.text()) }
            }
            6 => Answer { reasoning: Some("vote:ann".into()), ..Answer::text(choices.text()) },
            _ => Answer::text(choices.pick(&WORDS)),
        };
        Ok(answer.into())
    }

    fn usage(&mut self) -> Usage {
        let mut usage = Usage { estimated: self.0.one_in(8), ..Usage::default() };
        usage.tokens.input = self.0.number();
        usage.tokens.output = self.0.number();
        usage
    }
}

/// Votes, verdicts and choices.
const WORDS: [&str; 12] = [
    "",
    " \n",
    "vote:ann",
    "agree\nyes",
    "same",
    "approve",
    "reject",
    "NEXT: ann",
    "NEXT: parent",
    "converged",
    r#"{"findings": [{"severity": "major", "place": "a:1", "text": "it leaks"}]}"#,
    r#"{"findings": [], "fixed": ["F1"]}"#,
];

/// Tools that are there or not, and what a lead hands out.
const TOOLS: [&str; 8] =
    ["file.read", "shell", "file.read.x", "", "dispatch", "dispatch", "task_retry", "finish"];

fn tool_calls(choices: &mut Choices<'_>) -> Vec<ToolCall> {
    let calls = (0..=choices.below(3)).map(|_| {
        let name = choices.pick(&TOOLS);
        let id = choices.pick(&["1", "1", "2", ""]);
        let (agent, task) = (choices.pick(&NAMES), choices.pick(&["ann/1", "ann-b/1", "?"]));
        let arguments = json!({ "path": "x", "agent": agent, "task": task, "answer": "done" });
        ToolCall { id: id.into(), name: name.into(), arguments }
    });
    calls.collect()
}
