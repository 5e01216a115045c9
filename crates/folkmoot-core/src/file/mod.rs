//! From the bytes of a team file to what it says.

pub mod document;
pub mod node;
mod scalar;
pub mod source;
mod yaml;
