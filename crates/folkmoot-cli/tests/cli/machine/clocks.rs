//! Wall clocks that are set. Active time is taken from a monotonic clock, so what a wall clock says is
//! for people only (rules.md 6.6).

use folkmoot_runtime::store::{Append, SqliteStore, Store};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{is_whole, killed, refused};
use crate::{
    bench::Bench,
    held::{Held, held},
};

/// The same run as if it had begun at another time of the wall clock.
fn begun_at(bench: &Bench, wall: u64) -> Bench {
    let copy = bench.copy();
    let records = bench.last()["events"].as_array().expect("a run has events").clone();
    let bodies = records.into_iter().map(|mut record: Value| {
        if record["event"] == "started" {
            record["wall"] = json!(wall);
        }
        record.to_string().into()
    });
    let database = copy.path("other.db");
    let append = Append::new(&"run/000000000000".into(), 0, bodies.collect());
    let store = SqliteStore::open(&database).expect("it can be made");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs nothing");
    runtime.block_on(store.append(append)).expect("there is room");
    copy.with("FOLKMOOT_DB", database)
}

#[test]
fn a_run_goes_on_although_the_clock_was_set_back_or_forward_since() {
    const CENTURY: u64 = 100 * 365 * 24 * 3_600 * 1_000_000;
    let (killed, _stub, door) = killed();
    door.open();
    let now = killed.last()["events"][0]["wall"].as_u64().expect("it is noted");
    for wall in [0, now - 3_600_000_000, now + 3_600_000_000, now + CENTURY, u64::MAX] {
        let bench = begun_at(&killed, wall);
        assert_eq!(bench.runs()[0]["status"], "interrupted");
        let result = bench.call(["resume", "last", "--json"]).must_be(0).json();
        assert_eq!(result["final"], "two");
        let elapsed = result["meta"]["elapsed_seconds"].as_f64().expect("it is a number");
        assert!(elapsed < 60.0, "begun at {wall}: {elapsed} s of active time");
        for command in [&["runs"][..], &["show", "last"], &["report", "last"]] {
            bench.call(command.iter().copied()).must_be(0);
        }
        is_whole(&bench);
    }
}

/// While its time has not run out by the clock of whoever asks, a live owner keeps its run.
#[test]
fn a_clock_set_by_less_than_a_claim_lasts_does_not_make_two_owners() {
    let Held { run, bench, door, stub: _stub } = held("json");
    for micros in [-4_000_000, 4_000_000] {
        let database = Connection::open(bench.path("runs.db")).expect("it is a database");
        let sql = format!("UPDATE streams SET renewed = renewed + {micros}");
        database.execute_batch(&sql).expect("nobody writes");
        drop(database);
        refused(bench.call(["resume", "last"]), 1, &["is being driven by", "folkmoot watch"]);
    }
    door.open();
    assert_eq!(run.finish().must_be(0).json()["final"], "two");
    is_whole(&bench);
}
