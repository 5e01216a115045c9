//! What text for people is shown on, and the gate that foreign text passes on its way there.

use std::{
    ffi::OsString,
    fmt::Display,
    io::{self, IsTerminal},
};

use anstyle::{AnsiColor, Style};
use terminal_size::{Height, Width};

use folkmoot_agents::Secrets;

use super::{filter, width};

/// Where text for people goes: a terminal, or a file or pipe that somebody may read later.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    kind: Kind,
    /// How long a line may be; a file has no such bound.
    width: Option<usize>,
    secrets: Secrets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A file or a pipe.
    Page,
    /// A terminal that knows no control sequences.
    Dumb,
    /// A terminal whose user wants no colours.
    Grey,
    /// A terminal in colour.
    Coloured,
}

impl Kind {
    fn of_terminal(variable: impl Fn(&str) -> Option<OsString>) -> Kind {
        if variable("TERM").is_some_and(|it| it == "dumb") {
            Kind::Dumb
        } else if variable("NO_COLOR").is_some_and(|it| !it.is_empty()) {
            Kind::Grey
        } else {
            Kind::Coloured
        }
    }
}

/// What a text says by its colour; never by that alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// Look at it.
    Doubtful,
    /// It matters.
    Strong,
    /// It matters less.
    Quiet,
}

impl Screen {
    /// The one behind standard output.
    pub(crate) fn stdout(secrets: Secrets) -> Screen {
        Screen::behind(&io::stdout(), terminal_size::terminal_size_of(io::stdout()), secrets)
    }

    /// The one behind standard error.
    pub(crate) fn stderr(secrets: Secrets) -> Screen {
        Screen::behind(&io::stderr(), terminal_size::terminal_size_of(io::stderr()), secrets)
    }

    fn behind(stream: &impl IsTerminal, size: Option<(Width, Height)>, secrets: Secrets) -> Screen {
        if !stream.is_terminal() {
            return Screen::page(secrets);
        }
        let width = size.map_or(80, |(Width(columns), _)| usize::from(columns).max(1));
        let kind = Kind::of_terminal(|name| std::env::var_os(name));
        Screen { kind, width: Some(width), secrets }
    }

    /// A file or pipe.
    pub(crate) fn page(secrets: Secrets) -> Screen {
        Screen { kind: Kind::Page, width: None, secrets }
    }

    /// A terminal of this width without colours.
    #[cfg(test)]
    pub(super) fn grey(width: usize) -> Screen {
        Screen { kind: Kind::Grey, width: Some(width), secrets: Secrets::default() }
    }

    /// A terminal of this width in colour.
    #[cfg(test)]
    pub(super) fn coloured(width: usize) -> Screen {
        Screen { kind: Kind::Coloured, ..Screen::grey(width) }
    }

    /// Whether lines can be drawn over, so that progress can be shown live.
    pub(crate) fn is_live(&self) -> bool {
        match self.kind {
            Kind::Grey | Kind::Coloured => true,
            Kind::Page | Kind::Dumb => false,
        }
    }

    /// Whether it shows colours.
    pub(crate) fn is_coloured(&self) -> bool {
        self.kind == Kind::Coloured
    }

    /// The columns of a line; none where it can be as long as it likes.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// What must not be seen on it.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Foreign text of several lines, made safe.
    pub(crate) fn text(&self, foreign: &str) -> String {
        self.secrets.mask(&filter::text(foreign)).into_owned()
    }

    /// Foreign text inside a line, made safe.
    pub(crate) fn line(&self, foreign: &str) -> String {
        self.secrets.mask(&filter::line(foreign)).into_owned()
    }

    /// The first words of a foreign text, made safe, in at most so many columns.
    pub(crate) fn words(&self, foreign: &str, columns: usize) -> String {
        let mut words = String::new();
        for word in foreign.split_whitespace() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
            // More cannot be seen; a word is never cut before it is masked.
            if words.len() > columns.saturating_mul(4) {
                break;
            }
        }
        width::head(&self.line(&words), columns).into_owned()
    }

    /// `text`, which is safe already, in colour where the screen has any.
    pub(crate) fn paint(&self, tone: Tone, text: impl Display) -> String {
        if !self.is_coloured() {
            return text.to_string();
        }
        let style = match tone {
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Doubtful => AnsiColor::Yellow.on_default(),
            Tone::Strong => Style::new().bold(),
            Tone::Quiet => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(variables: &[(&str, &str)]) -> Kind {
        Kind::of_terminal(|name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn only_a_terminal_that_may_have_them_has_colours_and_live_lines() {
        assert_eq!(kind(&[("TERM", "xterm")]), Kind::Coloured);
        assert_eq!(kind(&[]), Kind::Coloured);
        assert_eq!(kind(&[("NO_COLOR", "")]), Kind::Coloured, "set to nothing is not set");
        assert_eq!(kind(&[("NO_COLOR", "0")]), Kind::Grey);
        assert_eq!(kind(&[("NO_COLOR", "1"), ("TERM", "dumb")]), Kind::Dumb);
        let is_live = |kind| Screen { kind, ..Screen::grey(80) }.is_live();
        assert_eq!([Kind::Coloured, Kind::Grey].map(is_live), [true, true]);
        assert_eq!([Kind::Dumb, Kind::Page].map(is_live), [false, false]);
    }

    #[test]
    fn an_excerpt_is_one_line_and_never_shows_part_of_a_secret() {
        let screen = Screen::page(Secrets::new(["sk-0123456789abcdef"]));
        assert_eq!(screen.words("\n one\r\n\ttwo \u{1b}[2Jthree four", 13), "one two ␛thr…");
        assert_eq!(screen.words("the key sk-0123456789abcdef", 14), "the key ***");
        assert_eq!(screen.words("sk-0123456789abcdef", 2), "*…");
        assert_eq!(screen.text("a\nsk-0123\u{1b}[0m456789abcdef"), "a\n***");
    }
}
