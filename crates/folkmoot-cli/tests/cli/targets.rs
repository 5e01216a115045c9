//! What one or many targets that were named on the command line print: `dispatch`, `broadcast`.

use expect_test::expect;
use serde_json::Value;

use crate::{
    bench::Bench,
    snapshot::{check, check_json},
};

const TEAM: &str = "
name: 评审组
agents:
  - { name: Content Writer, script: { replies: [{ error: boom }] } }
  - { name: 主编, script: { replies: [\"结论：\\n可以发布。\"] } }
  - { name: slow, script: { replies: [{ delay_ms: 60000, reply: later }] } }
collaboration: { strategy: debate, judge: 主编 }
";

#[test]
fn one_agent_or_model_is_asked_alone() {
    let bench = Bench::with_team(TEAM);
    let dispatch = ["dispatch", "主编", "你好", "--team", "team.yaml"];
    check(
        &bench,
        bench.call(dispatch),
        expect![[r#"
        exit 0
        > 结论：
        > 可以发布。
        !    0.0s  started    broadcast · 3 agents
        !    0.0s  answered   主编 · round-1 · 0.0s · 结论： 可以发布。
        !    0.0s  ended      done · answered
        ! ✓ done · answered · 0.0s · 1 call · run r00000000001
    "#]],
    );
    let called = bench.call(dispatch.into_iter().chain(["--json"])).must_be(0);
    check_json(
        &bench,
        called.json(),
        expect![[r#"
        {
          "run_id": "r00000000002",
          "state": "COMPLETE",
          "status": "success",
          "output": "结论：\n可以发布。",
          "error": null,
          "served_by": "主编",
          "attempts": [
            {
              "target": "主编",
              "status": "success",
              "error": null,
              "waited_s": 0
            }
          ],
          "usage": {
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "total_tokens": 0
          }
        }
    "#]],
    );
    let failed = ["dispatch", "content-writer", "hi", "--team", "team.yaml", "--json"];
    check_json(
        &bench,
        bench.call(failed).must_be(1).json(),
        expect![[r#"
            {
              "run_id": "r00000000003",
              "state": "FAILED",
              "status": "error",
              "output": null,
              "error": "boom",
              "served_by": "content-writer",
              "attempts": [
                {
                  "target": "content-writer",
                  "status": "error",
                  "error": "boom",
                  "waited_s": 0,
                  "kind": "harness"
                }
              ],
              "usage": {
                "prompt_tokens": 0,
                "completion_tokens": 0,
                "total_tokens": 0
              }
            }
        "#]],
    );
    check(
        &bench,
        bench.call(["dispatch", "demo/x", "hi"]),
        expect![[r#"
        exit 0
        > On "hi":
        > - demo:x: weigh cost against benefit, decide, and write down why.
        !    0.0s  started    broadcast · 1 agent
        !    0.0s  answered   demo:x · round-1/demo%3Ax · 0.0s · 160 tokens · On "hi": - demo:x: weigh cost against benefit, decide, and write down why.
        !    0.0s  ended      done · answered
        ! ✓ done · answered · 0.0s · 1 call · 160 tokens · cost unknown · run r00000000004
    "#]],
    );
}

#[test]
fn a_stream_of_one_or_many_ends_with_its_one_result() {
    let bench = Bench::with_team(TEAM);
    for arguments in [&["dispatch", "主编"][..], &["broadcast", "主编,content-writer"]] {
        let arguments =
            [arguments, &["hi", "--team", "team.yaml", "--output", "stream-json"]].concat();
        let lines = bench.call(arguments).must_be(0).json_lines();
        let types: Vec<_> = lines.iter().map(|line| line["type"].as_str()).collect();
        assert_eq!(types.iter().filter(|it| **it == Some("result")).count(), 1);
        assert_eq!(types.last(), Some(&Some("result")));
    }
}

#[test]
fn who_is_unknown_is_not_asked() {
    let bench = Bench::with_team(TEAM);
    for (arguments, expected) in [
        (
            &["dispatch", "nobody", "hi", "--team", "team.yaml"][..],
            expect![[r#"
                exit 2
                ! error[unknown_agent]: collaboration: broadcast: unknown agent "nobody" in agents; agents: Content Writer, 主编, slow
                ! 
                ! 1 error
            "#]],
        ),
        (
            &["dispatch", "gpt-5", "hi"],
            expect![[r#"
                exit 2
                ! error[unknown_model]: agents.gpt-5.model: unknown model "gpt-5"
                ! help: write provider/model, or an alias of the config
                ! 
                ! 1 error
            "#]],
        ),
        (
            &["dispatch", "gpt-5", "hi", "--json"],
            expect![[r#"
                exit 2
                > {"error":{"code":"unknown_model","message":"unknown model \"gpt-5\"","help":"write provider/model, or an alias of the config","path":"agents.gpt-5.model"},"errors":[{"code":"unknown_model","message":"unknown model \"gpt-5\"","help":"write provider/model, or an alias of the config","path":"agents.gpt-5.model"}]}
            "#]],
        ),
        (
            &["broadcast", "主编,nobody", "hi", "--team", "team.yaml"],
            expect![[r#"
                exit 2
                ! error[unknown_agent]: collaboration: broadcast: unknown agent "nobody" in agents; agents: Content Writer, 主编, slow
                ! 
                ! 1 error
            "#]],
        ),
        (
            &["broadcast", "主编,主编", "hi", "--team", "team.yaml"],
            expect![[r#"
                exit 2
                ! error[listed_twice]: collaboration: "主编" is listed twice in agents
                ! 
                ! 1 error
            "#]],
        ),
        (
            &["broadcast", "gpt-5,nobody/x", "hi"],
            expect![[r#"
                exit 2
                ! error[unknown_model]: agents.gpt-5.model: unknown model "gpt-5"
                ! help: write provider/model, or an alias of the config
                ! 
                ! error[unknown_provider]: agents.nobody:x.model: unknown provider "nobody" in "nobody/x"
                ! help: known: anthropic, cerebras, dashscope, deepseek, fireworks, gemini, groq, hunyuan, llamacpp, lmstudio, minimax, mistral, moonshot, nvidia, ollama, openai, openrouter, perplexity, qianfan, sglang, siliconflow, stepfun, together, vllm, volcengine, xai, zhipu, demo
                ! 
                ! 2 errors
            "#]],
        ),
        (
            &["broadcast", "gpt-5", "hi"],
            expect![[r#"
                exit 2
                ! error[unknown_model]: agents.gpt-5.model: unknown model "gpt-5"
                ! help: write provider/model, or an alias of the config
                ! 
                ! 1 error
            "#]],
        ),
    ] {
        check(&bench, bench.call(arguments.iter().copied()).must_be(2), expected);
    }
    assert!(bench.runs().is_empty());
}

#[test]
fn many_are_asked_at_once_and_answer_in_the_order_given() {
    let bench = Bench::with_team(TEAM);
    let broadcast = ["broadcast", "slow,主编", "hi", "--team", "team.yaml", "--timeout", "0.5"];
    let called = bench.call(broadcast.into_iter().chain(["--json"])).must_be(0);
    check_json(
        &bench,
        called.json(),
        expect![[r#"
            {
              "run_id": "r00000000001",
              "state": "COMPLETE",
              "results": [
                {
                  "target": "slow",
                  "status": "error",
                  "error": "timeout",
                  "usage": {
                    "prompt_tokens": 0,
                    "completion_tokens": 0,
                    "total_tokens": 0
                  }
                },
                {
                  "target": "主编",
                  "status": "success",
                  "output": "结论：\n可以发布。",
                  "usage": {
                    "prompt_tokens": 0,
                    "completion_tokens": 0,
                    "total_tokens": 0
                  }
                }
              ],
              "summary": {
                "total": 2,
                "success": 1,
                "error": 1
              },
              "comparison": null
            }
        "#]],
    );
}

#[test]
fn a_model_that_is_named_twice_is_asked_twice() {
    let bench = Bench::new();
    let broadcast = ["broadcast", "demo/甲,demo/乙,demo/甲", "你好", "--json"];
    let record = bench.call(broadcast).must_be(0).json();
    let results = record["results"].as_array().expect("it is a list");
    let targets: Vec<_> = results.iter().map(|result| &result["target"]).collect();
    assert_eq!(targets, ["demo/甲", "demo/乙", "demo/甲#2"]);
    let own = |result: &Value| {
        let name = result["target"].as_str().expect("a text").replace('/', ":");
        result["output"].as_str().is_some_and(|output| output.contains(&format!("- {name}：")))
    };
    assert!(results.iter().all(own), "each has its own reply: {record}");
}
