//! What happens in a run: the pure log, the kernel, the programs, the checks.
//!
//! Deliberately absent: I/O, clocks, randomness, async, unordered maps. A run is a pure function of
//! a checked [`spec::Spec`] and an append-only log of [`event::Record`]s.

pub mod call;
pub mod event;
pub mod key;
pub mod limits;
pub mod money;
pub mod names;
pub mod plan;
pub mod programs;
pub mod render;
pub mod spec;
pub mod team;
pub mod text;
pub mod time;
pub mod verdict;
