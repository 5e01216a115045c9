//! What calls used, where nobody says it.

/// About how many tokens a text of so many bytes has: at least one, so that nothing is free.
///
/// Most models read three to four bytes as one token, in English as in Chinese.
pub(crate) fn estimated_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}
