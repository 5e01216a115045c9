//! How many calls and tokens a run can take (strategies.md §9).

use serde::Serialize;

use crate::{
    programs::{Adaptive, Broadcast, Debate, Supervise},
    spec::Collaboration,
    team::{Agent, DEMO_USAGE, Says, Script, Target, Team},
};

/// What a run takes at least and at most; one that is stopped may take less.
///
/// A call of an agent with tools may take several requests to its model, `max_steps` at most; they
/// are not counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// Calls.
    pub calls: Range,
    /// Turns; in a strategy each call is one.
    pub turns: Range,
    /// Tokens at most, where all that can be asked is scripted or offline.
    pub tokens_max: Option<u64>,
    /// The longest chain of calls of which each waits for the one before.
    pub critical_path: u64,
}

/// The least and the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Bounds {
    /// The bounds of a team's work.
    pub fn of(collaboration: &Collaboration, team: &Team) -> Bounds {
        let (min, max, critical_path) = calls(collaboration);
        let calls = Range { min, max };
        let dearest = team
            .agents
            .iter()
            .map(tokens_of_call)
            .try_fold(0, |most, tokens| tokens.map(|tokens| most.max(tokens)));
        let tokens_max = dearest.map(|dearest| dearest.saturating_mul(max));
        Bounds { calls, turns: calls, tokens_max, critical_path }
    }
}

/// The least calls, the most, and the longest chain.
fn calls(collaboration: &Collaboration) -> (u64, u64, u64) {
    match collaboration {
        Collaboration::Broadcast(Broadcast { agents, rounds, .. }) => {
            let calls = count(agents) * u64::from(*rounds);
            (calls, calls, u64::from(*rounds))
        }
        Collaboration::Sequential(sequential) => {
            let steps = count(&sequential.order);
            (steps, steps, steps)
        }
        Collaboration::Debate(Debate { agents, rounds, .. }) => {
            let calls = count(agents) * u64::from(*rounds);
            (calls, calls + 1, u64::from(*rounds) + 1)
        }
        Collaboration::Supervisor(supervise) => supervised(supervise, 3),
        Collaboration::Consensus(consensus) => {
            let agents = count(&consensus.agents);
            (agents, 2 * agents + 1, 3)
        }
        Collaboration::Relay(relay) => {
            let (steps, rounds) = (count(&relay.order), u64::from(relay.rounds));
            (steps, steps * rounds, steps * rounds)
        }
        Collaboration::Adaptive(Adaptive::Supervise(supervise)) => supervised(supervise, 2),
        Collaboration::Adaptive(Adaptive::Debate(Debate { agents, rounds, .. })) => {
            let (agents, rounds) = (count(agents), u64::from(*rounds));
            (agents, agents * rounds + 2, rounds + 2)
        }
    }
}

/// A strict plan may end the run at once.
fn supervised(supervise: &Supervise, least: u64) -> (u64, u64, u64) {
    let most = u64::from(supervise.max_tasks) + 2 + u64::from(supervise.replan);
    (if supervise.strict { 1 } else { least }, most, most)
}

fn count<T>(things: &[T]) -> u64 {
    things.len() as u64
}

fn tokens_of_call(agent: &Agent) -> Option<u64> {
    let (tokens, requests) = match &agent.target {
        Target::Model(_) => return None,
        Target::Script(script) if uses_tools(script) => (script.worst_case(), agent.max_steps),
        Target::Script(script) => (script.worst_case(), 1),
        Target::Demo => (DEMO_USAGE, 1),
    };
    let attempts = u64::from(requests) * (u64::from(agent.retries) + 1);
    Some(tokens.total().saturating_mul(attempts))
}

fn uses_tools(script: &Script) -> bool {
    let rules = script.rules.iter().map(|rule| &rule.reply);
    script.replies.iter().chain(rules).any(|reply| matches!(reply.says, Says::Tools { .. }))
}
