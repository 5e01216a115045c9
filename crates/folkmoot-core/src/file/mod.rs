//! From the bytes of a team file to what it says.

pub mod collaboration;
pub mod document;
pub mod extensions;
pub mod graph;
pub mod interpolate;
pub mod item;
pub mod models;
pub mod node;
pub mod overrides;
pub mod reader;
mod scalar;
mod schema;
pub mod script;
pub mod servers;
pub mod shape;
pub mod source;
pub mod team;
mod yaml;

pub use schema::schema;
