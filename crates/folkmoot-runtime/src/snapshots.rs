//! The port through which the files of a workspace are saved before a call that may change them
//! (agents.md §10).

use std::path::Path;

use async_trait::async_trait;
use folkmoot_core::event::Files;

/// Whoever saves them. Nothing of the workspace itself is touched by it.
#[async_trait]
pub trait Snapshots: Send + Sync {
    /// Saves the files of `folder` on behalf of a run, for as long as they are wanted. That they cannot
    /// be saved is an answer too.
    async fn save(&self, run: &str, folder: &Path) -> Files;

    /// Notes what the files of `folder` are when a run that may have changed them is no longer driven:
    /// what they are then may be replaced later without anybody's losing anything.
    async fn leave(&self, run: &str, folder: &Path);
}
