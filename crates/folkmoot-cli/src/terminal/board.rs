//! What live progress shows: a fold of records and deltas into lines. Nothing is drawn here.

use std::{collections::HashMap, time::Instant};

use folkmoot_core::{
    event::Record,
    key::Key,
    limits::{Limits, Spent},
    money::Money,
    run::Run,
    spec::Spec,
    time::{Duration, Time},
};
use folkmoot_runtime::backend::Delta;

use super::{
    calls::{Calls, Line, Mark, Open},
    figures,
    incoming::Incoming,
    pace::Pace,
    screen::{Screen, Tone},
    width,
};

/// How many calls have a line of their own; the others are counted.
const HANDFUL: usize = 6;

/// The fewest columns in which a part of a text is worth showing.
const LEAST: usize = 8;

/// The spinner, a picture every tenth of a second.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The columns and lines of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its columns.
    pub(crate) columns: usize,
    /// Its lines.
    pub(crate) lines: usize,
}

/// What is to be drawn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Lines that stay.
    pub(crate) above: Vec<String>,
    /// Lines that the next frame replaces.
    pub(crate) live: Vec<String>,
}

/// The progress of a run, as far as records and deltas have told.
#[derive(Debug)]
pub(crate) struct Board {
    screen: Screen,
    calls: Calls,
    incoming: HashMap<Key, Incoming>,
    pace: Pace,
    limits: Limits,
    spent: Spent,
    /// The active time of the last record, and when it came.
    heard: Option<(Time, Instant)>,
    is_over: bool,
}

impl Board {
    /// A board of which nothing is known yet.
    pub(crate) fn new(screen: Screen) -> Board {
        Board {
            screen,
            calls: Calls::default(),
            incoming: HashMap::new(),
            pace: Pace::default(),
            limits: Limits::default(),
            spent: Spent::default(),
            heard: None,
            is_over: false,
        }
    }

    /// What it is shown on.
    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Takes in records that became durable just now.
    pub(crate) fn recorded(&mut self, spec: &Spec, run: &Run, records: &[Record], now: Instant) {
        for record in records {
            let line = self.calls.apply(&self.screen, spec, run, record);
            if let Some(key) = record.event.key().filter(|key| self.calls.get(key).is_none()) {
                self.incoming.remove(key);
            }
            // What was asked has a live line, and how the run ended is told by its summary.
            let is_news = |line: &Line| !matches!(line.mark, Mark::Asked | Mark::Ended);
            self.pace.push(line.filter(is_news));
        }
        self.limits = spec.limits;
        self.spent = run.ledger().run;
        self.heard = Some((run.at(), now));
        self.is_over = run.ending().is_some();
    }

    /// Takes in what comes from a call under way.
    pub(crate) fn delta(&mut self, key: &Key, delta: Delta<'_>) {
        if self.calls.get(key).is_none() {
            return;
        }
        if let Delta::Retry(why) = delta {
            self.pace.push(self.calls.retried(&self.screen, key, why));
        }
        self.incoming.entry(key.clone()).or_default().push(&self.screen, delta);
    }

    /// Takes in a note of Folkmoot's own.
    pub(crate) fn note(&mut self, line: Line) {
        self.pace.push(Some(line));
    }

    /// What is to be drawn now on a terminal of this size.
    pub(crate) fn frame(&mut self, now: Instant, size: Size) -> Frame {
        let columns = size.columns;
        let above = self.pace.due(now);
        let above = above.iter().map(|line| self.permanent(line, columns)).collect();
        Frame { above, live: self.live(now, size) }
    }

    /// What is to be drawn last.
    pub(crate) fn last_frame(&mut self, size: Size) -> Frame {
        let above = self.pace.rest();
        let above = above.iter().map(|line| self.permanent(line, size.columns)).collect();
        Frame { above, live: Vec::new() }
    }

    fn permanent(&self, line: &Line, columns: usize) -> String {
        let room = columns.saturating_sub(2);
        let text = width::head(&line.text, room);
        let left = room.saturating_sub(width::columns(&text) + 3);
        let words = width::head(&line.words, left);
        let separator = if words.is_empty() { "" } else { " · " };
        let sign = self.screen.paint(line.mark.tone(), line.mark.sign());
        format!("{sign} {text}{separator}{words}")
    }

    fn live(&self, now: Instant, size: Size) -> Vec<String> {
        if self.is_over || self.heard.is_none() {
            return Vec::new();
        }
        let at = self.now(now);
        let calls = self.calls.in_order();
        // The line that counts the others and the one at the bottom need room, too.
        let handful = HANDFUL.min(size.lines.saturating_sub(4)).max(1);
        let shown = if calls.len() <= handful + 1 { calls.len() } else { handful };
        let mut lines: Vec<String> = calls[..shown]
            .iter()
            .map(|(key, open)| self.under_way(key, open, at, size.columns))
            .collect();
        if shown < calls.len() {
            let more = format!("  … and {} more", figures::grouped((calls.len() - shown) as u64));
            lines.push(self.screen.paint(Tone::Quiet, width::head(&more, size.columns)));
        }
        lines.push(self.bottom(at, size.columns));
        lines
    }

    /// A call under way: who, since when, and the end of what has come in.
    fn under_way(&self, key: &Key, open: &Open, at: Time, columns: usize) -> String {
        let took = at.since(open.since);
        let spinner = SPINNER[(took.0 / 100_000) as usize % SPINNER.len()];
        let seconds = figures::elapsed(took);
        // The spinner and its blank, and two blanks before the seconds.
        let room = columns.saturating_sub(width::columns(&seconds) + 4);
        if room < LEAST {
            return width::head(&format!("{spinner} {}", open.title), columns).into_owned();
        }
        let title = width::head(&open.title, room);
        let left = room.saturating_sub(width::columns(&title) + 2);
        let coming = match self.incoming.get(key) {
            Some(incoming) if left >= LEAST => incoming.shown(&self.screen, left),
            Some(_) | None => String::new(),
        };
        let line = format!("{spinner} {title}  {}", self.screen.paint(Tone::Quiet, &seconds));
        if coming.is_empty() { line } else { format!("{line}  {coming}") }
    }

    /// The use of every limit, and how many calls run and wait.
    fn bottom(&self, at: Time, columns: usize) -> String {
        let (spent, limits) = (&self.spent, &self.limits);
        let waiting = self.incoming.values().filter(|it| it.is_waiting()).count() as u64;
        let open = self.calls.count() as u64;
        let time = limits.time.map(figures::time_limit);
        let parts = [
            Some(of(&figures::elapsed(at.since(Time::default())), time, "")),
            Some(format!("{} running", figures::grouped(open.saturating_sub(waiting)))),
            (waiting > 0).then(|| format!("{} waiting", figures::grouped(waiting))),
            Some(of(&figures::count(spent.calls), limits.calls.map(figures::count), " calls")),
            Some(of(
                &figures::count(spent.tokens.total()),
                limits.tokens.map(figures::count),
                " tokens",
            )),
            money(spent, limits),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let text = format!("  {}", parts.join(" · "));
        self.screen.paint(Tone::Quiet, width::head(&text, columns))
    }

    fn now(&self, now: Instant) -> Time {
        let Some((at, heard)) = self.heard else { return Time::default() };
        let since = now.saturating_duration_since(heard).as_micros();
        at + Duration(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

/// So much, of so much where there is a limit.
fn of(used: &str, limit: Option<String>, unit: &str) -> String {
    match limit {
        Some(limit) => format!("{used}/{limit}{unit}"),
        None => format!("{used}{unit}"),
    }
}

fn money(spent: &Spent, limits: &Limits) -> Option<String> {
    let limit = limits.cost.map(|it| figures::dollars(it.usd()));
    match (spent.cost, limit) {
        (Money(0), None) => None,
        (Money(0), Some(limit)) if spent.tokens.total() > 0 => {
            Some(format!("cost unknown/{limit}"))
        }
        (cost, limit) => Some(of(&figures::dollars(cost.usd()), limit, "")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::terminal::testing::{Stage, agent, broadcast, reply};

    const WIDE: Size = Size { columns: 72, lines: 24 };

    fn board() -> Board {
        Board::new(Screen::grey(72))
    }

    fn tell(board: &mut Board, stage: &mut Stage) {
        let now = stage.now();
        stage.tell(|spec, run, records| board.recorded(spec, run, records, now));
    }

    fn team() -> Spec {
        let mut spec = broadcast(
            1,
            vec![
                agent("研究员", [reply(2_500, "先看数据，再下结论。", 340)]),
                agent("bob", [reply(300, "!boom: exit code 1", 0)]),
                agent("carol", [reply(40_000, "C", 12)]),
            ],
        );
        spec.limits = Limits {
            calls: Some(60),
            tokens: Some(200_000),
            cost: Some(Money::from_usd(2.5)),
            time: Some(Duration::from_secs(1800)),
            ..Limits::default()
        };
        spec
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
    fn check(frame: Frame, expected: Expect) {
        let live = frame.live.iter().map(|line| format!("| {line}"));
        let lines: Vec<String> = frame.above.into_iter().chain(live).collect();
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn calls_under_way_have_lines_that_move_and_settled_ones_lines_that_stay() {
        let (mut board, mut stage) = (board(), Stage::new(team()));
        assert_eq!(board.frame(stage.now(), WIDE), Frame::default());
        tell(&mut board, &mut stage);
        board.delta(&Key::parse("round-1/研究员"), Delta::Reasoning("The user wants "));
        board.delta(&Key::parse("round-1/研究员"), Delta::Reasoning("a plan.\nFirst,"));
        board.delta(&Key::parse("round-1/carol"), Delta::Retry("rate limited; again in 8s"));
        check(
            board.frame(stage.at(200), WIDE),
            expect![[r#"
                ▸ broadcast · 3 agents
                ↻ carol · round-1 · rate limited; again in 8s
                | ⠹ 研究员 · round-1  0.2s  The user wants a plan. First,
                | ⠹ bob · round-1  0.2s
                | ⠹ carol · round-1  0.2s  ↻ rate limited; again in 8s
                |   0.2s/30m · 2 running · 1 waiting · 3/60 calls · 0/200k tokens · $0.00…
            "#]],
        );
        stage.step();
        tell(&mut board, &mut stage);
        board.delta(&Key::parse("round-1/研究员"), Delta::Text(&"先看数据，".repeat(20)));
        board.delta(&Key::parse("round-1/carol"), Delta::Text("C"));
        check(
            board.frame(stage.at(1_234), WIDE),
            expect![[r#"
                ✗ bob · round-1 · 0.3s · boom: exit code 1
                | ⠹ 研究员 · round-1  1.2s  …据，先看数据，先看数据，先看数据，先看数据，
                | ⠹ carol · round-1  1.2s  C
                |   1.2s/30m · 2 running · 3/60 calls · 0/200k tokens · $0.00/$2.50
            "#]],
        );
        check(
            board.frame(stage.at(1_300), Size { columns: 30, lines: 24 }),
            expect![[r#"
                | ⠸ 研究员 · round-1  1.3s
                | ⠸ carol · round-1  1.3s
                |   1.3s/30m · 2 running · 3/60…
            "#]],
        );
        stage.step();
        tell(&mut board, &mut stage);
        check(
            board.frame(stage.at(2_600), WIDE),
            expect![[r#"
                ✓ 研究员 · round-1 · 2.5s · 340 tokens · 先看数据，再下结论。
                | ⠦ carol · round-1  2.6s  C
                |   2.6s/30m · 1 running · 3/60 calls · 340/200k tokens · cost unknown/$2…
            "#]],
        );
        while stage.step() {}
        tell(&mut board, &mut stage);
        check(
            board.last_frame(WIDE),
            expect![[r#"
            ✓ carol · round-1 · 40.0s · 12 tokens · C
        "#]],
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for columns in 0..60 {
            let (mut board, mut stage) = (board(), Stage::new(team()));
            tell(&mut board, &mut stage);
            board.delta(&Key::parse("round-1/研究员"), Delta::Text("数据，第一、第二、第三点"));
            while stage.step() {}
            let frame = board.frame(stage.at(2_600), Size { columns, lines: 24 });
            tell(&mut board, &mut stage);
            let last = board.last_frame(Size { columns, lines: 24 });
            for line in frame.above.iter().chain(&frame.live).chain(&last.above) {
                // Two columns are the least: the sign and its blank.
                assert!(width::columns(line) <= columns.max(2), "{columns}: {line:?}");
            }
        }
    }

    #[test]
    fn a_thousand_calls_take_a_handful_of_lines() {
        let agents = (0..1_000).map(|n| agent(&format!("a{n}"), [reply(1_000 + n, "yes", 1)]));
        let (mut board, mut stage) = (board(), Stage::new(broadcast(1, agents.collect())));
        tell(&mut board, &mut stage);
        for n in 0..100_000 {
            board.delta(&Key::parse(&format!("round-1/a{}", n % 1_000)), Delta::Text("word "));
        }
        check(
            board.frame(stage.at(500), WIDE),
            expect![[r#"
                ▸ broadcast · 1,000 agents
                | ⠴ a0 · round-1  0.5s  …word word word word word word word word word word
                | ⠴ a1 · round-1  0.5s  …word word word word word word word word word word
                | ⠴ a2 · round-1  0.5s  …word word word word word word word word word word
                | ⠴ a3 · round-1  0.5s  …word word word word word word word word word word
                | ⠴ a4 · round-1  0.5s  …word word word word word word word word word word
                | ⠴ a5 · round-1  0.5s  …word word word word word word word word word word
                |   … and 994 more
                |   0.5s · 1,000 running · 1,000 calls · 0 tokens
            "#]],
        );
        let low = Size { columns: 72, lines: 6 };
        assert_eq!(board.frame(stage.at(500), low).live.len(), 4);
        let mut lines = 0;
        for settled in 1..=200 {
            assert!(stage.step());
            tell(&mut board, &mut stage);
            if settled % 100 == 0 {
                lines += board.frame(stage.now(), WIDE).above.len();
            }
        }
        assert!((2..=25).contains(&lines), "{lines}");
        expect!["• 180 more answered"].assert_eq(&board.last_frame(WIDE).above.concat());
    }

    #[test]
    fn a_hostile_team_moves_no_cursor() {
        let hostile = "ok\u{1b}[2J\u{1b}[1A\u{9b}2K\u{202e}\r\u{7}";
        let mut agents =
            vec![agent("a", [reply(100, hostile, 0)]), agent("b", [reply(900, "B", 0)])];
        agents[0].name = hostile.into();
        agents[1].name = hostile.into();
        let (mut board, mut stage) = (board(), Stage::new(broadcast(1, agents)));
        tell(&mut board, &mut stage);
        board.delta(&Key::parse("round-1/b"), Delta::Text(hostile));
        stage.step();
        tell(&mut board, &mut stage);
        let frame = board.frame(stage.at(200), WIDE);
        assert_eq!((frame.above.len(), frame.live.len()), (2, 2));
        let text = frame.above.concat() + &frame.live.concat();
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
}
