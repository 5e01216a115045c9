//! stub
pub mod ballot;
