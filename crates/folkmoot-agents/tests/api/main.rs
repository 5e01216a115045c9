//! Models behind a server that misbehaves in every known way.

mod asking;
mod chat;
mod protocols;
mod remote;
mod requests;
