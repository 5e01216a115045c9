//! Decimal numbers, exactly: what is multiplied by 1.1 is not multiplied by a float that is near it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number of at least zero with so many digits behind its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Decimal {
    digits: u64,
    places: u32,
}

/// The most digits that one may have.
const LONGEST: usize = 18;

impl Decimal {
    /// Reads `1.5`, `2` or `.5`; nothing with an exponent, a sign or more than 18 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let part = part.trim_end_matches('0');
        let digits = format!("{whole}{part}");
        let is_number = !digits.is_empty() || text.contains('0');
        let is_sound = digits.len() <= LONGEST && digits.bytes().all(|it| it.is_ascii_digit());
        (is_number && is_sound).then_some(())?;
        let digits = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        Some(Decimal { digits, places: u32::try_from(part.len()).ok()? })
    }

    /// So many times `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let product = u128::from(self.digits) * u128::from(whole);
        u64::try_from(product / 10_u128.pow(self.places)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.places == 0 {
            return write!(f, "{}", self.digits);
        }
        let one = 10_u64.pow(self.places);
        let (whole, part, places) = (self.digits / one, self.digits % one, self.places as usize);
        write!(f, "{whole}.{part:0places$}")
    }
}

impl From<Decimal> for String {
    fn from(decimal: Decimal) -> String {
        decimal.to_string()
    }
}

impl TryFrom<String> for Decimal {
    type Error = String;

    fn try_from(text: String) -> Result<Decimal, String> {
        Decimal::parse(&text).ok_or_else(|| format!("{text} is no decimal number"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(text: &str, whole: u64) -> Option<u64> {
        Some(Decimal::parse(text)?.of(whole))
    }

    #[test]
    fn a_product_is_exact_and_rounded_down() {
        assert_eq!(times("1.1", 10), Some(11));
        assert_eq!(times("1.5", 3), Some(4));
        assert_eq!(times("0.29", 100), Some(29), "as floats it is 28.999999999999996");
        assert_eq!(times("2", u64::MAX), Some(u64::MAX), "what fits no number is the largest one");
        assert_eq!(times("0", 7), Some(0));
        assert_eq!(times(".5", 7), Some(3));
    }

    #[test]
    fn what_is_no_plain_decimal_is_refused() {
        for text in ["", ".", "-1", "+1", "1e3", "1,5", "a", "1.2.3", "1234567890.1234567890"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(digits in 0_u64..1_000_000, places in 0_u32..6) {
            let written = Decimal { digits, places }.to_string();
            let read = Decimal::parse(&written).expect("it is a decimal");
            prop_assert_eq!(read.of(1_000_000), Decimal { digits, places }.of(1_000_000));
            prop_assert_eq!(Decimal::parse(&read.to_string()), Some(read));
        }
    }
}
