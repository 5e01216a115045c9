//! Names for calls.

use std::{
    borrow::Borrow,
    fmt::{self, Write},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Names a call by its place in the program, for example `round-2/alice`.
///
/// Segments are joined by `/`. Inside a segment every character that is no letter or digit (of any
/// script), `-`, `_` or `.` is percent-encoded, so a key is safe as a file name and in a shell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(Arc<str>);

impl Key {
    /// The key named by `segment` under `path`, where `path` is empty or ends in `/`.
    pub(crate) fn under(path: &str, segment: &str) -> Key {
        let mut key = String::with_capacity(path.len() + segment.len());
        key.push_str(path);
        push_segment(&mut key, segment);
        Key(key.into())
    }

    /// Takes a key as it stands in a log or on a command line.
    pub fn parse(text: &str) -> Key {
        Key(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this key lies under `prefix`, which ends in `/`.
    pub fn is_under(&self, prefix: &str) -> bool {
        self.0.starts_with(prefix)
    }
}

/// Appends `segment` to a path, percent-encoded where needed.
pub(crate) fn push_segment(path: &mut String, segment: impl fmt::Display) {
    write!(Encoded(path), "{segment}").expect("a string takes any text");
}

/// A path that takes text as part of a segment.
struct Encoded<'a>(&'a mut String);

impl Write for Encoded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Encoded(path) = self;
        for character in text.chars() {
            if character.is_alphanumeric() || matches!(character, '-' | '_' | '.') {
                path.push(character);
            } else {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    write!(path, "%{byte:02X}")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_cannot_make_a_path() {
        assert_eq!(Key::under("work/", "a/b c%").as_str(), "work/a%2Fb%20c%25");
        assert_eq!(Key::under("round-1/", "研究员").as_str(), "round-1/研究员");
    }
}
