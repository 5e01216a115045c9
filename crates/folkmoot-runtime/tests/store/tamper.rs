//! What happens to the file behind our back is found, with its place.

use std::{fs, io::Write};

use folkmoot_runtime::store::{Broken, Damage, SqliteStore, Store, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{HOUR, OnDisk, file_in, open, push, stream, texts};

/// A closed store with five rows in `run/1`, between which those of another stream stand.
async fn five_rows() -> TempDir {
    let disk = OnDisk::new();
    for body in ["one", "two", "three", "four", "five"] {
        push(&disk.store, "run/1", &[body]).await;
        push(&disk.store, "run/2", &[body]).await;
    }
    disk.close()
}

fn edit(folder: &TempDir, sql: &str) {
    let connection = Connection::open(file_in(folder)).expect("it is a database");
    connection.execute_batch(sql).expect("the edit is valid");
    let changed = connection.changes();
    assert!(changed > 0, "the edit changes something");
}

async fn found_after(sql: &str) -> Option<Broken> {
    let folder = five_rows().await;
    edit(&folder, sql);
    let store = open(&folder);
    store.verify(&stream("run/2")).await.expect("the other stream is sound");
    match store.verify(&stream("run/1")).await {
        Ok(_) => None,
        Err(StoreError::Broken { broken, .. }) => Some(broken),
        Err(other) => panic!("{other}"),
    }
}

/// An edit of the rows of `run/1`, the first stream, and what it must be found as.
#[tokio::test]
async fn an_edit_of_any_row_is_found() {
    let cases = [
        ("UPDATE records SET body = 'Two' WHERE stream = 1 AND seq = 2", 2, Damage::Changed),
        ("UPDATE records SET body = body || ' ' WHERE stream = 1 AND seq = 5", 5, Damage::Changed),
        (
            "UPDATE records SET body = CAST(x'ff' AS TEXT) WHERE stream = 1 AND seq = 3",
            3,
            Damage::Changed,
        ),
        ("UPDATE records SET hash = zeroblob(32) WHERE stream = 1 AND seq = 4", 4, Damage::Changed),
        ("UPDATE records SET hash = x'00' WHERE stream = 1 AND seq = 4", 4, Damage::Changed),
        ("DELETE FROM records WHERE stream = 1 AND seq = 1", 1, Damage::Missing),
        ("DELETE FROM records WHERE stream = 1 AND seq = 3", 3, Damage::Missing),
        ("DELETE FROM records WHERE stream = 1 AND seq >= 4", 4, Damage::Missing),
        ("DELETE FROM records WHERE stream = 1", 1, Damage::Missing),
        (
            "DELETE FROM records WHERE stream = 1 AND seq = 3;
             UPDATE records SET seq = seq - 1 WHERE stream = 1 AND seq > 3",
            3,
            Damage::Changed,
        ),
        (
            "UPDATE records SET seq = 99 WHERE stream = 1 AND seq = 2;
             UPDATE records SET seq = 2 WHERE stream = 1 AND seq = 3;
             UPDATE records SET seq = 3 WHERE stream = 1 AND seq = 99",
            2,
            Damage::Changed,
        ),
        (
            "DELETE FROM records WHERE stream = 1 AND seq = 3;
             INSERT INTO records (stream, seq, hash, body)
             SELECT 1, seq, hash, body FROM records WHERE stream = 2 AND seq = 3",
            3,
            Damage::Changed,
        ),
        (
            "INSERT INTO records (stream, seq, hash, body) VALUES (1, 6, zeroblob(32), 'six')",
            6,
            Damage::Changed,
        ),
        ("UPDATE streams SET seq = 3 WHERE id = 1", 4, Damage::Surplus),
        ("UPDATE streams SET seq = 6 WHERE id = 1", 6, Damage::Missing),
        ("UPDATE streams SET hash = zeroblob(32) WHERE id = 1", 5, Damage::Rewritten),
        (
            "DELETE FROM records WHERE stream = 1 AND seq = 5;
             UPDATE streams SET seq = 4 WHERE id = 1",
            4,
            Damage::Rewritten,
        ),
    ];
    for (sql, seq, damage) in cases {
        assert_eq!(found_after(sql).await, Some(Broken { seq, damage }), "{sql}");
    }
}

#[tokio::test]
async fn a_changed_row_is_refused_and_those_before_it_can_be_read() {
    let folder = five_rows().await;
    edit(&folder, "UPDATE records SET body = 'Three' WHERE stream = 1 AND seq = 3");
    let (store, run) = (open(&folder), stream("run/1"));

    for (after, limit) in [(0, 5), (0, 3), (2, 1), (1, 10)] {
        let error = store.read(&run, after, limit).await.expect_err("row 3 was changed");
        assert_eq!(
            error.to_string(),
            "run/1: record 3 was changed after it was written; \
             records 1 to 2 are sound and can be forked"
        );
    }
    let sound = store.read(&run, 0, 2).await.expect("what comes before is sound");
    assert_eq!(texts(&sound), ["one", "two"]);
}

#[tokio::test]
async fn garbage_for_an_owner_is_taken_over() {
    let garbage = ["''", "'\"'", "'4711'", "CAST(x'c3' AS TEXT)", "'{\"process\":1}'"];
    for owner in garbage {
        let folder = five_rows().await;
        let sql =
            format!("UPDATE streams SET owner = {owner}, ttl = -5, renewed = -9 WHERE id = 1");
        edit(&folder, &sql);
        let store = open(&folder);

        let entry = store.entry(&stream("run/1")).await.expect("it looks").expect("it is there");
        assert_eq!(entry.owner, None, "{owner}");
        let this = folkmoot_runtime::store::Owner::this("test");
        let claim = store.claim(&stream("run/1"), this, HOUR).await.expect("garbage holds nothing");
        let note = claim.took_over.expect("something was there").to_string();
        assert_eq!(note, "taken over from another owner, which left no readable name");
    }
}

#[tokio::test]
async fn a_file_with_a_hole_is_refused_with_its_name_and_a_way_to_repair() {
    let disk = OnDisk::new();
    let long = "x".repeat(10_000);
    push(&disk.store, "run/1", &[&*long; 20]).await;
    let folder = disk.close();
    let mut bytes = fs::read(file_in(&folder)).expect("the file is there");
    let middle = bytes.len() / 2;
    bytes[4_096..middle].fill(0xAA);
    fs::write(file_in(&folder), bytes).expect("it can be written");

    let error = match SqliteStore::open(file_in(&folder)) {
        Err(error) => error,
        Ok(store) => store.verify(&stream("run/1")).await.expect_err("half of it is gone"),
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(&file_in(&folder).display().to_string()), "{message}");
    assert!(message.contains("restore a copy"), "{message}");
}

/// A write that was cut off leaves the state before it, and what follows is sound (rules.md 7.7).
#[tokio::test]
async fn an_unfinished_last_write_is_dropped_wherever_it_was_cut() {
    let disk = OnDisk::new();
    push(&disk.store, "run/1", &["one", "two"]).await;
    let log = disk.folder.path().join("folkmoot.db-wal");
    let before = fs::metadata(&log).expect("there is a log").len() as usize;
    push(&disk.store, "run/1", &["three", "four"]).await;
    let file = fs::read(file_in(&disk.folder)).expect("the file is there");
    let log = fs::read(log).expect("there is a log");
    assert!(log.len() > before);

    for kept in [before, before + 1, before + 24, before + 4_000, log.len() - 1] {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        fs::write(file_in(&folder), &file).expect("it can be written");
        let mut cut = fs::File::create(folder.path().join("folkmoot.db-wal")).expect("and its log");
        cut.write_all(&log[..kept]).expect("it can be written");

        let (store, run) = (open(&folder), stream("run/1"));
        assert_eq!(store.verify(&run).await.expect("it is sound").seq, 2, "{kept} bytes");
        assert_eq!(push(&store, "run/1", &["new"]).await.seq, 3);
        assert_eq!(store.verify(&run).await.expect("it is sound").seq, 3);
    }
}
