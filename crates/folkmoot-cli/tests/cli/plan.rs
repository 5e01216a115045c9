//! What a run can cost before it starts, and runs that are refused because of it.

use expect_test::expect;
use serde_json::json;

use crate::{
    bench::Bench,
    snapshot::{check, check_json},
};

const TEAM: &str = "\
name: 顾问团
agents:
  - { name: 乐观者, model: openai/small, retries: 0 }
  - { name: sceptic, model: openai/small, retries: 0, limits: { tokens: 9000 } }
  - { name: 裁判, model: openai/large }
collaboration: { strategy: debate, agents: [乐观者, sceptic], rounds: 2, judge: 裁判 }
limits: { calls: 10, tokens: 40000, time: 10m }
";

const CONFIG: &str = r#"
[max_output_tokens]
"openai/small" = 500
[context_windows]
"openai/large" = 16000
[prices]
"openai/small" = { input = 0.5, output = 2.0, cached_input = 0.05 }
"openai/large" = { input = 2.0, output = 8.0 }
"#;

/// A folder with a team of models whose prices are known, and a key.
fn bench(team: &str) -> Bench {
    let bench = Bench::with_team(team).with("OPENAI_API_KEY", "sk-none");
    bench.write("folkmoot.toml", CONFIG);
    bench
}

#[test]
fn a_plan_shows_who_takes_how_much_and_whether_it_fits() {
    let bench = bench(TEAM);
    let task = "比较 SQLite 与 Postgres";
    check(
        &bench,
        bench.call(["plan", "team.yaml", task]),
        expect![[r#"
            exit 0
            > 顾问团 · debate · 4–5 calls, at most 3 in a row
            > 
            > PHASE    WHO              CALLS  REQUESTS    TOKENS        COST
            > round-1  乐观者, sceptic      2         2  26–2,596  $0–$0.0028
            > round-2  乐观者, sceptic      2         2  26–12.8k  $0–$0.0079
            > judge    裁判               0–1       0–1   0–14.1k  $0–$0.0773
            > all                         4–5       4–5  52–29.5k  $0–$0.0880
            > 
            > AGENT    MODEL         CALLS  REQUESTS    TOKENS        COST  LIMITS
            > 乐观者   openai/small      2         2  26–7,681  $0–$0.0053  10 calls, 40,000 tokens, 10m
            > sceptic  openai/small      2         2  26–7,699  $0–$0.0053  10 calls, 9,000 tokens, 10m
            > 裁判     openai/large    0–1       0–1   0–14.1k  $0–$0.0773  10 calls, 40,000 tokens, 10m
            > 
            > limits   10 calls, 40,000 tokens, 10m; by default 1,024 calls at once
            > fits     the worst case is within every limit on calls, tokens and money
            > the upper bounds assume that each model stays within its window and its reply limit, and counts at most four times the tokens that another counts for the same text
            ! warning[one_model]: All participants share model "openai/small"
            !  --> team.yaml:6:28
            !   |
            ! 6 | collaboration: { strategy: debate, agents: [乐观者, sceptic], rounds: 2, judge: 裁判 }
            !   |                            ^^^^^^
            ! 
            ! 1 warning
        "#]],
    );
    assert!(bench.runs().is_empty());
    let planned = bench.call(["plan", "team.yaml", task, "--json"]).must_be(0).json();
    let agent = &planned["bounds"]["agents"][1];
    assert_eq!((&agent["name"], &agent["limits"]["tokens"]), (&json!("sceptic"), &json!(9000)));
    assert_eq!(planned["models"]["sceptic"], "openai/small");
}

#[test]
fn without_a_task_or_a_price_the_plan_says_what_is_missing() {
    let bench =
        bench(&TEAM.replace("openai/large", "openai/other").replace("tokens: 9000", "calls: 2"));
    check(
        &bench,
        bench.call(["plan", "team.yaml", "--max-tokens", "80000"]),
        expect![[r#"
        exit 0
        > 顾问团 · debate · 4–5 calls, at most 3 in a row
        > 
        > PHASE    WHO              CALLS  REQUESTS   TOKENS     COST
        > round-1  乐观者, sceptic      2         2  unknown  unknown
        > round-2  乐观者, sceptic      2         2  unknown  unknown
        > judge    裁判               0–1       0–1  unknown  unknown
        > all                         4–5       4–5  unknown  unknown
        > 
        > AGENT    MODEL         CALLS  REQUESTS   TOKENS     COST  LIMITS
        > 乐观者   openai/small      2         2  unknown  unknown  10 calls, 80,000 tokens, 10m
        > sceptic  openai/small      2         2  unknown  unknown  2 calls, 80,000 tokens, 10m
        > 裁判     openai/other    0–1       0–1  unknown  unknown  10 calls, 80,000 tokens, 10m
        > 
        > limits   10 calls, 80,000 tokens, 10m; by default 1,024 calls at once
        > beyond   tokens: only the run's limit of 80,000 bounds it; the run may be stopped
        > unknown  the task is not known, and every request holds it: give the task
        > unknown  the price of openai/other is not known: give it in the config, under [prices."openai/other"]
        > the upper bounds assume that each model stays within its window and its reply limit, and counts at most four times the tokens that another counts for the same text
        ! warning[one_model]: All participants share model "openai/small"
        !  --> team.yaml:6:28
        !   |
        ! 6 | collaboration: { strategy: debate, agents: [乐观者, sceptic], rounds: 2, judge: 裁判 }
        !   |                            ^^^^^^
        ! 
        ! 1 warning
    "#]],
    );
}

#[test]
fn programs_get_the_same_bounds_from_check_and_plan() {
    let team = "agents: [{ name: a, demo: true }, { name: b, script: { replies: [x] } }]
collaboration: { strategy: consensus }";
    let bench = Bench::with_team(team);
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
    let planned = bench.call(["plan", "team.yaml", "--json"]).must_be(0).json();
    assert_eq!(planned["bounds"], checked["bounds"]);
    check_json(
        &bench,
        planned,
        expect![[r#"
        {
          "team": "team",
          "strategy": "consensus",
          "auto": null,
          "prompt": null,
          "bounds": {
            "calls": {
              "min": 2,
              "max": 5
            },
            "requests": {
              "min": 2,
              "max": 5
            },
            "started": {
              "min": 2,
              "max": 5
            },
            "input": {
              "min": 120,
              "max": 360
            },
            "output": {
              "min": 40,
              "max": 120
            },
            "tokens": {
              "min": 160,
              "max": 480
            },
            "cost_usd": {
              "min": 0.0,
              "max": 0.0
            },
            "turns": {
              "min": 2,
              "max": 5
            },
            "tokens_max": 480,
            "critical_path": 3,
            "phases": [
              {
                "name": "propose",
                "agents": [
                  "a",
                  "b"
                ],
                "any": false,
                "calls": {
                  "min": 2,
                  "max": 2
                },
                "requests": {
                  "min": 2,
                  "max": 2
                },
                "started": {
                  "min": 2,
                  "max": 2
                },
                "input": {
                  "min": 120,
                  "max": 120
                },
                "output": {
                  "min": 40,
                  "max": 40
                },
                "tokens": {
                  "min": 160,
                  "max": 160
                },
                "cost_usd": {
                  "min": 0.0,
                  "max": 0.0
                }
              },
              {
                "name": "vote",
                "agents": [
                  "a",
                  "b"
                ],
                "any": false,
                "calls": {
                  "min": 0,
                  "max": 2
                },
                "requests": {
                  "min": 0,
                  "max": 2
                },
                "started": {
                  "min": 0,
                  "max": 2
                },
                "input": {
                  "min": 0,
                  "max": 120
                },
                "output": {
                  "min": 0,
                  "max": 40
                },
                "tokens": {
                  "min": 0,
                  "max": 160
                },
                "cost_usd": {
                  "min": 0.0,
                  "max": 0.0
                }
              },
              {
                "name": "judge",
                "agents": [
                  "a"
                ],
                "any": false,
                "calls": {
                  "min": 0,
                  "max": 1
                },
                "requests": {
                  "min": 0,
                  "max": 1
                },
                "started": {
                  "min": 0,
                  "max": 1
                },
                "input": {
                  "min": 0,
                  "max": 120
                },
                "output": {
                  "min": 0,
                  "max": 40
                },
                "tokens": {
                  "min": 0,
                  "max": 160
                },
                "cost_usd": {
                  "min": 0.0,
                  "max": 0.0
                }
              }
            ],
            "agents": [
              {
                "id": "a",
                "name": "a",
                "calls": {
                  "min": 1,
                  "max": 3
                },
                "requests": {
                  "min": 1,
                  "max": 3
                },
                "started": {
                  "min": 1,
                  "max": 3
                },
                "input": {
                  "min": 120,
                  "max": 360
                },
                "output": {
                  "min": 40,
                  "max": 120
                },
                "tokens": {
                  "min": 160,
                  "max": 480
                },
                "cost_usd": {
                  "min": 0.0,
                  "max": 0.0
                },
                "limits": {
                  "calls": null,
                  "tokens": null,
                  "cost_usd": null,
                  "time": null,
                  "concurrency": 1024
                }
              },
              {
                "id": "b",
                "name": "b",
                "calls": {
                  "min": 1,
                  "max": 2
                },
                "requests": {
                  "min": 1,
                  "max": 2
                },
                "started": {
                  "min": 1,
                  "max": 2
                },
                "input": {
                  "min": 0,
                  "max": 0
                },
                "output": {
                  "min": 0,
                  "max": 0
                },
                "tokens": {
                  "min": 0,
                  "max": 0
                },
                "cost_usd": {
                  "min": 0.0,
                  "max": 0.0
                },
                "limits": {
                  "calls": null,
                  "tokens": null,
                  "cost_usd": null,
                  "time": null,
                  "concurrency": 1024
                }
              }
            ],
            "limits": {
              "calls": null,
              "tokens": null,
              "cost_usd": null,
              "time": null,
              "concurrency": 1024
            },
            "against": [],
            "fits": true,
            "unknown": []
          },
          "models": {
            "a": "demo",
            "b": null
          },
          "warnings": []
        }
    "#]],
    );
    let flags =
        ["plan", "team.yaml", "--json", "--strategy", "debate", "--rounds", "4", "-p", "hi"];
    let planned = bench.call(flags).must_be(0).json();
    assert_eq!(planned["bounds"]["calls"], json!({ "min": 8, "max": 9 }));
    assert_eq!((&planned["strategy"], &planned["prompt"]), (&json!("debate"), &json!("hi")));
}

#[test]
fn an_unsound_team_has_no_plan() {
    let bench = Bench::with_team("agents: []");
    check(
        &bench,
        bench.call(["plan", "team.yaml", "--json"]),
        expect![[r#"
        exit 2
        > {"error":{"code":"no_agents","message":"the team has no agents","line":1,"column":1},"errors":[{"code":"no_agents","message":"the team has no agents","line":1,"column":1}]}
    "#]],
    );
}

#[test]
fn under_a_strict_budget_a_run_starts_only_if_its_worst_case_is_proved_to_fit() {
    let bench = bench(TEAM);
    let strict = ["run", "team.yaml", "hi", "--strict-budget", "--max-tokens", "20000"];
    check(
        &bench,
        bench.call(strict),
        expect![[r#"
            exit 2
            ! warning[one_model]: All participants share model "openai/small"
            !  --> team.yaml:6:28
            !   |
            ! 6 | collaboration: { strategy: debate, agents: [乐观者, sceptic], rounds: 2, judge: 裁判 }
            !   |                            ^^^^^^
            ! 
            ! error[over_budget]: tokens: the run may take 29,348, 9,348 more than the limit of 20,000
            ! help: raise limits.tokens to 29348, or bound the work: fewer rounds, steps or tasks, shorter replies (max_output_tokens); `folkmoot plan` shows what takes how much
            ! 
            ! 1 error, 1 warning
        "#]],
    );
    let refused = bench.call(strict.into_iter().chain(["--json", "--max-cost", "0.001"]));
    let refused = refused.must_be(2).json();
    assert_eq!(refused["error"]["code"], "over_budget");
    assert_eq!(refused["errors"].as_array().map(Vec::len), Some(2));
    let nothing = ["run", "team.yaml", "hi", "--strict-budget", "--max-calls", "0"];
    let refused = bench.call(nothing).must_be(2).stderr;
    assert!(refused.contains("calls: the limit of 0 lets nothing start"), "{refused}");
    assert!(bench.runs().is_empty(), "nothing was begun");
}

#[test]
fn what_cannot_be_proved_is_refused_with_what_would_prove_it() {
    let bench = bench(
        "agents: [{ name: a, model: openai/open, grants: [file.read], limits: { tokens: 9000 } }]",
    );
    check(
        &bench,
        bench.call(["run", "team.yaml", "hi", "--strict-budget"]),
        expect![[r#"
        exit 2
        ! error[over_budget]: tokens: nothing but the limit of 9,000 bounds what "a" may take
        ! help: nothing bounds what tools give "a" to read: set context_windows."openai/open" in the config
        ! 
        ! 1 error
    "#]],
    );
    let bound = ["run", "team.yaml", "hi", "--strict-budget", "--max-calls", "3"];
    bench.call(bound).must_be(2);
}

#[test]
fn a_strict_run_that_fits_runs_and_stays_within_its_plan() {
    let team = "\
agents:
  - { name: a, script: { replies: [{ reply: x, usage: { input: 30, output: 10 } }] } }
  - { name: b, demo: true }
collaboration: { strategy: debate, rounds: 2 }
limits: { calls: 5, tokens: 440 }";
    let bench = Bench::with_team(team);
    let planned = bench.call(["plan", "team.yaml", "hi", "--json"]).must_be(0).json();
    assert_eq!(planned["bounds"]["fits"], true);
    assert_eq!(planned["bounds"]["tokens"]["max"], 440);
    let run = bench.call(["run", "team.yaml", "hi", "--strict-budget", "--json"]).must_be(0).json();
    let usage = &run["meta"]["usage"];
    assert_eq!((&usage["total"]["total_tokens"], &usage["calls"]), (&json!(440), &json!(5)));
    let less = ["run", "team.yaml", "hi", "--strict-budget", "--max-tokens", "439"];
    bench.call(less).must_be(2);
}

#[test]
fn one_task_for_one_model_or_many_can_be_held_to_a_strict_budget_too() {
    let bench = Bench::with_team("agents: [{ name: a, demo: true }]\nlimits: { tokens: 100 }");
    for command in ["dispatch", "broadcast"] {
        let arguments = [command, "a", "hi", "--team", "team.yaml", "--strict-budget"];
        let refused = bench.call(arguments).must_be(2);
        assert!(refused.stderr.contains("error[over_budget]: tokens: the run may take 160"));
        bench.call([command, "demo", "hi", "--strict-budget"]).must_be(0);
    }
}

/// The blocks of a README's part, by language.
fn blocks<'a>(part: &'a str, language: &str) -> Vec<&'a str> {
    let begins = format!("```{language}\n");
    let blocks = part.split(&begins).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_plan_in_the_readme_is_the_one_that_is_made() {
    for (readme, heading) in [
        (include_str!("../../../../README.md"), "## What it can cost before it starts"),
        (include_str!("../../../../README.zh-CN.md"), "## 开始之前就知道最多花多少"),
    ] {
        let part = readme.split_once(heading).expect("the README has this part").1;
        let part = part.split("\n## ").next().unwrap_or_default();
        let bench = Bench::with_team(blocks(readme, "yaml")[0]);
        bench.write("folkmoot.toml", blocks(part, "toml")[0]);
        let shown = blocks(part, "console")[0];
        let (command, output) = shown.split_once('\n').expect("it shows a command and its output");
        let (command, task) = command.split_once('"').expect("the task is quoted");
        assert_eq!(command, "$ folkmoot plan team.yaml ");
        let planned = bench.call(["plan", "team.yaml", task.trim_end_matches('"')]).must_be(0);
        assert_eq!(planned.stdout, output);
    }
}
