//! What calls used, where nobody says it.

use folkmoot_core::call::Usage;

/// About how many tokens a text of so many bytes has: at least one, so that nothing is free.
///
/// Most models read three to four bytes as one token, in English as in Chinese.
pub(crate) fn estimated_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}

/// What two attempts used together, without the cost, which is known only at the end.
pub(crate) fn sum(one: Usage, other: Usage) -> Usage {
    let estimated = one.estimated || other.estimated;
    Usage { tokens: one.tokens + other.tokens, cost: None, estimated }
}
