//! How long a step of the kernel takes in runs of growing length: `cargo bench -p folkmoot-core`.
//!
//! Beside each stands what it takes to write the same records as JSON, measured in the same run:
//! machines and their moods differ, the ratio of the two does not much. The fastest of some rounds
//! counts, since nothing makes a pure function faster than it is. A strategy's name measures it
//! alone: `cargo bench -p folkmoot-core -- relay`.

#![expect(clippy::print_stdout, reason = "it measures and tells")]
#![expect(clippy::disallowed_types, reason = "it measures real time")]

use std::{
    collections::BTreeMap,
    hint::black_box,
    sync::Arc,
    time::{self, Instant},
};

use folkmoot_core::{
    call::{Answer, Usage},
    event::Record,
    key::Key,
    known::Entry,
    limits::Limits,
    programs::{
        Broadcast, Clocks, Consensus, Convergence, Debate, Graph, Relay, Sequential, Supervise,
        graph::{
            Condition, Edge, Group, Guard, JudgeError, Matchers, Member, OnFailure, PARENT, Remedy,
            Routing, Test,
        },
    },
    run::Run,
    sim::{Happening, Sim, World},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Model, Target, Team},
    time::Duration,
};
use serde_json::json;

/// How often each run is measured.
const ROUNDS: usize = 5;

/// About how many calls most runs have.
const CALLS: [usize; 3] = [10, 400, 2000];

/// Everybody says about two kilobytes, now and then something else; the supervisor plans as many
/// tasks as it is told.
struct Talkative {
    tasks: usize,
}

impl World for Talkative {
    fn answer(&mut self, _: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let text = match key.as_str() {
            "plan" => self.plan(),
            _ => format!("{} {}", "x".repeat(2000), run.seq()),
        };
        let tokens = entry.reserved.unwrap_or_default().tokens;
        let usage = Usage { tokens, ..Usage::default() };
        let outcome = Ok(Answer::text(text).into());
        Some(Happening { after: Duration::from_millis(1), outcome, usage })
    }
}

impl Talkative {
    fn plan(&self) -> String {
        let task = |n| json!({ "id": format!("task_{n}"), "description": "do it" });
        json!({ "tasks": (1..=self.tasks).map(task).collect::<Vec<_>>() }).to_string()
    }
}

fn agent(id: &AgentId) -> Agent {
    let model = Model { max_output_tokens: Some(1000), ..Model::new("p", "m") };
    Agent::new(&id.0, Target::Model(model))
}

fn measure(people: usize, tasks: usize, how: impl FnOnce(Vec<AgentId>) -> Collaboration) {
    let ids: Vec<AgentId> = (1..=people).map(|n| AgentId(format!("agent-{n}").into())).collect();
    let spec = Arc::new(Spec {
        team: Team::new("pace", ids.iter().map(agent).collect()),
        task: "Which way?".into(),
        collaboration: how(ids),
        auto: None,
        limits: Limits { tokens: Some(u64::MAX / 2), ..Limits::default() },
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    });
    let shape = spec.collaboration.name();
    // Cargo passes flags of its own.
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if only.is_some_and(|only| only != shape) {
        return;
    }
    let (mut step, mut text) = (time::Duration::MAX, time::Duration::MAX);
    let mut shown = String::new();
    for _ in 0..ROUNDS {
        let mut world = Talkative { tasks };
        let clock = Instant::now();
        let sim = Sim::start(spec.clone(), 0, 0, &mut world).finish(&mut world);
        let calls = u32::try_from(sim.run.ledger().run.calls).unwrap_or(u32::MAX);
        step = step.min(clock.elapsed() / calls);
        let clock = Instant::now();
        black_box(sim.log.iter().map(Record::to_json).map(|it| it.len()).sum::<usize>());
        text = text.min(clock.elapsed() / calls);
        let last = sim.run.ending().map_or("unfinished", |ending| &*ending.reason);
        shown = format!("{calls:>5} calls of {people:>4}, {last}");
    }
    let ratio = step.as_secs_f64() / text.as_secs_f64();
    println!("{shape:<10} {step:>9.1?} a call, {ratio:>5.1} x its JSON   {shown}");
}

fn main() {
    let clocks = Clocks::default();
    for (people, rounds) in [(3, 3), (20, 20), (50, 40)] {
        measure(people, 0, |agents| {
            let judge = agents[0].clone();
            Collaboration::Debate(Debate { agents, rounds, judge, clocks })
        });
    }
    for calls in CALLS {
        measure(calls, 0, |agents| {
            Collaboration::Broadcast(Broadcast { agents, rounds: 1, clocks })
        });
    }
    for people in [5, 20, 100] {
        measure(people, 0, |agents| {
            let judge = agents[0].clone();
            Collaboration::Consensus(Consensus { agents, judge, self_votes: false, clocks })
        });
    }
    for calls in CALLS {
        measure(10, 0, |ids| {
            let order = ids.iter().cycle().take(calls).cloned().collect();
            Collaboration::Sequential(Sequential { order, clocks })
        });
    }
    for calls in CALLS {
        measure(10, 0, |order| {
            let (convergence, rounds) = (Convergence::Exact, calls as u32 / 10);
            Collaboration::Relay(Relay { order, rounds, convergence, clocks })
        });
    }
    for calls in CALLS {
        measure(11, calls - 2, |mut workers| {
            let supervisor = workers.pop().expect("there are eleven");
            let (replan, strict, max_tasks) = (true, false, u32::MAX);
            let it = Supervise { supervisor, workers, replan, strict, max_tasks, clocks };
            Collaboration::Supervisor(it)
        });
    }
    for calls in CALLS {
        measure(2, 0, |agents| Collaboration::Graph(review_loop(&agents, calls as u32 / 2)));
    }
}

/// One works and the other sends it back, as often as the cap allows; a condition looks at each reply.
fn review_loop(agents: &[AgentId], cap: u32) -> Graph {
    let [maker, reviewer] = [0, 1].map(|at| agents[at].clone());
    let back = Matchers { contains: Some("x".into()), ..Matchers::default() };
    let done = Matchers { contains: Some("done".into()), ..Matchers::default() };
    let condition = Condition {
        test: Test::Matches { agent: reviewer.clone(), matchers: done },
        written: json!("done"),
    };
    Graph {
        edges: vec![
            Edge::new(PARENT, maker.clone()),
            Edge::new(maker.clone(), reviewer.clone()),
            Edge { when: Some(Guard::Reply(back)), ..Edge::new(reviewer.clone(), maker) },
            Edge { default: true, ..Edge::new(reviewer, PARENT) },
        ],
        topology: None,
        cap: Some(cap),
        termination: Some(Group { any_of: Some(vec![Member::One(condition)]), all_of: None }),
        judge: None,
        judge_error: JudgeError::default(),
        on_failure: OnFailure { retry: 0, then: Remedy::Stop },
        nodes: BTreeMap::new(),
        result: None,
        routing: Routing::Engine,
        findings: None,
        clocks: Clocks::default(),
    }
}
