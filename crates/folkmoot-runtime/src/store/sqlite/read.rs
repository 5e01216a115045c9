//! What is read, all of it from one snapshot.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::{
    error::Stop,
    write::{post_from, tenure_from},
};
use crate::store::{
    Broken, Damage, Entry, Hash, Head, MAX_PENDING, Post, Row, StreamId, watch::Tip,
};

/// A page of rows ends when it has become this large.
const PAGE_BYTES: usize = 8 << 20;

pub(super) fn rows(
    snapshot: &Connection,
    stream: &StreamId,
    after: u64,
    limit: usize,
) -> Result<Vec<Row>, Stop> {
    let Some((id, noted)) = find(snapshot, stream)?.filter(|(_, noted)| after <= noted.seq) else {
        return Ok(Vec::new());
    };
    let broken = |broken: Broken| broken.within(stream);
    let mut end = match after {
        0 => Head::origin(stream),
        seq => Head { seq, hash: hash_of(snapshot, id, seq)?.map_err(broken)? },
    };
    let page = page(snapshot, id, after, limit)?;
    let mut rows = Vec::with_capacity(page.rows.len());
    for row in page.rows {
        let row = row.map_err(broken)?;
        end = end.accept(&row).map_err(broken)?;
        rows.push(row);
    }
    if page.is_last {
        end.ends_at(noted).map_err(broken)?;
    }
    Ok(rows)
}

/// The id of a stream, and where it is noted to end.
fn find(snapshot: &Connection, stream: &StreamId) -> rusqlite::Result<Option<(i64, Head)>> {
    let sql = "SELECT id, seq, hash FROM streams WHERE name = ?1";
    let found = snapshot.prepare_cached(sql)?.query_row([stream.as_str()], |row| {
        Ok((row.get(0)?, Head { seq: row.get(1)?, hash: row.get::<_, [u8; 32]>(2)?.into() }))
    });
    found.optional()
}

fn hash_of(snapshot: &Connection, stream: i64, seq: u64) -> rusqlite::Result<Result<Hash, Broken>> {
    let sql = "SELECT hash FROM records WHERE stream = ?1 AND seq = ?2";
    let mut statement = snapshot.prepare_cached(sql)?;
    let hash = statement.query_row(params![stream, seq], |row| Ok(row.get::<_, [u8; 32]>(0)));
    Ok(match hash.optional()? {
        Some(Ok(hash)) => Ok(hash.into()),
        Some(Err(_)) => Err(Broken { seq, damage: Damage::Changed }),
        None => Err(Broken { seq, damage: Damage::Missing }),
    })
}

/// Some rows as they stand, and whether the stream has no more.
struct Page {
    rows: Vec<Result<Row, Broken>>,
    is_last: bool,
}

fn page(snapshot: &Connection, stream: i64, after: u64, limit: usize) -> rusqlite::Result<Page> {
    let sql = "SELECT seq, body, hash FROM records WHERE stream = ?1 AND seq > ?2 ORDER BY seq";
    let mut statement = snapshot.prepare_cached(sql)?;
    let mut found = statement.query(params![stream, after])?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < limit && bytes < PAGE_BYTES {
        let Some(row) = found.next()? else { return Ok(Page { rows, is_last: true }) };
        let row = row_from(row)?;
        bytes += row.as_ref().map_or(0, |row| row.body.len());
        rows.push(row);
    }
    Ok(Page { rows, is_last: false })
}

/// Reads the columns `seq, body, hash`. What cannot be a body or a hash is no longer what was
/// written.
fn row_from(row: &SqlRow<'_>) -> rusqlite::Result<Result<Row, Broken>> {
    let seq = row.get(0)?;
    Ok(match (row.get::<_, Arc<str>>(1), row.get::<_, [u8; 32]>(2)) {
        (Ok(body), Ok(hash)) => Ok(Row { seq, body, hash: hash.into() }),
        _ => Err(Broken { seq, damage: Damage::Changed }),
    })
}

pub(super) fn entry(snapshot: &Connection, stream: &StreamId) -> Result<Option<Entry>, Stop> {
    let sql = "SELECT id, name, seq, hash, summary, fence, owner, renewed, ttl FROM streams \
               WHERE name = ?1 AND seq > 0";
    let mut statement = snapshot.prepare_cached(sql)?;
    Ok(statement.query_row([stream.as_str()], entry_from).optional()?)
}

pub(super) fn list(
    snapshot: &Connection,
    prefix: &str,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Entry>, Stop> {
    // From the newest down, until there are enough: never a sort of all that there is. As bytes,
    // because text ends for SQLite where it holds a NUL.
    let sql = "SELECT id, name, seq, hash, summary, fence, owner, renewed, ttl FROM streams \
               WHERE id < ?2 AND seq > 0 AND substr(CAST(name AS BLOB), 1, length(?1)) = ?1 \
               ORDER BY id DESC LIMIT ?3";
    let most = i64::MAX as u64;
    let values =
        params![prefix.as_bytes(), before.unwrap_or(most).min(most), (limit as u64).min(most)];
    let mut statement = snapshot.prepare_cached(sql)?;
    let entries = statement.query_map(values, entry_from)?;
    Ok(entries.collect::<Result<_, _>>()?)
}

/// Reads the columns `id, name, seq, hash, summary, fence, owner, renewed, ttl`.
fn entry_from(row: &SqlRow<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        number: row.get(0)?,
        stream: row.get::<_, String>(1)?.into(),
        head: Head { seq: row.get(2)?, hash: row.get::<_, [u8; 32]>(3)?.into() },
        summary: row.get(4)?,
        owner: tenure_from(row, 5)?.owner(),
    })
}

pub(super) fn pending(snapshot: &Connection, stream: &StreamId) -> Result<Vec<Post>, Stop> {
    let Some((id, _)) = find(snapshot, stream)? else { return Ok(Vec::new()) };
    let sql = "SELECT number, id, body, outcome FROM posts WHERE stream = ?1 AND outcome IS NULL \
               ORDER BY number LIMIT ?2";
    let mut statement = snapshot.prepare_cached(sql)?;
    let posts = statement.query_map(params![id, MAX_PENDING], post_from)?;
    Ok(posts.collect::<Result<_, _>>()?)
}

/// How far a stream has come.
pub(super) fn tip(snapshot: &Connection, stream: &StreamId) -> rusqlite::Result<Tip> {
    let sql = "SELECT seq, posted, done FROM streams WHERE name = ?1";
    let found = snapshot.prepare_cached(sql)?.query_row([stream.as_str()], |row| {
        Ok(Tip { seq: row.get(0)?, posted: row.get(1)?, done: row.get(2)? })
    });
    Ok(found.optional()?.unwrap_or_default())
}
