//! Crashes by the hundred: the real process against a model server, killed at random instants while it
//! runs and while it resumes (rules.md 7.1 to 7.8, 16.2, 16.5); and cancels at any instant (rules.md 6.2).
//!
//! It loads the machine, so it is a program of its own: no other test has to be in time beside it.
//! `FOLKMOOT_KILLS=1000` asks for another number of kills, and `FOLKMOOT_SEED=17` for one run only.

#![cfg(unix)]

#[path = "../cli/bench.rs"]
#[expect(dead_code, reason = "less of it is needed here")]
mod bench;
mod cancelled;
mod life;
#[path = "../cli/matching.rs"]
#[expect(dead_code, reason = "less of it is needed here")]
mod matching;
mod stored;
mod teams;
mod trial;
mod witness;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{
    teams::TEAMS,
    trial::{Kills, Trial},
    witness::Whole,
};

/// How many processes are killed unless the environment says otherwise.
const KILLS: usize = 200;

/// How many runs are cancelled.
const CANCELS: u64 = 32;

/// How many runs go on side by side: more than there are processors, so that kills come at odd times.
const LANES: usize = 6;

#[test]
fn a_run_killed_at_any_instants_ends_like_a_whole_one_and_repeats_nothing_that_was_answered() {
    let wholes = wholes();
    if let Some(seed) = number("FOLKMOOT_SEED") {
        live(seed, &wholes, Trial::live);
        return;
    }
    let wanted = number("FOLKMOOT_KILLS").map_or(KILLS, |kills| kills as usize);
    let kills = Mutex::new(Kills::default());
    let so_far = || *kills.lock().unwrap_or_else(PoisonError::into_inner);
    side_by_side(|seed| {
        let more = live(seed, &wholes, Trial::live);
        let mut kills = kills.lock().unwrap_or_else(PoisonError::into_inner);
        kills.all += more.all;
        kills.early += more.early;
        kills.resuming += more.resuming;
        kills.asking += more.asking;
        kills.all < wanted
    });
    let Kills { all, early, resuming, asking } = so_far();
    // A law that holds where nothing happens is none.
    let is_lived_through = all < KILLS || early.min(resuming).min(asking) > 0;
    assert!(is_lived_through, "{all} kills, {early} early, {resuming} resuming, {asking} asking");
}

#[test]
fn a_run_cancelled_at_any_instant_ends_once_with_nothing_open() {
    let wholes = wholes();
    if let Some(seed) = number("FOLKMOOT_SEED") {
        live(seed, &wholes, cancelled::live);
        return;
    }
    let cancelled = AtomicU64::new(0);
    side_by_side(|seed| {
        let is_cancelled = live(seed, &wholes, cancelled::live);
        let before = cancelled.fetch_add(u64::from(is_cancelled), Ordering::Relaxed);
        // On a busy machine most runs end before their cancel has started, so more are tried.
        let most =
            if before + u64::from(is_cancelled) > CANCELS / 4 { CANCELS } else { 8 * CANCELS };
        seed + 1 < most
    });
    assert!(cancelled.into_inner() > CANCELS / 4, "hardly any cancel came in time");
}

/// What comes of each team if nobody disturbs it.
fn wholes() -> Vec<Whole> {
    thread::scope(|scope| {
        let wholes: Vec<_> = TEAMS.iter().map(|team| scope.spawn(|| Whole::of(team))).collect();
        wholes.into_iter().map(|it| it.join().expect("an undisturbed run ends")).collect()
    })
}

/// Lives one run; if it fails, tells its story.
fn live<'a, T>(seed: u64, wholes: &'a [Whole], live: impl Fn(&mut Trial<'a>) -> T) -> T {
    let mut trial = Trial::new(seed, &wholes[seed as usize % wholes.len()]);
    match catch_unwind(AssertUnwindSafe(|| live(&mut trial))) {
        Ok(lived) => lived,
        Err(why) => panic!("{}", trial.story(&*why)),
    }
}

/// Lives one run after another in several lanes, as long as `goes_on` says of each that more may follow.
fn side_by_side(goes_on: impl Fn(u64) -> bool + Sync) {
    let seeds = AtomicU64::new(0);
    let lane = || while goes_on(seeds.fetch_add(1, Ordering::Relaxed)) {};
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let failed = lanes.into_iter().find_map(|lane| lane.join().err());
        if let Some(why) = failed {
            std::panic::resume_unwind(why);
        }
    });
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}
