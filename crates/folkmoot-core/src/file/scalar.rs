//! What a scalar means: the core schema of YAML 1.2.

use serde_json::{Number, Value};

use crate::{decimal::Decimal, diagnostic::shown, file::node::Scalar};

impl Scalar {
    /// The truth value it is, if it is one. `yes` and `no` are texts.
    pub fn flag(&self) -> Option<bool> {
        match &*self.text {
            "true" | "True" | "TRUE" if self.plain => Some(true),
            "false" | "False" | "FALSE" if self.plain => Some(false),
            _ => None,
        }
    }

    /// The number it is, if it is one.
    pub fn number(&self) -> Option<f64> {
        if self.plain { number(&self.text) } else { None }
    }

    /// The decimal number it is, exactly, if it is one.
    pub fn decimal(&self) -> Option<Decimal> {
        if self.plain { Decimal::parse(&self.text) } else { None }
    }

    /// The JSON value it is; an error says why there is none.
    pub fn json(&self) -> Result<Value, String> {
        if self.is_null() {
            return Ok(Value::Null);
        }
        if let Some(flag) = self.flag() {
            return Ok(Value::Bool(flag));
        }
        match self.number() {
            None if self.plain && is_no_json_number(&self.text) => {
                Err(format!("JSON has no number {}", shown(&self.text)))
            }
            None => Ok(Value::String(self.text.to_string())),
            Some(number) => exact(&self.text, number).map(Value::Number),
        }
    }
}

/// The number a text without quotes is: decimal, `0x` or `0o`.
pub(super) fn number(text: &str) -> Option<f64> {
    let integer = |digits: &str, radix| {
        let digits = digits.chars().all(|c| c.is_digit(radix)).then_some(digits);
        digits.and_then(|digits| u64::from_str_radix(digits, radix).ok()).map(|it| it as f64)
    };
    match text.get(..2) {
        Some("0x") => integer(&text[2..], 16),
        Some("0o") => integer(&text[2..], 8),
        _ => decimal(text),
    }
}

fn decimal(text: &str) -> Option<f64> {
    let is_decimal = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E');
    let number: f64 = text.chars().all(is_decimal).then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some(number)
}

fn is_no_json_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
        || (digits.starts_with(|c: char| c.is_ascii_digit()) && digits.parse() == Ok(f64::INFINITY))
}

/// The number without loss, as far as whole numbers go.
fn exact(text: &str, number: f64) -> Result<Number, String> {
    let digits = text.trim_start_matches('+');
    let whole = digits.parse::<u64>().map(Number::from);
    let whole = whole.or_else(|_| digits.parse::<i64>().map(Number::from));
    let is_whole = digits.trim_start_matches('-').chars().all(|c| c.is_ascii_digit());
    match whole {
        Ok(whole) => Ok(whole),
        Err(_) if is_whole => {
            Err(format!("the number {} is too large to be kept exactly", shown(text)))
        }
        Err(_) if text.starts_with("0x") || text.starts_with("0o") => Ok((number as u64).into()),
        Err(_) => {
            Number::from_f64(number).ok_or_else(|| format!("JSON has no number {}", shown(text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain(text: &str) -> Scalar {
        Scalar { text: text.into(), plain: true }
    }

    #[test]
    fn only_yaml_1_2_core_words_mean_something() {
        for (text, value) in [
            ("true", json!(true)),
            ("False", json!(false)),
            ("Null", json!(null)),
            ("~", json!(null)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("007", json!(7)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("4.10", json!(4.1)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("18446744073709551615", json!(u64::MAX)),
        ] {
            assert_eq!(plain(text).json(), Ok(value), "{text}");
        }
        for text in ["no", "on", "y", "1_000", "12:30", "0b1", "e5", "-", "1.2.3", "inf", "0x", "+"]
        {
            assert_eq!(plain(text).json(), Ok(json!(text)), "{text}");
        }
    }

    #[test]
    fn quotes_make_a_text() {
        let quoted = Scalar { text: "12".into(), plain: false };
        assert_eq!(quoted.json(), Ok(json!("12")));
        assert_eq!((quoted.number(), quoted.flag(), quoted.is_null()), (None, None, false));
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_refused_not_rounded() {
        for text in [".inf", "-.INF", ".nan", "1e999", "18446744073709551616"] {
            assert!(plain(text).json().is_err(), "{text}");
        }
    }
}
