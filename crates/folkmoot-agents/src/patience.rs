//! How long to wait for whom.

use std::time::Duration;

/// The waiting times towards providers; what a call may take in all is the kernel's matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the first sign of a reply; models that think before they speak send nothing meanwhile.
    pub first_byte: Duration,
    /// For the next byte of a reply that has begun.
    pub idle: Duration,
    /// For the usage that may follow a reply whose end is proven.
    pub trailing: Duration,
    /// Before the second attempt, at most; it doubles with every further one.
    pub first_wait: Duration,
    /// Before any attempt, at most; a provider that asks for more ends the call.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(2),
            trailing: Duration::from_secs(2),
            first_wait: Duration::from_secs(2),
            longest_wait: Duration::from_mins(1),
        }
    }
}
