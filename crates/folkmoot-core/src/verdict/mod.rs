//! stub
pub mod agreement;
pub mod ballot;
