//! Foreign text as a picture may have it (rules.md 9.3).

use crate::{text::is_invisible, width};

/// `text` as one line of at most so many columns: runs of white space are one blank, a control
/// character is its picture (`␇`), and what turns or hides text without being seen is a `�`.
pub(super) fn shown(text: &str, columns: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            let before = line.chars().next_back();
            line.push(if is_harmless(c, before) { c } else { picture(c) });
        }
        // More cannot be seen, however much there is.
        if line.len() > columns.saturating_mul(64) {
            break;
        }
    }
    width::head(&line, columns).into_owned()
}

/// Whether `c` can be shown as it is behind `before`.
fn is_harmless(c: char, before: Option<char>) -> bool {
    match c {
        // Joiners and variation selectors belong to the letters and emoji of scripts that have them.
        '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}' => {
            before.is_some_and(|it| !it.is_ascii())
        }
        '\u{FFF9}'..='\u{FFFB}' | '\u{FDD0}'..='\u{FDEF}' => false,
        c => !c.is_control() && !is_invisible(c) && u32::from(c) & 0xFFFE != 0xFFFE,
    }
}

fn picture(c: char) -> char {
    match c {
        '\0'..='\u{1F}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{FFFD}'),
        '\u{7F}' => '␡',
        _ => '\u{FFFD}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_stays_and_what_cannot_is_made_to_be() {
        assert_eq!(shown("  代码\n\t审查\u{2028}员 ", 40), "代码 审查 员");
        assert_eq!(shown("a\u{1b}[2Jb\0\u{7f}\u{85}c", 40), "a␛[2Jb␀␡ c");
        assert_eq!(shown("\u{202e}abc\u{2066}\u{200b}\u{feff}\u{e0041}\u{ffff}", 40), "�abc�����");
        assert_eq!(
            shown("👩\u{200D}🔧 می\u{200C}خواهم a\u{200D}b", 40),
            "👩\u{200D}🔧 می\u{200C}خواهم a�b"
        );
    }

    #[test]
    fn a_long_text_is_cut_by_the_columns_it_takes() {
        assert_eq!(shown("研究员的话很长", 9), "研究员的…");
        assert_eq!(width::columns(&shown(&"字".repeat(100_000), 40)), 39);
    }
}
