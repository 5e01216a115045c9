//! The teams that work.

use std::sync::Arc;

use folkmoot_core::{
    limits::Limits,
    programs::{Broadcast, Clocks, Convergence, Debate, Relay, Sequential},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Model, Script, ScriptedReply, Target, Team},
};

/// What everybody says.
pub(crate) const REPLY: &str = "The cautious way costs a week and keeps every door open; the bold \
    one saves it and closes two of them. I would take the first, measure, and decide again.";

/// What is to be done.
pub(crate) const TASK: &str = "Should we use SQLite or Postgres for a service that one team runs \
    on one machine, with two thousand writes a second at its peak?";

/// Who is asked.
#[derive(Clone, Copy)]
pub(crate) enum Who {
    /// The server.
    Model,
    /// Somebody who answers at once.
    Null,
    /// The same, with another answer each time.
    Changing,
}

/// The model that the server plays.
pub(crate) const MODEL: &str = "stub";

fn target(who: Who) -> Target {
    let replies = match who {
        Who::Model => return Target::Model(Model::new(MODEL, MODEL)),
        Who::Null => vec![ScriptedReply::text(REPLY)],
        Who::Changing => (0..100).map(|n| ScriptedReply::text(format!("{REPLY} ({n})"))).collect(),
    };
    Target::Script(Script { replies, ..Script::default() })
}

fn spec(who: Who, people: usize, how: impl FnOnce(Vec<AgentId>) -> Collaboration) -> Arc<Spec> {
    let agents = (1..=people).map(|n| Agent::new(&format!("agent-{n}"), target(who)));
    let agents: Vec<Agent> = agents.collect();
    let ids = agents.iter().map(|agent| agent.id.clone()).collect();
    Arc::new(Spec {
        team: Team::new("bench", agents),
        task: TASK.into(),
        collaboration: how(ids),
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    })
}

/// As many turns, one after the other, by as many agents.
pub(crate) fn pipeline(who: Who, people: usize, turns: usize) -> Arc<Spec> {
    spec(who, people, |ids| {
        let order = ids.iter().cycle().take(turns).cloned().collect();
        Collaboration::Sequential(Sequential { order, clocks: Clocks::default() })
    })
}

/// A draft that goes to and fro between two.
pub(crate) fn relay(who: Who, rounds: u32) -> Arc<Spec> {
    spec(who, 2, |order| {
        let (convergence, clocks) = (Convergence::Exact, Clocks::default());
        Collaboration::Relay(Relay { order, rounds, convergence, clocks })
    })
}

/// Four who argue five times, and a judge.
pub(crate) fn debate(who: Who) -> Arc<Spec> {
    spec(who, 5, |mut agents| {
        let judge = agents.pop().expect("there are five");
        Collaboration::Debate(Debate { agents, rounds: 5, judge, clocks: Clocks::default() })
    })
}

/// Everybody at once.
pub(crate) fn fan_out(who: Who, people: usize) -> Arc<Spec> {
    spec(who, people, |agents| {
        Collaboration::Broadcast(Broadcast { agents, rounds: 1, clocks: Clocks::default() })
    })
}
