//! A turn as the records of patterns and of role teams tell it (collaborate.md §10).

use serde_json::{Value, json};

use crate::{call::Call, known::Entry, scope::Scope, team::AgentId, view::Spending};

/// One role speaking once, successful or not.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// Its number in the run, from 1.
    pub(crate) number: u64,
    /// The number of its cycle, from 1.
    pub(crate) round: u64,
    /// The number of its stage in the whole run, from 1.
    pub(crate) stage: u64,
    /// The role.
    pub(crate) role: &'a str,
    /// Who has it.
    pub(crate) agent: &'a AgentId,
    /// And what that is called here.
    pub(crate) name: String,
    /// What is to answer for it, where the caller has named that.
    pub(crate) target: Option<&'a str>,
    /// What came of it: the whole output, or why there is none.
    pub(crate) said: Result<&'a str, String>,
    /// Its calls, in the order of asking.
    pub(crate) calls: &'a [&'a Entry],
}

impl Turn<'_> {
    /// The turn as a record tells it: its model is the one that was named, else the one that was asked
    /// first, and whoever answered last served it.
    pub(crate) fn told(&self, cx: &Scope) -> Value {
        let team = &cx.spec().team;
        let label = |entry: &&Entry| {
            let Call::Agent { agent, target, .. } = &entry.call else { return None };
            team.agent(&cx.local(agent)).answered_by(*target).target.label()
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
            "agent": self.name,
            "model": self.target.map(str::to_owned).or_else(|| requests().next().and_then(&label)),
            "served_by": served.and_then(&label),
            "sandbox": team.agent(self.agent).sandbox,
        });
        match &self.said {
            Ok(output) => told["output"] = (*output).into(),
            Err(error) => told["error"] = error.as_str().into(),
        }
        told["usage"] = json!(Spending::of_calls(self.calls.iter().copied()));
        told["elapsed_s"] = json!(ended.since(began).as_secs_f64());
        told
    }
}
