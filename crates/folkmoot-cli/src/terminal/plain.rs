//! Progress where nothing can be drawn over: one line for each thing that happens.

use std::sync::{Mutex, MutexGuard, PoisonError};

use folkmoot_core::{event::Record, key::Key, run::Run, spec::Spec, time::Time};
use folkmoot_runtime::{backend::Delta, driver::Observer};

use super::{
    calls::{Calls, Line, Mark},
    figures,
    screen::Screen,
    sink::Sink,
};

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What came of the calls.
    Outcomes,
    /// That they were asked, too.
    Everything,
}

/// Plain lines, as a log keeps them.
#[derive(Debug)]
pub(crate) struct Plain {
    screen: Screen,
    detail: Detail,
    sink: Sink,
    told: Mutex<Told>,
}

/// What the records have told so far.
#[derive(Debug, Default)]
struct Told {
    calls: Calls,
    /// The time of the last record.
    at: Time,
}

impl Plain {
    /// Tells of a run on `sink`, which is `screen`.
    pub(crate) fn new(screen: Screen, detail: Detail, sink: Sink) -> Plain {
        Plain { screen, detail, sink, told: Mutex::default() }
    }

    /// Tells a note of Folkmoot's own.
    pub(crate) fn note(&self, text: &str) {
        self.tell(self.told().at, &Line::note(self.screen.line(text)));
    }

    /// Waits until everything is written. That some of it could not be is no fault of the run.
    pub(crate) fn finish(&self) {
        let _ = self.sink.close();
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, at: Time, line: &Line) {
        if self.detail == Detail::Outcomes && line.mark == Mark::Asked {
            return;
        }
        let elapsed = figures::elapsed(at.since(Time::default()));
        let separator = if line.words.is_empty() { "" } else { " · " };
        let (word, text, words) = (line.mark.word(), &line.text, &line.words);
        self.sink.put(&format!("{elapsed:>7}  {word:<9}  {text}{separator}{words}"));
    }
}

impl Observer for Plain {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        let mut told = self.told();
        for record in records {
            told.at = record.at;
            if let Some(line) = told.calls.apply(&self.screen, spec, run, record) {
                self.tell(record.at, &line);
            }
        }
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        if let Delta::Retry(why) = delta {
            let told = self.told();
            if let Some(line) = told.calls.retried(&self.screen, key, why) {
                self.tell(told.at, &line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_agents::Secrets;
    use folkmoot_core::{event::Event, limits::Limits, team::Agent};

    use super::*;
    use crate::terminal::testing::{Stage, Written, agent, broadcast, reply};

    fn plain(detail: Detail) -> (Plain, Written) {
        let written = Written::default();
        let sink = Sink::new(written.clone(), Secrets::default());
        (Plain::new(Screen::page(Secrets::default()), detail, sink), written)
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
    fn check(plain: &Plain, written: &Written, expected: Expect) {
        plain.finish();
        // A mark at the left keeps the blanks behind it.
        let text = written.text();
        let lines: Vec<String> = text.lines().map(|line| format!("|{line}\n")).collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn a_log_has_a_line_for_each_outcome() {
        let (plain, written) = plain(Detail::Outcomes);
        let agents = vec![
            agent(
                "研究员",
                [reply(1200, "第一点：\n\n  先看数据。", 340), reply(2000, "好", 1_000)],
            ),
            agent("bob", [reply(300, "!boom\nat line 3", 0), reply(100, " ", 0)]),
        ];
        let mut stage = Stage::new(broadcast(2, agents));
        stage.tell(|spec, run, records| plain.recorded(spec, run, records));
        plain.delta(&Key::parse("round-1/bob"), Delta::Text("b"));
        plain.delta(&Key::parse("round-1/bob"), Delta::Retry("rate limited"));
        plain.note("press Ctrl-C again to stop at once");
        stage.play(|spec, run, records| plain.recorded(spec, run, records));
        check(
            &plain,
            &written,
            expect![[r#"
                |   0.0s  started    broadcast · 2 agents
                |   0.0s  retried    bob · round-1 · rate limited
                |   0.0s  note       press Ctrl-C again to stop at once
                |   0.3s  failed     bob · round-1 · 0.3s · boom at line 3
                |   1.2s  answered   研究员 · round-1 · 1.2s · 340 tokens · 第一点： 先看数据。
                |   1.3s  answered   bob · round-2 · 0.1s · (blank)
                |   3.2s  answered   研究员 · round-2 · 2.0s · 1,000 tokens · 好
                |   3.2s  ended      done · answered
            "#]],
        );
    }

    #[test]
    fn refused_withdrawn_and_cancelled_calls_are_told_and_asked_ones_on_request() {
        let (plain, written) = plain(Detail::Everything);
        let limits = Limits { calls: Some(0), ..Limits::default() };
        let agents =
            vec![agent("a", [reply(60_000, "never", 0)]), Agent { limits, ..agent("b", []) }];
        let spec = broadcast(1, agents);
        let mut stage = Stage::new(spec);
        stage.tell(|spec, run, records| plain.recorded(spec, run, records));
        stage.feed(Event::CancelRequested);
        stage.tell(|spec, run, records| plain.recorded(spec, run, records));
        check(
            &plain,
            &written,
            expect![[r#"
                |   0.0s  started    broadcast · 2 agents
                |   0.0s  asked      a · round-1
                |   0.0s  refused    b · round-1 · budget exhausted
                |   0.0s  note       cancelling
                |   0.0s  failed     a · round-1 · 0.0s · cancelled
                |   0.0s  ended      cancelled
            "#]],
        );
    }

    #[test]
    fn a_hostile_team_writes_nothing_but_text() {
        let (plain, written) = plain(Detail::Everything);
        let hostile = "ok\u{1b}]52;c;ZWNobyBoaQ==\u{7}\u{1b}[2J\u{9b}31m\u{202e}\rdone\u{1b}]0;";
        let mut agents = vec![
            agent("a", [reply(0, hostile, 0)]),
            agent("b", [reply(0, &format!("!{hostile}"), 0)]),
        ];
        agents[0].name = hostile.into();
        let mut stage = Stage::new(broadcast(1, agents));
        stage.tell(|spec, run, records| plain.recorded(spec, run, records));
        plain.delta(&Key::parse("round-1/a"), Delta::Retry(hostile));
        stage.play(|spec, run, records| plain.recorded(spec, run, records));
        plain.note(hostile);
        plain.finish();
        assert!(!written.text().chars().any(|c| c.is_control() && c != '\n'));
        check(
            &plain,
            &written,
            expect![[r#"
                |   0.0s  started    broadcast · 2 agents
                |   0.0s  asked      ok␛␛�␍done␛]0; · round-1
                |   0.0s  asked      b · round-1
                |   0.0s  retried    ok␛␛�␍done␛]0; · round-1 · ok␛␛� done␛]0;
                |   0.0s  failed     b · round-1 · 0.0s · ok␛␛� done␛]0;
                |   0.0s  answered   ok␛␛�␍done␛]0; · round-1 · 0.0s · ok␛␛� done␛]0;
                |   0.0s  ended      done · answered
                |   0.0s  note       ok␛␛�␍done␛]0;
            "#]],
        );
    }
}
