//! Reading an exported run, and what can be wrong with the file.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use folkmoot_core::event::{Record, Unreadable};
use thiserror::Error;

use super::{BEFORE_HASH, BEFORE_RECORD, BEHIND_RECORD, Header, VERSION, has_ended};
use crate::{
    engine::RunId,
    store::{Append, Hash, Head, MAX_BODY, MemoryStore, Row, Store},
};

/// The longest first line, in bytes.
const MAX_HEADER: usize = 1 << 10;

/// The longest line of a record, in bytes.
const MAX_LINE: usize = MAX_BODY + 256;

/// What every first line begins with.
const BEGINNING: &str = r#"{"format":"folkmoot-run","#;

/// The longest id of a run.
const MAX_ID: usize = 64;

/// The digits of a hash.
const DIGITS: usize = 64;

/// Why a file cannot be taken for a run.
#[derive(Debug, Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not as it was written.
    #[error("{}:{line}: {flaw}", .path.display())]
    Flawed {
        /// The file.
        path: PathBuf,
        /// The first line that is wrong, from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        flaw: Flaw,
    },
}

/// What can be wrong with a line.
#[derive(Debug, Error)]
pub enum Flaw {
    /// It begins otherwise than an exported run.
    #[error("this is not an exported run; `folkmoot export RUN -o FILE` writes one")]
    NotAnExport,
    /// It begins with a mark that editors add.
    #[error("a byte order mark was put in front; copy the file as it is")]
    ByteOrderMark,
    /// Its line ends were converted.
    #[error("the line ends in CR LF, so the file was converted; copy it as it is")]
    CarriageReturn,
    /// It comes from a later version of this program.
    #[error(
        "the file has version {0} of its format; this folkmoot reads version {VERSION}: update it"
    )]
    Newer(u64),
    /// The first line was changed.
    #[error("the first line was changed after it was written")]
    Header,
    /// The first line names a run in characters that no id has.
    #[error("the first line names a run that cannot be one")]
    Name,
    /// The first line tells an end that there is not, or the other way round.
    #[error("the first line was changed: it is wrong about whether the run has ended")]
    Ending,
    /// A line is longer than a record can be.
    #[error("the line is longer than any that is written")]
    TooLong,
    /// The file ends in the middle of a line.
    #[error("the file breaks off in the middle of this line")]
    BreaksOff,
    /// The file ends before the last record.
    #[error("the file breaks off: record {0} of {1} is missing")]
    Missing(u64, u64),
    /// The file goes on behind the last record.
    #[error("the file goes on after its last record, {0}")]
    Surplus(u64),
    /// It is none of the lines that are written.
    #[error("this is not a record as it was written; record {0} is expected here")]
    NoRecord(u64),
    /// A record stands in a wrong place.
    #[error("this is record {found}; record {expected} is expected here")]
    Misplaced {
        /// The one that stands there.
        found: u64,
        /// The one that should.
        expected: u64,
    },
    /// A record, or its hash, was changed.
    #[error("record {0} was changed after it was written")]
    Changed(u64),
    /// The records are sound, and not those that the first line tells of.
    #[error("record {0} does not match the hash in the first line")]
    Rewritten(u64),
    /// A record is as it was written, and nothing that this version understands.
    #[error("record {0} cannot be read: {1}")]
    Unreadable(u64, #[source] Unreadable),
}

/// Reads an exported run into a store of its own. Every line is checked.
pub async fn read(path: &Path) -> Result<(MemoryStore, RunId), FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    may_be_opened(path).map_err(io)?;
    let file = File::open(path).map_err(io)?;
    read_from(BufReader::new(file), path).await
}

/// Whether the file at `path` begins as an exported run does, whatever follows. What is no file is not
/// looked into, as it could not be read again.
pub fn is_exported(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut beginning = [0; BEGINNING.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning == *BEGINNING.as_bytes()
}

/// Whether to open it may wait for ever: for who writes into a named pipe, or sits at a terminal. What
/// is open already, such as the output of another program, has no place of its own in the file system.
fn may_be_opened(path: &Path) -> io::Result<()> {
    let kind = path.metadata()?;
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() && path.canonicalize().is_ok() {
        return Err(io::Error::other("it is a pipe or a device; copy it to a file first"));
    }
    Ok(())
}

/// Reads an exported run from `input`, as [`read`] does; errors say that it stands at `path`.
pub async fn read_from(
    input: impl BufRead,
    path: &Path,
) -> Result<(MemoryStore, RunId), FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    let mut lines = Lines { input, number: 0 };
    match rows(&mut lines) {
        Ok((run, bodies)) => {
            let store = MemoryStore::new();
            let append = Append::new(&run.stream(), 0, bodies);
            store.append(append).await.expect("no record is too long, and nobody else writes");
            Ok((store, run))
        }
        Err(Stop::Io(source)) => Err(io(source)),
        Err(Stop::Flaw(flaw)) => {
            Err(FileError::Flawed { path: path.to_owned(), line: lines.number.max(1), flaw })
        }
    }
}

enum Stop {
    Io(io::Error),
    Flaw(Flaw),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

impl From<Flaw> for Stop {
    fn from(flaw: Flaw) -> Stop {
        Stop::Flaw(flaw)
    }
}

/// The lines of a file, and the number of the one that was looked at last.
struct Lines<Input> {
    input: Input,
    number: u64,
}

impl<Input: BufRead> Lines<Input> {
    /// The next line without its end; nothing at the end of the file.
    fn next(&mut self, most: usize) -> Result<Option<Vec<u8>>, Stop> {
        self.number += 1;
        let mut line = Vec::new();
        self.input.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            return Err(if line.len() > most { Flaw::TooLong } else { Flaw::BreaksOff }.into());
        }
        if line.last() == Some(&b'\r') {
            return Err(Flaw::CarriageReturn.into());
        }
        Ok(Some(line))
    }
}

/// The run, and the text of each of its records.
fn rows(lines: &mut Lines<impl BufRead>) -> Result<(RunId, Vec<Arc<str>>), Stop> {
    let header = header(lines)?;
    let run = RunId::parse(&header.run_id);
    let end = Head { seq: header.records, hash: header.hash };
    let mut head = Head::origin(&run.stream());
    let (mut bodies, mut ended) = (Vec::new(), false);
    while let Some(line) = lines.next(MAX_LINE)? {
        if head.seq == end.seq {
            return Err(Flaw::Surplus(end.seq).into());
        }
        let (row, record) = row(&line, head)?;
        head = head.next(&row.body);
        ended = has_ended(ended, &record.event);
        bodies.push(row.body);
    }
    if head.seq < end.seq {
        return Err(Flaw::Missing(head.seq + 1, end.seq).into());
    }
    // What is wrong from here on is no line's fault but the last one's, or the first one's.
    lines.number -= 1;
    if head.hash != end.hash {
        return Err(Flaw::Rewritten(end.seq).into());
    }
    if ended != header.ended {
        lines.number = 1;
        return Err(Flaw::Ending.into());
    }
    Ok((run, bodies))
}

fn header(lines: &mut Lines<impl BufRead>) -> Result<Header, Stop> {
    let beginning = lines.input.fill_buf()?;
    if beginning.starts_with(b"\xEF\xBB\xBF") {
        return Err(Flaw::ByteOrderMark.into());
    }
    let common = beginning.len().min(BEGINNING.len());
    if common == 0 || beginning[..common] != BEGINNING.as_bytes()[..common] {
        return Err(Flaw::NotAnExport.into());
    }
    let line = lines.next(MAX_HEADER)?.unwrap_or_default();
    let value: serde_json::Value = serde_json::from_slice(&line).map_err(|_| Flaw::Header)?;
    match value["version"].as_u64() {
        Some(version) if version > u64::from(VERSION) => return Err(Flaw::Newer(version).into()),
        Some(_) | None => {}
    }
    let header: Header = serde_json::from_value(value).map_err(|_| Flaw::Header)?;
    if header.version != VERSION || header.to_line().as_bytes() != line || header.records == 0 {
        return Err(Flaw::Header.into());
    }
    let is_digit = |c: char| c.is_ascii_alphanumeric();
    if !(1..=MAX_ID).contains(&header.run_id.len()) || !header.run_id.chars().all(is_digit) {
        return Err(Flaw::Name.into());
    }
    Ok(header)
}

/// The record that follows on `head`.
fn row(line: &[u8], head: Head) -> Result<(Row, Record), Flaw> {
    let seq = head.seq + 1;
    let text = std::str::from_utf8(line).map_err(|_| Flaw::Changed(seq))?;
    let row = Row { seq, ..parts(text).ok_or(Flaw::NoRecord(seq))? };
    let record = Record::parse(&row.body);
    let found = record.as_ref().map_or(seq, |record| record.seq);
    if head.accept(&row).is_err() {
        // A sound record in a wrong place is told by its own number.
        return Err(if found == seq {
            Flaw::Changed(seq)
        } else {
            Flaw::Misplaced { found, expected: seq }
        });
    }
    let record = record.map_err(|source| Flaw::Unreadable(seq, source))?;
    if found != seq {
        return Err(Flaw::Misplaced { found, expected: seq });
    }
    Ok((row, record))
}

/// Takes the line of a record apart.
fn parts(line: &str) -> Option<Row> {
    let rest = line.strip_prefix(BEFORE_HASH)?;
    let (digits, rest) = rest.split_at_checked(DIGITS)?;
    let hash: Hash = digits.parse().ok()?;
    let body = rest.strip_prefix(BEFORE_RECORD)?.strip_suffix(BEHIND_RECORD)?;
    // Capital digits would do as well, but are not what is written.
    (hash.to_string() == digits).then(|| Row { seq: 0, body: body.into(), hash })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::FORMAT;

    fn header() -> Header {
        let run = RunId::parse("r1");
        let hash = Head::origin(&run.stream()).hash;
        let (format, run_id) = (FORMAT.to_owned(), run.to_string());
        Header { format, version: VERSION, run_id, records: 1, hash, ended: false }
    }

    fn flaw(input: impl Read) -> (String, u64) {
        let mut lines = Lines { input: BufReader::new(input), number: 0 };
        match rows(&mut lines) {
            Err(Stop::Flaw(flaw)) => (flaw.to_string(), lines.number),
            Err(Stop::Io(error)) => panic!("{error}"),
            Ok(_) => panic!("it is sound"),
        }
    }

    #[test]
    fn every_file_begins_as_the_reader_expects() {
        assert!(header().to_line().starts_with(BEGINNING));
        assert!(header().to_line().len() + MAX_ID + 20 < MAX_HEADER);
    }

    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let endless = || io::repeat(b'x');
        let first = header().to_line() + "\n";
        let (told, line) = flaw(first.as_bytes().chain(endless()));
        assert_eq!((&*told, line), ("the line is longer than any that is written", 2));
        let (told, line) = flaw(BEGINNING.as_bytes().chain(endless()));
        assert_eq!((&*told, line), ("the line is longer than any that is written", 1));
        assert_eq!(flaw(endless()).0, Flaw::NotAnExport.to_string());
    }

    #[test]
    fn a_first_line_that_could_not_have_been_written_is_refused() {
        let told = |header: &Header| flaw((header.to_line() + "\n").as_bytes()).0;
        for name in ["", "../x", "run/1", "a b", "\u{202e}", &"x".repeat(65)] {
            let named = Header { run_id: name.to_owned(), ..header() };
            assert_eq!(told(&named), Flaw::Name.to_string(), "{name}");
        }
        let none = Header { records: 0, ..header() };
        assert_eq!(told(&none), Flaw::Header.to_string());
        let later = Header { version: 2, ..header() };
        assert_eq!(told(&later), Flaw::Newer(2).to_string());
        let most = Header { records: u64::MAX, ..header() };
        assert_eq!(told(&most), Flaw::Missing(1, u64::MAX).to_string());
    }
}
