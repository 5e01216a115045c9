//! How long a step of the kernel takes in runs of growing length: `cargo run --release --example pace`.

#![expect(clippy::print_stdout, reason = "it measures and tells")]
#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::{sync::Arc, time::Instant};

use folkmoot_core::{
    call::{Answer, Usage},
    key::Key,
    known::Entry,
    limits::Limits,
    programs::{Broadcast, Clocks, Debate, Sequential},
    run::Run,
    sim::{Happening, Sim, World},
    spec::{Collaboration, Spec},
    team::{Agent, AgentId, Model, Target, Team},
    time::Duration,
};

/// Everybody says the same two kilobytes.
struct Talkative;

impl World for Talkative {
    fn answer(&mut self, _: &Spec, _: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let outcome = Ok(Answer::text("x".repeat(2000)).into());
        let tokens = entry.reserved.unwrap_or_default().tokens;
        let usage = Usage { tokens, ..Usage::default() };
        Some(Happening { after: Duration::from_millis(1), outcome, usage })
    }
}

fn agent(id: &AgentId) -> Agent {
    let model = Model { max_output_tokens: Some(1000), ..Model::new("p", "m") };
    Agent::new(&id.0, Target::Model(model))
}

fn measure(shape: &str, people: u32, collaboration: impl Fn(&[AgentId]) -> Collaboration) {
    let ids: Vec<AgentId> = (1..=people).map(|n| AgentId(format!("agent-{n}").into())).collect();
    let spec = Arc::new(Spec {
        team: Team { name: "pace".into(), agents: ids.iter().map(agent).collect() },
        task: "Which way?".into(),
        collaboration: collaboration(&ids),
        auto: None,
        limits: Limits { tokens: Some(u64::MAX / 2), ..Limits::default() },
        warnings: Vec::new(),
        recipe: None,
    });
    let clock = Instant::now();
    let sim = Sim::start(spec, 0, 0, &mut Talkative).finish(&mut Talkative);
    let (spent, calls) = (clock.elapsed(), sim.run.ledger().run.calls);
    let last = sim.run.ending().map_or("unfinished", |ending| &*ending.reason);
    let step = spent / u32::try_from(calls).unwrap_or(u32::MAX);
    println!("{shape:<22} {calls:>5} calls {step:>10.1?} a step {spent:>10.1?} in all, {last}");
}

fn main() {
    let debate = |rounds| {
        move |ids: &[AgentId]| {
            let (agents, judge) = (ids.to_vec(), ids[0].clone());
            Collaboration::Debate(Debate { agents, rounds, judge, clocks: Clocks::default() })
        }
    };
    for (people, rounds) in [(3, 3), (10, 40), (20, 20), (20, 100), (50, 40)] {
        measure(&format!("debate {people} x {rounds}"), people, debate(rounds));
    }
    for people in [10, 400, 2000] {
        measure(&format!("broadcast {people} x 1"), people, |ids| {
            let agents = ids.to_vec();
            Collaboration::Broadcast(Broadcast { agents, rounds: 1, clocks: Clocks::default() })
        });
    }
    for steps in [10, 400, 2000] {
        measure(&format!("sequential 10 x {}", steps / 10), 10, |ids| {
            let order = ids.iter().cycle().take(steps).cloned().collect();
            Collaboration::Sequential(Sequential { order, clocks: Clocks::default() })
        });
    }
}
