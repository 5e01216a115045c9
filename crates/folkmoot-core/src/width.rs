//! How much room text takes, in columns.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns that `text` takes; a Chinese character takes two.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// As much of the beginning of `text` as `most` columns hold, with `…` if something is left out.
pub fn head(text: &str, most: usize) -> Cow<'_, str> {
    // A byte takes at most one column.
    if text.len() <= most || columns(text) <= most {
        return Cow::Borrowed(text);
    }
    let Some(room) = most.checked_sub(1) else { return Cow::Borrowed("") };
    Cow::Owned(format!("{}…", &text[..reach(text.graphemes(true), room)]))
}

/// As much of the end of `text` as `most` columns hold, with `…` if something is left out.
pub fn tail(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || columns(text) <= most {
        return Cow::Borrowed(text);
    }
    let Some(room) = most.checked_sub(1) else { return Cow::Borrowed("") };
    let kept = reach(text.graphemes(true).rev(), room);
    Cow::Owned(format!("…{}", &text[text.len() - kept..]))
}

/// How many bytes the first of `graphemes` take that have room in `room` columns.
fn reach<'a>(graphemes: impl Iterator<Item = &'a str>, room: usize) -> usize {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += columns(grapheme);
        used <= room
    };
    graphemes.take_while(fits).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_cut_between_graphemes_and_says_so() {
        assert_eq!(head("研究员的话", 10), "研究员的话");
        assert_eq!(head("研究员的话", 9), "研究员的…");
        assert_eq!(head("研究员的话", 8), "研究员…", "half a character is none");
        assert_eq!(tail("研究员的话", 6), "…的话");
        assert_eq!(head("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!((head("abc", 1), tail("abc", 1)), ("…".into(), "…".into()));
        assert_eq!((head("abc", 0), tail("abc", 0)), ("".into(), "".into()));
    }

    proptest! {
        #[test]
        fn what_is_cut_fits(text in "\\PC{0,40}", most in 0_usize..50) {
            prop_assert!(columns(&head(&text, most)) <= most);
            prop_assert!(columns(&tail(&text, most)) <= most);
        }
    }
}
