//! Texts that must not be seen.

use std::fmt;

use folkmoot_runtime::secrets::MASK;

/// A key or token; it is sent to its provider and printed nowhere (rules.md 14.6).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Box<str>);

impl Secret {
    /// Takes the secret, without the white space that files and shells leave around it.
    pub(crate) fn new(text: &str) -> Secret {
        Secret(text.trim().into())
    }

    /// The secret itself, for the request that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
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
}
