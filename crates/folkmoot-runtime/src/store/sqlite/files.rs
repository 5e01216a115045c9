//! Whether the files of an open database are still those at its path.
//!
//! To a process that has them open, files that were removed look as good as ever: what it writes then
//! goes nowhere, and is gone when it ends. So this is looked at after every commit, before anybody is
//! told that it is durable (rules.md 7.1).

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::store::StoreError;

/// The files of a database as they were when it was opened.
#[derive(Debug)]
pub(super) struct Files {
    database: File,
    /// The log, and the index of it that processes share.
    beside: [File; 2],
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// `None` if there is no such file.
    identity: Option<Identity>,
}

impl Files {
    /// Takes note of the files of a database that is open.
    pub(super) fn of(path: &Path) -> Files {
        let beside = ["-wal", "-shm"].map(|ending| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            File::at(name.into())
        });
        Files { database: File::at(path.to_owned()), beside }
    }

    /// Fails if one of them is no longer there.
    pub(super) fn must_be_there(&self, connection: &Connection) -> Result<(), StoreError> {
        let gone = [&self.database].into_iter().chain(&self.beside).find(|file| !file.is_there());
        let Some(gone) = gone else { return Ok(()) };
        if self.database.is_there() {
            // What only the lost log holds goes to where it is found again. If that fails too, the
            // error is the same.
            let _ = connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()));
        }
        Err(StoreError::Moved { path: gone.path.clone() })
    }
}

impl File {
    fn at(path: PathBuf) -> File {
        File { identity: identity(&path), path }
    }

    fn is_there(&self) -> bool {
        self.identity.is_none() || self.identity == identity(&self.path)
    }
}

/// Device and number of a file.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Elsewhere a file that is open cannot be replaced; that it exists is enough.
#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|_| ())
}
