//! What is appended, and the one place that decides whether it may be.

use std::{sync::Arc, time::Duration};

use super::{Claim, Head, MAX_BODY, Owner, StoreError, StreamId, claim::Tenure};

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
    /// By what right.
    pub right: Right,
    /// Whether the claim is given back with them.
    pub is_last: bool,
    /// What replaces the stream's summary.
    pub summary: Option<Arc<str>>,
    /// The posts that are done with, by id, and the outcome of each.
    pub done: Vec<(Arc<str>, Arc<str>)>,
}

/// By what right rows are appended.
#[derive(Clone, Debug)]
pub enum Right {
    /// Nobody has the stream claimed.
    Unclaimed,
    /// The claim of this number.
    Claim(u64),
    /// The stream is new, and this owner claims it with its first rows, for so long.
    Founder(Owner, Duration),
}

impl Append {
    /// Rows for a stream that nobody drives.
    pub fn new(stream: &StreamId, after: u64, bodies: Vec<Arc<str>>) -> Append {
        let stream = stream.clone();
        Append {
            stream,
            after,
            bodies,
            right: Right::Unclaimed,
            is_last: false,
            summary: None,
            done: Vec::new(),
        }
    }

    /// Rows from the holder of a claim, which is renewed by them.
    pub fn under(claim: &Claim, after: u64, bodies: Vec<Arc<str>>) -> Append {
        Append { right: Right::Claim(claim.fence), ..Append::new(&claim.stream, after, bodies) }
    }

    /// The first rows of a new stream, with which `owner` makes the claim [`Claim::on_new`].
    pub fn founding(
        stream: &StreamId,
        owner: Owner,
        ttl: Duration,
        bodies: Vec<Arc<str>>,
    ) -> Append {
        Append { right: Right::Founder(owner, ttl), ..Append::new(stream, 0, bodies) }
    }

    /// Gives the claim back with the last rows under it.
    #[must_use]
    pub fn last(mut self) -> Append {
        self.is_last = true;
        self
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
        let conflict =
            || StoreError::Conflict { stream: self.stream.clone(), after: self.after, head };
        let mut tenure = match &self.right {
            Right::Unclaimed => tenure.vacate(&self.stream)?,
            Right::Claim(fence) => tenure.renew(&self.stream, *fence)?,
            Right::Founder(owner, ttl) if *tenure == Tenure::default() => {
                tenure.claim(&self.stream, owner, *ttl)?.0
            }
            Right::Founder(..) => return Err(conflict()),
        };
        if head.seq != self.after {
            return Err(conflict());
        }
        if self.is_last {
            tenure.lease = None;
        }
        if self.bodies.iter().any(|body| body.len() > MAX_BODY) {
            return Err(StoreError::TooLarge { stream: self.stream.clone() });
        }
        Ok(tenure)
    }
}
