//! What is appended, and the one place that decides whether it may be.

use std::sync::Arc;

use super::{Claim, Head, MAX_BODY, StoreError, StreamId, claim::Tenure};

/// Rows to append to a stream, and what becomes true with them.
///
/// They follow row number `after`, 0 for the start. There may be none, to change the summary only or
/// to have [done](Append::done) with a post that leads to nothing.
#[derive(Clone, Debug)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// The number of the row they follow.
    pub after: u64,
    /// The bodies, any JSON text.
    pub bodies: Vec<Arc<str>>,
    /// The number of the claim they are made under.
    pub fence: Option<u64>,
    /// What replaces the stream's summary.
    pub summary: Option<Arc<str>>,
    /// The posts that are done with, by id, and the outcome of each.
    pub done: Vec<(Arc<str>, Arc<str>)>,
}

impl Append {
    /// Rows for a stream that nobody drives, such as a mailbox.
    pub fn new(stream: &StreamId, after: u64, bodies: Vec<Arc<str>>) -> Append {
        let stream = stream.clone();
        Append { stream, after, bodies, fence: None, summary: None, done: Vec::new() }
    }

    /// Rows from the holder of a claim, which is renewed by them.
    pub fn under(claim: &Claim, after: u64, bodies: Vec<Arc<str>>) -> Append {
        Append { fence: Some(claim.fence), ..Append::new(&claim.stream, after, bodies) }
    }

    /// Replaces the stream's summary, any JSON text.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<Arc<str>>) -> Append {
        self.summary = Some(summary.into());
        self
    }

    /// Marks the post `id` as done, so that it is carried out exactly once: the rows it led to and
    /// its outcome, any JSON text, become durable together. Unknown or done before: nothing.
    #[must_use]
    pub fn done(mut self, id: impl Into<Arc<str>>, outcome: impl Into<Arc<str>>) -> Append {
        self.done.push((id.into(), outcome.into()));
        self
    }

    /// Decides whether a stream that ends at `head` takes this, and what its claim is afterwards.
    pub(super) fn admit(&self, head: Head, tenure: &Tenure) -> Result<Tenure, StoreError> {
        let tenure = match self.fence {
            Some(fence) => tenure.renew(&self.stream, fence)?,
            None => tenure.vacate(&self.stream)?,
        };
        if head.seq != self.after {
            let (stream, after) = (self.stream.clone(), self.after);
            return Err(StoreError::Conflict { stream, after, head });
        }
        if self.bodies.iter().any(|body| body.len() > MAX_BODY) {
            return Err(StoreError::TooLarge { stream: self.stream.clone() });
        }
        Ok(tenure)
    }
}
