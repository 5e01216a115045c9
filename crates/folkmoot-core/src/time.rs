//! Time as the core knows it: read off the log, never off a clock.

use std::{fmt, ops::Add};

use serde::{Deserialize, Serialize};

/// A moment of a run: microseconds of active time since it started.
///
/// Active time stands still while the run is interrupted or the machine sleeps, so no limit is
/// charged for it (rules.md 6.6).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// How long after `earlier` this is; nothing if it is not.
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration.0))
    }
}

/// A length of time in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Duration(pub u64);

impl Duration {
    /// So many seconds; fractions below a microsecond are dropped.
    pub const fn from_secs(seconds: u64) -> Duration {
        Duration(seconds.saturating_mul(1_000_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Duration {
        Duration(milliseconds.saturating_mul(1000))
    }

    /// So many seconds, fractions allowed; negative ones become nothing.
    pub fn from_secs_f64(seconds: f64) -> Duration {
        Duration((seconds * 1e6).round() as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In milliseconds.
    pub fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// Its length in milliseconds, with a fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Reads `90`, `0.5`, `250ms`, `45s`, `30m`, `2h` or `1d`; a bare number is seconds.
    pub fn parse(text: &str) -> Option<Duration> {
        let text = text.trim();
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let seconds = match unit {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        let number: f64 = number.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then(|| Duration::from_secs_f64(number * seconds))
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> std::time::Duration {
        std::time::Duration::from_micros(duration.0)
    }
}

impl Add for Duration {
    type Output = Duration;

    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 / 1000 {
            ms if ms < 1000 => write!(f, "{ms}ms"),
            ms if ms < 60_000 => write!(f, "{:.1}s", self.as_secs_f64()),
            ms if ms < 3_600_000 => write!(f, "{}m{:02}s", ms / 60_000, ms / 1000 % 60),
            ms => write!(f, "{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_bare_numbers_are_seconds() {
        let read = |text| Duration::parse(text).map(|it| it.0);
        assert_eq!(read("0.05"), Some(50_000));
        assert_eq!(read("30m"), Some(1_800_000_000));
        assert_eq!(read("1.5 h"), Some(5_400_000_000));
        for bad in ["", "-1", "ten", "10 minutes", "inf", "NaN", "1e400", "5x"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
