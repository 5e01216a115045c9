use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use crate::{
    call::{Answer, Usage},
    event::{Event, Record, Settled},
    key::Key,
    sim::Sim,
    spec::{Collaboration, Spec},
    team::Agent,
    testing::{Scripted, agent, check, id, play, spec},
    time::Time,
    view,
};

/// A pattern whose roles say this; a role that is not named says `plain text`.
fn pattern(form: Form, roles: &[(&str, &[&str])]) -> Spec {
    let said = |name: &str| {
        let said = roles.iter().find(|(role, _)| *role == name);
        said.map_or(&["plain text"][..], |(_, replies)| replies)
    };
    let cast = form.roles().into_iter().map(|role| Part {
        role,
        agent: id(role.as_str()),
        target: role.usual_target().into(),
    });
    let mut agents: Vec<Agent> =
        form.roles().into_iter().map(|it| agent(it.as_str(), said(it.as_str()))).collect();
    let judge = roles.iter().any(|(role, _)| *role == "judge").then(|| id("judge"));
    agents.extend(judge.iter().map(|_| agent("judge", said("judge"))));
    let pattern = Pattern {
        form,
        cast: cast.collect(),
        max_rounds: form.usual_ceiling(),
        timeout: Some(USUAL_TIMEOUT),
        planner: None,
        judge,
        literal: false,
    };
    spec(agents, Collaboration::Pattern(pattern))
}

fn with(mut spec: Spec, change: impl FnOnce(&mut Pattern)) -> Spec {
    let Collaboration::Pattern(pattern) = &mut spec.collaboration else { panic!("it is one") };
    change(pattern);
    spec
}

fn told(sim: &Sim) -> Value {
    json!(view::outcome("run", &sim.spec, &sim.run, true))
}

/// `state reason layer`, and the stages.
fn course(spec: Spec) -> String {
    course_of(&play(spec))
}

fn course_of(sim: &Sim) -> String {
    let told = told(sim);
    let word = |key: &str| told[key].as_str().unwrap_or("-").to_owned();
    let mut stages: Vec<(u64, Vec<String>)> = Vec::new();
    for turn in told["turns"].as_array().into_iter().flatten() {
        let (stage, role) = (turn["stage"].as_u64().unwrap_or(0), turn["role"].as_str());
        let role = role.unwrap_or("?").to_owned();
        match stages.last_mut() {
            Some((last, roles)) if *last == stage => roles.push(role),
            Some(_) | None => stages.push((stage, vec![role])),
        }
    }
    let stages: Vec<String> = stages.into_iter().map(|(_, roles)| roles.join("+")).collect();
    let (state, reason, layer, status) =
        (word("state"), word("reason"), word("layer"), word("status"));
    format!("{state} {reason} {layer} ({status}): {}", stages.join(" "))
}

#[track_caller]
fn goes(spec: Spec, expected: &str) {
    assert_eq!(course(spec), expected);
}

fn review(roles: &[(&str, &[&str])]) -> Spec {
    pattern(Form::Review, roles)
}

fn consensus(roles: &[(&str, &[&str])]) -> Spec {
    pattern(Form::Consensus, roles)
}

fn debate(roles: &[(&str, &[&str])]) -> Spec {
    pattern(Form::Debate, roles)
}

fn at_most(turns: u64, spec: Spec) -> Spec {
    with(spec, |pattern| pattern.max_rounds = turns)
}

fn literal(spec: Spec) -> Spec {
    with(spec, |pattern| pattern.literal = true)
}

fn within(ms: u64, spec: Spec) -> Spec {
    with(spec, |pattern| pattern.timeout = Some(Duration::from_millis(ms)))
}

/// Answers all questions as often as it takes, and lets time pass before each answer.
fn answered(spec: Spec, answers: &[&str]) -> Sim {
    let mut sim = play_until_asked(Sim::start(Arc::new(spec), 0, 0, &mut Scripted));
    for answer in answers {
        let open: Vec<Key> = sim.run.known().questions().map(|(key, _)| key.clone()).collect();
        assert!(!open.is_empty(), "nobody is asked: {}", told(&sim)["reason"]);
        let events = open.into_iter().map(|key| says(key, answer)).collect();
        sim.feed_all(events, &mut Scripted);
        sim = play_until_asked(sim);
    }
    sim
}

fn says(key: Key, text: &str) -> Event {
    let settled = Settled::Answer(Answer::text(text).into());
    Event::Answered { key, attempt: 1, settled, usage: Usage::default() }
}

fn play_until_asked(mut sim: Sim) -> Sim {
    while sim.run.ending().is_none() && !sim.run.waits_for_person() {
        assert!(sim.advance(&mut Scripted), "nothing can happen");
    }
    sim
}

#[test]
fn a_review_goes_on_until_the_reviewer_approves() {
    check(
        review(&[
            ("implementer", &["DRAFT"]),
            ("reviewer", &["blocking issue: x", "LGTM"]),
            ("reviser", &["BETTER"]),
        ]),
        expect![[r#"
              1     0 started
              2     0 asked stage-1/implementer [task · say Reply with the work itse… · say If you cannot go on with…]
              3     0 answered stage-1/implementer: DRAFT
              4     0 asked stage-2/reviewer [task · quote stage-1/implementer as the work as it is · say Begin each finding with … · say If you cannot go on with…]
              5     0 answered stage-2/reviewer: blocking issue: x
              6     0 asked stage-3/reviser [task · quote stage-1/implementer as the work as it is · quote stage-2/reviewer as findings · say Reply with the work itse… · say If you cannot go on with…]
              7     0 answered stage-3/reviser: BETTER
              8     0 asked stage-4/reviewer [task · quote stage-3/reviser as the work as it is · quote stage-2/reviewer as findings · say Begin each finding with … · say If you cannot go on with…]
              9     0 answered stage-4/reviewer: LGTM
             10     0 ended explicit_converged
            = done explicit_converged: Some("BETTER")
              {"round":1,"kind":"review","turns":[{"turn":1,"stage":1,"role":"implementer","output":"DRAFT"},{"turn":2,"stage":2,"role":"reviewer","output":"blocking issue: x"},{"turn":3,"stage":3,"role":"reviser","output":"BETTER"}]}
              {"round":2,"kind":"review","turns":[{"turn":4,"stage":4,"role":"reviewer","output":"LGTM"}]}
        "#]],
    );
}

#[test]
fn both_sides_of_a_debate_open_at_once_and_hear_each_other_before_the_arbiter_rules() {
    check(
        debate(&[
            ("advocate", &["A1", "A2"]),
            ("critic", &["!boom", "C2"]),
            ("arbiter", &["ADOPT."]),
        ]),
        expect![[r#"
              1     0 started
              2     0 asked stage-1/advocate [task · say Number your arguments A1… · say If you cannot go on with…]
              3     0 asked stage-1/critic [task · say Number your arguments C1… · say If you cannot go on with…]
              4     0 answered stage-1/critic: (boom)
              5     0 answered stage-1/advocate: A1
              6     0 asked stage-2/advocate [task · quote stage-1/advocate · say Without a contribution: … · say These were the openings.… · say Number your arguments A1… · say If you cannot go on with…]
              7     0 asked stage-2/critic [task · quote stage-1/advocate · say Without a contribution: … · say These were the openings.… · say Number your arguments C1… · say If you cannot go on with…]
              8     0 answered stage-2/advocate: A2
              9     0 answered stage-2/critic: C2
             10     0 asked stage-3/arbiter [task · quote stage-1/advocate · say Without a contribution: … · quote stage-2/advocate · quote stage-2/critic · say Give your reasons, then … · say If you cannot go on with…]
             11     0 answered stage-3/arbiter: ADOPT.
             12     0 ended verdict
            = done verdict: Some("ADOPT.")
              {"round":1,"kind":"debate","turns":[{"turn":1,"stage":1,"role":"advocate","output":"A1"},{"turn":2,"stage":1,"role":"critic","error":"boom"},{"turn":3,"stage":2,"role":"advocate","output":"A2"},{"turn":4,"stage":2,"role":"critic","output":"C2"},{"turn":5,"stage":3,"role":"arbiter","output":"ADOPT."}]}
        "#]],
    );
}

#[test]
fn the_synthesizer_hears_who_is_missing_and_analysts_the_last_synthesis() {
    check(
        consensus(&[
            ("analyst_impl", &["!boom", "I2"]),
            ("analyst_design", &["D1", "D2"]),
            ("analyst_security", &["S1", " "]),
            ("synthesizer", &["CONFLICT: cache", "All agree"]),
        ]),
        expect![[r#"
              1     0 started
              2     0 asked stage-1/analyst_impl [task · say Reply with your analysis… · say If you cannot go on with…]
              3     0 asked stage-1/analyst_design [task · say Reply with your analysis… · say If you cannot go on with…]
              4     0 asked stage-1/analyst_security [task · say Reply with your analysis… · say If you cannot go on with…]
              5     0 answered stage-1/analyst_design: D1
              6     0 answered stage-1/analyst_impl: (boom)
              7     0 answered stage-1/analyst_security: S1
              8     0 asked stage-2/synthesizer [task · quote stage-1/analyst_design · quote stage-1/analyst_security · say Without a contribution: … · say Begin each sentence abou… · say If you cannot go on with…]
              9     0 answered stage-2/synthesizer: CONFLICT: cache
             10     0 asked stage-3/analyst_impl [task · quote stage-2/synthesizer as the last synthesis · say Reply with your analysis… · say If you cannot go on with…]
             11     0 asked stage-3/analyst_design [task · quote stage-2/synthesizer as the last synthesis · say Reply with your analysis… · say If you cannot go on with…]
             12     0 asked stage-3/analyst_security [task · quote stage-2/synthesizer as the last synthesis · say Reply with your analysis… · say If you cannot go on with…]
             13     0 answered stage-3/analyst_impl: I2
             14     0 answered stage-3/analyst_design: D2
             15     0 answered stage-3/analyst_security:  
             16     0 asked stage-4/synthesizer [task · quote stage-3/analyst_impl · quote stage-3/analyst_design · say Without a contribution: … · say Begin each sentence abou… · say If you cannot go on with…]
             17     0 answered stage-4/synthesizer: All agree
             18     0 ended pattern_complete
            = done pattern_complete: Some("All agree")
              {"round":1,"kind":"consensus","turns":[{"turn":1,"stage":1,"role":"analyst_impl","error":"boom"},{"turn":2,"stage":1,"role":"analyst_design","output":"D1"},{"turn":3,"stage":1,"role":"analyst_security","output":"S1"},{"turn":4,"stage":2,"role":"synthesizer","output":"CONFLICT: cache"}]}
              {"round":2,"kind":"consensus","turns":[{"turn":5,"stage":3,"role":"analyst_impl","output":"I2"},{"turn":6,"stage":3,"role":"analyst_design","output":"D2"},{"turn":7,"stage":3,"role":"analyst_security","error":"blank reply"},{"turn":8,"stage":4,"role":"synthesizer","output":"All agree"}]}
        "#]],
    );
}

#[test]
fn turns_are_counted_whoever_speaks_and_a_ceiling_counts_both_ways() {
    let busy: &[(&str, &[&str])] =
        &[("reviewer", &["[BLOCKING] x"]), ("reviser", &["a", "b", "c", "d", "e", "f"])];
    goes(at_most(1, review(busy)), "COMPLETE max_rounds limits (bound_reached): implementer");
    goes(
        at_most(2, review(busy)),
        "COMPLETE max_rounds limits (bound_reached): implementer reviewer",
    );
    let many = "implementer reviewer reviser reviewer reviser reviewer reviser reviewer reviser reviewer reviser";
    goes(at_most(11, review(busy)), &format!("COMPLETE max_rounds limits (bound_reached): {many}"));
    let open = consensus(&[("synthesizer", &["CONFLICT: a", "CONFLICT: b", "CONFLICT: c"])]);
    let cycle = "analyst_impl+analyst_design+analyst_security synthesizer";
    let told = |cycles: usize| {
        format!(
            "NEEDS_INPUT unresolved_conflict signals (needs_input): {}",
            [cycle].repeat(cycles).join(" ")
        )
    };
    for (turns, cycles) in [(4, 1), (7, 1), (8, 2), (11, 2), (12, 3)] {
        let sim = answered(at_most(turns, open.clone()), &[]);
        assert_eq!(course_of(&sim), told(cycles), "{turns}");
    }
    let ruled = debate(&[("arbiter", &["REJECT"])]);
    for turns in [3, 4] {
        goes(
            at_most(turns, ruled.clone()),
            "COMPLETE verdict signals (done): advocate+critic arbiter",
        );
    }
    for turns in [5, 50] {
        let whole = "COMPLETE verdict signals (done): advocate+critic advocate+critic arbiter";
        goes(at_most(turns, ruled.clone()), whole);
    }
}

#[test]
fn a_stage_that_failed_is_repeated_and_three_failures_in_a_row_end_it() {
    goes(
        review(&[("implementer", &["!x", "!x", "ok"]), ("reviewer", &["!x", " ", "LGTM"])]),
        "COMPLETE explicit_converged signals (done): implementer implementer implementer reviewer reviewer reviewer",
    );
    goes(
        review(&[("implementer", &["!x"])]),
        "FAILED consecutive_failures limits (failed): implementer implementer implementer",
    );
    goes(
        consensus(&[
            ("analyst_impl", &["!x"]),
            ("analyst_design", &["!x"]),
            ("analyst_security", &[""]),
        ]),
        "FAILED consecutive_failures limits (failed): analyst_impl+analyst_design+analyst_security",
    );
    // Repeats are turns; only who closes may be repeated beyond the ceiling.
    goes(
        at_most(2, review(&[("implementer", &["!x", "ok"])])),
        "COMPLETE max_rounds limits (bound_reached): implementer implementer",
    );
    goes(
        at_most(4, consensus(&[("synthesizer", &["!x", "!x", "S"])])),
        "COMPLETE pattern_complete signals (done): analyst_impl+analyst_design+analyst_security synthesizer synthesizer synthesizer",
    );
    goes(
        debate(&[("arbiter", &["!x", "ADOPT"])]),
        "COMPLETE verdict signals (done): advocate+critic advocate+critic arbiter arbiter",
    );
    // Where a repeat takes the turns of the rebuttal, that is dropped.
    goes(
        debate(&[("advocate", &["!x", "A"]), ("critic", &["!x", "C"]), ("arbiter", &["ADOPT"])]),
        "COMPLETE verdict signals (done): advocate+critic advocate+critic arbiter",
    );
    goes(
        at_most(3, debate(&[("advocate", &["!x", "A"]), ("critic", &["!x", "C"])])),
        "FAILED max_rounds limits (bound_reached): advocate+critic",
    );
    // A failed rebuttal has no turns to be repeated in, and the arbiter keeps its own.
    goes(
        debate(&[("advocate", &["A", "!x"]), ("critic", &["C", "!x"]), ("arbiter", &["ADOPT"])]),
        "COMPLETE verdict signals (done): advocate+critic advocate+critic arbiter",
    );
}

#[test]
fn a_limit_keeps_its_reason_even_if_the_last_reply_approved() {
    let spec = at_most(2, review(&[("reviewer", &["LGTM"])]));
    goes(spec.clone(), "COMPLETE max_rounds limits (done): implementer reviewer");
    let told = told(&play(spec));
    assert_eq!((&told["converged"], &told["final"]), (&json!(true), &json!("plain text")));
    goes(
        at_most(2, review(&[("reviewer", &["[NIT] x"])])),
        "COMPLETE max_rounds limits (done): implementer reviewer",
    );
}

#[test]
fn a_question_at_a_limit_is_asked_with_its_reason_and_an_answer_opens_one_turn() {
    let spec =
        at_most(2, review(&[("reviewer", &["NEEDS_INPUT: which?", "[BLOCKING] x", "LGTM"])]));
    let sim = answered(spec.clone(), &[]);
    assert_eq!(
        course_of(&sim),
        "NEEDS_INPUT max_rounds limits (needs_input): implementer reviewer"
    );
    let sim = answered(spec, &["this"]);
    assert_eq!(
        course_of(&sim),
        "COMPLETE max_rounds limits (bound_reached): implementer reviewer reviewer"
    );
    let again = review(&[("reviewer", &["NEEDS_INPUT: a?", "NEEDS_INPUT: b?", "LGTM"])]);
    let sim = answered(at_most(2, again), &["this", "that"]);
    assert_eq!(
        course_of(&sim),
        "COMPLETE max_rounds limits (done): implementer reviewer reviewer reviewer"
    );
}

#[test]
fn who_asked_speaks_again_with_all_answers_before_it_goes_on() {
    let sim = answered(
        consensus(&[
            ("analyst_impl", &["NEEDS_INPUT: which language?", "I"]),
            ("analyst_security", &["NEEDS_INPUT: which threat?", "S"]),
            ("synthesizer", &["fine"]),
        ]),
        &["either"],
    );
    assert_eq!(
        course_of(&sim),
        "COMPLETE pattern_complete signals (done): analyst_impl+analyst_design+analyst_security analyst_impl+analyst_security synthesizer"
    );
    let calls = view::calls(&sim.spec, &sim.run);
    let of = |key: &str| {
        let call = calls.iter().find(|call| call.key.as_str() == key).expect("it was made");
        call.request.messages.iter().map(|it| &*it.content).collect::<Vec<_>>().join("\n")
    };
    let synthesis = of("stage-3/synthesizer");
    for text in ["which language?", "which threat?", "either", ">\nI\n<", ">\nS\n<"] {
        assert!(synthesis.contains(text), "{text}: {synthesis}");
    }
    assert!(!synthesis.contains(">\nNEEDS_INPUT"), "a question is no analysis: {synthesis}");
}

#[test]
fn the_run_goes_on_when_all_questions_are_answered() {
    let spec = consensus(&[
        ("analyst_impl", &["NEEDS_INPUT: a?", "I"]),
        ("analyst_design", &["NEEDS_INPUT: b?", "D"]),
    ]);
    let mut sim = answered(spec, &[]);
    let told_before = told(&sim);
    assert_eq!(told_before["open_questions"].as_array().map(Vec::len), Some(2));
    let question = json!({ "key": "person/turn-1", "role": "analyst_impl", "text": "a?" });
    assert_eq!(told_before["question"], question);
    sim.feed(says(Key::parse("person/turn-1"), "first"), &mut Scripted);
    assert!(sim.run.waits_for_person());
    let told_after = told(&sim);
    assert_eq!(told_after["question"]["key"], "person/turn-2");
    assert_eq!(
        (&told_after["state"], &told_after["reason"]),
        (&json!("NEEDS_INPUT"), &json!("needs_input"))
    );
    sim.feed(says(Key::parse("person/turn-2"), "second"), &mut Scripted);
    assert_eq!(play_until_asked(sim).run.ending().map(|it| it.done), Some(true));
}

#[test]
fn an_open_conflict_a_missing_ruling_and_the_judge_ask_the_role_they_are_about() {
    let open = at_most(4, consensus(&[("synthesizer", &["CONFLICT: cache", "Use it"])]));
    let sim = answered(open.clone(), &[]);
    assert_eq!(told(&sim)["question"]["text"], "cache");
    assert_eq!(told(&sim)["unresolved"][0]["text"], "cache");
    assert_eq!(
        course_of(&answered(open, &["no cache"])),
        "COMPLETE pattern_complete signals (done): analyst_impl+analyst_design+analyst_security synthesizer synthesizer"
    );
    let unruled = debate(&[("arbiter", &["Hard to say", "Verdict: MODIFY"])]);
    let sim = answered(unruled.clone(), &[]);
    assert_eq!(
        course_of(&sim),
        "NEEDS_INPUT no_verdict signals (needs_input): advocate+critic advocate+critic arbiter"
    );
    assert_eq!(
        course_of(&answered(unruled, &["cost"])),
        "COMPLETE verdict signals (done): advocate+critic advocate+critic arbiter arbiter"
    );
    let judged =
        review(&[("reviewer", &["Hm", "LGTM"]), ("judge", &["NEEDS_INPUT: what is the goal?"])]);
    let sim = answered(judged.clone(), &[]);
    assert_eq!(course_of(&sim), "NEEDS_INPUT judge judge (needs_input): implementer reviewer");
    assert_eq!(told(&sim)["question"]["text"], "what is the goal?");
    assert_eq!(
        course_of(&answered(judged, &["speed"])),
        "COMPLETE explicit_converged signals (done): implementer reviewer reviewer"
    );
}

#[test]
fn the_judge_is_asked_once_a_round_where_the_reviewer_gave_no_signal() {
    let judged = |judge: &'static [&'static str]| {
        review(&[("reviewer", &["Hm"]), ("reviser", &["a", "b", "c", "d"]), ("judge", judge)])
    };
    goes(judged(&["COMPLETE good"]), "COMPLETE judge judge (done): implementer reviewer");
    goes(judged(&["**COMPLETE**: good"]), "COMPLETE judge judge (done): implementer reviewer");
    goes(judged(&["FAILED stuck"]), "FAILED judge judge (failed): implementer reviewer");
    let sim = play(at_most(5, judged(&["CONTINUE", "complete?", "COMPLETE"])));
    assert_eq!(
        course_of(&sim),
        "COMPLETE max_rounds limits (bound_reached): implementer reviewer reviser reviewer reviser"
    );
    assert_eq!(told(&sim)["judge_calls"], 2);
    let sim = play(at_most(3, judged(&["!boom"])));
    assert_eq!(told(&sim)["judge_calls"], 1, "a judge that fails lets it go on");
    assert_eq!(told(&sim)["turns"].as_array().map(Vec::len), Some(3), "its call is no turn");
}

#[test]
fn work_that_no_longer_changes_is_stable_with_its_findings_open() {
    let code = "```\nf(x)\n```";
    let spec = review(&[
        ("implementer", &[code]),
        ("reviewer", &["[BLOCKING] leak\n[MINOR] name"]),
        ("reviser", &["I would keep it:\n```rust\n f(x)\n```"]),
    ]);
    goes(
        spec.clone(),
        "COMPLETE stable_output stable_product (done): implementer reviewer reviser",
    );
    let told = told(&play(spec));
    let texts: Vec<&Value> =
        told["unresolved"].as_array().into_iter().flatten().map(|it| &it["text"]).collect();
    assert_eq!(texts, ["[BLOCKING] leak", "[MINOR] name"]);
    assert_eq!(told["unresolved"][0]["severity"], "blocking");
}

#[test]
fn approvals_of_others_are_recorded_and_not_obeyed() {
    let told =
        told(&play(debate(&[("critic", &["APPROVED"]), ("arbiter", &["LGTM. Verdict: ADOPT"])])));
    let signals = told["signals"].as_array().cloned().unwrap_or_default();
    let seen: Vec<(&Value, &Value, &Value)> =
        signals.iter().map(|it| (&it["role"], &it["signal"], &it["obeyed"])).collect();
    let of = |role: &'static str, signal: &'static str, obeyed: bool| {
        (json!(role), json!(signal), json!(obeyed))
    };
    let expected = [
        of("critic", "approval", false),
        of("critic", "approval", false),
        of("arbiter", "approval", false),
        of("arbiter", "ruling", true),
    ];
    let expected: Vec<_> = expected.iter().map(|(a, b, c)| (a, b, c)).collect();
    assert_eq!(seen, expected);
    goes(
        consensus(&[("synthesizer", &["CONVERGED: all agree"])]),
        "COMPLETE explicit_converged signals (done): analyst_impl+analyst_design+analyst_security synthesizer",
    );
}

#[test]
fn the_time_of_the_run_cuts_a_turn_and_is_looked_at_between_turns() {
    let spec = within(1000, review(&[("implementer", &["DRAFT"]), ("reviewer", &["~2000 LGTM"])]));
    goes(spec.clone(), "COMPLETE max_wall_time limits (deadline): implementer reviewer");
    assert_eq!(told(&play(spec))["turns"][1]["error"], "timed out");
    goes(
        within(1000, review(&[("implementer", &["~2000 DRAFT"])])),
        "FAILED max_wall_time limits (deadline): implementer",
    );
    goes(
        within(1000, review(&[("implementer", &["~600 D"]), ("reviewer", &["~400 [BLOCKING] x"])])),
        "COMPLETE max_wall_time limits (deadline): implementer reviewer",
    );
}

#[test]
fn waiting_for_a_person_is_charged_to_no_clock() {
    let spec = within(1000, review(&[("reviewer", &["~600 NEEDS_INPUT: which?", "~300 LGTM"])]));
    let mut sim = answered(spec, &[]);
    // Days go by in the log itself.
    let days = Event::Woken { wall: 0 };
    let record = Record { seq: sim.run.seq() + 1, at: Time(5 * 86_400_000_000), event: days };
    sim.run.apply(&record);
    sim.log.push(record);
    let mut sim = Sim::resume(sim.spec.clone(), sim.run, sim.log, 0);
    sim.feed(says(Key::parse("person/turn-2"), "this"), &mut Scripted);
    assert_eq!(
        course_of(&play_until_asked(sim)),
        "COMPLETE explicit_converged signals (done): implementer reviewer reviewer"
    );
}

#[test]
fn a_budget_that_refuses_the_next_call_ends_it_with_what_there_is() {
    let limited = |calls: u64| {
        let mut spec = review(&[("reviewer", &["[BLOCKING] x"])]);
        spec.limits.calls = Some(calls);
        spec
    };
    goes(limited(0), "FAILED budget_exceeded limits (budget_exhausted): ");
    goes(limited(2), "COMPLETE budget_exceeded limits (budget_exhausted): implementer reviewer");
    assert_eq!(told(&play(limited(2)))["final"], "plain text");
    let mut spec = consensus(&[]);
    spec.limits.calls = Some(2);
    goes(
        spec,
        "FAILED budget_exceeded limits (budget_exhausted): analyst_impl+analyst_design+analyst_security",
    );
    let mut spec = review(&[("implementer", &["~2000 late"])]);
    spec.limits.time = Some(Duration::from_secs(1));
    goes(spec, "FAILED max_wall_time limits (deadline): implementer");
}

#[test]
fn a_cancel_before_the_first_call_leaves_no_turns() {
    let spec = Arc::new(review(&[]));
    let started = Event::Started { spec: spec.clone(), wall: 0, origin: None };
    let mut sim = Sim::resume(spec.clone(), crate::run::Run::default(), Vec::new(), 0);
    sim.feed_all(vec![started, Event::CancelRequested], &mut Scripted);
    assert_eq!(course_of(&sim), "CANCELLED cancelled - (cancelled): ");
    let mut sim = Sim::start(spec, 0, 0, &mut Scripted);
    sim.feed(Event::CancelRequested, &mut Scripted);
    assert_eq!(course_of(&sim), "CANCELLED cancelled - (cancelled): implementer");
}

#[test]
fn a_run_that_waits_can_be_cancelled() {
    let mut sim = answered(review(&[("implementer", &["NEEDS_INPUT: which?"])]), &[]);
    sim.feed(Event::CancelRequested, &mut Scripted);
    assert_eq!(course_of(&sim), "CANCELLED cancelled - (cancelled): implementer");
    assert_eq!(told(&sim)["question"], Value::Null);
}

#[test]
fn by_plain_keywords_anybody_may_close_and_a_failed_turn_moves_on() {
    goes(
        literal(review(&[("implementer", &["this is not approved"])])),
        "COMPLETE explicit_converged signals (done): implementer",
    );
    goes(
        literal(review(&[("reviewer", &["approved? NEEDS_INPUT and blocking"])])),
        "COMPLETE explicit_converged signals (done): implementer reviewer",
    );
    goes(
        at_most(
            7,
            literal(review(&[
                ("implementer", &["a", "b", "c"]),
                ("reviewer", &["critical"]),
                ("reviser", &["d", "e"]),
            ])),
        ),
        "COMPLETE max_rounds limits (bound_reached): implementer reviewer reviser implementer reviewer reviser implementer",
    );
    goes(
        literal(review(&[("implementer", &["!x"]), ("reviewer", &["!x"]), ("reviser", &["!x"])])),
        "FAILED consecutive_failures limits (failed): implementer reviewer reviser",
    );
    goes(
        at_most(2, literal(review(&[("reviewer", &["needs_input: which?"])]))),
        "COMPLETE max_rounds limits (bound_reached): implementer reviewer",
    );
    let sim = answered(literal(review(&[("reviewer", &["needs_input: which?"])])), &[]);
    assert_eq!(
        course_of(&sim),
        "NEEDS_INPUT needs_input signals (needs_input): implementer reviewer"
    );
}

#[test]
fn by_plain_keywords_consensus_and_debate_go_through_their_cycles_and_are_done() {
    let cycle = "analyst_impl+analyst_design+analyst_security synthesizer";
    goes(
        literal(consensus(&[("synthesizer", &["S", "CONFLICT: x"])])),
        &format!("COMPLETE pattern_complete signals (done): {cycle} {cycle}"),
    );
    goes(
        literal(debate(&[("arbiter", &["hard to say"])])),
        "COMPLETE pattern_complete signals (done): advocate+critic advocate+critic arbiter",
    );
    goes(
        at_most(2, literal(consensus(&[]))),
        "FAILED max_rounds limits (bound_reached): analyst_impl+analyst_design",
    );
    goes(
        at_most(3, literal(debate(&[]))),
        "FAILED max_rounds limits (bound_reached): advocate+critic advocate",
    );
}

#[test]
fn only_a_role_that_closes_learns_the_words_that_do_and_all_learn_what_stops() {
    for language in [Language::English, Language::Chinese] {
        for form in Form::ALL {
            for role in form.roles() {
                let told = prompt::instructions(role, language);
                assert!(told.contains("NEEDS_INPUT") && told.contains("question"), "{role:?}");
                let closes = ["CONVERGED", "LGTM", "APPROVED", "ADOPT", "REJECT", "MODIFY"];
                let learns = closes.iter().any(|word| told.contains(word));
                assert_eq!(learns, form.shape().closes == role, "{role:?} {told}");
            }
        }
    }
}

#[test]
fn the_record_tells_all_of_it() {
    let mut spec = review(&[("implementer", &["CODE"]), ("reviewer", &["LGTM"])]);
    spec.team.agents[0].sandbox = crate::team::Sandbox::Write;
    let mut told = told(&play(spec));
    for turn in told["turns"].as_array_mut().into_iter().flatten() {
        turn["usage"] = Value::Null;
    }
    let seen = json!({
        "turns": told["turns"], "last_turn": told["last_turn"], "signals": told["signals"],
        "providers": told["providers"], "rounds": told["rounds"], "strategy": told["strategy"],
    });
    expect![[r#"
        {
          "turns": [
            {
              "turn": 1,
              "round": 1,
              "stage": 1,
              "role": "implementer",
              "agent": "implementer",
              "model": "codex",
              "served_by": null,
              "sandbox": "write",
              "output": "CODE",
              "usage": null,
              "elapsed_s": 0.0
            },
            {
              "turn": 2,
              "round": 1,
              "stage": 2,
              "role": "reviewer",
              "agent": "reviewer",
              "model": "claude",
              "served_by": null,
              "sandbox": "read-only",
              "output": "LGTM",
              "usage": null,
              "elapsed_s": 0.0
            }
          ],
          "last_turn": {
            "turn": 2,
            "role": "reviewer",
            "output": "LGTM"
          },
          "signals": [
            {
              "turn": 2,
              "role": "reviewer",
              "signal": "approval",
              "obeyed": true
            }
          ],
          "providers": {
            "implementer": "codex",
            "reviewer": "claude",
            "reviser": "codex"
          },
          "rounds": [
            {
              "round": 1,
              "kind": "review",
              "turns": [
                {
                  "turn": 1,
                  "stage": 1,
                  "role": "implementer",
                  "output": "CODE"
                },
                {
                  "turn": 2,
                  "stage": 2,
                  "role": "reviewer",
                  "output": "LGTM"
                }
              ]
            }
          ],
          "strategy": "review"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&seen).expect("plain data"));
}

#[test]
fn a_planner_speaks_once_before_the_roles_and_each_is_shown_its_plan() {
    let planned = |plan: &'static [&'static str]| {
        let mut spec = review(&[("reviewer", &["LGTM"])]);
        spec.team.agents.push(agent("planner", plan));
        play(with(spec, |pattern| pattern.planner = Some(id("planner"))))
    };
    let sim = planned(&["First this."]);
    let gone = "COMPLETE explicit_converged signals (done): implementer reviewer";
    assert_eq!((course_of(&sim), &told(&sim)["plan"]), (gone.to_owned(), &json!("First this.")));
    let calls = view::calls(&sim.spec, &sim.run);
    assert_eq!(calls[0].key.to_string(), "plan/planner");
    for call in &calls[1..] {
        let said: Vec<&str> = call.request.messages.iter().map(|it| &*it.content).collect();
        assert!(said.join("\n").contains("First this."), "{}", call.key);
    }
    let sim = planned(&["!boom"]);
    assert_eq!(course_of(&sim), gone, "without a plan the work goes on");
    assert_eq!(told(&sim)["plan"], Value::Null);
}
