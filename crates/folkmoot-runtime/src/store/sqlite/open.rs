//! Opening the file: is it ours, and is it up to date?

use std::{
    fmt::Write,
    fs::{DirBuilder, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::error::{Stop, patiently};
use crate::store::StoreError;

/// Marks our files among those of SQLite: `FMOT`.
const APPLICATION: i64 = 0x464D_4F54;

/// What makes each format out of the one before. Only ever appended to.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

/// How long SQLite waits by itself for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 5_000 });

/// Bytes to which the write-ahead log shrinks again after a large write.
const LOG_BYTES: u32 = 8 << 20;

/// Statements kept ready for each connection.
const STATEMENTS: usize = 32;

/// Opens the file for writing and makes it a store of the latest format.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    // To close any handle of a file gives up all locks that the process has on it, so while one
    // thread creates the file no other may open it.
    static OPENING: Mutex<()> = Mutex::new(());
    let _only_one = OPENING.lock().unwrap_or_else(PoisonError::into_inner);

    if path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        // A device or a pipe: nothing in it would be found again.
        return Err(StoreError::NotAStore { path: path.to_owned() });
    }
    create(path)
        .map_err(|source| StoreError::Io { path: path.to_owned(), source: Arc::new(source) })?;
    set_up(path).map_err(|stop| stop.at(path))
}

/// Opens one more connection to a file that is [open](open).
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    if lacks_its_log(&connection) && !log_of(path).exists() {
        // Where no log can be made nobody can write, and without one the file holds everything.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        connection = Connection::open_with_flags(unchanging(path), flags)?;
    }
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Whether the files beside the database, which even readers need, are not there and cannot be made.
fn lacks_its_log(connection: &Connection) -> bool {
    let looked = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    looked.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::CannotOpen))
}

/// The write-ahead log beside a database.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The address by which SQLite reads a file without looking for what stands beside it.
fn unchanging(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => write!(address, "%{byte:02X}").expect("a string takes any text"),
        }
    }
    address + "?immutable=1"
}

/// Creates an empty file if there is none. SQLite gives its side files the same mode.
fn create(path: &Path) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    let mut file = OpenOptions::new();
    folder.recursive(true);
    file.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folder.mode(0o700);
        file.mode(0o600);
    }
    if path.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a folder; name a file in it",
        ));
    }
    if let Some(parent) = path.parent() {
        folder.create(parent)?;
    }
    match file.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn set_up(path: &Path) -> Result<Connection, Stop> {
    let connection = connect(path)?;
    // From one snapshot: another process may be setting the file up at this moment.
    let found = patiently(|| identify(&*connection.unchecked_transaction()?, path))?;
    if found == 0 {
        // Counts only before anything is written, costs a commit after that, and then would wait for
        // whoever writes; lets `remove` give room back to the disk.
        patiently(|| Ok(connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?))?;
    }
    configure(&connection, path)?;
    if found < MIGRATIONS.len() {
        patiently(|| migrate(&connection, path))?;
    }
    Ok(connection)
}

/// The format of the file, 0 if it is empty; an error if it is not ours to touch.
fn identify(connection: &Connection, path: &Path) -> Result<usize, Stop> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = match pragma("application_id") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            return Err(StoreError::NotAStore { path: path.to_owned() }.into());
        }
        result => result?,
    };
    let version = pragma("user_version")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, usize::try_from(version)) {
        (0, Ok(0)) if tables == 0 => Ok(0),
        (APPLICATION, Ok(version @ 1..)) if version <= MIGRATIONS.len() => Ok(version),
        (APPLICATION, Ok(version @ 1..)) => Err(StoreError::NewerVersion {
            path: path.to_owned(),
            found: version as u32,
            known: MIGRATIONS.len() as u32,
        }
        .into()),
        _ => Err(StoreError::NotAStore { path: path.to_owned() }.into()),
    }
}

fn configure(connection: &Connection, path: &Path) -> Result<(), Stop> {
    // Here SQLite does not wait by itself if several processes change the mode at once.
    let mode = patiently(|| {
        let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        Ok(connection.pragma_update_and_check(None, "journal_mode", "WAL", mode)?)
    })?;
    // What can only be read may be read without its log.
    if mode != "wal" && !connection.is_readonly("main")? {
        let source = io::Error::other("the file system does not allow a write-ahead log");
        return Err(StoreError::Io { path: path.to_owned(), source: Arc::new(source) }.into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On some systems only this reaches the disk itself.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(())
}

/// Brings the file up to date, one process at a time.
fn migrate(connection: &Connection, path: &Path) -> Result<(), Stop> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited.
    let found = identify(&transaction, path)?;
    for migration in &MIGRATIONS[found..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed process loses nothing either way; only a power cut would show the difference.
    #[test]
    fn a_commit_waits_for_the_disk() {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let connection = open(&folder.path().join("folkmoot.db")).expect("the store opens");
        let pragma = |name: &str| {
            let value = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            value.expect("it is a known pragma")
        };

        assert_eq!(pragma("synchronous"), 2, "FULL");
        assert_eq!((pragma("fullfsync"), pragma("checkpoint_fullfsync")), (1, 1));
    }
}
