//! What a controller says: one line, a JSON object with one key (extensions.md §4).

use serde::Deserialize;
use serde_json::Value;

/// An answer of a controller.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// All that it wants now; what is not in it any longer is withdrawn.
    Want(Vec<Wanted>),
    /// The answer of the run.
    Final(String),
    /// Why there is none.
    Error(String),
}

/// A turn of an agent that a controller wants.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// What it is called.
    pub(super) key: String,
    /// Whose turn it is.
    pub(super) agent: String,
    /// What is asked.
    pub(super) prompt: Vec<Piece>,
}

/// A piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Piece {
    /// The controller's own words.
    Text(String),
    /// What came of an earlier wish, by its key.
    Quote(String),
}

/// The keys of a line, of which there must be one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    want: Option<Vec<Wanted>>,
    #[serde(rename = "final")]
    answer: Option<Value>,
    error: Option<Value>,
}

impl Said {
    /// Reads a line; an error says what is wrong with it.
    pub(super) fn read(line: &str) -> Result<Said, String> {
        let read: Line = serde_json::from_str(line)
            .map_err(|error| format!("its answer cannot be read: {error}"))?;
        match (read.want, read.answer, read.error) {
            (Some(wants), None, None) => Ok(Said::Want(wants)),
            (None, Some(answer), None) => Ok(Said::Final(text(answer))),
            (None, None, Some(error)) => Ok(Said::Error(text(error))),
            _ => Err("its answer must hold one of want, final and error".to_owned()),
        }
    }
}

/// A text as it is, and anything else as JSON.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_one_of_three_things() {
        let want = r#"{"want":[{"key":"k","agent":"a","prompt":[{"text":"t"},{"quote":"q"}]}]}"#;
        let prompt = vec![Piece::Text("t".into()), Piece::Quote("q".into())];
        let wanted = Wanted { key: "k".into(), agent: "a".into(), prompt };
        assert_eq!(Said::read(want), Ok(Said::Want(vec![wanted])));
        assert_eq!(Said::read(r#"{"final":"it"}"#), Ok(Said::Final("it".into())));
        assert_eq!(
            Said::read(r#"{"final":{"b":1,"a":2}}"#),
            Ok(Said::Final(r#"{"b":1,"a":2}"#.into()))
        );
        assert_eq!(Said::read(r#"{"error":"no"}"#), Ok(Said::Error("no".into())));
    }

    #[test]
    fn whatever_else_it_says_is_refused_with_the_reason() {
        for (line, why) in [
            ("", "cannot be read"),
            ("hello", "cannot be read"),
            ("[]", "cannot be read"),
            ("{}", "one of want, final and error"),
            (r#"{"final":null}"#, "one of want, final and error"),
            (r#"{"want":[],"final":"x"}"#, "one of want, final and error"),
            (r#"{"wants":[]}"#, "unknown field `wants`"),
            (r#"{"want":[{"key":"k","agent":"a"}]}"#, "missing field `prompt`"),
            (r#"{"want":[{"key":"k","agent":"a","prompt":"t"}]}"#, "expected a sequence"),
            (
                r#"{"want":[{"key":"k","agent":"a","prompt":[{"task":1}]}]}"#,
                "unknown variant `task`",
            ),
        ] {
            let told = Said::read(line).expect_err(line);
            assert!(told.contains(why), "{line}: {told}");
        }
    }
}
