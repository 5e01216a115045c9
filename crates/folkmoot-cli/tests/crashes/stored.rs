//! A log as it lies on the disk after a kill.

use std::fs;

use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use crate::bench::Bench;

/// A record as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    /// The stored text.
    pub(crate) text: String,
    /// The same as JSON.
    pub(crate) json: Value,
}

impl Stored {
    pub(crate) fn event(&self) -> &str {
        self.json["event"].as_str().expect("a record names its event")
    }

    /// Whether it is the bill for an attempt that was cut off.
    pub(crate) fn is_bill(&self) -> bool {
        self.event() == "answered" && self.json["fault"]["fault"] == "lost"
    }

    pub(crate) fn key(&self) -> &str {
        self.json["key"].as_str().unwrap_or_default()
    }
}

/// The records of the one run in a database. It is read from a copy, so that whoever resumes the run
/// finds the files as the kill left them.
pub(crate) fn records(bench: &Bench) -> Vec<Stored> {
    let folder = tempfile::tempdir().expect("a scratch folder can be made");
    for name in ["runs.db", "runs.db-wal"] {
        // Either may not be there yet.
        let _ = fs::copy(bench.path(name), folder.path().join(name));
    }
    let database = Connection::open(folder.path().join("runs.db")).expect("it is a database");
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'records'";
    let tables: u64 = database.query_row(sql, [], |row| row.get(0)).expect("it can be read");
    if tables == 0 {
        return Vec::new();
    }
    let sql = "SELECT id FROM streams WHERE seq > 0";
    let run: Option<i64> =
        database.query_row(sql, [], |row| row.get(0)).optional().expect("it can be read");
    let sql = "SELECT seq, body FROM records WHERE stream = ?1 ORDER BY seq";
    let mut rows = database.prepare(sql).expect("the table is there");
    let rows = rows.query_map([run], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(u64, String)> =
        rows.and_then(Iterator::collect).expect("every record can be read");
    let stored = (1..).zip(rows).map(|(wanted, (seq, text))| {
        let json: Value = serde_json::from_str(&text).expect("a record is JSON");
        assert_eq!((seq, json["seq"].as_u64()), (wanted, Some(wanted)), "the numbers have a gap");
        Stored { text, json }
    });
    stored.collect()
}
