//! When a coding agent that failed may be asked again (rules.md 12.5).

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use folkmoot_core::call::{Again, FailureKind};
use regex::Regex;

use crate::process::Exit;

/// Exit codes by which programs tell that they were called wrongly.
const MISUSE: [i32; 2] = [2, 64];

/// What is known of a further attempt.
pub(super) struct Limited {
    pub(super) again: Again,
    /// How long it is to wait.
    pub(super) hint: Option<Duration>,
}

/// Whether a program complains of how it was called, or of what it was told to do that way.
pub(super) fn is_misuse(exit: Exit, said: &str) -> bool {
    static COMPLAINT: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"(?i)\b(unexpected|unknown|unrecogni[sz]ed|invalid) (argument|option|flag)";
        Regex::new(words).expect("it is a pattern")
    });
    let is_failed = exit != Exit::Code(0);
    let is_told = matches!(exit, Exit::Code(code) if MISUSE.contains(&code));
    let shows_usage = said.to_lowercase().contains("usage:");
    is_failed && (COMPLAINT.is_match(said) || (is_told && shows_usage))
}

/// A usage limit is over at its time; without one nobody knows when.
pub(super) fn of(kind: FailureKind, said: &str, now: SystemTime) -> Limited {
    if kind != FailureKind::RateLimited {
        return Limited { again: kind.again(), hint: None };
    }
    let hint = wait(said, now);
    let lower = said.to_lowercase();
    let is_of_long = ["usage limit", "quota"].iter().any(|it| lower.contains(it));
    let again = if is_of_long && hint.is_none() { Again::Never } else { kind.again() };
    Limited { again, hint }
}

/// How long a message asks to wait: until a moment in seconds since 1970, or for so many seconds,
/// minutes or hours.
fn wait(said: &str, now: SystemTime) -> Option<Duration> {
    static MOMENT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\|(\d{10})\b").expect("it is a pattern"));
    static SPAN: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"(?i)\b(?:in|after|for) (\d{1,9}(?:\.\d{1,9})?) ?(s|m|h)(?:\b|ec|in|our)";
        Regex::new(words).expect("it is a pattern")
    });
    if let Some(moment) = MOMENT.captures(said) {
        let seconds = moment[1].parse().ok()?;
        let until = UNIX_EPOCH + Duration::from_secs(seconds);
        return Some(until.duration_since(now).unwrap_or_default());
    }
    let span = SPAN.captures(said)?;
    let unit = match span[2].to_lowercase().as_str() {
        "h" => 3600.0,
        "m" => 60.0,
        _ => 1.0,
    };
    Duration::try_from_secs_f64(span[1].parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_limit_is_waited_for_if_its_time_is_known_and_else_not_tried_again() {
        let now = UNIX_EPOCH + Duration::from_mins(28_928_150);
        let of = |said| {
            let Limited { again, hint } = of(FailureKind::RateLimited, said, now);
            (again, hint.map(|hint| hint.as_secs()))
        };
        assert_eq!(of("usage limit reached|1735689600"), (Again::Always, Some(600)));
        assert_eq!(of("usage limit reached|1600000000"), (Again::Always, Some(0)));
        assert_eq!(
            of("You've hit your usage limit. Try again in 3 hours"),
            (Again::Always, Some(10800))
        );
        assert_eq!(of("usage limit reached"), (Again::Never, None));
        assert_eq!(of("429: rate limit, retry in 1.5s"), (Again::Always, Some(1)));
        assert_eq!(of("429: rate limit"), (Again::Always, None));
    }

    #[test]
    fn who_was_called_wrongly_says_so() {
        for (exit, said, expected) in [
            (Exit::Code(2), "error: unexpected argument '--jsn' found", true),
            (Exit::Code(141), "error: unexpected argument '--jsn' found", true),
            (Exit::Code(1), "error: unknown option '--jsn'", true),
            (Exit::Code(64), "Usage: agent [OPTIONS]", true),
            (Exit::Code(1), "no such model", false),
            (Exit::Code(0), "unknown option", false),
        ] {
            assert_eq!(is_misuse(exit, said), expected, "{exit} {said}");
        }
    }
}
