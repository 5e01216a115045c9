//! A structured verdict: the object that a reply is, or that its last fenced block holds.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

use super::{
    Unreadable,
    clean::{without_reasoning, without_replies},
    excerpt,
    fences::fences,
    json::{self, Failure},
};
use crate::{call::Answer, text::is_invisible};

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
    /// Where it is; empty if it does not say.
    pub place: String,
    /// What it is.
    pub text: String,
}

/// How bad a finding is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// Its word in replies and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Blocking => "blocking",
            Severity::Critical => "critical",
            Severity::Major => "major",
            Severity::Minor => "minor",
            Severity::Nit => "nit",
            Severity::Info => "info",
        }
    }

    /// The severity that `text` is a word for.
    pub fn parse(text: &str) -> Option<Severity> {
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
            Err(broken) if KEYS.iter().chain([&asked]).any(|key| broken.has_key(key)) => {
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

    /// The object of `answer` as [`Object::find`] finds it, for a reader that takes words where there
    /// is none: an object with one of `keys` that begins a line anywhere else in the reply is not
    /// passed over for them (rules.md 1.6).
    ///
    /// # Errors
    /// Those of [`Object::find`], and if such an object stands elsewhere.
    pub(super) fn before_words(
        answer: &Answer,
        asked: &str,
        keys: &[&str],
    ) -> Result<Option<Object>, Unreadable> {
        match Object::find(answer, asked)? {
            None if answer.json.is_none() && stands_elsewhere(&answer.text, keys) => {
                Err(Unreadable::Misplaced)
            }
            found => Ok(found),
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
    let place = match value.get("place") {
        Some(Value::Number(line)) => line.to_string(),
        _ => text("place").unwrap_or_default().to_owned(),
    };
    Some(Finding {
        severity: Severity::parse(text("severity")?)?,
        place,
        text: text("text")?.to_owned(),
    })
}

/// Text that begins like an object and is none.
pub(super) struct Broken {
    failure: Failure,
    text: String,
}

impl Broken {
    /// Whether it would have had `key`.
    pub(super) fn has_key(&self, key: &str) -> bool {
        has_key(&self.text, key)
    }
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
    for text in [&*text, block].map(trimmed).into_iter().filter(|text| text.starts_with('{')) {
        match json::whole(text) {
            Ok(Value::Object(_)) if repeats_a_key(text) => {
                broken = Some(Broken { failure: Failure::Syntax, text: text.to_owned() });
            }
            Ok(Value::Object(object)) => return Ok(Some(object)),
            Ok(_) => {}
            Err(failure) => {
                broken = broken.or_else(|| Some(Broken { failure, text: text.to_owned() }));
            }
        }
    }
    broken.map_or(Ok(None), Err)
}

/// The JSON that `answer` is, else that of its last fenced block of JSON.
pub fn value(answer: &Answer) -> Option<Value> {
    if let Some(value) = &answer.json {
        return Some(value.clone());
    }
    let text = without_reasoning(&answer.text);
    let text = without_replies(&text);
    let blocks = fences(&text).into_iter().rev().map(|fence| &text[fence.body]);
    let mut read = [&*text].into_iter().chain(blocks).map(trimmed);
    read.find_map(|text| json::whole(text).ok())
}

/// Whether the object that `text` is has a key twice: which of the two counts, nobody has said.
fn repeats_a_key(text: &str) -> bool {
    struct Repeats(bool);

    impl<'de> Deserialize<'de> for Repeats {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Repeats, D::Error> {
            deserializer.deserialize_map(Keys)
        }
    }

    struct Keys;

    impl<'de> Visitor<'de> for Keys {
        type Value = Repeats;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Repeats, A::Error> {
            let (mut seen, mut repeats) = (BTreeSet::new(), false);
            while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                repeats |= !seen.insert(key);
            }
            Ok(Repeats(repeats))
        }
    }

    serde_json::from_str(text).is_ok_and(|Repeats(repeats)| repeats)
}

/// Whether an object with one of `keys`, be it whole, cut off or broken, begins a line of `text`.
fn stands_elsewhere(text: &str, keys: &[&str]) -> bool {
    let text = without_reasoning(text);
    let text = without_replies(&text);
    let begins_line = |at: usize| {
        let before = text[..at].trim_end_matches(is_nothing);
        before.is_empty() || text[before.len()..at].contains(['\n', '\r'])
    };
    let mut rest = text.to_string();
    for found in json::Scan::new(&text, &[]) {
        let object = found.value.as_object().filter(|_| begins_line(found.span.start));
        if object.is_some_and(|object| keys.iter().any(|key| object.contains_key(*key))) {
            return true;
        }
        rest.replace_range(found.span.clone(), &" ".repeat(found.span.len()));
    }
    let broken = broken_objects(&rest);
    keys.iter().any(|key| has_key(&broken, key))
}

/// What in `text` begins a line like an object, up to a line that ends like one, a blank line or a
/// fence.
fn broken_objects(text: &str) -> String {
    let (mut objects, mut inside) = (String::new(), false);
    for line in text.lines().map(trimmed) {
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        inside = !line.is_empty() && !is_fence && (inside || line.starts_with('{'));
        if inside {
            objects.extend([line, "\n"]);
            inside = !line.ends_with('}');
        }
    }
    objects
}

/// `text` without blanks and unseen characters around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches(is_nothing)
}

fn is_nothing(c: char) -> bool {
    c.is_whitespace() || is_invisible(c)
}

/// Whether `text` holds `key` where an object could have it, whatever quotation marks stand around it.
fn has_key(text: &str, key: &str) -> bool {
    const QUOTES: [char; 7] = ['"', '\'', '`', '“', '”', '‘', '’'];
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    !key.is_empty()
        && text.match_indices(key).any(|(at, _)| {
            let behind = text[at + key.len()..].trim_start_matches(QUOTES).trim_start();
            !text[..at].ends_with(in_word) && behind.starts_with([':', '：'])
        })
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
        assert_eq!(verdict("\u{FEFF}\n{\"verdict\": \"a\"}\u{200B}"), Some("a".into()));
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
        for object in ["{'verdict': 'approve'}", "{verdict: approve}", "{“verdict”：“approve”}"]
        {
            assert_eq!(find(object), Err(Unreadable::Malformed), "{object}");
            assert_eq!(find(&format!("LGTM\n```\n{object}\n```")), Err(Unreadable::Malformed));
        }
    }

    #[test]
    fn an_object_that_says_two_things_says_nothing() {
        for text in [
            "{\"verdict\": \"reject\", \"verdict\": \"approve\"}",
            "```\n{\"verdict\": \"approve\", \"x\": {}, \"verdict\": \"approve\"}\n```",
        ] {
            assert_eq!(find(text), Err(Unreadable::Malformed), "{text}");
        }
        assert_eq!(verdict("{\"a\": {\"verdict\": 1}, \"verdict\": \"b\"}"), Some("b".into()));
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
        assert_eq!(
            findings,
            [Finding { severity: Severity::Critical, place: "a:1".into(), text: "x".into() }]
        );
        assert!(Severity::Critical.blocks() && !Severity::Major.blocks());
    }
}
