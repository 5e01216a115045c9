//! Money, exactly.

use std::{fmt, ops::Add, sync::Arc};

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of prices")]
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
    /// Tokens read and put into the provider's cache; the price of `input` unless given.
    #[serde(
        default,
        deserialize_with = "amount_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache_write: Option<f64>,
    /// What all tokens of longer requests cost instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Tier>,
    /// When these prices held; only shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Arc<str>>,
}

/// The prices of requests that are longer than others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of prices")]
pub struct Tier {
    /// They hold for requests of more tokens than this; of several such, the highest counts.
    pub tokens: u64,
    /// See [`Price`].
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    /// See [`Price`].
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// See [`Price`].
    #[serde(
        default,
        deserialize_with = "amount_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    pub cached_input: Option<f64>,
    /// See [`Price`].
    #[serde(
        default,
        deserialize_with = "amount_if_given",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache_write: Option<f64>,
}

/// What one token costs, by its bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    pub(crate) input: Money,
    pub(crate) cached: Money,
    pub(crate) cache_write: Money,
    pub(crate) output: Money,
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
    /// One price for all that is read, and one for all that is written.
    pub fn new(input: f64, output: f64) -> Price {
        Price { input, output, ..Price::default() }
    }

    /// The price of what costs nothing, such as a script.
    pub(crate) fn free() -> Price {
        Price::default()
    }

    /// What `tokens` of one request cost.
    pub fn of(&self, tokens: Tokens) -> Money {
        match self.tier(tokens.read()) {
            Some(tier) => tier.rates().of(tokens),
            None => self.base().of(tokens),
        }
    }

    /// The tier that a request of so many tokens falls into; none where the base prices hold.
    pub fn tier(&self, read: u64) -> Option<&Tier> {
        self.above.iter().filter(|tier| read > tier.tokens).max_by_key(|tier| tier.tokens)
    }

    /// The most that a token of each kind can cost in a request of at most so many tokens: whichever
    /// bucket what is read falls into, and however long the request turns out to be.
    pub(crate) fn dearest(&self, read: u64) -> Rates {
        let tiers = self.above.iter().filter(|tier| read > tier.tokens).map(Tier::rates);
        let all = tiers.fold(self.base(), |most, rates| Rates {
            input: most.input.max(rates.input),
            cached: most.cached.max(rates.cached),
            cache_write: most.cache_write.max(rates.cache_write),
            output: most.output.max(rates.output),
        });
        Rates { input: all.input.max(all.cached).max(all.cache_write), ..all }
    }

    /// The least that a token of each kind can cost, however long the request is.
    pub(crate) fn cheapest(&self) -> Rates {
        let all = self.above.iter().map(Tier::rates).fold(self.base(), |least, rates| Rates {
            input: least.input.min(rates.input),
            cached: least.cached.min(rates.cached),
            cache_write: least.cache_write.min(rates.cache_write),
            output: least.output.min(rates.output),
        });
        Rates { input: all.input.min(all.cached).min(all.cache_write), ..all }
    }

    fn base(&self) -> Rates {
        Rates::of_million(self.input, self.output, self.cached_input, self.cache_write)
    }
}

impl Tier {
    fn rates(&self) -> Rates {
        Rates::of_million(self.input, self.output, self.cached_input, self.cache_write)
    }
}

impl Rates {
    fn of_million(
        input: f64,
        output: f64,
        cached_input: Option<f64>,
        cache_write: Option<f64>,
    ) -> Rates {
        Rates {
            input: per_token(input),
            cached: per_token(cached_input.unwrap_or(input)),
            cache_write: per_token(cache_write.unwrap_or(input)),
            output: per_token(output),
        }
    }

    /// What `tokens` cost.
    pub(crate) fn of(&self, tokens: Tokens) -> Money {
        let at = |count: u64, price: Money| Money(count.saturating_mul(price.0));
        at(tokens.input, self.input)
            + at(tokens.cached, self.cached)
            + at(tokens.cache_write, self.cache_write)
            + at(tokens.output, self.output)
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
    fn tokens_of_a_cache_cost_their_own_price_or_the_full_one() {
        let tokens = Tokens { input: 1_000_000, cached: 1_000_000, ..Tokens::default() };
        let price = Price { cached_input: Some(0.07), ..Price::new(0.27, 1.1) };
        assert_eq!(price.of(tokens), Money::from_usd(0.34));
        assert_eq!(Price { cached_input: None, ..price }.of(tokens), Money::from_usd(0.54));
        let tokens = Tokens { input: 100, cached: 900, cache_write: 50, output: 10 };
        let price = Price { cached_input: Some(1.0), ..Price::new(10.0, 50.0) };
        assert_eq!(price.of(tokens), Money::from_usd(0.0029));
        let price = Price { cache_write: Some(12.5), ..price };
        assert_eq!(price.of(tokens), Money::from_usd(0.003_025));
    }

    /// Two tiers, of which the higher is not the dearer in everything.
    fn tiered() -> Price {
        let tier = |tokens, input, output| Tier { tokens, input, output, ..Tier::default() };
        let above = vec![tier(1_000_000, 8.0, 12.0), tier(200_000, 4.0, 15.0)];
        Price { cached_input: Some(0.5), above, ..Price::new(2.0, 10.0) }
    }

    #[test]
    fn the_length_of_a_request_decides_about_all_of_its_tokens() {
        for (input, cached, cost) in [
            (199_999, 0, 399_998_000_010),
            (200_000, 0, 400_000_000_010),
            (200_001, 0, 800_004_000_015),
            (300_000, 0, 1_200_000_000_015),
            (100_000, 100_000, 250_000_000_010),
            (100_000, 100_001, 800_004_000_015),
            (1_000_001, 0, 8_000_008_000_012),
        ] {
            let tokens = Tokens { input, cached, cache_write: 0, output: 1 };
            // In millionths of a millionth; the last digits are those of the one written token.
            let (reading, writing) = (cost / 100 * 100, cost % 100 * 1_000_000);
            assert_eq!(tiered().of(tokens), Money(reading + writing), "{input} {cached}");
        }
        assert_eq!(tiered().tier(200_000), None);
        assert_eq!(tiered().tier(200_001).map(|it| it.tokens), Some(200_000));
        assert_eq!(tiered().tier(u64::MAX).map(|it| it.tokens), Some(1_000_000));
    }

    #[test]
    fn the_dearest_that_a_request_can_become_is_dearer_than_all_that_it_does() {
        let price = Price { cache_write: Some(5.0), ..tiered() };
        for most in [0, 1, 200_000, 200_001, 2_000_000] {
            let dearest = price.dearest(most);
            for read in [0, 1, 199_999, 200_000, 200_001, 1_000_001].map(|it: u64| it.min(most)) {
                for (input, cached, cache_write) in [(read, 0, 0), (0, read, 0), (0, 0, read)] {
                    let tokens = Tokens { input, cached, cache_write, output: 9 };
                    let aside = Tokens { input: most, output: 9, ..Tokens::default() };
                    assert!(price.of(tokens) <= dearest.of(aside), "{read} of {most}");
                }
            }
        }
    }
}
