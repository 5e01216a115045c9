//! Rehearsals: bad days, many of them, and each of them again.

use std::collections::BTreeSet;

use expect_test::expect;
use serde_json::{Value, json};

use crate::{bench::Bench, snapshot::check};

/// A team whose judge decides; one member fails by itself, and may not try again.
const PANEL: &str = r#"
name: 评审组
agents:
  - { name: 研究员, script: { replies: [{ reply: 先看数据。, usage: { input: 90, output: 10 } }] }, retries: 1 }
  - { name: 工程师, script: { replies: [{ delay_ms: 1500, reply: 先写测试。, usage: { input: 50, output: 20 } }] } }
  - { name: 裁判, script: { replies: [{ reply: 先看数据，再写测试。, usage: { input: 100, output: 30 } }] } }
collaboration: { strategy: debate, agents: [研究员, 工程师], judge: 裁判, rounds: 2, timeout: 60 }
"#;

const TASK: &str = "该用哪个数据库？";

fn many(bench: &Bench, arguments: &[&str]) -> Value {
    let simulate = ["simulate", "team.yaml", TASK, "--json"];
    bench.call(simulate.into_iter().chain(arguments.iter().copied())).must_be(0).json()
}

#[test]
fn many_runs_without_faults_are_told_together_and_none_is_kept() {
    let bench = Bench::with_team(PANEL);
    check(
        &bench,
        bench.call(["simulate", "team.yaml", TASK, "--runs", "1000"]),
        expect![[r#"
            exit 0
            > STATUS  REASON   RUNS    SHARE
            > done    judged  1,000  100.0 %
            > 
            > A RUN TAKES   MIN  MEDIAN   MAX
            > calls           5       5     5
            > tokens        470     470   470
            > rounds          3       3     3
            > time         0.0s    0.0s  0.0s
            ! ✓ 1,000 runs · seeds 0 to 999
        "#]],
    );
    assert_eq!(bench.runs(), [json!(null); 0]);
    let told = many(&bench, &["--runs", "1000"]);
    assert_eq!(
        told,
        json!({
            "runs": 1000,
            "seed": 0,
            "faults": [],
            "statuses": { "done": 1000 },
            "reasons": { "done": { "judged": 1000 } },
            "calls": { "min": 5, "median": 5, "max": 5 },
            "tokens": { "min": 470, "median": 470, "max": 470 },
            "rounds": { "min": 3, "median": 3, "max": 3 },
            "seconds": { "min": 3.0, "median": 3.0, "max": 3.0 },
            "failures": [],
            "failed": 0,
            "broken": 0,
            "interrupted": false,
            "warnings": [],
        })
    );
}

#[test]
fn bad_days_are_counted_and_the_first_of_them_listed() {
    let bench = Bench::with_team(PANEL);
    check(
        &bench,
        bench.call(["simulate", "team.yaml", TASK, "--runs", "500", "--faults"]),
        expect![[r#"
            exit 0
            > STATUS  REASON        RUNS   SHARE
            > done    judged         376  75.2 %
            > failed  judge_failed   124  24.8 %
            > 
            > A RUN TAKES   MIN  MEDIAN    MAX
            > calls           5       5      5
            > tokens        100     468    740
            > rounds          3       3      3
            > time         0.0s   0.0s  2m04s
            > 
            > SEED  STATUS  WHY
            >   13  failed  judge_failed; 裁判 (judge): simulated: too many requests
            >   23  failed  judge_failed; 裁判 (judge): simulated: the reply was cut off after 10 characters
            >   24  failed  judge_failed; 裁判 (judge): simulated: timeout
            >   28  failed  judge_failed; 裁判 (judge): blank reply
            >   44  failed  judge_failed; 裁判 (judge): simulated: protocol
            >   47  failed  judge_failed; 裁判 (judge): simulated: too many requests; it asks to wait 68 s
            >   53  failed  judge_failed; 裁判 (judge): timeout
            >   56  failed  judge_failed; 裁判 (judge): simulated: unsupported
            >   58  failed  judge_failed; 裁判 (judge): simulated: too many requests; it asks to wait 65 s
            >   59  failed  judge_failed; 裁判 (judge): timeout
            > and 114 more
            ! ✓ 500 runs · seeds 0 to 499 · faults all · 124 failed
            ! help: have it again with `--seed 13 --faults all`
        "#]],
    );
    let told = many(&bench, &["--runs", "500", "--faults"]);
    let number = |value: &Value| value.as_u64().expect("it is a whole number");
    let statuses = told["statuses"].as_object().expect("it is a map");
    assert_eq!(statuses.values().map(number).sum::<u64>(), 500);
    for what in ["calls", "tokens", "rounds"] {
        let [min, median, max] = ["min", "median", "max"].map(|it| number(&told[what][it]));
        assert!(min <= median && median <= max, "{told}");
    }
    let failures = told["failures"].as_array().expect("it is a list");
    assert!(failures.len() <= 100 && failures.len() as u64 <= number(&told["failed"]), "{told}");
    assert!(failures.iter().all(|it| it["broken"] == false && it["why"].is_string()));
    assert_eq!(told["broken"], 0);
    assert_eq!(many(&bench, &["--runs", "500", "--faults"]), told, "nothing of it is chance");
}

#[test]
fn the_seed_of_a_failure_gives_that_run_again() {
    let bench = Bench::with_team(PANEL);
    for faults in ["--faults=all", "--faults=errors,crashes"] {
        let told = many(&bench, &["--seed", "70", "--runs", "200", faults]);
        let failures = told["failures"].as_array().expect("it is a list");
        assert!(failures.len() > 3, "{told}");
        for failure in &failures[..3] {
            let seed = failure["seed"].to_string();
            assert!((70..270).contains(&failure["seed"].as_u64().expect("a seed")));
            let again = ["simulate", "team.yaml", TASK, "--seed", &seed, faults, "--json"];
            let again = bench.call(again).must_be(1).json();
            assert_eq!(again["status"], failure["status"]);
            let why = failure["why"].as_str().expect("it is a text");
            assert!(why.starts_with(again["reason"].as_str().expect("it has one")), "{why}");
            let last = again["errors"].as_array().and_then(|it| it.last()).expect("there is one");
            assert!(why.ends_with(last["error"].as_str().expect("it is a text")), "{why}");
        }
    }
    let events = |seed: &str| {
        let mut lines = bench
            .call([
                "simulate",
                "team.yaml",
                TASK,
                "--faults",
                "--seed",
                seed,
                "--output",
                "stream-json",
            ])
            .json_lines();
        for line in &mut lines {
            line["run_id"].take();
            line["wall"].take();
        }
        lines
    };
    assert_eq!(events("77"), events("77"));
    assert_ne!(events("77"), events("78"));
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
}

#[test]
fn failed_runs_are_kept_on_request_and_can_be_looked_at() {
    let bench = Bench::with_team(PANEL);
    let told = many(&bench, &["--runs", "60", "--faults", "--keep"]);
    let failures = told["failures"].as_array().expect("it is a list");
    let ids: BTreeSet<&str> = failures.iter().filter_map(|it| it["run_id"].as_str()).collect();
    let kept = bench.runs();
    let kept: BTreeSet<&str> = kept.iter().filter_map(|run| run["run_id"].as_str()).collect();
    assert!(!ids.is_empty());
    assert_eq!(ids, kept);
    for id in ids {
        bench.call(["replay", id]).must_be(0);
        let shown = bench.call(["show", id, "--json"]).must_be(0).json();
        assert_ne!(shown["run"]["status"], "done");
    }
}

#[test]
fn each_fault_can_be_chosen_and_does_what_its_name_says() {
    let bench = Bench::with_team(PANEL);
    let told = many(&bench, &["--runs", "200", "--faults", "crashes,duplicates"]);
    assert_eq!(told["faults"], json!(["duplicates", "crashes"]));
    assert_eq!(told["statuses"], json!({ "done": 200 }), "they change no result");
    assert_eq!(told["tokens"], json!({ "min": 470, "median": 470, "max": 470 }));
    let latency = ["--runs", "200", "--faults", "latency", "--timeout", "none"];
    let told = many(&bench, &latency);
    assert_eq!(told["failed"], 0);
    assert_ne!(told["seconds"]["min"], told["seconds"]["max"]);
    let told = many(&bench, &["--runs", "200", "--faults", "errors"]);
    assert_ne!(told["failed"], 0);
    let why = |it: &Value| it["why"].as_str().is_some_and(|it| it.contains("simulated: "));
    assert!(told["failures"].as_array().expect("it is a list").iter().all(why), "{told}");
}

#[test]
fn an_unknown_fault_is_refused_with_the_one_that_was_meant() {
    let bench = Bench::with_team(PANEL);
    check(
        &bench,
        bench.call(["simulate", "team.yaml", TASK, "--faults", "errors,crash"]),
        expect![[r#"
            exit 2
            ! error: unknown fault "crash"; known: latency, errors, rate-limits, malformed, blank, cut-off, silence, duplicates, late, crashes, all
            ! help: did you mean "crashes"?
        "#]],
    );
    check(
        &bench,
        bench.call(["simulate", "--faults", "team.yaml", TASK]),
        expect![[r#"
            exit 2
            ! error: unknown fault "team.yaml"; known: latency, errors, rate-limits, malformed, blank, cut-off, silence, duplicates, late, crashes, all
            ! help: put --faults behind the task, or write --faults=all
        "#]],
    );
    let refused = bench.call(["simulate", "team.yaml", TASK, "--faults=x", "--json"]).must_be(2);
    assert_eq!(refused.json()["error"]["code"], "unknown_fault");
    let last = u64::MAX.to_string();
    let refused = ["simulate", "team.yaml", TASK, "--seed", &last, "--runs", "2", "--json"];
    assert_eq!(bench.call(refused).must_be(2).json()["error"]["code"], "bad_value");
    bench.call(["simulate", "team.yaml", TASK, "--seed", &last, "--runs", "1"]).must_be(0);
    bench.call(["simulate", "team.yaml", TASK, "--runs", "0"]).must_be(2);
    bench.call(["simulate", "team.yaml", TASK, "--keep"]).must_be(2);
    assert_eq!(bench.runs(), [json!(null); 0]);
}

#[test]
fn the_help_explains_every_fault_and_what_is_kept() {
    let help = Bench::new().call(["simulate", "--help"]).must_be(0).stdout;
    for word in [
        "latency",
        "errors",
        "rate-limits",
        "malformed",
        "blank",
        "cut-off",
        "silence",
        "duplicates",
        "late",
        "crashes",
        "no run is kept",
        "exit code",
        "--keep",
    ] {
        assert!(help.contains(word), "{word}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_tells_what_was_done_so_far() {
    let bench = Bench::with_team(PANEL);
    let runs = u64::MAX.to_string();
    let process = bench.start(["simulate", "team.yaml", TASK, "--runs", &runs, "--json"]);
    // From here on it listens.
    while !catches_interrupts(process.id()) {
        std::thread::yield_now();
    }
    process.signal(rustix::process::Signal::INT);
    let told = process.finish().must_be(130).json();
    assert_eq!(told["interrupted"], true);
    assert_eq!(told["failures"], json!([]));
    let done = told["statuses"]["done"].as_u64().unwrap_or_default();
    assert_eq!(told["runs"], done);
}

#[cfg(target_os = "linux")]
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let interrupt = 1 << (rustix::process::Signal::INT.as_raw() - 1);
    caught.is_some_and(|mask| mask & interrupt != 0)
}
