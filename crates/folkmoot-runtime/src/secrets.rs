//! The keys and tokens that no output may show (rules.md 14.6).

use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

use aho_corasick::AhoCorasick;

/// What stands where a secret stood.
pub const MASK: &str = "***";

/// Masking what is shorter would make texts unreadable and hide nothing.
const SHORTEST: usize = 6;

/// How many characters in a row tell a part of a longer secret: texts are cut short, by servers and by
/// us, and what is left of a secret then is no less one.
const PART: usize = 12;

/// How many characters of a secret are looked for in parts.
const MOST: usize = 4096;

/// The secrets this process knows.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Known>>);

struct Known {
    /// The secrets, or all parts of the longer ones, as they are and as JSON writes them.
    parts: Vec<String>,
    search: AhoCorasick,
}

impl Secrets {
    /// Knows these secrets; white space around them is no part of them.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Secrets {
        let secrets = secrets.into_iter().map(str::trim).filter(|it| it.len() >= SHORTEST);
        let forms = secrets.flat_map(|it| [it.to_owned(), in_json(it)]);
        Secrets::of(forms.flat_map(|form| parts(&form)).collect())
    }

    /// What either of them knows.
    #[must_use]
    pub fn and(&self, others: &Secrets) -> Secrets {
        match (&self.0, &others.0) {
            (_, None) => self.clone(),
            (None, Some(_)) => others.clone(),
            (Some(one), Some(other)) => Secrets::of([&one.parts[..], &other.parts[..]].concat()),
        }
    }

    fn of(mut parts: Vec<String>) -> Secrets {
        parts.sort();
        parts.dedup();
        if parts.is_empty() {
            return Secrets::default();
        }
        let search = AhoCorasick::new(&parts).expect("a handful of keys is a small automaton");
        Secrets(Some(Arc::new(Known { parts, search })))
    }

    /// Whether none is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `text` with every secret masked, if one occurs in it.
    pub(crate) fn masked(&self, text: &str) -> Option<String> {
        match self.mask(text) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        }
    }

    /// `text` with every secret, and every long part of one, masked.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(known) if known.search.is_match(text) => Cow::Owned(known.mask(text)),
            Some(_) | None => Cow::Borrowed(text),
        }
    }

    /// Appends to `masked` what of `held` and `text` may be shown by now. The rest, which may be the
    /// beginning of a secret, is `held`.
    pub fn push(&self, held: &mut String, text: &str, masked: &mut String) {
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
        let (mut masked, mut from) = (String::with_capacity(text.len()), 0);
        for span in self.spans(text) {
            masked.extend([&text[from..span.start], MASK]);
            from = span.end;
        }
        masked + &text[from..]
    }

    /// Where secrets stand in `text`, in order; parts that overlap belong together.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        for found in self.search.find_overlapping_iter(text) {
            let mut start = found.start();
            while let Some(before) = spans.pop_if(|before| start < before.end) {
                start = start.min(before.start);
            }
            spans.push(start..found.end());
        }
        spans
    }

    /// How many bytes of `text` nothing that follows can make part of a secret.
    fn settled(&self, text: &str) -> usize {
        let ends = self.parts.iter().map(|part| overlap(text, part));
        let open = text.len() - ends.max().unwrap_or_default();
        let crosses = self.spans(text).into_iter().find(|it| it.start < open && open < it.end);
        crosses.map_or(open, |it| it.start)
    }
}

/// How many bytes at the end of `text` are the beginning of `part`, but not all of it.
fn overlap(text: &str, part: &str) -> usize {
    let longest = text.len().min(part.len() - 1);
    let is_open =
        |length: &usize| part.is_char_boundary(*length) && text.ends_with(&part[..*length]);
    (1..=longest).rev().find(is_open).unwrap_or_default()
}

/// All parts of `secret` that are [`PART`] characters long; the whole of a shorter one. A part with white
/// space in it may stand anywhere, as in the indentation of a file with keys, so that one counts as a whole.
fn parts(secret: &str) -> Vec<String> {
    let characters: Vec<char> = secret.chars().take(MOST).collect();
    let length = characters.len().min(PART);
    let solid = characters.windows(length).filter(|part| !part.iter().any(|it| it.is_whitespace()));
    let mut parts: Vec<String> = solid.map(|part| part.iter().collect()).collect();
    if secret.contains(char::is_whitespace) || secret.len() > MOST {
        parts.push(secret.to_owned());
    }
    parts
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
    fn what_is_left_of_a_secret_that_was_cut_short_is_masked_too() {
        let key = "sk-test-0123456789abcdef";
        let secrets = Secrets::new([key]);
        assert_eq!(secrets.mask("key sk-test-0123456 […] 456789abcdef."), "key *** […] ***.");
        assert_eq!(secrets.mask("sk-test-012"), "sk-test-012", "that much tells nothing");
        assert_eq!(secrets.mask(&format!("{key}{key}")), "******");
        let unlike = Secrets::new(["a密\"bcdefghijklmn"]);
        assert_eq!(unlike.mask("密\"bcdefghijkl, 密\\\"bcdefghijk"), "***, ***");
    }

    #[test]
    fn blanks_in_a_secret_are_masked_nowhere_else() {
        let secrets =
            Secrets::new(["correct horse battery", "{            \"k\": \"0123456789ab\"}"]);
        assert_eq!(secrets.mask("a correct horse battery"), "a ***");
        assert_eq!(secrets.mask("a            b"), "a            b");
        assert_eq!(secrets.mask("it is 0123456789ab"), "it is ***");
    }

    #[test]
    fn what_either_of_two_knows_both_together_know() {
        let both = Secrets::new(["sk-one-23"]).and(&Secrets::new(["sk-two-34"]));
        assert_eq!(both.mask("sk-one-23 sk-two-34"), "*** ***");
        assert!(Secrets::default().and(&Secrets::default()).is_empty());
    }

    #[test]
    fn without_secrets_nothing_is_held_back() {
        let (mut held, mut masked) = (String::new(), String::new());
        Secrets::default().push(&mut held, "sk-", &mut masked);
        assert_eq!((&*held, &*masked), ("", "sk-"));
    }

    proptest! {
        #[test]
        fn a_secret_in_pieces_is_masked_like_a_whole_one(text in "([ab\"密]|aabbaabbaabbaa|aaaaaaa){0,20}", at in 0.0..1.0) {
            let secrets = Secrets::new(["ababab", "abababba", "bab\"aa", "密密", "aabbaabbaabbaa", "b密aaaaaaaabbbbbb密b"]);
            let at = text.floor_char_boundary((text.len() as f64 * at) as usize);
            let (mut held, mut masked) = (String::new(), String::new());
            secrets.push(&mut held, &text[..at], &mut masked);
            secrets.push(&mut held, &text[at..], &mut masked);
            masked.push_str(&secrets.mask(&held));
            prop_assert_eq!(masked, secrets.mask(&text));
        }
    }
}
