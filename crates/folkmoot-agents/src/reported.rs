//! The usage that a server or an agent reports (rules.md 4.11, 15.1, 15.3).

use folkmoot_core::call::{Tokens, Usage};
use serde_json::Value;

use crate::usage::estimated_tokens;

/// What has been reported of a reply so far; missing and zero say nothing.
///
/// The protocols report per call, some servers as a running total in every chunk: the highest value
/// seen is the last one of either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    /// All that was read, the cached part included.
    pub read: Option<u64>,
    /// The part of it that came from the cache.
    pub cached: Option<u64>,
    /// The part of it that went into the cache.
    pub cache_write: Option<u64>,
    /// All that was written, reasoning included.
    pub written: Option<u64>,
}

impl Reported {
    /// Takes a later report.
    pub(crate) fn update(&mut self, later: Reported) {
        self.read = self.read.max(later.read);
        self.cached = self.cached.max(later.cached);
        self.cache_write = self.cache_write.max(later.cache_write);
        self.written = self.written.max(later.written);
    }

    /// What both report together, of one request each; what one of them does not say is not known of both.
    pub(crate) fn and(self, other: Reported) -> Reported {
        let both = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Reported {
            read: both(self.read, other.read),
            cached: sum([self.cached, other.cached]),
            cache_write: sum([self.cache_write, other.cache_write]),
            written: both(self.written, other.written),
        }
    }

    /// Whether there is nothing left to wait for.
    pub(crate) fn is_complete(&self) -> bool {
        self.read.is_some() && self.written.is_some()
    }

    /// The usage in buckets that do not overlap; estimated from the bytes sent and received where
    /// the server did not say.
    pub(crate) fn usage(&self, sent: usize, received: usize) -> Usage {
        let (cached, cache_write) = (self.cached.unwrap_or(0), self.cache_write.unwrap_or(0));
        let read = self.read.unwrap_or_else(|| estimated_tokens(sent));
        let tokens = Tokens {
            input: read.saturating_sub(cached).saturating_sub(cache_write),
            cached,
            cache_write,
            output: self.written.unwrap_or_else(|| estimated_tokens(received)),
        };
        Usage { tokens, cost: None, estimated: !self.is_complete() }
    }
}

/// The most tokens that one request can be believed to have read or written: ten times what fits the
/// largest window there is. A bound by the bytes of the request would be lower, and wrong: providers
/// count what they add, such as found pages, and reasoning that they do not send.
pub(crate) const REQUEST: u64 = 100_000_000;

/// The same of an agent that asks its model as often as it likes.
pub(crate) const CALL: u64 = 100 * REQUEST;

/// The number that `usage`, in whatever state it is, has at one of `pointers`, which all mean the
/// same; of several, the highest. One that cannot be is none (rules.md 4.12).
pub(crate) fn number(usage: &Value, pointers: &[&str]) -> Option<u64> {
    let found = pointers.iter().filter_map(|pointer| usage.pointer(pointer)?.as_u64());
    found.filter(|number| (1..=REQUEST).contains(number)).max()
}

/// The sum of the numbers at `pointers`, each at most `most`. That one of them is missing says nothing, but
/// one that cannot be makes the sum unknown.
pub(crate) fn total(usage: &Value, pointers: &[&str], most: u64) -> Option<u64> {
    let told = pointers.iter().filter_map(|pointer| usage.pointer(pointer));
    let told = told.filter(|it| !it.is_null());
    let sum: Option<u64> = told.map(|it| it.as_u64().filter(|number| *number <= most)).sum();
    sum.filter(|sum| *sum > 0)
}

/// The sum of the numbers that are there.
pub(crate) fn sum<const N: usize>(numbers: [Option<u64>; N]) -> Option<u64> {
    numbers.into_iter().flatten().reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(input: u64, cached: u64, output: u64) -> Tokens {
        Tokens { input, cached, output, ..Tokens::default() }
    }

    #[test]
    fn what_is_not_said_is_estimated_and_never_nothing() {
        let usage = Reported::default().usage(400, 80);
        assert_eq!((usage.tokens, usage.estimated), (tokens(100, 0, 20), true));
        assert_eq!(Reported::default().usage(0, 0).tokens, tokens(1, 0, 1));
        let only_cached = Reported { cached: Some(60), ..Reported::default() };
        assert_eq!(only_cached.usage(400, 80).tokens, tokens(40, 60, 20));
    }

    #[test]
    fn a_half_that_is_said_is_kept() {
        let half = Reported { read: Some(7), ..Reported::default() };
        assert_eq!((half.usage(400, 80).tokens, half.is_complete()), (tokens(7, 0, 20), false));
    }

    #[test]
    fn later_reports_raise_what_is_known_and_never_lower_it() {
        let mut reported = Reported::default();
        for (read, written) in
            [(Some(10), None), (Some(10), Some(5)), (None, Some(9)), (None, None)]
        {
            reported.update(Reported { read, written, ..Reported::default() });
        }
        assert_eq!(reported.usage(1, 1).tokens, tokens(10, 0, 9));
    }

    #[test]
    fn absurd_numbers_do_no_harm() {
        let reported =
            Reported { read: Some(5), cached: Some(9), cache_write: None, written: Some(u64::MAX) };
        assert_eq!(reported.usage(1, 1).tokens, tokens(0, 9, u64::MAX));
        assert_eq!(sum([Some(u64::MAX), None, Some(2)]), Some(u64::MAX));
    }

    #[test]
    fn only_a_number_above_nothing_is_a_number() {
        let usage = json!({"a": 0, "b": -4, "c": "many", "d": null, "e": {"f": 3}, "g": 5});
        for nothing in ["/a", "/b", "/c", "/d", "/e", "/h"] {
            assert_eq!(number(&usage, &[nothing]), None, "{nothing}");
        }
        assert_eq!(number(&usage, &["/a", "/e/f", "/g"]), Some(5));
        let absurd = json!({"a": u64::MAX, "b": REQUEST + 1, "c": REQUEST, "d": 1e30, "e": 7});
        assert_eq!(number(&absurd, &["/a", "/b", "/e"]), Some(7));
        assert_eq!(number(&absurd, &["/c"]), Some(REQUEST));
        assert_eq!(number(&absurd, &["/a", "/b", "/d"]), None);
        assert_eq!(sum([None, None]), None);
        let of =
            |pointers: &[&str]| total(&json!({"a": 3, "b": 0, "c": null, "d": "7"}), pointers, 9);
        assert_eq!(
            (of(&["/a", "/b", "/c", "/e"]), of(&["/a", "/d"]), of(&["/b"])),
            (Some(3), None, None)
        );
    }
}
