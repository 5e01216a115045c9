//! One run that somebody cancels at any instant: while it runs, after a kill, while it resumes, twice,
//! too early, too late (rules.md 6.2, 6.3, 6.4).

use serde_json::json;

use crate::bench::{Called, Process, until};
use crate::{
    life::{Life, Moment},
    stored::records,
    trial::{Trial, open},
};

/// Lives it to its end; whether it was cancelled before it was done.
pub(crate) fn live(trial: &mut Trial) -> bool {
    if trial.random.below(3) == 0 {
        // Whoever cancels it may find it dead, or taken up by another.
        let moment = Moment::random(&mut trial.random, trial.whole);
        let mut life = Life::start(&mut trial.command(), &trial.witness, moment);
        let is_killed = life.reaches(moment) && life.kill();
        life.end();
        trial.log = records(&trial.bench);
        trial.told.push(format!("until {moment:?}: killed {is_killed}"));
    }
    let is_dead = !trial.log.is_empty() && trial.random.below(2) == 0;
    let (exit, cancels) = if is_dead {
        (None, cancel_twice(trial))
    } else {
        let moment = Moment::random(&mut trial.random, trial.whole);
        let mut life = Life::start(&mut trial.command(), &trial.witness, moment);
        let is_alive = life.reaches(moment);
        let cancels = cancel_twice(trial);
        trial.told.push(format!("cancelled at {moment:?}: alive {is_alive}"));
        (life.end(), cancels)
    };
    trial.log = records(&trial.bench);
    if cancels.iter().all(|it| it.exit == 2) && !is_dead {
        // There was no run yet.
        return false;
    }
    judge(trial, exit, cancels)
}

/// Two people cancel the run at the same moment.
fn cancel_twice(trial: &Trial) -> Vec<Called> {
    let cancels = [0, 1].map(|_| trial.bench.start(["cancel", "last", "--json"]));
    cancels.into_iter().map(Process::finish).collect()
}

fn judge(trial: &Trial, exit: Option<i32>, cancels: Vec<Called>) -> bool {
    let shown = trial.bench.last();
    let status = shown["run"]["status"].as_str().expect("it has a status");
    let is_cancelled = status == "cancelled";
    assert!(is_cancelled || status == "done", "{status}");
    // Two: the run had ended before it was taken up again.
    let exits: &[i32] = if is_cancelled { &[1, 2] } else { &[0, 2] };
    assert!(exit.is_none_or(|exit| exits.contains(&exit)), "{status}, but exit {exit:?}");
    // Two: one of them came before there was a run.
    for told in cancels.into_iter().filter(|it| it.exit != 2) {
        let told = told.must_be(0).json();
        assert_eq!(told["status"], status, "completion that came first is what is reported");
    }

    assert_eq!(open(&trial.log).len(), 0, "no call is open");
    let ends = trial.log.iter().filter(|it| it.event() == "ended").count();
    assert_eq!(ends, 1, "it ends once");
    until(&trial.witness.stub, |seen| seen.under_way == 0);
    if is_cancelled {
        let first = trial.log.iter().position(|it| it.event() == "cancel_requested");
        let end = &trial.log[first.expect("who cancelled it is in the log")..];
        let at = |number: usize| &end[number].json["at"];
        assert!((0..end.len()).all(|number| at(number) == at(0)), "one append ends the run");
        let withdrawn = end.iter().any(|it| it.event() == "withdrawn");
        let usage = &shown["run"]["meta"]["usage"]["total"];
        assert!(!withdrawn || usage["estimated"] == true, "what was cut off is estimated: {usage}");
    }
    let again = trial.bench.call(["cancel", "last", "--json"]).must_be(0).json();
    assert_eq!((&again["status"], &again["cancelled"]), (&json!(status), &json!(false)));
    trial.bench.call(["resume", "last"]).must_be(2);
    trial.bench.call(["verify", "last"]).must_be(0);
    trial.bench.call(["replay", "last"]).must_be(0);
    is_cancelled
}
