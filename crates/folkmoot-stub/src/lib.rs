//! A stub model server for tests: it answers as told, and misbehaves in every known way.
//!
//! It runs on a thread of its own on the loopback interface, so it serves asynchronous tests as well
//! as programs under test. Nothing in it sleeps: what is to come late waits behind a [`Door`].
//!
//! ```
//! use folkmoot_stub::{Completion, Reply, Stub, Wire};
//!
//! let greeting = Completion::text(["hel", "lo"]).over(Wire::Messages);
//! let stub = Stub::start([Reply::status(529), Reply::stream(&greeting), Reply::text("hello")]);
//! assert!(stub.base_url().ends_with("/v1"));
//! assert_eq!(stub.seen().requests.len(), 0);
//! ```

mod completion;
mod reply;
mod server;
mod tool_server;

pub use completion::{Completion, Wire};
pub use reply::{Door, Reply};
pub use server::{Received, Seen, Stub};
pub use tool_server::{SETTINGS, serve_tools_if_asked};
