//! A store that takes no further event, after each event of an orchestrated phase in turn: whatever was asked
//! for is asked for again, and ends as if nothing had happened (orchestrate.md §6, rules.md 7.2).

use std::{fs, path::Path, process::Command};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{bench::Called, delivered::Desk};

/// A request of a phase, as it is asked for until it is done.
struct Step {
    name: &'static str,
    ask: fn(&Desk) -> i32,
    /// The exit of it when it is done.
    exit: i32,
}

const ISSUES: &str = r#"[{"id": "1", "title": "Make the file", "files": ["made.txt"]}]"#;

const STEPS: [Step; 6] = [
    Step {
        name: "plan",
        ask: |desk| orchestrate(desk, &["phase-plan", "--issues-json", ISSUES]),
        exit: 0,
    },
    Step {
        name: "materialize",
        ask: |desk| orchestrate(desk, &["phase-materialize", "--collaboration-template", "t"]),
        exit: 0,
    },
    Step { name: "execute", ask: |desk| orchestrate(desk, &["execute", "T001"]), exit: 0 },
    Step {
        name: "review",
        ask: |desk| {
            let head = desk.head("T001");
            let verdict = ["review", "T001", "--verdict", "approved", "--commit", &head];
            orchestrate(desk, &verdict)
        },
        exit: 0,
    },
    Step { name: "ask", ask: |desk| orchestrate(desk, &["merge", "T001"]), exit: 3 },
    Step {
        name: "merge",
        ask: |desk| {
            let card = desk.asked(&["status", "T001"], 0);
            let run = card["waiting_on"]["run"].as_str().unwrap_or_default();
            // Once the answer is taken there is no question to answer.
            desk.call(&["answer", run, "approve"]);
            orchestrate(desk, &["merge", "T001"])
        },
        exit: 0,
    },
];

/// Writes its file twice: a tool call that was cut off is not made again (rules.md 7.4), so whoever is asked
/// on has to look, or to do it once more.
const CAST: &str = "
agents:
  - name: implementer
    grants: [file]
    script:
      replies:
        - tool_calls: [{ name: file.write, arguments: { path: made.txt, content: made } }]
        - tool_calls: [{ name: file.write, arguments: { path: made.txt, content: made } }]
        - The file is written.
  - { name: reviewer, script: { replies: [LGTM] } }
  - { name: reviser, script: { replies: [No.] } }
collaboration: { pattern: review }
";

fn orchestrate(desk: &Desk, arguments: &[&str]) -> i32 {
    desk.call(&[&["orchestrate"], arguments].concat()).exit
}

fn store(desk: &Desk) -> Connection {
    Connection::open(desk.bench.path("runs.db")).expect("the store can be opened")
}

/// How many events are kept.
fn kept(desk: &Desk) -> u64 {
    if !desk.bench.path("runs.db").exists() {
        return 0;
    }
    let count = store(desk).query_row("SELECT count(*) FROM records", [], |row| row.get(0));
    count.unwrap_or(0)
}

/// Lets the store take so many events more.
fn cut(desk: &Desk, left: u64) {
    let sql = format!(
        "CREATE TABLE cut (left INTEGER NOT NULL); INSERT INTO cut VALUES ({left});
         CREATE TRIGGER cut_now BEFORE INSERT ON records BEGIN
             SELECT RAISE(ABORT, 'cut') FROM cut WHERE left <= 0;
             UPDATE cut SET left = left - 1;
         END;"
    );
    store(desk).execute_batch(&sql).expect("it can be cut");
}

fn mend(desk: &Desk) {
    store(desk).execute_batch("DROP TRIGGER cut_now; DROP TABLE cut;").expect("it can be mended");
}

/// All that a phase has come to, without moments and names that differ from run to run.
fn state(desk: &Desk) -> Value {
    let status = desk.asked(&["status"], 0);
    let cards = status["cards"].as_array().into_iter().flatten().map(|card| {
        let events = card["events"].as_array().into_iter().flatten();
        let events: Vec<&Value> = events.map(|it| &it["event"]).collect();
        json!({
            "state": card["state"],
            "attempts": card["attempts"],
            "runs": card["runs"].as_array().map(Vec::len),
            "branch": [card["branch"]["name"], card["branch"]["state"]],
            "verdict": card["review"]["verdict"],
            "gates": card["gates"],
            "waits": card["waiting_on"]["reason"],
            "events": events,
        })
    });
    let refs = desk.git(&["for-each-ref", "--format=%(refname) %(tree)"]);
    let runs = desk.bench.runs();
    let runs: Vec<&Value> = runs.iter().map(|run| &run["status"]).collect();
    json!({
        "cards": cards.collect::<Vec<_>>(),
        "refs": refs,
        "commits": desk.git(&["rev-list", "--count", "--all"]),
        "trees": desk.git(&["worktree", "list"]).lines().count(),
        "runs": runs,
    })
}

/// Brings a folder to what it was in another.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    Called::of(Command::new("cp").arg("-a").args([from, to])).must_be(0);
}

#[test]
fn a_phase_that_is_cut_off_after_any_event_ends_as_one_that_was_not() {
    let desk = Desk::new("gates = ['test -f made.txt']");
    desk.bench.write("cast.yaml", CAST);
    let aside = tempfile::tempdir().expect("a scratch folder can be made");
    let (here, before) = (desk.bench.path(""), aside.path().join("before"));
    let mut cuts = 0;
    for step in &STEPS {
        let earlier = kept(&desk);
        copy(&here, &before);
        assert_eq!((step.ask)(&desk), step.exit, "{}", step.name);
        let (wanted, events) = (state(&desk), kept(&desk) - earlier);
        let after = aside.path().join("after");
        copy(&here, &after);
        let is_new = earlier == 0;
        for left in 0..events {
            copy(&before, &here);
            if is_new {
                // There is no store to cut before something has opened it.
                desk.asked(&["status"], 0);
            }
            cut(&desk, left);
            assert_ne!((step.ask)(&desk), step.exit, "{} was cut at {left}", step.name);
            mend(&desk);
            if kept(&desk) - earlier < left {
                // Inside of what is written at once, so it is as if it had been cut before that.
                continue;
            }
            assert_eq!((step.ask)(&desk), step.exit, "{} after a cut at {left}", step.name);
            assert_eq!(state(&desk), wanted, "{} after a cut at {left}", step.name);
            cuts += 1;
        }
        copy(&after, &here);
    }
    assert!(cuts > 15, "{cuts} cuts");
}
