//! The lines in which a run is told event by event, alike on the command line and from the servers
//! (interface.md, `stream-json`).

use folkmoot_core::{event::Record, key::Key, scope::Notice, view::Outcome};
use serde::Serialize;
use serde_json::{Map, Value};

/// One line: what is recorded, what a call says meanwhile, and last the result.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A record; see [`Line::record`].
    Record {
        /// The run.
        run_id: &'a str,
        /// What was recorded.
        #[serde(flatten)]
        record: &'a Record,
        /// The active time of the run by then.
        elapsed_ms: u64,
    },
    /// What comes in from a call under way.
    Delta {
        /// The call.
        key: &'a Key,
        /// The agent that answers it.
        agent: &'a str,
        /// What comes in.
        #[serde(flatten)]
        piece: Piece<'a>,
    },
    /// What came of the run.
    Result(&'a Outcome),
}

/// What comes in from a call under way.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece<'a> {
    /// The next text of its answer.
    Text(&'a str),
    /// The next text of what is thought on the way.
    Reasoning(&'a str),
    /// It begins anew, for this reason.
    Retry(&'a str),
}

impl<'a> Line<'a> {
    /// The line of a record.
    pub fn record(run_id: &'a str, record: &'a Record) -> Line<'a> {
        Line::Record { run_id, record, elapsed_ms: record.at.0 / 1000 }
    }

    /// The line as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("what is told is plain data")
    }
}

/// The line of what a run's public stream is told.
pub fn notice(run_id: &str, notice: &Notice) -> Value {
    let mut line = Map::new();
    line.insert("type".to_owned(), notice.kind.into());
    line.insert("run_id".to_owned(), run_id.into());
    line.extend(notice.fields.clone());
    Value::Object(line)
}
