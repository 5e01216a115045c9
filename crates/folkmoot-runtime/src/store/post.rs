//! What is left for the writer of a stream by those who may not write it themselves.

use std::sync::Arc;

use super::{MAX_BODY, MAX_PENDING, StoreError, StreamId, watch::Tip};

/// Word left for the writer of a stream, such as the wish to cancel a run that another process drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its number among the posts of the stream, from 1, without gaps.
    pub number: u64,
    /// The sender's name for it: the same id is the same post.
    pub id: Arc<str>,
    /// What is wanted, any JSON text.
    pub body: Arc<str>,
    /// What became of it; `None` while it waits.
    pub outcome: Option<Arc<str>>,
}

impl Post {
    /// This post, given that `body` was posted again under its id.
    pub(super) fn again(self, stream: &StreamId, body: &str) -> Result<Post, StoreError> {
        if &*self.body == body {
            Ok(self)
        } else {
            Err(StoreError::PostDiffers { stream: stream.clone(), id: self.id })
        }
    }
}

/// Decides whether a stream that has come so far takes one more post.
pub(super) fn admit(stream: &StreamId, body: &str, tip: Tip) -> Result<(), StoreError> {
    if body.len() > MAX_BODY {
        return Err(StoreError::TooLarge { stream: stream.clone() });
    }
    if tip.posted.saturating_sub(tip.done) >= MAX_PENDING as u64 {
        return Err(StoreError::InboxFull { stream: stream.clone() });
    }
    Ok(())
}
