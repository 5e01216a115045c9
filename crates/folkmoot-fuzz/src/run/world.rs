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

use crate::source::Choices;

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
            Call::Tool { .. } | Call::Person { .. } | Call::Gate { .. } => None,
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
        let is_granted = !agent.grants.is_empty() && last.is_some();
        let outcome = self.outcome(is_granted);
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
            _ => Answer::text(choices.pick(&["", " \n", "vote:ann", "agree\nyes", "same"])),
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

fn tool_calls(choices: &mut Choices<'_>) -> Vec<ToolCall> {
    let calls = (0..=choices.below(3)).map(|_| {
        let name = choices.pick(&["file.read", "shell", "file.read.x", ""]);
        let id = choices.pick(&["1", "1", "2", ""]);
        ToolCall { id: id.into(), name: name.into(), arguments: json!({ "path": "x" }) }
    });
    calls.collect()
}
