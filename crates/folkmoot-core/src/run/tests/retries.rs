//! Other attempts at a run: what was answered soundly is taken over, what was not is asked again.

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::hand::{Hand, model, panel};
use crate::{
    call::{Call, Fault, Limit, Owner, Part, ToolCall},
    event::Event,
    key::Key,
    programs::{Clocks, Debate, Sequential},
    replay::{Change, Retry, fork, replay},
    run::Run,
    sim::{Sim, World},
    spec::{Collaboration, Spec},
    team::{Agent, Says, Script, ScriptedReply, Target},
    testing::{Scripted, agent, id, ids, line, play, spec},
    time::Duration,
};

/// Another attempt at a run, played to its end.
fn retried(sim: &Sim, retry: Retry, world: &mut dyn World) -> Sim {
    let spec = sim.spec.clone();
    let at = sim.run.seq();
    let change = Change { at, spec: spec.clone(), answers: Vec::new(), retry: Some(retry) };
    let events = fork("first", &sim.log, &change, 0);
    let mut attempt = Sim::resume(spec, Run::default(), Vec::new(), 0);
    attempt.feed_all(events, world);
    let attempt = attempt.finish(world);
    replay(&attempt.log).expect("a retry decides as recorded");
    attempt
}

fn from(key: &str) -> Retry {
    Retry { from: Some(Key::parse(key)), prompt: None }
}

#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
fn check(sim: &Sim, expected: Expect) {
    let lines: Vec<String> = sim.log.iter().map(line).collect();
    let reason = sim.run.ending().map_or("", |ending| &*ending.reason);
    expected.assert_eq(&format!("{}\n= {reason}\n", lines.join("\n")));
}

fn chain(agents: Vec<Agent>) -> Spec {
    let order = agents.iter().map(|agent| agent.id.clone()).collect();
    spec(agents, Collaboration::Sequential(Sequential { order, clocks: Clocks::default() }))
}

fn debate(agents: Vec<Agent>) -> Spec {
    let (debaters, clocks) = (ids(&["a", "b"]), Clocks::default());
    let debate = Debate { agents: debaters, rounds: 2, judge: id("j"), clocks };
    spec(agents, Collaboration::Debate(debate))
}

#[test]
fn a_failed_call_is_asked_again_and_what_comes_before_it_is_kept() {
    let agents = vec![agent("a", &["A"]), agent("b", &["!boom", "B"]), agent("c", &["C1", "C2"])];
    let first = play(chain(agents));
    check(
        &retried(&first, Retry::default(), &mut Scripted),
        expect![[r#"
              1     0 started
              2     0 inherited step-1/a
              3     0 asked step-2/b [task · quote step-1/a · say This is step 2 of 3: do …]
              4     0 answered step-2/b: B
              5     0 asked step-3/c [task · quote step-1/a · quote step-2/b · say This is step 3 of 3: do …]
              6     0 answered step-3/c: C2
              7     0 ended answered
            = answered
        "#]],
    );
}

#[test]
fn what_was_said_beside_a_failed_call_is_kept_and_what_follows_is_asked() {
    let agents = vec![
        agent("a", &["A1", "!boom", "A3"]),
        agent("b", &["B1", "B2"]),
        agent("j", &["J1", "J2"]),
    ];
    let first = play(debate(agents));
    check(
        &retried(&first, Retry::default(), &mut Scripted),
        expect![[r#"
              1     0 started
              2     0 inherited round-1/a
              3     0 inherited round-1/b
              4     0 inherited round-2/b
              5     0 asked round-2/a [after round-1/a · quote round-1/b · say Answer the others: attac…]
              6     0 answered round-2/a: A3
              7     0 asked judge [task · quote round-2/a · quote round-2/b · say You are the judge. Weigh…]
              8     0 answered judge: J2
              9     0 ended judged
            = judged
        "#]],
    );
}

#[test]
fn from_a_call_on_it_and_what_depends_on_it_is_asked_and_nothing_else() {
    let agents = vec![
        agent("a", &["A1", "!boom", "A3"]),
        agent("b", &["B1", "B2", "B3"]),
        agent("j", &["J1", "J2"]),
    ];
    let first = play(debate(agents));
    check(
        &retried(&first, from("round-2/b"), &mut Scripted),
        expect![[r#"
              1     0 started
              2     0 inherited round-1/a
              3     0 inherited round-1/b
              4     0 inherited round-2/a
              5     0 asked round-2/b [after round-1/b · quote round-1/a · say Answer the others: attac…]
              6     0 answered round-2/b: B3
              7     0 asked judge [task · quote round-2/b · say Without a contribution: … · say You are the judge. Weigh…]
              8     0 answered judge: J2
              9     0 ended judged
            = judged
        "#]],
    );
    check(
        &retried(&first, from("judge"), &mut Scripted),
        expect![[r#"
              1     0 started
              2     0 inherited round-1/a
              3     0 inherited round-1/b
              4     0 inherited round-2/b
              5     0 inherited round-2/a
              6     0 asked judge [task · quote round-2/b · say Without a contribution: … · say You are the judge. Weigh…]
              7     0 answered judge: J2
              8     0 ended judged
            = judged
        "#]],
    );
}

#[test]
fn words_of_a_person_come_last_in_what_is_asked_again_and_nowhere_else() {
    let agents = vec![agent("a", &["A"]), agent("b", &["!boom", "B"]), agent("c", &["C1", "C2"])];
    let first = play(chain(agents));
    let words = Retry { from: None, prompt: Some("in one word".into()) };
    let second = retried(&first, words, &mut Scripted);
    check(
        &second,
        expect![[r#"
              1     0 started
              2     0 prompted step-2/b: in one word
              3     0 inherited step-1/a
              4     0 asked step-2/b [task · quote step-1/a · say This is step 2 of 3: do … · say in one word…]
              5     0 answered step-2/b: B
              6     0 asked step-3/c [task · quote step-1/a · quote step-2/b · say This is step 3 of 3: do …]
              7     0 answered step-3/c: C2
              8     0 ended answered
            = answered
        "#]],
    );
    let said = |sim: &Sim, key: &str| {
        let Call::Agent { prompt, .. } = &sim.run.known().get(key).expect("it was asked").call
        else {
            unreachable!("no tool is used");
        };
        prompt.parts.last() == Some(&Part::Say("in one word".into()))
    };
    let keys = ["step-1/a", "step-2/b", "step-3/c"];
    assert_eq!(keys.map(|key| said(&second, key)), [false, true, false]);

    let third = retried(&second, from("step-3/c"), &mut Scripted);
    assert_eq!(keys.map(|key| said(&third, key)), [false, true, false], "they go on");
    let asked = third.run.known().iter().filter(|(_, entry)| entry.is_charged());
    assert_eq!(asked.map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["step-3/c"]);
}

#[test]
fn a_failed_tool_is_a_result_that_was_read_and_is_not_used_again() {
    struct Broken;
    impl World for Broken {
        fn answer(
            &mut self,
            spec: &Spec,
            run: &Run,
            key: &Key,
            entry: &crate::known::Entry,
        ) -> Option<crate::sim::Happening> {
            let mut happening = Scripted.answer(spec, run, key, entry)?;
            if matches!(entry.call, Call::Tool { .. }) {
                happening.outcome = Err(Fault::TimedOut);
            }
            Some(happening)
        }
    }
    let tool = ToolCall { id: "1".into(), name: "file.read".into(), arguments: "x".into() };
    let wants = Says::Tools { calls: vec![tool], text: "".into() };
    let replies = vec![
        ScriptedReply { says: wants, ..ScriptedReply::text("") },
        ScriptedReply {
            says: Says::Error { text: "boom".into(), kind: crate::call::FailureKind::Harness },
            ..ScriptedReply::text("")
        },
        ScriptedReply::text("done"),
    ];
    let target = Target::Script(Script { replies, ..Script::default() });
    let user = Agent { grants: vec!["file".into()], target, ..agent("a", &[]) };
    let spec = Arc::new(chain(vec![user]));
    let first = Sim::start(spec, 0, 0, &mut Broken).finish(&mut Broken);
    check(
        &retried(&first, Retry::default(), &mut Broken),
        expect![[r#"
              1     0 started
              2     0 inherited step-1/a/model-1
              3     0 inherited step-1/a/tool-1
              4     0 asked step-1/a/model-2 [after step-1/a/model-1 · result step-1/a/tool-1]
              5     0 answered step-1/a/model-2: done
              6     0 ended answered
            = answered
        "#]],
    );
}

#[test]
fn what_a_stop_kept_from_being_answered_is_asked_under_a_budget_of_its_own() {
    let agents = vec![agent("a", &["A1", "A2"]), agent("b", &["B1", "B2"]), agent("j", &["J"])];
    let mut poor = debate(agents);
    poor.limits.calls = Some(3);
    let first = play(poor);
    let over = Fault::OverBudget { limit: Limit::Calls, of: Owner::Run };
    assert_eq!(first.run.stop(), Some(&over));
    let second = retried(&first, Retry::default(), &mut Scripted);
    check(
        &second,
        expect![[r#"
              1     0 started
              2     0 inherited round-1/a
              3     0 inherited round-1/b
              4     0 inherited round-2/a
              5     0 asked round-2/b [after round-1/b · quote round-1/a · say Answer the others: attac…]
              6     0 answered round-2/b: B2
              7     0 asked judge [task · quote round-2/a · quote round-2/b · say You are the judge. Weigh…]
              8     0 answered judge: J
              9     0 ended judged
            = judged
        "#]],
    );
    assert_eq!(second.run.ledger().run.calls, 2, "what is taken over is not paid for again");
}

#[test]
fn a_cancelled_run_is_gone_on_with_in_time_of_its_own() {
    let slow = vec![agent("a", &["A"]), agent("b", &["~900 B", "~900 B"])];
    let mut timed = chain(slow);
    timed.limits.time = Some(Duration::from_millis(1000));
    let mut first = Sim::start(Arc::new(timed), 0, 0, &mut Scripted);
    first.advance(&mut Scripted);
    first.feed(Event::CancelRequested, &mut Scripted);
    assert_eq!(first.run.stop(), Some(&Fault::Cancelled));
    check(
        &retried(&first, Retry::default(), &mut Scripted),
        expect![[r#"
              1     0 started
              2     0 inherited step-1/a
              3     0 asked step-2/b [task · quote step-1/a · say This is step 2 of 2: do …]
              4   900 answered step-2/b: B
              5   900 ended answered
            = answered
        "#]],
    );
}

#[test]
fn an_amendment_of_a_call_under_way_is_billed_as_if_the_call_was_read() {
    let mut spec = panel(&["a", "b"], 1, 1000);
    spec.team.agents = vec![model("a", 100), model("b", 100)];
    let mut hand = Hand::start(&spec);
    let key = Key::parse("round-1/a");
    let events = hand.run.amendment(&spec, &key, "mine".into());
    hand.feed_all(events);
    assert_eq!(hand.open(), "round-1/b");
    assert!(hand.run.ledger().run.tokens.total() > 0, "it was sent, and nobody says what it used");
    hand.answer("round-1/b", "B");
    let events = hand.run.amendment(&spec, &Key::parse("round-1/b"), "also mine".into());
    assert_eq!(events.len(), 1, "what was answered has its bill");
}
