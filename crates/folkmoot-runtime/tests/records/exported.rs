//! A record as a file that stands for itself.

use std::{fs, path::PathBuf, sync::Arc};

use folkmoot_core::{
    event::{Event, Record},
    replay::Retry,
    time::Time,
};
use folkmoot_runtime::{
    engine::{Engine, EngineError, RunId},
    export::{self, FileError},
    store::{Append, MemoryStore, Store},
};
use tempfile::TempDir;

use super::{Replies, answer, chain, engine, finish, interrupted};

/// A file, and the run in it.
struct Filed {
    folder: TempDir,
    engine: Engine,
    run: RunId,
    text: String,
}

impl Filed {
    async fn of(engine: Engine, run: RunId) -> Filed {
        let text = exported(&engine, &run).await.expect("it is sound");
        Filed { folder: tempfile::tempdir().expect("a scratch folder"), engine, run, text }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run.jsonl")
    }

    /// Reads the file with these bytes in it.
    async fn read(&self, bytes: impl AsRef<[u8]>) -> Result<(MemoryStore, RunId), FileError> {
        fs::write(self.path(), bytes).expect("there is room");
        export::read(&self.path()).await
    }

    /// What is wrong with the file if these bytes are in it, and in which line.
    #[track_caller]
    fn flaw(&self, read: Result<(MemoryStore, RunId), FileError>) -> (u64, String) {
        match read.map(|_| ()) {
            Err(FileError::Flawed { line, flaw, .. }) => (line, flaw.to_string()),
            other => panic!("{other:?}"),
        }
    }

    fn lines(&self) -> Vec<&str> {
        self.text.split_inclusive('\n').collect()
    }
}

async fn exported(engine: &Engine, run: &RunId) -> Result<String, EngineError> {
    let mut export = engine.export(run, |text| text.contains("sk-secret")).await?;
    let mut text = String::new();
    while let Some(lines) = export.next().await? {
        text.push_str(&lines);
    }
    Ok(text)
}

async fn recorded(replies: &[(&str, &[&str])]) -> (Arc<MemoryStore>, Engine, RunId) {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, &Replies::new(replies));
    let run = finish(engine.start(chain(&["a", "b"])).await.expect("it starts")).await.id;
    (store, engine, run)
}

/// A file with one small run that has ended.
async fn filed() -> Filed {
    let (_, engine, run) = recorded(&[("step-1/a", &["“A”\n{}"]), ("step-2/b", &["!boom"])]).await;
    Filed::of(engine, run).await
}

#[tokio::test(start_paused = true)]
async fn a_file_is_the_run_wherever_it_is_read() {
    let filed = filed().await;
    let (store, run) = filed.read(&filed.text).await.expect("it is as it was written");
    assert_eq!(run, filed.run);
    let replies = Replies::new(&[]);
    let elsewhere = engine(&Arc::new(store), &replies);
    let end = elsewhere.verify(&run).await.expect("it is sound");
    assert_eq!(end, filed.engine.verify(&run).await.expect("it is sound"));
    let (there, here) = (elsewhere.replay(&run).await, filed.engine.load(&run).await);
    let (there, here) = (there.expect("it decides so"), here.expect("it is sound"));
    assert_eq!((&there.records, &there.owner), (&here.records, &None));
    assert_eq!(replies.asked(), [""; 0]);
    assert_eq!(exported(&elsewhere, &run).await.expect("it is sound"), filed.text);

    // What is made from it is made elsewhere.
    let retried = filed.engine.retry(&there, Retry::default()).await.expect("b failed");
    assert_eq!(answer(&finish(retried).await).as_deref(), Some("step-2/b says"));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_any_byte_is_found_in_its_line() {
    let filed = filed().await;
    let mut line = 1;
    for (at, byte) in filed.text.bytes().enumerate() {
        for bit in [0, 5, 7] {
            let mut bytes = filed.text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            let (found, flaw) = filed.flaw(filed.read(&bytes).await);
            // The first line speaks of them all, so what contradicts it may be any of them.
            assert!(found == line || line == 1, "byte {at}, bit {bit}: line {found}: {flaw}");
        }
        line += u64::from(byte == b'\n');
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_breaks_off_anywhere_is_found_to() {
    let filed = filed().await;
    for end in 0..filed.text.len() {
        let bytes = &filed.text.as_bytes()[..end];
        let whole = filed.text[..filed.text.floor_char_boundary(end)].matches('\n').count() as u64;
        assert_eq!(filed.flaw(filed.read(bytes).await).0, whole + 1, "cut at byte {end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_byte_that_was_lost_or_added_is_found() {
    let filed = filed().await;
    for at in 0..=filed.text.len() {
        for added in [b"\n", b"0"] {
            let bytes = filed.text.as_bytes();
            let more = [&bytes[..at], added, &bytes[at..]].concat();
            filed.flaw(filed.read(&more).await);
        }
        if at < filed.text.len() {
            let mut less = filed.text.clone().into_bytes();
            less.remove(at);
            filed.flaw(filed.read(&less).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lines_that_were_lost_added_or_moved_are_named() {
    let filed = filed().await;
    let lines = filed.lines();
    let last = lines.len();
    let check = async |lines: Vec<&str>, line: usize, told: &str| {
        let found = filed.flaw(filed.read(lines.concat()).await);
        assert_eq!(found, (line as u64, told.to_owned()));
    };
    let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat();
    check(without(2), 3, "this is record 3; record 2 is expected here").await;
    check(without(1), 2, "this is record 2; record 1 is expected here").await;
    let missing = format!("the file breaks off: record {0} of {0} is missing", last - 1);
    check(without(last - 1), last, &missing).await;
    let twice = [&lines[..3], &lines[2..]].concat();
    check(twice, 4, "this is record 2; record 3 is expected here").await;
    let mut swapped = lines.clone();
    swapped.swap(2, 3);
    check(swapped, 3, "this is record 3; record 2 is expected here").await;
    let more = [&lines[..], &lines[last - 1..]].concat();
    let surplus = format!("the file goes on after its last record, {}", last - 1);
    check(more, last + 1, &surplus).await;
    let blank = [&lines[..2], &["\n"], &lines[2..]].concat();
    check(blank, 3, "this is not a record as it was written; record 2 is expected here").await;
    let headless = without(0);
    check(headless, 1, "this is not an exported run; `folkmoot export RUN -o FILE` writes one")
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_line_of_another_run_does_not_fit() {
    let (filed, other) = (filed().await, filed().await);
    let mixed = [&other.lines()[..1], &filed.lines()[1..]].concat().concat();
    assert_eq!(filed.flaw(filed.read(mixed).await).0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_converted_is_told_so() {
    let filed = filed().await;
    let (line, flaw) = filed.flaw(filed.read(filed.text.replace('\n', "\r\n")).await);
    assert_eq!((line, flaw.contains("CR LF")), (1, true), "{flaw}");
    let (line, flaw) = filed.flaw(filed.read(format!("\u{feff}{}", filed.text)).await);
    assert_eq!((line, flaw.contains("byte order mark")), (1, true), "{flaw}");
    let wide: Vec<u8> = filed.text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for garbage in [&b""[..], b"\n", b"\0\0", b"{}\n", b"[1]\n", b"SQLite format 3\0", &wide] {
        let (line, flaw) = filed.flaw(filed.read(garbage).await);
        assert_eq!((line, flaw.contains("not an exported run")), (1, true), "{flaw}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_file_that_can_be_read_is_told_so() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for path in [folder.path().to_owned(), folder.path().join("nothing.jsonl")] {
        let read = export::read(&path).await.map(|_| ());
        assert!(matches!(read, Err(FileError::Io { .. })), "{read:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_run_is_exported_as_it_stands_and_marked() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~", "B"])]);
    let engine = engine(&store, &replies);
    let run = interrupted(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;
    let early = exported(&engine, &run).await.expect("it is sound");
    assert!(early.lines().next().expect("it has lines").ends_with(r#""ended":false}"#), "{early}");
    finish(engine.resume(&run).await.expect("nobody drives it")).await;
    let late = exported(&engine, &run).await.expect("it is sound");
    assert!(late.lines().next().expect("it has lines").ends_with(r#""ended":true}"#), "{late}");
    let records = |text: &str| text.split_once('\n').expect("it has lines").1.to_owned();
    assert!(records(&late).starts_with(&records(&early)));
    let filed = Filed::of(engine, run).await;
    filed.read(&early).await.expect("it is as it was written");
    let lied = early.replacen(r#""ended":false"#, r#""ended":true"#, 1);
    assert_eq!(filed.flaw(filed.read(lied).await).0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_with_a_secret_in_it_is_withheld_as_a_whole() {
    let (_, engine, run) = recorded(&[("step-2/b", &["the key is sk-secret"])]).await;
    match exported(&engine, &run).await {
        Err(EngineError::Withheld { seq, .. }) => assert_eq!(seq, 5),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_exported_of_what_cannot_be_read_again() {
    let (store, engine, run) = recorded(&[]).await;
    let stream = format!("run/{run}").into();
    let end = engine.verify(&run).await.expect("it is sound").seq;
    let later = r#"{"seq":99,"at":0,"event":"applauded"}"#;
    store.append(Append::new(&stream, end, vec![later.into()])).await.expect("there is room");
    let refused = exported(&engine, &run).await;
    assert!(matches!(refused, Err(EngineError::Unreadable { .. })), "{refused:?}");
    let misnumbered = Record { seq: 7, at: Time(0), event: Event::Ticked }.to_json();
    let append = Append::new(&"run/misnumbered".into(), 0, vec![misnumbered.into()]);
    store.append(append).await.expect("there is room");
    let refused = exported(&engine, &RunId::parse("misnumbered")).await;
    assert_eq!(
        refused.map_err(|error| error.to_string()),
        Err("run misnumbered: record 7 stands where record 1 is due".to_owned())
    );
    let nobody = exported(&engine, &RunId::parse("nobody")).await;
    assert!(matches!(nobody, Err(EngineError::NoSuchRun(_))), "{nobody:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_record_goes_through_in_pages() {
    let long = "long ".repeat(1 << 20);
    let (_, engine, run) = recorded(&[("step-1/a", &[&long])]).await;
    let filed = Filed::of(engine, run).await;
    let (store, run) = filed.read(&filed.text).await.expect("it is as it was written");
    let loaded = engine_over(store).load(&run).await.expect("it is sound");
    let is_long = |event: &Event| serde_json::to_string(event).expect("it is data").len() > 5 << 20;
    assert!(loaded.records.iter().any(|record| is_long(&record.event)));
}

fn engine_over(store: MemoryStore) -> Engine {
    engine(&Arc::new(store), &Replies::new(&[]))
}
