//! Fault cases that need more than one call of the binary; the others are in `cases/faults.yaml`.

use std::fmt::Write;

use folkmoot_stub::{Completion, Reply, Stub};
use serde_json::{Value, json};

use crate::bench::{Bench, Called};

const KEY: &str = "sk-test-0123456789abcdefghijklmnopqrstuvwxyz";

/// Moves the cursor, writes to the clipboard, sets the title, turns the text round, hides it, and ends in
/// a sequence that never does.
const HOSTILE: &str = "ok\u{1b}]52;c;ZWNobyBoaQ==\u{7}\u{1b}[2J\u{1b}[1A\u{9b}31m\u{202e} done\
    \u{8}\u{7f}\r\u{2066}\u{2028}\u{e0041}\u{200b} \u{1b}]0;title";

/// A bench with a team file in which everything but ASCII is escaped, since YAML takes it no other way.
fn bench_with(team: &Value) -> Bench {
    let mut escaped = String::new();
    for c in team.to_string().chars() {
        if matches!(c, ' '..='~') {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes any text");
            }
        }
    }
    Bench::with_team(&escaped)
}

/// Whether a terminal would do something with it other than show it.
fn is_harmful(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

#[track_caller]
fn must_be_harmless(called: &Called, asked: &[&str]) {
    let harmful: Vec<char> =
        called.stdout.chars().chain(called.stderr.chars()).filter(|c| is_harmful(*c)).collect();
    assert!(harmful.is_empty(), "{asked:?} writes {harmful:?}: {}", called.shown());
}

#[test]
fn foreign_text_does_nothing_to_a_terminal_wherever_it_stands() {
    let team = json!({
        "name": HOSTILE,
        "agents": [
            { "name": "w", "description": HOSTILE, "script": { "replies": [HOSTILE] } },
            { "name": "x", "script": { "replies": [{ "error": HOSTILE }] } },
            { "name": "y", "model": HOSTILE, "script": { "replies": [{ "json": { HOSTILE: HOSTILE } }] } },
        ],
        "collaboration": { "strategy": "broadcast" },
    });
    let bench = bench_with(&team);
    bench.call(["run", "team.yaml", HOSTILE]).must_be(0);
    let flag = format!("--{HOSTILE}");
    let set = format!("{HOSTILE}=1");
    let answer = format!("round-1/x={HOSTILE}");
    for asked in [
        &["run", "team.yaml", HOSTILE][..],
        &["run", "team.yaml", HOSTILE, "--json"],
        &["run", "team.yaml", HOSTILE, "--output", "stream-json"],
        &["simulate", "team.yaml", HOSTILE],
        &["check", "team.yaml"],
        &["check", "team.yaml", "--json"],
        &["agents", "team.yaml"],
        &["runs"],
        &["runs", "--json"],
        &["show", "last"],
        &["show", "last", "--events"],
        &["show", "last", "--json", "--events"],
        &["show", "last", "--call", "round-1/w"],
        &["show", "last", "--call", "round-1/y"],
        &["show", "last", "--call", HOSTILE],
        &["report", "last"],
        &["report", "last", "--json"],
        &["watch", "last"],
        &["watch", "last", "--json"],
        &["replay", "last"],
        &["fork", "last", "--set", &set],
        &["fork", "last", "--answer", &answer],
        &["fork", "last", "--at", HOSTILE],
        &["show", HOSTILE],
        &["run", HOSTILE, "task"],
        &["run", "team.yaml", "task", "--strategy", HOSTILE],
        &["run", "team.yaml", "task", "--rounds", HOSTILE],
        &["dispatch", HOSTILE, "task"],
        &["broadcast", HOSTILE, "task", "--team", "team.yaml"],
        &[HOSTILE],
        &["run", &flag],
        &["runs", "--limit", HOSTILE],
        &["runs", "--output", HOSTILE],
        &["runs", "--json", HOSTILE],
        &["completions", HOSTILE],
        &["init", HOSTILE],
        &["init", HOSTILE],
    ] {
        must_be_harmless(&bench.call(asked.iter().copied()), asked);
    }
}

#[test]
fn programs_get_foreign_text_complete() {
    let team = json!({ "agents": [{ "name": "w", "script": { "replies": [HOSTILE] } }] });
    let bench = bench_with(&team);
    let result = bench.call(["run", "team.yaml", HOSTILE, "--json"]).must_be(0).json();
    assert_eq!((&result["final"], &result["prompt"]), (&json!(HOSTILE), &json!(HOSTILE)));
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    assert_eq!(shown["calls"][0]["reply"], HOSTILE);
}

/// The longest part of the key in `text`, in characters.
fn longest_part(text: &str) -> usize {
    let parts = |length: usize| (0..=KEY.len() - length).map(move |at| &KEY[at..at + length]);
    (1..=KEY.len()).rev().find(|length| parts(*length).any(|part| text.contains(part))).unwrap_or(0)
}

#[test]
fn what_is_left_of_a_key_where_a_text_is_cut_short_is_masked() {
    let team = "agents: [{ name: w, model: openai/stub, retries: 0 }]\n\
                collaboration: { strategy: broadcast }\n";
    // An error is shown with head and tail, a task in a list likewise.
    for before in [270, 285, 300, 310] {
        let body = format!("{}{KEY}{}", "x".repeat(before), "y".repeat(600));
        let stub = Stub::start([
            Reply::status(400).send(body.clone()),
            Reply::json(400, &json!({ "error": { "message": body } })),
            Reply::text("fine"),
        ]);
        let bench = Bench::with_models(team, &stub).with("OPENAI_API_KEY", KEY);
        let task = format!("{}{KEY}", "z".repeat(before));
        let mut told = String::new();
        for _ in 0..3 {
            told += &bench.call(["run", "team.yaml", "hi", "--json"]).shown();
            for asked in [&["show", "last", "--events", "--json"][..], &["report", "last"]] {
                told += &bench.call(asked.iter().copied()).shown();
            }
        }
        assert!(longest_part(&told) < 12, "{told}");
        let stored = String::from_utf8_lossy(&bench.stored()).into_owned();
        assert!(longest_part(&stored) < 12, "an error keeps no part of a key");
        let long = format!("{task}{}", "z".repeat(600));
        told = bench.call(["run", "team.yaml", &long]).shown();
        told += &bench.call(["runs", "--json"]).shown();
        assert!(longest_part(&told) < 12, "{told}");
    }
}

#[test]
fn a_key_in_the_arguments_is_not_repeated() {
    let bench = Bench::new().with("OPENAI_API_KEY", KEY);
    for asked in [&["runs", KEY][..], &["runs", "--limit", KEY], &["runs", "--json", KEY]] {
        let refused = bench.call(asked.iter().copied()).must_be(2);
        assert!(refused.shown().contains("***"), "{}", refused.shown());
        assert!(longest_part(&refused.shown()) < 12, "{}", refused.shown());
    }
}

#[test]
fn a_name_never_reaches_the_wire_in_a_field_that_has_a_grammar() {
    let stub = Stub::start([Reply::text("one"), Reply::text("two")]);
    let team = "agents: [{ name: Content Writer, model: openai/stub }, { name: 研究员 (慢), model: openai/stub }]\n\
                collaboration: { strategy: sequential }\n";
    let bench = Bench::with_models(team, &stub);
    bench.call(["run", "team.yaml", "go"]).must_be(0);
    for asked in &stub.seen().requests {
        let messages = asked.body["messages"].as_array().expect("messages are sent");
        assert!(messages.iter().all(|message| message.get("name").is_none()), "{messages:?}");
    }
}

/// What a run comes to, without what differs from run to run.
fn essence(result: &Value) -> Value {
    let mut result = result.clone();
    let fields = result.as_object_mut().expect("it is a map");
    for passing in ["type", "run_id"] {
        fields.shift_remove(passing);
    }
    fields["meta"]["elapsed_seconds"] = Value::Null;
    result
}

#[test]
fn a_run_that_meets_its_cap_ends_alike_in_every_output_and_from_every_kind_of_reply() {
    let team = "agents: [{ name: w, model: openai/stub }, { name: v, script: { replies: [s] } }]\n\
                collaboration: { strategy: relay, rounds: 3 }\nlimits: { calls: 3 }\n";
    let said = Completion::text(["half", " and half"]);
    let mut seen: Vec<(Value, Vec<String>)> = Vec::new();
    for reply in [Reply::stream(&said), Reply::whole(&said)] {
        for output in ["json", "stream-json", "text"] {
            let stub = Stub::start([reply.clone(), Reply::text("more")]);
            let bench = Bench::with_models(team, &stub);
            let called = bench.call(["run", "team.yaml", "go", "--output", output]).must_be(4);
            let last = bench.last();
            if let Some(line) = called.stdout.lines().last().filter(|_| output != "text") {
                let printed: Value = serde_json::from_str(line).expect("it is JSON");
                assert_eq!(essence(&printed), essence(&last["run"]), "{output}");
            }
            let events = last["events"].as_array().expect("it is a list");
            let events = events.iter().map(|it| format!("{} {}", it["event"], it["key"])).collect();
            seen.push((essence(&last["run"]), events));
        }
    }
    assert!(seen.iter().all(|it| *it == seen[0]), "{seen:#?}");
}

#[test]
fn an_onlooker_that_begins_anywhere_sees_all_that_follows_and_one_too_far_ahead_is_told() {
    let team = "agents: [{ name: a, script: { replies: [x] } }, { name: b, script: { replies: [y] } }]\n\
                collaboration: { strategy: broadcast, rounds: 3 }\n";
    let bench = Bench::with_team(team);
    let ran = bench.call(["run", "team.yaml", "go", "--output", "stream-json"]).must_be(0);
    let records: Vec<&str> =
        ran.stdout.lines().filter(|it| it.contains("\"type\":\"record\"")).collect();
    let result = ran.stdout.lines().last();
    for after in 0..=records.len() {
        let watched = bench.call(["watch", "last", "--json", "--after", &after.to_string()]);
        let watched = watched.must_be(0).stdout;
        let lines: Vec<&str> = watched.lines().collect();
        let (last, seen) = lines.split_last().expect("the result comes last");
        assert_eq!(seen, &records[after..], "after {after}");
        assert_eq!(Some(*last), result);
    }
    for after in [records.len() + 1, usize::MAX] {
        let refused = bench.call(["watch", "last", "--json", "--after", &after.to_string()]);
        assert_eq!(refused.must_be(2).json()["error"]["code"], "unknown_event");
    }
}

#[test]
fn equal_answers_give_equal_runs_whatever_the_order_in_which_they_come() {
    let team = |delays: [u32; 3]| {
        let agent = |(name, delay): (&str, u32)| {
            json!({
                "name": name,
                "script": { "replies": [{ "delay_ms": delay, "reply": format!("{name} speaks") }, "vote:b"] },
            })
        };
        let agents: Vec<Value> = ["a", "b", "c"].into_iter().zip(delays).map(agent).collect();
        json!({ "agents": agents, "collaboration": { "strategy": "consensus" } }).to_string()
    };
    let mut seen = Vec::new();
    for delays in [[0, 0, 0], [30, 20, 10], [10, 30, 20], [20, 10, 30]] {
        for seed in ["1", "2", "3"] {
            let bench = Bench::with_team(&team(delays));
            let called = bench.call(["simulate", "team.yaml", "go", "--seed", seed, "--json"]);
            seen.push(essence(&called.must_be(0).json()));
        }
    }
    assert!(seen.iter().all(|it| *it == seen[0]), "{seen:#?}");
}

#[test]
fn a_report_keeps_foreign_lines_in_their_quotes() {
    let said = "one\r# forged\r\n## forged\n```\n</details>\r";
    let team = json!({ "agents": [{ "name": "a", "script": { "replies": [said] } }] });
    let bench = bench_with(&team);
    bench.call(["run", "team.yaml", said]).must_be(0);
    let page = bench.call(["report", "last", "--json"]).must_be(0).json();
    let page = page["markdown"].as_str().expect("it is a text");
    let lines = page.split(['\n', '\r']).filter(|line| line.contains("forged"));
    let quoted = lines.inspect(|line| assert!(line.starts_with("> "), "{line}")).count();
    assert!(quoted >= 4, "{page}");
}

#[test]
fn files_without_an_end_are_refused() {
    let bench = Bench::with_team("agents: [{ name: a, demo: true, prompt_file: /dev/zero }]\n");
    let refused = bench.call(["check", "/dev/zero"]).must_be(2);
    assert!(refused.stderr.contains("too_large"), "{}", refused.stderr);
    let refused = bench.call(["check", "team.yaml"]).must_be(2);
    assert!(refused.stderr.contains("larger than 1 MiB"), "{}", refused.stderr);
}

#[test]
fn a_price_below_nothing_is_refused_with_its_place() {
    let bench = Bench::with_team("agents: [{ name: a, demo: true }]\n");
    for (price, expected) in [
        (
            "input = -1\noutput = 1",
            "folkmoot.toml:2:9: a price must be a number from 0 to 1000000; got -1",
        ),
        (
            "input = 1\noutput = nan",
            "folkmoot.toml:3:10: a price must be a number from 0 to 1000000; got NaN",
        ),
        (
            "input = 1\noutput = inf",
            "folkmoot.toml:3:10: a price must be a number from 0 to 1000000; got inf",
        ),
        ("input = 1\noutput = 1\ncached = 1", "folkmoot.toml:4:1: unknown field `cached`"),
    ] {
        bench.write("folkmoot.toml", &format!("[prices.'a/b']\n{price}\n"));
        let refused = bench.call(["models"]).must_be(2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}
