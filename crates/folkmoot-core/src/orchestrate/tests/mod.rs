//! Plans, cards and what may happen to them.

mod plans;
mod states;
