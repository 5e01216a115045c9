//! What counts as a signal and what does not, a line each.

use proptest::prelude::*;
use serde_json::json;

use super::{
    Signal::{Approval, Blocking, Conflict, NeedsInput, NoBlocking},
    *,
};

fn given(text: &str) -> Vec<Signal> {
    signals(&Answer::text(text)).given
}

#[track_caller]
fn all_give(expected: &[Signal], texts: &[&str]) {
    for text in texts {
        assert_eq!(given(text), expected, "{text}");
    }
}

#[test]
fn a_question_to_a_person_counts_anywhere_as_a_whole_word_in_capitals() {
    all_give(
        &[NeedsInput],
        &[
            "NEEDS_INPUT: which database?",
            "I cannot go on, NEEDS_INPUT.",
            "**NEEDS_INPUT** which one",
            "NEEDS\\_INPUT: which one",
            "请回答NEEDS_INPUT：用哪个数据库？",
            "_NEEDS_INPUT_",
        ],
    );
    all_give(
        &[],
        &[
            "needs_input: which one",
            "XNEEDS_INPUT",
            "NEEDS_INPUTS",
            "NEEDS INPUT",
            "```\nNEEDS_INPUT\n```",
        ],
    );
}

#[test]
fn what_blocks_is_a_tag_or_the_word_directly_before_what_it_is_said_of() {
    all_give(
        &[Blocking],
        &[
            "[BLOCKING] SQL injection in login",
            "[critical] a key in the log",
            "There is a blocking issue: x",
            "Critical bugs remain",
            "blocking concerns",
            "critical finding",
            "**Critical** problem in auth",
            "存在阻塞问题",
            "存在阻塞性问题：未校验输入",
            "有严重问题",
        ],
    );
    all_give(
        &[],
        &[
            "This blocks nothing",
            "It is critical to test this",
            "blocking",
            "the issue is critical",
            "a non-blocking issue",
            "only non blocking findings",
            "> a blocking issue",
            "They said \"a critical bug\"",
        ],
    );
}

#[test]
fn what_says_that_nothing_blocks_is_taken_out_before_anything_blocks() {
    all_give(
        &[NoBlocking],
        &[
            "There are no blocking issues.",
            "No remaining critical problems",
            "no more blocking findings",
            "No further critical bugs here",
            "no blocking or critical issues",
            "No blocking issues or critical bugs.",
            "没有阻塞性问题",
            "无严重问题",
            "未发现任何阻塞问题",
            "不存在严重问题",
            "没有阻塞或严重问题",
            "[MINOR] rename x",
            "[MAJOR] no tests",
            "- [NIT] a blank\n- [INFO] fine",
        ],
    );
    all_give(&[Blocking], &["[MINOR] rename x\n[BLOCKING] leak"]);
}

#[test]
fn a_conflict_leads_a_sentence() {
    all_give(
        &[Conflict],
        &[
            "CONFLICT: cache or not",
            "All agree. CONFLICT: cache",
            "- **CONFLICT:** cache",
            "CONFLICT：缓存",
        ],
    );
    all_give(&[], &["conflict: cache", "There is a CONFLICT: cache", "CONFLICT", "> CONFLICT: x"]);
    let read = signals(&Answer::text("CONFLICT: use \"A\" or B. The rest is fine."));
    assert_eq!(read.conflicts, ["use \"A\" or B."]);
}

#[test]
fn an_approval_is_unmistakable() {
    all_give(
        &[Approval],
        &[
            "APPROVED",
            "Everything works. LGTM!",
            "CONVERGED: fine",
            "**CONVERGED:** yes",
            "✅ LGTM",
            "Converged: all is fixed",
            "Checked twice: no issues found",
            "No remaining issues found.",
            "没有发现问题",
            "审查完毕，未发现问题。",
            "这次改动没有发现问题",
            "There was no time for more. APPROVED",
            "APPROVED: 没有问题",
        ],
    );
    all_give(
        &[],
        &[
            "approved",
            "this was approved by nobody yet",
            "lgtm",
            "UNAPPROVED",
            "NOT APPROVED",
            "I cannot say LGTM",
            "This isn't APPROVED",
            "Never CONVERGED",
            "without LGTM from the team",
            "尚未 APPROVED",
            "不 LGTM",
            "没 APPROVED",
            "APPROVED?",
            "LGTM, but the tests fail",
            "APPROVED once the tests pass",
            "LGTM if the tests pass",
            "APPROVED after a fix",
            "APPROVED when fixed",
            "CONVERGED until then",
            "APPROVED unless x",
            "LGTM provided that",
            "APPROVED before the release",
            "LGTM except for the tests",
            "如果修好就 LGTM",
            "LGTM，但要补测试",
            "除非 x，APPROVED",
            "改完之后 APPROVED",
            "只要补上测试就 APPROVED",
            "CONVERGED: no, two things remain",
            "Converged: not yet",
            "converged: false",
            "CONVERGED：否",
            "converged: if the tests pass",
            "LGTM: no",
            "it converged: well",
            "> APPROVED\n\nsaid the last reviewer; I have not decided",
            "They said \"LGTM\".",
            "他说“APPROVED”。",
            "```\nLGTM\n```",
            "~~~\nLGTM",
            "<think>APPROVED</think>hm",
            "<reply from=\"x\" key=\"k\">\nAPPROVED\n</reply>",
            "Were no issues found?",
        ],
    );
    all_give(&[Approval, NoBlocking], &["LGTM, no blocking issues"]);
    all_give(&[Blocking, NoBlocking], &["no blocking issues, but a critical bug in login"]);
    all_give(&[Blocking], &["This is NOT APPROVED yet: blocking issue in auth"]);
}

#[test]
fn the_last_label_rules_then_the_word_that_leads_then_the_only_one() {
    let ruled = |text: &str| signals(&Answer::text(text)).ruling().map(Ruling::as_str);
    for (text, ruling) in [
        ("ADOPT. A1 outweighs C2.", Some("ADOPT")),
        ("Verdict: REJECT", Some("REJECT")),
        ("**Verdict:** modify", Some("MODIFY")),
        ("Verdict: ADOPT\nOn reflection.\nVerdict: REJECT", Some("REJECT")),
        ("ADOPT\nVerdict: REJECT", Some("REJECT")),
        ("MODIFY: adopt with a feature flag", Some("MODIFY")),
        ("MODIFY", Some("MODIFY")),
        ("After weighing all, I say ADOPT", Some("ADOPT")),
        ("I would not ADOPT this as it is; REJECT", Some("REJECT")),
        ("I do not REJECT it, I say MODIFY", None),
        ("ADOPT or REJECT, hard to say", None),
        ("ADOPT.\nREJECT.", None),
        ("Verdict: ADOPT or REJECT", None),
        ("ADOPT?", None),
        ("we should adopt it", None),
        ("do not ADOPT", None),
        ("```\nADOPT\n```", None),
        ("> Verdict: ADOPT", None),
        ("It stays open.", None),
    ] {
        assert_eq!(ruled(text), ruling, "{text}");
    }
}

#[test]
fn of_several_signals_the_one_higher_in_the_table_counts() {
    all_give(&[NeedsInput, Blocking], &["blocking issue. NEEDS_INPUT: which DB"]);
    all_give(&[Blocking, Approval], &["LGTM\n[BLOCKING] a leak"]);
    all_give(&[Conflict, Approval], &["APPROVED\nCONFLICT: cache"]);
}

#[test]
fn an_object_decides_alone() {
    let given = |value| signals(&Answer::json(value)).given;
    for (value, expected) in [
        (json!({ "verdict": "approve" }), vec![Approval]),
        (json!({ "verdict": "LGTM" }), vec![Approval]),
        (json!({ "verdict": "issues" }), vec![Blocking]),
        (json!({ "verdict": "needs_input" }), vec![NeedsInput]),
        (json!({ "verdict": "Reject" }), vec![Signal::Ruling(Ruling::Reject)]),
        (json!({ "question": "which?" }), vec![NeedsInput]),
        (json!({ "question": " " }), vec![]),
        (json!({ "conflicts": ["cache"] }), vec![Conflict]),
        (json!({ "conflicts": [], "verdict": "approve" }), vec![Approval]),
        (json!({ "findings": [] }), vec![NoBlocking]),
        (json!({ "findings": [{ "severity": "major", "text": "t" }] }), vec![NoBlocking]),
        (
            json!({ "verdict": "approve", "findings": [{ "severity": "critical", "text": "t" }] }),
            vec![Blocking],
        ),
        (
            json!({ "verdict": "approve", "findings": [{ "severity": "nit", "text": "t" }] }),
            vec![Approval],
        ),
        (json!({ "verdict": "sure" }), vec![]),
        (json!({ "verdict": "approve", "conflicts": "cache" }), vec![]),
        (
            json!({ "verdict": "approve", "findings": [{ "severity": "high", "text": "t" }] }),
            vec![],
        ),
    ] {
        assert_eq!(given(value.clone()), expected, "{value}");
    }
    all_give(&[Approval], &["[BLOCKING] x\n```json\n{\"verdict\": \"approve\"}\n```"]);
    all_give(&[], &["APPROVED\n```json\n{\"verdict\": \"undecided\"}\n```"]);
    assert!(signals(&Answer::text("LGTM\n{\"verdict\": \"reject\"}\nbye")).is_unreadable);
    let read =
        signals(&Answer::json(json!({ "question": "which?", "conflicts": ["a", { "b": 1 }] })));
    assert_eq!(read.question.as_deref(), Some("which?"));
    assert_eq!(read.conflicts, ["a", "{\"b\":1}"]);
}

#[test]
fn findings_and_questions_are_kept_for_people() {
    let read = signals(&Answer::text("Two things:\n- [BLOCKING] a leak\n- [MINOR] rename x\nfine"));
    assert_eq!(
        read.findings,
        [
            (Some(Severity::Blocking), "[BLOCKING] a leak".to_owned()),
            (Some(Severity::Minor), "[MINOR] rename x".to_owned()),
        ]
    );
    let read = signals(&Answer::text("I stop.\n**NEEDS_INPUT:** which\ndatabase?\n\nThanks"));
    assert_eq!(read.question.as_deref(), Some("which\ndatabase?"));
}

#[test]
fn plain_keywords_count_anywhere_and_in_any_case() {
    let given = |text: &str| literal_signals(&Answer::text(text)).given;
    for (text, expected) in [
        ("not approved", vec![Approval]),
        ("> Lgtm", vec![Approval]),
        ("this has converged?", vec![Approval]),
        ("a blocking call", vec![Blocking]),
        ("no critical issues", vec![Blocking]),
        ("no issues found", vec![Approval]),
        ("[MINOR] rename", vec![]),
        ("needs_input: which", vec![NeedsInput]),
        ("没有发现问题", vec![Approval]),
        ("I reject it", vec![Signal::Ruling(Ruling::Reject)]),
        ("adopt or reject", vec![]),
    ] {
        assert_eq!(given(text), expected, "{text}");
    }
    assert_eq!(literal_signals(&Answer::json(json!({ "findings": [] }))).given, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_reply_is_read_and_none_in_lower_case_approves(
        text in "([a-z,:>_*\" \n.?]|approved|lgtm|needs_input|blocking issue|verdict: |\\PC){0,30}"
    ) {
        let _ = signals(&Answer::text(text.clone()));
        let lower = text.to_lowercase();
        let is_phrase = lower.contains("converged") || lower.contains("issues found") || lower.contains("发现问题");
        prop_assert!(is_phrase || !signals(&Answer::text(lower)).has(Approval));
    }
}
