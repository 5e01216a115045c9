//! The file: how it is made, refused, shared, and how it grows.

use std::{fs, path::Path, sync::Arc};

use folkmoot_runtime::store::{Append, SqliteStore, Store, StoreError};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use crate::{OnDisk, bodies, file_in, open, push, stream};

fn folder() -> TempDir {
    tempdir().expect("there is a temporary folder")
}

fn edit(path: &Path, sql: &str) {
    let connection = Connection::open(path).expect("it is a database or nothing");
    connection.execute_batch(sql).expect("the edit is valid");
}

#[tokio::test]
async fn a_new_file_is_private_and_its_folder_is_made() {
    let folder = folder();
    let path = folder.path().join("deep/er/folkmoot.db");
    let store = SqliteStore::open(&path).expect("the store opens");
    push(&store, "run/1", &["a"]).await;

    assert_eq!(store.path(), path);
    #[cfg(unix)]
    for (name, mode) in [
        ("deep", 0o700),
        ("deep/er", 0o700),
        ("deep/er/folkmoot.db", 0o600),
        ("deep/er/folkmoot.db-wal", 0o600),
        ("deep/er/folkmoot.db-shm", 0o600),
    ] {
        use std::os::unix::fs::PermissionsExt;
        let found = fs::metadata(folder.path().join(name)).expect("it is there").permissions();
        assert_eq!(found.mode() & 0o777, mode, "{name}");
    }
}

#[tokio::test]
async fn a_store_is_still_there_when_it_is_opened_again() {
    let disk = OnDisk::new();
    push(&disk.store, "run/1", &["a"]).await;
    let folder = disk.close();
    assert!(!folder.path().join("folkmoot.db-wal").exists(), "a closed store is one file");

    assert_eq!(push(&open(&folder), "run/1", &["b"]).await.seq, 2);
    assert_eq!(open(&folder).verify(&stream("run/1")).await.expect("it is sound").seq, 2);
}

#[test]
fn an_empty_file_becomes_a_store() {
    let folder = folder();
    fs::write(file_in(&folder), "").expect("it can be written");

    open(&folder);
}

fn left_alone(make: impl Fn(&Path)) {
    let folder = folder();
    make(&file_in(&folder));
    let before = fs::read(file_in(&folder)).expect("it is there");

    let refused = SqliteStore::open(file_in(&folder));
    assert!(matches!(refused, Err(StoreError::NotAStore { .. })), "{refused:?}");
    assert_eq!(fs::read(file_in(&folder)).expect("it is there"), before);
    assert_eq!(fs::read_dir(folder.path()).expect("it lists").count(), 1, "nothing beside it");
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    let sentence = "remember the milk ";
    for text in [&sentence[..4], sentence, &sentence.repeat(3_000)] {
        left_alone(|path| fs::write(path, text).expect("it can be written"));
    }
    for sql in [
        "CREATE TABLE runs (id)",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 1; CREATE TABLE records (id)",
        "PRAGMA application_id = 7; PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
    ] {
        left_alone(|path| edit(path, sql));
    }
}

#[test]
fn a_file_from_the_future_is_refused_and_says_so() {
    let folder = folder();
    open(&folder);
    edit(&file_in(&folder), "PRAGMA user_version = 41");

    let error = SqliteStore::open(file_in(&folder)).expect_err("nobody knows format 41");
    let message = format!(
        "store {}: has format 41; this version of folkmoot knows formats up to 1: update it",
        file_in(&folder).display()
    );
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_folder_is_no_store() {
    let folder = folder();
    let error = SqliteStore::open(folder.path()).expect_err("it is a folder");
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");

    let below_a_file = file_in(&folder).join("folkmoot.db");
    fs::write(file_in(&folder), "").expect("it can be written");
    let error = SqliteStore::open(below_a_file).expect_err("a file holds no files");
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}

#[tokio::test]
async fn a_store_without_its_tables_is_damaged_not_empty() {
    let disk = OnDisk::new();
    push(&disk.store, "run/1", &["a"]).await;
    let folder = disk.close();
    edit(&file_in(&folder), "DROP TABLE records");

    let error = open(&folder).read(&stream("run/1"), 0, 10).await.expect_err("the rows are gone");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn an_append_waits_while_another_program_writes() {
    let disk = OnDisk::new();
    let other = Connection::open(file_in(&disk.folder)).expect("it is a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let store = Arc::new(disk.store);
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.append(Append::new(&stream("run/1"), 0, bodies(&["a"]))).await }
    });

    assert_eq!(store.entry(&stream("run/1")).await.expect("reading does not wait"), None);
    assert!(!writing.is_finished());
    other.execute_batch("COMMIT").expect("there is room");
    assert_eq!(writing.await.expect("it ends").expect("it only had to wait").seq, 1);
}

#[tokio::test]
async fn two_stores_of_one_process_share_a_file() {
    let disk = OnDisk::new();
    let second = open(&disk.folder);
    let mut watch = second.watch(&stream("run/1")).await.expect("it can be watched");

    push(&disk.store, "run/1", &["a"]).await;
    crate::in_time(watch.rows(0)).await;
    assert_eq!(push(&second, "run/1", &["b"]).await.seq, 2);
}

#[tokio::test]
async fn a_page_of_large_rows_is_cut_and_the_rest_follows() {
    let disk = OnDisk::new();
    let long = "x".repeat(5 << 20);
    push(&disk.store, "run/1", &[&*long; 5]).await;

    let (mut after, mut pages) = (0, Vec::new());
    while after < 5 {
        let rows = disk.store.read(&stream("run/1"), after, 10).await.expect("it is sound");
        after = rows.last().expect("there are more").seq;
        pages.push(rows.len());
    }
    assert_eq!(pages, [2, 2, 1]);
    assert_eq!(disk.store.verify(&stream("run/1")).await.expect("it is sound").seq, 5);
}

fn size(folder: &TempDir) -> u64 {
    let files = fs::read_dir(folder.path()).expect("it lists");
    files.map(|file| file.and_then(|file| file.metadata()).expect("it is there").len()).sum()
}

/// Appends turns of 10 kB, with a summary that changes with every turn.
async fn turns(store: &dyn Store, turns: std::ops::Range<u64>) {
    let reply = format!("\"{}\"", "x".repeat(10_000));
    for turn in turns {
        let summary = format!("{{\"calls\":{turn},\"prompt\":\"{}\"}}", "y".repeat(200));
        let append = Append::new(&stream("run/1"), turn, bodies(&[&reply])).summary(summary);
        store.append(append).await.expect("there is room");
    }
}

#[tokio::test]
async fn a_store_grows_with_what_is_written_and_no_faster() {
    let disk = OnDisk::new();
    turns(&disk.store, 0..200).await;
    assert!(size(&disk.folder) < 3 * 200 * 10_000 + (8 << 20), "even before it is tidied");
    let folder = disk.close();
    let once = size(&folder);
    assert!(once < 3 * 200 * 10_000, "{once} bytes for 2 MB");

    let store = open(&folder);
    turns(&store, 200..400).await;
    drop(store);
    let twice = size(&folder);
    assert!(twice < 2 * once + once / 10, "{once}, then {twice} bytes");
}

#[tokio::test]
async fn what_is_removed_gives_its_room_back() {
    let disk = OnDisk::new();
    push(&disk.store, "run/2", &["stays"]).await;
    turns(&disk.store, 0..200).await;
    disk.store.remove(&stream("run/1")).await.expect("nobody holds it");
    let folder = disk.close();

    assert!(size(&folder) < 200_000, "{} bytes", size(&folder));
    open(&folder).verify(&stream("run/2")).await.expect("it is sound");
}
