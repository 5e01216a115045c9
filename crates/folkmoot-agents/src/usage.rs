//! What calls used, where nobody says it.

use folkmoot_core::call::{Tokens, Usage};

/// About how many tokens a text of so many bytes has: at least one, so that nothing is free.
///
/// Most models read three to four bytes as one token, in English as in Chinese.
pub(crate) fn estimated_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}

/// What nobody reported.
pub(crate) fn unreported(read: usize, written: usize) -> Usage {
    let (input, output) = (estimated_tokens(read), estimated_tokens(written));
    Usage { tokens: Tokens { input, output, ..Tokens::default() }, cost: None, estimated: true }
}
