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

use super::writer::Looks;
use crate::store::{StoreError, watch::Hub};

/// How often the file is looked at while something is watched.
const INTERVAL: Duration = Duration::from_millis(50);

/// A handle to the thread that has the writer look; it starts with the first watch and ends with the
/// store.
#[derive(Debug, Default)]
pub(super) struct Follower {
    wake: Mutex<Option<SyncSender<()>>>,
}

impl Follower {
    /// Makes sure that what is watched in `hub` is looked at.
    pub(super) fn follow(
        &self,
        path: &Path,
        hub: &Arc<Hub>,
        looks: impl FnOnce() -> Looks,
    ) -> Result<(), StoreError> {
        let mut wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = &*wake {
            // A full channel already holds what will wake the thread.
            let _ = wake.try_send(());
            return Ok(());
        }
        let (sender, woken) = sync_channel(1);
        let (hub, looks) = (Arc::clone(hub), looks());
        thread::Builder::new()
            .name("folkmoot-watch".to_owned())
            .spawn(move || follow(&looks, &hub, &woken))
            .map_err(|source| StoreError::Io { path: path.to_owned(), source: Arc::new(source) })?;
        *wake = Some(sender);
        Ok(())
    }
}

fn follow(looks: &Looks, hub: &Hub, woken: &Receiver<()>) {
    loop {
        looks.ask_for_one();
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
