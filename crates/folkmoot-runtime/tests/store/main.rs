//! What every store does, and what the one on disk does beyond that.

mod children;
mod file;
mod processes;
mod random;
mod suite;
mod tamper;

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use folkmoot_runtime::store::{Append, Head, Row, SqliteStore, Store, StoreError, StreamId};
use tempfile::TempDir;

/// A time after which a test has failed; never reached by one that passes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A time for claims that do not run out.
const HOUR: Duration = Duration::from_hours(1);

/// A store in a folder that goes with it.
struct OnDisk {
    store: SqliteStore,
    folder: TempDir,
}

impl OnDisk {
    fn new() -> OnDisk {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        OnDisk { store: open(&folder), folder }
    }

    /// Closes the store and keeps the file.
    fn close(self) -> TempDir {
        self.folder
    }
}

fn file_in(folder: &TempDir) -> PathBuf {
    folder.path().join("folkmoot.db")
}

fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(file_in(folder)).expect("the store opens")
}

fn stream(name: &str) -> StreamId {
    name.into()
}

fn bodies(texts: &[&str]) -> Vec<Arc<str>> {
    texts.iter().map(|text| Arc::from(*text)).collect()
}

/// Appends without a claim, wherever the stream ends.
async fn push(store: &dyn Store, name: &str, texts: &[&str]) -> Head {
    let stream = stream(name);
    loop {
        let after = head(store, &stream).await.seq;
        match store.append(Append::new(&stream, after, bodies(texts))).await {
            Err(StoreError::Conflict { .. }) => {}
            result => return result.expect("there is room"),
        }
    }
}

async fn head(store: &dyn Store, stream: &StreamId) -> Head {
    let entry = store.entry(stream).await.expect("the store can be read");
    entry.map_or_else(|| Head::origin(stream), |entry| entry.head)
}

async fn all(store: &dyn Store, stream: &StreamId) -> Vec<Row> {
    store.read(stream, 0, usize::MAX).await.expect("the stream is sound")
}

fn texts(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| &*row.body).collect()
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}
