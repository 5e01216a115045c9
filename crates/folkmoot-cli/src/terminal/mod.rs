//! What people and programs see of a run.
//!
//! Text leaves the process through a [`sink::Sink`] or the live lines of a terminal, and nowhere
//! else. What others wrote is made safe on its way by the [`screen::Screen`] it is shown on, or is
//! escaped in [`json`]. Everything in between makes text out of values and knows nothing of streams.
//!
//! - While a run is under way: [`progress`] on standard error ([`live`] or [`plain`]), [`stream`] on
//!   standard output.
//! - When it is over: [`result`].
//! - While many are simulated: [`meter`]; then: [`survey`].
//! - On request: [`show`], [`plan`], [`tables`], [`diagnostics`] or for programs [`sarif`], [`checkup`].

mod board;
mod calls;
pub(crate) mod checkup;
pub(crate) mod diagnostics;
pub(crate) mod figures;
mod filter;
mod incoming;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod mail;
pub(crate) mod meter;
mod pace;
pub(crate) mod plain;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod result;
pub(crate) mod sarif;
pub(crate) mod screen;
pub(crate) mod shared;
pub(crate) mod show;
pub(crate) mod sink;
pub(crate) mod stream;
pub(crate) mod survey;
mod table;
pub(crate) mod tables;

#[cfg(test)]
mod testing;

use folkmoot_core::width;
