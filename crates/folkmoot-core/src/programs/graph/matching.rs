//! Tests of one agent's own reply (graph.md §10).

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    call::Answer,
    text::spaced,
    verdict::{REVIEWS, Reading, Review, Scale},
};

/// How a reply is tested; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Matchers {
    /// A text it contains, literally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<Arc<str>>,
    /// A pattern it matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<Pattern>,
    /// The least score it gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_gte: Option<f64>,
    /// The label of the score, instead of the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_label: Option<Arc<str>>,
    /// Whether it must equal the one before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_changes: bool,
    /// The verdict it gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Review>,
}

/// The labels of scores.
const SCORES: [&str; 4] = ["score", "评分", "得分", "分数"];

impl Matchers {
    /// Whether `reply`, which came after `before` of the same agent, matches in every way.
    pub(crate) fn hold(&self, reply: &Answer, before: Option<&Answer>) -> bool {
        let Matchers { contains, regex, score_gte, score_label: _, no_changes, verdict } = self;
        contains.as_ref().is_none_or(|text| reply.text.contains(&**text))
            && regex.as_ref().is_none_or(|pattern| pattern.matches(&reply.text))
            && score_gte.is_none_or(|least| self.score(reply).is_some_and(|score| score >= least))
            && (!no_changes || before.is_some_and(|before| is_equal(reply, before)))
            && verdict.is_none_or(|verdict| REVIEWS.read(reply) == Reading::Value(verdict))
    }

    pub(super) fn score(&self, reply: &Answer) -> Option<f64> {
        let own = self.score_label.as_deref().map(|label| vec![label]);
        let labels = own.unwrap_or_else(|| SCORES.to_vec());
        let range = f64::MIN..=f64::MAX;
        Scale { key: "score", labels: &labels, range }.read(reply).value()
    }
}

/// Whether two replies say the same: in NFC, with runs of white space as one blank.
pub(super) fn is_equal(one: &Answer, other: &Answer) -> bool {
    one.text == other.text || spaced(&one.text) == spaced(&other.text)
}

/// A regular expression that takes time linear in the text.
#[derive(Clone, Default)]
pub struct Pattern {
    text: Arc<str>,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// How large a compiled pattern may be, in bytes.
    const LARGEST: usize = 1 << 20;

    /// A pattern, or why it is none.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let compiled = Pattern::compile(text)?;
        Ok(Pattern { text: text.into(), compiled: OnceLock::from(Some(compiled)) })
    }

    fn compile(text: &str) -> Result<Regex, String> {
        let built = RegexBuilder::new(text).size_limit(Pattern::LARGEST).build();
        built.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        })
    }

    /// Whether it matches somewhere in `text`.
    pub fn matches(&self, text: &str) -> bool {
        // A pattern in a log was a good one when it was checked.
        let compiled = self.compiled.get_or_init(|| Pattern::compile(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// The pattern as its author wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        Ok(Pattern { text: Arc::deserialize(deserializer)?, compiled: OnceLock::new() })
    }
}
