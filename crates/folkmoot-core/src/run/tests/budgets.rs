//! What is set aside, and what is booked: rules.md 4.6 to 4.12.

use super::hand::{Hand, answered, model, panel, says, used};
use crate::{
    call::{Tokens, Usage},
    money::Price,
    replay::{self, Change},
    spec::Spec,
    team::Target,
    time::Duration,
    view,
};

/// Two agents that are asked at once, with replies of at most 500 tokens.
fn pair(tokens: u64) -> Spec {
    let mut spec = panel(&["a", "b"], 1, 100);
    spec.team.agents = vec![model("a", 500), model("b", 500)];
    spec.limits.tokens = Some(tokens);
    spec
}

#[test]
fn a_token_budget_waits_for_what_is_set_aside_before_it_refuses() {
    let spec = pair(900);
    let mut hand = Hand::start(&spec);
    assert_eq!(hand.open(), "round-1/a");
    assert_eq!(hand.run.stop(), None);
    hand.settle("round-1/a", says("A"), used(50, 10));
    assert_eq!(hand.open(), "round-1/b");
}

#[test]
fn a_token_budget_refuses_what_will_never_fit() {
    let spec = pair(900);
    let mut hand = Hand::start(&spec);
    hand.settle("round-1/a", says("A"), used(200, 450));
    assert_eq!(hand.fault("round-1/b"), "budget exhausted");
    assert_eq!(view::status(&hand.run, true).1.as_deref(), Some("tokens"));
}

#[test]
fn the_last_reply_is_shortened_to_what_is_left() {
    let spec = pair(1200);
    let hand = Hand::start(&spec);
    let output = |key: &str| hand.call(key).reserved.expect("tokens are limited").tokens.output;
    assert_eq!(output("round-1/a"), 500);
    assert!((256..500).contains(&output("round-1/b")), "{}", output("round-1/b"));
    let aside = |key: &str| hand.call(key).reserved.expect("tokens are limited").tokens.total();
    assert_eq!(aside("round-1/a") + aside("round-1/b"), 1200);
}

#[test]
fn what_waits_for_the_runs_budget_is_not_overtaken_by_something_smaller() {
    let mut spec = panel(&["a", "b", "c"], 1, 100);
    spec.team.agents = vec![model("a", 500), model("b", 500), model("c", 1)];
    spec.limits.tokens = Some(1000);
    let mut hand = Hand::start(&spec);
    assert_eq!(hand.open(), "round-1/a");
    hand.settle("round-1/a", says("A"), used(50, 10));
    assert_eq!(hand.open(), "round-1/b round-1/c");
}

/// A task that is long to read, and one agent for two rounds of it.
fn long() -> Spec {
    let mut spec = panel(&["a"], 2, 100);
    spec.team.agents = vec![model("a", 500)];
    (spec.task, spec.limits.tokens) = ("long ".repeat(4000).into(), Some(100_000));
    spec
}

fn aside(hand: &Hand, key: &str) -> u64 {
    hand.call(key).reserved.expect("tokens are limited").tokens.input
}

#[test]
fn what_is_called_off_is_taken_to_have_been_read() {
    let spec = long();
    let mut hand = Hand::start(&spec);
    hand.at(100).tick();
    let [usage] = hand.call("round-1/a").usages[..] else { panic!("there was one attempt") };
    assert!(usage.estimated);
    assert_eq!(usage.tokens.input, aside(&hand, "round-1/a").div_ceil(4));
}

/// What continues a request is known to the token, and that can be less than a quarter of its bytes.
#[test]
fn what_is_called_off_is_never_taken_to_have_used_more_than_its_worst_case() {
    let spec = long();
    let mut hand = Hand::start(&spec);
    hand.settle("round-1/a", says("A"), used(100, 1));
    assert!(aside(&hand, "round-2/a") < 1000);
    hand.at(100).tick();
    let [usage] = hand.call("round-2/a").usages[..] else { panic!("there was one attempt") };
    assert_eq!(usage.tokens.input, aside(&hand, "round-2/a"));
}

#[test]
fn absurd_usage_spends_the_budget_and_breaks_nothing() {
    let mut spec = pair(100_000);
    spec.limits.concurrency = Some(1);
    let price = Some(Price::new(1.0, 1.0));
    for agent in &mut spec.team.agents {
        if let Target::Model(model) = &mut agent.target {
            model.price.clone_from(&price);
        }
    }
    let mut hand = Hand::start(&spec);
    let tokens =
        Tokens { input: u64::MAX, cached: u64::MAX, cache_write: u64::MAX, output: u64::MAX };
    let usage = Usage { tokens, cost: price.as_ref().map(|it| it.of(tokens)), estimated: false };
    hand.settle("round-1/a", says("A"), usage);
    assert_eq!(hand.fault("round-1/b"), "budget exhausted");
    let report = view::usage(&spec, hand.run.known());
    assert_eq!(report.total.total_tokens, u64::MAX);
}

#[test]
fn an_inherited_answer_is_not_charged() {
    let mut spec = panel(&["a", "b"], 2, 100);
    spec.limits.calls = Some(2);
    let mut origin = Hand::start(&spec);
    origin.answer("round-1/a", "A");
    let (at, answers) = (origin.run.seq(), Vec::new());
    let change = Change { at, spec: spec.clone().into(), answers, retry: None };
    let events = replay::fork("origin", &origin.log, &change, 0);
    let mut fork = Hand::idle(spec.program(), &spec);
    fork.feed_all(events);
    assert_eq!(fork.open(), "round-1/b");
    fork.answer("round-1/b", "B");
    // The second of two calls; the agent's number goes on from what it took over.
    assert_eq!((fork.open(), fork.call("round-2/a").nth), ("round-2/a".to_owned(), 2));
    assert_eq!(fork.fault("round-2/b"), "budget exhausted");
    assert_eq!(view::usage(&spec, fork.run.known()).calls, 2);
    fork.feed(answered("round-1/a", 1, says("A"), used(10, 1)));
    assert_eq!(fork.run.ledger().run.tokens.total(), 0);
}

#[test]
fn the_books_are_even_when_everything_is_settled() {
    let spec = pair(2000);
    let mut hand = Hand::start(&spec);
    hand.settle("round-1/a", says("A"), used(100, 10));
    hand.at(100).tick();
    let spent = hand.run.ledger().run;
    let agents = &hand.run.ledger().agents;
    assert_eq!(spent.open, 0);
    assert_eq!(spent.tokens.total(), agents.values().map(|it| it.tokens.total()).sum::<u64>());
    assert_eq!(spent.time, Duration::from_millis(100));
}
