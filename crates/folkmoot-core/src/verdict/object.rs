//! A structured verdict: the object that a reply is, or that its last fenced block holds.

use serde_json::{Map, Value};

use super::{
    Unreadable,
    clean::{without_reasoning, without_replies},
    excerpt,
    fences::fences,
    json::{self, Failure},
};
use crate::call::Answer;

/// The keys that make an object a verdict (collaborate.md §8.1).
const KEYS: [&str; 8] =
    ["verdict", "findings", "conflicts", "question", "vote", "score", "next", "pass"];

/// An object with at least one known key, each of them with a value that is legal there. It decides
/// alone: words elsewhere in the reply do not stand in for what it lacks (rules.md 1.6).
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Map<String, Value>);

/// Something a reviewer found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub text: String,
}

/// How bad a finding is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The work cannot be accepted.
    Blocking,
    /// It cannot either.
    Critical,
    /// It should be mended.
    Major,
    /// It could be mended.
    Minor,
    /// A matter of taste.
    Nit,
    /// A remark.
    Info,
}

impl Severity {
    /// Whether a finding as bad as this blocks whatever the verdict says.
    pub fn blocks(self) -> bool {
        self <= Severity::Critical
    }

    fn parse(text: &str) -> Option<Severity> {
        Some(match text.trim().to_lowercase().as_str() {
            "blocking" => Severity::Blocking,
            "critical" => Severity::Critical,
            "major" => Severity::Major,
            "minor" => Severity::Minor,
            "nit" => Severity::Nit,
            "info" => Severity::Info,
            _ => return None,
        })
    }
}

impl Object {
    /// The object of `answer`, if it has a known key or the key `asked`.
    ///
    /// # Errors
    /// If it is cut off or broken, or a known key has a value that is not legal.
    pub fn find(answer: &Answer, asked: &str) -> Result<Option<Object>, Unreadable> {
        let known = |key: &str| KEYS.contains(&key) || key == asked;
        let object = match structured(answer) {
            Ok(object) => object,
            Err(Broken { failure: Failure::CutOff, .. }) => return Err(Unreadable::CutOff),
            Err(Broken { text, .. })
                if KEYS.iter().chain([&asked]).any(|key| has_key(&text, key)) =>
            {
                return Err(Unreadable::Malformed);
            }
            Err(_) => None,
        };
        let Some(object) = object.filter(|object| object.keys().any(|key| known(key))) else {
            return Ok(None);
        };
        match object.iter().find(|(key, value)| !is_legal(key, value)) {
            Some((key, value)) => Err(illegal(key, value)),
            None => Ok(Some(Object(object))),
        }
    }

    /// What stands under `key`; null counts as nothing.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// The findings, if they are given at all.
    pub fn findings(&self) -> Option<Vec<Finding>> {
        let findings = self.get("findings")?.as_array()?;
        Some(findings.iter().filter_map(finding).collect())
    }
}

/// That `value` is not legal under `key`.
pub(super) fn illegal(key: &str, value: &Value) -> Unreadable {
    Unreadable::Illegal { key: key.to_owned(), found: excerpt(&value.to_string()) }
}

/// Whether `value` has the right type under `key`; null is nothing given. Words and names are checked
/// against the closed set later.
fn is_legal(key: &str, value: &Value) -> bool {
    let all =
        |holds: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(holds));
    value.is_null()
        || match key {
            "verdict" | "question" | "vote" => value.is_string(),
            "findings" => all(|item| finding(item).is_some()),
            "conflicts" => value.is_array(),
            "score" => value.is_number(),
            "next" => value.is_string() || all(Value::is_string),
            "pass" => value.is_boolean(),
            _ => true,
        }
}

fn finding(value: &Value) -> Option<Finding> {
    let text = |key| value.get(key).and_then(Value::as_str);
    Some(Finding { severity: Severity::parse(text("severity")?)?, text: text("text")?.to_owned() })
}

/// Text that begins like an object and is none.
pub(super) struct Broken {
    failure: Failure,
    text: String,
}

/// The object that `answer` is, or that its last fenced block holds.
pub(super) fn structured(answer: &Answer) -> Result<Option<Map<String, Value>>, Broken> {
    if let Some(value) = &answer.json {
        return Ok(value.as_object().cloned());
    }
    let text = without_reasoning(&answer.text);
    let text = without_replies(&text);
    let block = fences(&text).pop().map_or("", |fence| &text[fence.body]);
    let mut broken = None;
    for text in [&*text, block].into_iter().filter(|text| text.trim_start().starts_with('{')) {
        match json::whole(text) {
            Ok(Value::Object(object)) => return Ok(Some(object)),
            Ok(_) => {}
            Err(failure) => {
                broken = broken.or_else(|| Some(Broken { failure, text: text.to_owned() }));
            }
        }
    }
    broken.map_or(Ok(None), Err)
}

/// Whether `text` holds `key` where an object could have it.
fn has_key(text: &str, key: &str) -> bool {
    let key = format!("\"{key}\"");
    text.match_indices(&key).any(|(at, _)| text[at + key.len()..].trim_start().starts_with(':'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(text: &str) -> Result<Option<Object>, Unreadable> {
        Object::find(&Answer::text(text), "verdict")
    }

    fn verdict(text: &str) -> Option<String> {
        let object = find(text).expect("the object is legal")?;
        Some(object.get("verdict")?.as_str()?.to_owned())
    }

    #[test]
    fn the_object_is_the_reply_or_its_last_fenced_block() {
        assert_eq!(verdict(" {\"verdict\": \"a\",} "), Some("a".into()));
        assert_eq!(verdict("So:\n~~~\n{\"verdict\": \"a\"}\n~~~\nbye"), Some("a".into()));
        assert_eq!(
            verdict("```\n{\"verdict\": \"a\"}\n```\n```json\n{\"verdict\": \"b\"}\n```"),
            Some("b".into())
        );
        assert_eq!(verdict("```\n{\"verdict\": \"a\"}\n```\n```sh\nls\n```"), None);
        assert_eq!(verdict("{a}\n```\n{\"verdict\": \"b\"}\n```"), Some("b".into()));
        assert_eq!(verdict("It is {\"verdict\": \"a\"} in prose"), None);
    }

    #[test]
    fn reasoning_and_copied_replies_hold_no_verdict() {
        assert_eq!(verdict("<think>```\n{\"verdict\": \"a\"}\n```</think>b"), None);
        assert_eq!(
            verdict("<reply from=\"x\">\n```\n{\"verdict\": \"a\"}\n```\n</reply>\nb"),
            None
        );
    }

    #[test]
    fn a_structured_reply_is_its_own_object() {
        let answer = Answer::json(json!({"verdict": "a", "more": {}}));
        let object =
            Object::find(&answer, "verdict").expect("it is legal").expect("it has the key");
        assert_eq!(object.get("verdict"), Some(&json!("a")));
    }

    #[test]
    fn an_object_without_a_known_key_is_content() {
        assert_eq!(find("{\"name\": 1}"), Ok(None));
        let converged = Object::find(&Answer::text("{\"converged\": true}"), "converged");
        assert!(converged.is_ok_and(|object| object.is_some()));
    }

    #[test]
    fn a_cut_off_or_broken_object_is_unreadable() {
        assert_eq!(find("{\"verdict\": \"appro"), Err(Unreadable::CutOff));
        assert_eq!(find("APPROVED\n```json\n{\"verd\n```"), Err(Unreadable::CutOff));
        assert_eq!(
            find("APPROVED\n```json\n{\"verdict\": approve}\n```"),
            Err(Unreadable::Malformed)
        );
        assert_eq!(find("{\"verdict\": \"reject\"}\nAPPROVED"), Err(Unreadable::Malformed));
        assert_eq!(find("APPROVED\n```css\n{ color: red }\n```"), Ok(None));
    }

    #[test]
    fn a_known_key_with_another_type_is_unreadable() {
        for (key, value) in [
            ("verdict", json!(true)),
            ("score", json!("8")),
            ("pass", json!("false")),
            ("next", json!(["a", 1])),
            ("findings", json!({"severity": "minor", "text": "x"})),
            ("findings", json!([{"severity": "high", "text": "x"}])),
            ("findings", json!([{"severity": "minor"}])),
            ("question", json!(["which?"])),
            ("vote", json!(1)),
            ("conflicts", json!("cache")),
        ] {
            let object = json!({"verdict": "approve", key: value});
            let found = Object::find(&Answer::json(object), "verdict");
            assert_eq!(
                found,
                Err(Unreadable::Illegal { key: key.into(), found: value.to_string() })
            );
        }
    }

    #[test]
    fn null_counts_as_nothing_given() {
        let answer = Answer::json(json!({"verdict": null, "findings": null}));
        let object =
            Object::find(&answer, "verdict").expect("it is legal").expect("it has the key");
        assert_eq!((object.get("verdict"), object.findings()), (None, None));
    }

    #[test]
    fn findings_have_a_severity_in_any_case() {
        let findings =
            json!({"findings": [{"severity": " Critical", "text": "x", "place": "a:1"}]});
        let object = Object::find(&Answer::json(findings), "").expect("it is legal");
        let findings = object.and_then(|object| object.findings()).expect("there are findings");
        assert_eq!(findings, [Finding { severity: Severity::Critical, text: "x".into() }]);
        assert!(Severity::Critical.blocks() && !Severity::Major.blocks());
    }
}
