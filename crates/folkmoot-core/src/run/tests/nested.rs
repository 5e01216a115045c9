//! What holds for runs in which a member is a team, whose members may be teams in their turn.

use std::panic::RefUnwindSafe;

use super::{
    laws::{end, ends_alike, for_each_of, forks_alike, judged},
    trial::Trial,
};
use crate::{
    key::Key,
    log,
    replay::{Change, Retry, fork, replay},
    run::Run,
    sim::{Random, Sim, audit::Audit},
};

const SEEDS: u64 = 100;

fn for_each_seed(trial: fn(u64) -> Trial, law: impl Fn(Trial) + RefUnwindSafe) {
    for_each_of(0..SEEDS, trial, law);
}

/// The audit keeps books of its own: no limit of the run, of a team, of a turn of a team or of an agent
/// is passed, and no tool runs that any of the members around did not grant.
#[test]
fn no_requests_retries_or_nestings_pass_a_limit_or_widen_a_grant() {
    for_each_seed(Trial::nested, |trial| {
        let sim = trial.live();
        assert!(judged(Audit::default(), &sim, ..).has_ended());
        assert!(log::load(&sim.log) == Ok((sim.spec, sim.run)), "its log is not sound");
    });
}

#[test]
fn a_replay_decides_the_same() {
    for_each_seed(Trial::nested, |trial| {
        let Sim { log, run, .. } = trial.live();
        let replayed = replay(&log);
        assert!(replayed == Ok(run), "{:?}", replayed.err());
    });
}

#[test]
fn a_run_cut_anywhere_ends() {
    for_each_seed(Trial::nested, |trial| {
        let sim = trial.live();
        for kept in (1..sim.log.len()).step_by(1 + sim.log.len() / 3) {
            let log = &sim.log[..kept];
            let resumed = trial.resume(Run::fold(log), log);
            assert!(resumed.run.ending().is_some());
        }
    });
}

#[test]
fn a_run_cut_after_any_record_ends_like_a_whole_one() {
    for_each_seed(Trial::quiet_nested, |trial| {
        let whole = trial.live();
        let whole_end = end(&whole);
        let first = 1 + trial.world.seed as usize % 5;
        for kept in (first..whole.log.len()).step_by(1 + whole.log.len() / 6) {
            let log = &whole.log[..kept];
            let run = Run::fold(log);
            let is_comparable = ends_alike(&whole, kept, &run);
            let resumed = trial.resume(run, log);
            assert!(judged(Audit::default(), &resumed, ..).has_ended());
            if is_comparable {
                assert!(end(&resumed) == whole_end, "cut after record {kept}");
            }
        }
    });
}

#[test]
fn a_fork_in_which_nothing_changed_asks_nothing_that_was_answered() {
    for_each_seed(Trial::timeless_nested, |trial| forks_alike(&trial));
}

/// Judged by the audit, as above.
#[test]
fn no_retry_of_a_run_with_teams_widens_a_grant_or_passes_a_limit() {
    for_each_seed(Trial::quiet_nested, |trial| {
        let sim = trial.live();
        let keys: Vec<Key> = sim.run.known().iter().map(|(key, _)| key.clone()).collect();
        let mut random = Random::new(trial.world.seed);
        let from = (!keys.is_empty() && random.one_in(2)).then(|| random.pick(&keys));
        let retry = Some(Retry { from, prompt: Some("please".into()) });
        let change =
            Change { at: sim.run.seq(), spec: sim.spec.clone(), answers: Vec::new(), retry };
        let events = fork("origin", &sim.log, &change, 0);
        let begun = Sim::resume(sim.spec, Run::default(), Vec::new(), trial.world.order);
        let retried = trial.go_on(begun, events);
        assert!(judged(Audit::default(), &retried, ..).has_ended());
        assert!(replay(&retried.log).is_ok_and(|run| run == retried.run));
    });
}
