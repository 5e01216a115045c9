//! What programs get of this machine.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{gate::Gates, retry::Backoff};

/// What it takes to ask a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine<'a> {
    /// The environment of this process.
    pub(crate) ours: &'a BTreeMap<String, String>,
    /// Files that no agent may touch.
    pub(crate) closed: &'a [PathBuf],
    /// The gates of programs.
    pub(crate) gates: &'a Gates,
    /// The waits before further attempts.
    pub(crate) backoff: &'a Backoff,
}
