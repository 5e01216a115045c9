//! Other attempts at a recorded run.

use expect_test::expect;
use serde_json::{Value, json};

use crate::{bench::Bench, snapshot::check};

const CHAIN: &str = "
name: 接力
agents:
  - { name: a, script: { replies: [A, A2] } }
  - { name: b, script: { replies: [{ error: boom }, B2, B3] } }
  - { name: c, script: { replies: [C, C2, C3] } }
collaboration: { strategy: sequential }
";

fn recorded() -> Bench {
    let bench = Bench::with_team(CHAIN);
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    bench
}

/// The calls that the newest run asked itself.
fn asked(bench: &Bench) -> Vec<String> {
    let last = bench.last();
    let events = last["events"].as_array().expect("a list").iter();
    let asked = events.filter(|event| event["event"] == "asked");
    asked.map(|event| event["key"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_retry_asks_what_failed_and_what_follows_and_names_its_origin() {
    let bench = recorded();
    let first = bench.runs()[0]["run_id"].clone();
    check(
        &bench,
        bench.call(["retry", "last"]),
        expect![[r#"
            exit 0
            > C2
            !    0.0s  started    sequential · 3 agents · retry of r00000000001
            !    0.0s  answered   b · step-2 · 0.0s · B2
            !    0.0s  answered   c · step-3 · 0.0s · C2
            !    0.0s  ended      done · answered
            ! ✓ done · answered · 0.0s · 2 calls · run r00000000002
        "#]],
    );
    assert_eq!(asked(&bench), ["step-2/b", "step-3/c"]);
    let origin = json!({ "run_id": first, "seq": 8, "retried": true });
    assert_eq!(bench.last()["run"]["origin"], origin);
    let runs = bench.runs();
    assert_eq!((&runs[0]["origin"], &runs[1]["origin"]), (&origin, &Value::Null));
    let shown = bench.call(["show", "last"]).must_be(0).stdout;
    let told = format!("another attempt at run {}, event 8", first.as_str().expect("a text"));
    assert!(shown.lines().any(|line| line == told), "{shown}");
    check(
        &bench,
        bench.call(["runs"]),
        expect![[r#"
            exit 0
            > RUN           STATUS  STARTED  TIME  CALLS  TOKENS  COST  TEAM  STRATEGY    FROM                   TASK
            > r00000000002  done    0s ago   0.0s      2       0        接力  sequential  retry of r00000000001  task
            > r00000000001  done    0s ago   0.0s      3       0        接力  sequential                         task
        "#]],
    );
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
}

#[test]
fn from_a_call_on_everything_is_asked_again_and_words_go_to_that_call_alone() {
    let bench = recorded();
    let retried = ["retry", "last", "--from", "step-2/b", "--prompt", "用一个词回答。", "--json"];
    let result = bench.call(retried).must_be(0).json();
    assert_eq!(result["final"], "C2");
    assert_eq!(asked(&bench), ["step-2/b", "step-3/c"]);
    let calls = bench.last()["calls"].clone();
    let said = |at: usize| {
        let messages = calls[at]["request"]["messages"].as_array().expect("a list").last().cloned();
        messages.expect("there is one")["content"].as_str().expect("a text").to_owned()
    };
    assert!(said(1).ends_with("\n\n用一个词回答。"), "{}", said(1));
    assert!(!said(0).contains("一个词") && !said(2).contains("一个词"));

    bench.call_on("briefly", ["retry", "last", "--from", "step-3/c", "--prompt", "-"]).must_be(0);
    assert_eq!(asked(&bench), ["step-3/c"]);
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn a_failed_run_tells_how_it_is_tried_again() {
    let bench =
        Bench::with_team("agents: [{ name: a, script: { replies: [{ error: no }, yes] } }]");
    let failed = bench.call(["run", "team.yaml", "task"]).must_be(1);
    let id = bench.runs()[0]["run_id"].as_str().expect("a text").to_owned();
    let advice = format!("ask what failed again with `folkmoot retry {id}`");
    assert!(failed.stderr.contains(&advice), "{}", failed.stderr);
    assert_eq!(bench.call(["retry", &id]).must_be(0).stdout, "yes\n");
}

#[test]
fn a_spent_budget_begins_anew() {
    let bench = recorded();
    let cut = ["run", "team.yaml", "task", "--max-calls", "2"];
    bench.call(cut).must_be(4);
    bench.call(["retry", "last"]).must_be(0);
    assert_eq!(asked(&bench), ["step-2/b", "step-3/c"]);
}

#[test]
fn a_retry_that_cannot_be_is_refused_and_nothing_runs() {
    let bench = Bench::with_team(&CHAIN.replace("{ error: boom }, ", ""));
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    for (arguments, expected) in [
        (
            &["retry", "last"][..],
            expect![[r#"
                exit 2
                ! error: run r00000000001 has no call that failed, was refused or is open
                ! help: `folkmoot retry r00000000001 --from KEY` asks again from a call on; the last one was step-3/c
            "#]],
        ),
        (
            &["retry", "last", "--from", "b"],
            expect![[r#"
                exit 2
                ! error: run r00000000001 has no call b
                ! help: did you mean "step-2/b"?
            "#]],
        ),
        (
            &["retry", "last", "--prompt", " \n"],
            expect![[r#"
                exit 2
                ! error: --prompt adds nothing: its text is empty
            "#]],
        ),
        (
            &["amend", "last", "step-1/a", "mine"],
            expect![[r#"
                exit 2
                ! error: run r00000000001 has ended already
                ! help: `folkmoot fork r00000000001 --answer step-1/a=TEXT` goes on from it with that answer
            "#]],
        ),
        (
            &["amend", "last", "step-1/c", "mine"],
            expect![[r#"
                exit 2
                ! error: run r00000000001 has no call step-1/c
                ! help: did you mean "step-1/a"?
            "#]],
        ),
    ] {
        check(&bench, bench.call(arguments.iter().copied()), expected);
    }
    assert_eq!(bench.runs().len(), 1);
}
