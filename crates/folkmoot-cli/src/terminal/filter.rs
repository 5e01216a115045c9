//! The one filter between text that others wrote and a terminal (rules.md 9.3).
//!
//! Colours are dropped without a trace. Every other control sequence leaves a `␛`, every lone control
//! character its picture (`␇`), and what turns or hides text without being seen a `�`. A sequence
//! that is broken off hides nothing: it is shown as the text it is.

use std::borrow::Cow;

/// The longest control sequence that is recognised, in bytes; a longer one is shown.
const LONGEST: usize = 4096;

const ESCAPE: char = '\u{1b}';

/// What a control sequence leaves.
const SEQUENCE: char = '␛';

/// What a character leaves that has no picture.
const UNSEEN: char = '\u{fffd}';

/// `text` as a terminal may have it: no control characters but line feeds and tabs.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| Class::of(c) == Class::Plain) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut filter = Filter::default();
    filter.push(text, &mut clean);
    filter.finish(&mut clean);
    Cow::Owned(clean)
}

/// `text` as a terminal may have it inside a line: line feeds and tabs are pictures, too.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    let clean = self::text(text);
    if clean.contains(['\n', '\t']) {
        Cow::Owned(clean.replace('\n', "␊").replace('\t', "␉"))
    } else {
        clean
    }
}

/// `text` with one safe character for each of its characters, so that columns stay what they were.
pub(crate) fn in_place(text: &str) -> impl Iterator<Item = char> {
    let mut before = None;
    let mut rest = text.chars();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let safe = match Class::of(c) {
            Class::Plain => c,
            Class::Joiner if joins(before) || joins(rest.clone().next()) => c,
            Class::Tag if before == Some(FLAG) => c,
            Class::Return
            | Class::Sequence(_)
            | Class::Control
            | Class::Deceptive
            | Class::Joiner
            | Class::Tag => picture(c),
        };
        before = if leaves_no_mark(c) { before } else { Some(safe) };
        Some(safe)
    })
}

/// Whether a terminal might do something with `c` other than show it, so that JSON escapes it.
pub(crate) fn is_suspect(c: char) -> bool {
    Class::of(c) != Class::Plain
}

/// Filters one text that comes in pieces; a sequence that is split between two is still caught.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// The last character that was let through and can be seen.
    before: Option<char>,
    /// What is held back until it is known what it is.
    held: String,
    state: State,
}

/// What is held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Nothing,
    /// A carriage return, which a line feed may follow.
    Return,
    /// A joiner, whose right neighbour decides.
    Joiner,
    /// A sequence that has come to this stage.
    Sequence(Stage),
}

impl Filter {
    /// Appends to `clean` what of `text` may be shown by now.
    pub(crate) fn push(&mut self, text: &str, clean: &mut String) {
        for c in text.chars() {
            self.take(c, clean);
        }
    }

    /// Appends what was held back; the text is at its end.
    pub(crate) fn finish(mut self, clean: &mut String) {
        self.show_held(clean);
    }

    fn take(&mut self, c: char, clean: &mut String) {
        match self.state {
            State::Nothing => self.begin(c, clean),
            State::Return => {
                if c == '\n' {
                    self.drop_held();
                } else {
                    self.show_held(clean);
                }
                self.begin(c, clean);
            }
            State::Joiner => {
                if joins(Some(c)) {
                    clean.push_str(&self.held);
                    self.drop_held();
                } else {
                    self.show_held(clean);
                }
                self.begin(c, clean);
            }
            State::Sequence(stage) => self.go_on(stage, c, clean),
        }
    }

    fn begin(&mut self, c: char, clean: &mut String) {
        match Class::of(c) {
            Class::Plain => self.keep(c, clean),
            Class::Joiner if joins(self.before) => self.keep(c, clean),
            Class::Tag if self.before == Some(FLAG) => self.keep(c, clean),
            Class::Control | Class::Deceptive | Class::Tag => self.keep(picture(c), clean),
            Class::Return => self.hold(c, State::Return),
            Class::Joiner => self.hold(c, State::Joiner),
            Class::Sequence(stage) => self.hold(c, State::Sequence(stage)),
        }
    }

    fn go_on(&mut self, stage: Stage, c: char, clean: &mut String) {
        match stage.next(c) {
            Next::Stage(next) if self.held.len() < LONGEST => self.hold(c, State::Sequence(next)),
            Next::End => {
                self.held.push(c);
                let is_colour = is_colour(&self.held);
                self.drop_held();
                if !is_colour {
                    self.keep(SEQUENCE, clean);
                }
            }
            Next::Stage(_) | Next::Broken => {
                // What broke the sequence off may itself be the escape of another.
                let escape = if stage == Stage::StringEscape { self.held.pop() } else { None };
                self.show_held(clean);
                for c in escape.into_iter().chain([c]) {
                    self.take(c, clean);
                }
            }
        }
    }

    fn keep(&mut self, c: char, clean: &mut String) {
        clean.push(c);
        if !leaves_no_mark(c) {
            self.before = Some(c);
        }
    }

    fn hold(&mut self, c: char, state: State) {
        self.held.push(c);
        self.state = state;
    }

    fn drop_held(&mut self) {
        self.held.clear();
        self.state = State::Nothing;
    }

    fn show_held(&mut self, clean: &mut String) {
        let held = std::mem::take(&mut self.held);
        self.state = State::Nothing;
        for c in held.chars() {
            let is_plain = Class::of(c) == Class::Plain;
            self.keep(if is_plain { c } else { picture(c) }, clean);
        }
    }
}

/// How far a control sequence has come (ECMA-48).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// After the escape character.
    Escape,
    /// After an intermediate character of an escape sequence.
    Intermediate,
    /// Among the parameters of a CSI sequence.
    Parameters,
    /// Inside an OSC, DCS, APC, PM or SOS string.
    String,
    /// After an escape character inside such a string, which may end it.
    StringEscape,
}

/// What the next character makes of a sequence.
enum Next {
    Stage(Stage),
    End,
    Broken,
}

impl Stage {
    fn next(self, c: char) -> Next {
        match self {
            Stage::Escape => match c {
                '[' => Next::Stage(Stage::Parameters),
                ']' | 'P' | 'X' | '^' | '_' => Next::Stage(Stage::String),
                _ => Stage::Intermediate.next(c),
            },
            Stage::Intermediate => match c {
                ' '..='/' => Next::Stage(Stage::Intermediate),
                '0'..='~' => Next::End,
                _ => Next::Broken,
            },
            Stage::Parameters => match c {
                ' '..='?' => Next::Stage(Stage::Parameters),
                '@'..='~' => Next::End,
                _ => Next::Broken,
            },
            Stage::String => match c {
                '\u{7}' | '\u{9c}' => Next::End,
                ESCAPE => Next::Stage(Stage::StringEscape),
                _ if c.is_control() => Next::Broken,
                _ => Next::Stage(Stage::String),
            },
            Stage::StringEscape => {
                if c == '\\' {
                    Next::End
                } else {
                    Next::Broken
                }
            }
        }
    }
}

/// Whether a finished sequence does nothing but colour the text.
fn is_colour(sequence: &str) -> bool {
    let parameters = sequence.strip_prefix("\u{1b}[").or(sequence.strip_prefix('\u{9b}'));
    let parameters = parameters.and_then(|it| it.strip_suffix('m'));
    parameters.is_some_and(|it| it.chars().all(|c| matches!(c, '0'..=';')))
}

/// What a character may do to a terminal or its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// It shows itself; line feeds and tabs, too.
    Plain,
    /// A carriage return.
    Return,
    /// It begins a control sequence.
    Sequence(Stage),
    /// Any other control character.
    Control,
    /// It turns the direction of what follows, breaks lines or hides.
    Deceptive,
    /// It takes no room and has a use between the letters of some scripts and between emoji; between
    /// all others it makes unlike texts look alike.
    Joiner,
    /// An unseen copy of an ASCII character, for the flags of regions.
    Tag,
}

impl Class {
    fn of(c: char) -> Class {
        match c {
            '\r' => Class::Return,
            ESCAPE => Class::Sequence(Stage::Escape),
            '\u{9b}' => Class::Sequence(Stage::Parameters),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => Class::Sequence(Stage::String),
            '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Class::Control,
            '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{206f}'
            | '\u{2028}'..='\u{2029}'
            | '\u{2061}'..='\u{2064}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' => Class::Deceptive,
            '\u{200b}'..='\u{200f}' | '\u{61c}' | '\u{180e}' | '\u{2060}' | '\u{feff}' => {
                Class::Joiner
            }
            '\u{e0000}'..='\u{e007f}' => Class::Tag,
            _ => Class::Plain,
        }
    }
}

/// The flag that tags turn into that of a region.
const FLAG: char = '\u{1f3f4}';

/// Whether joiners and direction marks have a use beside `c`: letters of scripts that join, stack or
/// run from right to left, scripts without blanks, emoji.
fn joins(c: Option<char>) -> bool {
    matches!(
        c,
        Some(
            '\u{590}'..='\u{61b}'
            | '\u{61d}'..='\u{109f}'
            | '\u{1780}'..='\u{180d}'
            | '\u{180f}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}'
            | '\u{2190}'..='\u{23ff}'
            | '\u{2440}'..='\u{2bff}'
            | '\u{a800}'..='\u{abff}'
            | '\u{fb1d}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefe}'
            | '\u{10a00}'..='\u{11fff}'
            | '\u{1f000}'..='\u{1faff}',
        )
    )
}

/// Whether `c` belongs to the character before it and is not seen by itself.
fn leaves_no_mark(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
        || matches!(Class::of(c), Class::Joiner | Class::Tag)
}

fn picture(c: char) -> char {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(UNSEEN),
        '\u{7f}' => '␡',
        _ => UNSEEN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_go_other_sequences_leave_a_mark_and_controls_a_picture() {
        let hostile = "ok\u{1b}]52;c;ZWNobyBoaQ==\u{7}\u{1b}[2J\u{1b}[1A\u{9b}31m\u{202e} done";
        assert_eq!(text(hostile), "ok␛␛␛\u{fffd} done");
        assert_eq!(text("\u{1b}[1;38:5:9mred\u{1b}[0m, \u{7}bell\u{8}"), "red, ␇bell␈");
        assert_eq!(text("\u{9d}0;title\u{9c}x\u{90}q#0\u{1b}\\y\u{85}"), "␛x␛y\u{fffd}");
        assert_eq!(text("\u{1b}(0q\u{1b}c\u{1b}[>4mz"), "␛q␛␛z");
        assert_eq!(text("a\u{7f}\0b\u{2028}"), "a␡␀b\u{fffd}");
    }

    #[test]
    fn a_sequence_that_never_ends_hides_nothing() {
        assert_eq!(text("a\u{1b}]0;and so on"), "a␛]0;and so on");
        assert_eq!(text("a\u{1b}]0;title\nnext"), "a␛]0;title\nnext");
        assert_eq!(text("a\u{1b}[12"), "a␛[12");
        assert_eq!(text("a\u{1b}"), "a␛");
        assert_eq!(text("\u{9b}3\u{1b}[2Jb"), "\u{fffd}3␛b");
        assert_eq!(text("\u{1b}]x\u{1b}[2Jb"), "␛]x␛b", "another sequence breaks it off");
        assert_eq!(text("\u{1b}]x\u{1b}\u{1b}[mb"), "␛]x␛b");
        let long = format!("\u{1b}]{}", "x".repeat(LONGEST * 2));
        assert_eq!(text(&long).len(), long.len() - 1 + '␛'.len_utf8());
    }

    #[test]
    fn line_ends_stay_and_a_lone_carriage_return_overwrites_nothing() {
        assert_eq!(text("one\r\ntwo\n\tthree"), "one\ntwo\n\tthree");
        assert_eq!(text("safe\rhostile\r"), "safe␍hostile␍");
        assert_eq!(line("a\r\nb\tc"), "a␊b␉c");
    }

    #[test]
    fn joiners_stay_where_they_have_a_use() {
        for kept in ["👩‍💻 ❤️‍🔥 🏴‍☠️ 👨‍👩‍👧‍👦", "می‌خواهم", "क्‍ष", "🏴\u{e0067}\u{e007f}", "1️⃣", "שלום\u{200f}!"]
        {
            assert_eq!(text(kept), kept);
        }
        assert_eq!(text("pay\u{200d}pal"), "pay\u{fffd}pal");
        assert_eq!(text("admin\u{200b}"), "admin\u{fffd}");
        assert_eq!(text("a\u{fe0f}\u{200d}b"), "a\u{fe0f}\u{fffd}b");
        assert_eq!(text("a\u{e0067}b"), "a\u{fffd}b");
        assert_eq!(text("\r\u{200b}"), "␍\u{fffd}", "a picture is no emoji");
    }

    #[test]
    fn columns_stay_what_they_were_in_place() {
        let source = "n: \u{1b}[31mx\u{202e} 👩‍💻 p\u{200d}l\r";
        let shown: String = in_place(source).collect();
        assert_eq!(shown, "n: ␛[31mx\u{fffd} 👩‍💻 p\u{fffd}l␍");
        assert_eq!(shown.chars().count(), source.chars().count());
    }

    /// Texts full of the beginnings, middles and ends of sequences.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            proptest::sample::select(vec![
                "\u{1b}", "[", "]", "\\", "\u{7}", "\u{9b}", "\u{9c}", "\u{9d}", "P", "31", ";",
                "m", "\r", "\n", "\t", "\u{200d}", "\u{202e}", "👩", "\u{fe0f}", "界", "a", "م",
            ])
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
            ".{0,8}",
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_that_controls_a_terminal_comes_through(hostile in hostile()) {
            let clean = text(&hostile);
            prop_assert!(!clean.chars().any(|c| c.is_control() && !"\n\t".contains(c)), "{clean:?}");
            let deceptive = |c| Class::of(c) == Class::Deceptive;
            prop_assert!(!clean.chars().any(deceptive), "{clean:?}");
            prop_assert_eq!(text(&clean), &*clean, "clean text stays");
            prop_assert!(!line(&hostile).chars().any(char::is_control));
            prop_assert!(!in_place(&hostile).any(|c| c.is_control() && !"\n\t".contains(c)));
        }

        #[test]
        fn it_does_not_matter_where_a_text_is_split(hostile in hostile(), at in 0.0..1.0) {
            let at = hostile.floor_char_boundary((hostile.len() as f64 * at) as usize);
            let mut clean = String::new();
            let mut filter = Filter::default();
            filter.push(&hostile[..at], &mut clean);
            filter.push(&hostile[at..], &mut clean);
            filter.finish(&mut clean);
            prop_assert_eq!(clean, text(&hostile));
        }

        #[test]
        fn text_without_controls_is_unchanged(plain in "[\\PC\n\t]{0,64}") {
            prop_assume!(plain.chars().all(|c| Class::of(c) == Class::Plain));
            prop_assert_eq!(text(&plain), &*plain);
            let mut clean = String::new();
            let mut filter = Filter::default();
            filter.push(&plain, &mut clean);
            filter.finish(&mut clean);
            prop_assert_eq!(clean, plain);
        }
    }
}
