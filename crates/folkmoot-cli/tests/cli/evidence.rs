//! What edges of graphs require, looked at in a real workspace, and the findings of a real loop.

use std::fs;

use serde_json::{Value, json};

use crate::bench::Bench;

/// One agent whose exit requires this; its second reply mends what the first lacks.
fn team(requires: &str, more: &str) -> String {
    format!(
        "agents: [{{ name: A, script: {{ replies: ['{{\"n\": \"x\"}}', '{{\"n\": 1}}'] }} }}]\n\
         collaboration: {{ flow: [parent -> a, {{ from: a, to: parent, requires: [{requires}] }}] }}\n{more}"
    )
}

/// The least that lets a command write to the workspace on this system.
const SANDBOX: &str =
    if cfg!(target_os = "linux") { "sandbox: write\n" } else { "sandbox: full\n" };

fn step(result: &Value) -> &Value {
    &result["rounds"][0]["steps"][0]
}

#[cfg(unix)]
#[test]
fn a_command_runs_in_the_workspace_and_a_replay_runs_nothing_again() {
    let command = "{ command: 'echo x >> seen; wc -l < seen | tr -d \" \"; test $(wc -l < seen) = 2', timeout: 20 }";
    let bench = Bench::with_team(&team(command, SANDBOX));
    let result = bench.call(["run", "team.yaml", "do it", "--json"]).must_be(0).json();
    let evidence = &step(&result)["evidence"];
    assert_eq!((&evidence[0]["exit_code"], &evidence[0]["output"]), (&json!(1), &json!("1\n")));
    assert_eq!((&evidence[1]["passed"], &evidence[1]["output"]), (&json!(true), &json!("2\n")));
    assert_eq!(step(&result)["response"], "{\"n\": 1}");
    assert_eq!(result["meta"]["usage"]["calls"], 4);
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
    assert_eq!(fs::read_to_string(bench.path("seen")).expect("it was written"), "x\nx\n");
}

#[test]
fn a_command_that_may_only_read_does_not_write_and_a_rehearsal_runs_none() {
    let bench = Bench::with_team(&team("{ command: 'echo x > seen' }", ""));
    let called = bench.call(["run", "team.yaml", "do it", "--json"]);
    match called.json()["error"]["code"].as_str() {
        // Where nothing can confine it, it is refused before any call.
        Some("sandbox_unavailable") => assert!(bench.runs().is_empty()),
        _ => assert_eq!(step(&called.must_be(1).json())["evidence"][0]["passed"], false),
    }
    assert!(!bench.path("seen").exists());
    let rehearsed = bench.call(["simulate", "team.yaml", "do it", "--json"]).must_be(0).json();
    assert_eq!(rehearsed["warnings"][0]["code"], "stand_in");
    assert!(!bench.path("seen").exists());
}

#[test]
fn a_reply_must_satisfy_the_schema_of_a_file_that_nobody_needs_afterwards() {
    let bench = Bench::with_team(&team("{ schema: out.json }", ""));
    bench.write("out.json", r#"{ "properties": { "n": { "type": "integer" } } }"#);
    for mode in ["run", "simulate"] {
        let result = bench.call([mode, "team.yaml", "do it", "--json"]).must_be(0).json();
        let evidence = &step(&result)["evidence"];
        assert_eq!(evidence[0]["detail"], "at /n: \"x\" is not of type \"integer\"");
        assert_eq!(evidence[1]["passed"], true);
    }
    fs::remove_file(bench.path("out.json")).expect("it can be removed");
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["run", "team.yaml", "do it"]).must_be(2);
}

#[test]
fn a_file_that_is_not_there_fails_the_step_by_its_name() {
    let bench = Bench::with_team(&team("{ file: CHANGES.md }", ""));
    let result = bench.call(["run", "team.yaml", "do it", "--json"]).must_be(1).json();
    assert_eq!(step(&result)["response"]["error"], "gate failed: CHANGES.md");
    bench.write("CHANGES.md", "news");
    bench.call(["run", "team.yaml", "do it"]).must_be(0);
}

#[test]
fn findings_that_do_not_become_fewer_exit_with_5_and_the_report_shows_them() {
    let bench = Bench::with_team(
        r#"
agents:
  - { name: a, script: { replies: [one, two, three, four] } }
  - { name: b, script: { replies: [{ json: { next: a, findings: [{ severity: major, place: "x:1", text: "a | b" }] } }] } }
collaboration: { topology: review-loop, agents: [a, b], max_iterations: 9, findings: true }
"#,
    );
    let result = bench.call(["run", "team.yaml", "do it", "--json"]).must_be(5).json();
    assert_eq!(
        (&result["status"], &result["reason"]),
        (&json!("bound_reached"), &json!("plateau"))
    );
    assert_eq!(result["rounds_of_findings"].as_array().map(Vec::len), Some(3));
    let report = bench.call(["report", "last"]).must_be(0).stdout;
    assert!(report.contains("| F1 | major | x:1 | a \\| b | 1 new, 2 open |"), "{report}");
    assert!(report.contains("| 3 | 0 | 0 | 0 | 1 |"), "{report}");
}
