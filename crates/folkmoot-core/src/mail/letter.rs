//! A message and how its delivery stands.

use std::{fmt, sync::Arc};

use serde::Serialize;

use super::{Deliver, Message, Party};

/// How the delivery of a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// It waits to be read.
    Pending,
    /// It is lent to a reader.
    Leased,
    /// Its reader is done with it.
    Acknowledged,
    /// Its time to live passed before it was read.
    Expired,
    /// It was delivered too often without being done with.
    Dead,
    /// Its sender took it back.
    Cancelled,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Pending => "PENDING",
            State::Leased => "LEASED",
            State::Acknowledged => "ACKNOWLEDGED",
            State::Expired => "EXPIRED",
            State::Dead => "DEAD",
            State::Cancelled => "CANCELLED",
        })
    }
}

/// A message in a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// What was sent.
    pub message: Message,
    /// The runs that have to end before it may be read.
    pub busy: Vec<Arc<str>>,
    /// Whether the phase it waited for never came.
    pub phase_missed: bool,
    /// How often it was delivered.
    pub attempt: u32,
    /// The latest delivery: to whom, when, and the number of the record that tells of it: of the log of
    /// the reader's run once that has it, else of the mailbox.
    pub read: Option<(Party, u64, u64)>,
    pub(super) released: bool,
    /// Deliveries that count against its limit.
    pub(super) spent: u32,
    /// When it may be read again.
    pub(super) due: u64,
    pub(super) hold: Hold,
}

/// What the log says of a letter, whatever the clock does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Free,
    Leased { lease: Arc<str>, until: u64 },
    Done { lease: Arc<str> },
    Cancelled,
}

impl Letter {
    /// How it stands at `now`.
    pub fn state(&self, now: u64) -> State {
        match &self.hold {
            Hold::Done { .. } => State::Acknowledged,
            Hold::Cancelled => State::Cancelled,
            Hold::Leased { until, .. } if *until > now => State::Leased,
            Hold::Leased { .. } | Hold::Free if self.is_spent() => State::Dead,
            Hold::Leased { .. } | Hold::Free if self.is_late(now) => State::Expired,
            Hold::Leased { .. } | Hold::Free => State::Pending,
        }
    }

    /// Whether it may be read at `now`.
    pub fn is_visible(&self, now: u64) -> bool {
        self.state(now) == State::Pending && self.due <= now && !self.waits()
    }

    /// The call of a run to which it was lent and that has not settled it, if its lease has run out.
    pub fn lapsed(&self, now: u64) -> Option<&Party> {
        match &self.hold {
            Hold::Leased { until, .. } if *until <= now => self.read.as_ref().map(|(by, ..)| by),
            Hold::Leased { .. } | Hold::Free | Hold::Done { .. } | Hold::Cancelled => None,
        }
    }

    /// Whether it waits for something that only somebody else can tell.
    pub fn waits(&self) -> bool {
        match self.message.draft.deliver {
            Deliver::Now | Deliver::At(_) | Deliver::DelayS(_) => false,
            Deliver::AfterCurrent => !self.released && !self.busy.is_empty(),
            Deliver::OnPhase { .. } => !self.released,
        }
    }

    fn is_spent(&self) -> bool {
        self.spent >= self.message.draft.max_attempts
    }

    fn is_late(&self, now: u64) -> bool {
        let ends = |ttl: u64| self.message.sent_at.saturating_add(seconds(ttl));
        self.message.draft.ttl_s.is_some_and(|ttl| ends(ttl) <= now)
    }
}

/// So many seconds in microseconds.
pub(super) fn seconds(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000)
}
