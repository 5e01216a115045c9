//! Makes runs happen: drives them, persists them, keeps time.
//!
//! [`engine::Engine`] is the whole service. It owns two ports: [`backend::Backend`] (with
//! [`tools::Toolbox`] and [`gates::Gates`]) to the world, and [`store::Store`] to what is kept.

pub mod backend;
pub mod boards;
pub mod controllers;
pub mod driver;
pub mod engine;
pub mod export;
pub mod folds;
pub mod gates;
pub mod mail;
mod messaging;
pub mod notices;
pub mod orchestrate;
pub mod place;
pub mod promises;
pub mod questions;
pub mod refusals;
pub mod secrets;
pub mod servers;
pub mod snapshots;
pub mod store;
pub mod stream;
pub mod summary;
pub mod told;
pub mod tools;
mod veil;
mod wish;
