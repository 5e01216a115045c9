//! Plans, cards and what may happen to them.

mod budgets;
mod plans;
mod states;
