//! Who writes a stream, and for how long (rules.md 7.5, 7.6).
//!
//! Both stores keep a [`Tenure`] beside each stream and decide by it here. A claim that counts stays
//! with its owner; one that does not may be taken over, with a note. The number that goes up with
//! each claim, its fence, is what keeps an owner that wakes late from writing.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{
    StoreError, StreamId,
    process::{self, Presence},
};

/// A process that may hold claims, so described that no other is taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The process id.
    pub process: u32,
    /// When the process started, in the clock ticks of its system since boot; 0 if unknown.
    pub started: u64,
    /// The boot, and the space of process ids within it, in which the id means something; empty if
    /// unknown, and then only time can end a claim.
    pub boot: Arc<str>,
    /// The machine, for people.
    pub host: Arc<str>,
    /// What the process is, for people, such as `folkmoot run`.
    pub label: Arc<str>,
}

impl Owner {
    /// Describes this process.
    pub fn this(label: impl Into<Arc<str>>) -> Owner {
        let process = std::process::id();
        let started = match process::presence(process) {
            Presence::Started(ticks) => ticks,
            Presence::Gone | Presence::Unknown => 0,
        };
        Owner {
            process,
            started,
            boot: process::boot(),
            host: process::host(),
            label: label.into(),
        }
    }

    /// Whether the process has certainly ended. Of one of another boot or space of process ids that
    /// cannot be told.
    pub fn has_ended(&self) -> bool {
        if self.boot.is_empty() || self.boot != process::boot() {
            return false;
        }
        match process::presence(self.process) {
            Presence::Gone => true,
            Presence::Started(ticks) => self.started != 0 && ticks != self.started,
            Presence::Unknown => false,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {} on {})", self.label, self.process, self.host)
    }
}

/// The right to write a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The stream.
    pub stream: StreamId,
    /// The number of the claim; each later claim on the stream has a higher one.
    pub fence: u64,
    /// What the claim replaces, if one had not been given back.
    pub took_over: Option<Takeover>,
}

impl Claim {
    /// The first claim on a stream that does not exist yet; [`Append::founding`] makes it.
    ///
    /// [`Append::founding`]: super::Append::founding
    pub fn on_new(stream: &StreamId) -> Claim {
        Claim { stream: stream.clone(), fence: 1, took_over: None }
    }
}

/// A claim that was not given back and no longer counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// Whose it was, if that could be read.
    pub from: Option<Owner>,
    /// Why it no longer counted.
    pub why: Lapse,
}

/// Why a claim no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapse {
    /// Its process has ended.
    Ended,
    /// Its time has run out.
    Expired,
    /// What is stored does not name an owner.
    Unreadable,
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Lapse::Ended => "which has ended",
            Lapse::Expired => "which gave no sign in time",
            Lapse::Unreadable => "which left no readable name",
        };
        match &self.from {
            Some(owner) => write!(f, "taken over from {owner}, {why}"),
            None => write!(f, "taken over from another owner, {why}"),
        }
    }
}

/// What a store keeps of the claims on one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tenure {
    /// The number of the last claim.
    pub(super) fence: u64,
    /// That claim, until it is given back.
    pub(super) lease: Option<Lease>,
}

/// A claim as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// The owner as JSON text: whatever stands there, it can be judged.
    pub(super) owner: Arc<str>,
    /// When it was last renewed, in microseconds since 1970.
    pub(super) renewed: u64,
    /// How long it counts after that, in microseconds.
    pub(super) ttl: u64,
}

impl Tenure {
    /// Who holds the stream now.
    pub(super) fn owner(&self) -> Option<Owner> {
        self.lease.as_ref().and_then(|lease| lease.holder().ok())
    }

    /// A new claim, unless one counts.
    pub(super) fn claim(
        &self,
        stream: &StreamId,
        owner: &Owner,
        ttl: Duration,
    ) -> Result<(Tenure, Claim), StoreError> {
        let took_over = match self.lease.as_ref().map(Lease::holder) {
            None => None,
            Some(Err(takeover)) => Some(takeover),
            Some(Ok(by)) => {
                return Err(StoreError::Held { stream: stream.clone(), by: Box::new(by) });
            }
        };
        let fence = self.fence + 1;
        let tenure = Tenure { fence, lease: Some(Lease::new(owner, ttl)) };
        Ok((tenure, Claim { stream: stream.clone(), fence, took_over }))
    }

    /// The claim number `fence` renewed; it must be the last one and not given back.
    ///
    /// One that has run out but was not taken over is as good as ever: nobody else has written.
    pub(super) fn renew(&self, stream: &StreamId, fence: u64) -> Result<Tenure, StoreError> {
        match &self.lease {
            Some(lease) if self.fence == fence => {
                let lease = Lease { renewed: now(), ..lease.clone() };
                Ok(Tenure { fence, lease: Some(lease) })
            }
            _ => {
                let by = self.owner().map(Box::new);
                Err(StoreError::Superseded { stream: stream.clone(), by })
            }
        }
    }

    /// The stream without a claim; none may count.
    pub(super) fn vacate(&self, stream: &StreamId) -> Result<Tenure, StoreError> {
        match self.owner() {
            Some(by) => Err(StoreError::Held { stream: stream.clone(), by: Box::new(by) }),
            None => Ok(Tenure { fence: self.fence, lease: None }),
        }
    }

    /// Ends the claim number `fence`, if it is the last one.
    pub(super) fn release(&mut self, fence: u64) {
        if self.fence == fence {
            self.lease = None;
        }
    }
}

impl Lease {
    fn new(owner: &Owner, ttl: Duration) -> Lease {
        let owner = serde_json::to_string(owner).expect("an owner is numbers and strings");
        // The largest time that any database can hold.
        let ttl = ttl.as_micros().min(i64::MAX as u128) as u64;
        Lease { owner: owner.into(), renewed: now(), ttl }
    }

    /// Who holds this claim, or why it does not count.
    fn holder(&self) -> Result<Owner, Takeover> {
        let Ok(owner) = serde_json::from_str::<Owner>(&self.owner) else {
            return Err(Takeover { from: None, why: Lapse::Unreadable });
        };
        // A renewal that lies ahead by more than a claim lasts is no sign of life: the clock was set.
        let expired = now().abs_diff(self.renewed) >= self.ttl;
        let why = match (owner.has_ended(), expired) {
            (true, _) => Lapse::Ended,
            (false, true) => Lapse::Expired,
            (false, false) => return Ok(owner),
        };
        Err(Takeover { from: Some(owner), why })
    }
}

/// The wall clock, in microseconds since 1970: processes and machines share no other.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn tenure(owner: &str, renewed: u64) -> Tenure {
        let ttl = HOUR.as_micros() as u64;
        Tenure { fence: 7, lease: Some(Lease { owner: owner.into(), renewed, ttl }) }
    }

    fn json(owner: &Owner) -> String {
        serde_json::to_string(owner).expect("an owner is numbers and strings")
    }

    fn takeover(tenure: &Tenure) -> Option<Lapse> {
        let claim = tenure.claim(&"run/1".into(), &Owner::this("test"), HOUR);
        claim.expect("the claim does not count").1.took_over.map(|takeover| takeover.why)
    }

    #[test]
    fn what_does_not_name_an_owner_is_taken_over() {
        let wrong = json(&Owner::this("test")).replace("\"process\":", "\"process\":-");

        for garbage in ["", "\0\u{ffff}", "{}", "null", "[1]", "4711", &wrong] {
            assert_eq!(takeover(&tenure(garbage, now())), Some(Lapse::Unreadable), "{garbage:?}");
        }
    }

    #[test]
    fn a_renewal_in_the_far_future_does_not_hold_a_stream_for_ever() {
        let owner = json(&Owner::this("test"));

        assert_eq!(takeover(&tenure(&owner, now() + 24 * 3_600_000_000)), Some(Lapse::Expired));
        assert_eq!(takeover(&tenure(&owner, u64::MAX)), Some(Lapse::Expired));
    }

    #[test]
    fn a_claim_counts_until_the_end_of_its_time() {
        let owner = json(&Owner::this("test"));
        let held = tenure(&owner, now() - 3_590_000_000).vacate(&"run/1".into());

        assert!(matches!(held, Err(StoreError::Held { .. })), "{held:?}");
        assert_eq!(takeover(&tenure(&owner, now() - 3_600_000_000)), Some(Lapse::Expired));
    }
}
