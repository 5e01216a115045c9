//! The ways in which a team works on one task. One file each, all shaped alike: what it is for, its
//! parameters, its flow, its tests.

mod adaptive;
mod broadcast;
mod coded;
mod consensus;
pub mod controller;
mod debate;
pub mod graph;
pub(crate) mod nested;
pub mod pattern;
mod relay;
pub mod roles;
pub mod roundtable;
mod sequential;
mod supervise;
pub(crate) mod turn;
pub(crate) mod turns;

pub use adaptive::Adaptive;
pub use broadcast::Broadcast;
pub use coded::Coded;
pub use consensus::Consensus;
pub use controller::Controller;
pub use debate::Debate;
pub use graph::{Dispatch, Graph, Stages};
pub use pattern::Pattern;
pub use relay::{Convergence, Relay};
pub use roles::Roles;
pub use roundtable::Roundtable;
pub use sequential::Sequential;
pub use supervise::Supervise;
pub(crate) use supervise::{ERROR, NOTES};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    call::{Prompt, Reply},
    key::Key,
    scope::{Scope, Step},
    team::AgentId,
    time::Duration,
    words::Language,
};

/// The clocks of a strategy; `None` is a clock switched off (strategies.md §1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// Of one parallel phase, one single step, one task.
    pub timeout: Option<Duration>,
    /// Of one call, from its start, inside `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_timeout: Option<Duration>,
}

impl Default for Clocks {
    /// Ten minutes are enough for one turn of a coding agent.
    fn default() -> Clocks {
        Clocks { timeout: Some(Duration::from_secs(600)), call_timeout: None }
    }
}

impl Clocks {
    /// A phase or single step that begins now.
    pub(crate) fn phase<'a>(&self, cx: &Scope<'a>) -> Scope<'a> {
        cx.within(self.timeout).each_within(self.call_timeout)
    }

    /// Tasks of which each has its own clock, from its start.
    fn each<'a>(&self, cx: &Scope<'a>) -> Scope<'a> {
        cx.each_within(self.timeout).each_within(self.call_timeout)
    }
}

/// Asks all agents at once; gives their replies in the same order.
fn everyone(
    cx: &Scope,
    agents: &[AgentId],
    prompt: impl Fn(&AgentId) -> Prompt,
) -> Step<Vec<Reply>> {
    cx.all(agents, |agent| cx.ask(agent.as_str(), agent, prompt(agent)))
}

/// What `agent` said among `replies`.
fn own<'a>(replies: &'a [Reply], agent: &AgentId) -> Option<&'a Reply> {
    replies.iter().find(|reply| reply.agent == *agent)
}

fn others<'a>(replies: &'a [Reply], agent: &'a AgentId) -> impl Iterator<Item = &'a Reply> + Clone {
    replies.iter().filter(move |reply| reply.agent != *agent)
}

/// The calls among `replies` that contributed.
fn contributed<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> Vec<Key> {
    let contributions = replies.into_iter().filter(|reply| reply.contribution().is_some());
    contributions.map(|reply| reply.key.clone()).collect()
}

fn is_stopped(replies: &[Reply]) -> bool {
    replies.iter().any(Reply::is_stopped)
}

/// Quotes of a phase, and a line that names those without a contribution.
fn quoted<'a>(
    cx: &Scope,
    prompt: Prompt,
    replies: impl IntoIterator<Item = &'a Reply> + Clone,
) -> Prompt {
    let absent = replies.clone().into_iter().filter_map(|reply| {
        let why = match &reply.outcome {
            Ok(answer) => answer.is_blank().then_some("blank")?,
            Err(fault) => fault.kind(),
        };
        Some((cx.name(&reply.agent).to_owned(), why))
    });
    let absent: Vec<(String, &str)> = absent.collect();
    let prompt = prompt.quotes(replies);
    if absent.is_empty() { prompt } else { prompt.say(language(cx).missing(&absent)) }
}

fn language(cx: &Scope) -> Language {
    cx.language()
}

/// A reply in records: its text, its structure, or its error (strategies.md §1.5).
fn entry(reply: &Reply) -> Value {
    match &reply.outcome {
        Ok(answer) => answer.json.clone().unwrap_or_else(|| (&*answer.text).into()),
        Err(fault) => json!({ "error": fault.to_string() }),
    }
}

/// The replies of a phase by display name.
fn responses(cx: &Scope, replies: &[Reply]) -> Value {
    let entries = replies.iter().map(|reply| (cx.name(&reply.agent).to_owned(), entry(reply)));
    Value::Object(entries.collect::<Map<String, Value>>())
}
