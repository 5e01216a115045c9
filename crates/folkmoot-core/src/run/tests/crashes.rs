//! Crash and resume: rules.md 7.

use super::hand::{Hand, answered, panel, says, used};
use crate::{
    call::{Call, Prompt, ToolCall},
    event::{Ending, Event},
    key::Key,
    run::Command,
    scope::{Program, Scope, Step},
};

#[test]
fn what_is_open_is_asked_again_with_a_higher_attempt_number() {
    let spec = panel(&["a", "b"], 1, 1000);
    let mut hand = Hand::start(&spec);
    hand.answer("round-1/a", "A");
    let commands = hand.feed(Event::Resumed { wall: 0 });
    assert_eq!(commands, [Command::Start(Key::parse("round-1/b"))]);
    assert_eq!(hand.call("round-1/b").attempt, 2);
    assert_eq!(hand.call("round-1/a").attempt, 1);
    assert_eq!(hand.call("round-1/b").nth, 1);
}

#[test]
fn an_answer_for_a_closed_attempt_changes_nothing_but_the_bill() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::start(&spec);
    hand.feed(Event::Resumed { wall: 0 });
    hand.feed(answered("round-1/a", 1, says("first"), used(10, 1)));
    assert_eq!(hand.open(), "round-1/a");
    hand.feed(answered("round-1/a", 2, says("second"), used(20, 2)));
    assert_eq!(hand.run.known().text(&Key::parse("round-1/a")).map(|it| &**it), Some("second"));
    // Both attempts were paid for, each once however often its answer comes.
    hand.feed(answered("round-1/a", 1, says("first"), used(10, 1)));
    hand.feed(answered("round-1/a", 2, says("second"), used(20, 2)));
    assert_eq!(hand.run.ledger().run.tokens.total(), 33);
    assert_eq!(hand.run.ledger().run.calls, 1);
}

#[test]
fn an_answer_to_what_was_never_begun_is_not_paid_for() {
    let mut spec = panel(&["a"], 1, 1000);
    spec.team.agents[0].limits.calls = Some(0);
    let mut hand = Hand::start(&spec);
    assert_eq!(hand.fault("round-1/a"), "budget exhausted");
    hand.feed(answered("round-1/a", 1, says("A"), used(10, 1)));
    hand.feed(answered("round-9/a", 1, says("A"), used(10, 1)));
    assert_eq!(hand.run.ledger().run.tokens.total(), 0);
}

#[derive(Debug)]
struct Tool {
    repeatable: bool,
}

impl Program for Tool {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let request = ToolCall { id: "1".into(), name: "saw".into(), arguments: "x".into() };
        let Tool { repeatable } = *self;
        let used = cx.call("saw", Call::Tool { agent: "a".into(), request, repeatable })?;
        let after = cx.ask("after", &"a".into(), Prompt::task().result(&used))?;
        Ok(Ending::done("built", vec![after.key]))
    }
}

#[test]
fn a_tool_that_must_not_be_used_twice_is_lost_in_a_crash() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::follow(&Tool { repeatable: false }, &spec);
    let commands = hand.feed(Event::Resumed { wall: 0 });
    assert_eq!(hand.fault("saw"), "lost");
    assert_eq!(commands, [Command::Abort(Key::parse("saw")), Command::Start(Key::parse("after"))]);
}

#[test]
fn a_tool_that_may_be_used_twice_is_used_again() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::follow(&Tool { repeatable: true }, &spec);
    let commands = hand.feed(Event::Resumed { wall: 0 });
    assert_eq!(commands, [Command::Start(Key::parse("saw"))]);
}

#[test]
fn a_batch_of_which_only_a_part_was_kept_is_decided_anew() {
    let spec = panel(&["a", "b"], 1, 1000);
    let whole = Hand::start(&spec);
    assert_eq!(whole.last(3), ["started", "asked round-1/a [task]", "asked round-1/b [task]"]);
    let torn = whole.resume(2);
    assert_eq!(torn.last(2), ["resumed", "asked round-1/b [task]"]);
    assert_eq!(torn.call("round-1/a").attempt, 2);
    assert_eq!(torn.call("round-1/b").attempt, 1);
}

#[test]
fn resuming_what_has_ended_does_nothing() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::start(&spec);
    hand.answer("round-1/a", "A");
    assert_eq!(hand.feed(Event::Resumed { wall: 0 }), []);
    assert_eq!(hand.last(2), ["ended answered", "resumed"]);
}

#[test]
fn events_that_come_together_are_decided_on_together() {
    let spec = panel(&["a", "b"], 2, 1000);
    let mut hand = Hand::start(&spec);
    let events = ["round-1/a", "round-1/b"].map(|key| answered(key, 1, says("x"), used(0, 0)));
    hand.feed_all(events);
    let news = hand.log[3..].iter().map(|record| record.event.is_decision());
    assert_eq!(news.collect::<Vec<_>>(), [false, false, true, true]);
}
