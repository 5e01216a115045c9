//! What a reviewer says of the work (agents.md §7, collaborate.md §8).

use serde_json::{Value, json};

use crate::{
    call::Answer,
    text::shorten,
    verdict::{Finding, Object, Reading, VERDICTS, Verdict, Words},
    words::Language,
};

/// The most characters that are shown of a review that lists its findings in prose.
pub(crate) const LONGEST: usize = 6000;

/// What is asked for in words; an object may say it in all the words of a verdict.
const WORDS: Words<'static, bool> = Words {
    key: "verdict",
    labels: &["verdict", "结论", "评审结论"],
    words: &[("pass", true), ("issues", false)],
    guarded: &[true],
    blocking: Some(false),
    lesser: None,
};

/// Whether the work passes. Lesser findings without a verdict let it pass: nothing blocks.
pub(super) fn passes(answer: &Answer) -> Reading<bool> {
    let has_object = matches!(Object::find(answer, VERDICTS.key), Ok(Some(_)) | Err(_));
    if !has_object {
        return WORDS.read(answer);
    }
    match VERDICTS.read(answer) {
        Reading::Value(Verdict::Approve | Verdict::NoBlocking) => Reading::Value(true),
        Reading::Value(Verdict::RequestChanges) => Reading::Value(false),
        Reading::Value(
            Verdict::NeedsInput | Verdict::Adopt | Verdict::Reject | Verdict::Modify,
        )
        | Reading::None => Reading::None,
        Reading::Ambiguous(_) => Reading::Ambiguous(vec![true, false]),
        Reading::Unreadable(why) => Reading::Unreadable(why),
    }
}

/// Whether a role cannot go on before a person has answered: a verdict that says so, or the word by
/// itself. A question in what it made for the task is none of its own.
pub(crate) fn asks(answer: &Answer) -> bool {
    let asked = match Object::find(answer, VERDICTS.key) {
        Ok(Some(_)) => VERDICTS.read(answer).value() == Some(Verdict::NeedsInput),
        Ok(None) => false,
        Err(_) => return false,
    };
    asked || answer.json.is_none() && NEEDS.read(answer).value() == Some(())
}

/// The word by which a role asks.
const NEEDS: Words<'static, ()> = Words {
    key: "verdict",
    labels: &["verdict"],
    words: &[("needs_input", ())],
    guarded: &[],
    blocking: None,
    lesser: None,
};

/// The question, in the words of its object if it has one.
pub(super) fn question(answer: &Answer) -> String {
    let object = Object::find(answer, VERDICTS.key).ok().flatten();
    let asked = object.as_ref().and_then(|it| it.get("question")?.as_str());
    asked.unwrap_or(&answer.text).trim().to_owned()
}

/// What a review that does not let the work pass found: its list, else all that it says.
pub(super) fn findings(answer: &Answer, language: Language) -> Vec<Value> {
    let listed = Object::find(answer, VERDICTS.key).ok().flatten().and_then(|it| it.findings());
    let listed = listed.unwrap_or_default();
    if listed.is_empty() {
        return vec![json!({ "text": shorten(answer.text.trim(), LONGEST, language) })];
    }
    listed.iter().map(told).collect()
}

fn told(Finding { severity, place, text }: &Finding) -> Value {
    let mut told = json!({ "severity": severity, "text": text });
    if !place.is_empty() {
        told["place"] = place.as_str().into();
    }
    told
}

/// The findings as the next prompt shows them, one a line.
pub(crate) fn shown(answer: &Answer, language: Language) -> String {
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        let severity = match text("severity") {
            "" => String::new(),
            severity => format!("[{severity}] "),
        };
        let place = match text("place") {
            "" => String::new(),
            place => format!("{place}: "),
        };
        format!("- {severity}{place}{}", text("text"))
    };
    let lines: Vec<String> = findings(answer, language).iter().map(line).collect();
    shorten(&lines.join("\n"), LONGEST, language).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<bool> {
        passes(&Answer::text(text)).value()
    }

    fn object(value: Value) -> Option<bool> {
        passes(&Answer::json(value)).value()
    }

    #[test]
    fn pass_and_issues_count_by_themselves_or_behind_their_label() {
        for text in ["PASS", "pass.", "All is well.\n**PASS**", "Verdict: PASS", "PASS: nice work"]
        {
            assert_eq!(read(text), Some(true), "{text}");
        }
        for text in ["ISSUES", "ISSUES: two of them\n- a\n- b", "verdict: issues"] {
            assert_eq!(read(text), Some(false), "{text}");
        }
    }

    #[test]
    fn what_is_neither_or_both_or_only_mentioned_is_no_review() {
        for text in [
            "hm",
            "",
            "PASS\nISSUES",
            "I would say this should pass now",
            "LGTM",
            "PASS: once x is fixed",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn an_object_decides_alone_and_a_blocking_finding_blocks_whatever_it_says() {
        let finding = |severity: &str| json!([{ "severity": severity, "text": "x" }]);
        assert_eq!(object(json!({ "verdict": "PASS" })), Some(true));
        assert_eq!(object(json!({ "verdict": "approved" })), Some(true));
        assert_eq!(object(json!({ "verdict": "issues" })), Some(false));
        assert_eq!(
            object(json!({ "verdict": "PASS", "findings": finding("blocking") })),
            Some(false)
        );
        assert_eq!(object(json!({ "findings": finding("critical") })), Some(false));
        assert_eq!(object(json!({ "findings": finding("major") })), Some(true));
        assert_eq!(object(json!({ "verdict": "ISSUES", "findings": finding("nit") })), Some(false));
        assert_eq!(object(json!({ "verdict": "maybe" })), None);
        assert_eq!(object(json!({ "verdict": "adopt" })), None);
        assert_eq!(object(json!({ "summary": "PASS" })), None);
        assert_eq!(read("PASS\n```json\n{\"verdict\": \"issues\"}\n```"), Some(false));
    }

    #[test]
    fn a_role_asks_by_its_verdict_or_by_the_word_alone() {
        for text in ["NEEDS_INPUT", "Which one?\nNEEDS_INPUT: which one?", "verdict: needs_input"] {
            assert!(asks(&Answer::text(text)), "{text}");
        }
        let asked = Answer::json(json!({ "verdict": "needs_input", "question": " which? " }));
        assert!(asks(&asked));
        assert_eq!(question(&asked), "which?");
        for text in ["PASS", "It says NEEDS_INPUT somewhere in it", "{\"question\": \"2 + 2?\"}"] {
            assert!(!asks(&Answer::text(text)), "{text}");
        }
    }

    #[test]
    fn the_next_coder_is_shown_what_was_listed_or_all_that_was_said() {
        let listed = json!({ "verdict": "issues", "summary": "s", "findings": [
            { "severity": "blocking", "place": "a.rs:1", "text": "x" },
            { "severity": "nit", "text": "y" },
        ]});
        let shown = |answer: &Answer| shown(answer, Language::English);
        assert_eq!(shown(&Answer::json(listed)), "- [blocking] a.rs:1: x\n- [nit] y");
        assert_eq!(shown(&Answer::text("ISSUES: all of it ")), "- ISSUES: all of it");
    }
}
