//! Text as it is compared, shortened and taken apart into words.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

use crate::words::Language;

/// The form in which drafts and first answers are compared: line ends are `\n`, blanks at line ends
/// are dropped, runs of blank lines are one, outer blank lines are none (strategies.md §7).
pub fn normalized(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = Vec::new();
    for line in text.split('\n').map(str::trim_end) {
        let after_text = lines.last().is_some_and(|last| !last.is_empty());
        if after_text || !line.is_empty() {
            lines.push(line);
        }
    }
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.join("\n")
}

/// `text` in NFC, trimmed, with each run of white space as one blank.
pub fn spaced(text: &str) -> String {
    let text: String = text.nfc().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `most` characters of `text`: its head and tail, cut between graphemes, with a mark in
/// `language` that tells how many are left out (rules.md 4.3). Where not even the mark has room, it
/// stands alone.
pub fn shorten(text: &str, most: usize, language: Language) -> Cow<'_, str> {
    let size = text.chars().count();
    if size <= most {
        return Cow::Borrowed(text);
    }
    let mark = |left_out: usize| language.left_out(left_out);
    let room = most.saturating_sub(mark(size).chars().count());
    let head = &text[..reach(text.graphemes(true), room - room / 3)];
    let rest = &text[head.len()..];
    let tail = &rest[rest.len() - reach(rest.graphemes(true).rev(), room / 3)..];
    let left_out = size - head.chars().count() - tail.chars().count();
    Cow::Owned(format!("{head}{}{tail}", mark(left_out)))
}

/// How many bytes the first of `graphemes` take that have `room` characters at most.
fn reach<'a>(graphemes: impl Iterator<Item = &'a str>, room: usize) -> usize {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += grapheme.chars().count();
        used <= room
    };
    graphemes.take_while(fits).map(str::len).sum()
}

/// Whether `c` is Han, kana or Hangul: written without blanks, so no such character is part of a
/// longer word (strategies.md §5.3, §6.1).
pub fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11FF}'     // Hangul
        | '\u{2E80}'..='\u{2FDF}'   // Han radicals
        | '\u{3005}'..='\u{3007}'   // repeat marks and zero
        | '\u{3021}'..='\u{3029}'   // numerals
        | '\u{3031}'..='\u{3035}'   // kana repeat marks
        | '\u{3038}'..='\u{303C}'
        | '\u{3041}'..='\u{30FF}'   // kana
        | '\u{3131}'..='\u{318E}'   // Hangul
        | '\u{31F0}'..='\u{31FF}'   // kana
        | '\u{3400}'..='\u{4DBF}'   // Han
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{A960}'..='\u{A97F}'   // Hangul
        | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}'   // Han
        | '\u{FF66}'..='\u{FFDC}'   // half-width kana and Hangul
        | '\u{1AFF0}'..='\u{1B16F}' // kana
        | '\u{20000}'..='\u{3FFFF}' // Han
    )
}

/// Whether `c` is a letter or digit of a script that separates words; a mark belongs to its letter.
pub fn is_word_letter(c: char) -> bool {
    (c.is_alphanumeric() || is_combining_mark(c)) && !is_cjk(c)
}

/// Whether `c` takes no room: zero-width, a direction mark, a variation selector, a tag.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn white_space_at_line_ends_and_blank_lines_do_not_tell_texts_apart() {
        let same = ["a\n\n b", "a  \r\n\r\n\r\n b\n", "\n\t\na\r\r\r b\u{3000}\n\n"];
        for text in same {
            assert_eq!(normalized(text), "a\n\n b");
        }
        assert_eq!(normalized(" \n\t\r\n"), "");
    }

    #[test]
    fn blanks_inside_and_before_a_line_tell_texts_apart() {
        assert_ne!(normalized("a b"), normalized("a  b"));
        assert_ne!(normalized(" a"), normalized("a"));
        assert_ne!(normalized("a\nb"), normalized("a\n\nb"));
    }

    #[test]
    fn a_short_text_is_left_alone() {
        assert!(matches!(
            shorten("twelve chars", 12, Language::English),
            Cow::Borrowed("twelve chars")
        ));
    }

    #[test]
    fn a_long_text_keeps_head_and_tail_and_tells_what_is_missing() {
        let text = format!("{}{}", "+".repeat(900), "=".repeat(900));
        let short = shorten(&text, 100, Language::English);
        assert!(short.starts_with("++") && short.ends_with("=="), "{short}");
        let kept = short.matches(['+', '=']).count();
        assert!(kept > 60 && short.chars().count() <= 100, "{short}");
        assert!(short.contains(&format!("[… {} characters left out …]", 1800 - kept)), "{short}");
    }

    #[test]
    fn a_grapheme_is_never_cut() {
        let family = "👨\u{200D}👩\u{200D}👧";
        let short = shorten(&family.repeat(40), 60, Language::English).into_owned();
        let (head, tail) = short.split_once(" [… ").expect("it is too long");
        let tail = tail.rsplit_once("…] ").expect("the mark ends").1;
        assert!(!head.is_empty() && !tail.is_empty());
        assert_eq!(format!("{head}{tail}").replace(family, ""), "");
    }

    #[test]
    fn the_mark_is_in_the_language_of_the_prompt() {
        let short = shorten("很长的话。", 4, Language::Chinese);
        assert_eq!(short, " [… 省略 5 个字符 …] ");
    }

    #[test]
    fn han_kana_and_hangul_are_told_from_other_letters() {
        assert!("产々〇かカーｶ한ㄱ𠀀".chars().all(is_cjk));
        assert!(!"aéßЖאक๑1_－、。 ".chars().any(is_cjk));
        assert!("aé1क\u{301}".chars().all(is_word_letter) && !"_-产 ".chars().any(is_word_letter));
    }

    proptest! {
        #[test]
        fn shortening_never_panics_and_keeps_its_limit(text in "\\PC{0,120}", most in 0usize..140) {
            let short = shorten(&text, most, Language::English);
            let mark = short.contains("characters left out");
            prop_assert!(short.chars().count() <= most || mark && most < 40);
        }

        #[test]
        fn normalising_twice_changes_nothing(text in "[a \t\r\n\u{3000}]{0,40}") {
            let once = normalized(&text);
            prop_assert_eq!(normalized(&once), once);
        }
    }
}
