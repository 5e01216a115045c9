//! Numbers as people read them.

use folkmoot_core::{bounds::Bounds, call::Usage, time::Duration, view::Spending};

/// A number of things: exact below ten thousand, then in thousands or millions.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..10_000 => grouped(number),
        10_000..999_950 => format!("{}k", tenths(number as f64 / 1e3)),
        _ => format!("{}M", tenths(number as f64 / 1e6)),
    }
}

fn tenths(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// A number with a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 call`, `2 calls`.
pub(crate) fn things(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number))
}

/// The tokens of a call, `~` before an estimate; none if it used none.
pub(crate) fn tokens(usage: Usage) -> Option<String> {
    let Usage { tokens, estimated, .. } = usage;
    tokens_of(&Spending { total_tokens: tokens.total(), estimated, ..Spending::default() })
}

/// The tokens of calls, `~` before an estimate; none if they used none.
pub(crate) fn tokens_of(spending: &Spending) -> Option<String> {
    let about = if spending.estimated { "~" } else { "" };
    let total = spending.total_tokens;
    (total > 0).then(|| format!("{about}{}", things(total, "token")))
}

/// What tokens cost; `cost unknown` where no price is known, and none if there are no tokens.
pub(crate) fn cost(spending: &Spending) -> Option<String> {
    match spending.cost_usd {
        Some(usd) => Some(dollars(usd)),
        None if spending.total_tokens == 0 => None,
        None => Some("cost unknown".to_owned()),
    }
}

/// An amount of money; parts of a cent where they matter.
pub(crate) fn dollars(usd: f64) -> String {
    if usd == 0.0 || usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// How long ago something was, in its largest unit. Both are microseconds of the wall clock.
pub(crate) fn ago(then: u64, now: u64) -> String {
    let seconds = now.saturating_sub(then) / 1_000_000;
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// A limit on time, without the smaller units it does not use: `30m`, not `30m00s`.
pub(crate) fn time_limit(limit: Duration) -> String {
    let text = limit.to_string();
    let short = text.strip_suffix("00s").or(text.strip_suffix("00m"));
    short.map_or_else(|| text.clone(), str::to_owned)
}

/// A length of time in seconds or larger units: `0.3s`, `2m05s`.
pub(crate) fn elapsed(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{:.1}s", duration.as_secs_f64())
    } else {
        duration.to_string()
    }
}

/// How much of a run can only be done one after the other: of its calls, or of the steps of a graph
/// whose agents and lead are asked more than that.
pub(crate) fn in_a_row(bounds: &Bounds) -> String {
    let steps = if bounds.turns.max == bounds.total.calls.max { "" } else { " steps" };
    match bounds.critical_path {
        1 => format!("all{steps} at once"),
        row => format!("at most {}{steps} in a row", grouped(row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_honest() {
        let counts = [0, 999, 9_999, 10_000, 999_949, 999_950, 1_250_000].map(count);
        assert_eq!(counts, ["0", "999", "9,999", "10k", "999.9k", "1M", "1.2M"]);
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!((&*things(1, "call"), &*things(0, "call")), ("1 call", "0 calls"));
        assert_eq!([0.0, 0.00123, 2.5].map(dollars), ["$0.00", "$0.0012", "$2.50"]);
        let unpriced = Spending { total_tokens: 7, ..Spending::default() };
        assert_eq!(cost(&unpriced).as_deref(), Some("cost unknown"));
        assert_eq!(cost(&Spending::default()), None);
        let limits = [90, 1_800, 3_600].map(|seconds| time_limit(Duration::from_secs(seconds)));
        assert_eq!(limits, ["1m30s", "30m", "1h"]);
        let minute = 60_000_000;
        assert_eq!(ago(0, minute - 1), "59s ago");
        assert_eq!(ago(0, 60 * minute), "1h ago");
        assert_eq!(ago(0, 60 * 24 * 3 * minute), "3d ago");
        assert_eq!(ago(minute, 0), "0s ago", "clocks may be set back");
    }
}
