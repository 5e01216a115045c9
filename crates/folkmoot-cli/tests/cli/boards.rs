//! Boards from the command line (messaging.md §3).

use std::thread;

use serde_json::{Value, json};

use crate::bench::Bench;

fn board(bench: &Bench, arguments: &[&str], exit: i32) -> Value {
    let all = ["board"].iter().chain(arguments).chain(&["--json"]).copied();
    bench.call(all).must_be(exit).json()
}

#[test]
fn entries_and_cells_are_shown_since_what_somebody_has_seen() {
    let bench = Bench::with_team("").with("USER", "ann");
    assert_eq!(board(&bench, &["post", "plans", "risk", "R1"], 0), json!({ "seq": 1 }));
    assert_eq!(
        board(&bench, &["set", "plans", "owner", "ann", "--expect", "0"], 0),
        json!({ "version": 1 })
    );
    assert_eq!(
        board(&bench, &["post", "Plans", "风险", "没有上限", "--as", "测试员"], 0),
        json!({ "seq": 3 })
    );
    let seen = board(&bench, &["show", "plans", "--after", "1"], 0);
    assert_eq!((&seen["version"], &seen["cells"][0]["value"]), (&json!(3), &json!("ann")));
    assert_eq!(seen["entries"].as_array().map(Vec::len), Some(1));
    let entry = &seen["entries"][0];
    assert_eq!((&entry["author"], &entry["topic"]), (&json!("测试员"), &json!("风险")));
    assert_eq!(entry.get("to"), None, "nobody is addressed");
    let page = bench.call(["board", "show", "plans"]).must_be(0).stdout;
    assert!(page.contains("3 · 风险 · 测试员") && page.ends_with("version 3\n"), "{page}");
}

#[test]
fn whoever_sets_a_cell_second_is_told_what_it_holds() {
    let bench = Bench::with_team("");
    board(&bench, &["set", "plans", "n", "1", "--expect", "0"], 0);
    let refused = board(&bench, &["set", "plans", "n", "2", "--expect", "0"], 2);
    assert_eq!(refused["error"]["code"], "conflict");
    assert_eq!(refused["error"]["help"], "it holds 1; set it with --expect 1");
    let cell = board(&bench, &["get", "plans", "n"], 0);
    assert_eq!((&cell["cell"]["value"], &cell["cell"]["version"]), (&json!(1), &json!(1)));
    for (arguments, exit) in [
        (&["post", "plans", "", "x"][..], 2),
        (&["post", "plans", "t", " "], 2),
        (&["post", "a/b", "t", "x"], 2),
        (&["show", "nothing"], 0),
    ] {
        board(&bench, arguments, exit);
    }
}

#[test]
fn of_many_that_set_one_cell_at_once_exactly_one_does() {
    let bench = Bench::with_team("");
    let set: Vec<i32> = thread::scope(|scope| {
        let set = |n: usize| {
            let n = n.to_string();
            let called = bench.call(["board", "set", "b", "k", &n, "--expect", "0", "--json"]);
            if called.stdout.contains("conflict") {
                2
            } else {
                called.must_be(0);
                0
            }
        };
        let threads: Vec<_> = (0..6).map(|n| scope.spawn(move || set(n))).collect();
        threads.into_iter().map(|it| it.join().expect("it ends")).collect()
    });
    assert_eq!(set.iter().filter(|exit| **exit == 0).count(), 1, "{set:?}");
}
