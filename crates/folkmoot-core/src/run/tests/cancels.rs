//! Cancels at every instant of every kind of run: rules.md 6.2, 6.3, 6.7, 16.2.

use super::{laws::for_each_seed, trial::Trial};
use crate::{
    call::Fault,
    event::{Event, Record, Settled},
    replay::replay,
    run::{Command, Run},
    scope::Program,
    sim::audit::Audit,
    spec::Spec,
    view::{self, Status},
};

/// What may come together with a cancel: another one, or a process that takes up the run (before or
/// after the wish was left).
fn wishes() -> [Vec<Event>; 4] {
    let (cancel, resumed) = (|| Event::CancelRequested, || Event::Resumed { wall: 0 });
    [
        vec![cancel()],
        vec![cancel(), cancel()],
        vec![resumed(), cancel()],
        vec![cancel(), resumed(), cancel()],
    ]
}

// One append ends the run and withdraws all that is open, whenever the cancel comes.
#[test]
fn a_cancel_after_any_record_ends_the_run_in_one_append_with_nothing_open() {
    for_each_seed(Trial::quiet, |trial| {
        let whole = trial.live();
        let (spec, program) = (&*whole.spec, whole.spec.program());
        let (mut run, mut audit) = (Run::default(), Audit::default());
        for (at, record) in whole.log.iter().enumerate() {
            run.apply(record);
            audit = judged(audit, spec, &whole.log[at..=at]);
            let events = wishes()[(trial.world.seed as usize + at) % 4].clone();
            let mut cancelled = run.clone();
            let records = cancelled.step(program, spec, events, run.at()).records;
            let audit = judged(audit.clone(), spec, &records);
            assert!(audit.has_ended() && cancelled.ending().is_some(), "after {}", record.seq);
            assert_eq!(cancelled.known().open_count(), 0);
            let commands = cancelled.commands(&records);
            assert!(commands.iter().all(|it| matches!(it, Command::Abort(_))), "{commands:?}");
            let expected = status_after(&run);
            assert_eq!(view::status(&cancelled, true).0, expected, "after {}", record.seq);
            comes_too_late(&mut cancelled, program, spec);
        }
    });
}

/// The audit gone on with `records`.
fn judged(audit: Audit, spec: &Spec, records: &[Record]) -> Audit {
    audit.go_on(spec, records).unwrap_or_else(|broken| panic!("{broken}"))
}

/// Completion that came first is what is reported.
fn status_after(run: &Run) -> Status {
    match (run.ending(), run.stop()) {
        (None, Some(Fault::Deadline)) => Status::Deadline,
        (None, _) => Status::Cancelled,
        (Some(_), _) => view::status(run, true).0,
    }
}

/// Answers to what was called off, clocks, and further cancels change nothing but the bill.
fn comes_too_late(run: &mut Run, program: &dyn Program, spec: &Spec) {
    let calls = run.known().iter().filter(|(_, entry)| entry.is_charged());
    let mut late: Vec<Event> = calls
        .map(|(key, entry)| Event::Answered {
            key: key.clone(),
            attempt: entry.attempt,
            settled: Settled::Fault(Fault::Lost),
            usage: run.estimate(spec, key),
        })
        .collect();
    late.extend([Event::CancelRequested, Event::Ticked]);
    let outcomes = |run: &Run| -> Vec<_> {
        run.known().iter().map(|(key, entry)| (key.clone(), entry.outcome.clone())).collect()
    };
    let before = (outcomes(run), run.ending().cloned(), run.stop().cloned());
    let stepped = run.step(program, spec, late, run.at());
    assert!(stepped.records.iter().all(|record| !record.event.is_decision()));
    assert_eq!(stepped.wakes_at, None);
    assert!(before == (outcomes(run), run.ending().cloned(), run.stop().cloned()));
}

#[test]
fn a_cancelled_run_replays_wherever_it_was_cancelled() {
    for_each_seed(Trial::quiet, |trial| {
        // What is decided together is stored together.
        let mut ends = Vec::new();
        let whole = trial.live_and(|sim| ends.push(sim.log.len()));
        let at = ends[trial.world.seed as usize % ends.len()];
        let mut log = whole.log[..at].to_vec();
        let mut run = Run::fold(&log);
        let events = [Event::Resumed { wall: 0 }, Event::CancelRequested];
        let now = run.at();
        log.extend(run.step(whole.spec.program(), &whole.spec, events, now).records);
        let replayed = replay(&log).unwrap_or_else(|divergence| panic!("{divergence}"));
        assert!(replayed == run, "the replay comes to another state");
    });
}
