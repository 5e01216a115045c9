//! What a run prints, real or rehearsed.

use expect_test::expect;
use folkmoot_stub::{Reply, Stub};
use serde_json::json;

use crate::{
    bench::Bench,
    snapshot::{check, check_json},
};

/// A team of which one member fails.
const TEAM: &str = "
name: 评审组
agents:
  - name: 研究员
    script: { replies: [{ reply: \"第一点：\\n先看数据。\", usage: { input: 1200, output: 34 } }] }
  - name: Content Writer
    script: { replies: [{ error: boom }] }
  - name: 主编
    script: { replies: [\"结论：\\n可以发布。\"] }
collaboration: { strategy: sequential }
";

const PAIR: &str = "
name: pair
agents:
  - { name: slow, script: { replies: [{ delay_ms: 60000, reply: later }] } }
  - { name: quick, script: { replies: [now] } }
collaboration: { strategy: broadcast }
";

#[test]
fn the_answer_stands_on_standard_output_and_the_story_beside_it() {
    let bench = Bench::with_team(TEAM);
    check(
        &bench,
        bench.call(["run", "team.yaml", "要不要发布？"]),
        expect![[r#"
        exit 0
        > 结论：
        > 可以发布。
        !    0.0s  started    sequential · 3 agents
        !    0.0s  answered   研究员 · step-1 · 0.0s · 1,234 tokens · 第一点： 先看数据。
        !    0.0s  failed     Content Writer · step-2 · 0.0s · boom
        !    0.0s  answered   主编 · step-3 · 0.0s · 结论： 可以发布。
        !    0.0s  ended      done · answered
        ! ✓ done · answered · 0.0s · 3 calls · 1,234 tokens · cost unknown · run r00000000001
        ! error: Content Writer (step-2/content-writer): boom
    "#]],
    );
}

#[test]
fn a_result_is_one_json_value() {
    let bench = Bench::with_team(TEAM);
    let called = bench.call(["run", "team.yaml", "要不要发布？", "--json"]).must_be(0);
    assert_eq!(called.stdout.lines().count(), 1);
    check_json(
        &bench,
        called.json(),
        expect![[r#"
        {
          "run_id": "r00000000001",
          "status": "done",
          "reason": "answered",
          "strategy": "sequential",
          "prompt": "要不要发布？",
          "rounds": [
            {
              "step": 1,
              "agent": "研究员",
              "response": "第一点：\n先看数据。"
            },
            {
              "step": 2,
              "agent": "Content Writer",
              "response": {
                "error": "boom"
              }
            },
            {
              "step": 3,
              "agent": "主编",
              "response": "结论：\n可以发布。"
            }
          ],
          "final": "结论：\n可以发布。",
          "errors": [
            {
              "key": "step-2/content-writer",
              "agent": "Content Writer",
              "error": "boom"
            }
          ],
          "warnings": [],
          "meta": {
            "elapsed_seconds": 0,
            "agents": [
              "研究员",
              "Content Writer",
              "主编"
            ],
            "strategy": "sequential",
            "usage": {
              "total": {
                "prompt_tokens": 1200,
                "completion_tokens": 34,
                "total_tokens": 1234
              },
              "agents": {
                "研究员": {
                  "prompt_tokens": 1200,
                  "completion_tokens": 34,
                  "total_tokens": 1234
                }
              },
              "calls": 3
            }
          }
        }
    "#]],
    );
}

#[test]
fn a_stream_is_one_event_a_line_and_the_result_last() {
    let bench = Bench::with_team("agents: [{ name: a, script: { replies: [hi] } }]");
    let called = bench.call(["run", "team.yaml", "task", "--output", "stream-json"]);
    check(
        &bench,
        called,
        expect![[r#"
            exit 0
            > {"type":"record","run_id":"r00000000001","seq":1,"at": 0,"event":"started","spec":{"team":{"name":"team","agents":[{"id":"a","name":"a","max_steps":30,"retries":0,"limits":{},"target":{"script":{"replies":[{"delay":0,"says":{"text":"hi"},"usage":{"input":0,"output":0}}]}}}]},"task":"task","collaboration":{"broadcast":{"agents":["a"],"rounds":1,"clocks":{"timeout":600000000}}},"auto":{"rule":"seed","chose":"broadcast","because":"one agent takes part"},"limits":{},"recipe":{"team":{"file":"agents: [{ name: a, script: { replies: [hi] } }]"},"name":"team","path":"FOLDER/team.yaml"},"mail":"on"},"wall": 0,"elapsed_ms": 0}
            > {"type":"record","run_id":"r00000000001","seq":2,"at": 0,"event":"asked","key":"round-1/a","call":{"kind":"agent","agent":"a","parts":["task"]},"nth":1,"expires": 0,"elapsed_ms": 0}
            > {"type":"delta","key":"round-1/a","agent":"a","text":"hi"}
            > {"type":"record","run_id":"r00000000001","seq":3,"at": 0,"event":"answered","key":"round-1/a","attempt":1,"answer":{"text":"hi"},"usage":{"input":0,"output":0},"elapsed_ms": 0}
            > {"type":"record","run_id":"r00000000001","seq":4,"at": 0,"event":"ended","done":true,"reason":"answered","final":{"replies":["round-1/a"]},"elapsed_ms": 0}
            > {"type":"result","run_id":"r00000000001","status":"done","reason":"answered","strategy":"broadcast","prompt":"task","rounds":[{"round":1,"kind":"broadcast","responses":{"a":"hi"}}],"final":"hi","errors":[],"warnings":[],"meta":{"elapsed_seconds": 0,"agents":["a"],"strategy":"broadcast","usage":{"total":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"agents":{},"calls":1},"auto":{"rule":"seed","chose":"broadcast","because":"one agent takes part"}}}
            !    0.0s  started    broadcast · 1 agent
            !    0.0s  answered   a · round-1 · 0.0s · hi
            !    0.0s  ended      done · answered
        "#]],
    );
}

#[test]
fn a_run_that_fails_says_why_and_how_to_go_on() {
    let bench = Bench::with_team("agents: [{ name: a, script: { replies: [{ error: boom }] } }]");
    check(
        &bench,
        bench.call(["run", "team.yaml", "task"]),
        expect![[r#"
            exit 1
            !    0.0s  started    broadcast · 1 agent
            !    0.0s  failed     a · round-1 · 0.0s · boom
            !    0.0s  ended      failed · all_failed
            ! ✗ failed · all_failed · 0.0s · 1 call · run r00000000001
            ! error: a (round-1/a): boom
            ! help: ask what failed again with `folkmoot retry r00000000001`
            ! help: see what happened with `folkmoot show r00000000001`
        "#]],
    );
    bench.call(["fork", "last", "--at", "round-1/a"]).must_be(1);
}

#[test]
fn a_run_that_ends_at_a_limit_says_which_and_shows_what_there_is() {
    let bench = Bench::with_team(TEAM);
    let limited = ["run", "team.yaml", "task", "--max-calls", "2"];
    check(
        &bench,
        bench.call(limited),
        expect![[r#"
        exit 4
        ! warning[budget_below_minimum]: --max-calls: calls is 2, but the work takes at least 3
        ! 
        ! 1 warning
        !    0.0s  started    sequential · 3 agents
        !    0.0s  answered   研究员 · step-1 · 0.0s · 1,234 tokens · 第一点： 先看数据。
        !    0.0s  failed     Content Writer · step-2 · 0.0s · boom
        !    0.0s  refused    主编 · step-3 · budget exhausted
        !    0.0s  ended      budget_exhausted · calls
        ! ! budget exhausted · calls · 0.0s · 2 calls · 1,234 tokens · cost unknown · run r00000000001
        ! without an answer; what there is:
        !   第一点：
        !   先看数据。
        ! warning[budget_below_minimum]: calls is 2, but the work takes at least 3
        ! error: Content Writer (step-2/content-writer): boom
        ! error: 主编 (step-3/主编): budget exhausted
        ! help: the limit of 2 calls does not allow another call; raise `--max-calls` or `limits.calls`
        ! help: see what happened with `folkmoot show r00000000001`
    "#]],
    );
    let late = ["run", "--config", "slow.yaml", "task", "--deadline", "0.5"];
    bench.write("slow.yaml", PAIR);
    check(
        &bench,
        bench.call(late),
        expect![[r#"
        exit 6
        > now
        !    0.0s  started    broadcast · 2 agents
        !    0.0s  answered   quick · round-1 · 0.0s · now
        !    0.0s  failed     slow · round-1 · 0.0s · deadline
        !    0.0s  ended      deadline
        ! ! deadline · 0.0s · 2 calls · run r00000000002
        ! error: slow (round-1/slow): deadline
        ! help: its time of 0ms ran out; raise `--deadline` or `limits.time`
        ! help: see what happened with `folkmoot show r00000000002`
    "#]],
    );
}

#[test]
fn a_simulation_takes_no_real_time_and_equal_seeds_give_equal_runs() {
    let bench = Bench::with_team(PAIR);
    let simulated = |seed: &str| {
        let arguments =
            ["simulate", "team.yaml", "task", "--seed", seed, "--output", "stream-json"];
        let called = bench.call(arguments).must_be(0);
        let mut lines = called.json_lines();
        for line in &mut lines {
            line["run_id"].take();
            line["wall"].take();
        }
        (lines, called.wall_ms)
    };
    let (one, wall_ms) = simulated("7");
    assert_eq!(one, simulated("7").0);
    assert!(wall_ms < 60_000.0, "{wall_ms}");
    let result = one.last().expect("the result is last");
    assert_eq!(result["meta"]["elapsed_seconds"], json!(60.0));
    check(
        &bench,
        bench.call(["simulate", "team.yaml", "task"]),
        expect![[r#"
            exit 0
            > later
            > 
            > now
            ! ✓ done · answered · 1m00s · 2 calls · run r00000000003
        "#]],
    );
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn a_simulation_asks_no_model_and_says_who_stands_in() {
    let stub = Stub::start([Reply::text("real")]);
    let bench = Bench::with_models("agents: [{ name: a, model: openai/stub }]", &stub);
    check(
        &bench,
        bench.call(["simulate", "team.yaml", "hi"]),
        expect![[r#"
        exit 0
        > On "hi":
        > - a: look for what could fail, and say how we would notice.
        ! ✓ done · answered · 0.0s · 1 call · 160 tokens · cost unknown · run r00000000001
        ! warning[stand_in]: "a" has no script: the offline demo stands in
    "#]],
    );
    assert_eq!(stub.seen().connections, 0);
}

#[test]
fn a_member_that_said_nothing_or_used_up_its_steps_is_among_the_errors_of_a_failed_run() {
    let list = "{ name: file.list, arguments: {} }";
    let endless = format!(
        "grants: [file.list], max_steps: 2, script: {{ replies: [{{ tool_calls: [{list}] }}] }}"
    );
    for (agent, error) in [
        ("script: { replies: [''] }", "blank reply"),
        (&*endless, "no answer within 2 steps"),
        ("cli: { command: ['true'] }", "its reply is empty"),
    ] {
        let team = format!(
            "agents: [{{ name: a, {agent} }}]\ncollaboration: {{ strategy: sequential }}\n"
        );
        let bench = Bench::with_team(&team);
        let result = bench.call(["run", "team.yaml", "go", "--json"]).must_be(1).json();
        let told = result["errors"][0]["error"].as_str().unwrap_or_default();
        assert!(told.contains(error), "{agent}: {result}");
        assert_eq!(result["errors"].as_array().map(Vec::len), Some(1), "{agent}: {result}");
        let told = bench.call(["run", "team.yaml", "go"]).must_be(1).stderr;
        assert!(told.contains(error), "{agent}: {told}");
    }
}
