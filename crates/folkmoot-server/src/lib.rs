//! How other programs ask: requests that are judged, and runs that go on in the background.
//!
//! An [`Office`] makes of a request what is to be run; it belongs to whoever knows the config of this
//! machine. A [`Hall`] drives the runs and tells how they stand. A protocol is a few lines over both.
//! Deliberately absent: flags, the environment and config files.

pub mod acp;
mod conversation;
mod fields;
mod hall;
pub mod http;
mod letters;
pub mod mcp;
mod office;
mod standing;

pub use self::{
    hall::{Hall, Stage, Underway},
    office::{Office, Ready},
    standing::{Given, Include, POLL_AFTER_S, Standing, working},
};
