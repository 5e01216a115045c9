//! Files that are something else, go astray, or come back from another time.

use std::{fs, os::unix::fs::symlink, path::Path};

use folkmoot_stub::{Reply, Stub};
use rusqlite::Connection;
use serde_json::json;

use super::{goes_on, is_whole, killed, refused};
use crate::{
    bench::Bench,
    held::{Held, PAIR, asked, held},
};

/// Lets the run go on after what was done to its files, and find out.
#[track_caller]
fn finds_out(Held { run, bench, stub, door }: Held) -> (Bench, Stub) {
    door.open();
    refused(
        run.finish(),
        1,
        &["removed or replaced while it was in use", "stops at record", "folkmoot resume "],
    );
    (bench, stub)
}

/// What came at the last moment was recorded, though it was not called done.
#[track_caller]
fn has_ended(bench: &Bench, stub: &Stub) {
    let run = bench.last()["run"].clone();
    assert_eq!((&run["status"], &run["final"]), (&json!("done"), &json!("two")));
    assert_eq!(asked(stub), ["first", "second"]);
    is_whole(bench);
}

#[test]
fn a_database_that_is_moved_away_and_back_has_lost_nothing() {
    let held = held("text");
    fs::rename(held.bench.path("runs.db"), held.bench.path("away")).expect("it is there");
    let (bench, stub) = finds_out(held);
    fs::rename(bench.path("away"), bench.path("runs.db")).expect("it is there");
    has_ended(&bench, &stub);
}

#[test]
fn a_database_that_is_replaced_is_not_written_and_the_run_is_not_called_done() {
    let held = held("json");
    let other = Stub::start([Reply::text("other")]);
    let elsewhere = Bench::with_models(PAIR, &other);
    elsewhere.call(["run", "team.yaml", "another task"]).must_be(0);
    fs::copy(elsewhere.path("runs.db"), held.bench.path("new")).expect("it can be copied");
    fs::rename(held.bench.path("new"), held.bench.path("runs.db")).expect("it is there");
    held.door.open();
    let told = held.run.finish().must_be(1).json();
    assert_eq!(told["error"]["code"], "store");
    let message = told["error"]["message"].as_str().expect("it is told");
    assert!(message.contains("removed or replaced"), "{message}");
}

#[test]
fn a_database_that_is_gone_for_good_is_told_before_anything_is_called_done() {
    let held = held("text");
    for name in ["runs.db", "runs.db-wal", "runs.db-shm"] {
        fs::remove_file(held.bench.path(name)).expect("it is there");
    }
    let (bench, _stub) = finds_out(held);
    assert_eq!(bench.runs(), Vec::<serde_json::Value>::new());
    bench.call(["run", "team.yaml", "task"]).must_be(0);
}

#[test]
fn a_log_that_is_removed_under_a_run_takes_nothing_with_it() {
    for lost in [&["runs.db-wal"][..], &["runs.db-shm"], &["runs.db-wal", "runs.db-shm"]] {
        let held = held("text");
        for name in lost {
            fs::remove_file(held.bench.path(*name)).expect("it is there");
        }
        let (bench, stub) = finds_out(held);
        has_ended(&bench, &stub);
    }
}

#[test]
fn after_a_kill_the_index_beside_the_log_may_be_missing_or_garbage() {
    let (bench, _stub, door) = killed();
    door.open();
    let index = |bench: &Bench| bench.path("runs.db-shm");
    let damages: [fn(&Path); 4] = [
        |it| fs::remove_file(it).unwrap_or_default(),
        |it| fs::write(it, "").expect("it can be written"),
        |it| fs::write(it, vec![0xAA; 32_768]).expect("it can be written"),
        |it| fs::write(it, "stale").expect("it can be written"),
    ];
    for damage in damages {
        let copy = bench.copy();
        damage(&index(&copy));
        let resumed = copy.call(["resume", "last", "--json"]).must_be(0).json();
        assert_eq!(resumed["final"], "two");
        is_whole(&copy);
    }
}

/// What only the log held cannot be had without it; what is left is sound, and can be worked with.
#[test]
fn after_a_kill_a_log_that_is_missing_garbage_or_of_another_time_leaves_a_store_that_is_sound() {
    let stub = Stub::start([Reply::text("one")]);
    let bench = Bench::with_models(PAIR, &stub);
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    let first = bench.runs()[0].clone();
    let database = fs::read(bench.path("runs.db")).expect("it is there");
    for log in [None, Some(Vec::new()), Some(vec![0x37; 40_000]), Some(database)] {
        let copy = bench.copy();
        match log {
            None => fs::remove_file(copy.path("runs.db-wal")).unwrap_or_default(),
            Some(bytes) => fs::write(copy.path("runs.db-wal"), bytes).expect("it can be written"),
        }
        assert_eq!(copy.runs(), std::slice::from_ref(&first));
        is_whole(&copy);
        copy.call(["run", "team.yaml", "task"]).must_be(0);
        is_whole(&copy);
    }
}

#[test]
fn an_older_copy_of_the_database_beside_a_newer_log_is_sound_or_refused_with_its_place() {
    let (bench, stub, door) = killed();
    let old = Bench::with_team(PAIR);
    old.call(["runs"]).must_be(0);
    fs::copy(old.path("runs.db"), bench.path("runs.db")).expect("it can be copied");
    let verified = bench.call(["verify", "last"]);
    match verified.exit {
        0 => goes_on(&bench, &stub, &door),
        _ => assert!([2, 8].contains(&verified.exit), "{}", verified.shown()),
    }
}

#[test]
fn what_is_no_store_of_ours_is_refused_untouched_with_a_way_out() {
    let stub = Stub::start([Reply::text("one")]);
    let bench = Bench::with_models(PAIR, &stub);
    bench.write("notes.txt", "买牛奶\n");
    bench.call(["--db", "future.db", "runs"]).must_be(0);
    let edit = |file: &str, sql: &str| {
        let database = Connection::open(bench.path(file)).expect("it is a database");
        database.execute_batch(sql).expect("the edit is valid");
    };
    edit("future.db", "PRAGMA user_version = 99");
    edit("foreign.db", "CREATE TABLE runs (id)");
    symlink("/dev/null", bench.path("device")).expect("links can be made");
    fs::create_dir(bench.path("folder")).expect("the folder can be written");
    for (file, why) in [
        ("notes.txt", "is no store of folkmoot"),
        ("foreign.db", "is no store of folkmoot"),
        ("device", "is no store of folkmoot"),
        ("/dev/null", "is no store of folkmoot"),
        ("future.db", "has format 99"),
        ("folder", "it is a folder; name a file in it"),
    ] {
        let before = fs::read(bench.path(file)).ok();
        for command in [&["run", "team.yaml", "task"][..], &["runs"], &["resume", "last"]] {
            let arguments = [&["--db", file], command].concat();
            refused(bench.call(arguments), 2, &[file, why, "--db FILE"]);
        }
        assert_eq!(fs::read(bench.path(file)).ok(), before, "{file} was touched");
    }
    assert_eq!(stub.seen().connections, 0);
    assert!(!Path::new("/dev/null-journal").exists());
}
