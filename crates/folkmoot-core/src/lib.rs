//! What happens in a run: the pure log, the kernel, the programs, the checks.
//!
//! Deliberately absent: I/O, clocks, randomness, async, unordered maps. A run is a pure function of
//! a checked [`spec::Spec`] and an append-only log of [`event::Record`]s.

pub mod board;
pub mod bounds;
pub mod call;
pub mod check;
pub mod decimal;
pub mod diagnostic;
pub mod event;
pub mod extension;
pub mod file;
pub mod findings;
pub mod gate;
pub mod key;
pub mod known;
pub mod limits;
pub mod log;
mod loops;
pub mod mail;
pub mod mcp;
pub mod money;
pub mod names;
pub mod orchestrate;
pub mod plan;
pub mod programs;
pub mod refusal;
pub mod render;
pub mod replay;
pub mod request;
pub mod run;
pub mod scope;
pub mod session;
pub mod sim;
pub mod spec;
pub mod team;
pub mod text;
pub mod time;
pub mod tools;
pub mod undo;
pub mod verdict;
pub mod view;
pub mod width;
pub mod words;

#[cfg(test)]
mod testing;
