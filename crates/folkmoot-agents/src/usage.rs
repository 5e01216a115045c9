//! What calls used, where nobody says it.

use std::ops::Add;

use folkmoot_core::call::Usage;

/// About how many tokens a text of so many bytes has: at least one, so that nothing is free.
///
/// Most models read three to four bytes as one token, in English as in Chinese.
pub(crate) fn estimated_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}

/// What two attempts used together.
pub(crate) fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        tokens: one.tokens + other.tokens,
        cost: [one.cost, other.cost].into_iter().flatten().reduce(Add::add),
        estimated: one.estimated || other.estimated,
    }
}
