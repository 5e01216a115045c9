//! Noticing what other processes write.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use rusqlite::Connection;

use super::{error::Stop, open, read};
use crate::store::{StoreError, watch::Hub};

/// How often the file is looked at while something is watched.
const INTERVAL: Duration = Duration::from_millis(50);

/// A handle to the thread that looks; it starts with the first watch and ends with the store.
#[derive(Debug, Default)]
pub(super) struct Follower {
    wake: Mutex<Option<SyncSender<()>>>,
}

impl Follower {
    /// Makes sure that what is watched in `hub` is looked at.
    pub(super) fn follow(&self, path: &Path, hub: &Arc<Hub>) -> Result<(), StoreError> {
        let mut wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = &*wake {
            // A full channel already holds what will wake the thread.
            let _ = wake.try_send(());
            return Ok(());
        }
        let connection = open::connect(path).map_err(|error| Stop::from(error).at(path))?;
        let (sender, woken) = sync_channel(1);
        let hub = Arc::clone(hub);
        thread::Builder::new()
            .name("folkmoot-watch".to_owned())
            .spawn(move || look(&connection, &hub, &woken))
            .map_err(|source| StoreError::Io { path: path.to_owned(), source: Arc::new(source) })?;
        *wake = Some(sender);
        Ok(())
    }
}

fn look(connection: &Connection, hub: &Hub, woken: &Receiver<()>) {
    let mut seen = None;
    loop {
        // A failure is not lost: whoever waits for the stream long enough will read, and meet it.
        if let Ok(version) = version(connection)
            && seen != Some(version)
            && publish(connection, hub).is_ok()
        {
            seen = Some(version);
        }
        let closed = if hub.is_idle() {
            woken.recv().is_err()
        } else {
            woken.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Disconnected)
        };
        if closed {
            return;
        }
    }
}

/// A number that changes whenever another connection commits.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

fn publish(connection: &Connection, hub: &Hub) -> rusqlite::Result<()> {
    for stream in hub.watched() {
        hub.publish(&stream, read::tip(connection, &stream)?);
    }
    Ok(())
}
