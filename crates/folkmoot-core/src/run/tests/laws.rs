//! What holds in every run, whatever the team and whatever happens.

use std::{collections::BTreeMap, panic::RefUnwindSafe};

use super::{audit::Audit, trial::Trial};
use crate::{
    call::Fault,
    event::{Ending, Record},
    key::Key,
    known::Entry,
    limits::Ledger,
    run::Run,
    sim::Sim,
    spec::Spec,
    time::Time,
};

const SEEDS: u64 = 5000;

fn for_each_seed(seeds: u64, trial: fn(u64) -> Trial, law: impl Fn(Trial) + RefUnwindSafe) {
    for seed in 0..seeds {
        let kept = std::panic::catch_unwind(|| law(trial(seed)));
        assert!(kept.is_ok(), "the law is broken by seed {seed}");
    }
}

#[test]
fn every_log_keeps_the_rules_and_folds_to_the_state_after_every_step() {
    for_each_seed(SEEDS, Trial::disturbed, |trial| {
        let mut folded = Run::default();
        let sim = trial.live_and(|sim| {
            let folded_to = folded.seq() as usize;
            sim.log[folded_to..].iter().for_each(|record| folded.apply(record));
            assert!(folded == sim.run, "the fold of the log is another state");
        });
        assert!(Audit::of(&sim.spec, &sim.log).has_ended());
    });
}

/// Feeds what came from outside into a fresh run, at its recorded times.
fn replay(spec: &Spec, log: &[Record]) -> Vec<Record> {
    let mut run = Run::default();
    let mut replayed = Vec::new();
    let batch = |record: &Record| (record.event.is_decision(), record.at);
    for batch in log.chunk_by(|one, next| batch(one) == batch(next)) {
        if !batch[0].event.is_decision() {
            let events = batch.iter().map(|record| record.event.clone());
            replayed.extend(run.step(spec.program(), spec, events, batch[0].at).records);
        }
    }
    replayed
}

fn lines(log: &[Record]) -> Vec<String> {
    log.iter().map(|record| serde_json::to_string(record).expect("records are JSON")).collect()
}

#[test]
fn a_replay_decides_the_same_byte_for_byte() {
    for_each_seed(SEEDS, Trial::disturbed, |trial| {
        let log = trial.live().log;
        assert_eq!(lines(&replay(&trial.spec, &log)), lines(&log));
    });
}

/// Where a run has come to, whoever drove it there.
type End = (Option<Ending>, Option<Fault>, Ledger, BTreeMap<Key, Entry>);

fn end(sim: &Sim) -> End {
    let Sim { run, .. } = sim;
    let calls = run.known().iter().map(|(key, entry)| {
        let usages = vec![entry.usage()];
        (key.clone(), Entry { attempt: 0, asked: 0, settled: 0, usages, ..entry.clone() })
    });
    (run.ending().cloned(), run.stop().cloned(), run.ledger().clone(), calls.collect())
}

#[test]
fn a_run_cut_after_any_record_ends_like_a_whole_one() {
    for_each_seed(SEEDS, Trial::quiet, |trial| {
        let whole = trial.live();
        let mut run = Run::default();
        for (at, record) in whole.log.iter().enumerate() {
            run.apply(record);
            let resumed = trial.resume(run.clone(), &whole.log[..=at]);
            assert!(Audit::of(&resumed.spec, &resumed.log).has_ended());
            // A tool is not used twice, so what it would have given back is lost.
            if run.known().open().all(|(_, entry)| entry.call.is_repeatable()) {
                assert!(end(&resumed) == end(&whole), "cut after record {}", record.seq);
            }
        }
    });
}

#[test]
fn no_order_of_answers_changes_the_result() {
    let timeless = |sim: &Sim| {
        let (ending, stop, _, mut calls) = end(sim);
        for entry in calls.values_mut() {
            (entry.asked_at, entry.settled_at) = (Time::default(), Time::default());
        }
        (ending, stop, calls)
    };
    for_each_seed(SEEDS, Trial::timeless, |trial| {
        let one = timeless(&trial.live());
        assert!(timeless(&trial.reordered().live()) == one);
    });
}
