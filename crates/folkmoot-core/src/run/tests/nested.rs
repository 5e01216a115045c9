//! What holds for runs in which a member is a team, whose members may be teams in their turn.

use super::{laws::judged, trial::Trial};
use crate::{
    log,
    replay::{Change, fork, replay},
    run::Run,
    sim::{Sim, audit::Audit},
};

const SEEDS: u64 = 100;

fn for_each_seed(law: impl Fn(Trial) + std::panic::RefUnwindSafe) {
    for seed in 0..SEEDS {
        let kept = std::panic::catch_unwind(|| law(Trial::nested(seed)));
        assert!(kept.is_ok(), "the law is broken by seed {seed}");
    }
}

/// The audit keeps books of its own: no limit of the run, of a team, of a turn of a team or of an agent
/// is passed, and no tool runs that any of the members around did not grant.
#[test]
fn no_requests_retries_or_nestings_pass_a_limit_or_widen_a_grant() {
    for_each_seed(|trial| {
        let sim = trial.live();
        assert!(judged(Audit::default(), &sim, ..).has_ended());
        assert!(log::load(&sim.log) == Ok((sim.spec, sim.run)), "its log is not sound");
    });
}

#[test]
fn a_replay_decides_the_same() {
    for_each_seed(|trial| {
        let Sim { log, run, .. } = trial.live();
        let replayed = replay(&log);
        assert!(replayed == Ok(run), "{:?}", replayed.err());
    });
}

#[test]
fn a_run_cut_anywhere_ends() {
    for_each_seed(|trial| {
        let sim = trial.live();
        for kept in (1..sim.log.len()).step_by(1 + sim.log.len() / 6) {
            let log = &sim.log[..kept];
            let resumed = trial.resume(Run::fold(log), log);
            assert!(resumed.run.ending().is_some());
        }
    });
}

#[test]
fn a_fork_in_which_nothing_changed_is_made_of_what_was_answered() {
    for_each_seed(|trial| {
        let sim = trial.live();
        let (at, spec) = (sim.run.seq(), sim.spec.clone());
        let change = Change { at, spec, answers: Vec::new(), retry: None };
        let events = fork("origin", &sim.log, &change, 0);
        let sim = trial.go_on(Sim::resume(sim.spec, Run::default(), Vec::new(), 0), events);
        assert!(sim.run.ending().is_some());
    });
}
