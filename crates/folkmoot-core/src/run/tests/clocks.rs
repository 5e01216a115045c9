//! Clocks: strategies.md §1.7, rules.md 6.

use super::hand::{Hand, answered, panel, says, used};
use crate::{
    call::{Call, Prompt, ToolCall},
    event::Ending,
    limits::Limits,
    programs::Clocks,
    scope::{Program, Scope, Step},
    spec::{Collaboration, Spec},
    testing::{agent, spec},
    time::{Duration, Time},
};

fn ms(ms: u64) -> Time {
    Time::default() + Duration::from_millis(ms)
}

#[test]
fn if_an_answer_and_a_clock_meet_the_order_of_the_log_decides() {
    let spec = panel(&["a", "b"], 1, 100);
    let mut hand = Hand::start(&spec);
    assert_eq!(hand.wakes_at, Some(ms(100)));
    hand.at(100).answer("round-1/a", "A");
    hand.at(100).tick();
    hand.at(100).answer("round-1/b", "B");
    assert_eq!(hand.fault("round-1/a"), "none");
    assert_eq!(hand.fault("round-1/b"), "timeout");
}

#[test]
fn a_clock_that_strikes_too_early_changes_nothing() {
    let spec = panel(&["a"], 1, 100);
    let mut hand = Hand::start(&spec);
    hand.at(99).tick();
    assert_eq!(hand.open(), "round-1/a");
    assert_eq!(hand.wakes_at, Some(ms(100)));
}

#[test]
fn the_usage_of_a_late_answer_is_booked_and_its_words_are_not_heard() {
    let spec = panel(&["a", "b"], 1, 100);
    let mut hand = Hand::start(&spec);
    hand.at(10).answer("round-1/b", "B");
    hand.at(100).tick();
    assert_eq!(hand.last(2), ["withdrawn round-1/a: timeout", "ended answered"]);
    hand.at(200).feed(answered("round-1/a", 1, says("A"), used(30, 3)));
    assert_eq!(hand.fault("round-1/a"), "timeout");
    assert_eq!(hand.run.ledger().run.tokens.total(), 33);
    assert_eq!(hand.reason(), "answered");
}

#[test]
fn queued_calls_of_a_phase_time_out_without_starting() {
    let mut spec = panel(&["a", "b", "c"], 1, 100);
    spec.limits.concurrency = Some(1);
    let mut hand = Hand::start(&spec);
    hand.at(60).answer("round-1/a", "A");
    assert_eq!(hand.open(), "round-1/b");
    hand.at(100).tick();
    let end = ["withdrawn round-1/b: timeout", "refused round-1/c: timeout", "ended answered"];
    assert_eq!(hand.last(3), end);
}

/// Otherwise it would be begun, paid for, and called off by the clock that strikes a moment later.
#[test]
fn nothing_starts_in_a_phase_that_is_over_although_its_clock_strikes_late() {
    let mut spec = panel(&["a", "b"], 1, 100);
    spec.limits.concurrency = Some(1);
    let mut hand = Hand::start(&spec);
    hand.at(101).answer("round-1/a", "A");
    assert_eq!(hand.last(2), ["refused round-1/b: timeout", "ended answered"]);
}

#[test]
fn waiting_for_a_slot_counts_in_the_phase_and_never_in_the_call() {
    let mut spec = panel(&["a", "b"], 1, 100);
    let call_timeout = Some(Duration::from_millis(40));
    if let Collaboration::Broadcast(it) = &mut spec.collaboration {
        it.clocks.call_timeout = call_timeout;
    }
    spec.limits.concurrency = Some(1);
    let mut hand = Hand::start(&spec);
    hand.at(30).answer("round-1/a", "A");
    assert_eq!(hand.call("round-1/b").expires, Some(ms(70)));
    let mut hand = Hand::start(&spec);
    hand.at(40).tick();
    hand.at(80).tick();
    assert_eq!(hand.fault("round-1/b"), "timeout");
}

#[test]
fn the_deadline_ends_the_run_at_once_and_withdraws_all_that_is_open() {
    let mut spec = panel(&["a", "b"], 2, 1000);
    spec.limits.time = Some(Duration::from_millis(50));
    let mut hand = Hand::start(&spec);
    hand.at(20).answer("round-1/b", "B");
    hand.at(50).tick();
    let end = ["ticked", "withdrawn round-1/a: deadline", "ended last_round_failed"];
    assert_eq!(hand.last(3), end);
    assert_eq!(hand.wakes_at, None);
}

#[test]
fn nothing_starts_after_the_deadline_although_its_clock_strikes_late() {
    let mut spec = panel(&["a"], 2, 1000);
    spec.limits.time = Some(Duration::from_millis(50));
    let mut hand = Hand::start(&spec);
    hand.at(51).answer("round-1/a", "A");
    assert_eq!(hand.last(2), ["refused round-2/a: deadline", "ended last_round_failed"]);
}

#[test]
fn a_time_limit_of_zero_lets_nothing_start() {
    let mut spec = panel(&["a"], 1, 1000);
    spec.limits.time = Some(Duration::default());
    let hand = Hand::start(&spec);
    assert_eq!(hand.last(2), ["refused round-1/a: deadline", "ended all_failed"]);
}

/// An agent is asked, then a tool is used for it, `n` times at once; each has its own clock.
#[derive(Debug)]
struct Workshop(u32, Clocks);

impl Program for Workshop {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let benches = cx.all(1..=self.0, |n| {
            let bench = self.1.phase(&cx.at(n));
            let plan = bench.ask("plan", &"a".into(), Prompt::task())?;
            let request = ToolCall {
                id: "1".into(),
                name: "saw".into(),
                arguments: plan.key.as_str().into(),
            };
            bench.call("work", Call::Tool { agent: "a".into(), request, repeatable: true })
        })?;
        let keys = benches.into_iter().map(|reply| reply.key).collect();
        Ok(Ending::done("built", keys))
    }
}

fn workshop(timeout_ms: u64, limits: Limits) -> (Spec, Clocks) {
    let mut alone = agent("a", &[]);
    alone.limits = limits;
    let timeout = Some(Duration::from_millis(timeout_ms));
    (
        Spec { ..spec(vec![alone], panel(&["a"], 1, 1).collaboration) },
        Clocks { timeout, call_timeout: None },
    )
}

#[test]
fn phases_side_by_side_have_clocks_of_their_own() {
    let (spec, clocks) = workshop(100, Limits::default());
    let workshop = Workshop(2, clocks);
    let mut hand = Hand::follow(&workshop, &spec);
    hand.at(60).answer("1/plan", "A");
    hand.at(80).answer("2/plan", "B");
    assert_eq!(hand.open(), "1/work 2/work");
    assert_eq!(hand.call("1/work").expires, Some(ms(100)));
    assert_eq!(hand.call("2/work").expires, Some(ms(100)));
}

#[test]
fn calls_side_by_side_use_up_the_time_of_their_agent_together() {
    let time = Some(Duration::from_millis(100));
    let (spec, clocks) = workshop(1000, Limits { time, ..Limits::default() });
    let workshop = Workshop(2, clocks);
    let mut hand = Hand::follow(&workshop, &spec);
    assert_eq!(hand.wakes_at, Some(ms(50)));
    hand.at(20).answer("1/plan", "A");
    // Of 100 the two have used 40, and a third call uses up the rest together with the second.
    assert_eq!(hand.wakes_at, Some(ms(50)));
    hand.at(50).tick();
    assert_eq!(hand.fault("1/work"), "budget exhausted");
    assert_eq!(hand.fault("2/plan"), "budget exhausted");
    assert_eq!(hand.run.ledger().run.time, Duration::from_millis(100));
    assert_eq!(hand.run.stop(), None);
}

#[test]
fn time_that_cannot_be_shared_evenly_is_used_up_before_it_is_called_so() {
    let time = Some(Duration::from_millis(100));
    let (spec, clocks) = workshop(1000, Limits { time, ..Limits::default() });
    let workshop = Workshop(3, clocks);
    let hand = Hand::follow(&workshop, &spec);
    assert_eq!(hand.wakes_at, Some(Time(33_334)));
}
