//! The chain of hashes that ties the rows of a stream together.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Row, StoreError, StreamId};

/// A BLAKE3 hash; as text, 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Hash {
        Hash(bytes)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Hash, String> {
        blake3::Hash::from_hex(text)
            .map(|hash| Hash(*hash.as_bytes()))
            .map_err(|_| format!("not a hash of 64 hexadecimal digits: `{text}`"))
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Hash, String> {
        text.parse()
    }
}

/// An end of a stream: how many rows come before it, and the hash of them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the last row, 0 before the first.
    pub seq: u64,
    /// The hash of the last row; before the first, that of the stream's name.
    pub hash: Hash,
}

impl Head {
    /// The end of a stream without rows.
    pub fn origin(stream: &StreamId) -> Head {
        Head { seq: 0, hash: Hash(*blake3::hash(stream.as_str().as_bytes()).as_bytes()) }
    }

    /// The end after one more row: its hash is `blake3(hash ‖ seq ‖ body)`, with the number of the
    /// new row as eight bytes, least significant first.
    #[must_use]
    pub fn next(self, body: &str) -> Head {
        let seq = self.seq + 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.hash.0).update(&seq.to_le_bytes()).update(body.as_bytes());
        Head { seq, hash: Hash(*hasher.finalize().as_bytes()) }
    }

    /// Checks that `row` follows here and is what was once appended; returns the end after it.
    pub fn accept(self, row: &Row) -> Result<Head, Broken> {
        let next = self.next(&row.body);
        if row.seq != next.seq {
            return Err(Broken { seq: next.seq, damage: Damage::Missing });
        }
        if row.hash != next.hash {
            return Err(Broken { seq: next.seq, damage: Damage::Changed });
        }
        Ok(next)
    }

    /// Checks a sequence of rows; see [`Head::accept`].
    pub fn accept_all<'a>(self, rows: impl IntoIterator<Item = &'a Row>) -> Result<Head, Broken> {
        rows.into_iter().try_fold(self, Head::accept)
    }

    /// Checks that the rows, which end here, end where the stream was noted to end: a chain alone
    /// does not show that its tail was cut off.
    pub(super) fn ends_at(self, noted: Head) -> Result<(), Broken> {
        if self.seq < noted.seq {
            Err(Broken { seq: self.seq + 1, damage: Damage::Missing })
        } else if self.seq > noted.seq {
            Err(Broken { seq: noted.seq + 1, damage: Damage::Surplus })
        } else if self.hash != noted.hash {
            Err(Broken { seq: self.seq, damage: Damage::Rewritten })
        } else {
            Ok(())
        }
    }
}

/// The first row of a stream that is not as it was appended; those before it are sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} {damage}")]
pub struct Broken {
    /// The number of the row.
    pub seq: u64,
    /// What is wrong with it.
    pub damage: Damage,
}

impl Broken {
    /// The same, with the name of the stream.
    pub(super) fn within(self, stream: &StreamId) -> StoreError {
        StoreError::Broken { stream: stream.clone(), broken: self }
    }
}

/// What can be wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is not there, or another stands in its place.
    Missing,
    /// It, or its hash, was changed.
    Changed,
    /// It stands behind the noted end of the stream.
    Surplus,
    /// It is sound in itself, and not the one that the stream was noted to end with.
    Rewritten,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Missing => "is missing",
            Damage::Changed => "was changed after it was written",
            Damage::Surplus => "was added behind the end",
            Damage::Rewritten => "is not the one the log was known to end with",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(stream: &StreamId, bodies: &[&str]) -> Vec<Row> {
        let mut head = Head::origin(stream);
        let row = |body: &&str| {
            head = head.next(body);
            Row { seq: head.seq, body: (*body).into(), hash: head.hash }
        };
        bodies.iter().map(row).collect()
    }

    fn check(stream: &str, rows: &[Row]) -> Result<Head, Broken> {
        Head::origin(&stream.into()).accept_all(rows)
    }

    #[test]
    fn the_hash_of_a_row_is_what_the_documentation_says() {
        let seed = blake3::hash(b"run/1");
        let first =
            blake3::hash(&[&seed.as_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0], b"{}"].concat());

        assert_eq!(rows(&"run/1".into(), &["{}"])[0].hash.as_bytes(), first.as_bytes());
    }

    #[test]
    fn a_chain_belongs_to_its_stream() {
        let rows = rows(&"run/1".into(), &["a", "b"]);

        assert_eq!(check("run/1", &rows).map(|head| head.seq), Ok(2));
        assert_eq!(check("run/2", &rows), Err(Broken { seq: 1, damage: Damage::Changed }));
    }

    #[test]
    fn text_cannot_move_over_the_border_between_two_rows() {
        let stream = "run/1".into();

        assert_ne!(rows(&stream, &["ab", "c"])[1].hash, rows(&stream, &["a", "bc"])[1].hash);
    }

    #[test]
    fn a_swap_is_found_even_if_the_numbers_are_swapped_too() {
        let mut rows = rows(&"run/1".into(), &["a", "b", "c"]);
        rows.swap(1, 2);
        (rows[1].seq, rows[2].seq) = (2, 3);

        assert_eq!(check("run/1", &rows), Err(Broken { seq: 2, damage: Damage::Changed }));
    }

    #[test]
    fn a_hash_is_written_as_it_is_read() {
        let hash = Head::origin(&"run/1".into()).hash;
        let json = serde_json::to_string(&hash).expect("a hash is a string");

        assert_eq!(serde_json::from_str::<Hash>(&json).expect("it was written so"), hash);
        assert!(serde_json::from_str::<Hash>("\"abc\"").is_err());
    }
}
