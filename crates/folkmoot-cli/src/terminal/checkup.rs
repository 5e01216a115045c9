//! What `doctor` found.

use serde::Serialize;

use super::screen::{Screen, Tone};

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// What it is about.
    pub(crate) check: &'static str,
    /// How it stands.
    pub(crate) state: State,
    /// What was found, in a line.
    pub(crate) message: String,
    /// The way out, if there is anything to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// As it should be.
    Ok,
    /// Not there; much works without it.
    Missing,
    /// To be mended before anything works that needs it.
    Bad,
}

impl Finding {
    /// Something that is as it should be.
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { check, state: State::Ok, message: message.into(), help: None }
    }

    /// Something that is not there.
    pub(crate) fn missing(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { state: State::Missing, ..Finding::ok(check, message) }
    }

    /// Something that is wrong.
    pub(crate) fn bad(check: &'static str, message: impl Into<String>) -> Finding {
        Finding { state: State::Bad, ..Finding::ok(check, message) }
    }

    /// Says what is to be done about it.
    pub(crate) fn help(self, help: impl Into<Option<String>>) -> Finding {
        Finding { help: help.into(), ..self }
    }
}

/// All findings, and what they come to.
pub(crate) fn page(screen: &Screen, findings: &[Finding]) -> String {
    let width = findings.iter().map(|it| it.check.len()).max().unwrap_or_default();
    let lines = findings.iter().flat_map(|Finding { check, state, message, help }| {
        let sign = match state {
            State::Ok => screen.paint(Tone::Good, '✓'),
            State::Missing => screen.paint(Tone::Quiet, '–'),
            State::Bad => screen.paint(Tone::Bad, '✗'),
        };
        let found = format!("{sign} {check:width$}  {}", screen.line(message));
        let help = help.iter().flat_map(|help| help.lines());
        let help = help.map(|line| format!("  {:width$}  → {}", "", screen.line(line)));
        std::iter::once(found).chain(help)
    });
    let page = lines.collect::<Vec<_>>().join("\n");
    let bad = findings.iter().filter(|it| it.state == State::Bad).count();
    let end = match bad {
        0 => screen.paint(Tone::Good, "ready"),
        1 => screen.paint(Tone::Bad, "not ready: 1 problem to fix"),
        bad => screen.paint(Tone::Bad, format!("not ready: {bad} problems to fix")),
    };
    format!("{page}\n\n{end}")
}
