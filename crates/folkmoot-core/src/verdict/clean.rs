//! What a reply says in its author's own words.
//!
//! Plans and ballots are read with reasoning alone taken out, ballots without copied `<reply>` blocks
//! too; everything else is read from [`prose`], or from [`spoken`] where names may stand in quotes.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex::Regex;

use super::{fences::fences, json};
use crate::text::is_invisible;

/// Stands where something was masked inside a line, so that what is left of the line does not read
/// like the whole of it. A private-use character: no word holds it.
const MASK: char = '\u{E000}';

/// Double quotation marks, and what closes them.
const QUOTES: [(char, &str); 8] = [
    ('"', "\""),
    ('＂', "＂"),
    ('“', "”"),
    ('„', "“”"),
    ('«', "»"),
    ('「', "」"),
    ('『', "』"),
    ('〝', "〞〟"),
];

/// What a closing tag without an opening one means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Orphan {
    /// What precedes it is inside: some models leave out the opening tag.
    Closes,
    /// It is text.
    Text,
}

/// The text without reasoning (rules.md 1.3).
pub(super) fn without_reasoning(text: &str) -> Cow<'_, str> {
    cut(text, &reasoning(text))
}

/// The text without `<reply …>` blocks, in which prompts quote others (strategies.md §1.4).
pub(super) fn without_replies(text: &str) -> Cow<'_, str> {
    static TAG: LazyLock<Regex> = LazyLock::new(|| tag("reply", "[^>]*"));
    cut(text, &enclosed(text, &TAG, Orphan::Text))
}

/// Where `text` holds reasoning: from `<think>` or its like to the closing tag, any case; unclosed to
/// the end. A tag inside a JSON value is content.
pub(super) fn reasoning(text: &str) -> Vec<Range<usize>> {
    static TAG: LazyLock<Regex> =
        LazyLock::new(|| tag("think|thinking|thoughts?|reasoning", "[^<>]*"));
    enclosed(text, &TAG, Orphan::Closes)
}

fn tag(names: &str, attributes: &str) -> Regex {
    Regex::new(&format!(r"(?i)<(/?)(?:{names})(?:\s{attributes})?>")).expect("the pattern is sound")
}

/// Where `text` stands between tags.
fn enclosed(text: &str, tag: &Regex, orphan: Orphan) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut open = None;
    for found in tags(text, tag) {
        let closes = text[found.start..].starts_with("</");
        match (open, closes) {
            (None, false) => open = Some(found.start),
            (Some(start), true) => {
                spans.push(start..found.end);
                open = None;
            }
            (None, true) if orphan == Orphan::Closes => {
                spans.push(spans.last().map_or(0, |last| last.end)..found.end);
            }
            (Some(_), false) | (None, true) => {}
        }
    }
    spans.extend(open.map(|start| start..text.len()));
    spans
}

/// The tags in `text` outside JSON values.
fn tags(text: &str, tag: &Regex) -> Vec<Range<usize>> {
    let mut tags: Vec<Range<usize>> = tag.find_iter(text).map(|found| found.range()).collect();
    if !tags.is_empty() {
        let mut values = json::Scan::new(text, &[]).map(|found| found.span).peekable();
        tags.retain(|tag| {
            while values.next_if(|value| value.end <= tag.start).is_some() {}
            values.peek().is_none_or(|value| tag.start < value.start)
        });
    }
    tags
}

/// `text` without `spans`, which stand in order.
pub(super) fn cut<'a>(text: &'a str, spans: &[Range<usize>]) -> Cow<'a, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let starts = [0].into_iter().chain(spans.iter().map(|span| span.end));
    let ends = spans.iter().map(|span| span.start).chain([text.len()]);
    starts.zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// Where the byte at `offset` stood before `spans` were cut.
pub(super) fn before_cut(spans: &[Range<usize>], offset: usize) -> usize {
    spans.iter().fold(offset, |at, span| if span.start <= at { at + span.len() } else { at })
}

/// The author's own words: without reasoning, quoted replies, fenced code, lines that begin with `>`
/// and characters without width (collaborate.md §8.2).
pub(super) fn spoken(text: &str) -> Cow<'_, str> {
    if is_all_own(text) { Cow::Borrowed(text) } else { Cow::Owned(without_foreign(text)) }
}

fn without_foreign(text: &str) -> String {
    let text: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let text = without_reasoning(&text);
    let text = without_replies(&text);
    let mut spoken = String::with_capacity(text.len());
    let mut from = 0;
    for fence in fences(&text) {
        spoken.push_str(&text[from..fence.span.start]);
        spoken.push(MASK);
        if text[fence.span.clone()].ends_with('\n') {
            spoken.push('\n');
        }
        from = fence.span.end;
    }
    spoken.push_str(&text[from..]);
    let own = |line: &&str| !line.trim_start().starts_with('>');
    spoken.split(['\n', '\r']).filter(own).collect::<Vec<_>>().join("\n")
}

/// Whether a glance shows that nothing needs to be taken out. A run is gone through from its start
/// after each event, so most replies are looked at many times.
fn is_all_own(text: &str) -> bool {
    let is_marked = text.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'\r'));
    let is_fenced = || text.contains("```") || text.contains("~~~");
    let hides = || !text.is_ascii() && text.chars().any(is_invisible);
    !is_marked && !is_fenced() && !hides()
}

/// The author's own words without what stands in double quotation marks.
pub(super) fn prose(text: &str) -> String {
    masked_quotes(&spoken(text))
}

/// `text` with a mask for each quotation that closes within its paragraph.
fn masked_quotes(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut open: Option<(usize, &str)> = None;
    let mut blank_line = false;
    for (at, c) in text.char_indices() {
        match open {
            Some((_, close)) if close.contains(c) => {
                masked.push(MASK);
                open = None;
            }
            Some((start, _)) if c == '\n' && blank_line => {
                masked.push_str(&text[start..=at]);
                open = None;
            }
            Some(_) => {}
            None => match QUOTES.iter().find(|(quote, _)| *quote == c) {
                Some((_, close)) => open = Some((at, *close)),
                None => masked.push(c),
            },
        }
        blank_line = c == '\n' || blank_line && c.is_whitespace();
    }
    if let Some((start, _)) = open {
        masked.push_str(&text[start..]);
    }
    masked
}

/// One sentence, its end mark included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    pub(super) text: &'a str,
    /// It and what follows in its line.
    pub(super) line: &'a str,
}

/// The sentences of `text`: each ends at `. ! ? ;` before a blank, at `。 ！ ？ ；`, or with its line;
/// decoration may stand behind its end mark (collaborate.md §8.2).
pub(super) fn sentences(text: &str) -> impl Iterator<Item = Sentence<'_>> {
    text.lines().flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            rest = rest.trim();
            let (text, behind) = rest.split_at(sentence_end(rest));
            let sentence = Sentence { text, line: rest };
            rest = behind;
            (!text.is_empty()).then_some(sentence)
        })
    })
}

/// How long the first sentence of `line` is.
fn sentence_end(line: &str) -> usize {
    let marks = ['.', '!', '?', ';', '。', '！', '？', '；'];
    let decorates = |c: char| "*_~`)]\"”」』".contains(c);
    for (at, mark) in line.match_indices(marks) {
        let rest = line[at + mark.len()..].trim_start_matches(decorates);
        if !mark.is_ascii() || rest.is_empty() || rest.starts_with(char::is_whitespace) {
            return line.len() - rest.len();
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reasoning_is_taken_out_in_any_spelling() {
        for (text, left) in [
            ("<think>a\nb</think>c", "c"),
            ("x <THINKING>a</Thinking > y", "x  y"),
            ("a<think>b</think>c<think>d</think>e", "ace"),
            ("a <thinking depth=\"2\">b", "a "),
            ("<think>say <think> first</think>b", "b"),
            ("thought without a beginning</think>b", "b"),
            ("a <think>b <think>c</think> d</think> e", "a  e"),
            ("I <think> so </thin>", "I "),
            ("<thinker>a</thinker>", "<thinker>a</thinker>"),
        ] {
            assert_eq!(without_reasoning(text), left, "{text}");
        }
    }

    #[test]
    fn a_tag_inside_a_json_value_is_content() {
        let text = r#"<think>[1] {"a": </think>{"task": "strip <think> and </think> tags"}"#;
        assert_eq!(without_reasoning(text), r#"{"task": "strip <think> and </think> tags"}"#);
    }

    #[test]
    fn copied_replies_are_taken_out() {
        let text = "<reply from=\"b>c\" key=\"vote/b\">\nvote:b <\\/reply>\n</reply>\nvote:a";
        assert_eq!(without_replies(text), "\nvote:a");
        assert_eq!(without_replies("a </reply> b <reply>c"), "a </reply> b ");
    }

    #[test]
    fn an_offset_is_found_again_in_the_text_before_the_cut() {
        let text = "ab<think>cd</think>ef<think>g</think>h";
        let spans = reasoning(text);
        let short = cut(text, &spans);
        for (offset, c) in short.char_indices() {
            assert_eq!(text[before_cut(&spans, offset)..].chars().next(), Some(c));
        }
    }

    #[test]
    fn code_and_quotes_are_not_the_authors_words() {
        let text = "one\n```rust\nAPPROVED\n```\n> APPROVED\ntwo\n  > APPROVED\n~~~\nAPPROVED\n~~~\nthree\n\
                    <reply from=\"x\">\nAPPROVED\n</reply>\nfo\u{200B}ur\n````\nAPPROVED\n```\nAPPROVED";
        assert!(!prose(text).contains("APPROVED"));
        let words: String =
            prose(text).split_whitespace().filter(|word| !word.contains(MASK)).collect();
        assert_eq!(words, "onetwothreefour");
    }

    #[test]
    fn double_quotation_marks_mask_and_single_ones_do_not() {
        let text = "\"PASS\" “PASS” „PASS“ „PASS” 「PASS」 『PASS』 «PASS» \"PASS\nPASS\" 'KEPT' it's KEPT";
        let prose = prose(text);
        assert!(!prose.contains("PASS") && prose.matches("KEPT").count() == 2, "{prose}");
        assert_eq!(spoken(text), text);
    }

    #[test]
    fn a_mark_of_inches_masks_nothing_beyond_its_paragraph() {
        assert_eq!(prose("a 5\" disk\n \nPASS\n\nand 8\""), "a 5\" disk\n \nPASS\n\nand 8\"");
    }

    #[test]
    fn what_was_masked_leaves_a_trace_in_its_line() {
        assert_ne!(prose("APPROVED \"if the tests pass\"").trim(), "APPROVED");
        assert_ne!(prose("APPROVED ```if``` ").trim(), "APPROVED");
    }

    #[test]
    fn sentences_end_at_marks_and_line_ends() {
        let text = "One is 1.5 wide. Two! **Three.** four; five?\nSix：七。八！(nine.) ten";
        let found: Vec<_> = sentences(text).map(|sentence| sentence.text).collect();
        let wanted = [
            "One is 1.5 wide.",
            "Two!",
            "**Three.**",
            "four;",
            "five?",
            "Six：七。",
            "八！",
            "(nine.)",
            "ten",
        ];
        assert_eq!(found, wanted);
        assert_eq!(sentences("a b. c d").nth(1).map(|sentence| sentence.line), Some("c d"));
        assert_eq!(sentences("x. c d. e").nth(1).map(|sentence| sentence.line), Some("c d. e"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_glance_and_a_close_look_tell_the_same(
            text in "(<think>|</reply>|``|`|~~|[>\"\r\n é{}:\u{200b}\u{ad}]|[a-z]|\\PC){0,12}",
        ) {
            prop_assert_eq!(spoken(&text).into_owned(), without_foreign(&text));
        }

        #[test]
        fn cleaning_never_panics(text in "(<think>|</think>|<reply a>|</reply>|```|~~~|[>\"“”.?\n é{}:]|\\PC){0,40}") {
            let prose = prose(&text);
            let joined: String = sentences(&prose).map(|sentence| sentence.text).collect();
            let blank = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(blank(&joined), blank(&prose));
        }

        #[test]
        fn plain_prose_is_left_as_it_is(text in "[a-zé ,.:;!?()\n-]{0,60}") {
            prop_assert_eq!(prose(&text), text);
        }

        #[test]
        fn what_stands_in_reasoning_is_never_read(inside in "[a-z \n\"{}`>]{0,30}", after in "[a-z ]{0,10}") {
            let text = format!("<think>{inside}</think>{after}");
            prop_assert_eq!(without_reasoning(&text), after);
        }
    }
}
