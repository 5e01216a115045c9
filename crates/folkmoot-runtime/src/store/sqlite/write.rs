//! What is done in a writing transaction. Everything looks first and then writes: what is refused
//! has written nothing.

use std::{sync::Arc, time::Duration};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{error::Stop, writer::Batch};
use crate::store::{
    Append, Claim, Hash, Head, Owner, Post, StoreError, StreamId,
    claim::{Lease, Tenure},
    post,
    watch::Tip,
};

/// A stream as it stands in the database.
struct Stored {
    /// 0 if it is not there yet.
    id: i64,
    tip: Tip,
    hash: Hash,
    tenure: Tenure,
}

pub(super) fn append(batch: &mut Batch<'_>, append: &Append) -> Result<Head, Stop> {
    let connection = batch.connection;
    let mut stored = find(connection, &append.stream)?;
    let mut head = stored.head();
    stored.tenure = append.admit(head, &stored.tenure)?;

    stored.create(connection, &append.stream)?;
    let sql = "INSERT INTO records (stream, seq, hash, body) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = connection.prepare_cached(sql)?;
    for body in &append.bodies {
        head = head.next(body);
        insert.execute(params![stored.id, head.seq, head.hash.as_bytes(), body])?;
    }
    (stored.tip.seq, stored.hash) = (head.seq, head.hash);
    for (id, outcome) in &append.done {
        stored.tip.done += finish(connection, stored.id, id, outcome)?;
    }
    if let Some(summary) = &append.summary {
        let sql = "UPDATE streams SET summary = ?2 WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![stored.id, summary])?;
    }
    stored.save(connection)?;
    batch.tell(&append.stream, stored.tip);
    Ok(head)
}

pub(super) fn remove(batch: &mut Batch<'_>, stream: &StreamId) -> Result<(), Stop> {
    let stored = find(batch.connection, stream)?;
    stored.tenure.vacate(stream)?;
    for sql in [
        "DELETE FROM records WHERE stream = ?1",
        "DELETE FROM posts WHERE stream = ?1",
        "DELETE FROM streams WHERE id = ?1",
    ] {
        batch.connection.execute(sql, [stored.id])?;
    }
    // Gives one page back to the disk with each step.
    let mut vacuum = batch.connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    Ok(())
}

pub(super) fn claim(
    batch: &mut Batch<'_>,
    stream: &StreamId,
    owner: &Owner,
    ttl: Duration,
) -> Result<Claim, Stop> {
    let mut stored = find(batch.connection, stream)?;
    let (tenure, claim) = stored.tenure.claim(stream, owner, ttl)?;
    stored.create(batch.connection, stream)?;
    stored.tenure = tenure;
    stored.save(batch.connection)?;
    Ok(claim)
}

pub(super) fn renew(batch: &mut Batch<'_>, claim: &Claim) -> Result<(), Stop> {
    let mut stored = find(batch.connection, &claim.stream)?;
    stored.tenure = stored.tenure.renew(&claim.stream, claim.fence)?;
    Ok(stored.save(batch.connection)?)
}

pub(super) fn release(batch: &mut Batch<'_>, claim: &Claim) -> Result<(), Stop> {
    let mut stored = find(batch.connection, &claim.stream)?;
    stored.tenure.release(claim.fence);
    Ok(stored.save(batch.connection)?)
}

pub(super) fn post(
    batch: &mut Batch<'_>,
    stream: &StreamId,
    id: &Arc<str>,
    body: &Arc<str>,
) -> Result<Post, Stop> {
    let connection = batch.connection;
    let mut stored = find(connection, stream)?;
    if stored.tip.seq == 0 {
        return Err(StoreError::NotFound { stream: stream.clone() }.into());
    }
    if let Some(known) = posted(connection, stored.id, id)? {
        return Ok(known.again(stream, body)?);
    }
    post::admit(stream, body, stored.tip)?;

    stored.tip.posted += 1;
    let number = stored.tip.posted;
    let sql = "INSERT INTO posts (stream, number, id, body) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![stored.id, number, id, body])?;
    stored.save(connection)?;
    batch.tell(stream, stored.tip);
    Ok(Post { number, id: id.clone(), body: body.clone(), outcome: None })
}

fn posted(connection: &Connection, stream: i64, id: &str) -> rusqlite::Result<Option<Post>> {
    let sql = "SELECT number, id, body, outcome FROM posts WHERE stream = ?1 AND id = ?2";
    connection.prepare_cached(sql)?.query_row(params![stream, id], post_from).optional()
}

/// Reads the columns `number, id, body, outcome`.
pub(super) fn post_from(row: &Row<'_>) -> rusqlite::Result<Post> {
    Ok(Post { number: row.get(0)?, id: row.get(1)?, body: row.get(2)?, outcome: row.get(3)? })
}

/// Gives a post that waits its outcome; returns how many became done, 1 or 0.
fn finish(connection: &Connection, stream: i64, id: &str, outcome: &str) -> rusqlite::Result<u64> {
    let sql = "UPDATE posts SET outcome = ?3 WHERE stream = ?1 AND id = ?2 AND outcome IS NULL";
    let done = connection.prepare_cached(sql)?.execute(params![stream, id, outcome])?;
    Ok(done as u64)
}

fn find(connection: &Connection, stream: &StreamId) -> rusqlite::Result<Stored> {
    let sql = "SELECT id, seq, hash, posted, done, fence, owner, renewed, ttl FROM streams \
               WHERE name = ?1";
    let stored = connection.prepare_cached(sql)?.query_row([stream.as_str()], |row| {
        Ok(Stored {
            id: row.get(0)?,
            tip: Tip { seq: row.get(1)?, posted: row.get(3)?, done: row.get(4)? },
            hash: row.get::<_, [u8; 32]>(2)?.into(),
            tenure: tenure_from(row, 5)?,
        })
    });
    let missing = || Stored {
        id: 0,
        tip: Tip::default(),
        hash: Head::origin(stream).hash,
        tenure: Tenure::default(),
    };
    Ok(stored.optional()?.unwrap_or_else(missing))
}

/// Reads the columns `fence, owner, renewed, ttl` from number `first` on. Whatever stands in the
/// last three can be judged and taken over, so none of it is an error.
pub(super) fn tenure_from(row: &Row<'_>, first: usize) -> rusqlite::Result<Tenure> {
    let time = |column| row.get::<_, i64>(column).map(|time| u64::try_from(time).unwrap_or(0));
    let owner = row.get_ref(first + 1)?.as_bytes_or_null()?;
    let lease = match owner.map(String::from_utf8_lossy) {
        None => None,
        Some(owner) => {
            Some(Lease { owner: owner.into(), renewed: time(first + 2)?, ttl: time(first + 3)? })
        }
    };
    Ok(Tenure { fence: row.get(first)?, lease })
}

impl Stored {
    fn head(&self) -> Head {
        Head { seq: self.tip.seq, hash: self.hash }
    }

    /// Enters the stream if it is not there yet.
    fn create(&mut self, connection: &Connection, stream: &StreamId) -> rusqlite::Result<()> {
        if self.id == 0 {
            let sql = "INSERT INTO streams (name, hash) VALUES (?1, ?2)";
            let hash = self.hash.as_bytes();
            self.id = connection.prepare_cached(sql)?.insert(params![stream.as_str(), hash])?;
        }
        Ok(())
    }

    fn save(&self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "UPDATE streams SET seq = ?2, hash = ?3, posted = ?4, done = ?5, fence = ?6, \
                   owner = ?7, renewed = ?8, ttl = ?9 WHERE id = ?1";
        let Tip { seq, posted, done } = self.tip;
        let lease = self.tenure.lease.as_ref();
        connection.prepare_cached(sql)?.execute(params![
            self.id,
            seq,
            self.hash.as_bytes(),
            posted,
            done,
            self.tenure.fence,
            lease.map(|lease| &*lease.owner),
            lease.map_or(0, |lease| lease.renewed),
            lease.map_or(0, |lease| lease.ttl),
        ])?;
        Ok(())
    }
}
