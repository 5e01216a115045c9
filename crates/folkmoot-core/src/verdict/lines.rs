//! Lines of prose: list markers, and plans that are a task a line (strategies.md §5.1.3).

use std::sync::LazyLock;

use regex::Regex;

/// The tasks of a plan in prose: every line that is not blank, a fence, a rule or a heading, nor leads
/// over to a list.
pub(super) fn tasks(text: &str) -> Vec<&str> {
    let lines = text.split(['\n', '\r']).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| may_be_task(line)).collect();
    let marked = |line: &&str| unlisted(line).is_some();
    let before_marked = lines.iter().skip(1).map(marked).chain([false]);
    let leads_over = |line: &str, before_marked| before_marked && announces(line);
    let tasks = lines.iter().zip(before_marked).filter_map(|(line, before_marked)| {
        unlisted(line).or_else(|| (!leads_over(line, before_marked)).then_some(*line))
    });
    tasks.filter(|task| !task.is_empty()).collect()
}

/// Whether a line is neither blank nor a fence, a rule or a heading.
fn may_be_task(line: &str) -> bool {
    let is_rule = line.len() >= 3
        && ['-', '*', '_'].iter().any(|mark| line.chars().all(|c| c == *mark || c == ' '));
    let is_heading = line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
    let is_fence = line.starts_with("```") || line.starts_with("~~~");
    !(line.trim_matches('#').is_empty() || is_rule || is_heading || is_fence)
}

/// Whether a line only leads over to what follows: a colon stands at its end.
fn announces(line: &str) -> bool {
    line.trim_end_matches(['*', '_']).ends_with([':', '：'])
}

/// What stands behind the list marker of `line`; nothing if it has none (strategies.md §5.1.3).
pub(super) fn unlisted(line: &str) -> Option<&str> {
    static MARKER: LazyLock<Regex> = LazyLock::new(|| {
        let bullet = r"(?:[-*+•]|\d+[.)]|\(\d+\))(?:\s+|$)|\d+、\s*";
        Regex::new(&format!(r"^(?:{bullet})?(?:\[[ xX]\](?:\s+|$))?"))
            .expect("the pattern is sound")
    });
    let line = line.trim();
    let marker = MARKER.find(line)?;
    (!marker.is_empty()).then(|| &line[marker.end()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_line_is_a_task_without_its_marker() {
        let text = "1. alpha\n- beta\n  * gamma\n2) delta\n• epsilon\n3、zeta\n(4) eta\n+ theta\n- [ ] iota\n[x] kappa";
        let wanted = "alpha beta gamma delta epsilon zeta eta theta iota kappa";
        assert_eq!(tasks(text), wanted.split(' ').collect::<Vec<_>>());
        let whole = ["3D model", "2024 report", "-5 degrees", "**bold** start"];
        assert_eq!(tasks(&whole.join("\r\n\n")), whole);
    }

    #[test]
    fn fences_rules_headings_and_announcements_are_no_tasks() {
        let text = "# Plan\nThe steps are:\n1. collect: all\n***\n**Then：**\n\n- write\n-\n```\nrun it\n```\n---\nDone:";
        assert_eq!(tasks(text), ["collect: all", "write", "run it", "Done:"]);
        assert_eq!(tasks("Do this:\nfirst\n- second"), ["Do this:", "first", "second"]);
    }

    #[test]
    fn list_markers_need_a_blank_behind() {
        for line in
            ["- a", "* a", " +  a", "• a", "1. a", "12) a", "(3) a", "4、a", "- [ ] a", "[x] a"]
        {
            assert_eq!(unlisted(line), Some("a"), "{line}");
        }
        for line in ["3D a", "2024 a", "-a", "1.5 a", "[y] a", "a - b", "(a) b", "**a** b"] {
            assert_eq!(unlisted(line), None, "{line}");
        }
    }
}
