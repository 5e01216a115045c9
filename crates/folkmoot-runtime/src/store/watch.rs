//! Waking those who follow a stream.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::StreamId;

/// Wakes its holder when something is added to a stream; from [`Store::watch`](super::Store::watch).
///
/// It holds nothing but the last number of each kind, so a slow reader costs no memory and holds up
/// no writer. Once the store is closed it wakes no more.
#[derive(Debug)]
pub struct Watch {
    stream: StreamId,
    tip: watch::Receiver<Tip>,
    hub: Arc<Hub>,
}

impl Watch {
    /// Waits until something was added since the last call: a row, a post, an outcome of a post.
    /// It may also wake for nothing.
    pub async fn changed(&mut self) {
        self.tip.changed().await.expect("the sender stays while there are receivers");
    }

    /// Waits until the stream has rows after number `after`.
    pub async fn rows(&mut self, after: u64) {
        self.wait_for(|tip| tip.seq > after).await;
    }

    /// Waits until the stream has posts after number `after`.
    pub async fn posts(&mut self, after: u64) {
        self.wait_for(|tip| tip.posted > after).await;
    }

    /// The same watch, for which all that is known by now is no news.
    pub(super) fn since_now(mut self) -> Watch {
        self.tip.mark_unchanged();
        self
    }

    async fn wait_for(&mut self, wanted: impl FnMut(&Tip) -> bool) {
        self.tip.wait_for(wanted).await.expect("the sender stays while there are receivers");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut streams = self.hub.lock();
        if streams.get(&self.stream).is_some_and(|tip| tip.receiver_count() == 1) {
            streams.remove(&self.stream);
        }
    }
}

/// How far a stream has come; each count only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tip {
    /// The number of its last row.
    pub(super) seq: u64,
    /// The number of its last post.
    pub(super) posted: u64,
    /// How many of its posts are done.
    pub(super) done: u64,
}

impl Tip {
    /// Takes over what `other` knows; whether that was news.
    fn raise(&mut self, other: Tip) -> bool {
        let before = *self;
        self.seq = self.seq.max(other.seq);
        self.posted = self.posted.max(other.posted);
        self.done = self.done.max(other.done);
        *self != before
    }
}

/// The watches on the streams of one store.
#[derive(Debug, Default)]
pub(super) struct Hub {
    streams: Mutex<HashMap<StreamId, watch::Sender<Tip>>>,
}

impl Hub {
    /// Begins a watch; the store then [publishes](Hub::publish) how far the stream has come.
    pub(super) fn subscribe(self: &Arc<Hub>, stream: &StreamId) -> Watch {
        let tip = self.lock().entry(stream.clone()).or_default().subscribe();
        Watch { stream: stream.clone(), tip, hub: Arc::clone(self) }
    }

    /// Wakes those to whom `tip` is news.
    pub(super) fn publish(&self, stream: &StreamId, tip: Tip) {
        if let Some(known) = self.lock().get(stream) {
            known.send_if_modified(|known| known.raise(tip));
        }
    }

    /// Whether nothing is watched.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    /// The streams that are watched.
    pub(super) fn watched(&self) -> Vec<StreamId> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<StreamId, watch::Sender<Tip>>> {
        // Every change of the map is a single step, so a panic elsewhere leaves it whole.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
