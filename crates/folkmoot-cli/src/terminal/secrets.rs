//! The keys and tokens that no output may show (rules.md 14.6).

use std::{borrow::Cow, fmt, sync::Arc};

use aho_corasick::{AhoCorasick, MatchKind};

/// What stands where a secret stood.
const MASK: &str = "***";

/// Masking what is shorter would make texts unreadable and hide nothing.
const SHORTEST: usize = 6;

/// The secrets this process knows.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Option<Arc<Known>>);

struct Known {
    /// The secrets, as they are and as JSON writes them.
    forms: Vec<String>,
    search: AhoCorasick,
}

impl Secrets {
    /// Knows these secrets; white space around them is no part of them.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Secrets {
        let secrets = secrets.into_iter().map(str::trim).filter(|it| it.len() >= SHORTEST);
        let mut forms: Vec<String> = secrets.flat_map(|it| [it.to_owned(), in_json(it)]).collect();
        forms.sort();
        forms.dedup();
        if forms.is_empty() {
            return Secrets::default();
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
        let search = search.expect("a handful of keys is a small automaton");
        Secrets(Some(Arc::new(Known { forms, search })))
    }

    /// `text` with every secret masked.
    pub(crate) fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(known) if known.search.is_match(text) => Cow::Owned(known.mask(text)),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// Appends to `masked` what of `held` and `text` may be shown by now. The rest, which may be the
    /// beginning of a secret, is `held`.
    pub(crate) fn push(&self, held: &mut String, text: &str, masked: &mut String) {
        let Some(known) = &self.0 else { return masked.push_str(text) };
        held.push_str(text);
        let settled = known.settled(held);
        masked.push_str(&known.mask(&held[..settled]));
        held.drain(..settled);
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Known {
    fn mask(&self, text: &str) -> String {
        self.search.replace_all(text, &vec![MASK; self.forms.len()])
    }

    /// How many bytes of `text` nothing that follows can make part of a secret.
    fn settled(&self, text: &str) -> usize {
        let ends = self.forms.iter().map(|form| overlap(text, form));
        let open = text.len() - ends.max().unwrap_or_default();
        let crosses = self.search.find_iter(text).find(|it| it.start() < open && open < it.end());
        crosses.map_or(open, |it| it.start())
    }
}

/// How many bytes at the end of `text` are the beginning of `secret`, but not all of it.
fn overlap(text: &str, secret: &str) -> usize {
    let longest = text.len().min(secret.len() - 1);
    let is_open =
        |length: &usize| secret.is_char_boundary(*length) && text.ends_with(&secret[..*length]);
    (1..=longest).rev().find(is_open).unwrap_or_default()
}

fn in_json(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_is_masked_wherever_it_stands_and_does_not_print() {
        let secrets = Secrets::new([" sk-abc123\n", "", "1", "pass\"word"]);
        assert_eq!(secrets.mask("no sk-abc123, 1 and sk-abc12"), "no ***, 1 and sk-abc12");
        assert_eq!(secrets.mask(r#"{"key":"pass\"word"}"#), r#"{"key":"***"}"#);
        assert_eq!(format!("{secrets:?}"), "***");
    }

    #[test]
    fn without_secrets_nothing_is_held_back() {
        let (mut held, mut masked) = (String::new(), String::new());
        Secrets::default().push(&mut held, "sk-", &mut masked);
        assert_eq!((&*held, &*masked), ("", "sk-"));
    }

    proptest! {
        #[test]
        fn a_secret_in_pieces_is_masked_like_a_whole_one(text in "[ab\"密]{0,40}", at in 0.0..1.0) {
            let secrets = Secrets::new(["ababab", "abababba", "bab\"aa", "密密"]);
            let at = text.floor_char_boundary((text.len() as f64 * at) as usize);
            let (mut held, mut masked) = (String::new(), String::new());
            secrets.push(&mut held, &text[..at], &mut masked);
            secrets.push(&mut held, &text[at..], &mut masked);
            masked.push_str(&secrets.mask(&held));
            prop_assert_eq!(masked, secrets.mask(&text));
        }
    }
}
