//! Several processes at one file, and processes that die.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use folkmoot_runtime::store::{Append, Lapse, Owner, SqliteStore, Store, StoreError};
use futures_util::future::join_all;
use tempfile::tempdir;

use crate::{
    HOUR, all, bodies,
    children::{Part, Process, hear, say},
    file_in, in_time, open, push, stream, texts,
};

fn opened(part: &Part) -> SqliteStore {
    SqliteStore::open(&part.store).expect("the store opens")
}

/// Writers that are killed again and again lose nothing that they were told is written.
#[tokio::test]
async fn what_was_acknowledged_survives_every_kill() {
    if let Some(part) = Part::of_this_process() {
        return write_for_ever(&part).await;
    }
    let folder = tempdir().expect("there is a temporary folder");
    let path = file_in(&folder);
    let mut acknowledged = BTreeMap::new();
    // The first is killed as soon as the file can exist, the others after ever more rows.
    for round in 0..6 {
        let name = "processes::what_was_acknowledged_survives_every_kill";
        let mut writer = Process::start(name, "write", &path);
        for _ in 0..round * 37 {
            let line = writer.says().expect("it writes for ever");
            let (stream, seq) = line.split_once(' ').expect("a stream and a number");
            let seq: u64 = seq.parse().expect("a number");
            acknowledged.insert(stream.to_owned(), seq);
        }
        writer.kill();

        let store = open(&folder);
        for (name, seq) in &acknowledged {
            let run = stream(name);
            let end = store.verify(&run).await.expect("the stream is sound");
            assert!(end.seq >= *seq, "{name}: {seq} was acknowledged, {} is there", end.seq);
            let wanted: Vec<_> = (1..=end.seq).map(|number| format!("{name} {number}")).collect();
            assert_eq!(texts(&all(&store, &run).await), wanted);
        }
    }
    assert_eq!(acknowledged.len(), 8, "every writer was heard");
}

async fn write_for_ever(part: &Part) {
    let store = opened(part);
    let writer = async |number: u32| {
        let run = stream(&format!("run/{number}"));
        let mut after = crate::head(&store, &run).await.seq;
        loop {
            let body = format!("{run} {}", after + 1);
            let append = Append::new(&run, after, bodies(&[&body]));
            after = store.append(append).await.expect("nobody else writes").seq;
            say(format!("{run} {after}"));
        }
    };
    join_all((0..8).map(writer)).await;
}

/// Four writers, a reader and a newcomer at a file that is not there yet (rules.md 7.8).
#[tokio::test]
async fn six_processes_share_a_new_file_and_lose_nothing() {
    const WRITES: u64 = 200;
    if let Some(part) = Part::of_this_process() {
        return match &*part.name {
            "list" => list(&part).await,
            "open" => say(opened(&part).path().display()),
            writer => write(&part, writer, WRITES).await,
        };
    }
    let folder = tempdir().expect("there is a temporary folder");
    let name = "processes::six_processes_share_a_new_file_and_lose_nothing";
    let parts = ["writer-1", "writer-2", "writer-3", "writer-4", "list", "open"];
    let processes = parts.map(|part| Process::start(name, part, &file_in(&folder)));
    for (process, part) in processes.into_iter().zip(parts) {
        assert!(process.wait().success(), "{part}");
    }

    let store = open(&folder);
    let shared = all(&store, &stream("run/shared")).await;
    assert_eq!(shared.len() as u64, 4 * WRITES / 2);
    for writer in &parts[..4] {
        let wanted: Vec<_> = (0..WRITES / 2).map(|write| format!("{writer} {write}")).collect();
        assert_eq!(texts(&all(&store, &stream(&format!("run/{writer}"))).await), wanted);
        let own = texts(&shared).into_iter().filter(|text| text.starts_with(writer));
        assert_eq!(own.collect::<Vec<_>>(), wanted);
    }
}

async fn write(part: &Part, writer: &str, count: u64) {
    let store = opened(part);
    for write in 0..count / 2 {
        let body = format!("{writer} {write}");
        push(&store, &format!("run/{writer}"), &[&body]).await;
        push(&store, "run/shared", &[&body]).await;
    }
}

async fn list(part: &Part) {
    let store = opened(part);
    let mut seen = 0;
    for _ in 0..200 {
        let entries = store.list("run/", None, 100).await.expect("no lock is in the way");
        let rows = entries.iter().map(|entry| entry.head.seq).sum();
        assert!(rows >= seen, "what was there stays there");
        seen = rows;
    }
}

#[tokio::test]
async fn a_killed_owner_is_succeeded_at_once() {
    if let Some(part) = Part::of_this_process() {
        let store = opened(&part);
        let run = stream("run/1");
        let claim = store.claim(&run, Owner::this("child"), HOUR).await.expect("nobody holds it");
        store.append(Append::under(&claim, 0, bodies(&["a"]))).await.expect("it follows");
        say("claimed");
        hear();
        return;
    }
    let folder = tempdir().expect("there is a temporary folder");
    let mut child =
        Process::start("processes::a_killed_owner_is_succeeded_at_once", "own", &file_in(&folder));
    assert_eq!(child.says().as_deref(), Some("claimed"));
    let (store, run) = (open(&folder), stream("run/1"));
    let second = store.claim(&run, Owner::this("parent"), HOUR).await;
    let Err(StoreError::Held { by, .. }) = second else { panic!("{second:?}") };
    assert_eq!(&*by.label, "child");
    let alive = store.entry(&run).await.expect("it looks").expect("it is there").owner;
    assert_eq!(alive, Some(*by));

    child.kill();
    let dead = store.entry(&run).await.expect("it looks").expect("it is there").owner;
    assert_eq!(dead, None, "the run shows as interrupted");
    let claim = store.claim(&run, Owner::this("parent"), HOUR).await.expect("the owner is dead");
    assert_eq!(claim.took_over.map(|note| note.why), Some(Lapse::Ended));
}

#[cfg(unix)]
#[tokio::test]
async fn an_owner_that_wakes_late_cannot_write() {
    use rustix::process::Signal;

    if let Some(part) = Part::of_this_process() {
        let store = opened(&part);
        let run = stream("run/1");
        let claim = store.claim(&run, Owner::this("sleeper"), Duration::ZERO).await;
        let claim = claim.expect("nobody holds it");
        store.append(Append::under(&claim, 0, bodies(&["a"]))).await.expect("it follows");
        say("claimed");
        hear();
        let refused = store.append(Append::under(&claim, 1, bodies(&["late"]))).await;
        return say(refused.expect_err("another owns it"));
    }
    let folder = tempdir().expect("there is a temporary folder");
    let name = "processes::an_owner_that_wakes_late_cannot_write";
    let mut child = Process::start(name, "own", &file_in(&folder));
    assert_eq!(child.says().as_deref(), Some("claimed"));
    child.signal(Signal::STOP);

    let (store, run) = (open(&folder), stream("run/1"));
    let owner = Owner::this("successor");
    let claim = store.claim(&run, owner.clone(), HOUR).await.expect("its time ran out");
    assert_eq!(claim.took_over.as_ref().map(|note| note.why), Some(Lapse::Expired));
    child.signal(Signal::CONT);
    child.tell("go on");
    let said = format!("run/1: this process no longer owns it; {owner} does");
    assert_eq!(child.says(), Some(said));

    store.append(Append::under(&claim, 1, bodies(&["b"]))).await.expect("it follows");
    assert_eq!(texts(&all(&store, &run).await), ["a", "b"]);
}

/// What another process posts reaches the owner, and the outcome comes back.
#[tokio::test]
async fn a_post_from_another_process_is_carried_out_once() {
    if let Some(part) = Part::of_this_process() {
        let store = opened(&part);
        let run = stream("run/1");
        let mut watch = store.watch(&run).await.expect("it can be watched");
        loop {
            let post = store.post(&run, "c1", "\"cancel\"").await.expect("anyone may post");
            if let Some(outcome) = post.outcome {
                return say(outcome);
            }
            in_time(watch.changed()).await;
        }
    }
    let folder = tempdir().expect("there is a temporary folder");
    let (store, run) = (open(&folder), stream("run/1"));
    let claim = store.claim(&run, Owner::this("driver"), HOUR).await.expect("nobody holds it");
    store.append(Append::under(&claim, 0, bodies(&["started"]))).await.expect("it follows");
    let mut watch = store.watch(&run).await.expect("it can be watched");
    let name = "processes::a_post_from_another_process_is_carried_out_once";
    let mut child = Process::start(name, "post", &file_in(&folder));

    in_time(watch.posts(0)).await;
    let posts = store.pending(&run).await.expect("it reads");
    assert_eq!(posts.iter().map(|post| &*post.body).collect::<Vec<_>>(), ["\"cancel\""]);
    let done = Append::under(&claim, 1, bodies(&["cancelled"])).done("c1", "\"done\"");
    store.append(done).await.expect("it follows");

    assert_eq!(child.says().as_deref(), Some("\"done\""));
    assert_eq!(store.pending(&run).await.expect("it reads"), []);
    assert_eq!(texts(&all(&store, &run).await), ["started", "cancelled"]);
}

/// A reader in one process follows a writer in another, row by row.
#[tokio::test]
async fn a_watch_sees_what_another_process_writes() {
    const ROWS: u64 = 20;
    if let Some(part) = Part::of_this_process() {
        let store = opened(&part);
        for number in 1..=ROWS {
            assert_eq!(hear(), number.to_string());
            push(&store, "run/1", &[&number.to_string()]).await;
        }
        return;
    }
    let folder = tempdir().expect("there is a temporary folder");
    let (store, run) = (open(&folder), stream("run/1"));
    let mut watch = store.watch(&run).await.expect("it can be watched");
    let name = "processes::a_watch_sees_what_another_process_writes";
    let mut child = Process::start(name, "write", &file_in(&folder));

    let mut seen = String::new();
    for after in 0..ROWS {
        child.tell(&(after + 1).to_string());
        in_time(watch.rows(after)).await;
        let rows = store.read(&run, after, 10).await.expect("the stream is sound");
        write!(seen, "{} ", texts(&rows).concat()).expect("text has room");
    }
    assert_eq!(seen, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 ");
    assert!(child.wait().success());
}
