//! How fast lines that stay may come: a person cannot read a thousand at once.

use std::{collections::VecDeque, time::Instant};

use super::{
    calls::{Line, Mark},
    figures,
};

/// How many lines may come at once after a pause.
const BURST: f64 = 20.0;

/// How many lines a second may come for good.
const PER_SECOND: f64 = 4.0;

/// Lines that wait to be shown. Those that come too fast are counted instead.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    waiting: VecDeque<Line>,
    left_out: LeftOut,
    /// How many lines may come now, and since when.
    room: Option<(f64, Instant)>,
}

/// How many lines of which kind were not shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    answered: u64,
    failed: u64,
    retried: u64,
    other: u64,
}

impl Pace {
    /// Takes in a line, if there is one.
    pub(crate) fn push(&mut self, line: impl Into<Option<Line>>) {
        self.waiting.extend(line.into());
    }

    /// The lines that may be shown now.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Line> {
        let (room, since) = self.room.unwrap_or((BURST, now));
        let gained = now.saturating_duration_since(since).as_secs_f64() * PER_SECOND;
        let mut room = (room + gained).min(BURST);
        let mut due = Vec::new();
        // In a flood, a count with a few lines behind it once a second says more than counts alone.
        if !self.left_out.is_nothing() && room >= PER_SECOND {
            due.extend(self.left_out.line());
            room -= 1.0;
        }
        while room >= 1.0
            && self.left_out.is_nothing()
            && let Some(line) = self.waiting.pop_front()
        {
            due.push(line);
            room -= 1.0;
        }
        self.left_out.count(&mut self.waiting);
        self.room = Some((room, now));
        due
    }

    /// Everything that was not shown yet; the run is over.
    pub(crate) fn rest(&mut self) -> Vec<Line> {
        let now = self.room.map_or_else(Instant::now, |(_, since)| since);
        let mut rest = self.due(now);
        rest.extend(self.left_out.line());
        rest
    }
}

impl LeftOut {
    fn is_nothing(self) -> bool {
        self == LeftOut::default()
    }

    fn count(&mut self, lines: &mut VecDeque<Line>) {
        for line in lines.drain(..) {
            match line.mark {
                Mark::Answered => self.answered += 1,
                Mark::Failed | Mark::Refused => self.failed += 1,
                Mark::Retried => self.retried += 1,
                Mark::Started | Mark::Asked | Mark::Withdrawn | Mark::Noted | Mark::Ended => {
                    self.other += 1;
                }
            }
        }
    }

    /// A line that tells how many were left out, if any; from then on they are told.
    fn line(&mut self) -> Option<Line> {
        let LeftOut { answered, failed, retried, other } = std::mem::take(self);
        let counts = [
            (answered, "more answered"),
            (failed, "more failed"),
            (retried, "more retried"),
            (other, "other"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{} {what}", figures::grouped(count)));
        let counts: Vec<String> = counts.collect();
        (!counts.is_empty()).then(|| Line::note(counts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn push(pace: &mut Pace, count: usize, mark: Mark) {
        for n in 0..count {
            pace.push(Line { mark, ..Line::note(n.to_string()) });
        }
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_flood_is_counted_and_a_trickle_is_shown() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        push(&mut pace, 1_000, Mark::Answered);
        push(&mut pace, 3, Mark::Failed);
        assert_eq!(pace.due(start).len(), 20);
        let after = |ms| start + Duration::from_millis(ms);
        push(&mut pace, 1, Mark::Retried);
        push(&mut pace, 1, Mark::Noted);
        assert_eq!(texts(pace.due(after(900))), Vec::<String>::new());
        push(&mut pace, 9, Mark::Answered);
        let told = ["980 more answered, 3 more failed, 1 more retried, 1 other", "0", "1", "2"];
        assert_eq!(texts(pace.due(after(1_000))), told);
        assert_eq!(texts(pace.due(after(2_000))), ["6 more answered"]);
        push(&mut pace, 2, Mark::Answered);
        assert_eq!(texts(pace.due(after(2_100))), ["0", "1"]);
        assert_eq!(texts(pace.due(after(90_000))), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_lost_at_the_end() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        push(&mut pace, 21, Mark::Answered);
        assert_eq!(pace.due(start).len(), 20);
        push(&mut pace, 2, Mark::Failed);
        assert_eq!(texts(pace.rest()), ["1 more answered, 2 more failed"]);
        assert_eq!(texts(pace.rest()), Vec::<String>::new());
    }
}
