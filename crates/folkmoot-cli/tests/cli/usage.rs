//! Words and flags: how commands are asked, how they refuse, and how they end.

use std::fs::File;

use expect_test::expect;

use crate::{
    bench::{Bench, Process},
    snapshot::check,
};

const ECHO: &str = "name: echo\nagents: [{ name: echo, script: {} }]\n";

#[test]
fn a_task_can_be_given_in_every_documented_way() {
    let bench = Bench::with_team(ECHO);
    for arguments in [
        &["run", "team.yaml", "任务"][..],
        &["run", "team.yaml", "--prompt", "任务"],
        &["run", "team.yaml", "-p", "任务"],
        &["run", "--prompt", "任务", "team.yaml"],
        &["run", "--config", "team.yaml", "任务"],
        &["run", "--config", "team.yaml", "-p", "任务"],
        &["--json", "run", "team.yaml", "任务"],
        &["simulate", "team.yaml", "任务"],
        &["run", "--demo", "任务"],
        &["run", "--demo", "-p", "任务"],
        &["run", "--demo", "--agents", "甲,乙", "任务"],
        &["run", "--agents", "甲,乙", "--model", "demo/x", "任务"],
    ] {
        let called = bench.call(arguments.iter().copied().chain(["--json"])).must_be(0);
        assert_eq!(called.json()["prompt"], "任务", "{arguments:?}");
    }
    let read = bench.call_on("任务\n第二行\n", ["run", "team.yaml", "-", "--json"]).must_be(0);
    assert_eq!(read.json()["prompt"], "任务\n第二行\n");
    let hyphen = bench.call(["run", "team.yaml", "-p", "-5 degrees", "--json"]).must_be(0);
    assert_eq!(hyphen.json()["prompt"], "-5 degrees");
}

#[test]
fn words_that_are_missing_or_too_many_are_refused_with_advice() {
    let bench = Bench::with_team(ECHO);
    for (arguments, expected) in [
        (
            &["run"][..],
            expect![[r#"
            exit 2
            ! error: no team is given
            ! help: name a team file, or try `folkmoot run --demo "a task"`; `folkmoot init` writes one
        "#]],
        ),
        (
            &["run", "team.yaml"],
            expect![[r#"
            exit 2
            ! error: the task is missing
            ! help: put it behind the team, or after --prompt, or pipe it in with -
        "#]],
        ),
        (
            &["run", "--demo"],
            expect![[r#"
            exit 2
            ! error: the task is missing
            ! help: put it behind the team, or after --prompt, or pipe it in with -
        "#]],
        ),
        (
            &["run", "team.yaml", ""],
            expect![[r#"
            exit 2
            ! error[empty_prompt]: the task is empty
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["run", "team.yaml", " \n"],
            expect![[r#"
            exit 2
            ! error[empty_prompt]: the task is empty
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["run", "team.yaml", "a", "task"],
            expect![[r#"
            exit 2
            ! error: the task is given twice, or there are more words than a team and a task
            ! help: quote the task
        "#]],
        ),
        (
            &["run", "team.yaml", "one", "-p", "two"],
            expect![[r#"
            exit 2
            ! error: the task is given twice, or there are more words than a team and a task
            ! help: quote the task
        "#]],
        ),
        (
            &["run", "--demo", "a", "task"],
            expect![[r#"
            exit 2
            ! error: the task is given twice, or there are more words than a team and a task
            ! help: quote the task
        "#]],
        ),
        (
            &["run", "--demo", "--config", "team.yaml", "task"],
            expect![[r#"
            exit 2
            ! error: a team file and --demo or --agents are given; one of them is enough
        "#]],
        ),
        (
            &["run", "--agents", "a", "--config", "team.yaml", "task"],
            expect![[r#"
            exit 2
            ! error: a team file and --demo or --agents are given; one of them is enough
        "#]],
        ),
        (
            &["run", "--agents", "a,b", "task"],
            expect![[r#"
            exit 2
            ! error[no_model]: --agents: agent "a" has no model
            ! help: give it or the team a model, or set default_model in the config
            ! 
            ! error[no_model]: --agents: agent "b" has no model
            ! help: give it or the team a model, or set default_model in the config
            ! 
            ! 2 errors
        "#]],
        ),
        (
            &["run", "--agents", "a,A", "--demo", "task"],
            expect![[r#"
            exit 2
            ! error[bad_name]: --agents: Agents "a" and "A" cannot be told apart
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["run", "--demo", "task", "--strategy", "debat"],
            expect![[r#"
            exit 2
            ! error[unknown_strategy]: --strategy: unknown strategy "debat"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto
            ! help: did you mean "debate"?
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["run", "--demo", "task", "--rounds", "0"],
            expect![[r#"
            exit 2
            ! error[bad_value]: --rounds: rounds must be a whole number from 1 to 100; got 0
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["run", "--demo", "task", "--timeout", "soon"],
            expect![[r#"
            exit 2
            ! error[bad_value]: --timeout: timeout must be a time up to 365d, such as 30 (seconds), 0.5 or 30m, or none; got "soon"
            ! help: units are ms, s, m, h and d
            ! 
            ! 1 error
        "#]],
        ),
        (
            &["run", "--demo", "task", "--colour", "red"],
            expect![[r#"
            exit 2
            ! error: unexpected argument '--colour' found
            ! 
            !   tip: to pass '--colour' as a value, use '-- --colour'
            ! 
            ! Usage: folkmoot run --demo <TEAM> [PROMPT]
            ! 
            ! For more information, try '--help'.
        "#]],
        ),
        (
            &["fly"],
            expect![[r#"
            exit 2
            ! error: unrecognized subcommand 'fly'
            ! 
            ! Usage: folkmoot [OPTIONS] <COMMAND>
            ! 
            ! For more information, try '--help'.
        "#]],
        ),
        (
            &["show"],
            expect![[r#"
            exit 2
            ! error: the following required arguments were not provided:
            !   <RUN>
            ! 
            ! Usage: folkmoot show --db <FILE> <RUN>
            ! 
            ! For more information, try '--help'.
        "#]],
        ),
    ] {
        check(&bench, bench.call(arguments.iter().copied()).must_be(2), expected);
    }
    let large = "x".repeat((1 << 20) + 1);
    check(
        &bench,
        bench.call_on(&large, ["run", "team.yaml", "-"]).must_be(2),
        expect![[r#"
        exit 2
        ! error: standard input is over 1 MiB
    "#]],
    );
    assert!(bench.runs().is_empty());
}

#[test]
fn programs_read_every_refusal_as_json() {
    let bench = Bench::with_team(ECHO);
    for (arguments, code) in [
        (&["run", "--json"][..], "no_team"),
        (&["run", "team.yaml", "--json"], "empty_prompt"),
        (&["run", "team.yaml", " ", "--json"], "empty_prompt"),
        (&["run", "team.yaml", "a", "b", "--output", "json"], "two_prompts"),
        (&["run", "none.yaml", "a", "--json"], "unreadable_team"),
        (&["run", "team.yaml", "a", "--output=stream-json", "--strategy", "x"], "unknown_strategy"),
        (&["show", "nobody", "--json"], "unknown_run"),
        (&["--json", "fly"], "usage"),
        (&["show", "--json"], "usage"),
        (&["run", "team.yaml", "a", "--output", "stream-json", "--colour"], "usage"),
        (&["runs", "--limit", "many", "--output=json"], "usage"),
    ] {
        let refused = bench.call(arguments.iter().copied()).must_be(2);
        assert_eq!(refused.stderr, "", "{arguments:?}");
        let refused = refused.json();
        assert_eq!(refused["error"]["code"], code, "{arguments:?}");
        assert_eq!(refused["errors"][0], refused["error"]);
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    }
}

#[test]
fn every_end_has_its_exit_code() {
    let team = |reply: &str| format!("agents: [{{ name: a, script: {{ replies: [{reply}] }} }}]");
    for (reply, flags, exit, status) in [
        ("done", &[][..], 0, "done"),
        ("{ error: boom }", &[], 1, "failed"),
        ("done", &["--max-calls", "0"], 4, "budget_exhausted"),
        ("{ delay_ms: 60000, reply: late }", &["--deadline", "0.05"], 6, "deadline"),
        ("{ delay_ms: 60000, reply: late }", &["--timeout", "0.05"], 1, "failed"),
    ] {
        let bench = Bench::with_team(&team(reply));
        for mode in ["run", "simulate"] {
            let arguments = [mode, "team.yaml", "task", "--json"];
            let called = bench.call(arguments.into_iter().chain(flags.iter().copied()));
            let result = called.must_be(exit).json();
            assert_eq!(result["status"], status);
            let listed = bench.runs()[0].clone();
            assert_eq!(
                (&listed["status"], &listed["run_id"]),
                (&result["status"], &result["run_id"])
            );
            assert_eq!(bench.last()["run"]["status"], status);
            let watched = bench.call(["watch", "last"]);
            assert_eq!(watched.exit, exit, "{}", watched.shown());
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_finds_no_room_is_told_of() {
    let bench = Bench::new();
    for arguments in [
        &["schema"][..],
        &["run", "--demo", "task", "--json"],
        &["run", "--demo", "task", "--output", "stream-json"],
        &["run", "--json", "--nonsense"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut command = bench.folkmoot(arguments.iter().copied());
        let called = Process::start_into(&mut command, full).finish();
        let told = &called.stderr;
        assert!(told.contains("error: cannot write to standard output: No space left"), "{told}");
        assert_eq!(told.matches("cannot write").count(), 1, "{told}");
        assert_eq!(called.exit, 1, "{arguments:?}");
    }
}
