//! Money, exactly.

use std::{fmt, ops::Add};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::call::Tokens;

/// An amount in millionths of a millionth of a US dollar, so that one token at any price is a
/// whole number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub u64);

const PER_DOLLAR: f64 = 1e12;

impl Money {
    /// An amount in US dollars; negative and absurd amounts become the nearest possible one.
    pub fn from_usd(usd: f64) -> Money {
        Money((usd * PER_DOLLAR).round() as u64)
    }

    /// The amount in US dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / PER_DOLLAR
    }
}

impl Add for Money {
    type Output = Money;

    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.usd())
    }
}

/// What a model asks for a million tokens, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    /// Tokens written.
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// Tokens read from the provider's cache; the price of `input` unless given.
    #[serde(
        default,
        deserialize_with = "amount_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    pub cached_input: Option<f64>,
}

/// A price of a million tokens: a negative one would pay back a budget, and no comparison holds for
/// what is no number (rules.md 13.9).
fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if (0.0..=DEAREST).contains(&amount) {
        Ok(amount)
    } else {
        Err(D::Error::custom(format!("a price must be a number from 0 to {DEAREST}; got {amount}")))
    }
}

fn amount_if_given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    amount(deserializer).map(Some)
}

/// The highest price of a million tokens: a dollar for each.
const DEAREST: f64 = 1e6;

impl Price {
    /// The price of what costs nothing, such as a script.
    pub(crate) const FREE: Price = Price { input: 0.0, output: 0.0, cached_input: None };

    /// What `tokens` cost.
    pub fn of(&self, tokens: Tokens) -> Money {
        let at = |count: u64, price: Money| Money(count.saturating_mul(price.0));
        at(tokens.input, per_token(self.input))
            + at(tokens.cached, per_token(self.cached_input.unwrap_or(self.input)))
            + at(tokens.output, self.output_token())
    }

    /// What so many tokens read and written cost at most, whatever comes from the cache.
    pub(crate) fn dearest(&self, input: u64, output: u64) -> Money {
        let [fresh, cached] = self.both(input, output);
        fresh.max(cached)
    }

    /// What so many tokens read and written cost at least, all that is read coming from the cache.
    pub(crate) fn cheapest(&self, input: u64, output: u64) -> Money {
        let [fresh, cached] = self.both(input, output);
        fresh.min(cached)
    }

    /// What tokens cost if none of what is read comes from the cache, and if all of it does.
    fn both(&self, input: u64, output: u64) -> [Money; 2] {
        let fresh = Tokens { input, cached: 0, output };
        [fresh, Tokens { input: 0, cached: input, output }].map(|tokens| self.of(tokens))
    }

    /// What one written token costs.
    pub(crate) fn output_token(&self) -> Money {
        per_token(self.output)
    }
}

fn per_token(per_million: f64) -> Money {
    Money::from_usd(per_million / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_no_less_than_nothing_and_its_fields_are_known() {
        let read = serde_json::from_str::<Price>;
        assert!(read(r#"{"input": 0, "output": 1000000, "cached_input": 0.5}"#).is_ok());
        for price in [
            r#"{"input": -1, "output": 1}"#,
            r#"{"input": 1, "output": -0.1}"#,
            r#"{"input": 1, "output": 1000000.1}"#,
            r#"{"input": 1, "output": 1, "cached_input": -1}"#,
            r#"{"input": "1", "output": 1}"#,
            r#"{"input": 1, "output": 1, "cached": 1}"#,
        ] {
            assert!(read(price).is_err(), "{price}");
        }
    }

    #[test]
    fn cached_tokens_cost_their_own_price_or_the_full_one() {
        let tokens = Tokens { input: 1_000_000, cached: 1_000_000, output: 0 };
        let price = Price { input: 0.27, output: 1.1, cached_input: Some(0.07) };
        assert_eq!(price.of(tokens), Money::from_usd(0.34));
        assert_eq!(Price { cached_input: None, ..price }.of(tokens), Money::from_usd(0.54));
    }
}
