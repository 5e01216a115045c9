//! Makes runs happen: drives them, persists them, keeps time.

pub mod backend;
pub mod store;
