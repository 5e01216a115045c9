//! Names of agents: how they are written, told apart and looked up (graph.md §1, rules.md §2).

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// The id of an agent: its display name in NFC, trimmed, in lower case, each run of white space one
/// hyphen. Nothing else changes.
pub fn slug(name: &str) -> String {
    let name: String = name.nfc().collect();
    // Lower case can make a pair of letter and mark that has a form of its own.
    let name: String = name.to_lowercase().nfc().collect();
    name.split_whitespace().collect::<Vec<_>>().join("-")
}

/// The form in which two names of one team must differ: Unicode form, case, blanks, hyphens and
/// underscores do not tell agents apart.
pub fn loosened(name: &str) -> String {
    let separates = |c: &char| c.is_whitespace() || matches!(c, '-' | '_');
    if name.is_ascii() {
        return name.chars().filter(|c| !separates(c)).map(|c| c.to_ascii_lowercase()).collect();
    }
    let name: String = name.nfkc().filter(|c| !separates(c)).collect();
    caseless::default_case_fold_str(&name).nfkc().collect()
}

/// The scripts that a word of `name` mixes although their letters look alike, as in `аdmin` with a
/// Cyrillic `а`; none in an ordinary name.
pub fn mixed_scripts(name: &str) -> Vec<&'static str> {
    static ALIKE: LazyLock<[(&str, Regex); 5]> = LazyLock::new(|| {
        ["Latin", "Greek", "Cyrillic", "Armenian", "Cherokee"].map(|script| {
            (script, Regex::new(&format!(r"\p{{{script}}}")).expect("these scripts exist"))
        })
    });
    let scripts_of = |word: &str| -> Vec<&str> {
        ALIKE.iter().filter(|(_, script)| script.is_match(word)).map(|(name, _)| *name).collect()
    };
    let mut words = name.split(|c: char| !c.is_alphanumeric()).map(scripts_of);
    words.find(|scripts| scripts.len() > 1).unwrap_or_default()
}

/// The known word that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let tolerated = match length {
        0..3 => 1,
        3..6 => 2,
        _ => 3,
    };
    let distance = |known: &str| strsim::damerau_levenshtein(&word, &known.to_lowercase());
    let as_long = |known: &&str| known.chars().count().abs_diff(length) <= tolerated;
    let near = known.into_iter().filter(as_long).map(|known| (distance(known), known));
    let (distance, nearest) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= tolerated && distance < length).then_some(nearest)
}

/// The question whether `word` was meant to be the nearest known one.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|nearest| format!("did you mean \"{nearest}\"?"))
}

/// The name of a file without its folder and ending.
pub(crate) fn file_stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slug_changes_case_and_blanks_only() {
        let slugs = ["Code  Reviewer ", "QA_v2.1", "研究员", "A--B"].map(slug);
        assert_eq!(slugs, ["code-reviewer", "qa_v2.1", "研究员", "a--b"]);
    }

    #[test]
    fn names_that_people_confuse_are_equal_when_loosened() {
        for twin in ["billing-desk", "BILLING_DESK", "Billing Desk", "ＢＩＬＬＩＮＧ desk"] {
            assert_eq!(loosened(twin), "billingdesk");
        }
        assert_eq!(loosened("STRASSE"), loosened("straße"));
    }

    #[test]
    fn a_near_miss_is_suggested_and_a_far_one_is_not() {
        let known = ["rounds", "order", "judge"];
        assert_eq!(nearest("ronds", known), Some("rounds"));
        assert_eq!(nearest("Jugde", known), Some("judge"));
        assert_eq!(nearest("temperature", known), None);
        assert_eq!(nearest("x", known), None);
    }

    #[test]
    fn a_word_of_look_alike_scripts_is_noticed() {
        for alike in ["lead_\u{430}gent", "\u{3A1}aul", "ops c\u{43E}der"] {
            assert_eq!(mixed_scripts(alike).len(), 2, "{alike}");
        }
        for plain in ["研究员A", "Анна (QA)", "Zoë-2", "データ team", ""] {
            assert_eq!(mixed_scripts(plain), [""; 0], "{plain}");
        }
    }

    proptest! {
        #[test]
        fn a_slug_is_its_own_slug(name in "[\\PC\\s]{0,24}") {
            prop_assert_eq!(slug(&slug(&name)), slug(&name));
        }

        #[test]
        fn loosening_twice_changes_nothing(name in "[\\PC\\s]{0,24}") {
            prop_assert_eq!(loosened(&loosened(&name)), loosened(&name));
        }

        #[test]
        fn names_of_any_kind_are_looked_at(name in any::<String>()) {
            let _ = (mixed_scripts(&name), nearest(&name, ["coder", "研究员"]));
        }
    }

    #[test]
    fn a_slug_is_in_nfc_after_the_case_has_changed_too() {
        assert_eq!(slug("H\u{331}"), "\u{1E96}");
        for c in '\0'..'\u{2000}' {
            let marked = format!("{c}\u{331}");
            assert_eq!(slug(&slug(&marked)), slug(&marked), "{c:?}");
        }
    }
}
