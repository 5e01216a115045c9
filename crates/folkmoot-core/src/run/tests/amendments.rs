//! Answers that people change, and programs that changed: only what follows is asked anew.

use serde_json::Value;

use super::hand::{Hand, answered, model, panel, says, used};
use crate::{
    call::{Call, Prompt, ToolCall},
    event::{Ending, Event},
    key::Key,
    run::Command,
    scope::{Program, Scope, Step},
    spec::Spec,
    time::{Duration, Time},
    view,
};

fn amended(key: &str, text: &str) -> Event {
    Event::Amended { key: Key::parse(key), text: text.into() }
}

/// A run of three agents and two rounds that has ended.
fn finished(spec: &Spec) -> Hand<'_> {
    let mut hand = Hand::start(spec);
    for round in 1..=2 {
        for agent in ["a", "b", "c"] {
            hand.settle(&format!("round-{round}/{agent}"), says(agent), used(10, 1));
        }
    }
    assert_eq!(hand.reason(), "answered");
    hand
}

#[test]
fn an_amended_answer_is_felt_by_what_quotes_it_and_by_nothing_else() {
    let spec = panel(&["a", "b", "c"], 2, 1000);
    let mut hand = finished(&spec);
    hand.feed(amended("round-2/b", "better"));
    assert_eq!(hand.last(2), ["amended round-2/b: better", "ended answered"]);
    hand.feed(amended("round-1/b", "better"));
    assert_eq!(hand.open(), "round-2/a round-2/b round-2/c");
    assert_eq!(hand.reason(), "");
    for agent in ["a", "b", "c"] {
        hand.answer(&format!("round-2/{agent}"), "new");
    }
    assert_eq!(hand.reason(), "answered");
}

#[test]
fn what_is_asked_anew_has_its_clock_from_the_amendment() {
    let spec = panel(&["a", "b", "c"], 2, 1000);
    let mut hand = finished(&spec);
    hand.at(5000).feed(amended("round-1/b", "better"));
    let expires = Time::default() + Duration::from_millis(6000);
    assert_eq!(hand.call("round-2/a").expires, Some(expires));
}

#[test]
fn a_call_that_is_amended_while_it_is_under_way_is_called_off() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::start(&spec);
    let commands = hand.feed(amended("round-1/a", "mine"));
    assert_eq!(commands, [Command::Abort(Key::parse("round-1/a"))]);
    assert_eq!(hand.reason(), "answered");
    hand.feed(answered("round-1/a", 1, says("late"), used(10, 1)));
    assert_eq!(hand.run.known().text(&Key::parse("round-1/a")).map(|it| &**it), Some("mine"));
    assert_eq!(hand.run.ledger().run.tokens.total(), 11);
}

#[test]
fn a_late_answer_to_the_earlier_question_does_not_answer_the_new_one() {
    let spec = panel(&["a", "b"], 2, 1000);
    let mut hand = Hand::start(&spec);
    hand.answer("round-1/a", "A");
    hand.answer("round-1/b", "B");
    hand.feed(amended("round-1/b", "better"));
    assert_eq!(hand.call("round-2/a").attempt, 2);
    hand.feed(answered("round-2/a", 1, says("to the old"), used(10, 1)));
    assert_eq!(hand.open(), "round-2/a round-2/b");
    hand.feed(answered("round-2/a", 2, says("to the new"), used(20, 2)));
    assert_eq!(hand.open(), "round-2/b");
    assert_eq!(hand.run.ledger().run.tokens.total(), 33);
}

#[test]
fn what_was_paid_for_the_earlier_question_stays_in_the_bill() {
    let spec = panel(&["a", "b", "c"], 2, 1000);
    let mut hand = finished(&spec);
    hand.feed(amended("round-1/b", "better"));
    for agent in ["a", "b", "c"] {
        hand.settle(&format!("round-2/{agent}"), says("new"), used(10, 1));
    }
    let usage = view::usage(&spec, hand.run.known());
    assert_eq!((usage.calls, usage.total.total_tokens), (9, 99));
    assert_eq!(hand.run.ledger().run.calls, 9);
    assert_eq!(usage.agents.values().map(|it| it.total_tokens).sum::<u64>(), 99);
}

/// An agent says what a tool is to do.
#[derive(Debug)]
struct Order;

impl Program for Order {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let order = cx.ask("order", &"a".into(), Prompt::task())?;
        let arguments = order.text().map_or(Value::Null, |text| (&**text).into());
        let request = ToolCall { id: "1".into(), name: "saw".into(), arguments };
        let work = Call::Tool { agent: "a".into(), request, repeatable: false };
        Ok(Ending::done("built", vec![cx.call("work", work)?.key]))
    }
}

#[test]
fn a_tool_that_is_used_anew_for_another_order_is_not_lost() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::follow(&Order, &spec);
    hand.answer("order", "a table");
    hand.feed(amended("order", "a chair"));
    assert_eq!((hand.open(), hand.call("work").attempt), ("work".to_owned(), 2));
    hand.answer("work", "chair");
    assert_eq!(hand.reason(), "built");
}

/// The provider's count of a request does not know what a person put in place of its answer.
#[test]
fn what_continues_an_amended_answer_sets_its_bytes_aside() {
    let mut spec = panel(&["a"], 2, 1000);
    spec.team.agents = vec![model("a", 100)];
    spec.limits.tokens = Some(100_000);
    let mut hand = Hand::start(&spec);
    hand.settle("round-1/a", says("A"), used(10, 1));
    let aside = |hand: &Hand| hand.call("round-2/a").reserved.expect("set aside").tokens.input;
    assert!(aside(&hand) < 1000);
    hand.feed(amended("round-1/a", &"long ".repeat(1000)));
    assert!(aside(&hand) > 5000);
}

/// The program of [`panel`], with another word to `a`.
#[derive(Debug)]
struct Reworded;

impl Program for Reworded {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let round = cx.at("round-1");
        cx.all([("b", Prompt::task()), ("a", Prompt::task().say("please"))], |(name, prompt)| {
            round.ask(name, &name.into(), prompt)
        })?;
        Ok(Ending::done("answered", Vec::new()))
    }
}

#[test]
fn a_changed_program_does_not_resume_unnoticed() {
    let spec = panel(&["a", "b"], 1, 1000);
    let mut hand = Hand::start(&spec);
    hand.answer("round-1/a", "A");
    hand.switch(&Reworded);
    hand.feed(Event::Resumed { wall: 0 });
    let ending = Ending::failed("diverged", vec![Key::parse("round-1/a")]);
    assert_eq!(hand.run.ending(), Some(&ending));
    assert_eq!(hand.last(2), ["withdrawn round-1/b: withdrawn", "ended diverged"]);
}
