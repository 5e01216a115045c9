//! Fenced code in a reply, as models write it rather than as Markdown has it.

use std::ops::Range;

/// A run of text between fence marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// Where it stands, marks included.
    pub(super) span: Range<usize>,
    /// The first word behind the opening mark, for example `json`.
    pub(super) info: &'a str,
    /// Where its content stands.
    pub(super) body: Range<usize>,
}

impl Fence<'_> {
    /// Whether it says that it holds JSON.
    pub(super) fn is_json(&self) -> bool {
        self.info.get(..4).is_some_and(|info| info.eq_ignore_ascii_case("json"))
    }
}

/// The fences of `text` in order.
///
/// A fence opens with three or more backticks anywhere in a line, or tildes at its start, and closes
/// at the end of a line with at least as many, for backticks also in the same line. An unclosed one
/// runs to the end: what might be code is never read as prose.
pub(super) fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut lines = lines(text);
    while let Some(line) = lines.next() {
        let mut from = line.start;
        while let Some((mark, marks)) = opening(text, from..line.end) {
            let rest = marks.end..line.end;
            if let Some(run) = (mark == '`').then(|| backticks(text, rest, marks.len())).flatten() {
                found.push(fence(text, marks.start..run.end, marks.end..run.start));
                from = run.end;
                continue;
            }
            let closing = lines.find_map(|line| {
                closing(text, line.clone(), mark, marks.len()).map(|body_end| (body_end, line.end))
            });
            let (body_end, end) = closing.unwrap_or((text.len(), text.len()));
            found.push(fence(text, marks.start..end, marks.end..body_end));
            break;
        }
    }
    found
}

/// The work in a reply, for telling whether it has changed: its fenced code if it has some, else the
/// whole text; white space does not matter.
pub fn work(text: &str) -> String {
    let blocks: Vec<&str> = fences(text).into_iter().map(|fence| &text[fence.body]).collect();
    let work = if blocks.is_empty() { text.to_owned() } else { blocks.join("\n") };
    work.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A fence at `span` with its info word still in `body`.
fn fence(text: &str, span: Range<usize>, body: Range<usize>) -> Fence<'_> {
    let content = &text[body.clone()];
    let start = content.len() - content.trim_start_matches([' ', '\t']).len();
    let word = content[start..].find(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    let end = word.map_or(content.len(), |length| start + length);
    Fence { span, info: &content[start..end], body: body.start + end..body.end }
}

/// The mark that opens a fence in `line`, a line or the rest of one, and where it stands.
fn opening(text: &str, line: Range<usize>) -> Option<(char, Range<usize>)> {
    let content = text[line.clone()].trim_start();
    let start = line.end - content.len();
    let tildes = content.bytes().take_while(|byte| *byte == b'~').count();
    if tildes >= 3 {
        return Some(('~', start..start + tildes));
    }
    backticks(text, start..line.end, 3).map(|run| ('`', run))
}

/// Where the content ends if `line` closes a fence of `length` marks.
fn closing(text: &str, line: Range<usize>, mark: char, length: usize) -> Option<usize> {
    let marked = text[line.clone()].trim_end();
    let content = marked.trim_end_matches(mark);
    let alone = content.trim_start().is_empty();
    let enough = marked.len() - content.len() >= length;
    (enough && (alone || mark == '`')).then_some(line.start + content.len())
}

/// The first run of at least `length` backticks in `line`.
fn backticks(text: &str, line: Range<usize>, length: usize) -> Option<Range<usize>> {
    let mut from = line.start;
    while let Some(start) = text[from..line.end].find('`').map(|offset| from + offset) {
        let run = text[start..line.end].bytes().take_while(|byte| *byte == b'`').count();
        if run >= length {
            return Some(start..start + run);
        }
        from = start + run;
    }
    None
}

/// Where the lines of `text` stand, ends included.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let span = start..start + line.len();
        start = span.end;
        span
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Info words and trimmed bodies.
    fn seen(text: &str) -> Vec<(&str, &str)> {
        fences(text).iter().map(|fence| (fence.info, text[fence.body.clone()].trim())).collect()
    }

    #[test]
    fn backticks_and_tildes_of_any_length_are_fences() {
        assert_eq!(seen("a\n```json\n{}\n```\nb"), [("json", "{}")]);
        assert_eq!(seen("~~~~\nx\n~~~\ny\n~~~~~\nz"), [("", "x\n~~~\ny")]);
        assert_eq!(
            seen("````md\n```\ninner\n```\n````\n```\nnext\n```"),
            [("md", "```\ninner\n```"), ("", "next")]
        );
        assert_eq!(seen("```json\r\n[1]\r\n```\r\n"), [("json", "[1]")]);
    }

    #[test]
    fn a_fence_may_open_and_close_within_a_line() {
        assert_eq!(seen("```json {\"a\": 1} ``` done"), [("json", "{\"a\": 1}")]);
        assert_eq!(seen("so: ```json\n{\"a\":\n1}```\nthen"), [("json", "{\"a\":\n1}")]);
        assert_eq!(seen("```{\"a\":1}\n```"), [("", "{\"a\":1}")]);
        assert_eq!(seen("- ```\n  x\n  ```\n- ```\n  y\n  ```"), [("", "x"), ("", "y")]);
    }

    #[test]
    fn an_unclosed_fence_runs_to_the_end() {
        assert_eq!(seen("```\na\n``\nb"), [("", "a\n``\nb")]);
        assert_eq!(seen("~~~ js\na ~~~ b"), [("js", "a ~~~ b")]);
    }

    #[test]
    fn marks_inside_a_line_of_code_close_nothing() {
        assert_eq!(
            seen("```json\n{\"say\": \"a ``` b\"}\n```"),
            [("json", "{\"say\": \"a ``` b\"}")]
        );
    }

    #[test]
    fn the_work_is_the_code_if_there_is_any_and_blanks_do_not_matter() {
        assert_eq!(work("first:\n```py\na  = 1\n```\nthen\n~~~\nb\n~~~"), "a = 1 b");
        assert_eq!(work(" all\n\nof it "), "all of it");
    }

    #[test]
    fn emphasis_and_short_marks_are_no_fences() {
        assert!(fences("`a` ``b`` and ~~gone~~ and x ~~~ y").is_empty());
    }

    proptest! {
        #[test]
        fn fences_stand_in_order_and_hold_their_bodies(text in "[`~\n a{é]{0,60}") {
            let mut end = 0;
            for fence in fences(&text) {
                prop_assert!(end <= fence.span.start && fence.span.start < fence.body.start);
                prop_assert!(fence.body.start <= fence.body.end && fence.body.end <= fence.span.end);
                prop_assert!(text.get(fence.body.clone()).is_some());
                end = fence.span.end;
            }
        }
    }
}
