//! Crashes by the hundred: the real process against a model server, killed at random instants while it
//! runs and while it resumes (rules.md 7.1 to 7.8, 16.2, 16.5).
//!
//! `FOLKMOOT_KILLS=1000` asks for another number of kills, and `FOLKMOOT_SEED=17` for one run only.

mod stored;
mod teams;
mod trial;
mod witness;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
};

use self::{teams::TEAMS, trial::Trial, witness::Whole};

/// How many processes are killed unless the environment says otherwise.
const KILLS: usize = 200;

/// How many runs go on side by side: more than there are processors, so that kills come at odd times.
const LANES: usize = 6;

#[test]
fn a_run_killed_at_any_instants_ends_like_a_whole_one_and_repeats_nothing_that_was_answered() {
    let wholes = thread::scope(|scope| {
        let wholes: Vec<_> = TEAMS.iter().map(|team| scope.spawn(|| Whole::of(team))).collect();
        wholes.into_iter().map(|it| it.join().expect("an undisturbed run ends")).collect::<Vec<_>>()
    });
    let live = |seed: u64| {
        let whole = &wholes[seed as usize % wholes.len()];
        let mut trial = Trial::new(seed, whole);
        match catch_unwind(AssertUnwindSafe(|| trial.live())) {
            Ok(kills) => kills,
            Err(why) => panic!("{}", trial.story(&*why)),
        }
    };
    if let Some(seed) = number("FOLKMOOT_SEED") {
        live(seed);
        return;
    }
    let wanted = number("FOLKMOOT_KILLS").map_or(KILLS, |kills| kills as usize);
    let (seeds, kills) = (AtomicU64::new(0), AtomicUsize::new(0));
    let lane = || {
        while kills.load(Ordering::Relaxed) < wanted {
            kills.fetch_add(live(seeds.fetch_add(1, Ordering::Relaxed)), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        (0..LANES).for_each(|_| drop(scope.spawn(lane)));
    });
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}
