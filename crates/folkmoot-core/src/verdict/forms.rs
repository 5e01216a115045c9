//! The forms in which words and names of replies are compared (rules.md 1.5, 2.2).

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::Reading;
use crate::{names, text::is_invisible};

/// NFKC, full case folding; without emphasis, escapes, symbols such as emoji, characters without
/// width, closing punctuation, blanks, hyphens and underscores.
pub(super) fn comparable(text: &str) -> String {
    static DECORATION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[*~\\\p{So}\p{Sk}\p{Cf}\x{FE00}-\x{FE0F}\x{20E3}]")
            .expect("the pattern is sound")
    });
    let bare = |text: &str| {
        let closing = ['.', '!', '。', '_', ' '];
        names::loosened(text.trim().trim_start_matches('#').trim_end_matches(closing))
    };
    if text.is_ascii() {
        let decorates = |c: char| matches!(c, '*' | '~' | '\\' | '`' | '^');
        return bare(&text.replace(decorates, ""));
    }
    let text: String = text.nfkc().collect();
    bare(&DECORATION.replace_all(&text, ""))
}

/// A closed set with its forms, worked out once.
pub(super) struct Closed<T> {
    members: Vec<Member<T>>,
    labels: Vec<String>,
}

struct Member<T> {
    exact: String,
    form: String,
    meaning: T,
}

impl<T: Copy + PartialEq> Closed<T> {
    pub(super) fn new(members: &[(&str, T)], labels: &[&str]) -> Closed<T> {
        let member = |(text, meaning): &(&str, T)| Member {
            exact: exact(text),
            form: comparable(text),
            meaning: *meaning,
        };
        Closed {
            members: members.iter().map(member).collect(),
            labels: labels.iter().map(|label| comparable(label)).collect(),
        }
    }

    /// What `text` means as it stands, else loosened; more than one member is ambiguous.
    pub(super) fn meaning(&self, text: &str) -> Reading<T> {
        let exact = exact(text);
        match self.matching(|member| member.exact == exact) {
            Reading::None => {
                let form = comparable(text);
                self.matching(|member| !form.is_empty() && member.form == form)
            }
            reading => reading,
        }
    }

    fn matching(&self, matches: impl Fn(&Member<T>) -> bool) -> Reading<T> {
        let matching = self.members.iter().filter(|member| matches(member));
        Reading::one_of(matching.map(|member| member.meaning))
    }

    /// What stands behind a label and a colon at the start of `sentence`; it may be blank.
    pub(super) fn behind_label<'s>(&self, sentence: &'s str) -> Option<&'s str> {
        let (head, value) = sentence.split_once([':', '：'])?;
        self.labels.contains(&comparable(head)).then_some(value)
    }

    /// Whether `text` is a member or nearly one.
    pub(super) fn comes_close(&self, text: &str) -> bool {
        // Distances are costly, and what is long is prose.
        if text.len() > 80 {
            return false;
        }
        let form = comparable(text);
        let near = |member: &Member<T>| {
            let close = form.len().abs_diff(member.form.len()) <= 3 * char::MAX.len_utf8();
            close && names::nearest(&form, [&*member.form]).is_some()
        };
        self.members.iter().any(|member| member.form == form || near(member))
    }
}

/// Whether `text` holds nothing but blanks and emphasis.
pub(super) fn is_bare(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '~'))
}

/// `text` as written: only Unicode forms and characters without width do not matter.
fn exact(text: &str) -> String {
    let visible = text.trim().chars().filter(|c| !is_invisible(*c));
    if text.is_ascii() { visible.collect() } else { visible.nfc().collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dress_does_not_matter() {
        for text in [
            "**Lead_Engineer**.",
            "lead\\_engineer",
            "LEAD-engineer ✅!",
            "# ｌｅａｄ\u{200B}engineer。",
        ] {
            assert_eq!(comparable(text), "leadengineer", "{text}");
        }
        assert_eq!(comparable("Straße"), comparable("STRASSE"));
        assert_ne!(comparable("approved?"), comparable("approved"));
        assert_ne!(comparable("C#"), comparable("C"));
    }

    #[test]
    fn a_member_as_written_comes_before_a_loosened_one() {
        let closed = Closed::new(&[("A b", 1), ("a-b", 2), ("C", 3)], &[]);
        assert_eq!(closed.meaning("a-b"), Reading::Value(2));
        assert_eq!(closed.meaning("A_B"), Reading::Ambiguous(vec![1, 2]));
        assert_eq!(closed.meaning("c"), Reading::Value(3));
        assert_eq!(closed.meaning("**"), Reading::None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_short_way_for_ascii_comes_to_the_same(text in "[ -~]{0,30}") {
            let long_way = comparable(&format!("{text}\u{200B}"));
            prop_assert_eq!(comparable(&text), long_way);
        }
    }
}
