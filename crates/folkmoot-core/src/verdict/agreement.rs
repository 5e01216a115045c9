//! Whether a judge found that the first answers agree (strategies.md §8.3).

use super::{clean::without_reasoning, object::structured};
use crate::call::Answer;

/// The answer that `answer` says is common to all: the text behind a first line `agree`, or the
/// `answer` of an object whose `agree` is true. An object with `agree`, even a broken one, decides
/// alone.
pub fn read(answer: &Answer) -> Option<String> {
    let object = match structured(answer) {
        Err(broken) if broken.has_key("agree") => return None,
        object => object.ok().flatten(),
    };
    let common = match object.filter(|object| object.contains_key("agree")) {
        Some(object) if object["agree"] == true => {
            object.get("answer")?.as_str()?.trim().to_owned()
        }
        Some(_) => return None,
        None => behind_agree(&without_reasoning(&answer.text))?.to_owned(),
    };
    (!common.is_empty()).then_some(common)
}

fn behind_agree(text: &str) -> Option<&str> {
    let (line, rest) = text.trim().split_once(['\n', '\r'])?;
    let dress = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '.' | ':' | '!');
    (line.trim_matches(dress).to_lowercase() == "agree").then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agreed(text: &str) -> Option<String> {
        read(&Answer::text(text))
    }

    #[test]
    fn the_text_behind_the_first_line_is_the_common_answer() {
        for text in [
            "agree\n42",
            "\n **Agree.** \r\n\r\n42\n",
            "# AGREE:\n42",
            "<think>hm</think>agree!\n 42",
        ] {
            assert_eq!(agreed(text), Some("42".into()), "{text}");
        }
        let long = "agree\nuse `x`:\n```json\n{\"next\": \"y\"}\n```\n> and z";
        assert_eq!(agreed(long).as_deref(), long.strip_prefix("agree\n"));
    }

    #[test]
    fn anything_else_is_no_agreement() {
        for text in [
            "disagree\n42",
            "agree",
            "agree\n \n",
            "agree: 42",
            "agree?\n42",
            "They agree.\n42",
            "I agree\n42",
            "<think>agree\n42</think>",
            "agree <think>\n42",
            "",
        ] {
            assert_eq!(agreed(text), None, "{text}");
        }
    }

    #[test]
    fn an_object_says_the_same_and_decides_alone() {
        assert_eq!(
            agreed("So:\n```\n{\"agree\": true, \"answer\": \"42\"}\n```"),
            Some("42".into())
        );
        assert_eq!(agreed("agree\n42\n```\n{\"agree\": false}\n```"), None);
        assert_eq!(agreed("agree\n42\n```\n{\"agree\": fal"), None);
        assert_eq!(agreed("agree\n```\n{ 42").as_deref(), Some("```\n{ 42"));
        let object = |value| read(&Answer::json(value));
        assert_eq!(object(json!({"agree": true, "answer": "42"})), Some("42".into()));
        for value in [
            json!({"agree": "true", "answer": "42"}),
            json!({"agree": 1, "answer": "42"}),
            json!({"agree": true, "answer": " "}),
            json!({"agree": true, "answer": 42}),
            json!({"agree": true}),
            json!({"answer": "42"}),
        ] {
            assert_eq!(object(value), None);
        }
    }
}
