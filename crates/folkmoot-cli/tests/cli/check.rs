//! What `check` says of team files, and what every other command says of unsound ones.

use expect_test::expect;

use crate::{
    bench::Bench,
    snapshot::{check, check_json},
};

const BAD: &str = r#"name: Bad
agnets: []
agents:
  - name: 研究员
    script: { replies: [1] }
  - name: writer
    demo: true
collaboration:
  strategy: debat
  rounds: "3"
"#;

#[test]
fn turns_with_tools_are_told_from_calls() {
    let bench = Bench::with_team(
        "agents:
  - name: a
    grants: [file.read]
    max_steps: 2
    script: { replies: [{ tool_calls: [{ name: file.read, arguments: { path: a } }] }, x] }
collaboration: { strategy: sequential }",
    );
    check(
        &bench,
        bench.call(["check", "team.yaml"]),
        expect![[r#"
            exit 0
            > sound: a run takes 1 turn, with tools and retries at most 3 calls
        "#]],
    );
}

#[test]
fn a_sound_team_takes_so_many_calls() {
    let bench = Bench::with_team(
        "agents: [{ name: 产品, demo: true }, { name: 研发, demo: true }]
collaboration: { strategy: debate, rounds: 3 }",
    );
    check(
        &bench,
        bench.call(["check", "team.yaml"]),
        expect![[r#"
        exit 0
        > sound: a run takes 6 to 7 calls, at most 4 in a row
    "#]],
    );
    let mut checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
    // What a plan shows too, and its tests.
    let bounds = checked["bounds"].as_object_mut().expect("a sound team has bounds");
    let details =
        ["started", "input", "output", "cost_usd", "phases", "agents", "limits", "against"];
    assert!(details.iter().all(|it| bounds.remove(*it).is_some()), "{bounds:?}");
    check_json(
        &bench,
        checked,
        expect![[r#"
            {
              "valid": true,
              "errors": [],
              "warnings": [],
              "hints": [],
              "bounds": {
                "calls": {
                  "min": 6,
                  "max": 7
                },
                "requests": {
                  "min": 6,
                  "max": 7
                },
                "unknown": [],
                "fits": true,
                "tokens_max": 1120,
                "tokens": {
                  "min": 960,
                  "max": 1120
                },
                "critical_path": 4,
                "turns": {
                  "min": 6,
                  "max": 7
                }
              },
              "agents": [
                {
                  "name": "产品",
                  "id": "产品",
                  "role": null,
                  "description": null,
                  "capabilities": [],
                  "model": "demo",
                  "grants": [],
                  "sandbox": "read-only",
                  "max_steps": 30,
                  "retries": 0
                },
                {
                  "name": "研发",
                  "id": "研发",
                  "role": null,
                  "description": null,
                  "capabilities": [],
                  "model": "demo",
                  "grants": [],
                  "sandbox": "read-only",
                  "max_steps": 30,
                  "retries": 0
                }
              ]
            }
        "#]],
    );
}

#[test]
fn every_mistake_of_a_file_is_shown_where_it_stands() {
    let bench = Bench::with_team(BAD);
    check(
        &bench,
        bench.call(["check", "team.yaml"]),
        expect![[r#"
        exit 2
        ! error[unknown_key]: unknown key "agnets"
        !  --> team.yaml:2:1
        !   |
        ! 2 | agnets: []
        !   | ^^^^^^
        !   |
        !   = help: did you mean "agents"?
        ! 
        ! error[unknown_strategy]: unknown strategy "debat"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto
        !  --> team.yaml:9:13
        !   |
        ! 9 |   strategy: debat
        !   |             ^^^^^
        !   |
        !   = help: did you mean "debate"?
        ! 
        ! error[bad_value]: rounds must be a whole number from 1 to 100; got "3" (a string)
        !   --> team.yaml:10:11
        !    |
        ! 10 |   rounds: "3"
        !    |           ^^^
        !    |
        !    = help: write it without quotes
        ! 
        ! 3 errors
    "#]],
    );
}

#[test]
fn mistakes_of_file_and_flags_are_told_together_before_anything_runs() {
    let bench = Bench::with_team(BAD);
    let wrong = ["run", "team.yaml", "task", "--timeout", "soon", "--max-calls", "-1"];
    check(
        &bench,
        bench.call(wrong),
        expect![[r#"
        exit 2
        ! error[unknown_key]: unknown key "agnets"
        !  --> team.yaml:2:1
        !   |
        ! 2 | agnets: []
        !   | ^^^^^^
        !   |
        !   = help: did you mean "agents"?
        ! 
        ! error[unknown_strategy]: unknown strategy "debat"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto
        !  --> team.yaml:9:13
        !   |
        ! 9 |   strategy: debat
        !   |             ^^^^^
        !   |
        !   = help: did you mean "debate"?
        ! 
        ! error[bad_value]: rounds must be a whole number from 1 to 100; got "3" (a string)
        !   --> team.yaml:10:11
        !    |
        ! 10 |   rounds: "3"
        !    |           ^^^
        !    |
        !    = help: write it without quotes
        ! 
        ! error[bad_value]: --timeout: timeout must be a time up to 365d, such as 30 (seconds), 0.5 or 30m, or none; got "soon"
        ! help: units are ms, s, m, h and d
        ! 
        ! error[bad_value]: --max-calls: calls must be a whole number of at least 0; got -1
        ! 
        ! 5 errors
    "#]],
    );
    assert!(bench.runs().is_empty());
}

#[test]
fn programs_read_the_mistakes_in_the_same_order() {
    let bench = Bench::with_team(BAD);
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(2).json();
    let refused = bench.call(["run", "team.yaml", "task", "--json"]).must_be(2).json();
    assert_eq!(checked["errors"], refused["errors"]);
    assert_eq!(refused["error"], refused["errors"][0]);
    check_json(
        &bench,
        refused,
        expect![[r#"
        {
          "error": {
            "code": "unknown_key",
            "message": "unknown key \"agnets\"",
            "line": 2,
            "column": 1,
            "help": "did you mean \"agents\"?",
            "path": "agnets"
          },
          "errors": [
            {
              "code": "unknown_key",
              "message": "unknown key \"agnets\"",
              "line": 2,
              "column": 1,
              "help": "did you mean \"agents\"?",
              "path": "agnets"
            },
            {
              "code": "unknown_strategy",
              "message": "unknown strategy \"debat\"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto",
              "line": 9,
              "column": 13,
              "help": "did you mean \"debate\"?",
              "path": "collaboration.strategy"
            },
            {
              "code": "bad_value",
              "message": "rounds must be a whole number from 1 to 100; got \"3\" (a string)",
              "line": 10,
              "column": 11,
              "help": "write it without quotes",
              "path": "collaboration.rounds"
            }
          ]
        }
    "#]],
    );
}

#[test]
fn a_doubtful_team_is_sound_and_warned_of() {
    let bench = Bench::with_team(
        "agents: [{ name: a, demo: true }]\ncollaboration: { strategy: broadcast, judge: a }",
    );
    check(
        &bench,
        bench.call(["check", "team.yaml"]),
        expect![[r#"
        exit 0
        > sound: a run takes 1 call
        ! warning[ignored_parameter]: judge has no effect in broadcast
        !  --> team.yaml:2:39
        !   |
        ! 2 | collaboration: { strategy: broadcast, judge: a }
        !   |                                       ^^^^^
        ! 
        ! 1 warning
    "#]],
    );
    check(
        &bench,
        bench.call(["run", "team.yaml", "hi", "--json"]).must_be(0),
        expect![[r#"
        exit 0
        > {"run_id":"r00000000001","status":"done","reason":"answered","strategy":"broadcast","prompt":"hi","rounds":[{"round":1,"kind":"broadcast","responses":{"a":"On \"hi\":\n- a: look for what could fail, and say how we would notice."}}],"final":"On \"hi\":\n- a: look for what could fail, and say how we would notice.","errors":[],"warnings":[{"code":"ignored_parameter","message":"judge has no effect in broadcast"}],"meta":{"elapsed_seconds": 0,"agents":["a"],"strategy":"broadcast","usage":{"total":{"prompt_tokens":120,"completion_tokens":40,"total_tokens":160},"agents":{"a":{"prompt_tokens":120,"completion_tokens":40,"total_tokens":160}},"calls":1}}}
        !    0.0s  started    broadcast · 1 agent
        !    0.0s  answered   a · round-1 · 0.0s · 160 tokens · On "hi": - a: look for what could fail, and say how we would notice.
        !    0.0s  ended      done · answered
    "#]],
    );
}

#[test]
fn files_that_are_no_text_or_too_large_or_not_there_are_refused() {
    let bench = Bench::new();
    std::fs::write(bench.path("latin.yaml"), b"name: caf\xe9\n").expect("it can be written");
    bench.write("large.yaml", &"#".repeat((1 << 20) + 1));
    bench.write("empty.yaml", "");
    for (file, expected) in [
        (
            "latin.yaml",
            expect![[r#"
            exit 2
            ! error[not_utf8]: the file is not UTF-8: byte 0xe9 begins no character
            !  --> latin.yaml:1:10
            !   |
            ! 1 | name: caf
            !   |          ^
            ! 
            ! 1 error
        "#]],
        ),
        (
            "large.yaml",
            expect![[r#"
            exit 2
            ! error[too_large]: the file is larger than 1 MiB
            ! 
            ! 1 error
        "#]],
        ),
        (
            "empty.yaml",
            expect![[r#"
            exit 2
            ! error[no_agents]: the team has no agents
            !  --> empty.yaml:1:1
            !   |
            ! 1 |
            !   | ^
            ! 
            ! 1 error
        "#]],
        ),
        (
            "none.yaml",
            expect![[r#"
            exit 2
            ! error: cannot read the team file none.yaml: No such file or directory (os error 2)
        "#]],
        ),
        (
            ".",
            expect![[r#"
            exit 2
            ! error: cannot read the team file .: Is a directory (os error 21)
        "#]],
        ),
    ] {
        check(&bench, bench.call(["check", file]), expected);
    }
}

#[test]
fn marks_and_line_ends_of_other_systems_make_no_difference() {
    let team = "# 团队\nname: 团队\nagents: [{ name: 甲, script: { replies: [\"好\\n\"] } }]\n";
    let bench = Bench::with_team(team);
    bench.write("windows.yaml", &format!("\u{feff}{}", team.replace('\n', "\r\n")));
    let checked = |file| bench.call(["check", file, "--json"]).must_be(0).json();
    assert_eq!(checked("windows.yaml"), checked("team.yaml"));
    let answer = |file| bench.call(["run", file, "任务"]).must_be(0).stdout;
    assert_eq!((answer("windows.yaml"), answer("team.yaml")), ("好\n".into(), "好\n".into()));
}

#[test]
fn agents_are_listed_with_what_answers_for_them() {
    let bench = Bench::with_team(
        "model: ollama/qwen3
agents:
  - { name: 研究员, description: 查资料, prompt: 你是研究员。 }
  - { name: Content Writer, script: { replies: [x] }, model: openai/gpt-5 }
  - { name: critic, demo: true, description: Looks for what is wrong }",
    );
    check(
        &bench,
        bench.call(["agents", "team.yaml"]),
        expect![[r#"
        exit 0
        > AGENT           ID              MODEL                    TOOLS  STEPS  DESCRIPTION
        > 研究员          研究员          ollama/qwen3                           查资料
        > Content Writer  content-writer  script for openai/gpt-5
        > critic          critic          demo                                   Looks for what is wrong
    "#]],
    );
}
