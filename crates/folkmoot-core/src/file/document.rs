//! Reading a document whole, or what is left of it beside its syntax errors.
//!
//! A parser stops at the first error. All errors are wanted at once, so the lines it stopped at are
//! blanked out and the rest is read again; as bytes become blanks, no place moves.

use std::{borrow::Cow, ops::Range};

use crate::{
    diagnostic::{Diagnostic, Span},
    file::{
        node::{Node, Origin, Tree},
        yaml::{Parsed, Stop, parse},
    },
};

const MAX_SYNTAX_ERRORS: usize = 8;

/// What could be read of a text: YAML 1.2, so JSON too.
#[derive(Debug)]
pub struct Document {
    /// The tree. A text that holds nothing is an empty map.
    pub root: Node,
    /// What is wrong with the text as YAML.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether parts of the text are missing from the tree.
    pub damaged: bool,
}

/// Reads a document.
pub fn read(text: &str) -> Document {
    let mut errors = Vec::new();
    let mut text = Cow::Borrowed(text);
    while errors.len() < MAX_SYNTAX_ERRORS {
        match parse(&text) {
            Ok(parsed) => return Document::of(parsed, errors),
            Err(Stop { diagnostic, syntax_at }) => {
                errors.push(*diagnostic);
                let rest = syntax_at.and_then(|at| without_error(&text, at));
                let Some(rest) = rest else { break };
                text = Cow::Owned(rest);
            }
        }
    }
    Document { root: nothing(), diagnostics: errors, damaged: true }
}

impl Document {
    fn of(parsed: Parsed, mut errors: Vec<Diagnostic>) -> Document {
        let damaged = !errors.is_empty();
        errors.extend(parsed.diagnostics);
        let root = parsed.root.filter(|root| !root.is_null());
        Document { root: root.unwrap_or_else(nothing), diagnostics: errors, damaged }
    }
}

fn nothing() -> Node {
    Node::new(Origin::File(Span::default()), Tree::Map([].into()))
}

/// The text without the lines that a syntax error at byte `at` spoils: as few as possible, from the
/// line of the error, else from the top-level key above, else from the one before, up to the next.
fn without_error(text: &str, at: usize) -> Option<String> {
    let at = text.floor_char_boundary(at);
    let line = text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let (above, below): (Vec<_>, Vec<_>) = top_level_lines(text).partition(|start| *start <= line);
    let end = below.first().copied().unwrap_or(text.len());
    let starts = [line].into_iter().chain(above.into_iter().rev().take(2));
    let mut blanked = starts.map(|start| blank(text, start..end));
    blanked.find(|rest| parse(&rest[..end]).is_ok())
}

/// Where lines begin that hold a key of the outermost map.
fn top_level_lines(text: &str) -> impl Iterator<Item = usize> {
    let starts = text.match_indices(['\n', '\r']).map(|(at, _)| at + 1);
    let begins_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\'');
    [0].into_iter().chain(starts).filter(move |start| text[*start..].starts_with(begins_key))
}

fn blank(text: &str, range: Range<usize>) -> String {
    let keep = |byte: u8| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' };
    let blanks: String = text[range.clone()].bytes().map(keep).collect();
    [&text[..range.start], &blanks, &text[range.end..]].concat()
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its strings so")]
mod tests {
    use std::fmt::Write;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::diagnostic::Position;

    fn outline(node: &Node) -> String {
        match &node.value {
            Tree::Scalar(scalar) if scalar.plain => scalar.text.to_string(),
            Tree::Scalar(scalar) => format!("{:?}", scalar.text),
            Tree::List(items) => {
                format!("[{}]", items.iter().map(outline).collect::<Vec<_>>().join(", "))
            }
            Tree::Map(entries) => {
                let entry = |entry: &crate::file::node::Entry| {
                    format!("{}: {}", entry.key, outline(&entry.value))
                };
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn shows(text: &str, expected: &Expect) {
        let document = read(text);
        let mut shown = outline(&document.root);
        for told in &document.diagnostics {
            let Position { line, column } = Position::of(text, told.at.unwrap_or_default().start);
            write!(shown, "\n{line}:{column} {} {}", told.code, told.message)
                .expect("strings grow");
            for (span, _) in &told.also {
                let Position { line, column } = Position::of(text, span.start);
                write!(shown, " ({line}:{column})").expect("strings grow");
            }
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn scalars_keep_their_text_and_whether_they_were_quoted() {
        shows(
            "name: no\nmodel: 4.10\ncode: 007\nquoted: 'no'\ntagged: !!str 12\nempty:\ntext: |\n  a\n   b\n",
            &expect![[
                r#"{name: no, model: 4.10, code: 007, quoted: "no", tagged: "12", empty: ~, text: "a\n b\n"}"#
            ]],
        );
    }

    #[test]
    fn json_is_read_too_with_tabs_and_escapes() {
        shows(
            "{\n\t\"name\": \"\\ud834\\udd1e\\/\",\n\t\"agents\": [\n\t\t{\"name\": \"a\", \"n\": 1.0}\n\t]\n}",
            &expect![[r#"{name: "𝄞/", agents: [{name: "a", n: 1.0}]}"#]],
        );
    }

    #[test]
    fn line_ends_make_no_difference() {
        let text = "a: |\n  x\n\n  y\nb:\n  - \"q\n    r\"\n# end\nc: d\n";
        let plain = outline(&read(text).root);
        let mixed: String = text
            .split_inclusive('\n')
            .enumerate()
            .map(|(n, line)| match n % 3 {
                0 => line.replace('\n', "\r\n"),
                1 => line.to_owned(),
                _ => line.replace('\n', "\r"),
            })
            .collect();
        for other in [text.replace('\n', "\r\n"), text.replace('\n', "\r"), mixed] {
            assert_eq!(outline(&read(&other).root), plain, "{other:?}");
        }
        assert_eq!(outline(&read(text.trim_end()).root), plain);
    }

    #[test]
    fn a_key_comes_once_in_a_map() {
        shows(
            "a: 1\nb: {c: 1, d: 2, \"c\": 3}\na: 2\n",
            &expect![[r#"
            {a: 1, b: {c: 1, d: 2}}
            2:17 duplicate_key key "c" is given twice (2:5)
            3:1 duplicate_key key "a" is given twice (1:1)"#]],
        );
    }

    #[test]
    fn merged_keys_stand_back_behind_own_ones() {
        shows(
            "- &b { name: base, model: m, max_steps: 30 }\n- { <<: *b, name: w, max_steps: 60 }\n- { name: v, <<: [*b] }\n- { '<<': *b }\n",
            &expect![
                "[{name: base, model: m, max_steps: 30}, {name: w, max_steps: 60, model: m}, {name: v, model: m, max_steps: 30}, {<<: {name: base, model: m, max_steps: 30}}]"
            ],
        );
    }

    #[test]
    fn merged_maps_do_not_decide_against_each_other() {
        shows(
            "- &a { k: 1, own: 1 }\n- &b { k: 2 }\n- { <<: [*a, *b], x: 0 }\n- { <<: [*a, *b], k: 3 }\n- { <<: *a, <<: *b }\n- { <<: 7 }\n",
            &expect![[r#"
                [{k: 1, own: 1}, {k: 2}, {x: 0, k: 1, own: 1}, {k: 3, own: 1}, {k: 1, own: 1}, {}]
                3:5 duplicate_key merged key "k" is given twice (1:8) (2:8)
                5:13 duplicate_key key "<<" is given twice (5:5)
                6:5 bad_yaml << merges a map, or a list of maps"#]],
        );
    }

    #[test]
    fn what_a_team_file_does_not_need_is_refused() {
        shows(
            "%YAML 1.1\n---\na: 1\n",
            &expect![[r#"
            {a: 1}
            1:1 bad_yaml this is not YAML: YAML directives are disallowed"#]],
        );
        shows(
            "a: !thing 1\nb: !!map {}\n",
            &expect![[r#"
            {a: 1, b: {}}
            1:4 bad_yaml the tag !thing is not known; a file needs none
            2:4 bad_yaml the tag !!map is not known; a file needs none"#]],
        );
        shows(
            "a: 1\n---\nb: 2\n",
            &expect![[r#"
            {a: 1}
            2:1 bad_yaml a second document begins here; a file holds one"#]],
        );
        shows(
            "? [a, b]\n: c\nd: *none\ne: &e [*e]\n",
            &expect![[r#"
            {d: , e: []}
            3:4 bad_yaml nothing above is named &none
            4:8 bad_yaml an alias cannot stand inside what it repeats
            1:3 bad_yaml a key must be a text"#]],
        );
    }

    #[test]
    fn an_empty_text_is_an_empty_map() {
        for text in ["", "\n\n", "# nothing\n", "---\n", "~"] {
            shows(text, &expect!["{}"]);
        }
    }

    #[test]
    fn a_tab_is_shown_where_it_stands() {
        shows(
            "agents:\n  - name: a\n\tmodel: x\n",
            &expect![[r#"
            {agents: [{name: a}]}
            3:1 bad_yaml a tab cannot stand here: YAML is indented with blanks"#]],
        );
        shows(
            "agents:\n\t- name: a\n",
            &expect![[r#"
            {agents: ~}
            2:1 bad_yaml a tab cannot stand here: YAML is indented with blanks"#]],
        );
        shows(
            "a:\n  b: 1\n \tc: 2\n",
            &expect![[r#"
            {a: {b: 1}}
            3:2 bad_yaml a tab cannot stand here: YAML is indented with blanks"#]],
        );
        shows(
            "a: |\n\ttext\n",
            &expect![[r#"
            {a: ""}
            2:1 bad_yaml a tab cannot stand here: YAML is indented with blanks"#]],
        );
    }

    #[test]
    fn what_stands_around_a_syntax_error_is_read_all_the_same() {
        shows(
            "a: 1\nb:\n  - x: [1\n  - y\nc: 2\nd: e: f\ng: 'open\nh: 3\n",
            &expect![[r#"
            {a: 1, h: 3}
            5:2 bad_yaml this is not YAML: illegal placement of ':' indicator
            6:5 bad_yaml this is not YAML: mapping values are not allowed in this context
            7:4 bad_yaml this is not YAML: unclosed quote"#]],
        );
        shows(
            "agents: [\nlimits: 3\nname: x\n",
            &expect![[r#"
            {}
            3:5 bad_yaml this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'"#]],
        );
        shows(
            "{\"a\": 1,\n\"b\": }}\n",
            &expect![[r#"
            {}
            2:7 bad_yaml this is not YAML: misplaced bracket"#]],
        );
    }

    #[test]
    fn syntax_errors_are_counted() {
        assert_eq!(read(&"k: a: b\n".repeat(50)).diagnostics.len(), MAX_SYNTAX_ERRORS);
    }

    #[test]
    fn too_much_is_refused_before_it_costs_anything() {
        let refused = |text: &str| {
            let document = read(text);
            assert!(document.damaged, "{text:.80}");
            let last = document.diagnostics.last().expect("told why");
            assert_eq!(last.code, "too_large", "{}", last.message);
        };
        let level =
            |n: usize| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
        let bomb: String =
            ["a0: &a0 [x]\n".to_owned()].into_iter().chain((1..10).map(level)).collect();
        refused(&bomb);
        refused(&"[".repeat(20_000));
        refused(&"{a: ".repeat(20_000));
        refused(&"- ".repeat(20_000));
        refused(&(0..100).map(|n| " ".repeat(n) + "a:\n").collect::<String>());
        refused(&format!("[{}]", "0,".repeat(200_000)));
        let chain = |n: usize| format!("b{n}: &b{n} [[[[[[[[*b{}]]]]]]]]\n", n - 1);
        let deep: String =
            ["b0: &b0 x\n".to_owned()].into_iter().chain((1..12).map(chain)).collect();
        refused(&deep);
    }

    #[test]
    fn merged_maps_count_at_full_length_whatever_is_left_of_them() {
        let refused = |text: &str| {
            let told = read(text).diagnostics;
            assert_eq!(told.iter().map(|it| it.code).collect::<Vec<_>>(), ["too_large"]);
        };
        let base = |keys: usize| -> String {
            let keys = (0..keys).map(|key| format!("k{key}: 1, "));
            ["a0: &a0 {".to_owned()].into_iter().chain(keys).chain(["}\n".to_owned()]).collect()
        };
        let merging = |n: usize, base: usize, times: usize| {
            format!("a{n}: &a{n} {{<<: [{}], own{n}: 1}}\n", format!("*a{base},").repeat(times))
        };
        let growing: String = (1..800).map(|n| merging(n, n - 1, 9)).collect();
        refused(&(base(1) + &growing));
        let repeated: String = (1..30).map(|n| merging(n, 0, 9)).collect();
        refused(&(base(3_000) + &repeated));
        let own = (0..30).map(|key| format!("k{key}: 2")).collect::<Vec<_>>().join(", ");
        let left_out = format!("- {{<<: [{}], {own}}}\n", "*a0,".repeat(100)).repeat(40);
        refused(&(base(30) + "b:\n" + &left_out));
    }

    #[test]
    fn what_is_just_not_too_much_is_read() {
        let deep = format!("{}x{}", "[".repeat(64), "]".repeat(64));
        let wide = format!("[{}]", "0,".repeat(90_000));
        let merging = format!("- &a {{x: 1, y: 2}}\n{}", "- {<<: *a, y: 3}\n".repeat(12_000));
        for text in [deep, wide, merging] {
            assert!(read(&text).diagnostics.is_empty());
        }
    }
}
