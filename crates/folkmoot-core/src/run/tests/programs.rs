//! How programs are followed, also bad ones.

use std::sync::Arc;

use super::hand::{Hand, panel};
use crate::{
    call::{Fault, Prompt, Reply},
    event::{Ending, Event},
    key::Key,
    limits::Limits,
    scope::{Node, Program, Scope, Step, complete},
};

/// Takes the first of two answers and forgets that it still waits for the other.
#[derive(Debug)]
struct Careless;

impl Program for Careless {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let [a, b] = ["a", "b"].map(|name| cx.ask(name, &name.into(), Prompt::task()));
        Ok(Ending::done("done", vec![a.or(b)?.key]))
    }
}

#[test]
fn a_swallowed_wait_ends_the_run_and_leaves_nothing_open() {
    let spec = panel(&["a", "b"], 1, 1000);
    let mut hand = Hand::follow(&Careless, &spec);
    assert_eq!(hand.open(), "a b");
    hand.answer("a", "A");
    let ending = Ending::failed("swallowed_wait", vec![Key::parse("b")]);
    assert_eq!(hand.run.ending(), Some(&ending));
    assert_eq!(hand.last(2), ["withdrawn b: withdrawn", "ended swallowed_wait"]);
}

/// Asks until it gets an answer.
#[derive(Debug)]
struct Stubborn;

impl Program for Stubborn {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut n = 0;
        loop {
            n += 1;
            let reply = cx.ask(&n.to_string(), &"a".into(), Prompt::task())?;
            if reply.contribution().is_some() {
                return Ok(Ending::done("done", vec![reply.key]));
            }
        }
    }
}

#[test]
fn a_program_that_does_not_take_no_for_an_answer_is_stopped() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::follow(&Stubborn, &spec);
    hand.feed(Event::CancelRequested);
    assert_eq!(hand.reason(), "refused_too_often");
}

/// Asks two questions under one name.
#[derive(Debug)]
struct Forgetful;

impl Program for Forgetful {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        cx.all(["one", "other"], |text| cx.ask("same", &"a".into(), Prompt::task().say(text)))?;
        Ok(Ending::done("done", Vec::new()))
    }
}

#[test]
fn one_key_for_two_questions_ends_the_run_and_leaves_nothing_open() {
    let spec = panel(&["a"], 1, 1000);
    let hand = Hand::follow(&Forgetful, &spec);
    assert_eq!(hand.reason(), "diverged");
    assert_eq!(hand.open(), "");
}

#[test]
fn one_key_for_two_questions_is_noticed_also_after_an_amendment() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::follow(&Forgetful, &spec);
    hand.feed(Event::Amended { key: Key::parse("same"), text: "x".into() });
    hand.answer("same", "y");
    assert_eq!(hand.reason(), "diverged");
    assert_eq!(hand.run.ledger().run.calls, 2);
}

/// Two teams at work on one task, one of them with limits of its own.
#[derive(Debug)]
struct Twins<'a>(&'a dyn Program);

impl Program for Twins<'_> {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let calls = Some(3);
        let right = cx.at("right").limited(Limits { calls, ..Limits::default() });
        let ends = cx.all([cx.at("left"), right], |cx| self.0.run(&cx))?;
        let is_done = ends.iter().all(|end| end.done);
        Ok(Ending { done: is_done, ..Ending::failed("both", Vec::new()) })
    }
}

#[test]
fn programs_nest() {
    let spec = panel(&["a", "b"], 2, 1000);
    let twins = Twins(spec.program());
    let mut hand = Hand::follow(&twins, &spec);
    assert_eq!(hand.open(), "left/round-1/a left/round-1/b right/round-1/a right/round-1/b");
    for round in 1..=2 {
        for key in ["left", "right"].map(|side| format!("{side}/round-{round}/a")) {
            hand.answer(&key, "A");
        }
        for key in ["left", "right"].map(|side| format!("{side}/round-{round}/b")) {
            if hand.call(&key).is_open() {
                hand.answer(&key, "B");
            }
        }
    }
    assert_eq!(hand.reason(), "both");
    assert_eq!(hand.run.ledger().run.calls, 7);
}

#[test]
fn the_limits_of_a_nested_team_fail_its_own_calls_only() {
    let spec = panel(&["a", "b"], 2, 1000);
    let twins = Twins(spec.program());
    let mut hand = Hand::follow(&twins, &spec);
    for key in ["left/round-1/a", "left/round-1/b", "right/round-1/a", "right/round-1/b"] {
        hand.answer(key, "x");
    }
    assert_eq!(hand.open(), "left/round-2/a left/round-2/b right/round-2/a");
    assert_eq!(hand.fault("right/round-2/b"), "budget exhausted");
    assert_eq!(hand.run.stop(), None);
}

/// Asks for more as long as calls are left for what must follow.
#[derive(Debug)]
struct Thrifty;

impl Program for Thrifty {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut latest = cx.ask("first", &"a".into(), Prompt::task())?;
        if cx.calls_left().is_some_and(|left| left >= 2) {
            latest = cx.ask("more", &"a".into(), Prompt::after(&latest))?;
        }
        let last = cx.ask("last", &"a".into(), Prompt::after(&latest))?;
        Ok(Ending::done("done", vec![last.key]))
    }
}

#[test]
fn what_a_program_decided_by_the_calls_left_stays_decided() {
    let mut spec = panel(&["a"], 1, 1000);
    spec.limits.calls = Some(3);
    let mut hand = Hand::follow(&Thrifty, &spec);
    for key in ["first", "more", "last"] {
        assert_eq!(hand.open(), key);
        hand.answer(key, "x");
    }
    assert_eq!(hand.reason(), "done");
    let made_from: Vec<&Key> = hand.call("last").call.sources().collect();
    assert_eq!(made_from, [&Key::parse("more")]);
}

struct Task(&'static str, Vec<Arc<str>>);

impl Node for Task {
    fn id(&self) -> &str {
        self.0
    }

    fn after(&self) -> &[Arc<str>] {
        &self.1
    }
}

/// `d` needs `b` and `c`, which need `a`; `e` needs nothing.
#[derive(Debug)]
struct Plan;

impl Program for Plan {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let after = |ids: &[&str]| ids.iter().map(|id| (*id).into()).collect();
        let tasks = [
            Task("d", after(&["b", "c"])),
            Task("a", after(&[])),
            Task("b", after(&["a"])),
            Task("c", after(&["a"])),
            Task("e", after(&[])),
        ];
        let done = cx.dag(&tasks, |task, inputs| {
            let prompt = inputs.iter().fold(Prompt::task(), |prompt, input| prompt.quote(input));
            cx.ask(task.0, &"a".into(), prompt)
        });
        let done = complete(done, &tasks)?;
        Ok(Ending::done("done", done.into_values().map(|reply| reply.key).collect()))
    }
}

/// Two tasks that need each other.
#[derive(Debug)]
struct Circle;

impl Program for Circle {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let tasks = [Task("a", vec!["b".into()]), Task("b", vec!["a".into()])];
        let done = cx.dag(&tasks, |task, _: &[&Reply]| cx.ask(task.0, &"a".into(), Prompt::task()));
        complete(done, &tasks)?;
        Ok(Ending::done("done", Vec::new()))
    }
}

#[test]
fn a_program_that_waits_for_nothing_is_stopped() {
    let spec = panel(&["a"], 1, 1000);
    assert_eq!(Hand::follow(&Circle, &spec).reason(), "waits_for_nothing");
}

#[test]
fn a_task_starts_when_its_inputs_are_known_not_when_its_wave_is_done() {
    let spec = panel(&["a"], 1, 1000);
    let mut hand = Hand::follow(&Plan, &spec);
    assert_eq!(hand.open(), "a e");
    hand.answer("a", "A");
    assert_eq!(hand.open(), "e b c");
    hand.answer("c", "C");
    hand.fail("b", Fault::TimedOut);
    assert_eq!(hand.open(), "e d");
    hand.answer("d", "D");
    hand.answer("e", "E");
    assert_eq!(hand.reason(), "done");
}

#[test]
fn free_slots_go_to_tasks_in_the_order_of_the_plan() {
    let mut spec = panel(&["a"], 1, 1000);
    spec.limits.concurrency = Some(1);
    let mut hand = Hand::follow(&Plan, &spec);
    let mut order = Vec::new();
    while hand.reason().is_empty() {
        let open = hand.open();
        hand.answer(&open, "x");
        order.push(open);
    }
    assert_eq!(order.join(" "), "a b c d e");
}
