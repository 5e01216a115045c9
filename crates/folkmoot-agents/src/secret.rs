//! Texts that must not be seen.

use std::fmt;

/// A key or token; it is sent to its provider and printed nowhere (rules.md 14.6).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Box<str>);

/// What stands where a secret stood.
const MASK: &str = "***";

/// Masking what is shorter would make texts unreadable and hide nothing.
const SHORTEST: usize = 6;

impl Secret {
    /// Takes the secret, without the white space that files and shells leave around it.
    pub(crate) fn new(text: &str) -> Secret {
        Secret(text.trim().into())
    }

    /// The secret itself, for the request that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the secret masked.
    pub(crate) fn masked_in(&self, text: &str) -> String {
        if self.0.len() < SHORTEST { text.to_owned() } else { text.replace(&*self.0, MASK) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        assert_eq!(format!("{:?}", Some(Secret::new("sk-1234"))), "Some(***)");
    }

    #[test]
    fn a_secret_is_masked_wherever_a_text_repeats_it() {
        let masked = Secret::new(" sk-123\n").masked_in("no sk-123, and again sk-123!");
        assert_eq!(masked, "no ***, and again ***!");
        assert_eq!(Secret::new("1").masked_in("400: try 1 of 3"), "400: try 1 of 3");
    }
}
