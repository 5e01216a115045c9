//! Going on from a recorded run with something changed.

use expect_test::expect;
use serde_json::{Value, json};

use crate::{bench::Bench, snapshot::check};

const DEBATE: &str = "
name: 辩论
agents:
  - { name: pro, script: { replies: [P1, P2, P3] } }
  - { name: con, script: { replies: [C1, C2, C3] } }
  - { name: judge, script: { replies: [J1, J2] } }
collaboration: { strategy: debate, agents: [pro, con], rounds: 2, judge: judge }
";

fn recorded() -> Bench {
    let bench = Bench::with_team(DEBATE);
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    bench
}

/// The calls that a fork of the first run made, and its answer.
#[track_caller]
fn forked(bench: &Bench, change: &[&str]) -> (Vec<String>, Value) {
    let first = bench.runs().pop().expect("there is a run")["run_id"].clone();
    let first = first.as_str().expect("ids are texts");
    let arguments = ["fork", first].into_iter().chain(change.iter().copied()).chain(["--json"]);
    let result = bench.call(arguments).must_be(0).json();
    let events = bench.last()["events"].as_array().expect("a list").clone();
    let asked = events.iter().filter(|event| event["event"] == "asked");
    let asked = asked.map(|event| event["key"].as_str().expect("a text").to_owned()).collect();
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
    (asked, result["final"].clone())
}

#[test]
fn a_fork_asks_only_what_the_change_touches() {
    let bench = recorded();
    bench.write("other.yaml", &DEBATE.replace("[J1, J2]", "[K1]"));
    let all = ["round-1/pro", "round-1/con", "round-2/pro", "round-2/con", "judge"];
    for (change, asked, answer) in [
        (&[][..], &[][..], "J1"),
        (&["--set", "agents.judge.prompt=Be brief."], &all[4..], "J1"),
        (&["--set", "agents.judge.description=weighs"], &all[4..], "J1"),
        (&["--set", "collaboration.rounds=1"], &all[4..], "J1"),
        (&["--set", "collaboration.judge=pro"], &all[4..], "P3"),
        (&["--at", "round-2/pro"], &all[2..], "J1"),
        (&["--at", "0"], &all, "J1"),
        (&["--answer", "round-2/con=另一个答案"], &all[4..], "J1"),
        (&["--team", "other.yaml"], &all[4..], "K1"),
        (&["--team", "other.yaml", "--set", "collaboration.rounds=1"], &all[4..], "K1"),
    ] {
        assert_eq!(forked(&bench, change), (owned(asked), json!(answer)), "{change:?}");
    }
    assert_eq!(bench.runs().len(), 11);
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn an_answer_put_in_place_of_another_is_what_the_rest_reads() {
    let bench = recorded();
    let answer = "round-2/con=x = y\nz";
    assert_eq!(forked(&bench, &["--answer", answer]).0, ["judge"]);
    let judge = bench.call(["show", "last", "--call", "judge"]).must_be(0).stdout;
    assert!(judge.contains("x = y") && !judge.contains("C2"), "{judge}");
}

#[test]
fn another_model_for_one_agent_is_asked_again() {
    let bench = recorded();
    let (asked, answer) = forked(&bench, &["--set", "agents.judge.model=demo/x"]);
    assert_eq!((asked, answer), (owned(&["judge"]), json!("J1")), "beside a script it is a label");

    let bench = Bench::new();
    bench.call(["run", "--demo", "task", "--strategy", "broadcast"]).must_be(0);
    let task = bench.call(["fork", "last", "--set", "agents.critic.description=new"]).must_be(0);
    assert!(task.stderr.contains(" · 1 call · "), "{}", task.stderr);
}

#[test]
fn a_fork_that_cannot_be_is_refused_and_nothing_runs() {
    let bench = recorded();
    bench.write("broken.yaml", "agents: 3");
    for (change, expected) in [
        (
            &["--at", "99"][..],
            expect![[r#"
            exit 2
            ! error: run r00000000001 has no event 99; its last is 12
        "#]],
        ),
        (
            &["--at", "round-9/pro"],
            expect![[r#"
                exit 2
                ! error: run r00000000001 has no call round-9/pro
                ! help: did you mean "round-1/pro"?
            "#]],
        ),
        (
            &["--set", "rounds"],
            expect![[r#"
            exit 2
            ! error: --set must be PATH=VALUE; got "rounds"
        "#]],
        ),
        (
            &["--set", "agents.nobody.model=demo/x"],
            expect![[r#"
            exit 2
            ! error[unknown_key]: agents.nobody.model: unknown parameter "agents.nobody.model"
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["--set", "collaboration.rounds=many"],
            expect![[r#"
            exit 2
            ! error[bad_value]: collaboration.rounds: rounds must be a whole number from 1 to 100; got "many"
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["--set", "agents.judge.colour=red"],
            expect![[r#"
            exit 2
            ! error[unknown_key]: agents.judge.colour: unknown key "colour"
            ! help: known here: name, description, prompt, prompt_file, model, capabilities, limits, team, file, script, demo, acp, cli, a2a, grants, max_steps, retries, env, env_allow, inherit_env
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["--answer", "judge"],
            expect![[r#"
            exit 2
            ! error: --answer must be KEY=TEXT; got "judge"
        "#]],
        ),
        (
            &["--answer", "nobody=yes"],
            expect![[r#"
                exit 2
                ! error: call nobody of run r00000000001 is not taken over: it was not answered by then, or is asked again
                ! help: `folkmoot show RUN` lists the calls
            "#]],
        ),
        (
            &["--team", "none.yaml"],
            expect![[r#"
            exit 2
            ! error: cannot read the team file none.yaml: No such file or directory (os error 2)
        "#]],
        ),
        (
            &["--team", "broken.yaml"],
            expect![[r#"
            exit 2
            ! error[bad_value]: agents must be a list of agents; got 3
            !  --> broken.yaml:1:9
            !   |
            ! 1 | agents: 3
            !   |         ^
            ! 
            ! 1 error
        "#]],
        ),
    ] {
        let arguments = ["fork", "last"].into_iter().chain(change.iter().copied());
        check(&bench, bench.call(arguments).must_be(2), expected);
    }
    assert_eq!(bench.runs().len(), 1);
}

#[test]
fn a_fork_does_not_need_the_files_it_began_with() {
    let bench =
        Bench::with_team("agents: [{ name: a, prompt_file: p.md, script: { replies: [x] } }]");
    bench.write("p.md", "你是甲。");
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    std::fs::remove_file(bench.path("p.md")).expect("it was there");
    std::fs::remove_file(bench.path("team.yaml")).expect("it was there");
    assert_eq!(forked(&bench, &["--set", "collaboration.rounds=2"]).0, ["round-2/a"]);
}
