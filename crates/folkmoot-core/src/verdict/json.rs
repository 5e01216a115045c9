//! JSON in a reply, found by parsing (rules.md 3.1).
//!
//! Braces and fence marks are never counted: the parser is tried where a value could begin and says
//! where it ends. One repair is known (rules.md 3.3): a comma before a closing bracket, outside
//! strings, is dropped. Nothing invents an ending.
//!
//! Limits (rules.md 3.9): a text has at most [`MAX_BYTES`], a value nests at most 127 deep, and all
//! attempts together read at most [`MAX_PASSES`] times what the text holds.

use std::{collections::BTreeMap, ops::Range, vec};

use serde_json::{Deserializer, Value, error::Category};

use super::fences::Fence;

/// The longest text in which JSON is looked for.
pub const MAX_BYTES: usize = 2 << 20;

/// How often all attempts together may read a text.
const MAX_PASSES: usize = 8;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

/// Why a text, or the rest of it, is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It ends inside a value.
    CutOff,
    /// A limit of this module is reached.
    TooMuch,
    /// Anything else.
    Syntax,
}

/// The values in a text: those that begin in fences first, each group from left to right.
pub(super) struct Scan<'a> {
    text: &'a str,
    /// What is left to look through.
    here: Range<usize>,
    stretches: vec::IntoIter<Range<usize>>,
    /// Where the values begin and end that were read.
    read: BTreeMap<usize, usize>,
    /// How many bytes all attempts have read.
    work: usize,
    /// Where the failed attempt that read most began, and how many bytes it read.
    failed: Option<(usize, usize)>,
    stopped: Option<Failure>,
}

/// A value, or why there is none; and how many bytes were read.
type Attempt = Result<(Value, usize), (Failure, usize)>;

impl<'a> Scan<'a> {
    /// Looks through `text`, whose fences are `fences`.
    pub(super) fn new(text: &'a str, fences: &[Fence<'_>]) -> Scan<'a> {
        let fences = outside_strings(text, fences);
        let inside = fences.iter().map(|fence| fence.body.clone());
        let starts = fences.iter().map(|fence| fence.span.start).chain([text.len()]);
        let ends = [0].into_iter().chain(fences.iter().map(|fence| fence.span.end));
        let outside = ends.zip(starts).map(|(end, start)| end..start);
        Scan {
            text,
            stretches: inside.chain(outside).collect::<Vec<_>>().into_iter(),
            here: 0..0,
            read: BTreeMap::new(),
            work: 0,
            failed: None,
            stopped: (text.len() > MAX_BYTES).then_some(Failure::TooMuch),
        }
    }

    /// Why the scan ended before the text did.
    pub(super) fn stopped(&self) -> Option<Failure> {
        self.stopped
    }

    /// Where the attempt failed that read most, if any did: the byte it could not read, or the last
    /// one of a text that was cut off.
    pub(super) fn failed_at(&self) -> Option<usize> {
        self.failed.map(|(start, read)| start + read.saturating_sub(1))
    }

    /// Where the next value could begin.
    fn opening(&mut self) -> Option<usize> {
        loop {
            let rest = self.text.as_bytes().get(self.here.clone()).unwrap_or_default();
            match rest.iter().position(|byte| matches!(byte, b'{' | b'[')) {
                None => self.here = self.stretches.next()?,
                Some(offset) => {
                    let start = self.here.start + offset;
                    let before = self.read.range(..=start).next_back();
                    match before.map(|(_, end)| *end).filter(|end| *end > start) {
                        Some(end) => self.here.start = end,
                        None => return Some(start),
                    }
                }
            }
        }
    }

    /// What stands at `start`, trailing commas dropped; or how far it could be read.
    fn attempt(&mut self, start: usize) -> Attempt {
        let source = &self.text[start..];
        let outcome = self.first_value(source);
        match outcome {
            Err((Failure::Syntax, read)) if ends_in_trailing_comma(&source[..read]) => {
                let repaired = without_trailing_commas(source);
                // It may have gone on far behind what is read then.
                self.work += repaired.len();
                self.first_value(&repaired)
            }
            _ => outcome,
        }
    }

    fn first_value(&mut self, source: &str) -> Attempt {
        let outcome = first_value(source);
        self.work += match outcome {
            Ok((_, read)) | Err((_, read)) => read,
        };
        outcome
    }

    /// Notes that the attempt at `start` failed after so many bytes.
    fn fail(&mut self, start: usize, failure: Failure, read: usize) {
        let furthest = self.failed.is_none_or(|(_, most)| most < read);
        if furthest || failure != Failure::Syntax {
            self.failed = Some((start, read));
        }
        let exhausted = self.work > MAX_PASSES * self.text.len();
        self.stopped = match failure {
            Failure::Syntax => exhausted.then_some(Failure::TooMuch),
            Failure::CutOff | Failure::TooMuch => Some(failure),
        };
    }
}

impl Iterator for Scan<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        while self.stopped.is_none() {
            let start = self.opening()?;
            match self.attempt(start) {
                Ok((value, length)) => {
                    self.here.start = start + length;
                    self.read.insert(start, start + length);
                    return Some(Found { span: start..start + length, value });
                }
                Err((failure, read)) => {
                    self.here.start = start + 1;
                    self.fail(start, failure, read);
                }
            }
        }
        None
    }
}

/// The fences whose opening mark cannot stand in a string: no quotation mark precedes it in its line.
fn outside_strings<'f, 'a>(text: &str, fences: &'f [Fence<'a>]) -> Vec<&'f Fence<'a>> {
    let (mut quoted, mut at) = (false, 0);
    let is_outside = |fence: &&Fence<'_>| {
        for byte in text[at..fence.span.start].bytes() {
            quoted = byte == b'"' || quoted && byte != b'\n';
        }
        at = fence.span.start;
        !quoted
    };
    fences.iter().filter(is_outside).collect()
}

/// The object or list that `text` is, white space around it aside.
pub(super) fn whole(text: &str) -> Result<Value, Failure> {
    let text = text.trim();
    let mut scan = Scan::new(text, &[]);
    match scan.next() {
        Some(found) if found.span == (0..text.len()) => Ok(found.value),
        Some(_) => Err(Failure::Syntax),
        None => Err(scan.stopped().unwrap_or(Failure::Syntax)),
    }
}

/// The value at the start of `source`, and where the parser says that it ends.
fn first_value(source: &str) -> Attempt {
    let mut values = Deserializer::from_str(source).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(error)) => Err((failure(&error), bytes_before(source, &error))),
        None => Err((Failure::Syntax, 0)),
    }
}

fn failure(error: &serde_json::Error) -> Failure {
    match error.classify() {
        Category::Eof => Failure::CutOff,
        // The parser names its limit on depth in words only.
        Category::Syntax if error.to_string().starts_with("recursion limit") => Failure::TooMuch,
        Category::Syntax | Category::Data | Category::Io => Failure::Syntax,
    }
}

/// How many bytes the parser had taken when `error` came.
fn bytes_before(source: &str, error: &serde_json::Error) -> usize {
    let lines = source.split_inclusive('\n').take(error.line().saturating_sub(1));
    let read = lines.map(str::len).sum::<usize>() + error.column();
    (read.min(source.len())..=source.len())
        .find(|end| source.is_char_boundary(*end))
        .unwrap_or(source.len())
}

fn ends_in_trailing_comma(read: &str) -> bool {
    let before = read.strip_suffix([']', '}']);
    before.is_some_and(|before| before.trim_end().ends_with(','))
}

/// The value at the start of `source`, as far as brackets outside strings tell, with blanks in place
/// of the commas before closing brackets, so that every offset stays.
fn without_trailing_commas(source: &str) -> String {
    let mut bytes = Vec::with_capacity(source.len().min(4096));
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    let mut comma = None;
    for byte in source.bytes() {
        bytes.push(byte);
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if let Some(comma) = comma {
                    bytes[comma] = b' ';
                }
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if !byte.is_ascii_whitespace() {
            comma = (byte == b',').then_some(bytes.len() - 1);
        }
    }
    String::from_utf8(bytes).expect("only commas became blanks, and it ends behind an ASCII byte")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::{super::fences::fences, *};

    fn values(text: &str) -> Vec<Value> {
        Scan::new(text, &fences(text)).map(|found| found.value).collect()
    }

    fn end_of_scan(text: &str) -> Option<Failure> {
        let mut scan = Scan::new(text, &fences(text));
        while scan.next().is_some() {}
        scan.stopped()
    }

    #[test]
    fn a_value_ends_where_the_parser_says() {
        let text = r#"Use {braces} [freely]: {"a": "} ] ``` {"} and [1, {"b": []}] too"#;
        assert_eq!(values(text), [json!({"a": "} ] ``` {"}), json!([1, {"b": []}])]);
    }

    #[test]
    fn values_in_fences_come_first_and_none_comes_twice() {
        let text = "[1]\n```json\n[2]\n[3]\n```\n[4]\n```[5]``` [6]";
        let order = [2, 3, 5, 1, 4, 6].map(|n| json!([n]));
        assert_eq!(values(text), order);
    }

    #[test]
    fn a_mark_inside_a_string_is_no_fence() {
        let text = r#"{"a": "x ``` [1] [", "b": "[2] ``` {"}"#;
        assert_eq!(values(text), [json!({"a": "x ``` [1] [", "b": "[2] ``` {"})]);
    }

    #[test]
    fn a_value_reaches_beyond_a_mark_that_only_looks_like_the_end_of_its_fence() {
        let text = "```json\n{\"a\": [1,\n2 \n```\n] }\n```";
        assert_eq!(end_of_scan(text), None);
        let text = "```\n[1]\n```\n{\"a\":\n[2]}";
        assert_eq!(values(text), [json!([1]), json!({"a": [2]})]);
    }

    #[test]
    fn trailing_commas_are_dropped_outside_strings_only() {
        let text = r#"{"a": ["x,]", "\",}", 1 , ] , }"#;
        assert_eq!(values(text), [json!({"a": ["x,]", "\",}", 1]})]);
        assert_eq!(values("[1,,] [,] [2,]"), [json!([2])]);
    }

    #[test]
    fn a_text_that_ends_inside_a_value_is_cut_off() {
        for text in ["[", "x {\"a\": \"b", "[1] {\"a\": [1,", "{\"a\": [1,], \"b\": ", "[\"a\\"] {
            assert_eq!(end_of_scan(text), Some(Failure::CutOff), "{text}");
        }
        for text in ["{a", "[x", "[1] ]", "{\"a\" 1", "[\"a\nb"] {
            assert_eq!(end_of_scan(text), None, "{text}");
        }
    }

    #[test]
    fn the_attempt_that_came_furthest_tells_where_it_failed() {
        let text = "{x} {\"a\": 1, \"b\" 2} {y}";
        let mut scan = Scan::new(text, &[]);
        assert_eq!(scan.next(), None);
        assert_eq!(scan.failed_at().map(|at| &text[at..=at]), Some("2"));
    }

    #[test]
    fn a_whole_text_is_one_value_or_none() {
        assert_eq!(whole(" {\"a\": 1,}\n"), Ok(json!({"a": 1})));
        assert_eq!(whole("{} {}"), Err(Failure::Syntax));
        assert_eq!(whole("x {}"), Err(Failure::Syntax));
        assert_eq!(whole("null"), Err(Failure::Syntax));
        assert_eq!(whole("{\"a\": "), Err(Failure::CutOff));
    }

    #[test]
    fn a_value_may_nest_up_to_the_limit_and_no_deeper() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(whole(&nested(127)).is_ok());
        assert_eq!(whole(&nested(128)), Err(Failure::TooMuch));
    }

    #[test]
    fn hostile_texts_of_a_mebibyte_are_refused_at_once() {
        let much = |unit: &str| unit.repeat((1 << 20) / unit.len());
        for unit in ["[", "{\"a\":", "[[],", "[{\"[\":[", "[[1,] x "] {
            assert_eq!(end_of_scan(&much(unit)), Some(Failure::TooMuch), "{unit}");
        }
        let long = format!("{}{}x", "[".repeat(100), "1,".repeat(1 << 16));
        assert_eq!(end_of_scan(&long), Some(Failure::TooMuch));
        assert_eq!(end_of_scan(&format!("{}x", much("{ "))), None);
        assert_eq!(end_of_scan(&"[".repeat(MAX_BYTES + 1)), Some(Failure::TooMuch));
    }

    #[test]
    fn many_repairs_cost_no_more_than_one_pass_each() {
        let mut text = String::new();
        for n in 0..4_000 {
            write!(text, "{{\"n\": [{n},],}} ").expect("writing to a string cannot fail");
        }
        assert_eq!(values(&text).len(), 4_000);
    }

    proptest! {
        #[test]
        fn any_text_is_looked_through(text in "[\\[\\]{}\",:\\\\a1 \n`é]{0,80}") {
            let fences = fences(&text);
            let mut scan = Scan::new(&text, &fences);
            let mut seen: Vec<Range<usize>> = Vec::new();
            for found in scan.by_ref() {
                let begins_inside = seen.iter().any(|other| other.contains(&found.span.start));
                prop_assert!(!begins_inside);
                prop_assert!(text.get(found.span.clone()).is_some());
                seen.push(found.span);
            }
        }

        #[test]
        fn a_value_is_found_in_any_prose(
            before in "[a-z .,:<>()`']{0,20}", after in "[a-z .,:<>()`'\\]}]{0,20}", text in "\\PC{0,20}",
        ) {
            let value = json!({"text": text, "list": [1, {"x": null}]});
            prop_assert_eq!(values(&format!("{before}{value}{after}")), vec![value]);
        }

        #[test]
        fn a_cut_off_value_is_never_a_shorter_one(text in "[a-z\"\\\\]{0,8}", cut in 1usize..1000) {
            let value = json!({"tasks": [{"id": text, "n": [1, 2]}, {"id": "b"}]}).to_string();
            let cut = (1..value.len()).nth(cut % (value.len() - 1)).expect("the rest is in range");
            prop_assert_eq!(whole(&value[..cut]), Err(Failure::CutOff));
        }
    }
}
