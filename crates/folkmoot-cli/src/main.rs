//! Teams of AI agents that work on one task, with a record you can trust.

#[expect(dead_code, reason = "the commands that show runs come next")]
mod terminal;

fn main() {}
