//! Members that are teams (agents.md §2, rules.md 1.16, 4.6, 4.9, 14.8).

use serde_json::{Value, json};

use crate::bench::Bench;

const OUTER: &str = "
name: outer
agents:
  - { name: alice, script: { replies: [idea], model: x } }
  - { name: reviewers, team: teams/inner.yaml }
collaboration: { strategy: sequential }
";

const INNER: &str = "
name: inner
agents:
  - { name: alice, script: { replies: [{ reply: draft, usage: { input: 3, output: 4 } }] } }
  - { name: bob, script: { replies: [{ reply: better, usage: { input: 5, output: 6 } }] } }
collaboration: { strategy: sequential }
";

fn bench(outer: &str, inner: &str) -> Bench {
    let bench = Bench::with_team(outer);
    bench.write_all(&[("teams/inner.yaml", inner)]);
    bench
}

fn outer() -> String {
    OUTER.replace(", model: x", "")
}

fn codes(found: &Value) -> Vec<&str> {
    let found = found.as_array().expect("it is a list");
    found.iter().map(|it| it["code"].as_str().expect("it has a code")).collect()
}

#[test]
fn the_last_word_of_a_team_is_its_member_s_and_its_usage_is_told_by_agent() {
    let bench = bench(&outer(), INNER);
    let result = bench.call(["run", "team.yaml", "task", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "better");
    assert_eq!(result["meta"]["usage"]["agents"]["reviewers/alice"]["total_tokens"], 7);
    assert_eq!(result["meta"]["usage"]["agents"]["reviewers/bob"]["total_tokens"], 11);
    assert_eq!(result["meta"]["usage"]["calls"], 3);
    let calls = bench.last()["calls"].clone();
    let keys: Vec<&str> =
        calls.as_array().expect("a list").iter().filter_map(|it| it["key"].as_str()).collect();
    assert_eq!(
        keys,
        [
            "step-1/alice",
            "step-2/reviewers",
            "step-2/reviewers/step-1/alice",
            "step-2/reviewers/step-2/bob"
        ]
    );
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
    for command in ["graph", "report"] {
        bench.call([command, "last"]).must_be(0);
    }
    bench.call(["graph", "team.yaml"]).must_be(0);
    let again = bench.call(["simulate", "team.yaml", "task", "--json"]).must_be(0).json();
    assert_eq!(again["final"], "better");
}

#[test]
fn a_team_s_file_is_checked_where_it_stands() {
    let bench = bench(&outer(), &INNER.replace("name: bob", "nmae: bob"));
    let report = bench.call(["check", "team.yaml", "--json"]).must_be(2).json();
    let error = &report["errors"][0];
    assert_eq!(error["file"], "teams/inner.yaml");
    assert_eq!((&error["line"], &error["column"]), (&json!(5), &json!(5)));
    let told = bench.call(["check", "team.yaml"]).must_be(2).stderr;
    assert!(told.contains("teams/inner.yaml:5:5"), "{told}");
}

#[test]
fn a_team_that_is_not_there_or_has_itself_as_a_member_is_refused_with_the_chain() {
    let itself = "agents: [{ name: a, team: ../team.yaml }]";
    let report = bench(&outer(), itself).call(["check", "team.yaml", "--json"]).must_be(2).json();
    assert_eq!(report["errors"][0]["code"], "team_cycle");
    let message = report["errors"][0]["message"].as_str().expect("it is told");
    assert!(message.contains("team.yaml -> teams/inner.yaml -> team.yaml"), "{message}");
    let lost = Bench::with_team(&outer());
    let report = lost.call(["check", "team.yaml", "--json"]).must_be(2).json();
    assert_eq!(codes(&report["errors"]), ["bad_file"]);
}

#[test]
fn teams_nest_four_deep_and_no_deeper() {
    let of = |next: &str| {
        format!(
            "agents: [{{ name: a, team: {next} }}]\ncollaboration: {{ strategy: sequential }}\n"
        )
    };
    let last = "agents: [{ name: a, script: { replies: [deep] } }]\ncollaboration: { strategy: sequential }\n";
    let bench = Bench::with_team(&of("t1.yaml"));
    for level in 1..4 {
        bench.write(&format!("t{level}.yaml"), &of(&format!("t{}.yaml", level + 1)));
    }
    bench.write("t4.yaml", last);
    let result = bench.call(["run", "team.yaml", "task", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "deep");
    bench.write("t4.yaml", &of("t5.yaml"));
    bench.write("t5.yaml", last);
    let report = bench.call(["check", "team.yaml", "--json"]).must_be(2).json();
    let error = &report["errors"][0];
    assert_eq!(error["code"], "too_deep");
    let message = error["message"].as_str().expect("it is told");
    assert!(message.contains("team.yaml -> t1.yaml -> t2.yaml -> t3.yaml -> t4.yaml -> t5.yaml"));
}

#[test]
fn a_team_may_do_what_its_member_may_and_no_more() {
    let inner = INNER.replace("name: bob,", "name: bob, grants: [file, shell],");
    let grants = |own: &str| {
        let outer = outer().replace("inner.yaml", &format!("inner.yaml{own}"));
        let report = bench(&outer, &inner).call(["check", "team.yaml", "--json"]).must_be(0).json();
        let grants = report["agents"][1]["team"]["agents"][1]["grants"].clone();
        (grants, codes(&report["warnings"]).contains(&"narrowed_grants"))
    };
    assert_eq!(grants(""), (json!([]), true));
    assert_eq!(grants(", grants: [file.read, search]"), (json!(["file.read"]), true));
    assert_eq!(grants(", grants: [\"*\"]"), (json!(["file", "shell"]), false));
}

#[test]
fn what_a_team_asks_a_person_suspends_the_run_and_its_answer_goes_back_in() {
    let inner = "
name: inner
agents:
  - { name: writer, script: { replies: [{ error: boom }] } }
  - { name: reader, script: { replies: [read] } }
collaboration:
  topology: pipeline
  agents: [writer, reader]
  on_failure: { retry: 1, then: ask }
";
    let bench = bench(&outer(), inner);
    let asked = bench.call(["run", "team.yaml", "task", "--json"]).must_be(3).json();
    assert_eq!(asked["status"], "needs_input", "{asked}");
    assert_eq!(asked["question"]["role"], "reviewers/writer");
    let answered = bench.call(["answer", "last", "skip", "--json"]).must_be(0).json();
    assert_eq!((&answered["status"], &answered["final"]), (&json!("done"), &json!("read")));
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn the_budget_of_a_member_holds_for_its_whole_team() {
    let outer = outer().replace("inner.yaml", "inner.yaml, limits: { calls: 1 }");
    let bench = bench(&outer, INNER);
    let result = bench.call(["run", "team.yaml", "task", "--json"]).must_be(1).json();
    assert_eq!(result["meta"]["usage"]["calls"], 2);
    let plan = bench.call(["plan", "team.yaml", "task", "--json"]).must_be(0).json();
    assert!(plan.to_string().contains("\"requests\""), "{plan}");
}
