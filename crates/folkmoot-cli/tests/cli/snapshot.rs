//! Whole outputs as tests expect them: all that differs from one run to the next made the same.

use std::sync::LazyLock;

use expect_test::Expect;
use regex::Regex;
use serde_json::Value;

use crate::bench::{Bench, Called};

/// Compares all that a call printed with what is expected.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
pub(crate) fn check(bench: &Bench, called: Called, expected: Expect) {
    let Called { exit, stdout, stderr, .. } = called;
    let marked = |mark, text: &str| -> Vec<String> {
        text.lines().map(|line| format!("{mark} {line}\n")).collect()
    };
    let lines = [marked('>', &stdout), marked('!', &stderr)].concat();
    let text = format!("exit {exit}\n{}", lines.concat());
    expected.assert_eq(&same(bench, &text));
}

/// Compares the JSON that a call printed with what is expected.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
pub(crate) fn check_json(bench: &Bench, json: Value, expected: Expect) {
    let text = serde_json::to_string_pretty(&json).expect("it was JSON");
    expected.assert_eq(&(same(bench, &text) + "\n"));
}

/// `text` with the folder, the runs and the times of every run.
fn same(bench: &Bench, text: &str) -> String {
    static TIMES: LazyLock<[(Regex, &str); 6]> = LazyLock::new(|| {
        let of = |pattern| Regex::new(pattern).expect("the patterns are constant");
        [
            (of(r"\b\d+\.\ds\b"), "0.0s"),
            (of(r"\b\d+ms\b"), "0ms"),
            (of(r"\b\d+s ago"), "0s ago"),
            (of(r#""\d{4}-\d\d-\d\dT[^"]*Z""#), r#""TIME""#),
            (of(r#""(elapsed_seconds|elapsed_ms|at|expires|wall)": ?[0-9.e-]+"#), r#""$1": 0"#),
            (of(r"\b[0-9a-f]{64}\b"), "HASH"),
        ]
    });
    let folder = bench.path("").display().to_string();
    let text = text.replace(&folder, "FOLDER/");
    let text = runs(bench).iter().fold(text, |text, (id, name)| text.replace(id, name));
    TIMES.iter().fold(text, |text, (times, same)| times.replace_all(&text, *same).into_owned())
}

/// The runs there are, and names for them that are as long.
fn runs(bench: &Bench) -> Vec<(String, String)> {
    let listed = bench.call(["runs", "--json", "--limit", "1000"]);
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap_or_default();
    let ids = listed.iter().rev().filter_map(|run| run["run_id"].as_str());
    (1..).zip(ids).map(|(nth, id)| (id.to_owned(), format!("r{nth:0>11}"))).collect()
}
