//! Boards: what agents leave for each other without addressing anybody (messaging.md §3).
//!
//! A board holds entries, which are only ever added, and cells, which hold one value each and are set by
//! whoever saw the latest. It is a fold of its changes, each of which has a number.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest entry, and the largest value of a cell, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// The most cells.
pub const MAX_CELLS: usize = 1_000;

/// The longest name of a topic or cell, in bytes.
const MAX_NAME: usize = 200;

/// A change: a row of a board's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// Who made it.
    pub author: Arc<str>,
    /// The run in which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
    /// The call that made it: it makes it once, however often it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
    /// What changed.
    #[serde(flatten)]
    pub what: What,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum What {
    /// An entry was added.
    Posted(Post),
    /// A cell was set.
    Set {
        /// Which.
        key: Arc<str>,
        /// To what.
        value: Value,
    },
}

/// What an author puts on a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// What it is about.
    pub topic: Arc<str>,
    /// What it says.
    pub text: Arc<str>,
    /// What it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<Arc<str>>,
}

/// An entry as it stands on the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The number of the change that added it.
    pub seq: u64,
    /// Who wrote it.
    pub author: Arc<str>,
    /// What it says.
    #[serde(flatten)]
    pub post: Post,
    /// When, in microseconds since 1970.
    pub at: u64,
    /// The run in which it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
}

/// A cell as it stands on the board.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Its name.
    pub key: Arc<str>,
    /// What it holds.
    pub value: Value,
    /// How often it was set.
    pub version: u64,
    /// Who set it last.
    pub author: Arc<str>,
    /// The number of the change that did.
    pub seq: u64,
}

/// A board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    entries: Vec<Entry>,
    cells: BTreeMap<Arc<str>, Cell>,
    version: u64,
    /// What calls of runs changed last, by run and call, with its number; of a cell, its version then.
    made: BTreeMap<(Arc<str>, Arc<str>), (u64, What)>,
}

/// What stands on a board since some change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delta {
    /// The number of changes in all.
    pub version: u64,
    /// The entries since then, oldest first.
    pub entries: Vec<Entry>,
    /// The cells that were set since then, by name.
    pub cells: Vec<Cell>,
    /// Whether there are more entries than these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// Somebody else set the cell meanwhile.
    #[error("cell {key} is at version {version}, not at {expected}")]
    Conflict {
        /// The cell.
        key: Arc<str>,
        /// The version that was expected.
        expected: u64,
        /// The one it has; 0 if there is none.
        version: u64,
        /// What it holds.
        value: Value,
    },
    /// A value is out of its range.
    #[error("{field} {wants}")]
    BadValue {
        /// Which.
        field: &'static str,
        /// What it should be.
        wants: String,
    },
}

impl Refused {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::Conflict { .. } => "conflict",
            Refused::BadValue { .. } => "bad_value",
        }
    }
}

impl Board {
    /// The number of changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The cells, by name.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.values()
    }

    /// The cell of that name.
    pub fn cell(&self, key: &str) -> Option<&Cell> {
        self.cells.get(key)
    }

    /// What came after the change of number `after`: at most `limit` entries, of `topic` if one is given.
    pub fn since(&self, after: u64, topic: Option<&str>, limit: usize) -> Delta {
        let is_meant = |entry: &&Entry| {
            entry.seq > after && topic.is_none_or(|topic| *entry.post.topic == *topic)
        };
        let mut fitting = self.entries.iter().filter(is_meant);
        let entries: Vec<Entry> = fitting.by_ref().take(limit).cloned().collect();
        let more = fitting.next().is_some();
        let cells = self.cells().filter(|cell| cell.seq > after).cloned().collect();
        Delta { version: self.version, entries, cells, more }
    }

    /// The number that a change has got already, if this very call made it before: of an entry that of
    /// the change, of a cell its version then.
    pub fn made(
        &self,
        run: Option<&Arc<str>>,
        call: Option<&Arc<str>>,
        what: &What,
    ) -> Option<u64> {
        let (number, made) = self.made.get(&(run?.clone(), call?.clone()))?;
        (made == what).then_some(*number)
    }

    /// Whether an entry may be added.
    pub fn post(&self, post: &Post) -> Result<(), Refused> {
        name("topic", &post.topic)?;
        let bad = |field, wants: String| Err(Refused::BadValue { field, wants });
        if post.text.trim().is_empty() {
            return bad("text", "is empty".to_owned());
        }
        if post.text.len() > MAX_TEXT {
            return bad(
                "text",
                format!("has at most {MAX_TEXT} bytes; this one has {}", post.text.len()),
            );
        }
        if post.refs.len() > 100 || post.refs.iter().any(|it| it.len() > 4096) {
            return bad("refs", "are at most 100, of 4096 bytes each".to_owned());
        }
        Ok(())
    }

    /// Whether a cell may be set by somebody who saw it at version `expect`, 0 for a new one.
    pub fn set(&self, key: &str, value: &Value, expect: u64) -> Result<(), Refused> {
        name("key", key)?;
        let bytes = value.to_string().len();
        if bytes > MAX_TEXT {
            let wants = format!("has at most {MAX_TEXT} bytes; this one has {bytes}");
            return Err(Refused::BadValue { field: "value", wants });
        }
        let cell = self.cells.get(key);
        let version = cell.map_or(0, |cell| cell.version);
        if version != expect {
            let value = cell.map(|cell| cell.value.clone()).unwrap_or_default();
            return Err(Refused::Conflict { key: key.into(), expected: expect, version, value });
        }
        if cell.is_none() && self.cells.len() >= MAX_CELLS {
            let wants = format!("would be one more than the {MAX_CELLS} cells that a board has");
            return Err(Refused::BadValue { field: "key", wants });
        }
        Ok(())
    }

    /// Folds a change.
    pub fn apply(&mut self, change: Change) {
        self.version += 1;
        let (seq, Change { at, author, run, call, what }) = (self.version, change);
        if let Some((run, call)) = run.clone().zip(call) {
            let number = match &what {
                What::Posted(_) => seq,
                What::Set { key, .. } => self.cells.get(key).map_or(0, |cell| cell.version) + 1,
            };
            self.made.insert((run, call), (number, what.clone()));
        }
        match what {
            What::Posted(post) => self.entries.push(Entry { seq, author, post, at, run }),
            What::Set { key, value } => {
                let version = self.cells.get(&key).map_or(0, |cell| cell.version) + 1;
                let cell = Cell { key: key.clone(), value, version, author, seq };
                self.cells.insert(key, cell);
            }
        }
    }
}

fn name(field: &'static str, name: &str) -> Result<(), Refused> {
    let is_name =
        !name.trim().is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    let wants = || format!("is a name of at most {MAX_NAME} bytes on one line");
    if is_name { Ok(()) } else { Err(Refused::BadValue { field, wants: wants() }) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(author: &str, what: What) -> Change {
        Change { at: 0, author: author.into(), run: None, call: None, what }
    }

    fn post(topic: &str, text: &str) -> Post {
        Post { topic: topic.into(), text: text.into(), refs: Vec::new() }
    }

    fn set(board: &mut Board, author: &str, value: &str, expect: u64) -> Result<(), Refused> {
        board.set("plan", &json!(value), expect)?;
        let what = What::Set { key: "plan".into(), value: json!(value) };
        board.apply(change(author, what));
        Ok(())
    }

    #[test]
    fn entries_are_only_added_and_name_nobody_they_are_for() {
        let mut board = Board::default();
        for (author, topic) in [("a", "risk"), ("b", "risk"), ("a", "plan")] {
            board.post(&post(topic, "R1")).expect("it is fine");
            board.apply(change(author, What::Posted(post(topic, "R1"))));
        }
        let seen = board.since(1, Some("risk"), 10);
        assert_eq!((seen.version, seen.entries.len(), seen.more), (3, 1, false));
        assert_eq!(
            (board.since(0, None, 2).entries.len(), board.since(0, None, 2).more),
            (2, true)
        );
        let entry = serde_json::to_value(&board.entries()[0]).expect("plain data");
        assert_eq!(
            entry,
            json!({ "seq": 1, "author": "a", "topic": "risk", "text": "R1", "at": 0 })
        );
    }

    #[test]
    fn a_cell_is_set_by_whoever_saw_the_latest_and_the_other_is_told_what_it_holds() {
        let mut board = Board::default();
        set(&mut board, "a", "one", 0).expect("it is new");
        let late = set(&mut board, "b", "two", 0).expect_err("a was first");
        let conflict =
            Refused::Conflict { key: "plan".into(), expected: 0, version: 1, value: json!("one") };
        assert_eq!(late, conflict);
        assert_eq!(board.version(), 1, "nothing changed");
        set(&mut board, "b", "two", 1).expect("it saw the latest");
        let cell = board.cell("plan").expect("it is there");
        assert_eq!((&cell.value, cell.version, &*cell.author), (&json!("two"), 2, "b"));
        assert_eq!(board.since(1, None, 10).cells.len(), 1);
        assert_eq!(board.since(2, None, 10).cells, []);
    }

    #[test]
    fn every_limit_holds_at_its_edge() {
        let mut board = Board::default();
        let text = "x".repeat(MAX_TEXT);
        assert!(board.post(&post("t", &text)).is_ok());
        for bad in
            [post("t", &format!("{text}x")), post("t", " "), post("", "x"), post("a\nb", "x")]
        {
            assert_eq!(board.post(&bad).map_err(|it| it.code()), Err("bad_value"));
        }
        assert!(board.set("k", &json!("x".repeat(MAX_TEXT - 2)), 0).is_ok());
        assert!(board.set("k", &json!("x".repeat(MAX_TEXT - 1)), 0).is_err());
        for n in 0..MAX_CELLS {
            let what = What::Set { key: n.to_string().into(), value: json!(n) };
            board.apply(change("a", what));
        }
        assert!(board.set("7", &json!(1), 1).is_ok(), "one that is there");
        assert_eq!(board.set("new", &json!(1), 0).map_err(|it| it.code()), Err("bad_value"));
    }

    #[test]
    fn changes_read_back_as_they_were_written() {
        for what in [
            What::Posted(post("风险", "你好")),
            What::Set { key: "plan".into(), value: json!({ "n": null }) },
        ] {
            let text = serde_json::to_string(&change("甲", what.clone())).expect("plain data");
            let read: Change = serde_json::from_str(&text).expect("it was written so");
            assert_eq!(read, change("甲", what));
        }
    }
}
