//! A board of entries and cells as people read it.

use std::fmt::Write;

use folkmoot_core::board::Delta;

use super::{
    figures,
    screen::{Screen, Tone},
    table::{Table, numbers, texts},
};

/// How much of a value a line has room for where lines have no bound.
const WORDS: usize = 100;

/// The cells that changed, then the entries, each set in, so that nothing in one can pass for a heading.
/// `now` is the wall clock in microseconds since 1970.
pub(crate) fn page(screen: &Screen, delta: &Delta, now: u64) -> String {
    let mut page = String::new();
    if !delta.cells.is_empty() {
        let mut table =
            Table::new([texts("CELL"), numbers("VERSION"), texts("AUTHOR"), texts("VALUE")]);
        for cell in &delta.cells {
            let value = cell.value.as_str().map_or_else(|| cell.value.to_string(), str::to_owned);
            table.row([
                screen.line(&cell.key).into(),
                figures::count(cell.version).into(),
                screen.line(&cell.author).into(),
                screen.words(&value, WORDS).into(),
            ]);
        }
        page.push_str(&table.render(screen));
        page.push('\n');
    }
    for entry in &delta.entries {
        let (topic, author) = (screen.line(&entry.post.topic), screen.line(&entry.author));
        let heading =
            format!("{} · {topic} · {author} · {}", entry.seq, figures::ago(entry.at, now));
        page.push_str(&screen.paint(Tone::Strong, &heading));
        page.push('\n');
        for line in screen.text(&entry.post.text).lines() {
            page.push_str(format!("  {line}").trim_end());
            page.push('\n');
        }
    }
    let more = if delta.more { ", more entries than these" } else { "" };
    writeln!(page, "version {}{more}", delta.version).expect("a string takes any text");
    page
}
