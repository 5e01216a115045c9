//! Budgets that stop a run, and people who do: strategies.md §1.8, rules.md 4 and 6.

use super::hand::{Hand, panel};
use crate::{
    call::Fault,
    event::Event,
    key::Key,
    run::Command,
    view::{self, Status},
};

#[test]
fn an_agents_own_limit_fails_only_its_own_calls() {
    let mut spec = panel(&["a", "b"], 2, 1000);
    spec.team.agents[0].limits.calls = Some(1);
    let mut hand = Hand::start(&spec);
    hand.answer("round-1/a", "A");
    hand.answer("round-1/b", "B");
    assert_eq!(hand.fault("round-2/a"), "budget exhausted");
    assert_eq!(hand.open(), "round-2/b");
    assert_eq!(hand.run.stop(), None);
    hand.answer("round-2/b", "B");
    assert_eq!(view::status(&hand.run, true).0, Status::Done);
}

#[test]
fn a_spent_budget_lets_open_calls_finish_and_starts_nothing_more() {
    let mut spec = panel(&["a", "b", "c"], 2, 1000);
    spec.limits.calls = Some(2);
    let mut hand = Hand::start(&spec);
    assert_eq!(hand.open(), "round-1/a round-1/b");
    assert_eq!(hand.fault("round-1/c"), "budget exhausted");
    hand.answer("round-1/a", "A");
    assert_eq!(hand.reason(), "");
    hand.answer("round-1/b", "B");
    assert_eq!(hand.reason(), "last_round_failed");
    assert_eq!(view::status(&hand.run, true), (Status::BudgetExhausted, Some("calls".to_owned())));
}

#[test]
fn a_budget_of_exactly_what_is_needed_is_enough() {
    let mut spec = panel(&["a", "b"], 2, 1000);
    spec.limits.calls = Some(4);
    let mut hand = Hand::start(&spec);
    for key in ["round-1/a", "round-1/b", "round-2/a", "round-2/b"] {
        hand.answer(key, "x");
    }
    assert_eq!(view::status(&hand.run, true).0, Status::Done);
}

#[test]
fn a_cancel_ends_the_run_at_once_and_withdraws_all_that_is_open() {
    let spec = panel(&["a", "b"], 2, 1000);
    let mut hand = Hand::start(&spec);
    hand.answer("round-1/a", "A");
    let commands = hand.feed(Event::CancelRequested);
    assert_eq!(commands, [Command::Abort(Key::parse("round-1/b"))]);
    let end = ["withdrawn round-1/b: cancelled", "ended last_round_failed"];
    assert_eq!(hand.last(2), end);
    assert_eq!(view::status(&hand.run, true).0, Status::Cancelled);
}

#[test]
fn what_a_spent_budget_let_finish_does_not_outlive_a_cancel_or_the_deadline() {
    let mut spec = panel(&["a", "b"], 1, 1000);
    spec.limits.calls = Some(1);
    spec.limits.time = Some(crate::time::Duration::from_millis(50));
    let mut hand = Hand::start(&spec);
    hand.feed(Event::CancelRequested);
    assert_eq!(hand.last(2), ["withdrawn round-1/a: cancelled", "ended all_failed"]);
    let mut hand = Hand::start(&spec);
    hand.at(50).tick();
    assert_eq!(hand.last(2), ["withdrawn round-1/a: deadline", "ended all_failed"]);
}

#[test]
fn a_cancel_that_comes_too_late_does_not_change_how_it_ended() {
    let mut spec = panel(&["a"], 1, 1000);
    spec.limits.time = Some(crate::time::Duration::from_millis(50));
    let mut hand = Hand::start(&spec);
    hand.at(49).answer("round-1/a", "A");
    hand.at(50).feed(Event::CancelRequested);
    hand.tick();
    assert_eq!(hand.run.stop(), None);
    assert_eq!(view::status(&hand.run, true).0, Status::Done);
}

#[test]
fn a_second_cancel_changes_nothing() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::start(&spec);
    hand.feed(Event::CancelRequested);
    assert_eq!(hand.feed(Event::CancelRequested), []);
    assert_eq!(hand.run.stop(), Some(&Fault::Cancelled));
    assert_eq!(hand.last(2), ["ended all_failed", "cancel requested"]);
}

#[test]
fn a_concurrency_limit_of_zero_lets_nothing_start() {
    let mut spec = panel(&["a"], 1, 1000);
    spec.limits.concurrency = Some(0);
    let hand = Hand::start(&spec);
    assert_eq!(hand.last(2), ["refused round-1/a: budget exhausted", "ended all_failed"]);
}

#[test]
fn a_slot_that_becomes_free_goes_to_the_first_that_waits() {
    let mut spec = panel(&["a", "b", "c"], 1, 1000);
    spec.limits.concurrency = Some(2);
    let mut hand = Hand::start(&spec);
    assert_eq!(hand.open(), "round-1/a round-1/b");
    hand.answer("round-1/b", "B");
    assert_eq!(hand.open(), "round-1/a round-1/c");
}
