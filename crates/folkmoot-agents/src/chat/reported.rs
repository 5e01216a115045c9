//! The usage that a server reports (rules.md 4.11, 15.1, 15.3).

use folkmoot_core::call::{Tokens, Usage};
use serde_json::Value;

use crate::{known::Quirks, usage::estimated_tokens};

/// What has been reported of a reply so far; missing and zero say nothing.
///
/// The protocol reports per call, some servers as a running total in every chunk: the highest value
/// seen is the last one of either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    /// All that was read, the cached part included.
    read: Option<u64>,
    /// The part of it that came from the cache.
    cached: Option<u64>,
    written: Option<u64>,
    reasoning: Option<u64>,
}

impl Reported {
    /// Takes a usage object of a chunk or reply, in whatever state it is.
    pub(super) fn take(&mut self, usage: &Value) {
        let number = |pointers: &[&str]| {
            let found = pointers.iter().filter_map(|pointer| usage.pointer(pointer)?.as_u64());
            found.max().filter(|number| *number > 0)
        };
        self.read = self.read.max(number(&["/prompt_tokens"]));
        self.written = self.written.max(number(&["/completion_tokens"]));
        self.cached = self.cached.max(number(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]));
        self.reasoning = self
            .reasoning
            .max(number(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]));
    }

    /// Whether there is nothing left to wait for.
    pub(super) fn is_complete(&self) -> bool {
        self.read.is_some() && self.written.is_some()
    }

    /// The usage in buckets that do not overlap; estimated from the bytes sent and received where
    /// the server did not say.
    pub(super) fn usage(&self, sent: usize, received: usize, quirks: &Quirks) -> Usage {
        let cached = self.cached.unwrap_or(0);
        let input = match self.read {
            Some(read) => read.saturating_sub(cached),
            None => estimated_tokens(sent).saturating_sub(cached),
        };
        let apart = self.reasoning.filter(|_| quirks.reasoning_apart).unwrap_or(0);
        let output = match self.written {
            Some(written) => written.saturating_add(apart),
            None => estimated_tokens(received),
        };
        let tokens = Tokens { input, cached, output };
        Usage { tokens, cost: None, estimated: !self.is_complete() }
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_core::money::{Money, Price};
    use serde_json::json;

    use super::*;

    fn usage_of(reports: &[Value]) -> Usage {
        let mut reported = Reported::default();
        for usage in reports {
            reported.take(usage);
        }
        reported.usage(400, 80, &Quirks::USUAL)
    }

    fn tokens(input: u64, cached: u64, output: u64) -> Tokens {
        Tokens { input, cached, output }
    }

    #[test]
    fn what_is_not_said_is_estimated_and_never_nothing() {
        let silent = [
            json!(null),
            json!({}),
            json!({"prompt_tokens": null, "completion_tokens": null}),
            json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
            json!({"prompt_tokens": "many", "completion_tokens": -4}),
            json!([1]),
        ];
        for report in silent {
            let usage = usage_of(std::slice::from_ref(&report));
            assert_eq!((usage.tokens, usage.estimated), (tokens(100, 0, 20), true), "{report}");
        }
        assert_eq!(Reported::default().usage(0, 0, &Quirks::USUAL).tokens, tokens(1, 0, 1));
    }

    #[test]
    fn a_half_that_is_said_is_kept() {
        let usage = usage_of(&[json!({"prompt_tokens": 7, "completion_tokens": null})]);
        assert_eq!((usage.tokens, usage.estimated), (tokens(7, 0, 20), true));
    }

    #[test]
    fn the_cached_part_is_a_bucket_of_its_own_in_every_spelling() {
        for report in [
            json!({"prompt_tokens_details": {"cached_tokens": 900}}),
            json!({"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}),
            json!({"cached_tokens": 900}),
            json!({"prompt_cache_hit_tokens": 900, "prompt_tokens_details": {"cached_tokens": 900}}),
        ] {
            let whole = json!({"prompt_tokens": 1000, "completion_tokens": 10});
            let usage = usage_of(&[whole, report.clone()]);
            assert_eq!((usage.tokens, usage.estimated), (tokens(100, 900, 10), false), "{report}");
            let price = Price { input: 10.0, output: 50.0, cached_input: Some(1.0) };
            assert_eq!(price.of(usage.tokens), Money::from_usd(0.0024));
        }
    }

    #[test]
    fn a_running_total_counts_once_even_if_it_ends_in_nothing() {
        let totals = [(10, 1), (10, 5), (10, 9)];
        let mut reports: Vec<_> = totals
            .map(|(read, written)| json!({"prompt_tokens": read, "completion_tokens": written}))
            .into();
        assert_eq!(usage_of(&reports).tokens, tokens(10, 0, 9));
        reports.push(json!({"prompt_tokens": 0, "completion_tokens": 0}));
        assert_eq!(usage_of(&reports).tokens, tokens(10, 0, 9));
    }

    #[test]
    fn reasoning_is_a_part_of_the_output_or_is_added_to_it() {
        let report = json!({
            "prompt_tokens": 32, "completion_tokens": 109,
            "completion_tokens_details": {"reasoning_tokens": 100}
        });
        let mut reported = Reported::default();
        reported.take(&report);
        let apart = Quirks { reasoning_apart: true, ..Quirks::USUAL };
        assert_eq!(reported.usage(1, 1, &Quirks::USUAL).tokens.output, 109);
        assert_eq!(reported.usage(1, 1, &apart).tokens.output, 209);
    }

    #[test]
    fn absurd_numbers_do_no_harm() {
        let report = json!({"prompt_tokens": 5, "completion_tokens": u64::MAX, "cached_tokens": 9});
        assert_eq!(usage_of(&[report]).tokens, tokens(0, 9, u64::MAX));
    }
}
