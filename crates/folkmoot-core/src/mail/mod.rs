//! Mail between agents and people, across runs (messaging.md §1).
//!
//! A mailbox is a stream: what happens to it is appended, and what stands in it is a fold. What was
//! written never changes; whether it was delivered does. Leases, delays and times to live run on the
//! wall clock, which enters with each request.

mod delivery;
mod letter;
mod mailbox;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::{
    delivery::{AT_ONCE, Delivery, MAX_DELIVERY},
    letter::{Letter, State},
    mailbox::{Came, Lent, Mailbox, Reading, Sending},
};

/// The longest body of a message, in bytes.
pub const MAX_BODY: usize = 64 << 10;

/// How long a message is lent to its reader unless the reader says otherwise, in seconds.
pub const LEASE: u64 = 300;

/// The longest lease, in seconds.
pub const MAX_LEASE: u64 = 24 * 60 * 60;

/// How often a message is delivered unless its sender says otherwise.
pub const ATTEMPTS: u32 = 5;

/// The longest delay and time to live, in seconds: a year.
pub const MAX_WAIT: u64 = 365 * 24 * 60 * 60;

/// A message; it never changes once it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its name.
    pub id: Arc<str>,
    /// Who wrote it.
    pub from: Arc<str>,
    /// To whom.
    pub to: Arc<str>,
    /// What it says.
    #[serde(flatten)]
    pub draft: Draft,
    /// When it was sent, in microseconds since 1970.
    pub sent_at: u64,
    /// The run in which it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
    /// The call that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
}

/// What the sender of a message says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// The text.
    pub body: Arc<str>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Arc<str>>,
    /// What it refers to: files, calls, other messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<Arc<str>>,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Arc<str>>,
    /// The sender's own name for it, under which it is sent once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// When it may be read.
    #[serde(default)]
    pub deliver: Deliver,
    /// How long after sending it may be read, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
    /// How often it is delivered before it counts as undeliverable.
    #[serde(default = "attempts")]
    pub max_attempts: u32,
}

fn attempts() -> u32 {
    ATTEMPTS
}

/// When a message may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deliver {
    /// At once.
    #[default]
    Now,
    /// When the addressee has finished what it is doing: the runs in which it takes part when the
    /// message is sent.
    AfterCurrent,
    /// From this moment on, in microseconds since 1970.
    At(u64),
    /// So many seconds after it was sent.
    DelayS(u64),
    /// When this phase of a run is recorded, or the run has ended without it.
    OnPhase {
        /// The phase.
        phase: Arc<str>,
        /// The run.
        run: Arc<str>,
    },
}

/// Who writes or reads, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// Its name.
    pub name: Arc<str>,
    /// The run in which it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
    /// The call with which it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<str>>,
}

/// What happens to a mailbox: a row of its stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happens to a mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// A message came.
    Sent {
        /// The message.
        message: Message,
        /// The runs that have to end before it may be read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        busy: Vec<Arc<str>>,
    },
    /// What it waited for has happened, or can no longer happen.
    Released {
        /// The message.
        id: Arc<str>,
        /// Whether the phase never came.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        phase_missed: bool,
    },
    /// It was lent to a reader.
    Leased {
        /// The message.
        id: Arc<str>,
        /// The token that settles it.
        lease: Arc<str>,
        /// When the lease runs out.
        until: u64,
        /// Its name.
        by: Party,
    },
    /// The log of the reader's run has it.
    Delivered {
        /// The message.
        id: Arc<str>,
        /// The number of the record.
        record: u64,
    },
    /// The reader needs longer.
    Extended {
        /// The message.
        id: Arc<str>,
        /// When the lease runs out now.
        until: u64,
    },
    /// The reader is done with it.
    Acknowledged {
        /// The message.
        id: Arc<str>,
    },
    /// The reader gives it back.
    Returned {
        /// The message.
        id: Arc<str>,
        /// When it may be read again.
        due: u64,
    },
    /// The sender took it back.
    Cancelled {
        /// The message.
        id: Arc<str>,
    },
    /// A person lets it be delivered anew.
    Revived {
        /// The message.
        id: Arc<str>,
    },
}

/// Why a request to a mailbox is refused, with its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such message, or it is not the caller's.
    #[error("there is no message {0}")]
    NotAvailable(Arc<str>),
    /// The same key was used for something else.
    #[error("{from} has sent something else under the key {key}")]
    IdempotencyConflict {
        /// The sender.
        from: Arc<str>,
        /// The key.
        key: Arc<str>,
    },
    /// The token is not, or no longer, that of the message.
    #[error("the lease of message {0} has run out, or is not this one")]
    LeaseLost(Arc<str>),
    /// It is in no state for this.
    #[error("message {id} is {state}")]
    WrongState {
        /// The message.
        id: Arc<str>,
        /// Its state.
        state: State,
    },
    /// A value is out of its range.
    #[error("{field} {wants}")]
    BadValue {
        /// Which.
        field: &'static str,
        /// What it should be.
        wants: String,
    },
}

impl Refused {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::NotAvailable(_) => "not_available",
            Refused::IdempotencyConflict { .. } => "idempotency_conflict",
            Refused::LeaseLost(_) => "lease_lost",
            Refused::WrongState { .. } => "wrong_state",
            Refused::BadValue { .. } => "bad_value",
        }
    }
}

impl Draft {
    /// Whether all of it is within its limits.
    pub fn check(&self) -> Result<(), Refused> {
        let bad = |field, wants: String| Err(Refused::BadValue { field, wants });
        let within = |wait: u64| wait <= MAX_WAIT;
        if self.body.trim().is_empty() {
            return bad("body", "is empty".to_owned());
        }
        if self.body.len() > MAX_BODY {
            return bad(
                "body",
                format!("has at most {MAX_BODY} bytes; this one has {}", self.body.len()),
            );
        }
        if let Some(ttl) = self.ttl_s.filter(|ttl| *ttl == 0 || !within(*ttl)) {
            return bad("ttl_s", format!("is 1 to {MAX_WAIT} seconds, not {ttl}"));
        }
        if let Deliver::DelayS(delay) = &self.deliver
            && !within(*delay)
        {
            return bad("deliver.delay_s", format!("is 0 to {MAX_WAIT} seconds, not {delay}"));
        }
        if !(1..=100).contains(&self.max_attempts) {
            return bad("max_attempts", format!("is 1 to 100, not {}", self.max_attempts));
        }
        let short = [("subject", self.subject.as_ref()), ("key", self.key.as_ref())];
        let long = short.iter().find(|(_, text)| text.is_some_and(|text| text.len() > 1024));
        if let Some((field, _)) = long {
            return bad(field, "has at most 1024 bytes".to_owned());
        }
        if self.refs.len() > 100 || self.refs.iter().any(|it| it.len() > 4096) {
            return bad("refs", "are at most 100, of 4096 bytes each".to_owned());
        }
        Ok(())
    }
}
