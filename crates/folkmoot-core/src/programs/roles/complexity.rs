//! How complex a task is, so that a simple one takes the fast path (agents.md §7). No model is asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::text::is_word_letter;

/// From how many points on a task is complex, unless given.
pub const USUAL_THRESHOLD: u64 = 2;

/// What is taken into account beside the text of the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weighing {
    /// From how many points on it is complex.
    pub threshold: u64,
    /// The points, if the author says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u64>,
    /// The path, if the author says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
    /// What the task is for, in the caller's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<Arc<str>>,
    /// How many steps were taken before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past_steps: Option<u64>,
}

impl Default for Weighing {
    fn default() -> Weighing {
        let (complexity, path, intents, past_steps) = (None, None, Vec::new(), None);
        Weighing { threshold: USUAL_THRESHOLD, complexity, path, intents, past_steps }
    }
}

/// Who works on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// One agent.
    Single,
    /// The roles, one after the other.
    Roles,
}

impl Path {
    /// Its word in files and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Path::Single => "single",
            Path::Roles => "roles",
        }
    }
}

/// How a task was weighed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complexity {
    score: u64,
    threshold: u64,
    is_overridden: bool,
    signals: Vec<Signal>,
    /// The path it takes.
    pub path: Path,
}

/// Something that makes a task complex.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Signal {
    name: &'static str,
    points: u64,
    because: String,
}

impl Weighing {
    /// Weighs `task`.
    pub fn of(&self, task: &str) -> Complexity {
        let signals = if self.complexity.is_some() { Vec::new() } else { self.signals(task) };
        let sum = signals.iter().map(|signal| signal.points).sum();
        let score = self.complexity.unwrap_or(sum);
        let chosen = if score < self.threshold { Path::Single } else { Path::Roles };
        Complexity {
            score,
            threshold: self.threshold,
            is_overridden: self.complexity.is_some() || self.path.is_some(),
            signals,
            path: self.path.unwrap_or(chosen),
        }
    }

    fn signals(&self, task: &str) -> Vec<Signal> {
        let signal = |name, points, because: Option<String>| {
            because.map(|because| Signal { name, points, because })
        };
        let signals = [
            signal("long_text", 1, long(task)),
            signal("code_change", 2, self.changes_code(task)),
            signal("sequence", 1, sequence(task)),
            signal("past_steps", 1, self.went_on()),
        ];
        signals.into_iter().flatten().collect()
    }

    fn changes_code(&self, task: &str) -> Option<String> {
        let intent = self.intents.iter().find(|it| INTENTS.contains(&&***it));
        let told = intent.map(|intent| format!("intents holds {intent}"));
        told.or_else(|| Some(format!("the text says {}", found(task, CHANGES).next()?)))
    }

    fn went_on(&self) -> Option<String> {
        let steps = self.past_steps.filter(|steps| *steps > MANY_STEPS)?;
        Some(format!("{steps} steps were taken before"))
    }
}

impl Complexity {
    /// As records tell it.
    pub fn told(&self) -> Value {
        let signals = self.signals.iter().map(
            |Signal { name, points, because }| json!({ "name": name, "points": points, "because": because }),
        );
        json!({
            "score": self.score,
            "threshold": self.threshold,
            "overridden": self.is_overridden,
            "signals": signals.collect::<Vec<_>>(),
        })
    }
}

/// The longest text that is short, in characters.
const SHORT: usize = 100;

/// More steps than these speak for a complex task.
const MANY_STEPS: u64 = 10;

/// The intents that change code.
const INTENTS: [&str; 2] = ["code_modify", "development"];

/// The words for changing code.
const CHANGES: &[&str] = &[
    "fix",
    "implement",
    "refactor",
    "rewrite",
    "migrate",
    "patch",
    "修复",
    "修改",
    "实现",
    "重构",
    "迁移",
];

/// The words that put steps in order.
const SEQUENCE: &[&str] =
    &["then", "finally", "after that", "先", "再", "然后", "最后", "之后", "接着"];

fn long(task: &str) -> Option<String> {
    let length = task.chars().count();
    (length > SHORT).then(|| format!("the text has {length} characters, over {SHORT}"))
}

fn sequence(task: &str) -> Option<String> {
    let found: Vec<&str> = found(task, SEQUENCE).collect();
    (found.len() >= 2).then(|| format!("the text has sequence words: {}", found.join(", ")))
}

/// The words of a list that stand in `text`, as often as each does: those of letters with blanks
/// between them as whole words, in any case; those of Han characters anywhere.
fn found<'w>(text: &str, list: &'w [&'w str]) -> impl Iterator<Item = &'w str> {
    let words = text.split(|c| !is_word_letter(c)).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let han = text.to_owned();
    list.iter().flat_map(move |word| {
        let times = if word.is_ascii() {
            let parts: Vec<&str> = word.split(' ').collect();
            words.windows(parts.len()).filter(|window| *window == &parts[..]).count()
        } else {
            han.matches(word).count()
        };
        std::iter::repeat_n(*word, times)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(task: &str) -> u64 {
        Weighing::default().of(task).score
    }

    fn path(weighing: &Weighing, task: &str) -> Path {
        weighing.of(task).path
    }

    #[test]
    fn only_a_text_of_over_a_hundred_characters_is_long() {
        assert_eq!((score(&"x".repeat(100)), score(&"x".repeat(101))), (0, 1));
        assert_eq!((score(&"道".repeat(100)), score(&"道".repeat(101))), (0, 1));
    }

    #[test]
    fn a_word_for_changing_code_counts_as_a_whole_word_in_any_case() {
        for task in
            ["Fix it", "please IMPLEMENT x", "a patch!", "修复它", "请重构模块", "迁移到新版"]
        {
            assert_eq!(score(task), 2, "{task}");
        }
        for task in ["a prefix", "an implementation", "fixtures", "a suffix", "修理"] {
            assert_eq!(score(task), 0, "{task}");
        }
    }

    #[test]
    fn an_intent_that_changes_code_counts_as_a_word_for_it_does_and_both_count_once() {
        let intends =
            |intent: &str| Weighing { intents: vec![intent.into()], ..Weighing::default() };
        assert_eq!(intends("code_modify").of("look").score, 2);
        assert_eq!(intends("development").of("fix").score, 2);
        assert_eq!(intends("chat").of("look").score, 0);
    }

    #[test]
    fn two_sequence_words_are_a_sequence_and_one_is_none() {
        assert_eq!(score("look, then tell"), 0);
        assert_eq!(score("look, then think, then tell"), 1);
        assert_eq!(score("look; after that tell; Finally sleep"), 1);
        assert_eq!(score("先看"), 0);
        assert_eq!(score("先看再说"), 1);
        assert_eq!(score("authentication"), 0, "no word by itself");
    }

    #[test]
    fn over_ten_steps_before_count_one() {
        let after = |steps| Weighing { past_steps: Some(steps), ..Weighing::default() };
        assert_eq!((after(10).of("x").score, after(11).of("x").score), (0, 1));
    }

    #[test]
    fn strictly_below_the_threshold_is_simple_and_the_author_has_the_last_word() {
        let given = |complexity, threshold, path| Weighing {
            threshold,
            complexity,
            path,
            ..Weighing::default()
        };
        assert_eq!(path(&given(Some(2), 2, None), "x"), Path::Roles);
        assert_eq!(path(&given(Some(1), 2, None), "fix it"), Path::Single);
        assert_eq!(path(&given(Some(9), 2, Some(Path::Single)), "x"), Path::Single);
        assert_eq!(path(&given(None, 0, None), "x"), Path::Roles);
        assert_eq!(path(&given(None, 2, None), "fix it"), Path::Roles);
    }

    #[test]
    fn a_record_tells_what_the_score_is_made_of() {
        let told = Weighing::default().of("先修复，然后测试").told();
        assert_eq!(
            told.to_string(),
            r#"{"score":3,"threshold":2,"overridden":false,"signals":[{"name":"code_change","points":2,"because":"the text says 修复"},{"name":"sequence","points":1,"because":"the text has sequence words: 先, 然后"}]}"#
        );
        let given = Weighing { complexity: Some(9), ..Weighing::default() };
        assert_eq!(
            given.of("fix").told().to_string(),
            r#"{"score":9,"threshold":2,"overridden":true,"signals":[]}"#
        );
    }
}
