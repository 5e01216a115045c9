//! How many simulated runs a second one core plays and judges: `cargo run --release --example weather`.

#![expect(clippy::print_stdout, reason = "it measures and tells")]
#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::{sync::Arc, time::Instant};

use folkmoot_core::{
    bounds::Bounds,
    call::{Answer, Usage},
    key::Key,
    known::Entry,
    limits::Limits,
    programs::{Broadcast, Clocks, Debate},
    run::Run,
    sim::{Happening, World, hazard::Hazards, survey::Survey, weather::Weather},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, DEMO_USAGE, Target, Team},
    time::Duration,
};

const RUNS: u64 = 20_000;

/// Everybody says the same.
#[derive(Clone, Copy)]
struct Laconic;

impl World for Laconic {
    fn answer(&mut self, _: &Spec, _: &Run, _: &Key, _: &Entry) -> Option<Happening> {
        let outcome = Ok(Answer::text("On \"which?\":\n- look at the facts first").into());
        let usage = Usage { tokens: DEMO_USAGE, ..Usage::default() };
        Some(Happening { after: Duration::default(), outcome, usage })
    }
}

fn measure(shape: &str, collaboration: Collaboration) {
    let agents = ["a", "b", "c"].map(|name| Agent::new(name, Target::Demo));
    let spec = Arc::new(Spec {
        team: Team::new("weather", agents.to_vec()),
        task: "which?".into(),
        collaboration,
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    });
    let bounds = Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task));
    for (sky, hazards) in [("clear", Hazards::default()), ("faults", Hazards::all())] {
        let clock = Instant::now();
        let mut survey = Survey::default();
        for seed in 0..RUNS {
            let live = || Weather::new(Laconic, seed, hazards.clone()).live(spec.clone(), 0);
            survey.add(seed, &bounds, live);
        }
        let run = clock.elapsed() / u32::try_from(RUNS).unwrap_or(u32::MAX);
        let pace = 1.0 / run.as_secs_f64();
        println!("{shape:<12} {sky:<7} {run:>9.1?} a run {pace:>9.0} a second");
    }
}

fn main() {
    let agents: Vec<AgentId> = ["a", "b", "c"].map(AgentId::from).to_vec();
    let clocks = Clocks { timeout: Some(Duration::from_secs(600)), call_timeout: None };
    let (rounds, judge) = (3, agents[0].clone());
    measure(
        "broadcast 3",
        Collaboration::Broadcast(Broadcast { agents: agents.clone(), rounds: 1, clocks }),
    );
    measure("debate 3 x 3", Collaboration::Debate(Debate { agents, rounds, judge, clocks }));
}
