//! What holds in every run, whatever the team and whatever happens.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    panic::RefUnwindSafe,
    slice::SliceIndex,
    sync::Arc,
};

use super::{bounds::any_spec, tables, trial::Trial};
use crate::{
    call::{Call, Fault},
    event::{Ending, Event, Record},
    key::Key,
    known::Entry,
    limits::Ledger,
    log,
    render::{self, Message},
    replay::{Change, Retry, fork, replay},
    run::Run,
    sim::{Random, Sim, audit::Audit},
    time::Time,
    view,
};

const SEEDS: u64 = 5000;

pub(super) fn for_each_seed(trial: fn(u64) -> Trial, law: impl Fn(Trial) + RefUnwindSafe) {
    for_each_of(0..SEEDS, trial, law);
}

pub(super) fn for_each_of(
    seeds: Range<u64>,
    trial: fn(u64) -> Trial,
    law: impl Fn(Trial) + RefUnwindSafe,
) {
    for seed in seeds {
        let kept = std::panic::catch_unwind(|| law(trial(seed)));
        assert!(kept.is_ok(), "the law is broken by seed {seed}");
    }
}

/// The audit gone on with `records` of `sim`.
pub(super) fn judged(
    audit: Audit,
    sim: &Sim,
    records: impl SliceIndex<[Record], Output = [Record]>,
) -> Audit {
    audit.go_on(&sim.spec, &sim.log[records]).unwrap_or_else(|broken| panic!("{broken}"))
}

#[test]
fn every_log_keeps_the_rules_and_folds_to_the_state_after_every_step() {
    for_each_seed(Trial::disturbed, |trial| {
        let (mut folded, mut crashes) = (Run::default(), 0);
        let sim = trial.live_and(|sim| {
            if sim.crashes > crashes {
                (folded, crashes) = (Run::default(), sim.crashes);
            }
            let folded_to = folded.seq() as usize;
            sim.log[folded_to..].iter().for_each(|record| folded.apply(record));
            assert!(folded == sim.run, "the fold of the log is another state");
        });
        assert!(judged(Audit::default(), &sim, ..).has_ended());
        assert!(log::load(&sim.log) == Ok((sim.spec, sim.run)), "its log is not sound");
    });
}

#[test]
fn a_replay_decides_the_same_byte_for_byte() {
    for_each_seed(Trial::disturbed, |trial| {
        let Sim { log, run, .. } = trial.live();
        let read = log.iter().map(|record| Record::parse(&record.to_json()));
        let read: Vec<Record> = read.collect::<Result<_, _>>().expect("a log can be read back");
        assert!(read == log, "what was written is not what is read");
        let replayed = replay(&read).unwrap_or_else(|divergence| panic!("{divergence}"));
        assert!(replayed == run, "the replay comes to another state");
    });
}

/// The tool calls of a conversation that have no result directly behind them, and the results that
/// nobody asked for.
fn unmatched(messages: &[Message]) -> Vec<Arc<str>> {
    let mut open: Vec<Arc<str>> = Vec::new();
    let mut unmatched = Vec::new();
    for message in messages {
        let asked = open.iter().position(|id| Some(id) == message.tool_call_id.as_ref());
        match (&message.tool_call_id, asked) {
            (Some(_), Some(at)) => drop(open.remove(at)),
            (Some(id), None) => unmatched.push(id.clone()),
            (None, _) => unmatched.append(&mut open),
        }
        open.extend(message.tool_calls.iter().map(|call| call.id.clone()));
    }
    unmatched.append(&mut open);
    unmatched
}

#[test]
fn every_request_extends_the_one_it_continues_and_has_no_loose_ends() {
    for_each_seed(Trial::quiet, |trial| {
        let known = trial.live().run.known().clone();
        let sent = |key: &Key| {
            let call = &known.get(key.as_str())?.call;
            let Call::Agent { prompt, .. } = call else { return None };
            let agent = trial.spec.team.asked(call);
            Some((render::messages(&trial.spec, &known, &agent, prompt), &prompt.continues))
        };
        for (key, _) in known.iter() {
            let Some((messages, continued)) = sent(key) else { continue };
            assert_eq!(unmatched(&messages), [], "{key}");
            let Some((before, _)) = continued.as_ref().and_then(sent) else { continue };
            let (last, before) = before.split_last().expect("a request is never empty");
            assert_eq!(messages[..before.len()], *before, "{key}");
            assert!(messages[before.len()].content.starts_with(&*last.content), "{key}");
        }
    });
}

/// Where a run has come to, whoever drove it there.
pub(super) type End = (Option<Ending>, Option<Fault>, Ledger, BTreeMap<Key, Entry>);

pub(super) fn end(sim: &Sim) -> End {
    let Sim { run, .. } = sim;
    let calls = run.known().iter().map(|(key, entry)| {
        let usages = vec![entry.usage()];
        (key.clone(), Entry { attempt: 0, asked: 0, settled: 0, usages, ..entry.clone() })
    });
    (run.ending().cloned(), run.stop().cloned(), run.ledger().clone(), calls.collect())
}

/// Whether what is cut off after so many records, and then is `run`, comes to the same as all of it.
pub(super) fn ends_alike(whole: &Sim, kept: usize, run: &Run) -> bool {
    // A tool is not used twice, so what it would have given back is lost.
    let is_repeated = run.known().open().all(|(_, entry)| entry.call.is_repeatable());
    // Who is refused at a round table may end it. A store keeps all of a step or nothing; if only a part
    // of it is kept, those behind are not asked any more.
    let is_step = whole.log.get(kept).is_none_or(|next| !next.event.is_decision());
    is_repeated && (is_step || !any_spec(&whole.spec, tables::is_table))
}

#[test]
fn a_run_cut_after_any_record_ends_like_a_whole_one() {
    for_each_seed(Trial::quiet, |trial| {
        let whole = trial.live();
        let whole_end = end(&whole);
        let (mut run, mut audit) = (Run::default(), Audit::default());
        for (at, record) in whole.log.iter().enumerate() {
            run.apply(record);
            let resumed = trial.resume(run.clone(), &whole.log[..=at]);
            audit = judged(audit, &resumed, at..=at);
            assert!(judged(audit.clone(), &resumed, at + 1..).has_ended());
            // Mail for which there was no room may have some by then.
            let came = |sim: &Sim| {
                sim.run.known().all_mail().map(|(key, ..)| key.clone()).collect::<Vec<_>>()
            };
            if ends_alike(&whole, at + 1, &run) && came(&resumed) == came(&whole) {
                assert!(end(&resumed) == whole_end, "cut after record {}", record.seq);
            }
        }
    });
}

#[test]
fn a_fork_in_which_nothing_changed_asks_nothing_that_it_took_over() {
    for_each_seed(Trial::quiet, |trial| {
        let Sim { log, run, .. } = trial.live();
        let at = 1 + trial.world.seed % run.seq();
        let spec = trial.spec.clone();
        let change = Change { at, spec, answers: Vec::new(), retry: None };
        let events = fork("origin", &log, &change, 0);
        let taken = events.iter().filter(|it| !matches!(it, Event::Mailed { .. }));
        let taken: BTreeSet<Key> = taken.filter_map(|it| it.key().cloned()).collect();
        let stepped =
            Run::default().step(trial.spec.program(), &trial.spec, events, Time::default());
        let decided = stepped.records.iter().filter(|record| record.event.is_decision());
        let decided = decided.filter_map(|record| record.event.key());
        assert!(decided.into_iter().all(|key| !taken.contains(key)));
    });
}

/// Whether the world had its say on a call, or nobody wanted it any longer; what was refused, stopped
/// or lost may go otherwise in a fork.
fn has_come(entry: &Entry) -> bool {
    match &entry.outcome {
        Some(Ok(_) | Err(Fault::Failed { .. } | Fault::TimedOut | Fault::Unwanted)) => true,
        Some(Err(Fault::Deadline | Fault::Cancelled | Fault::OverBudget { .. } | Fault::Lost))
        | None => false,
    }
}

/// A fork at the end of a run in which everything was answered asks nothing and comes to the same.
pub(super) fn forks_alike(trial: &Trial) {
    let Sim { log, run, spec, .. } = trial.live();
    if !run.known().iter().all(|(_, entry)| has_come(entry)) {
        return;
    }
    let change = Change { at: run.seq(), spec: spec.clone(), answers: Vec::new(), retry: None };
    let events = fork("origin", &log, &change, 0);
    let mut forked = Run::default();
    let stepped = forked.step(spec.program(), &spec, events, Time::default());
    for record in &stepped.records {
        if let Event::Asked { key, .. } = &record.event {
            let of_nobody = run.known().get(key.as_str()).and_then(|entry| entry.outcome.as_ref());
            assert_eq!(of_nobody, Some(&Err(Fault::Unwanted)), "{key} is asked again");
        }
    }
    assert_eq!(forked.ending(), run.ending());
}

#[test]
fn a_fork_of_a_run_in_which_all_was_answered_asks_nothing_and_ends_alike() {
    for_each_seed(Trial::timeless, |trial| forks_alike(&trial));
}

#[test]
fn a_retry_takes_over_what_was_answered_and_asks_each_call_that_was_not() {
    for_each_seed(Trial::quiet, |trial| {
        let Sim { log, run: first, spec, .. } = trial.live();
        let mut random = Random::new(trial.world.seed);
        let keys: Vec<Key> = first.known().iter().map(|(key, _)| key.clone()).collect();
        let from = (!keys.is_empty() && random.one_in(2)).then(|| random.pick(&keys));
        let prompt = random.one_in(2).then(|| "please".into());
        let retry = Some(Retry { from: from.clone(), prompt });
        let change = Change { at: first.seq(), spec: spec.clone(), answers: Vec::new(), retry };
        let events = fork("origin", &log, &change, 0);
        for event in &events {
            let Event::Inherited { key, call, nth, .. } = event else { continue };
            let entry = first.known().get(key.as_str()).expect("it was asked there");
            assert_eq!((call, *nth), (&entry.call, entry.nth), "{key} is not as it was");
            let is_answered = matches!(entry.outcome, Some(Ok(_)));
            let is_tool = matches!(call, Call::Tool { .. });
            let has_answer = is_answered || is_tool || first.known().is_rescued(key);
            assert!(has_answer || from.is_some(), "{key} has no answer");
            assert_ne!(from.as_ref(), Some(key), "it is to be asked again");
        }
        let sim = Sim::resume(spec, Run::default(), Vec::new(), trial.world.order);
        let retried = trial.go_on(sim, events);
        assert!(replay(&retried.log).is_ok_and(|run| run == retried.run));
        for (agent, sent) in first.numbers() {
            assert!(retried.run.numbers()[agent] >= *sent, "{agent:?} begins at an old number");
        }
    });
}

#[test]
fn an_answer_amended_while_nobody_drives_the_run_is_decided_on_when_it_goes_on() {
    for_each_seed(Trial::quiet, |trial| {
        let mut random = Random::new(trial.world.order);
        // One of its steps, without knowing how many there are.
        let (mut cut, mut steps) = (None, 0);
        trial.live_and(|sim| {
            steps += 1;
            if sim.run.ending().is_none() && random.one_in(steps) {
                cut = Some((sim.run.clone(), sim.log.clone()));
            }
        });
        let Some((mut run, mut log)) = cut else { return };
        let calls: Vec<Key> = run.known().iter().map(|(key, _)| key.clone()).collect();
        for _ in 0..random.below(3).min(calls.len() as u64) {
            let events = run.amendment(&trial.spec, &random.pick(&calls), "mine".into());
            log.extend(run.note(events));
        }
        let resumed = trial.resume(run, &log);
        assert!(replay(&resumed.log).is_ok_and(|run| run == resumed.run));
        assert_eq!(resumed.run.known().open_count(), 0);
    });
}

#[test]
fn no_order_of_answers_changes_the_result() {
    let timeless = |sim: &Sim| {
        let (ending, stop, _, mut calls) = end(sim);
        for entry in calls.values_mut() {
            (entry.asked_at, entry.settled_at, entry.nth) = (Time::default(), Time::default(), 0);
        }
        (ending, stop, calls)
    };
    for_each_seed(Trial::timeless, |trial| {
        let one = timeless(&trial.live());
        assert!(timeless(&trial.reordered().live()) == one);
    });
}

/// Damage is found by the hashes of a store; but whoever reads on all the same gets no panic.
#[test]
fn no_damage_to_a_log_makes_its_fold_or_its_result_panic() {
    for_each_seed(Trial::disturbed, |trial| {
        let (log, mut random) = (trial.live().log, Random::new(trial.world.order));
        let damaged: Vec<Record> = log.iter().map(|_| random.pick(&log)).collect();
        let outcome = view::outcome("damaged", &trial.spec, &Run::fold(&damaged), false);
        assert_eq!(outcome.prompt, "TASK");
    });
}

/// Everything that the laws must have been tried on; a law that holds where nothing happens is none.
const LIVED_THROUGH: [&str; 32] = [
    "asked",
    "answered",
    "amended",
    "resumed",
    "cancel_requested",
    "ticked",
    "woken",
    "refused over_budget calls run",
    "refused over_budget tokens run",
    "refused over_budget cost run",
    "refused over_budget calls agent",
    "refused over_budget tokens agent",
    "refused over_budget cost agent",
    "refused over_budget time agent",
    "refused deadline",
    "refused cancelled",
    "refused timed_out",
    "refused failed",
    "withdrawn cancelled",
    "withdrawn deadline",
    "withdrawn timed_out",
    "withdrawn over_budget time agent",
    "withdrawn lost",
    "withdrawn unwanted",
    "ended answered",
    "ended judged",
    "ended majority",
    "ended converged",
    "ended reported",
    "ended all_failed",
    "ended judge_failed",
    "ended last_round_failed",
];

#[test]
fn the_random_runs_live_through_everything() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS / 2 {
        for record in Trial::disturbed(seed).live().log {
            let event = serde_json::to_value(&record.event).expect("events are JSON");
            let words = ["event", "fault", "limit", "of", "reason"].map(|it| event[it].as_str());
            seen.insert(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
        }
    }
    let missed: Vec<&str> = LIVED_THROUGH.into_iter().filter(|it| !seen.contains(*it)).collect();
    assert_eq!(missed, [""; 0]);
}
