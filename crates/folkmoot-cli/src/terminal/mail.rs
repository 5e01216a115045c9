//! Mail as people read it.

use std::fmt::Write;

use folkmoot_core::mail::{Reading, State};
use folkmoot_runtime::mail::Header;

use super::{
    figures,
    screen::{Screen, Tone},
    table::{Cell, Table, numbers, texts},
};

/// How much of a subject a line has room for where lines have no bound.
const WORDS: usize = 100;

/// Messages in the order given; of `sent` ones also who read them. `now` is the wall clock in
/// microseconds since 1970.
pub(crate) fn headers(screen: &Screen, headers: &[Header], sent: bool, now: u64) -> String {
    let other = if sent { "TO" } else { "FROM" };
    let mut columns = vec![texts("MESSAGE"), texts(other), texts("SENT"), texts("STATE")];
    columns.extend([numbers("ATTEMPT"), numbers("BYTES")]);
    columns.push(if sent { texts("READ BY") } else { texts("SUBJECT") });
    let mut table = Table::new(columns);
    for header in headers {
        let other = if sent { &header.to } else { &header.from };
        let last = match (&header.receipt, sent) {
            (Some(receipt), true) => screen.line(&receipt.read_by),
            (None, true) => String::new(),
            (_, false) => screen.words(header.subject.as_deref().unwrap_or_default(), WORDS),
        };
        table.row([
            screen.line(&header.id).into(),
            screen.line(other).into(),
            figures::ago(header.sent_at, now).into(),
            state(header),
            figures::count(header.attempt.into()).into(),
            figures::count(header.bytes as u64).into(),
            last.into(),
        ]);
    }
    table.render(screen)
}

fn state(header: &Header) -> Cell {
    let tone = match header.state {
        State::Pending | State::Leased => Tone::Strong,
        State::Acknowledged => Tone::Good,
        State::Cancelled => Tone::Quiet,
        State::Expired | State::Dead => Tone::Bad,
    };
    let text = if header.hidden { "HIDDEN".to_owned() } else { header.state.to_string() };
    Cell::from(text).in_tone(tone)
}

/// A message with its text, set in, so that nothing in it can pass for a heading; with its token if it
/// is only lent.
pub(crate) fn message(screen: &Screen, reading: &Reading, is_lent: bool) -> String {
    let message = &reading.message;
    let mut heading =
        vec![screen.line(&message.id), format!("from {}", screen.line(&message.from))];
    heading.extend(message.draft.subject.iter().map(|it| screen.line(it)));
    heading.extend((reading.attempt > 1).then(|| format!("attempt {}", reading.attempt)));
    heading.extend(reading.phase_missed.then(|| "its phase never came".to_owned()));
    heading.extend(is_lent.then(|| format!("lease {}", reading.lease)));
    let mut page = screen.paint(Tone::Strong, heading.join(" · "));
    page.push('\n');
    for line in screen.text(&message.draft.body).lines() {
        page.push_str(format!("  {line}").trim_end());
        page.push('\n');
    }
    for reference in &message.draft.refs {
        writeln!(page, "see {}", screen.line(reference)).expect("a string takes any text");
    }
    page
}
