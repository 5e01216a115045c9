//! Names out of a closed set, in the place where a reply states its choice (rules.md 2.2, 2.3).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{
    Object, Reading, Unreadable,
    clean::{Sentence, sentences, spoken},
    excerpt,
    forms::{Closed, comparable, is_bare},
    lines::unlisted,
    object::{illegal, structured},
};
use crate::call::Answer;

/// The most bytes of a line that are looked at for names that hold ends of sentences.
const LONGEST_NAMES: usize = 512;

/// What stands between names.
const COMMAS: [char; 3] = [',', '，', '、'];

/// A closed set of names that a reply is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a, T> {
    /// The key under which an object holds a name or a list of names.
    pub key: &'a str,
    /// What may stand before the name and a colon at the start of a sentence.
    pub labels: &'a [&'a str],
    /// The names and whom they mean; several names may mean the same.
    pub names: &'a [(&'a str, T)],
}

impl<T: Copy + PartialEq> Names<'_, T> {
    /// Reads the one name that `answer` states.
    pub fn read(&self, answer: &Answer) -> Reading<T> {
        match self.read_all(answer) {
            Reading::Value(named) => Reading::one_of(named),
            Reading::None => Reading::None,
            Reading::Ambiguous(named) => Reading::Ambiguous(named.concat()),
            Reading::Unreadable(why) => Reading::Unreadable(why),
        }
    }

    /// Reads all names that `answer` states in one place: its object, else behind the last label, else
    /// a sentence that is nothing but names.
    pub fn read_all(&self, answer: &Answer) -> Reading<Vec<T>> {
        match Object::before_words(answer, self.key, &[self.key]) {
            Err(why) => Reading::Unreadable(why),
            Ok(None) => self.read_spoken(&spoken(&answer.text)),
            Ok(Some(object)) => {
                object.get(self.key).map_or(Reading::None, |value| self.read_field(value))
            }
        }
    }

    /// Reads the names in a structured field: a text, or a list of texts.
    pub fn read_field(&self, value: &Value) -> Reading<Vec<T>> {
        let closed = self.closed();
        let reading = match value {
            Value::Array(list) if !list.is_empty() => {
                each(&closed, list.iter().map(|item| item.as_str().unwrap_or_default()))
            }
            _ => place(&closed, value.as_str().unwrap_or_default()),
        };
        match reading {
            Reading::Value(_) | Reading::Ambiguous(_) => reading,
            Reading::None | Reading::Unreadable(_) => Reading::Unreadable(illegal(self.key, value)),
        }
    }

    fn read_spoken(&self, spoken: &str) -> Reading<Vec<T>> {
        let (closed, heads) = (self.closed(), self.heads());
        let (mut alone, mut label, mut near_miss) = (Vec::new(), None, None);
        for sentence in sentences(spoken) {
            let text = unlisted(sentence.text).unwrap_or(sentence.text);
            let found = |text| {
                let rest = rest_of_line(sentence, text);
                places(&closed, text, rest.filter(|_| may_go_on(&closed, &heads, text)))
            };
            match closed.behind_label(text) {
                Some(value) if is_bare(value) => label = None,
                Some(value) => label = Some(found(value).ok_or(sentence.text)),
                None => match found(text) {
                    Some(Reading::Value(named)) => alone.push(named),
                    Some(Reading::Ambiguous(named)) => alone.extend(named),
                    _ if near_miss.is_none() && closed.comes_close(text) => near_miss = Some(text),
                    _ => {}
                },
            }
        }
        let refused = |text| Reading::Unreadable(Unreadable::NearMiss(excerpt(text)));
        match label {
            Some(Ok(reading)) => reading,
            Some(Err(text)) => refused(text),
            None if alone.is_empty() => near_miss.map_or(Reading::None, refused),
            None => Reading::one_of(alone),
        }
    }

    /// Reads a choice among edges: the field, or else the last line of its own that is a label and names
    /// (graph.md §7); and whether there was a field. A name anywhere else is no choice.
    pub fn choice(&self, answer: &Answer) -> (Reading<Vec<T>>, bool) {
        match structured(answer) {
            Ok(Some(object)) if object.get(self.key).is_some_and(|value| !value.is_null()) => {
                (self.read_field(&object[self.key]), true)
            }
            Err(broken) if broken.has_key(self.key) => {
                (Reading::Unreadable(Unreadable::Malformed), true)
            }
            Ok(_) | Err(_) => (self.last_line(&spoken(&answer.text)), false),
        }
    }

    fn last_line(&self, spoken: &str) -> Reading<Vec<T>> {
        if !spoken.contains(':') && !spoken.contains('：') {
            return Reading::None;
        }
        let closed = self.closed();
        let value = |line| {
            let line = unlisted(line).unwrap_or(line);
            closed.behind_label(line).filter(|value| !is_bare(value))
        };
        spoken
            .lines()
            .filter_map(value)
            .next_back()
            .map_or(Reading::None, |value| place(&closed, value))
    }

    fn closed(&self) -> Closed<T> {
        Closed::new(self.names, self.labels)
    }

    /// The forms of the first sentences of the names that hold ends of sentences.
    fn heads(&self) -> Vec<String> {
        let firsts = self.names.iter().filter_map(|(name, _)| {
            let mut sentences = sentences(name);
            sentences.next().filter(|_| sentences.next().is_some())
        });
        firsts.map(|first| comparable(undressed(first.text))).collect()
    }
}

/// The end of the line from `text` on, which is the end of `sentence`, if it is no longer than names
/// can be.
fn rest_of_line<'a>(sentence: Sentence<'a>, text: &'a str) -> Option<&'a str> {
    let rest = &sentence.line[sentence.text.len() - text.len()..];
    (rest.len() > text.len() && rest.len() <= LONGEST_NAMES).then_some(rest)
}

/// Whether names in `text` may go on behind the end of its sentence: the last one is the first
/// sentence of a name, or has a remark behind it.
fn may_go_on<T: Copy + PartialEq>(closed: &Closed<T>, heads: &[String], text: &str) -> bool {
    let bracket = text.rfind(['(', '（']);
    let names = &text[..bracket.unwrap_or(text.len())];
    let last = undressed(names.rsplit(COMMAS).next().unwrap_or_default());
    let is_head = !heads.is_empty() && heads.contains(&comparable(last));
    is_head || bracket.is_some() && closed.meaning(last) != Reading::None
}

/// The names in the `rest` of a line, since a name or a remark may hold what ends a sentence, else in
/// the `sentence`, else before a remark in it.
fn places<T: Copy + PartialEq>(
    closed: &Closed<T>,
    sentence: &str,
    rest: Option<&str>,
) -> Option<Reading<Vec<T>>> {
    let named = sentence.split_once([':', '：']).map_or("", |(named, _)| named);
    let texts = rest.into_iter().chain([sentence, named]);
    let mut readings = texts.map(|text| place(closed, text));
    readings.find(|reading| *reading != Reading::None)
}

/// The names in `text`, which holds nothing else: one, or several between commas.
fn place<T: Copy + PartialEq>(closed: &Closed<T>, text: &str) -> Reading<Vec<T>> {
    let list = text.trim().trim_start_matches('[').trim_end_matches(']');
    match each(closed, [text]) {
        Reading::None => each(closed, list.split(COMMAS)),
        reading => reading,
    }
}

/// Whom `texts` mean, without repeats; nobody if one of them is no name.
fn each<'a, T: Copy + PartialEq>(
    closed: &Closed<T>,
    texts: impl IntoIterator<Item = &'a str>,
) -> Reading<Vec<T>> {
    let mut named = Vec::new();
    for text in texts {
        match meant_by(closed, text) {
            Reading::Value(meant) if named.contains(&meant) => {}
            Reading::Value(meant) => named.push(meant),
            Reading::Ambiguous(several) => {
                return Reading::Ambiguous(several.into_iter().map(|one| vec![one]).collect());
            }
            Reading::None | Reading::Unreadable(_) => return Reading::None,
        }
    }
    Reading::Value(named)
}

/// Whom `text` means: as it stands, else without quotation marks, else without a remark in brackets.
/// A name is matched whole, so never inside a longer one.
fn meant_by<T: Copy + PartialEq>(closed: &Closed<T>, text: &str) -> Reading<T> {
    static REMARK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\s*[(（][^()（）]*[)）]\W*$").expect("the pattern is sound"));
    let bare = undressed(text);
    [text, bare, &REMARK.replace(bare, "")]
        .into_iter()
        .map(|text| closed.meaning(text))
        .find(|reading| *reading != Reading::None)
        .unwrap_or(Reading::None)
}

/// `text` without quotation marks, emphasis, brackets and punctuation around it.
fn undressed(text: &str) -> &str {
    let dress = |c: char| c.is_whitespace() || "*_`'\"“”‘’„«»「」『』[].!。！,;，；、".contains(c);
    text.trim_matches(dress)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TEAM: Names<'static, usize> = Names {
        key: "next",
        labels: &["next", "下一步"],
        names: &[
            ("Lead Engineer", 0),
            ("lead-engineer", 0),
            ("qa_bot", 1),
            ("产品", 2),
            ("产品经理", 3),
            ("C++ (backend)", 4),
            ("Dr. No", 5),
            ("Tester", 6),
            ("🤖", 7),
            ("👩\u{200D}💻", 8),
            ("parent", 9),
        ],
    };

    fn read(text: &str) -> Reading<usize> {
        TEAM.read(&Answer::text(text))
    }

    #[test]
    fn a_name_behind_its_label_is_read_in_any_dress() {
        for (text, meant) in [
            ("NEXT: lead\\_engineer", 0),
            ("I looked.\n**Next:** `Lead  Engineer`.", 0),
            ("- next： \"LEAD-ENGINEER\"!", 0),
            ("Fine. NEXT: qa_bot. Because it fails.", 1),
            ("下一步：产品经理。", 3),
            ("next: **产品**", 2),
            ("NEXT: C++ (backend)", 4),
            ("NEXT: c++ (BACKEND) (for the parser)", 4),
            ("NEXT: Dr. No", 5),
            ("NEXT: \"Dr. No\".", 5),
            ("NEXT: tester: it is ready", 6),
            ("NEXT: tester (it is ready. Go!)", 6),
            ("NEXT: C++ (backend) (e.g. the parser)", 4),
            ("NEXT: 🤖", 7),
            ("NEXT: ['tester']", 6),
            ("NEXT: \"tester", 6),
            ("- next: PARENT (done)", 9),
            ("NEXT: 产品\nNEXT: ＴＥＳＴＥＲ", 6),
        ] {
            assert_eq!(read(text), Reading::Value(meant), "{text}");
        }
    }

    #[test]
    fn a_name_by_itself_is_a_choice() {
        assert_eq!(read("产品"), Reading::Value(2));
        assert_eq!(read("I think so.\n**Tester.**\n"), Reading::Value(6));
        assert_eq!(read("Choice:\n- Dr. No\n"), Reading::Value(5));
        assert_eq!(read("2) 👩💻"), Reading::Value(8));
        assert_eq!(read("tester\nqa bot"), Reading::Ambiguous(vec![6, 1]));
    }

    #[test]
    fn a_name_in_prose_or_code_is_no_choice() {
        for text in [
            "The tester should look at it",
            "```\nNEXT: tester\n```",
            "> NEXT: tester",
            "<think>NEXT: tester</think> hm",
            "My next: tester",
        ] {
            assert_eq!(read(text), Reading::None, "{text}");
        }
    }

    #[test]
    fn something_else_behind_the_last_label_is_unreadable() {
        for text in ["NEXT: nobody", "NEXT: tester and qa_bot", "NEXT: 产品经", "NEXT: <name>"] {
            let text = format!("NEXT: tester\n{text}");
            assert!(matches!(read(&text), Reading::Unreadable(Unreadable::NearMiss(_))), "{text}");
        }
    }

    #[test]
    fn a_slip_is_told_and_a_bare_label_leads_over() {
        let near_miss = Reading::Unreadable(Unreadable::NearMiss("Testr.".into()));
        assert_eq!(read("I looked.\nTestr."), near_miss);
        assert_eq!(read("NEXT: tester\n**Next:**\n\nqa_bot,"), Reading::Value(1));
        assert_eq!(read("NEXT: tester\nNEXT:"), Reading::None);
    }

    #[test]
    fn several_names_are_ambiguous_where_one_is_wanted() {
        assert_eq!(read("NEXT: tester, qa_bot"), Reading::Ambiguous(vec![6, 1]));
        let all = TEAM.read_all(&Answer::text("NEXT: 产品、tester, Tester"));
        assert_eq!(all, Reading::Value(vec![2, 6]));
        let all = TEAM.read_all(&Answer::text("NEXT: [Tester, *Dr. No*, 产品]"));
        assert_eq!(all, Reading::Value(vec![6, 5, 2]));
    }

    #[test]
    fn lines_of_many_sentences_are_read_at_once() {
        for unit in ["a. ", "Dr. ", "(a. ", "tester (a. "] {
            let line = unit.repeat(500 / unit.len()) + "\n";
            let text = line.repeat((1 << 16) / line.len());
            assert!(read(&text).value().is_none(), "{unit}");
        }
    }

    #[test]
    fn names_that_loosening_makes_equal_are_ambiguous_unless_one_stands_as_written() {
        let twins = Names { key: "next", labels: &["next"], names: &[("Inc.", 1), ("Inc", 2)] };
        let read = |text: &str| twins.read(&Answer::text(text));
        assert_eq!(read("next: Inc."), Reading::Value(1));
        assert_eq!(read("next: Inc"), Reading::Value(2));
        assert_eq!(read("next: INC"), Reading::Ambiguous(vec![1, 2]));
        assert_eq!(read("INC"), Reading::Ambiguous(vec![1, 2]));
    }

    #[test]
    fn a_field_decides_alone() {
        let read = |value| TEAM.read_all(&Answer::json(value));
        assert_eq!(read(json!({"next": "Tester"})), Reading::Value(vec![6]));
        assert_eq!(read(json!({"next": ["qa-bot", "产品"]})), Reading::Value(vec![1, 2]));
        assert_eq!(read(json!({"vote": "x"})), Reading::None);
        for value in [json!([]), json!("ghost"), json!(["tester", "ghost"]), json!("")] {
            let unreadable = Unreadable::Illegal { key: "next".into(), found: value.to_string() };
            assert_eq!(read(json!({"next": value})), Reading::Unreadable(unreadable));
        }
        let answer = Answer::text("NEXT: tester\n```json\n{\"next\": \"ghost\"}\n```");
        assert!(matches!(TEAM.read(&answer), Reading::Unreadable(_)));
    }

    #[test]
    fn no_name_stands_in_for_a_field_that_is_misplaced() {
        let text = "NEXT: tester\n{\"next\": \"nobody\"}\nThat is all.";
        assert_eq!(read(text), Reading::Unreadable(Unreadable::Misplaced));
        assert_eq!(read("NEXT: tester\n{\"verdict\": \"x\"}"), Reading::Value(6));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_longer_name_is_never_read_as_a_shorter_one(more in "[a-z0-9产]{1,4}") {
            let text = format!("NEXT: tester{more}");
            prop_assert!(matches!(read(&text), Reading::Unreadable(_)));
        }

        #[test]
        fn any_reply_is_read(text in "(NEXT: |tester|[:：.,*\n\"`>{}()\\[\\] ]|\\PC){0,30}") {
            let _ = read(&text);
        }
    }
}
