use expect_test::expect;

use super::*;
use crate::{
    call::Call,
    event::{Event, Record},
    replay,
    run::Run,
    sim::Sim,
    spec::{Collaboration, Spec},
    team::{Nested, Target},
    testing::{Scripted, agent, check, ids, play, spec},
    time::{Duration, Time},
    view,
};

fn table(agents: &[(&str, &[&str])], change: impl FnOnce(&mut Roundtable)) -> Spec {
    let names: Vec<&str> = agents.iter().map(|(name, _)| *name).collect();
    let mut table = Roundtable {
        agents: ids(&names),
        max_posts: USUAL_POSTS,
        max_turns: USUAL_TURNS,
        scribe: None,
        clocks: Clocks::default(),
    };
    change(&mut table);
    let agents = agents.iter().map(|(name, replies)| agent(name, replies)).collect();
    spec(agents, Collaboration::Roundtable(table))
}

#[test]
fn vr_002_and_005_an_agent_acts_on_a_trace_left_by_another_and_a_quiet_table_stops() {
    check(
        table(&[("a", &["R1", "PASS"]), ("b", &["PASS", "seen", "PASS"])], |_| ()),
        expect![[r#"
              1     0 started
              2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
              3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
              4     0 answered b/turn-1: PASS
              5     0 answered a/turn-1: R1
              6     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
              7     0 asked b/turn-2 [task · say You are b, one of severa… · board since b/turn-1: a/turn-1]
              8     0 answered a/turn-2: PASS
              9     0 answered b/turn-2: seen
             10     0 asked a/turn-3 [task · say You are a, one of severa… · board since a/turn-2: b/turn-2]
             11     0 asked b/turn-3 [task · say You are b, one of severa… · board since b/turn-2: b/turn-2]
             12     0 answered a/turn-3: PASS
             13     0 answered b/turn-3: PASS
             14     0 ended quiescent
            = done quiescent: Some("note:\nseen")
              {"round":1,"kind":"roundtable","responses":{"a":"R1","b":"PASS"}}
              {"round":2,"kind":"roundtable","responses":{"a":"PASS","b":"seen"}}
              {"round":3,"kind":"roundtable","responses":{"a":"PASS","b":"PASS"}}
        "#]],
    );
}

#[test]
fn vr_007_a_failed_turn_is_not_a_pass() {
    check(
        table(&[("a", &["PASS"]), ("b", &["!x", "PASS"])], |_| ()),
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
          4     0 answered b/turn-1: (x)
          5     0 answered a/turn-1: PASS
          6     0 asked b/turn-2 [task · say You are b, one of severa… · board since b/turn-1: ]
          7     0 answered b/turn-2: PASS
          8     0 ended quiescent
        = done quiescent: None
          {"round":1,"kind":"roundtable","responses":{"a":"PASS","b":{"error":"x"}}}
          {"round":2,"kind":"roundtable","responses":{"b":"PASS"}}
    "#]],
    );
}

#[test]
fn vr_006_a_chatty_table_stops_at_its_limit_and_turns_under_way_are_withdrawn() {
    check(
        table(&[("a", &["one", "two", "three"]), ("b", &["~900 late"])], |it| it.max_posts = 3),
        expect![[r#"
              1     0 started
              2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
              3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
              4     0 answered a/turn-1: one
              5     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
              6     0 answered a/turn-2: two
              7     0 asked a/turn-3 [task · say You are a, one of severa… · board since a/turn-2: a/turn-2]
              8     0 answered a/turn-3: three
              9     0 withdrawn b/turn-1: withdrawn
             10     0 ended max_rounds
            = bound_reached max_rounds: Some("note:\nthree")
              {"round":1,"kind":"roundtable","responses":{"a":"one"}}
              {"round":2,"kind":"roundtable","responses":{"a":"two"}}
              {"round":3,"kind":"roundtable","responses":{"a":"three"}}
        "#]],
    );
}

#[test]
fn who_has_had_all_its_turns_ends_the_table() {
    check(
        table(&[("a", &["1", "2", "3"])], |it| it.max_turns = 2),
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 answered a/turn-1: 1
          4     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
          5     0 answered a/turn-2: 2
          6     0 ended max_rounds
        = bound_reached max_rounds: Some("note:\n2")
          {"round":1,"kind":"roundtable","responses":{"a":"1"}}
          {"round":2,"kind":"roundtable","responses":{"a":"2"}}
    "#]],
    );
}

#[test]
fn a_slow_agent_holds_up_no_other_and_finds_all_that_came_meanwhile() {
    check(
        table(
            &[("a", &["x", "PASS"]), ("b", &["~500 PASS", "PASS"]), ("c", &["y", "PASS"])],
            |_| (),
        ),
        expect![[r#"
              1     0 started
              2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
              3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
              4     0 asked c/turn-1 [task · say You are c, one of severa… · board: ]
              5     0 answered a/turn-1: x
              6     0 answered c/turn-1: y
              7     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
              8     0 asked c/turn-2 [task · say You are c, one of severa… · board since c/turn-1: a/turn-1 c/turn-1]
              9     0 answered c/turn-2: PASS
             10     0 answered a/turn-2: PASS
             11     0 asked a/turn-3 [task · say You are a, one of severa… · board since a/turn-2: c/turn-1]
             12     0 answered a/turn-3: PASS
             13   500 answered b/turn-1: PASS
             14   500 asked b/turn-2 [task · say You are b, one of severa… · board since b/turn-1: a/turn-1 c/turn-1]
             15   500 answered b/turn-2: PASS
             16   500 ended quiescent
            = done quiescent: Some("note:\ny")
              {"round":1,"kind":"roundtable","responses":{"a":"x","b":"PASS","c":"y"}}
              {"round":2,"kind":"roundtable","responses":{"a":"PASS","b":"PASS","c":"PASS"}}
              {"round":3,"kind":"roundtable","responses":{"a":"PASS"}}
        "#]],
    );
}

#[test]
fn who_fails_three_times_in_a_row_leaves_and_with_the_last_one_the_table_fails() {
    check(
        table(&[("a", &["!x"]), ("b", &[" "])], |_| ()),
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
          4     0 answered b/turn-1:  
          5     0 answered a/turn-1: (x)
          6     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: ]
          7     0 asked b/turn-2 [task · say You are b, one of severa… · board since b/turn-1: ]
          8     0 answered a/turn-2: (x)
          9     0 answered b/turn-2:  
         10     0 asked a/turn-3 [task · say You are a, one of severa… · board since a/turn-2: ]
         11     0 asked b/turn-3 [task · say You are b, one of severa… · board since b/turn-2: ]
         12     0 answered a/turn-3: (x)
         13     0 answered b/turn-3:  
         14     0 ended consecutive_failures
        = failed consecutive_failures: None
          {"round":1,"kind":"roundtable","responses":{"a":{"error":"x"},"b":" "}}
          {"round":2,"kind":"roundtable","responses":{"a":{"error":"x"},"b":" "}}
          {"round":3,"kind":"roundtable","responses":{"a":{"error":"x"},"b":" "}}
    "#]],
    );
}

#[test]
fn a_scribe_words_the_answer() {
    let spec = table(&[("a", &["R1", "PASS", "the answer"]), ("b", &["PASS"])], |it| {
        it.scribe = Some(it.agents[0].clone());
    });
    check(
        spec,
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
          4     0 answered b/turn-1: PASS
          5     0 answered a/turn-1: R1
          6     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
          7     0 asked b/turn-2 [task · say You are b, one of severa… · board since b/turn-1: a/turn-1]
          8     0 answered a/turn-2: PASS
          9     0 answered b/turn-2: PASS
         10     0 asked scribe [task · board: a/turn-1 · say The round table is over.…]
         11     0 answered scribe: the answer
         12     0 ended quiescent
        = done quiescent: Some("the answer")
          {"round":1,"kind":"roundtable","responses":{"a":"R1","b":"PASS"}}
          {"round":2,"kind":"roundtable","responses":{"a":"PASS","b":"PASS"}}
    "#]],
    );
}

#[test]
fn a_lost_write_is_shown_to_its_author_and_to_nobody_else() {
    let write = r#"{"cells":[{"key":"plan","expect":0,"value":"A"}]}"#;
    let late = r#"~100 {"cells":[{"key":"plan","expect":0,"value":"B"}]}"#;
    let sim = play(table(&[("a", &[write, "PASS"]), ("b", &[late, "PASS"])], |_| ()));
    let shown = |key: &str| {
        let Some(Call::Agent { agent, prompt, .. }) =
            sim.run.known().get(key).map(|entry| entry.call.clone())
        else {
            panic!("{key} was asked");
        };
        let agent = sim.spec.team.agent(&agent);
        let messages = crate::render::messages(&sim.spec, sim.run.known(), agent, &prompt);
        messages.last().expect("there is one").content.to_string()
    };
    let (a, b) = (shown("a/turn-2"), shown("b/turn-2"));
    assert!(b.contains("cell plan is at version 1, not at 0"), "{b}");
    assert!(a.contains("cell plan, version 1") && !a.contains("not taken"), "{a}");
}

#[test]
fn vr_001_the_record_tells_the_board_without_addressees() {
    let post = r#"{"posts":[{"topic":"risk","text":"R1"}],"cells":[{"key":"k","value":1}]}"#;
    let sim = play(table(&[("a", &[post, "PASS"]), ("b", &["PASS"])], |_| ()));
    let outcome = view::outcome("run", &sim.spec, &sim.run, false);
    let told = serde_json::to_string(&outcome.record).expect("it is JSON");
    expect![[r#"{"state":"COMPLETE","converged":true,"board":{"entries":[{"seq":1,"author":"a","topic":"risk","text":"R1","refs":[],"elapsed_s":0.0}],"cells":[{"key":"k","value":1,"version":1,"author":"a"}]}}"#]].assert_eq(&told);
    assert_eq!(outcome.answer.as_deref(), Some("k: 1\n\nrisk:\nR1"));
}

#[test]
fn a_table_replays_and_goes_on_from_every_place_in_its_log() {
    let write = r#"{"cells":[{"key":"plan","expect":0,"value":"A"}]}"#;
    let agents: [(&str, &[&str]); 3] = [
        ("a", &["x", "y", "PASS"]),
        ("b", &["~500 PASS", "!no", "seen", "PASS"]),
        ("c", &[write, " ", "PASS"]),
    ];
    let whole = play(table(&agents, |it| it.scribe = Some(it.agents[2].clone())));
    replay::replay(&whole.log).expect("it decides the same again");
    for cut in 1..whole.log.len() {
        let log = whole.log[..cut].to_vec();
        let answered = |log: &[Record]| {
            let answers = log.iter().filter(|it| matches!(it.event, Event::Answered { .. }));
            answers.filter_map(|it| it.event.key().cloned()).collect::<Vec<_>>()
        };
        let before = answered(&log);
        let run = Run::fold(&log);
        let mut sim = Sim::resume(whole.spec.clone(), run, log, 0);
        sim.feed(Event::Resumed { wall: 0 }, &mut Scripted);
        let sim = sim.finish(&mut Scripted);
        assert_eq!(&*sim.run.ending().expect("it ends").reason, "quiescent", "cut after {cut}");
        // A step of which only a part was kept is decided anew, and that is no step to repeat.
        if !whole.log[cut].event.is_decision() {
            replay::replay(&sim.log).unwrap_or_else(|differs| panic!("cut after {cut}: {differs}"));
        }
        let all = answered(&sim.log);
        assert!(all[before.len()..].iter().all(|key| !before.contains(key)), "cut after {cut}");
        assert!(!sim.log.iter().any(|it| matches!(it.event, Event::Withdrawn { .. })));
    }
}

#[test]
fn a_reply_is_read_strictly() {
    use crate::call::Answer;
    let said = |text: &str| {
        let mut table = Table::new(9);
        let said = table.put(&"a".into(), "a", &Answer::text(text), Time::default());
        (said, table.board().version(), table.told())
    };
    assert_eq!(said("**PASS.**").0, Said::Pass);
    assert_eq!(said(r#"{"pass": true}"#).0, Said::Pass);
    assert_eq!(said(r#"{"posts": [], "cells": []}"#).0, Said::Nothing);
    assert_eq!(said("I pass on this"), (Said::Something, 1, "note:\nI pass on this".to_owned()));
    let wrong = r#"{"posts": "x"}"#;
    assert_eq!(said(wrong), (Said::Something, 1, format!("note:\n{wrong}")));
    let both = r#"{"pass": true, "posts": [{"topic": "t", "text": "x"}]}"#;
    assert_eq!(said(both), (Said::Something, 1, "t:\nx".to_owned()));
}

#[test]
fn a_table_whose_time_is_up_is_complete_with_what_is_on_the_board() {
    let mut spec = table(&[("a", &["note"]), ("b", &["~9000 late"])], |it| it.max_turns = 9);
    spec.limits.time = Some(Duration::from_millis(700));
    spec.team.agents[0] = agent("a", &["~400 note"]);
    check(
        spec,
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
          4   400 answered a/turn-1: note
          5   400 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
          6   700 ticked
          7   700 withdrawn b/turn-1: deadline
          8   700 withdrawn a/turn-2: deadline
          9   700 ended max_wall_time
        = deadline max_wall_time: Some("note:\nnote")
          {"round":1,"kind":"roundtable","responses":{"a":"note","b":{"error":"deadline"}}}
    "#]],
    );
}

#[test]
fn a_table_whose_budget_is_spent_is_complete_with_what_is_on_the_board() {
    let mut spec = table(&[("a", &["one", "two"]), ("b", &["PASS"])], |_| ());
    spec.limits.calls = Some(3);
    check(
        spec,
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 asked b/turn-1 [task · say You are b, one of severa… · board: ]
          4     0 answered b/turn-1: PASS
          5     0 answered a/turn-1: one
          6     0 asked a/turn-2 [task · say You are a, one of severa… · board since a/turn-1: a/turn-1]
          7     0 refused b/turn-2: budget exhausted
          8     0 withdrawn a/turn-2: withdrawn
          9     0 ended budget_exceeded
        = budget_exhausted budget_exceeded: Some("note:\none")
          {"round":1,"kind":"roundtable","responses":{"a":"one","b":"PASS"}}
          {"round":2,"kind":"roundtable","responses":{"b":{"error":"budget exhausted"}}}
    "#]],
    );
}

#[test]
fn names_stand_in_keys_so_that_none_can_be_taken_for_a_place() {
    let spec = table(&[("产品", &["R1", "PASS"]), ("a b", &["PASS"])], |_| ());
    let sim = play(spec);
    let keys: Vec<&str> = sim.run.known().iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a%20b/turn-1", "a%20b/turn-2", "产品/turn-1", "产品/turn-2"]);
}

#[test]
fn a_table_is_drawn_with_its_board_in_the_middle() {
    use crate::view::drawing::{Format, of_team};
    let spec = table(&[("a", &["PASS"]), ("b", &["PASS"])], |it| {
        it.scribe = Some(it.agents[0].clone());
    });
    expect![[r#"
        ---
        title: "test: roundtable"
        ---
        flowchart TD
          n0(["the task"])
          n1("the board<br/>whoever is idle is shown what is new")
          n2["a<br/>posts, sets cells, or passes"]
          n3["b<br/>posts, sets cells, or passes"]
          n4(["the answer"])
          n5["a<br/>words the answer"]
          n0 --> n1
          n1 --> n2
          n1 --> n3
          n2 --> n1
          n3 --> n1
          n1 -->|"nobody has anything to add"| n5
          n5 --> n4
          notes["at most 40 entries, and 20 turns each"]:::note
          classDef note fill:none,stroke:none,text-align:left
    "#]]
    .assert_eq(&of_team(&spec).write(Format::Mermaid));
}

#[test]
fn a_team_has_a_seat_like_any_other() {
    let inner = table(&[("x", &["R1", "PASS"])], |_| ());
    let mut spec = table(&[("a", &["PASS"]), ("team", &[])], |it| it.max_turns = 1);
    let nested = Nested { file: "inner.yaml".into(), spec: inner };
    spec.team.agents[1].target = Target::Team(Box::new(nested));
    check(
        spec,
        expect![[r#"
          1     0 started
          2     0 asked a/turn-1 [task · say You are a, one of severa… · board: ]
          3     0 asked team/turn-1 [task · say You are team, one of sev… · board: ]
          4     0 asked team/turn-1/x/turn-1 [task · say You are team, one of sev… · board:  · say You are x, one of severa… · board: ]
          5     0 answered team/turn-1/x/turn-1: R1
          6     0 answered a/turn-1: PASS
          7     0 asked team/turn-1/x/turn-2 [task · say You are team, one of sev… · board:  · say You are x, one of severa… · board since team/turn-1/x/turn-1: team/turn-1/x/turn-1]
          8     0 answered team/turn-1/x/turn-2: PASS
          9     0 concluded team/turn-1: note:
        R1
         10     0 ended max_rounds
        = bound_reached max_rounds: Some("note:\nnote:\nR1")
          {"round":1,"kind":"roundtable","responses":{"a":"PASS","team":"note:\nR1"}}
    "#]],
    );
}

#[test]
fn a_fork_with_nothing_changed_asks_no_turn_again_though_answers_came_out_of_order() {
    let agents: [(&str, &[&str]); 3] = [
        ("a", &["~300 x", "y", "PASS"]),
        ("b", &["~200 z", "~50 PASS", "seen", "PASS"]),
        ("c", &["w", "~400 PASS", "PASS"]),
    ];
    let whole = play(table(&agents, |it| it.scribe = Some(it.agents[2].clone())));
    let (at, spec) = (whole.run.seq(), whole.spec.clone());
    let change = replay::Change { at, spec, answers: Vec::new(), retry: None };
    let events = replay::fork("origin", &whole.log, &change, 0);
    let mut forked = Run::default();
    let stepped = forked.step(whole.spec.program(), &whole.spec, events, Time::default());
    let asked = stepped.records.iter().filter(|it| matches!(it.event, Event::Asked { .. }));
    assert_eq!(asked.count(), 0);
    assert_eq!(forked.ending(), whole.run.ending());
    let told = |sim_run: &Run| view::outcome("run", &whole.spec, sim_run, false).rounds;
    assert_eq!(told(&forked), told(&whole.run));
}
