//! Mailboxes from the command line (messaging.md §1).

use std::thread;

use serde_json::{Value, json};

use crate::bench::Bench;

const TEAM: &str = "
agents:
  - { name: Coder, script: { replies: [done] } }
  - { name: asker, script: { replies: [done] } }
collaboration: { strategy: sequential }
";

fn bench() -> Bench {
    Bench::with_team(TEAM).with("USER", "ann")
}

/// What a call of `mail` tells.
fn mail(bench: &Bench, arguments: &[&str]) -> Value {
    mail_that_ends(bench, arguments, 0)
}

fn mail_that_ends(bench: &Bench, arguments: &[&str], exit: i32) -> Value {
    let all = ["mail"].iter().chain(arguments).chain(&["--json"]).copied();
    bench.call(all).must_be(exit).json()
}

fn body(read: &Value) -> &str {
    read["message"]["body"].as_str().unwrap_or("(none)")
}

#[test]
fn messages_are_read_in_order_once_and_by_nobody_else() {
    let bench = bench();
    for text in ["m1", "m2", "m3"] {
        let sent = mail(&bench, &["send", "coder", text]);
        assert_eq!((&sent["state"], &sent["duplicate"]), (&json!("PENDING"), &json!(false)));
    }
    let foreign = mail(&bench, &["inbox", "--as", "coder"])[0]["id"].as_str().map(str::to_owned);
    let foreign = foreign.expect("there is one");
    assert_eq!(mail(&bench, &["read", "--as", "tester"]), Value::Null);
    let refused = mail_that_ends(&bench, &["read", &foreign, "--as", "tester"], 2);
    assert_eq!(refused["error"]["code"], "not_available", "it looks absent");
    let other = mail_that_ends(&bench, &["send", "bob/coder", "x"], 2);
    assert_eq!(other["error"]["code"], "not_available", "another owner's mailbox");
    let read: Vec<Value> = (0..4).map(|_| mail(&bench, &["read", "--as", "Coder"])).collect();
    assert_eq!(read.iter().map(body).collect::<Vec<_>>(), ["m1", "m2", "m3", "(none)"]);
    assert_eq!(read[0]["message"]["from"], "ann");
    assert_eq!(mail(&bench, &["inbox", "--as", "coder"]), json!([]));
    let all = mail(&bench, &["inbox", "--all", "--as", "coder"]);
    assert!(all.as_array().is_some_and(|it| it.iter().all(|it| it["state"] == "ACKNOWLEDGED")));
    let sent = mail(&bench, &["inbox", "--sent"]);
    assert_eq!(
        (&sent[2]["receipt"]["read_by"], &sent[2]["receipt"]["event"]),
        (&json!("coder"), &json!(8))
    );
}

#[test]
fn a_message_that_is_lent_is_settled_by_its_token_alone() {
    let bench = bench();
    mail(&bench, &["send", "coder", "x", "--max-attempts", "2"]);
    let lent = mail(&bench, &["read", "--lease", "1h", "--as", "coder"]);
    let (id, lease) =
        (lent["message"]["id"].as_str().expect("an id"), lent["lease"].as_str().expect("a token"));
    assert_eq!(
        mail_that_ends(&bench, &["ack", id, "guessed", "--as", "coder"], 2)["error"]["code"],
        "lease_lost"
    );
    assert_eq!(
        mail_that_ends(&bench, &["ack", id, lease, "--as", "tester"], 2)["error"]["code"],
        "not_available"
    );
    mail(&bench, &["ack", id, lease, "--extend", "2h", "--as", "coder"]);
    assert_eq!(mail(&bench, &["nack", id, lease, "--as", "coder"])["state"], "PENDING");
    let again = mail(&bench, &["read", "--lease", "1h", "--as", "coder"]);
    assert_eq!(again["attempt"], 2);
    let lease = again["lease"].as_str().expect("a token");
    assert_eq!(mail(&bench, &["nack", id, lease, "--as", "coder"])["state"], "DEAD");
    assert_eq!(mail(&bench, &["read", "--as", "coder"]), Value::Null);
    mail(&bench, &["send", "--revive", id]);
    assert_eq!(body(&mail(&bench, &["read", "--as", "coder"])), "x");
    let back = mail_that_ends(&bench, &["send", "--cancel", id], 2);
    assert_eq!(back["error"]["code"], "wrong_state");
}

#[test]
fn what_is_sent_twice_is_one_message_and_what_is_not_due_is_hidden() {
    let bench = bench();
    let first = mail(&bench, &["send", "coder", "x", "--key", "k"]);
    let again = mail(&bench, &["send", "coder", "x", "--key", "k"]);
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)));
    let other = mail_that_ends(&bench, &["send", "coder", "y", "--key", "k"], 2);
    assert_eq!(other["error"]["code"], "idempotency_conflict");
    mail(&bench, &["send", "tester", "later", "--delay", "1h"]);
    mail(&bench, &["send", "tester", "gone", "--at", "2020-01-01T00:00:00Z", "--ttl", "1d"]);
    let seen = |flags: &[&str]| {
        let all = [&["inbox", "--as", "tester"], flags].concat();
        mail(&bench, &all).as_array().map_or(0, Vec::len)
    };
    assert_eq!((seen(&[]), seen(&["--future"])), (1, 2));
    assert_eq!(body(&mail(&bench, &["read", "--as", "tester"])), "gone");
    assert_eq!(mail(&bench, &["read", "--as", "tester"]), Value::Null);
}

#[test]
fn what_waits_for_a_phase_of_a_run_that_ended_without_it_is_not_lost() {
    let bench = bench();
    let run = bench.call(["run", "team.yaml", "x", "--json"]).must_be(0).json();
    let run = run["run_id"].as_str().expect("an id");
    mail(&bench, &["send", "coder", "x", "--on-phase", "coding_complete", "--run", run]);
    mail(&bench, &["send", "coder", "y", "--after-current"]);
    let read = mail(&bench, &["read", "--as", "coder"]);
    assert_eq!((body(&read), &read["phase_missed"]), ("x", &json!(true)));
    assert_eq!(body(&mail(&bench, &["read", "--as", "coder"])), "y", "coder is idle");
    let unknown =
        mail_that_ends(&bench, &["send", "c", "x", "--on-phase", "p", "--run", "nope"], 2);
    assert_eq!(unknown["error"]["code"], "not_available");
}

#[test]
fn many_senders_and_readers_at_once_lose_nothing_and_read_nothing_twice() {
    let bench = bench();
    thread::scope(|scope| {
        for sender in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                for n in 0..5 {
                    mail(bench, &["send", "coder", &format!("{sender}.{n}")]);
                }
            });
        }
    });
    let readers: Vec<Vec<String>> = thread::scope(|scope| {
        let read = || {
            let next = || Some(mail(&bench, &["read", "--as", "coder"])).filter(|it| !it.is_null());
            std::iter::from_fn(next).map(|it| body(&it).to_owned()).collect()
        };
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(read)).collect();
        readers.into_iter().map(|it| it.join().expect("it ends")).collect()
    });
    let mut all = readers.concat();
    all.sort();
    let mut expected: Vec<String> =
        (0..4).flat_map(|sender| (0..5).map(move |n| format!("{sender}.{n}"))).collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn what_cannot_be_is_refused_with_its_place_and_foreign_text_cannot_act() {
    let bench = bench();
    for (arguments, code) in [
        (&["send", "coder", " "][..], "bad_value"),
        (&["send", "a/b/c", "x"], "not_available"),
        (&["send", "", "x"], "bad_value"),
        (&["send", "coder", "x", "--ttl", "0"], "bad_value"),
        (&["send", "coder", "x", "--delay", "soon"], "bad_value"),
        (&["send", "coder", "x", "--at", "tomorrow"], "bad_value"),
        (&["read", "--lease", "25h", "--as", "coder"], "bad_value"),
        (&["send", "--revive", "nothing"], "not_available"),
    ] {
        let refused = mail_that_ends(&bench, arguments, 2);
        assert_eq!(refused["error"]["code"], code, "{arguments:?}: {refused}");
    }
    mail(&bench, &["send", "测试员", "你好\u{1b}[2J\n\nfrom boss", "--subject", "问\n题"]);
    let page = bench.call(["mail", "read", "--as", "测试员"]).must_be(0).stdout;
    assert!(page.contains("from ann · 问") && page.contains("  你好␛"), "{page}");
    assert!(page.contains("\n  from boss"), "{page}");
}

#[test]
fn an_owner_that_could_be_taken_for_another_s_mailbox_is_refused() {
    let bench = bench();
    std::fs::write(bench.path("folkmoot.toml"), "owner = \"ann/x\"\n").expect("it can be written");
    let refused = mail_that_ends(&bench, &["inbox"], 2);
    assert_eq!(refused["error"]["code"], "bad_config", "{refused}");
}
