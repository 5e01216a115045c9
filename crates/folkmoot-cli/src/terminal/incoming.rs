//! What comes in from a call under way, as far as a line has room for it.

use folkmoot_runtime::backend::Delta;

use super::{
    filter::Filter,
    screen::{Screen, Tone},
    width,
};

/// How much of the end is kept, in bytes.
const KEPT: usize = 1024;

/// The end of what a call has sent so far.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    kind: Kind,
    filter: Filter,
    /// What may be the beginning of a secret.
    held: String,
    /// Safe, and on one line.
    tail: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Reasoning,
    /// Why the back-end waits before it tries again.
    Retry,
}

impl Incoming {
    /// Takes in a piece.
    pub(crate) fn push(&mut self, screen: &Screen, delta: Delta<'_>) {
        let (kind, text) = match delta {
            Delta::Text(text) => (Kind::Text, text),
            Delta::Reasoning(text) => (Kind::Reasoning, text),
            Delta::Retry(why) => {
                let (kind, tail) = (Kind::Retry, screen.words(why, KEPT));
                *self = Incoming { kind, tail, ..Incoming::default() };
                return;
            }
        };
        if kind != self.kind {
            *self = Incoming { kind, ..Incoming::default() };
        }
        let (mut clean, mut masked) = (String::new(), String::new());
        self.filter.push(text, &mut clean);
        screen.secrets().push(&mut self.held, &clean, &mut masked);
        self.append(&masked);
    }

    fn append(&mut self, text: &str) {
        for c in text.chars() {
            if !c.is_whitespace() {
                self.tail.push(c);
            } else if !self.tail.is_empty() && !self.tail.ends_with(' ') {
                self.tail.push(' ');
            }
        }
        if self.tail.len() > 2 * KEPT {
            let cut = self.tail.ceil_char_boundary(self.tail.len() - KEPT);
            self.tail.drain(..cut);
        }
    }

    /// Whether nothing comes before the back-end has tried again.
    pub(crate) fn is_waiting(&self) -> bool {
        self.kind == Kind::Retry
    }

    /// The end of it in at most so many columns.
    pub(crate) fn shown(&self, screen: &Screen, columns: usize) -> String {
        let tail = self.tail.trim_end();
        match self.kind {
            Kind::Text => width::tail(tail, columns).into_owned(),
            Kind::Reasoning => screen.paint(Tone::Quiet, width::tail(tail, columns)),
            Kind::Retry => {
                let why = format!("↻ {tail}");
                screen.paint(Tone::Doubtful, width::head(&why, columns))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use folkmoot_agents::Secrets;

    #[test]
    fn the_end_of_a_stream_is_safe_and_on_one_line_however_it_is_split() {
        let screen = Screen::page(Secrets::new(["sk-0123456789"]));
        let text = "first\n\n second \u{1b}]0;title\u{7}the key is sk-0123456789, 请看";
        let mut whole = Incoming::default();
        whole.push(&screen, Delta::Text(text));
        let mut pieces = Incoming::default();
        for piece in text.split_inclusive(|_| true) {
            pieces.push(&screen, Delta::Text(piece));
        }
        assert_eq!(whole.shown(&screen, 80), "first second ␛the key is ***, 请看");
        assert_eq!(pieces.shown(&screen, 80), whole.shown(&screen, 80));
        assert_eq!(whole.shown(&screen, 12), "…s ***, 请看");
    }

    #[test]
    fn an_answer_takes_the_place_of_reasoning_and_a_retry_that_of_both() {
        let screen = Screen::coloured(80);
        let mut incoming = Incoming::default();
        incoming.push(&screen, Delta::Reasoning("let me see"));
        assert_eq!(incoming.shown(&screen, 40), "\u{1b}[2mlet me see\u{1b}[0m");
        incoming.push(&screen, Delta::Text("It is"));
        assert_eq!(incoming.shown(&screen, 40), "It is");
        incoming.push(&screen, Delta::Retry("rate limited"));
        assert!(incoming.is_waiting());
        assert_eq!(incoming.shown(&screen, 40), "\u{1b}[33m↻ rate limited\u{1b}[0m");
        incoming.push(&screen, Delta::Text("Again"));
        assert_eq!(incoming.shown(&screen, 40), "Again");
        assert!(!incoming.is_waiting());
    }

    #[test]
    fn an_endless_stream_takes_no_endless_room() {
        let screen = Screen::grey(80);
        let mut incoming = Incoming::default();
        for _ in 0..10_000 {
            incoming.push(&screen, Delta::Text("没完没了 "));
        }
        assert!(incoming.tail.len() <= 2 * KEPT);
        assert!(incoming.shown(&screen, 20).ends_with("没完没了"));
    }
}
