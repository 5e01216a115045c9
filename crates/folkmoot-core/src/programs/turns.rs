//! A turn as records of programs with roles tell it (agents.md §7).

use serde_json::{Value, json};

use crate::{
    call::{Call, Reply},
    known::Entry,
    scope::Scope,
    view::Spending,
};

/// One role speaking once, successful or not.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// Its number in the run, from 1.
    pub(crate) number: u32,
    /// The number of its cycle, from 1.
    pub(crate) round: u32,
    /// The number of its stage in the whole run, from 1.
    pub(crate) stage: u32,
    /// The role.
    pub(crate) role: &'a str,
    /// What whoever has it is called here.
    pub(crate) agent: String,
    /// What came of it.
    pub(crate) reply: &'a Reply,
    /// Its calls, in the order of asking.
    pub(crate) calls: &'a [&'a Entry],
}

impl Turn<'_> {
    /// The turn as a record tells it: its model is the one that was asked first, and whoever answered
    /// last served it.
    pub(crate) fn told(&self, cx: &Scope) -> Value {
        let team = &cx.spec().team;
        let label = |entry: &&Entry| {
            let Call::Agent { agent, target, .. } = &entry.call else { return None };
            team.agent(agent).answered_by(*target).target.label()
        };
        let requests = || self.calls.iter().filter(|it| matches!(it.call, Call::Agent { .. }));
        let served = requests().rfind(|it| matches!(it.outcome, Some(Ok(_))));
        let began = self.calls.iter().map(|entry| entry.asked_at).min().unwrap_or_default();
        let ended = self.calls.iter().map(|entry| entry.settled_at).max().unwrap_or_default();
        let mut told = json!({
            "turn": self.number,
            "round": self.round,
            "stage": self.stage,
            "role": self.role,
            "agent": self.agent,
            "model": requests().next().and_then(&label),
            "served_by": served.and_then(&label),
            "sandbox": team.agent(&self.reply.agent).sandbox,
        });
        match &self.reply.outcome {
            Ok(answer) => told["output"] = (&*answer.text).into(),
            Err(fault) => told["error"] = fault.to_string().into(),
        }
        told["usage"] = json!(Spending::of_calls(self.calls.iter().copied()));
        told["elapsed_s"] = json!(ended.since(began).as_secs_f64());
        told
    }
}
