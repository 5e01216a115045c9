//! Words out of a closed set: by themselves, or behind their label (collaborate.md §8.3).

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Object, Reading, Unreadable,
    clean::{prose, sentences},
    excerpt,
    forms::{Closed, is_bare},
    lines::unlisted,
    object::illegal,
};
use crate::call::Answer;

/// A closed set of words that a reply is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a, T> {
    /// The key under which an object holds the word.
    pub key: &'a str,
    /// What may stand before the word and a colon at the start of a sentence.
    pub labels: &'a [&'a str],
    /// The words and what they mean; case, blanks, hyphens and underscores do not matter.
    pub words: &'a [(&'a str, T)],
    /// The meanings that a remark with a condition, a negation or a question voids: an approval that
    /// is not unmistakable is none.
    pub guarded: &'a [T],
    /// What a blocking finding means, whatever the word says.
    pub blocking: Option<T>,
    /// What findings without a blocking one mean, if the object has no word.
    pub lesser: Option<T>,
}

/// What a structured verdict says (collaborate.md §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The work is accepted.
    Approve,
    /// It is not.
    RequestChanges,
    /// Only lesser findings are reported.
    NoBlocking,
    /// A person has to say something first.
    NeedsInput,
    /// A ruling: do it.
    Adopt,
    /// A ruling: leave it.
    Reject,
    /// A ruling: do it differently.
    Modify,
}

/// The verdicts of patterns and roles.
pub const VERDICTS: Words<'static, Verdict> = Words {
    key: "verdict",
    labels: &["verdict"],
    words: &[
        ("approve", Verdict::Approve),
        ("approved", Verdict::Approve),
        ("lgtm", Verdict::Approve),
        ("converged", Verdict::Approve),
        ("pass", Verdict::Approve),
        ("request_changes", Verdict::RequestChanges),
        ("blocking", Verdict::RequestChanges),
        ("issues", Verdict::RequestChanges),
        ("needs_input", Verdict::NeedsInput),
        ("adopt", Verdict::Adopt),
        ("reject", Verdict::Reject),
        ("modify", Verdict::Modify),
    ],
    guarded: &[Verdict::Approve],
    blocking: Some(Verdict::RequestChanges),
    lesser: Some(Verdict::NoBlocking),
};

/// What a reply says about work that was reviewed along a graph (graph.md §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// The work is good.
    Approve,
    /// It is not.
    Reject,
}

impl Review {
    /// Its word in team files and expressions.
    pub fn as_str(self) -> &'static str {
        match self {
            Review::Approve => "approve",
            Review::Reject => "reject",
        }
    }
}

/// The reviews of graphs.
pub const REVIEWS: Words<'static, Review> = Words {
    key: "verdict",
    labels: &["verdict", "decision", "status", "结论", "评审结论"],
    words: &[
        ("approve", Review::Approve),
        ("approved", Review::Approve),
        ("accept", Review::Approve),
        ("accepted", Review::Approve),
        ("lgtm", Review::Approve),
        ("pass", Review::Approve),
        ("passed", Review::Approve),
        ("converged", Review::Approve),
        ("通过", Review::Approve),
        ("审查通过", Review::Approve),
        ("评审通过", Review::Approve),
        ("审核通过", Review::Approve),
        ("批准", Review::Approve),
        ("已批准", Review::Approve),
        ("同意", Review::Approve),
        ("reject", Review::Reject),
        ("rejected", Review::Reject),
        ("not approved", Review::Reject),
        ("not accepted", Review::Reject),
        ("changes requested", Review::Reject),
        ("request changes", Review::Reject),
        ("needs changes", Review::Reject),
        ("needs revision", Review::Reject),
        ("revise", Review::Reject),
        ("fail", Review::Reject),
        ("failed", Review::Reject),
        ("blocking", Review::Reject),
        ("不通过", Review::Reject),
        ("未通过", Review::Reject),
        ("驳回", Review::Reject),
        ("拒绝", Review::Reject),
        ("不同意", Review::Reject),
        ("不批准", Review::Reject),
        ("需要修改", Review::Reject),
        ("需修改", Review::Reject),
        ("打回", Review::Reject),
    ],
    guarded: &[Review::Approve],
    blocking: Some(Review::Reject),
    lesser: None,
};

/// The answers of a judge that is asked whether something has converged (graph.md §11).
const CONVERGED: Words<'static, bool> = Words {
    key: "converged",
    labels: &["converged"],
    words: &[
        ("yes", true),
        ("converged", true),
        ("是", true),
        ("已收敛", true),
        ("no", false),
        ("not converged", false),
        ("否", false),
        ("未收敛", false),
    ],
    guarded: &[true],
    blocking: None,
    lesser: None,
};

/// Reads the answer of a judge: a truth value in its object, else a yes or no by itself.
pub fn converged(answer: &Answer) -> Reading<bool> {
    match Object::find(answer, CONVERGED.key) {
        Err(why) => Reading::Unreadable(why),
        Ok(Some(object)) => match object.get(CONVERGED.key) {
            None => Reading::None,
            Some(Value::Bool(converged)) => Reading::Value(*converged),
            Some(other) => Reading::Unreadable(illegal(CONVERGED.key, other)),
        },
        Ok(None) => CONVERGED.read(answer),
    }
}

/// What the lead, or a person, says to a step that failed (graph.md §12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The agent is asked again.
    Retry,
    /// It goes on without it.
    Skip,
    /// Its branch ends.
    Stop,
}

/// The decisions about steps that failed.
pub const DECISIONS: Words<'static, Decision> = Words {
    key: "decision",
    labels: &["decision", "决定"],
    words: &[
        ("retry", Decision::Retry),
        ("skip", Decision::Skip),
        ("stop", Decision::Stop),
        ("重试", Decision::Retry),
        ("跳过", Decision::Skip),
        ("停止", Decision::Stop),
    ],
    guarded: &[],
    blocking: None,
    lesser: None,
};

/// What a sentence says where a word is due.
enum Saying<T> {
    /// The word by itself.
    Word(T),
    /// A label, and the word behind it if there is one.
    Labelled(Option<T>),
    /// A label that leads over to what follows.
    Announced,
}

impl<T: Copy + PartialEq> Words<'_, T> {
    /// Reads `answer`: its object if it has one, else its sentences.
    ///
    /// The last label decides; a word by itself that says otherwise makes the reply ambiguous.
    pub fn read(&self, answer: &Answer) -> Reading<T> {
        let closed = Closed::new(self.words, self.labels);
        match Object::before_words(answer, self.key, &[self.key, "findings"]) {
            Err(why) => Reading::Unreadable(why),
            Ok(Some(object)) => self.read_object(&closed, &object),
            Ok(None) => self.read_prose(&closed, &prose(&answer.text)),
        }
    }

    /// The text that stands in the object of `answer` beside its word, under `key`.
    pub fn beside(&self, answer: &Answer, key: &str) -> Option<String> {
        let object = Object::find(answer, self.key).ok().flatten()?;
        Some(object.get(key)?.as_str()?.to_owned())
    }

    fn read_object(&self, closed: &Closed<T>, object: &Object) -> Reading<T> {
        let findings = object.findings();
        let blocks = findings.iter().flatten().any(|finding| finding.severity.blocks());
        if let Some(blocking) = self.blocking.filter(|_| blocks) {
            return Reading::Value(blocking);
        }
        let Some(value) = object.get(self.key) else {
            return self
                .lesser
                .filter(|_| findings.is_some())
                .map_or(Reading::None, Reading::Value);
        };
        match value.as_str().map(|text| closed.meaning(text)) {
            Some(Reading::Value(meaning)) => Reading::Value(meaning),
            _ => Reading::Unreadable(illegal(self.key, value)),
        }
    }

    fn read_prose(&self, closed: &Closed<T>, prose: &str) -> Reading<T> {
        let (mut words, mut label, mut near_miss) = (Vec::new(), None, None);
        for sentence in sentences(prose) {
            match self.saying(closed, unlisted(sentence.text).unwrap_or(sentence.text)) {
                Some(Saying::Word(meaning)) => words.push(meaning),
                Some(Saying::Labelled(meaning)) => label = Some((meaning, sentence.text)),
                Some(Saying::Announced) => label = None,
                None if near_miss.is_none() && comes_close(closed, sentence.text) => {
                    near_miss = Some(sentence.text);
                }
                None => {}
            }
        }
        let refused = |text| Reading::Unreadable(Unreadable::NearMiss(excerpt(text)));
        match label {
            Some((None, text)) => refused(text),
            Some((Some(meaning), _)) => Reading::one_of(words.into_iter().chain([meaning])),
            None if words.is_empty() => near_miss.map_or(Reading::None, refused),
            None => Reading::one_of(words),
        }
    }

    fn saying(&self, closed: &Closed<T>, sentence: &str) -> Option<Saying<T>> {
        let behind_label = closed.behind_label(sentence);
        let labelled = behind_label.and_then(|value| self.with_remark(closed, value));
        if labelled.is_some() {
            return Some(Saying::Labelled(labelled));
        }
        if let Some(meaning) = self.with_remark(closed, sentence) {
            return Some(Saying::Word(meaning));
        }
        behind_label.map(
            |value| {
                if is_bare(value) { Saying::Announced } else { Saying::Labelled(None) }
            },
        )
    }

    /// What `text` means: a word, at most with a remark behind a colon that does not void it.
    fn with_remark(&self, closed: &Closed<T>, text: &str) -> Option<T> {
        let (word, remark) = text.split_once([':', '：']).unwrap_or((text, ""));
        let holds = |meaning: &T| !self.guarded.contains(meaning) || !is_reserved(remark);
        closed.meaning(word).value().filter(holds)
    }
}

/// Whether what leads a sentence is a word or nearly one, so that its refusal should be told.
fn comes_close<T: Copy + PartialEq>(closed: &Closed<T>, sentence: &str) -> bool {
    let head = sentence.split([',', '，', ':', '：', '(', '（', '?', '？', '–', '—']).next();
    head.is_some_and(|head| closed.comes_close(head))
}

/// Whether `remark` takes back what it stands behind: it holds a condition or a negation, begins with
/// a no, or asks.
fn is_reserved(remark: &str) -> bool {
    static RESERVED: LazyLock<Regex> = LazyLock::new(|| {
        let words = "if|once|when|after|until|unless|but|not|provided|before|except|cannot|never";
        let parts = r"n['’]t\b|[?？]|如果|只要|除非|之后|但|不|^\W*(?:(?:no|false)\b|否)";
        Regex::new(&format!(r"(?i)\b(?:{words})\b|{parts}")).expect("the pattern is sound")
    });
    RESERVED.is_match(remark)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Reading<Verdict> {
        VERDICTS.read(&Answer::text(text))
    }

    fn near_miss(text: &str) -> Reading<Verdict> {
        Reading::Unreadable(Unreadable::NearMiss(text.into()))
    }

    #[test]
    fn the_word_by_itself_counts_however_it_is_dressed() {
        for text in [
            "APPROVED",
            "approved.",
            "**Approved!** 🎉",
            "ＡＰＰＲＯＶＥＤ。",
            "All tests ran. Approved. Well done",
            "Two remarks.\n\n- __LGTM__ ✔\n\nBye",
            "1) pass",
            "### `converged`",
            "app\u{200D}roved\u{FEFF}",
            "LGTM: nice work, nothing to add",
            "<think>reject</think>pass",
        ] {
            assert_eq!(read(text), Reading::Value(Verdict::Approve), "{text}");
        }
        assert_eq!(read("REQUEST CHANGES"), Reading::Value(Verdict::RequestChanges));
        assert_eq!(read("Needs-Input: which database?"), Reading::Value(Verdict::NeedsInput));
        assert_eq!(read("ISSUES: not tested yet"), Reading::Value(Verdict::RequestChanges));
    }

    #[test]
    fn the_last_label_counts() {
        assert_eq!(read("**Verdict:** approve"), Reading::Value(Verdict::Approve));
        assert_eq!(read("verdict：`REJECT`。"), Reading::Value(Verdict::Reject));
        assert_eq!(
            read("Verdict: approve\nVerdict: modify: later"),
            Reading::Value(Verdict::Modify)
        );
        assert_eq!(read("Verdict: approve. Verdict: unclear."), near_miss("Verdict: unclear."));
        assert_eq!(read("Verdict: modify\n**Verdict:**\n\nADOPT"), Reading::Value(Verdict::Adopt));
        assert_eq!(read("Verdict: modify\nVerdict:"), Reading::None);
    }

    #[test]
    fn a_word_inside_a_sentence_is_nothing() {
        for text in [
            "The word approved stands here.",
            "These tests pass",
            "I would say it is approved",
            "Write \"APPROVED\" when you agree.",
            "```\nAPPROVED\n```",
            "> APPROVED\n",
            "~~~\nVerdict: approve",
            "The final verdict: approve",
            "",
        ] {
            assert_eq!(read(text), Reading::None, "{text}");
        }
    }

    #[test]
    fn what_comes_close_and_does_not_count_is_told() {
        for text in [
            "APPROVED?",
            "LGTM, but fix the typo first",
            "Aproved",
            "Approved: once the tests pass",
            "CONVERGED: no, two things remain",
            "LGTM: 但请先修复",
            "Pass (with nits)",
        ] {
            assert_eq!(read(text), near_miss(text), "{text}");
        }
        assert_eq!(read("APPROVED?\nreject"), Reading::Value(Verdict::Reject));
    }

    #[test]
    fn different_words_in_one_reply_are_ambiguous() {
        let both = Reading::Ambiguous(vec![Verdict::Approve, Verdict::Reject]);
        assert_eq!(read("APPROVED\nREJECT"), both);
        assert_eq!(read("Approved.\nVerdict: reject"), both);
        assert_eq!(read("APPROVED\nlgtm"), Reading::Value(Verdict::Approve));
    }

    #[test]
    fn an_object_decides_alone() {
        let object = |value| VERDICTS.read(&Answer::json(value));
        assert_eq!(object(json!({"verdict": " LGTM "})), Reading::Value(Verdict::Approve));
        assert_eq!(
            object(json!({"verdict": "fine"})),
            Reading::Unreadable(Unreadable::Illegal {
                key: "verdict".into(),
                found: "\"fine\"".into()
            })
        );
        assert_eq!(object(json!({"score": 3})), Reading::None);
        assert_eq!(
            read("APPROVED\n```\n{\"verdict\": \"reject\"}\n```"),
            Reading::Value(Verdict::Reject)
        );
        assert_eq!(
            read("APPROVED\n```\n{\"verdict\": \"rej"),
            Reading::Unreadable(Unreadable::CutOff)
        );
        assert_eq!(read("APPROVED\n```\n{\"score\": 1}\n```"), Reading::None);
    }

    #[test]
    fn no_word_stands_in_for_an_object_that_is_misplaced() {
        for text in [
            "APPROVED\n{\"verdict\": \"undecided\"}",
            "{\"verdict\": \"request_changes\"}\n\nLGTM",
            "Approved.\n\n  {\n  \"verdict\": \"rej",
            "APPROVED\n```json\n{\"verdict\": \"reject\"}\n```\nthe test:\n```sh\nls\n```",
            "APPROVED\n{'verdict': 'reject'}\nbye",
            "APPROVED\n\u{FEFF}{\"verdict\": \"reject\"}\nbye",
            "APPROVED\n\n{\n  verdict: \"reject\"\n}",
            "PASS\n{\"findings\": [{\"severity\": \"blocking\", \"text\": \"x\"}]}\nbye",
        ] {
            assert!(matches!(read(text), Reading::Unreadable(_)), "{text}: {:?}", read(text));
        }
        for text in [
            "APPROVED\n{\"name\": 1}",
            "The field {\"verdict\": \"reject\"} is documented.\nAPPROVED",
            "> {\"verdict\": \"reject\"}\nAPPROVED",
            "<think>\n{\"verdict\": \"reject\"}</think>\nAPPROVED",
            "<reply from=\"x\">\n{\"verdict\": \"reject\"}\n</reply>\nAPPROVED",
            "APPROVED\n{ a \"verdict\" }",
            "{\"name\": 1}\nVerdict: approve",
            "{ color: red }\nVerdict: approve",
            "```css\r\n{ color: red; }\r\n```\r\nVerdict: approve",
            "{\n  let x;\n}\nVerdict: approve",
        ] {
            assert_eq!(read(text), Reading::Value(Verdict::Approve), "{text}");
        }
    }

    #[test]
    fn long_and_hostile_replies_are_read_at_once() {
        for unit in
            ["{\"a\":1} ", "{\n", "{\"verdic\":\n", "\"", "```\n{", "> {} ", "<think>", "，{a}\n"]
        {
            let text = unit.repeat((1 << 18) / unit.len());
            assert!(read(&text).value().is_none(), "{unit}");
        }
    }

    #[test]
    fn a_blocking_finding_blocks_whatever_the_word_says() {
        let with = |severity: &str| json!({"verdict": "approve", "findings": [{"severity": severity, "text": "t"}]});
        let read = |value| VERDICTS.read(&Answer::json(value));
        assert_eq!(read(with("CRITICAL")), Reading::Value(Verdict::RequestChanges));
        assert_eq!(read(with("major")), Reading::Value(Verdict::Approve));
        let lesser = json!({"findings": [{"severity": "nit", "text": "t"}]});
        assert_eq!(read(lesser), Reading::Value(Verdict::NoBlocking));
        assert_eq!(read(json!({"findings": []})), Reading::Value(Verdict::NoBlocking));
    }

    #[test]
    fn a_label_may_be_a_word_too() {
        let converged = Words {
            key: "converged",
            labels: &["converged"],
            words: &[("yes", true), ("converged", true), ("no", false), ("not converged", false)],
            guarded: &[true],
            blocking: None,
            lesser: None,
        };
        let read = |text: &str| converged.read(&Answer::text(text));
        assert_eq!(read("Both are fixed.\nConverged: yes"), Reading::Value(true));
        assert_eq!(read("CONVERGED: all is fixed"), Reading::Value(true));
        assert_eq!(read("converged: no"), Reading::Value(false));
        assert_eq!(read("NOT CONVERGED: tests are missing"), Reading::Value(false));
        assert_eq!(read("YES\nNO"), Reading::Ambiguous(vec![true, false]));
        assert_eq!(read("It depends."), Reading::None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn prose_around_never_becomes_a_verdict(words in "[a-z]{1,3}( [a-z]{1,9}){2,12}") {
            let text = format!("{words} approved {words}");
            prop_assert!(!matches!(read(&text), Reading::Value(_)));
        }

        #[test]
        fn any_reply_is_read(text in "(APPROVED|Verdict|[:：.?!*\n\"`>{} ]|\\PC){0,30}") {
            let _ = read(&text);
        }
    }
}
