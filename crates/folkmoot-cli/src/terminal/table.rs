//! Tables without lines, for people and for `grep`.

use super::{
    screen::{Screen, Tone},
    width,
};

/// What a column is never made narrower than.
const LEAST: usize = 8;

/// What stands between two columns.
const GAP: &str = "  ";

/// A table that is being filled.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// The head of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A column of texts.
pub(crate) const fn texts(name: &'static str) -> Column {
    Column { name, side: Side::Left }
}

/// A column of numbers, which stand at its right side.
pub(crate) const fn numbers(name: &'static str) -> Column {
    Column { name, side: Side::Right }
}

/// A cell: safe text on one line, maybe in colour.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// The same cell in colour.
    pub(crate) fn in_tone(self, tone: Tone) -> Cell {
        Cell { tone: Some(tone), ..self }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), tone: None }
    }
}

impl Table {
    /// A table with these columns and no rows.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Table {
        Table { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row, which has a cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// The table as text. Where lines have a bound, the widest columns give way.
    pub(crate) fn render(&self, screen: &Screen) -> String {
        let widths = self.widths(screen.width());
        let head: Vec<Cell> =
            self.columns.iter().map(|it| Cell::from(it.name).in_tone(Tone::Strong)).collect();
        let rows = [&head].into_iter().chain(&self.rows);
        rows.map(|row| self.line(screen, row, &widths)).collect()
    }

    fn widths(&self, bound: Option<usize>) -> Vec<usize> {
        let natural = self.columns.iter().enumerate().map(|(at, column)| {
            let cells = self.rows.iter().map(|row| width::columns(&row[at].text));
            cells.chain([column.name.len()]).max().unwrap_or_default()
        });
        let mut widths: Vec<usize> = natural.collect();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let room = bound.map_or(usize::MAX, |bound| bound.saturating_sub(gaps));
        while widths.iter().sum::<usize>() > room
            && let Some(widest) = widths.iter_mut().max().filter(|it| **it > LEAST)
        {
            *widest -= 1;
        }
        widths
    }

    fn line(&self, screen: &Screen, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        let mut blanks = 0;
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let text = width::head(&cell.text, *width);
            let free = width - width::columns(&text).min(*width);
            let (before, after) = match column.side {
                Side::Left => (0, free),
                Side::Right => (free, 0),
            };
            blanks += before;
            if !text.is_empty() {
                line.push_str(&" ".repeat(blanks));
                line.push_str(&match cell.tone {
                    Some(tone) => screen.paint(tone, &text),
                    None => text.into_owned(),
                });
                blanks = 0;
            }
            blanks += after + GAP.len();
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use folkmoot_agents::Secrets;

    fn table() -> Table {
        let mut table =
            Table::new([texts("NAME"), numbers("CALLS"), texts("STATUS"), texts("TASK")]);
        let long = "为校园社团设计一个招新方案，并说明预算与时间安排";
        table.row([
            "研究员".into(),
            "7".into(),
            Cell::from("done").in_tone(Tone::Good),
            long.into(),
        ]);
        table.row(["bob".into(), "1,024".into(), "".into(), "short".into()]);
        table.row(["x".into(), "".into(), "".into(), "".into()]);
        table
    }

    #[test]
    fn columns_stand_below_each_other_whatever_the_script() {
        expect![[r#"
            NAME    CALLS  STATUS  TASK
            研究员      7  done    为校园社团设计一个招新方案，并说明预算与时间安排
            bob     1,024          short
            x
        "#]]
        .assert_eq(&table().render(&Screen::page(Secrets::default())));
    }

    #[test]
    fn the_widest_column_gives_way_and_no_line_is_too_long() {
        let text = table().render(&Screen::grey(48));
        assert!(text.lines().all(|line| width::columns(line) <= 48));
        expect![[r#"
            NAME    CALLS  STATUS  TASK
            研究员      7  done    为校园社团设计一个招新方…
            bob     1,024          short
            x
        "#]]
        .assert_eq(&text);
        let coloured = table().render(&Screen::coloured(48));
        assert!(coloured.contains("\u{1b}[32mdone\u{1b}[0m  "), "{coloured:?}");
    }
}
