//! Other programs that keep the database to themselves, and owners that sleep.

use rusqlite::Connection;
use rustix::process::Signal;

use super::{is_whole, refused};
use crate::{
    bench::until,
    held::{Held, asked, held},
};

#[test]
fn a_run_waits_while_another_program_writes_and_loses_nothing() {
    let Held { run, bench, stub, door } = held("json");
    let other = Connection::open(bench.path("runs.db")).expect("it is a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes at this moment");
    door.open();
    until(&stub, |seen| seen.under_way == 0);
    // Reading waits for nobody; the answer is not durable, so nobody is shown it.
    assert_eq!(bench.last()["calls"][1]["state"], "open");
    assert_eq!(bench.runs()[0]["status"], "running");
    other.execute_batch("ROLLBACK").expect("it was begun");
    drop(other);
    assert_eq!(run.finish().must_be(0).json()["final"], "two");
    assert_eq!(asked(&stub), ["first", "second"]);
    is_whole(&bench);
}

// An owner that sleeps past its time is succeeded, and cannot write when it wakes.
#[test]
fn an_owner_that_wakes_late_cannot_write_and_is_told_who_does() {
    let Held { run, bench, stub, door } = held("text");
    let database = Connection::open(bench.path("runs.db")).expect("it is a database");
    database.busy_timeout(std::time::Duration::from_millis(50)).expect("it is a time");
    run.signal(Signal::STOP);
    while database.execute_batch("UPDATE streams SET renewed = 1").is_err() {
        // It was stopped in the middle of writing.
        run.signal(Signal::CONT);
        run.signal(Signal::STOP);
    }
    drop(database);

    door.open();
    let resumed = bench.call(["resume", "last", "--json"]).must_be(0);
    assert_eq!(resumed.json()["final"], "two");
    assert_eq!(asked(&stub), ["first", "second", "second"]);
    let before = bench.last();
    run.signal(Signal::CONT);
    refused(run.finish(), 1, &["no longer owns it", "folkmoot watch "]);
    assert_eq!(bench.last(), before, "it has written nothing");
    is_whole(&bench);
}
