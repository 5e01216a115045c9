//! Everything that is read out of replies: verdicts, names, scores, ballots, agreement.

use folkmoot_core::{
    call::Answer,
    verdict::{Names, Object, Reading, Scale, VERDICTS, agreement, ballot},
};

use crate::names::NAMES;

/// Whatever a reply says, it is read as one of what was asked for, or not at all; and a structured
/// reply is read as the text that it has.
pub fn verdict(reply: &[u8]) {
    let text = String::from_utf8_lossy(reply);
    let answer = Answer::text(&*text);
    read(&answer);
    if let Ok(value) = serde_json::from_str(&text) {
        read(&Answer::json(value));
    }
    let dressed = Answer::text(format!("<think>verdict: approve\nvote:ann</think>\n{text}\r\n"));
    if !text.contains("think") {
        assert_eq!(VERDICTS.read(&dressed), VERDICTS.read(&answer), "reasoning is read");
    }
}

fn read(answer: &Answer) {
    if answer.is_blank() {
        assert_eq!(VERDICTS.read(answer), Reading::None, "a blank reply has a verdict");
    }
    let _ = VERDICTS.read(answer);
    if let Ok(Some(object)) = Object::find(answer, "verdict") {
        let _ = object.findings();
    }
    let names: Vec<(&str, usize)> = NAMES.iter().copied().zip(0..).collect();
    let next = Names { key: "next", labels: &["next", "下一步"], names: &names };
    if let Reading::Ambiguous(named) = next.read(answer) {
        assert!(named.len() > 1, "one name is ambiguous");
    }
    if let Reading::Value(named) = next.read_all(answer) {
        assert!(!named.is_empty(), "nobody is a value");
    }
    let scale = Scale { key: "score", labels: &["score", "评分"], range: 0.0..=10.0 };
    if let Reading::Value(score) = scale.read(answer) {
        assert!(scale.range.contains(&score), "{score} is off the scale");
    }
    let vote = ballot::read(answer, &NAMES);
    assert!(vote.is_none_or(|at| at < NAMES.len()));
    if let Some(common) = agreement::read(answer) {
        assert!(!common.trim().is_empty(), "what is common to all is nothing");
    }
}
