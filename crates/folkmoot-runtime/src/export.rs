//! A run's record as a file that stands for itself: written here, checked and read anywhere.
//!
//! JSON Lines in UTF-8, each line ended by a line feed. The first line tells the run, how many
//! records there are, the hash of them all and whether the run has ended; each further line is a
//! record, its text as it was appended, behind the hash of all up to it
//! (see [`Head::next`](crate::store::Head::next)). There is one way to write a line, so that any byte
//! that is not as it was written is found, and any line that was lost, added or moved.
//!
//! Deliberately absent: writing a file into a store. Who goes on from a file makes a run of its own.

mod read;

use folkmoot_core::{
    event::{Event, Record},
    log::Unsound,
};
use serde::{Deserialize, Serialize};

pub use self::read::{FileError, Flaw, is_exported, read, read_from};
use crate::{
    engine::{Engine, EngineError, PAGE, RunId, unreadable},
    store::{Hash, Head, Row},
};

/// What the first line says the file is.
const FORMAT: &str = "folkmoot-run";

/// The version of the format that is written, and the latest that is read.
const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    run_id: String,
    records: u64,
    hash: Hash,
    ended: bool,
}

impl Header {
    fn to_line(&self) -> String {
        serde_json::to_string(self).expect("a header is plain data")
    }
}

/// Begins the line of a record.
const BEFORE_HASH: &str = r#"{"hash":""#;

/// Stands between the hash and the record.
const BEFORE_RECORD: &str = r#"","record":"#;

/// Ends the line of a record.
const BEHIND_RECORD: &str = "}";

fn line(row: &Row) -> String {
    format!("{BEFORE_HASH}{}{BEFORE_RECORD}{}{BEHIND_RECORD}\n", row.hash, row.body)
}

/// Whether a run has ended, if it had or had not before `event`.
fn has_ended(before: bool, event: &Event) -> bool {
    match event {
        Event::Ended { .. } => true,
        Event::Amended { .. } => false,
        _ => before,
    }
}

/// A run's record on its way out, a page at a time; it holds what was there when it began.
pub struct Export<'a> {
    engine: &'a Engine,
    run: RunId,
    header: Header,
    head: Head,
    is_begun: bool,
}

impl Engine {
    /// Exports a run, whoever drives it. Its whole record is looked at first: it must be sound, and
    /// no text of it may be `withheld`.
    pub async fn export(
        &self,
        run: &RunId,
        withheld: impl Fn(&str) -> bool,
    ) -> Result<Export<'_>, EngineError> {
        let entry = self.store().entry(&run.stream()).await?;
        let end = entry.ok_or_else(|| EngineError::NoSuchRun(run.to_string()))?.head;
        let mut header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            run_id: run.to_string(),
            records: end.seq,
            hash: end.hash,
            ended: false,
        };
        let head = Head::origin(&run.stream());
        let export =
            |header, head| Export { engine: self, run: run.clone(), header, head, is_begun: false };
        let mut survey = export(header.clone(), head);
        while let Some(rows) = survey.page().await? {
            for row in rows {
                let record =
                    Record::parse(&row.body).map_err(|why| unreadable(run, row.seq, why))?;
                // No reader takes a record for another than it says it is.
                if record.seq != row.seq {
                    let source = Unsound::Number { seq: record.seq, due: row.seq };
                    return Err(EngineError::Unsound { run: run.clone(), source });
                }
                if withheld(&row.body) {
                    return Err(EngineError::Withheld { run: run.clone(), seq: row.seq });
                }
                header.ended = has_ended(header.ended, &record.event);
            }
        }
        Ok(export(header, head))
    }
}

impl Export<'_> {
    /// The end of what is exported: how many records there are, and the hash of them all.
    pub fn end(&self) -> Head {
        Head { seq: self.header.records, hash: self.header.hash }
    }

    /// Whether the run has ended.
    pub fn is_ended(&self) -> bool {
        self.header.ended
    }

    /// The next lines, the first one with them to begin with; nothing behind the last.
    pub async fn next(&mut self) -> Result<Option<String>, EngineError> {
        let Some(rows) = self.page().await? else { return Ok(None) };
        let mut lines = String::new();
        if !std::mem::replace(&mut self.is_begun, true) {
            lines.extend([self.header.to_line().as_str(), "\n"]);
        }
        lines.extend(rows.iter().map(line));
        Ok(Some(lines))
    }

    async fn page(&mut self) -> Result<Option<Vec<Row>>, EngineError> {
        let most = self.header.records.saturating_sub(self.head.seq).min(PAGE);
        if most == 0 {
            return Ok(None);
        }
        let stream = self.run.stream();
        let rows = self.engine.store().read(&stream, self.head.seq, most as usize).await?;
        let broken =
            |broken| EngineError::Store(crate::store::StoreError::Broken { stream, broken });
        self.head = self.head.accept_all(&rows).map_err(broken)?;
        Ok(Some(rows))
    }
}
