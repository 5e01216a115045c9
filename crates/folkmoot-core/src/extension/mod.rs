//! What a team adds of its own: topologies and conditions (extensions.md).
//!
//! Extensions only add. All are deterministic and limited, and what a run needs of them stands in its
//! spec, so a replay never depends on a file that has changed.

mod engine;
mod expression;
mod growth;
mod kinds;
mod registry;
mod template;

pub use engine::{FUEL, MOST_WORDS};
pub(crate) use expression::NO_TRUTH;
pub use expression::{Expression, Slip};
pub use registry::{Code, Kind, Refused, Registry, Rule};
pub use template::{LARGEST_OUTPUT, MOST_EDGES, Template};

use serde_json::{Map, Value};

/// What an extension is given beside its input, by name.
pub type Parameters = Map<String, Value>;
