//! Ballots of the strategy consensus, which ask for a literal form (strategies.md §6.1).
//!
//! Of all cleaning only reasoning and copied `<reply>` blocks are taken out: "I would never vote:b" is a
//! vote for b, and so is one in a code fence.

use unicode_normalization::UnicodeNormalization;

use super::{
    clean::{without_reasoning, without_replies},
    object::structured,
};
use crate::{call::Answer, text::is_word_letter};

/// For which of `names`, by its place among them, `answer` votes. They are the names of all
/// participants, so that a vote for a longer name never falls to a shorter one.
pub fn read(answer: &Answer, names: &[&str]) -> Option<usize> {
    let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let object = structured(answer).ok().flatten();
    if let Some(vote) = object.as_ref().and_then(|object| object.get("vote")?.as_str()) {
        return whole(&plain(vote), &names);
    }
    let text = without_reasoning(&answer.text);
    let text = plain(&without_replies(&text));
    whole(&text, &names).or_else(|| last_place(&text, &names))
}

/// `text` in lower case and NFC, `：` as `:`, without outer blanks.
fn plain(text: &str) -> String {
    // Sigma has two small forms; which one `to_lowercase` takes depends on what stands behind.
    let text = text.replace('：', ":").to_lowercase().replace('ς', "σ");
    text.trim().nfc().collect()
}

/// Whom a text names that is a name, or `vote:` and a name.
fn whole(text: &str, names: &[String]) -> Option<usize> {
    let is = |text: &str| names.iter().position(|name| name == text && !name.is_empty());
    is(text).or_else(|| is(behind_label(text)?))
}

/// Whom the last place names that names somebody.
fn last_place(text: &str, names: &[String]) -> Option<usize> {
    let in_word = |c: char| c.is_ascii_lowercase() || c.is_numeric() || c == '_';
    let mut places = text.rmatch_indices("vote:").filter(|(at, _)| !text[..*at].ends_with(in_word));
    places.find_map(|(at, _)| longest(behind_label(&text[at..])?, names))
}

/// What stands behind `vote:` and at most one space.
fn behind_label(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("vote:")?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// The longest name that `text` begins with, if it ends on a boundary.
fn longest(text: &str, names: &[String]) -> Option<usize> {
    let fits = |(_, name): &(usize, &String)| !name.is_empty() && text.starts_with(name.as_str());
    let (place, name) = names.iter().enumerate().filter(fits).max_by_key(|(_, name)| name.len())?;
    ends_on_boundary(name, &text[name.len()..]).then_some(place)
}

/// Whether `name` ends before `rest` and does not go on in it.
fn ends_on_boundary(name: &str, rest: &str) -> bool {
    let in_word = |c: char| c == '_' || is_word_letter(c);
    let joint = rest.strip_prefix(['-', '.']);
    let goes_on = name.ends_with(in_word) && rest.starts_with(in_word)
        || joint.is_some_and(|rest| rest.starts_with(in_word));
    !goes_on
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};
    use serde_json::json;

    use super::*;

    const TEAM: [&str; 9] =
        ["agent_1", "agent_10", "产品", "产品经理", "Data Team", "b", "v1.0", "C++", "ΟΔΟΣ"];

    #[track_caller]
    fn counts_for(text: &str, name: Option<&str>) {
        let vote = read(&Answer::text(text), &TEAM);
        assert_eq!(vote.map(|place| TEAM[place]), name, "{text}");
    }

    #[test]
    fn a_name_or_the_form_alone_is_a_vote() {
        for text in ["data team", "DATA TEAM", "\n vote:Data Team ", "VOTE： data team"] {
            counts_for(text, Some("Data Team"));
        }
        counts_for("οδος", Some("ΟΔΟΣ"));
    }

    #[test]
    fn the_form_counts_anywhere_in_a_reply() {
        counts_for("I pick vote:agent_10.", Some("agent_10"));
        counts_for("我选vote:产品经理，理由略", Some("产品经理"));
        counts_for("```\nvote:b\n```", Some("b"));
        counts_for("I would never vote:b", Some("b"));
        counts_for("(vote: c++)", Some("C++"));
        counts_for("so vote:data team, but", Some("Data Team"));
    }

    #[test]
    fn other_forms_are_no_votes() {
        for text in [
            "agent_1 is best",
            "vote:  b",
            "vote: **b**",
            "vote:<b>",
            "vote b",
            "vote :b",
            "devote:b",
            "2vote:b",
            "_vote:b",
            "votes:b",
            "vote:\nb",
            "",
        ] {
            counts_for(text, None);
        }
        counts_for("évote:b", Some("b"));
    }

    #[test]
    fn a_name_is_never_found_inside_a_longer_word() {
        for text in [
            "vote:agent_1x",
            "vote:bb",
            "vote:b-c",
            "vote:b.c",
            "vote:b_",
            "vote:be\u{301}",
            "vote:v1.0.2",
        ] {
            counts_for(text, None);
        }
        for text in ["vote:b-", "vote:b. c", "vote:b--c", "vote:b产", "vote:b/c", "vote:b的"] {
            counts_for(text, Some("b"));
        }
    }

    #[test]
    fn the_longest_name_counts_or_none() {
        counts_for("pick vote:产品经理吧", Some("产品经理"));
        counts_for("pick vote:产品部", Some("产品"));
        counts_for("pick vote:agent_10", Some("agent_10"));
        counts_for("pick vote:agent_100", None);
        let names = ["a", "a b"];
        assert_eq!(read(&Answer::text("hm vote:a bc"), &names), None);
    }

    #[test]
    fn the_last_place_that_names_somebody_counts() {
        counts_for("Format: vote:<agent_name>\nvote:agent_1\nor vote:b", Some("b"));
        counts_for("vote:agent_1, not vote:nobody", Some("agent_1"));
    }

    #[test]
    fn an_object_with_a_text_vote_decides_alone() {
        counts_for("{\"vote\": \"Agent_1\"}", Some("agent_1"));
        counts_for(
            "vote:b\n```json\n{\"vote\": \"vote: agent_1\", \"why\": \"vote:b\"}\n```",
            Some("agent_1"),
        );
        counts_for("vote:b\n```json\n{\"vote\": \"I vote:agent_1\"}\n```", None);
        counts_for("vote:b\n```json\n{\"vote\": 1}\n```", Some("b"));
        counts_for("{\"vote\": \"<think>\"} ", None);
        let answer = Answer::json(json!({"vote": "产品"}));
        assert_eq!(read(&answer, &TEAM), Some(2));
    }

    #[test]
    fn reasoning_and_copied_replies_are_no_ballots() {
        counts_for("<think>perhaps vote:b</think>I abstain.", None);
        counts_for("<think>no</think>\nb", Some("b"));
        counts_for(
            "vote:agent_1\n<reply from=\"x\" key=\"vote/x\">\nvote:b\n</reply>",
            Some("agent_1"),
        );
        counts_for("vote:b <think>vote:agent_1", Some("b"));
    }

    #[test]
    fn nobody_without_a_name_gets_a_vote() {
        assert_eq!(read(&Answer::text(""), &["", " "]), None);
        assert_eq!(read(&Answer::text("x vote: "), &["", "a"]), None);
    }

    proptest! {
        #[test]
        fn a_vote_in_prose_counts_for_its_name(
            name in "[A-Za-z0-9产品經かな]{1,6}([ ._-][A-Za-z0-9产品]{1,4}){0,2}",
            before in "([a-z产 ]{0,8}[ ,(产\n])?",
            space in " ?",
            boundary in select(vec!["", ".", ", ", "\n", " x", "的", ")", "!", "- ", ". "]),
            other in "[a-z0-9产]{1,3}",
        ) {
            prop_assume!(other.to_lowercase() != name.to_lowercase());
            let text = format!("{before}vote:{space}{name}{boundary}");
            let names = [other.as_str(), name.as_str()];
            prop_assert_eq!(read(&Answer::text(text.as_str()), &names), Some(1), "{}", text);
        }

        #[test]
        fn a_longer_name_is_never_read_as_a_shorter_one(
            name in "[a-z0-9产品]{1,4}", more in "[-. ]?[a-z0-9产品]{1,4}", after in "[-. ,a-z产]{0,3}",
        ) {
            let longer = format!("{name}{more}");
            let text = format!("so vote:{longer}{after}");
            let vote = read(&Answer::text(text), &[name.as_str(), longer.as_str()]);
            prop_assert_ne!(vote, Some(0));
        }

        #[test]
        fn any_reply_is_a_ballot_or_none(
            text in "(vote:|VOTE：|产品|agent_1|[ .\n{}\"`-]|<think>|\\PC){0,20}", name in "\\PC{0,4}",
        ) {
            let _ = read(&Answer::text(text), &["产品", "agent_1", &name]);
        }
    }
}
