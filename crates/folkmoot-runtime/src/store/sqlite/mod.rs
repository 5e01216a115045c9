//! The store in one SQLite file, shared by any number of processes (rules.md 7.8).
//!
//! One thread writes: whatever waits while a commit is under way shares the next one. Reads have
//! connections of their own and wait for nobody. What other processes write is noticed by looking at
//! the file's version while something is watched; what this one writes is known without looking.

mod error;
mod files;
mod follow;
mod open;
mod read;
mod readers;
mod write;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use self::{files::Files, follow::Follower, readers::Readers, writer::Writer};
use super::{
    Append, Claim, Entry, Head, Owner, Post, Row, Store, StoreError, StreamId, Watch, watch::Hub,
};

/// Streams in a SQLite file.
///
/// Reading needs a tokio runtime. Dropping the store waits for the commit that is under way.
#[derive(Debug)]
pub struct SqliteStore {
    path: Arc<Path>,
    writer: Writer,
    readers: Arc<Readers>,
    follower: Follower,
    hub: Arc<Hub>,
}

impl SqliteStore {
    /// Opens the file, and creates it, private to its user, if there is none. Blocks.
    ///
    /// An older format is brought up to date. A later one, or a file of another program, is refused
    /// untouched: [`StoreError::NewerVersion`], [`StoreError::NotAStore`].
    pub fn open(path: impl Into<PathBuf>) -> Result<SqliteStore, StoreError> {
        let path = path.into();
        // Also keeps SQLite from giving names such as `:memory:` a meaning.
        let path: Arc<Path> = match std::path::absolute(&path) {
            Ok(absolute) => absolute.into(),
            Err(source) => return Err(StoreError::Io { path, source: Arc::new(source) }),
        };
        let hub = Arc::new(Hub::default());
        let connection = open::open(&path)?;
        let files = Arc::new(Files::of(&path));
        Ok(SqliteStore {
            writer: Writer::start(connection, path.clone(), files.clone(), hub.clone())?,
            readers: Arc::new(Readers::new(path.clone(), files)),
            follower: Follower::default(),
            path,
            hub,
        })
    }

    /// Proves that the file can be written, and writes nothing.
    pub async fn check_writable(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        let can_be_written = move |batch: &mut writer::Batch<'_>| {
            if batch.connection.is_readonly("main")? {
                return Err(StoreError::ReadOnly { path: path.to_path_buf() }.into());
            }
            Ok(())
        };
        self.writer.commit(can_be_written).await
    }

    /// The file, as an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn append(&self, append: Append) -> Result<Head, StoreError> {
        self.writer.commit(move |batch| write::append(batch, &append)).await
    }

    async fn read(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let stream = stream.clone();
        self.readers.with(move |snapshot| read::rows(snapshot, &stream, after, limit)).await
    }

    async fn entry(&self, stream: &StreamId) -> Result<Option<Entry>, StoreError> {
        let stream = stream.clone();
        self.readers.with(move |snapshot| read::entry(snapshot, &stream)).await
    }

    async fn list(
        &self,
        prefix: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let prefix = prefix.to_owned();
        self.readers.with(move |snapshot| read::list(snapshot, &prefix, before, limit)).await
    }

    async fn watch(&self, stream: &StreamId) -> Result<Watch, StoreError> {
        let watch = self.hub.subscribe(stream);
        self.follower.follow(&self.path, &self.hub, || self.writer.looks())?;
        let name = stream.clone();
        let tip = self.readers.with(move |snapshot| Ok(read::tip(snapshot, &name)?)).await?;
        self.hub.publish(stream, tip);
        Ok(watch.since_now())
    }

    async fn remove(&self, stream: &StreamId) -> Result<(), StoreError> {
        let stream = stream.clone();
        self.writer.commit(move |batch| write::remove(batch, &stream)).await
    }

    async fn claim(
        &self,
        stream: &StreamId,
        owner: Owner,
        ttl: Duration,
    ) -> Result<Claim, StoreError> {
        let stream = stream.clone();
        self.writer.commit(move |batch| write::claim(batch, &stream, &owner, ttl)).await
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.writer.commit(move |batch| write::renew(batch, &claim)).await
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        self.writer.commit(move |batch| write::release(batch, &claim)).await
    }

    async fn post(&self, stream: &StreamId, id: &str, body: &str) -> Result<Post, StoreError> {
        let (stream, id, body) = (stream.clone(), Arc::from(id), Arc::from(body));
        self.writer.commit(move |batch| write::post(batch, &stream, &id, &body)).await
    }

    async fn pending(&self, stream: &StreamId) -> Result<Vec<Post>, StoreError> {
        let stream = stream.clone();
        self.readers.with(move |snapshot| read::pending(snapshot, &stream)).await
    }
}
