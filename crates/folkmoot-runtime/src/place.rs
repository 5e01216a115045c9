//! Where the programs of an agent run.

use folkmoot_core::{check::Environment, gate::Workspace};

/// A workspace, and the variables of the programs that run in it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The folder that an agent works in.
    pub workspace: Workspace,
    /// What its programs get of the environment; values may be secrets.
    pub environment: Environment,
}
