//! The port to what is kept: append-only streams of rows.
//!
//! A run is a stream. Rows are opaque here, text in and the same text
//! out: what they mean is folded elsewhere. Each row carries the hash of all before it, so nothing
//! in a stream can be changed, lost or moved unnoticed, and what is read has been checked.
//!
//! A stream has at most one writer at a time. Appending names the row it follows, and fails if
//! another came in between; who drives a run also holds a [`Claim`] on it. Everyone else leaves word
//! for the driver with [`Store::post`].
//!
//! Deliberately absent: updates of rows, queries into bodies, folds.

mod append;
mod chain;
mod claim;
mod error;
mod memory;
mod post;
mod process;
mod sqlite;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

pub use self::{
    append::{Append, Right},
    chain::{Broken, Damage, Hash, Head},
    claim::{Claim, Lapse, Owner, Takeover},
    error::StoreError,
    memory::MemoryStore,
    post::Post,
    sqlite::SqliteStore,
    watch::Watch,
};

/// The longest body of a row or post, in bytes.
pub const MAX_BODY: usize = 64 << 20;

/// The most posts that may wait in one stream.
pub const MAX_PENDING: usize = 1_000;

/// How many rows [`Store::verify`] holds at a time.
const VERIFY_PAGE: usize = 1_000;

/// Names a stream, for example `run/4k7q0v9m2xtd`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for StreamId {
    fn from(text: &str) -> StreamId {
        StreamId(text.into())
    }
}

impl From<String> for StreamId {
    fn from(text: String) -> StreamId {
        StreamId(text.into())
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number in the stream, from 1, without gaps.
    pub seq: u64,
    /// What was appended, unchanged.
    pub body: Arc<str>,
    /// The chain up to and with this row; see [`Head::next`].
    pub hash: Hash,
}

/// What is known of a stream without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number among all streams in order of creation; a cursor for [`Store::list`].
    pub number: u64,
    /// Its name.
    pub stream: StreamId,
    /// Its last row.
    pub head: Head,
    /// What its writers last said of it, as JSON text: a cache of a fold, never the truth.
    pub summary: Option<Arc<str>>,
    /// Who has it claimed, judged at this moment: nobody, if the owner has died or run out of time
    /// (rules.md 7.6).
    pub owner: Option<Owner>,
}

/// Append-only streams with one writer each.
///
/// Every method is atomic, and what it changes is durable when it returns. A future that is dropped
/// before it is ready may or may not have had its effect.
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends all rows or none, and returns the new end.
    ///
    /// Fails with [`StoreError::Conflict`] if the stream does not end where the caller thinks, with
    /// [`StoreError::Superseded`] if the claim it was made under no longer counts, and, made
    /// without one, with [`StoreError::Held`] if the stream is claimed.
    async fn append(&self, append: Append) -> Result<Head, StoreError>;

    /// Reads rows after number `after`, oldest first and checked: at most `limit`, and fewer if they
    /// are large, but at least one unless `after` is the end or there is no such stream.
    async fn read(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError>;

    /// Looks a stream up; `None` if nothing was ever appended to it.
    async fn entry(&self, stream: &StreamId) -> Result<Option<Entry>, StoreError>;

    /// Lists the streams whose names begin with `prefix`, newest first, from below the number
    /// `before` if one is given.
    async fn list(
        &self,
        prefix: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// Watches a stream for what comes after this call, whoever writes it.
    ///
    /// Watch first, then read: nothing is missed in between (rules.md 9.1).
    async fn watch(&self, stream: &StreamId) -> Result<Watch, StoreError>;

    /// Removes a stream for good, unless it is claimed (rules.md 7.9).
    async fn remove(&self, stream: &StreamId) -> Result<(), StoreError>;

    /// Takes the stream for `owner`, who keeps it for `ttl` after each [`Store::renew`] or append.
    ///
    /// The stream need not exist. Fails with [`StoreError::Held`] while another's claim counts: until
    /// its process has ended, or, where that cannot be told, its time has run out. The process that
    /// makes a claim has no privilege in making a second.
    async fn claim(
        &self,
        stream: &StreamId,
        owner: Owner,
        ttl: Duration,
    ) -> Result<Claim, StoreError>;

    /// Keeps a claim for another `ttl`; [`StoreError::Superseded`] if it no longer counts.
    async fn renew(&self, claim: &Claim) -> Result<(), StoreError>;

    /// Gives a claim back; nothing happens if it no longer counts.
    async fn release(&self, claim: Claim) -> Result<(), StoreError>;

    /// Leaves `body` for the stream's writer, once for each `id`, and tells what became of it.
    ///
    /// Posting the same again changes nothing and returns the outcome once there is one. Fails with
    /// [`StoreError::NotFound`] if there is no such stream, with [`StoreError::PostDiffers`] if `id`
    /// was used for another body, and with [`StoreError::InboxFull`] at [`MAX_PENDING`].
    async fn post(&self, stream: &StreamId, id: &str, body: &str) -> Result<Post, StoreError>;

    /// The posts that wait for an outcome, oldest first. [`Append::done`] gives them one.
    async fn pending(&self, stream: &StreamId) -> Result<Vec<Post>, StoreError>;

    /// Checks a whole stream and returns its end: the number of its rows and the hash of them all.
    ///
    /// Finds rows that were changed, lost, moved, added or cut off. Whoever rewrites the whole file
    /// can also rewrite the hashes: only a hash that was noted elsewhere proves that nobody did.
    async fn verify(&self, stream: &StreamId) -> Result<Head, StoreError> {
        let mut head = Head::origin(stream);
        loop {
            let rows = self.read(stream, head.seq, VERIFY_PAGE).await?;
            if rows.is_empty() && head.seq == 0 {
                return Err(StoreError::NotFound { stream: stream.clone() });
            }
            if rows.is_empty() {
                return Ok(head);
            }
            head = head.accept_all(&rows).map_err(|broken| broken.within(stream))?;
        }
    }
}
