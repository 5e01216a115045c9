//! Measures how many appends a second the stores take, each durable before the next of its writer.
//!
//! `cargo run -p folkmoot-runtime --example store_rate [FOLDER]`; the folder decides which disk.
#![expect(clippy::print_stdout, reason = "the numbers are what it is for")]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use folkmoot_runtime::store::{Append, MemoryStore, Owner, SqliteStore, Store, StreamId};

/// About the size of a recorded answer of a few sentences.
const BODY: usize = 400;

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = tempfile::tempdir_in(folder).expect("the folder can be written");
    for (writers, appends) in [(1, 3_000), (64, 300), (256, 200), (1_000, 60)] {
        measure("SQLite", disk(folder.path(), writers), writers, appends).await;
    }
    measure("memory", Arc::new(MemoryStore::new()), 1, 100_000).await;
}

fn disk(folder: &Path, writers: u64) -> Arc<dyn Store> {
    let file = folder.join(format!("{writers}.db"));
    Arc::new(SqliteStore::open(file).expect("the store opens"))
}

/// Has each writer append to a claimed run of its own.
async fn measure(name: &str, store: Arc<dyn Store>, writers: u64, appends: u64) {
    let started = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| tokio::spawn(write(Arc::clone(&store), writer, appends)))
        .collect();
    for task in tasks {
        task.await.expect("every append succeeds");
    }
    let (time, count) = (started.elapsed(), writers * appends);
    let rate = count as f64 / time.as_secs_f64();
    println!("{name}: {writers:>5} writers, {count:>6} appends in {time:>8.2?}: {rate:>8.0}/s");
}

async fn write(store: Arc<dyn Store>, writer: u64, appends: u64) {
    let stream = StreamId::from(format!("run/{writer:032}"));
    let owner = Owner::this("store_rate");
    let claim = store.claim(&stream, owner, Duration::from_mins(1)).await.expect("nobody has it");
    let body: Arc<str> = format!("\"{}\"", "x".repeat(BODY)).into();
    for after in 0..appends {
        let summary = format!(
            "{{\"status\":\"running\",\"prompt\":\"{}\",\"calls\":{after}}}",
            "y".repeat(120)
        );
        let append = Append::under(&claim, after, vec![body.clone()]).summary(summary);
        store.append(append).await.expect("the claim counts");
    }
}
