//! What SQLite says, in the words of the store.

use std::{
    io,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rusqlite::ErrorCode;

use super::open;
use crate::store::StoreError;

/// How long an operation is tried while other programs use the file.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 60_000 });

/// How long to wait between two tries; SQLite's own waiting comes on top where it waits at all.
const PAUSE: Duration = Duration::from_millis(2);

/// Why a piece of work on the database ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The database failed.
    Failed(rusqlite::Error),
    /// The store refuses, having written nothing.
    Refused(StoreError),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Refused(error)
    }
}

impl Stop {
    /// The error that a caller sees.
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Stop::Failed(error) => translate(path, error),
            Stop::Refused(error) => error,
        }
    }

    /// Whether another try may succeed without anyone doing anything.
    fn is_passing(&self) -> bool {
        match self {
            Stop::Failed(error) => error.sqlite_error_code().is_some_and(is_lock),
            Stop::Refused(_) => false,
        }
    }
}

/// Whether another connection stands in the way.
fn is_lock(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed
    )
}

/// Tries until the file is free, for [`PATIENCE`] at least: users never see a lock error that passes.
pub(super) fn patiently<T>(mut work: impl FnMut() -> Result<T, Stop>) -> Result<T, Stop> {
    let started = Instant::now();
    loop {
        match work() {
            Err(stop) if stop.is_passing() && started.elapsed() < PATIENCE => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

/// What stands behind a write that fails although the disk is not full.
const CANNOT_GROW: &str = "it cannot be written: a quota or the limit on the size of files may be \
                           reached, or the disk is failing; what was recorded before is unharmed";

/// What stands behind a file that is there and cannot be opened.
const CANNOT_SHARE: &str = "its log, the file `-wal` beside it, can only be read where files can be \
                            written too; copy both to such a place";

/// Whether what failed was to make a file longer, or to see it on the disk.
fn is_write(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    code.is_some_and(|code| {
        use rusqlite::ffi;
        [
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_DIR_FSYNC,
            ffi::SQLITE_IOERR_TRUNCATE,
            ffi::SQLITE_IOERR_SHMOPEN,
            ffi::SQLITE_IOERR_SHMSIZE,
            ffi::SQLITE_IOERR_SHMMAP,
        ]
        .contains(&code)
    })
}

fn translate(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(code) if is_lock(code) => StoreError::Busy { path },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::SystemIoFailure) if is_write(&error) => {
            let why = format!("{CANNOT_GROW} ({error})");
            StoreError::Io { path, source: Arc::new(io::Error::other(why)) }
        }
        // Our statements are right for our schema: if one fails, the schema or a value is not ours.
        None
        | Some(
            ErrorCode::NotADatabase
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::ConstraintViolation
            | ErrorCode::Unknown,
        ) => StoreError::Corrupt { path, what: error.to_string().into() },
        Some(ErrorCode::CannotOpen) if open::log_of(&path).exists() => {
            let why = format!("{CANNOT_SHARE} ({error})");
            StoreError::Io { path, source: Arc::new(io::Error::other(why)) }
        }
        Some(_) => StoreError::Io { path, source: Arc::new(error) },
    }
}
