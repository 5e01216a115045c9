//! Reading the plan of a supervisor (strategies.md §5.1). [`crate::plan`] repairs and routes it.

use std::{collections::BTreeSet, iter, ops::Range, slice, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use super::{
    clean::{before_cut, cut, reasoning},
    fences::{Fence, fences},
    json::Scan,
    lines,
};
use crate::call::Answer;

/// What a reply says about tasks.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanReading {
    /// JSON with at least one usable entry.
    Json(Vec<Entry>),
    /// Prose: a task a line.
    Lines(Vec<Entry>),
    /// It is blank, or JSON without a usable entry, or holds no line that is a task.
    Empty,
    /// It is meant to be JSON and cannot be read. A plan that is cut off is not read in part: what is
    /// missing could be the point of it.
    Undecodable {
        /// The line of the reply in which reading stopped, from 1.
        line: usize,
        /// The character of that line, from 1.
        column: usize,
    },
}

/// One entry of a plan, as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its id; blank if it came blank.
    pub id: Option<String>,
    /// What is to be done, byte for byte. Without it the entry is not usable.
    pub description: Option<String>,
    /// Who is to do it.
    pub agent: Option<String>,
    /// The ids of the tasks whose outputs it needs.
    pub depends_on: Dependencies,
    /// What who does it must be able to do.
    pub required_capabilities: Vec<String>,
}

/// The dependencies of an entry, as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// A list.
    List(Vec<String>),
    /// A single text or number where a list is due.
    Single(String),
}

impl Dependencies {
    /// The ids they name; a single text is one.
    pub fn ids(&self) -> &[String] {
        match self {
            Dependencies::List(ids) => ids,
            Dependencies::Single(id) => slice::from_ref(id),
        }
    }
}

impl Default for Dependencies {
    fn default() -> Dependencies {
        Dependencies::List(Vec::new())
    }
}

impl Entry {
    /// An entry that is a text.
    fn text(text: &str) -> Entry {
        Entry { description: filled(text), ..Entry::default() }
    }

    fn json(value: &Value) -> Entry {
        let object = match value {
            Value::String(text) => return Entry::text(text),
            Value::Object(object) => object,
            _ => return Entry::default(),
        };
        let text = |key| object.get(key).and_then(Value::as_str).and_then(filled);
        let given = |key| object.get(key).filter(|value| !value.is_null());
        Entry {
            id: given("id").filter(|id| id.is_string() || id.is_number()).map(name),
            description: text("description").or_else(|| text("task")),
            agent: given("agent").map(name).filter(|agent| !agent.is_empty()),
            depends_on: match given("depends_on") {
                Some(single @ (Value::String(_) | Value::Number(_))) => {
                    Dependencies::Single(name(single))
                }
                several => Dependencies::List(several.map_or_else(Vec::new, names)),
            },
            required_capabilities: given("required_capabilities").map_or_else(Vec::new, names),
        }
    }
}

fn filled(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// `value` as a name: numbers and texts match by their text, and what is neither matches nothing.
fn name(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

/// The names in a list; what is no list counts as one name.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().filter(|item| !item.is_null()).map(name).collect(),
        _ => vec![name(value)],
    }
}

/// Reads the plan in `answer`.
pub fn read(answer: &Answer) -> PlanReading {
    match &answer.json {
        Some(value) => usable(candidate(value, true)).map_or(PlanReading::Empty, PlanReading::Json),
        None => read_text(&answer.text),
    }
}

fn read_text(reply: &str) -> PlanReading {
    let spans = reasoning(reply);
    let text = cut(reply, &spans);
    let text = text.trim_end();
    if text.is_empty() {
        return PlanReading::Empty;
    }
    match Json::look(text, &fences(text)) {
        Json::Plan(entries) => PlanReading::Json(entries),
        Json::Other => PlanReading::Empty,
        Json::Broken(at) => {
            let (line, column) = place(reply, before_cut(&spans, at));
            PlanReading::Undecodable { line, column }
        }
        Json::None => {
            let entries: Vec<Entry> = lines::tasks(text).into_iter().map(Entry::text).collect();
            if entries.is_empty() { PlanReading::Empty } else { PlanReading::Lines(entries) }
        }
    }
}

/// What JSON a text holds.
enum Json {
    /// A plan with a usable entry.
    Plan(Vec<Entry>),
    /// Some that is no plan, or one without content.
    Other,
    /// Some that cannot be read, up to this byte.
    Broken(usize),
    /// None.
    None,
}

impl Json {
    fn look(text: &str, fences: &[Fence<'_>]) -> Json {
        let wholes = wholes(text, fences);
        let is_constant =
            |&(start, end): &(usize, usize)| matches!(&text[start..end], "null" | "true" | "false");
        let mut found_other = wholes.iter().any(is_constant);
        let mut scan = Scan::new(text, fences);
        for found in scan.by_ref() {
            let whole = wholes.contains(&(found.span.start, found.span.end));
            let entries = candidate(&found.value, whole);
            found_other |= whole || entries.is_some();
            if let Some(entries) = usable(entries) {
                return Json::Plan(entries);
            }
        }
        if found_other {
            return Json::Other;
        }
        let stopped = scan.stopped().is_some();
        match (stopped || claims_json(text, fences), scan.failed_at()) {
            (true, at) => Json::Broken(at.unwrap_or_default()),
            (false, _) => Json::None,
        }
    }
}

/// Where the text as a whole and the whole of each fence begin and end, white space aside.
fn wholes(text: &str, fences: &[Fence<'_>]) -> BTreeSet<(usize, usize)> {
    let bodies = fences.iter().map(|fence| fence.body.clone());
    let trimmed = |span: Range<usize>| {
        let inner = text[span.clone()].trim_start();
        let start = span.end - inner.len();
        (start, start + inner.trim_end().len())
    };
    iter::once(0..text.len()).chain(bodies).map(trimmed).collect()
}

/// Whether `text` is meant to be JSON though no value was found.
fn claims_json(text: &str, fences: &[Fence<'_>]) -> bool {
    static TASKS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""tasks"\s*:"#).expect("the pattern is sound"));
    let begins = text.trim_start();
    let begins_list = begins.strip_prefix('[').map(str::trim_start);
    begins.starts_with('{')
        || begins_list.is_some_and(|item| item.starts_with(['{', '"']))
        || fences.iter().any(Fence::is_json)
        || TASKS.is_match(text)
}

/// The list of tasks that `value` is or holds: an object with a list `tasks`, a list with objects that
/// have a description, or, if nothing stands beside it, a list of texts.
fn candidate(value: &Value, whole: bool) -> Option<&[Value]> {
    let describes = |item: &Value| item.get("description").or_else(|| item.get("task")).is_some();
    match value {
        Value::Object(object) => object.get("tasks")?.as_array().map(Vec::as_slice),
        Value::Array(list) => {
            let texts = whole && !list.is_empty() && list.iter().all(Value::is_string);
            (texts || list.iter().any(describes)).then_some(list)
        }
        _ => None,
    }
}

/// The entries of a candidate, if one of them is usable.
fn usable(candidate: Option<&[Value]>) -> Option<Vec<Entry>> {
    let entries: Vec<Entry> = candidate?.iter().map(Entry::json).collect();
    entries.iter().any(|entry| entry.description.is_some()).then_some(entries)
}

/// The line and column, both from 1, of the character at `offset`.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> PlanReading {
        super::read(&Answer::text(text))
    }

    /// The descriptions of the entries that a JSON plan has.
    #[track_caller]
    fn json_tasks(text: &str) -> Vec<String> {
        match read(text) {
            PlanReading::Json(entries) => {
                entries.into_iter().filter_map(|e| e.description).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[track_caller]
    fn line_tasks(text: &str) -> Vec<String> {
        match read(text) {
            PlanReading::Lines(entries) => {
                entries.into_iter().filter_map(|e| e.description).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_plan_is_found_wherever_and_however_it_stands() {
        let plan = r#"{"tasks":[{"id":"s1","agent":"w","description":"write"}]}"#;
        for text in [
            plan.to_owned(),
            format!("```json\n{plan}\n```"),
            format!("```\n{plan}\n```"),
            format!("```JSON5\n{plan}\n```"),
            format!("```json {plan} ```"),
            format!("`````json\r\n{plan}\r\n`````\r\n"),
            format!("~~~\n{plan}\n~~~"),
            format!("```json\n{plan}"),
            format!("Use {{braces}} and [lists] freely: {plan} Good luck [1]."),
            format!("<think>{{\"tasks\":[\"bad\"]}}</think>\n{plan}"),
            format!("[\"a\"] is no plan, this is: {plan}"),
            format!("{{\"tasks\": []}} no: {plan}"),
        ] {
            assert_eq!(json_tasks(&text), ["write"], "{text}");
        }
    }

    #[test]
    fn a_list_is_a_plan_if_its_entries_describe_tasks() {
        assert_eq!(json_tasks(r#"Here: [{"id":"t1","description":"a"},{"task":"b"}]"#), ["a", "b"]);
        assert_eq!(json_tasks(r#"["a", "b",]"#), ["a", "b"]);
        assert_eq!(json_tasks("so:\n```\n[\"a\"]\n```"), ["a"]);
        assert_eq!(line_tasks("Collect [\"a\", \"b\"]"), ["Collect [\"a\", \"b\"]"]);
    }

    #[test]
    fn a_fence_comes_before_prose_and_content_before_none() {
        let text = "A draft: {\"tasks\":[\"draft\"]}\n```json\n{\"tasks\":[\"final\"]}\n```";
        assert_eq!(json_tasks(text), ["final"]);
        let text = "{\"tasks\":[\"first\"]}\n{\"tasks\":[\"second\"]}";
        assert_eq!(json_tasks(text), ["first"]);
        let text = "```\n{\"tasks\":[{\"id\":1}]}\n```\n{\"tasks\":[\"second\"]}";
        assert_eq!(json_tasks(text), ["second"]);
    }

    #[test]
    fn strings_are_handed_on_byte_for_byte() {
        let text = r#"{"tasks":[{"description":" list a,] then b,} ``` <think> \"c\" "},],}"#;
        assert_eq!(json_tasks(text), [r#" list a,] then b,} ``` <think> "c" "#]);
    }

    #[test]
    fn entries_are_read_field_by_field() {
        let value = json!({"tasks": [
            {"id": 0, "description": "a", "agent": " w ", "depends_on": ["x", 2], "required_capabilities": "sql"},
            {"id": " ", "task": "b", "description": "  ", "agent": "", "depends_on": "x, y"},
            {"id": ["t"], "description": "c", "depends_on": null, "required_capabilities": [1, null]},
            {"id": null, "description": 5, "depends_on": 3, "agent": ["w"]},
            "d", 7, null,
        ]});
        let PlanReading::Json(entries) = super::read(&Answer::json(value)) else {
            panic!("it is a plan");
        };
        let some = |text: &str| Some(text.to_owned());
        let list =
            |names: &[&str]| Dependencies::List(names.iter().map(|&name| name.into()).collect());
        assert_eq!(
            entries[..4],
            [
                Entry {
                    id: some("0"),
                    description: some("a"),
                    agent: some("w"),
                    depends_on: list(&["x", "2"]),
                    required_capabilities: vec!["sql".into()],
                },
                Entry {
                    id: some(""),
                    description: some("b"),
                    depends_on: Dependencies::Single("x, y".into()),
                    ..Entry::default()
                },
                Entry {
                    description: some("c"),
                    required_capabilities: vec!["1".into()],
                    ..Entry::default()
                },
                Entry {
                    agent: some("[\"w\"]"),
                    depends_on: Dependencies::Single("3".into()),
                    ..Entry::default()
                },
            ]
        );
        assert_eq!(entries[4..], [Entry::text("d"), Entry::default(), Entry::default()]);
    }

    #[test]
    fn json_that_is_no_plan_and_a_blank_reply_have_no_tasks() {
        for text in [
            "",
            " \n\u{3000}",
            "<think>{\"tasks\":[\"a\"]}",
            "{}",
            "[]",
            " null ",
            "{\"tasks\": []}",
            "{\"tasks\": [{\"id\": 1}, {\"description\": \" \"}]}",
            "{\"plan\": {\"tasks\": [\"a\"]}}",
            "```json\nfalse\n```",
            "Nothing to do:\n```\n{\"answer\": 42}\n```",
            "[\"a\", 1]",
            "# Plan\n---\n-\n",
        ] {
            assert_eq!(read(text), PlanReading::Empty, "{text}");
        }
        for value in [json!(null), json!("a"), json!([]), json!({"error": "boom"}), json!(["a", 1])]
        {
            assert_eq!(super::read(&Answer::json(value)), PlanReading::Empty);
        }
    }

    #[test]
    fn a_structured_reply_is_the_plan() {
        let texts = super::read(&Answer::json(json!(["a"])));
        assert_eq!(texts, PlanReading::Json(vec![Entry::text("a")]));
    }

    #[test]
    fn a_cut_off_plan_is_undecodable() {
        let at = |line, column| PlanReading::Undecodable { line, column };
        assert_eq!(read("{\"tasks\": [{\"id\": \"t1\", \"descr"), at(1, 30));
        assert_eq!(read("So:\n```json\n{\"tasks\": [\"a\",\n\"é\",\n \"b"), at(5, 3));
        assert_eq!(read("<think>\n\n</think>{\"tasks\": [\"a\","), at(3, 23));
        assert_eq!(read("Draft {\"tasks\":[\"a\"]}\n```json\n{\"tasks\": [\"b\""), at(3, 14));
        assert_eq!(read("{\"tasks\": [\n \n"), at(1, 11));
        assert_eq!(json_tasks("{\"tasks\":[\"a\"]} and {\"x\": "), ["a"]);
    }

    #[test]
    fn what_is_meant_to_be_json_and_is_none_is_undecodable() {
        for text in [
            "{tasks: [a]}",
            "[ {description: 'a'} ]",
            "[\"a\" \"b\"]",
            "```json\ndo a\n```",
            "Plan: \"tasks\" : a",
            "{\"tasks\": [{\"description\": \"two\nlines\"}]}",
        ] {
            assert!(matches!(read(text), PlanReading::Undecodable { .. }), "{text}");
        }
        let text = "The {plan}:\n{\"tasks\": [\"a\" \"b\"]}";
        assert_eq!(read(text), PlanReading::Undecodable { line: 2, column: 16 });
    }

    #[test]
    fn a_plan_of_a_mebibyte_is_read_at_once() {
        let mut plan = String::from("{\"tasks\": [");
        for n in 0..20_000 {
            write!(plan, "{{\"id\":{n},\"task\":\"t\",\"depends_on\":[{}]}},", n + 1)
                .expect("writing to a string cannot fail");
        }
        plan.push_str("]}");
        assert_eq!(json_tasks(&plan).len(), 20_000);
        assert_eq!(line_tasks(&"- a\n".repeat(50_000)).len(), 50_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_reply_is_read(text in "(\\{\"tasks\":|\\[|\\]|\\}|\"a\"|,|```|<think>|- |[\n:]|\\PC){0,30}") {
            let _ = read(&text);
        }

        #[test]
        fn prose_around_changes_no_plan(
            before in "[a-z .,()]{0,20}\n?", after in "[a-z .,()}\\]]{0,20}", task in "\\PC{0,12}",
        ) {
            let task = format!("do {task}");
            let plan = json!({"tasks": [{"description": task}]});
            prop_assert_eq!(json_tasks(&format!("{before}{plan}{after}")), vec![task]);
        }
    }
}
