//! What is wrong with a file, shown where it stands.

use std::{iter::zip, ops::Range};

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Renderer, Snippet};
use folkmoot_core::diagnostic::{Diagnostic, Severity, Span};

use super::{figures, filter, screen::Screen};

/// How many lines another place may be away and still share an excerpt.
const NEAR: usize = 12;

/// The text that findings are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// What it is called, most often a path.
    pub(crate) name: &'a str,
    /// The whole text, as it was read.
    pub(crate) text: &'a str,
}

/// All findings, and at the end how many there are; nothing for none.
pub(crate) fn render(screen: &Screen, source: Source<'_>, problems: &[Diagnostic]) -> String {
    if problems.is_empty() {
        return String::new();
    }
    let lines = Lines::of(screen, source);
    let renderer = if screen.is_coloured() { Renderer::styled() } else { Renderer::plain() };
    let renderer = match screen.width() {
        Some(width) => renderer.term_width(width),
        None => renderer,
    };
    let mut page = String::new();
    for problem in problems {
        let other = problem.file.as_ref();
        let other = other.map(|it| Lines::of(screen, Source { name: &it.path, text: &it.text }));
        let lines = other.as_ref().unwrap_or(&lines);
        // One by one, or a rule without lines of text would be drawn between them.
        for group in report(screen, lines, problem) {
            page.push_str(&renderer.render(&[group]));
            page.push('\n');
        }
        page.push('\n');
    }
    page.push_str(&count(problems));
    page.push('\n');
    page
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Hint => Level::NOTE.with_name("hint"),
    }
}

fn count(problems: &[Diagnostic]) -> String {
    let kinds =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Hint, "hint")];
    let counts = kinds.map(|(severity, name)| {
        let count = problems.iter().filter(|it| it.severity == severity).count() as u64;
        (count > 0).then(|| figures::things(count, name))
    });
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn report<'a>(screen: &Screen, lines: &Lines, problem: &Diagnostic) -> Vec<Group<'a>> {
    let title = level(problem.severity).primary_title(screen.line(&told(problem)));
    let group = title.id(screen.line(problem.code)).elements(lines.excerpts(screen, problem));
    let help = problem.help.as_deref().map(|help| screen.line(help));
    match (help, problem.at) {
        (None, _) => vec![group],
        (Some(help), Some(_)) => vec![group.element(Level::HELP.message(help))],
        (Some(help), None) => vec![group, Group::with_title(Level::HELP.secondary_title(help))],
    }
}

/// What is wrong, with the flag it came from if it stands nowhere in the text.
fn told(problem: &Diagnostic) -> String {
    match (problem.at, &problem.path) {
        (None, Some(path)) => format!("{path}: {}", problem.message),
        (None, None) | (Some(_), _) => problem.message.clone(),
    }
}

/// A text by its lines, which end as in YAML: with LF, CR or both.
struct Lines {
    name: String,
    /// The text with line feeds for all line ends; every byte stands where it stood.
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

/// A place to point at, and what to say there.
struct Mark<'a> {
    kind: AnnotationKind,
    span: Range<usize>,
    label: &'a str,
}

impl Lines {
    fn of(screen: &Screen, source: Source<'_>) -> Lines {
        // A blank at the end of a line is not seen.
        let text = source.text.replace("\r\n", " \n").replace('\r', "\n");
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = [0].into_iter().chain(ends).collect();
        Lines { name: screen.line(source.name), text, starts }
    }

    /// The number of the line in which `at` stands, from 0.
    fn number(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// Where line `number` ends, its line feed not included.
    fn end(&self, number: usize) -> usize {
        self.starts.get(number + 1).map_or(self.text.len(), |next| next - 1)
    }

    /// The span as far as its first line goes, between characters.
    fn first_line(&self, span: Span) -> Range<usize> {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.ceil_char_boundary(span.end).min(self.end(self.number(start)));
        start..end.max(start)
    }

    /// The lines with the place of a problem, and those with the other places that belong to it.
    fn excerpts<'a>(&self, screen: &Screen, problem: &Diagnostic) -> Vec<Element<'a>> {
        let Some(span) = problem.at else { return Vec::new() };
        let at = self.first_line(span);
        let place = self.number(at.start);
        let mut near = vec![Mark { kind: AnnotationKind::Primary, span: at, label: "" }];
        let mut far = Vec::new();
        for (span, label) in &problem.also {
            let mark = Mark { kind: AnnotationKind::Context, span: self.first_line(*span), label };
            let is_near = self.number(mark.span.start).abs_diff(place) <= NEAR;
            if is_near { near.push(mark) } else { far.push(vec![mark]) }
        }
        let excerpts = [near].into_iter().chain(far);
        excerpts.map(|marks| self.excerpt(screen, &marks).into()).collect()
    }

    fn excerpt<'a>(&self, screen: &Screen, marks: &[Mark<'_>]) -> Snippet<'a, Annotation<'a>> {
        let numbers = || marks.iter().map(|mark| self.number(mark.span.start));
        let first = numbers().min().unwrap_or_default();
        let last = numbers().max().unwrap_or_default();
        let start = self.starts[first];
        let text = &self.text[start..self.end(last)];
        let safe: Vec<char> = filter::in_place(text).collect();
        let shifted = |at: usize| {
            let before = zip(&safe, text.char_indices()).take_while(|(_, (it, _))| start + it < at);
            before.map(|(safe, _)| safe.len_utf8()).sum()
        };
        let annotations = marks.iter().map(|mark| {
            let annotation = mark.kind.span(shifted(mark.span.start)..shifted(mark.span.end));
            if mark.label.is_empty() {
                annotation
            } else {
                annotation.label(screen.line(mark.label))
            }
        });
        let annotations: Vec<Annotation<'a>> = annotations.collect();
        Snippet::source(safe.iter().collect::<String>())
            .path(self.name.clone())
            .line_start(first + 1)
            .annotations(annotations)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use folkmoot_agents::Secrets;

    fn problem(severity: Severity, code: &'static str, message: &str) -> Diagnostic {
        Diagnostic { severity, ..Diagnostic::error(code, message) }
    }

    /// Where `part` stands in `text`.
    fn find(text: &str, part: &str) -> Range<usize> {
        let start = text.find(part).expect("the part stands in the text");
        start..start + part.len()
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
    fn check(text: &str, problems: &[Diagnostic], expected: Expect) {
        let screen = Screen::page(Secrets::default());
        expected.assert_eq(&render(&screen, Source { name: "team.yaml", text }, problems));
    }

    const TEAM: &str = "name: 评审组\nagents:\n  - name: Coder\n    promt: x\n  - name: Coder\n";

    #[test]
    fn every_problem_is_shown_where_it_stands_and_counted() {
        let unknown = Diagnostic {
            at: Some(Span::from(find(TEAM, "promt"))),
            help: Some("did you mean `prompt`?".to_owned()),
            ..problem(Severity::Error, "unknown_key", "unknown key \"promt\"")
        };
        let second = find(TEAM, "promt: x\n  - name: Coder");
        let twice = Diagnostic {
            at: Some(Span::from(second.end - 5..second.end)),
            also: vec![(Span::from(find(TEAM, "Coder")), "first named here".to_owned())],
            ..problem(Severity::Error, "duplicate_name", "two agents are named \"Coder\"")
        };
        let name = Diagnostic {
            at: Some(Span::from(find(TEAM, "评审组"))),
            ..problem(Severity::Warning, "name", "a name that says little")
        };
        let flag = Diagnostic {
            help: Some("give a number from 1 on".to_owned()),
            ..problem(Severity::Error, "out_of_range", "`--rounds 0` is out of range")
        };
        let hint = problem(Severity::Hint, "no_judge", "nobody judges");
        check(
            TEAM,
            &[unknown, twice, name, flag, hint],
            expect![[r#"
                error[unknown_key]: unknown key "promt"
                 --> team.yaml:4:5
                  |
                4 |     promt: x
                  |     ^^^^^
                  |
                  = help: did you mean `prompt`?

                error[duplicate_name]: two agents are named "Coder"
                 --> team.yaml:5:11
                  |
                3 |   - name: Coder
                  |           ----- first named here
                4 |     promt: x
                5 |   - name: Coder
                  |           ^^^^^

                warning[name]: a name that says little
                 --> team.yaml:1:7
                  |
                1 | name: 评审组
                  |       ^^^^^^

                error[out_of_range]: `--rounds 0` is out of range
                help: give a number from 1 on

                hint[no_judge]: nobody judges

                3 errors, 1 warning, 1 hint
            "#]],
        );
        check(TEAM, &[], expect![[""]]);
    }

    #[test]
    fn a_place_far_away_has_an_excerpt_of_its_own() {
        let text = format!("first: 1\n{}second: 2\n", "- filler\n".repeat(40));
        let far = Diagnostic {
            at: Some(Span::from(find(&text, "second"))),
            also: vec![(Span::from(find(&text, "first")), "see here".to_owned())],
            ..problem(Severity::Error, "e", "far apart")
        };
        check(
            &text,
            &[far],
            expect![[r#"
            error[e]: far apart
              --> team.yaml:42:1
               |
            42 | second: 2
               | ^^^^^^
               |
              ::: team.yaml:1:1
               |
             1 | first: 1
               | ----- see here

            1 error
        "#]],
        );
    }

    #[test]
    fn lines_and_columns_are_those_of_the_file_whatever_stands_in_it() {
        let text = "a: 1\r\nb: \u{1b}[31m\u{202e}\u{7}界 oops\rlast: \u{9b}2J x";
        let at = |part| Diagnostic {
            at: Some(Span::from(find(text, part))),
            ..problem(Severity::Error, "e", "here\u{1b}[2J")
        };
        check(
            text,
            &[at("oops"), at("x")],
            expect![[r#"
            error[e]: here␛
             --> team.yaml:2:13
              |
            2 | b: ␛[31m�␇界 oops
              |              ^^^^

            error[e]: here␛
             --> team.yaml:3:11
              |
            3 | last: �2J x
              |           ^

            2 errors
        "#]],
        );
    }

    #[test]
    fn a_span_that_fits_badly_is_still_shown() {
        let at = |span| Diagnostic {
            at: Some(Span::from(span)),
            ..problem(Severity::Error, "e", "odd")
        };
        let text = "a: 界\nb:\n  c: 1\n";
        check(
            text,
            &[at(4..5), at(7..15), at(3..3), at(90..99)],
            expect![[r#"
            error[e]: odd
             --> team.yaml:1:4
              |
            1 | a: 界
              |    ^^

            error[e]: odd
             --> team.yaml:2:1
              |
            2 | b:
              | ^^

            error[e]: odd
             --> team.yaml:1:4
              |
            1 | a: 界
              |    ^

            error[e]: odd
             --> team.yaml:4:1
              |
            4 |
              | ^

            4 errors
        "#]],
        );
        check(
            "",
            &[at(0..0)],
            expect![[r#"
            error[e]: odd
             --> team.yaml:1:1
              |
            1 |
              | ^

            1 error
        "#]],
        );
    }

    #[test]
    fn a_hostile_file_writes_nothing_but_text() {
        let hostile = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\r\u{200b}\0\u{2028}";
        let text = format!("{hostile}key{hostile}");
        let worst = Diagnostic {
            at: Some(Span::from(find(&text, "key"))),
            help: Some(hostile.to_owned()),
            also: vec![(Span::from(0..text.len()), hostile.to_owned())],
            ..problem(Severity::Error, hostile, hostile)
        };
        let screen = Screen::page(Secrets::default());
        let page = render(&screen, Source { name: hostile, text: &text }, &[worst]);
        assert!(page.contains("key"));
        assert!(!page.chars().any(|c| c != '\n' && filter::is_suspect(c)), "{page:?}");
    }

    #[test]
    fn colours_are_for_terminals() {
        let problems = [problem(Severity::Error, "e", "odd")];
        let source = Source { name: "x", text: "" };
        let coloured = render(&Screen::coloured(80), source, &problems);
        assert!(coloured.contains('\u{1b}'));
        assert!(!render(&Screen::grey(80), source, &problems).contains('\u{1b}'));
    }
}
