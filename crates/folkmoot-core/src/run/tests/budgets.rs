//! What is set aside, and what is booked: rules.md 4.6 to 4.12.

use super::hand::{Hand, answered, model, panel, says, used};
use crate::{
    call::{Tokens, Usage},
    event::{Event, Settled},
    key::Key,
    money::Price,
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

#[test]
fn what_is_called_off_is_taken_to_have_been_read_but_never_beyond_its_worst_case() {
    let mut spec = pair(100_000);
    spec.task = "long ".repeat(4000).into();
    let mut hand = Hand::start(&spec);
    let at_most = |hand: &Hand, key: &str| {
        let call = hand.call(key);
        let [usage] = call.usages[..] else { panic!("there was one attempt") };
        assert!(usage.estimated && usage.tokens.input > 0);
        usage.tokens.input <= call.reserved.expect("tokens are limited").tokens.input
    };
    hand.at(100).tick();
    assert!(at_most(&hand, "round-1/a"));
    // What continues a request is known to the token, and that may be far less than a quarter of
    // its bytes.
    let mut spec = panel(&["a"], 2, 100);
    spec.team.agents = vec![model("a", 500)];
    (spec.task, spec.limits.tokens) = ("long ".repeat(4000).into(), Some(100_000));
    let mut hand = Hand::start(&spec);
    hand.settle("round-1/a", says("A"), used(100, 1));
    assert!(hand.call("round-2/a").reserved.expect("set aside").tokens.input < 1000);
    hand.at(100).tick();
    assert!(at_most(&hand, "round-2/a"));
}

#[test]
fn absurd_usage_spends_the_budget_and_breaks_nothing() {
    let mut spec = pair(100_000);
    spec.limits.concurrency = Some(1);
    let price = Some(Price { input: 1.0, output: 1.0, cached_input: None });
    for agent in &mut spec.team.agents {
        if let Target::Model(model) = &mut agent.target {
            model.price = price;
        }
    }
    let mut hand = Hand::start(&spec);
    let tokens = Tokens { input: u64::MAX, cached: u64::MAX, output: u64::MAX };
    let usage = Usage { tokens, cost: price.map(|it| it.of(tokens)), estimated: false };
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
    let mut fork = Hand::idle(spec.program(), &spec);
    let inherited = |hand: &Hand, key: &str| Event::Inherited {
        key: Key::parse(key),
        call: hand.call(key).call.clone(),
        nth: 1,
        settled: Settled::from(says("A")),
    };
    let started = origin.log[0].event.clone();
    let events = [started, inherited(&origin, "round-1/a")];
    let records = fork.run.step(spec.program(), &spec, events, fork.run.at()).records;
    fork.log.extend(records);
    assert_eq!(fork.open(), "round-1/b");
    fork.answer("round-1/b", "B");
    // The second of two calls; the agent's number goes on from what it took over.
    assert_eq!(fork.open(), "round-2/a");
    assert_eq!(fork.call("round-2/a").nth, 2);
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
    assert_eq!(spent.reserved(), Tokens::default());
}
