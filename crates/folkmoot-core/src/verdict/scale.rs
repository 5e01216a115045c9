//! Scores (rules.md 1.8).

use std::{ops::RangeInclusive, sync::LazyLock};

use regex::Regex;

use super::{Object, Reading, Unreadable, clean::prose, excerpt, object::illegal};
use crate::{call::Answer, text::is_cjk};

/// A scale on which a reply is asked for a number.
#[derive(Clone, Debug)]
pub struct Scale<'a> {
    /// The key under which an object holds the number.
    pub key: &'a str,
    /// The words behind which, with a colon or `=`, the number stands.
    pub labels: &'a [&'a str],
    /// What is on the scale.
    pub range: RangeInclusive<f64>,
}

impl Scale<'_> {
    /// Reads the score of `answer`: its object's, else the one behind the last label.
    pub fn read(&self, answer: &Answer) -> Reading<f64> {
        match Object::before_words(answer, self.key, &[self.key]) {
            Err(why) => Reading::Unreadable(why),
            Ok(None) => self.read_prose(&prose(&answer.text)),
            Ok(Some(object)) => match object.get(self.key) {
                None => Reading::None,
                Some(value) => match value.as_f64() {
                    Some(score) => self.on_scale(score, &value.to_string()),
                    None => Reading::Unreadable(illegal(self.key, value)),
                },
            },
        }
    }

    fn read_prose(&self, prose: &str) -> Reading<f64> {
        let text = plain(prose);
        let behind = self.labels.iter().filter_map(|label| behind_last(&text, &plain(label)));
        let Some(at) = behind.max() else {
            return Reading::None;
        };
        let rest = text[at..].lines().next().unwrap_or_default();
        match number(rest) {
            Some(score) => self.on_scale(score, rest),
            None => Reading::Unreadable(Unreadable::NearMiss(excerpt(rest))),
        }
    }

    fn on_scale(&self, score: f64, text: &str) -> Reading<f64> {
        if self.range.contains(&score) {
            Reading::Value(score)
        } else {
            Reading::Unreadable(Unreadable::OutOfScale(excerpt(text)))
        }
    }
}

/// `text` in lower case and narrow characters, without emphasis. NFKC would go too far: `8²` is not 82.
fn plain(text: &str) -> String {
    static EMPHASIS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[*`~]|\b_+|_+\b").expect("the pattern is sound"));
    let narrow = |c: char| match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        '\u{2212}' => '-',
        _ => c,
    };
    let text: String = text.chars().map(narrow).collect();
    EMPHASIS.replace_all(&text, "").to_lowercase()
}

/// Where the text behind the last place begins in which `label` stands as a whole word before a colon
/// or equals sign.
fn behind_last(text: &str, label: &str) -> Option<usize> {
    let in_word = |c: char| (c.is_alphanumeric() || c == '_') && !is_cjk(c);
    let places = text.rmatch_indices(label).filter(|_| !label.is_empty());
    places.filter(|(at, _)| !text[..*at].ends_with(in_word)).find_map(|(at, _)| {
        let behind = &text[at + label.len()..];
        let value = behind.trim_start_matches([' ', '\t']).strip_prefix([':', '='])?;
        Some(text.len() - value.len())
    })
}

/// The number that `rest` begins with, if nothing that could belong to it follows: `8`, `+8.5`, `7/10`.
fn number(rest: &str) -> Option<f64> {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        let number = r"(?:\d+(?:\.\d+)?|\.\d+)";
        // `[0-9]`, since other digits do not parse.
        let pattern = format!(r"^\s*([+-]?{number})(?:\s*/\s*({number}))?(.*)$");
        Regex::new(&pattern.replace(r"\d", "[0-9]")).expect("the pattern is sound")
    });
    let parts = NUMBER.captures(rest)?;
    let score: f64 = parts[1].parse().ok()?;
    let within = match parts.get(2) {
        Some(most) => score <= most.as_str().parse().ok()?,
        None => true,
    };
    (score.is_finite() && within && ends_number(&parts[3])).then_some(score)
}

/// Whether a number before `rest` is complete, and the only one: no range, no percentage.
fn ends_number(rest: &str) -> bool {
    static GOES_ON: LazyLock<Regex> = LazyLock::new(|| {
        let joins = r"[-–—/⁄÷×±]|(?:to|or|and)\b|至|到|或|和";
        Regex::new(&format!(r"^\s+(?:[%‰]|(?:{joins})?\s*[-+]?\.?\d)"))
            .expect("the pattern is sound")
    });
    if GOES_ON.is_match(rest) {
        return false;
    }
    let mut next = rest.chars();
    let follows_digit = |mut next: std::str::Chars<'_>| next.next().is_some_and(char::is_numeric);
    match next.next() {
        None | Some('分') => true,
        Some('.' | ',') => !follows_digit(next),
        Some(c) => {
            !c.is_alphanumeric() && !matches!(c, '%' | '‰' | '/' | '⁄' | '-' | '–' | '^' | '\'')
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn scale(labels: &'static [&'static str]) -> Scale<'static> {
        Scale { key: "score", labels, range: -10.0..=10.0 }
    }

    fn read(text: &str) -> Reading<f64> {
        scale(&["score", "评分", "分数"]).read(&Answer::text(text))
    }

    #[test]
    fn sign_decimals_denominator_and_markup_are_understood() {
        for (text, score) in [
            ("Score: 8", 8.0),
            ("SCORE=+7.5", 7.5),
            ("score: -9", -9.0),
            ("score: −9", -9.0),
            ("**Score:** 8.5/10", 8.5),
            ("Score: **7.9** / 10.", 7.9),
            ("__Score__: `8`", 8.0),
            ("- _Score: 8_", 8.0),
            ("评分：９", 9.0),
            ("总评分: 8分", 8.0),
            ("I give a score: 6, final score: 9, thanks", 9.0),
            ("score: 6\n评分：7", 7.0),
            ("score: .5", 0.5),
            ("score: 8.", 8.0),
            ("score: 8.0, I think", 8.0),
            ("score: 8 - well done", 8.0),
            ("score: 9 out of 10", 9.0),
            ("评分：8 分，很好", 8.0),
        ] {
            assert_eq!(read(text), Reading::Value(score), "{text}");
        }
    }

    #[test]
    fn words_and_numbers_without_a_label_are_no_scores() {
        for text in [
            "great work, 10/10",
            "underscore: 9",
            "my_score: 9",
            "score 8",
            "```\nscore: 9\n```",
            "> score: 9",
            "\"score: 9\"",
            "scores: 9",
            "",
        ] {
            assert_eq!(read(text), Reading::None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_behind_the_last_label_is_unreadable() {
        for text in [
            "ten",
            "NaN",
            "inf",
            "8,5",
            "12/10",
            "8/10/2024",
            "8.5.1",
            "95%",
            "8-9",
            "8 - 9",
            "8 – 9",
            "7 ~ 8",
            "8 9",
            "8 or 9",
            "7 to 8.5",
            "8 或 9",
            "8至9",
            "9 %",
            "8 / 10 / 2024",
            "8x",
            "8²",
            "8½",
            "1e1",
            "",
            "?",
            "8'000",
            "٨",
        ] {
            let text = format!("Score: 9\nScore: {text}");
            assert!(matches!(read(&text), Reading::Unreadable(Unreadable::NearMiss(_))), "{text}");
        }
    }

    #[test]
    fn a_number_off_the_scale_is_neither_clamped_nor_replaced() {
        for text in ["Score: 85", "score: 11/100", "score: -10.1", "Score: 5\nScore: 99"] {
            assert!(matches!(read(text), Reading::Unreadable(Unreadable::OutOfScale(_))), "{text}");
        }
    }

    #[test]
    fn a_field_decides_alone_and_has_to_be_a_number() {
        let read = |value| scale(&["score"]).read(&Answer::json(value));
        assert_eq!(read(json!({"score": 8.5})), Reading::Value(8.5));
        assert!(matches!(read(json!({"score": "8"})), Reading::Unreadable(_)));
        assert!(matches!(
            read(json!({"score": 80})),
            Reading::Unreadable(Unreadable::OutOfScale(_))
        ));
        assert_eq!(read(json!({"verdict": "pass", "score": null})), Reading::None);
        let text = Answer::text("score: 9\n```\n{\"score\": 3}\n```");
        assert_eq!(scale(&["score"]).read(&text), Reading::Value(3.0));
    }

    #[test]
    fn no_number_stands_in_for_a_field_that_is_misplaced() {
        assert_eq!(
            read("score: 9\n{\"score\": 3}\nbye"),
            Reading::Unreadable(Unreadable::Misplaced)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_number_on_the_scale_is_read_as_it_is(tenths in -100i32..=100) {
            let score = f64::from(tenths) / 10.0;
            prop_assert_eq!(read(&format!("ok\nscore: {score}\nbye")), Reading::Value(score));
        }

        #[test]
        fn any_reply_is_read(text in "(score|评分|[:=/.,+*_ 0-9\n-]|\\PC){0,30}") {
            let _ = read(&text);
        }
    }
}
