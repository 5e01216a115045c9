//! The connections for reading.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::{sync::Semaphore, task};

use super::{
    error::{Stop, patiently},
    files::Files,
    open,
};
use crate::store::StoreError;

/// How many reads go on at once.
const READERS: usize = 4;

/// A few connections for reading, opened when they are first needed.
#[derive(Debug)]
pub(super) struct Readers {
    path: Arc<Path>,
    files: Arc<Files>,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: Arc<Path>, files: Arc<Files>) -> Readers {
        Readers { path, files, idle: Mutex::default(), permits: Arc::new(Semaphore::new(READERS)) }
    }

    /// Has `work` done on one snapshot of the database.
    pub(super) async fn with<T, F>(self: &Arc<Readers>, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, Stop> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.expect("nobody closes the semaphore");
        let readers = Arc::clone(self);
        let reading = task::spawn_blocking(move || {
            // Kept until the work is done, even if nobody waits for it any more.
            let _permit = permit;
            readers.run(work)
        });
        match reading.await {
            Ok(result) => result,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(StoreError::Closed),
        }
    }

    fn run<T>(&self, work: impl Fn(&Connection) -> Result<T, Stop>) -> Result<T, StoreError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = idle().pop();
        let connection = match connection {
            Some(connection) => connection,
            None => open::connect(&self.path).map_err(|error| Stop::from(error).at(&self.path))?,
        };
        let result = patiently(|| {
            let snapshot = connection.unchecked_transaction()?;
            let found = work(&snapshot);
            drop(snapshot);
            self.files.must_be_there(&connection)?;
            found
        });
        idle().push(connection);
        result.map_err(|stop| stop.at(&self.path))
    }
}
