//! Everything that can go wrong does, is handled, and can be had again: rules.md 16.1, 16.2.

use std::{collections::BTreeSet, sync::Arc};

use super::*;
use crate::{
    bounds::Bounds,
    limits::Limits,
    programs::{Broadcast, Clocks, Consensus, Debate, Graph, Supervise, graph::Edge},
    sim::audit::{Broken, audit},
    spec::Collaboration,
    team::Agent,
    testing::{Scripted, agent, graph, ids, spec},
    view::{self, Status},
};

const RUNS: u64 = 250;

/// Somebody who may try again, and whose replies cost something.
fn member(name: &str, replies: &[&str]) -> Agent {
    Agent { retries: 1, ..costly(agent(name, replies)) }
}

fn costly(mut agent: Agent) -> Agent {
    if let crate::team::Target::Script(script) = &mut agent.target {
        let usage = Tokens { input: 100, output: 20, ..Tokens::default() };
        script.replies.iter_mut().for_each(|reply| reply.usage = usage);
    }
    agent
}

fn clocks(seconds: u64) -> Clocks {
    Clocks { timeout: Some(Duration::from_secs(seconds)), call_timeout: None }
}

fn panel(rounds: u32, clocks: Clocks) -> Arc<Spec> {
    let broadcast = Broadcast { agents: ids(&["甲", "乙", "丙"]), rounds, clocks };
    let agents = ["甲", "乙", "丙"].map(|name| member(name, &["先看数据。", "再做决定。"]));
    spec(agents.to_vec(), Collaboration::Broadcast(broadcast)).into()
}

/// A team of each kind that has something to read from replies.
fn teams() -> Vec<Arc<Spec>> {
    let debate =
        Debate { agents: ids(&["a", "b"]), rounds: 2, judge: "b".into(), clocks: clocks(90) };
    let consensus = Consensus {
        agents: ids(&["a", "b", "c"]),
        judge: "a".into(),
        self_votes: true,
        clocks: clocks(90),
    };
    let supervise = Supervise {
        supervisor: "boss".into(),
        workers: ids(&["a", "b"]),
        replan: true,
        strict: false,
        max_tasks: 5,
        clocks: clocks(90),
    };
    let plan = r#"{"tasks": [{"id": "x", "description": "1"}, {"id": "y", "description": "2", "depends_on": ["x"]}]}"#;
    let boss = member("boss", &[plan, "report"]);
    let edges = [("parent", "a"), ("a", "b"), ("b", "a"), ("b", "parent"), ("a", "c")];
    let edges = edges.map(|(from, to)| Edge::new(from, to));
    let graph = Graph { clocks: clocks(90), ..graph(edges.to_vec()) };
    let [a, b, c] = ["a", "b", "c"].map(|name| member(name, &["one", "vote:a", "three"]));
    vec![
        panel(2, clocks(90)),
        spec(vec![a.clone(), b.clone()], Collaboration::Debate(debate)).into(),
        spec(vec![a.clone(), b.clone(), c.clone()], Collaboration::Consensus(consensus)).into(),
        spec(vec![a.clone(), b.clone(), c], Collaboration::Graph(graph)).into(),
        spec(vec![boss, a, b], Collaboration::Supervisor(supervise)).into(),
    ]
}

fn live(spec: &Arc<Spec>, seed: u64, hazards: impl IntoIterator<Item = Hazard>) -> Sim {
    Weather::new(Scripted, seed, hazards.into_iter().collect()).live(spec.clone(), 0)
}

fn kept(sim: &Sim) -> Result<(), Broken> {
    let Spec { collaboration, team, limits, task, .. } = &*sim.spec;
    audit(sim, &Bounds::of(collaboration, team, limits, Some(task)))
}

fn json(sim: &Sim) -> Vec<String> {
    sim.log.iter().map(Record::to_json).collect()
}

#[test]
fn whatever_goes_wrong_every_run_keeps_the_rules() {
    for spec in teams() {
        for seed in 0..RUNS {
            let sim = live(&spec, seed, Hazard::ALL);
            assert_eq!(kept(&sim), Ok(()), "seed {seed} of {}", spec.collaboration.name());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_seed_another_one() {
    let spec = panel(2, clocks(90));
    let logs: Vec<_> = (0..50).map(|seed| json(&live(&spec, seed, Hazard::ALL))).collect();
    for (seed, log) in (0..).zip(&logs) {
        assert_eq!(json(&live(&spec, seed, Hazard::ALL)), *log);
    }
    assert_eq!(logs.iter().collect::<BTreeSet<_>>().len(), logs.len());
}

#[test]
fn without_hazards_nothing_is_added() {
    for spec in teams() {
        let plain = Sim::start(spec.clone(), 7, 0, &mut Scripted).finish(&mut Scripted);
        assert_eq!(json(&live(&spec, 7, [])), json(&plain));
    }
}

/// Everything that a reader of a log can see of `hazard` in some runs of `spec`.
fn seen(spec: &Arc<Spec>, hazard: Hazard, see: impl Fn(&Sim) -> Vec<String>) -> BTreeSet<String> {
    let runs = (0..RUNS).map(|seed| live(spec, seed, [hazard]));
    runs.flat_map(|sim| {
        assert_eq!(kept(&sim), Ok(()));
        see(&sim)
    })
    .collect()
}

/// The texts and faults of calls.
fn outcomes(sim: &Sim) -> Vec<String> {
    let outcomes = sim.run.known().iter().filter_map(|(_, entry)| entry.outcome.as_ref());
    outcomes
        .map(|it| it.as_ref().map_or_else(|fault| format!("{fault:?}"), |it| it.text.to_string()))
        .collect()
}

#[test]
fn latency_takes_virtual_time_and_changes_nothing_else() {
    let spec = panel(1, Clocks { timeout: None, call_timeout: None });
    let times = (0..RUNS).map(|seed| {
        let sim = live(&spec, seed, [Hazard::Latency]);
        assert_eq!(view::status(&sim.run, false).0, Status::Done);
        sim.run.at()
    });
    let times: Vec<_> = times.collect();
    assert!(times.iter().any(|at| at.0 < 4_000_000) && times.iter().any(|at| at.0 > 30_000_000));
}

#[test]
fn errors_that_may_not_be_tried_again_all_come_and_others_are_retried_inside_the_call() {
    let spec = panel(4, Clocks { timeout: None, call_timeout: None });
    let seen = seen(&spec, Hazard::Errors, outcomes);
    // A failure of another kind is tried again, and hardly ever comes twice.
    for kind in FailureKind::ALL.iter().filter(|kind| kind.again() == Again::Never) {
        let name = format!("simulated: {}", kind.as_str());
        assert!(seen.iter().any(|it| it.contains(&name)), "{kind:?}");
    }
    assert!(seen.iter().any(|it| it.contains("(after 2 attempts)")), "{seen:?}");
    let calls = |seed| live(&spec, seed, [Hazard::Errors]).run.ledger().run.calls;
    assert!((0..50).all(|seed| calls(seed) == 12), "an attempt is no further call");
}

#[test]
fn without_retries_an_error_of_every_kind_is_the_agents_last_word() {
    let mut spec = Spec::clone(&panel(4, Clocks { timeout: None, call_timeout: None }));
    spec.team.agents.iter_mut().for_each(|agent| agent.retries = 0);
    let seen = seen(&spec.into(), Hazard::Errors, outcomes);
    for kind in FailureKind::ALL {
        assert!(seen.iter().any(|it| it.contains(&format!("simulated: {}", kind.as_str()))));
    }
    assert!(!seen.iter().any(|it| it.contains("attempts")), "{seen:?}");
}

#[test]
fn a_rate_limit_is_waited_for_and_one_that_is_too_long_ends_the_call() {
    let spec = panel(2, Clocks { timeout: None, call_timeout: None });
    let times = (0..RUNS).map(|seed| live(&spec, seed, [Hazard::RateLimits]).run.at().0);
    assert!(times.filter(|at| *at > 0).count() > 20, "hardly anybody waits");
    let seen = seen(&spec, Hazard::RateLimits, outcomes);
    let too_long = "simulated: too many requests; it asks to wait ";
    assert!(seen.iter().any(|it| it.contains("RateLimited") && it.contains(too_long)), "{seen:?}");
}

#[test]
fn replies_are_spoiled_in_many_ways_and_blank_in_some() {
    let spec = panel(6, clocks(90));
    let spoiled = seen(&spec, Hazard::Malformed, outcomes);
    assert!(spoiled.len() > 40, "{spoiled:?}");
    for sign in ["</reply>", "```json", "vote:a\nvote:b", "{\"reply\":", "\u{202e}", "先看数"] {
        assert!(spoiled.iter().any(|it| it.contains(sign)), "{sign}");
    }
    let blank = seen(&spec, Hazard::Blank, outcomes);
    assert!(blank.iter().filter(|it| it.trim().is_empty()).count() > 2, "{blank:?}");
}

#[test]
fn a_reply_that_breaks_off_is_a_fault_and_is_paid_for() {
    let mut spec = Spec::clone(&panel(2, clocks(90)));
    spec.team.agents.iter_mut().for_each(|agent| agent.retries = 0);
    let spec = Arc::new(spec);
    let seen = seen(&spec, Hazard::CutOff, outcomes);
    assert!(seen.iter().any(|it| it.contains("Incomplete") && it.contains("cut off after 3 ch")));
    let cut = (0..RUNS).map(|seed| live(&spec, seed, [Hazard::CutOff])).find(|sim| {
        let tokens = sim.run.ledger().run.tokens;
        tokens.input == 600 && tokens.output < 120
    });
    assert!(cut.is_some(), "the request was read, and some of the reply written");
}

#[test]
fn under_a_limit_nothing_is_tried_again_that_has_cost_something() {
    let free = panel(2, clocks(90));
    let mut metered = Spec::clone(&free);
    metered.limits = Limits { tokens: Some(100_000), ..Limits::default() };
    let metered = Arc::new(metered);
    let cut = |spec: &Arc<Spec>| {
        let runs = (0..RUNS).map(|seed| live(spec, seed, [Hazard::CutOff]));
        runs.map(|sim| outcomes(&sim).iter().filter(|it| it.contains("Incomplete")).count()).sum()
    };
    let (free, metered): (usize, usize) = (cut(&free), cut(&metered));
    assert!(free * 4 < metered, "{free} and {metered} calls ended cut off");
}

#[test]
fn silence_lasts_until_a_clock_strikes_or_the_back_end_gives_up() {
    let timed = seen(&panel(1, clocks(90)), Hazard::Silence, outcomes);
    assert!(timed.contains("TimedOut"), "{timed:?}");
    let untimed = panel(1, Clocks { timeout: None, call_timeout: None });
    let untimed = seen(&untimed, Hazard::Silence, outcomes);
    assert!(untimed.iter().any(|it| it.contains("nothing came for 600 s")), "{untimed:?}");
    assert!(!untimed.contains("TimedOut"));
}

/// How often an answer of each run came for an attempt that was settled already.
fn unasked(sim: &Sim) -> usize {
    let mut settled = BTreeSet::new();
    let events = sim.log.iter().map(|record| &record.event);
    events
        .filter(|event| match event {
            Event::Answered { key, attempt, .. } => !settled.insert((key.clone(), *attempt)),
            Event::Withdrawn { key, .. } => {
                settled.insert((key.clone(), 1));
                false
            }
            _ => false,
        })
        .count()
}

#[test]
fn duplicates_and_late_answers_come_and_are_paid_for_once() {
    let spec = panel(3, clocks(90));
    let doubled: Vec<Sim> = (0..RUNS).map(|seed| live(&spec, seed, [Hazard::Duplicates])).collect();
    assert!(doubled.iter().map(unasked).sum::<usize>() > 20);
    for sim in doubled {
        assert_eq!(kept(&sim), Ok(()));
        assert_eq!(sim.run.ledger().run.tokens.total(), 9 * 120);
        assert_eq!(view::status(&sim.run, false).0, Status::Done);
    }
    let hazards = [Hazard::Silence, Hazard::Late];
    let late: Vec<Sim> = (0..RUNS).map(|seed| live(&spec, seed, hazards)).collect();
    assert!(late.iter().map(unasked).sum::<usize>() > 20);
    for sim in late {
        assert_eq!(kept(&sim), Ok(()));
    }
}

#[test]
fn crashes_happen_before_and_after_what_was_decided_is_durable() {
    let spec = panel(3, clocks(90));
    let crashed: Vec<Sim> = (0..RUNS).map(|seed| live(&spec, seed, [Hazard::Crashes])).collect();
    let often = crashed.iter().filter(|sim| sim.crashes > 1).count();
    assert!(often > 20, "only {often} runs had more than one crash");
    for sim in crashed {
        assert_eq!(kept(&sim), Ok(()));
        assert_eq!(sim.run.ledger().run.tokens.total(), 9 * 120);
        assert_eq!(view::status(&sim.run, false).0, Status::Done);
    }
}

/// A world in which the engine dies once, beside the step after which the log has so many records.
struct Crash<'a> {
    world: &'a mut dyn World,
    at: u64,
    how: Disturbance,
}

impl World for Crash<'_> {
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        self.world.answer(spec, run, key, entry)
    }

    fn disturb(&mut self, sim: &Sim) -> Option<Disturbance> {
        let is_due = sim.crashes == 0 && sim.run.seq() == self.at;
        is_due.then(|| self.how.clone())
    }
}

#[test]
fn a_crash_between_any_two_steps_changes_neither_the_end_nor_the_totals() {
    let hazards = [
        Hazard::Latency,
        Hazard::Errors,
        Hazard::RateLimits,
        Hazard::Malformed,
        Hazard::Blank,
        Hazard::CutOff,
        Hazard::Silence,
    ];
    let mut crashes = 0;
    for spec in teams() {
        for seed in 0..12 {
            let whole = live(&spec, seed, hazards);
            for at in 1..=whole.run.seq() {
                for how in [Disturbance::CrashBefore, Disturbance::CrashAfter] {
                    if how_ended(&whole, at, &how) {
                        continue;
                    }
                    let mut weather = Weather::new(Scripted, seed, hazards.into_iter().collect());
                    let mut world = Crash { world: &mut weather, at, how };
                    let sim = Sim::start(spec.clone(), seed, 0, &mut world).finish(&mut world);
                    assert_eq!(kept(&sim), Ok(()), "crash at {at}, seed {seed}");
                    assert_eq!(sim.run.ending(), whole.run.ending(), "crash at {at}, seed {seed}");
                    assert_eq!(sim.run.ledger(), whole.run.ledger(), "crash at {at}, seed {seed}");
                    crashes += sim.crashes;
                }
            }
        }
    }
    assert!(crashes > 500, "there were only {crashes} crashes");
}

/// Whether nothing is left to go on with once this record is durable.
fn how_ended(whole: &Sim, at: u64, how: &Disturbance) -> bool {
    at == whole.run.seq() && matches!(how, Disturbance::CrashAfter)
}
