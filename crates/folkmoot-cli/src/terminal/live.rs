//! Live progress on a terminal: a line for each of a handful of calls under way, and lines that stay
//! for what is settled.
//!
//! Records and deltas only change the [`Board`]; a thread of its own draws it ten times a second, so
//! that neither a slow terminal nor a thousand calls hold up the run.

use std::{
    fmt::Write as _,
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use folkmoot_core::{event::Record, key::Key, run::Run, spec::Spec};
use folkmoot_runtime::{backend::Delta, driver::Observer};
use terminal_size::{Height, Width};

use super::{
    board::{Board, Frame, Size},
    calls::Line,
    screen::Screen,
};

/// How long a frame stays.
const FRAME: Duration = Duration::from_millis(100);

/// Live progress. It must be [finished](Live::finish) before anything else is written to the
/// terminal, and is when it is dropped.
#[derive(Debug)]
pub(crate) struct Live {
    shared: Arc<Shared>,
    drawing: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    board: Mutex<Board>,
    is_over: Mutex<bool>,
    over: Condvar,
}

impl Live {
    /// Shows progress on standard error, which is `screen`.
    pub(crate) fn stderr(screen: Screen) -> Live {
        Live::new(screen, io::stderr(), || {
            let size = terminal_size::terminal_size_of(io::stderr());
            let (Width(columns), Height(lines)) = size.unwrap_or((Width(80), Height(24)));
            Size { columns: columns.into(), lines: lines.into() }
        })
    }

    fn new(
        screen: Screen,
        to: impl Write + Send + 'static,
        size: impl Fn() -> Size + Send + 'static,
    ) -> Live {
        let board = Mutex::new(Board::new(screen));
        let shared = Arc::new(Shared { board, is_over: Mutex::default(), over: Condvar::new() });
        let drawn = shared.clone();
        let drawing = thread::spawn(move || drawn.draw(&mut Painter::new(to), size));
        Live { shared, drawing: Mutex::new(Some(drawing)) }
    }

    /// Shows a note above the live lines.
    pub(crate) fn note(&self, text: &str) {
        let mut board = self.shared.board();
        let line = Line::note(board.screen().line(text));
        board.note(line);
    }

    /// Takes the live lines away and shows what is settled and was not shown yet.
    pub(crate) fn finish(&self) {
        *lock(&self.shared.is_over) = true;
        self.shared.over.notify_all();
        if let Some(drawing) = lock(&self.drawing).take() {
            // A panic in the drawing thread has been reported by itself; the run goes on.
            let _ = drawing.join();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Observer for Live {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        self.shared.board().recorded(spec, run, records, Instant::now());
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        self.shared.board().delta(key, delta);
    }
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }

    /// Draws until it is over. No lock is held while the terminal is written to.
    fn draw<W: Write>(&self, painter: &mut Painter<W>, size: impl Fn() -> Size) {
        while !self.is_over_within(FRAME) {
            let frame = self.board().frame(Instant::now(), size());
            painter.paint(&frame);
        }
        let frame = self.board().last_frame(size());
        painter.paint(&frame);
    }

    fn is_over_within(&self, time: Duration) -> bool {
        let waiting = self.over.wait_timeout_while(lock(&self.is_over), time, |over| !*over);
        *waiting.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Paints frames, each over the one before.
///
/// The cursor rests at the beginning of the line below the live ones, so that a `^C` that the
/// terminal echoes is painted over like everything else.
#[derive(Debug)]
pub(super) struct Painter<W> {
    to: W,
    /// How many lines the next frame replaces.
    live: usize,
    /// Whether there is nothing left to paint on.
    is_gone: bool,
}

impl<W: Write> Painter<W> {
    /// Paints on `to`.
    pub(super) fn new(to: W) -> Painter<W> {
        Painter { to, live: 0, is_gone: false }
    }

    /// Paints a frame in one write, so that no half of it is ever seen.
    pub(super) fn paint(&mut self, frame: &Frame) {
        if self.is_gone || (self.live == 0 && *frame == Frame::default()) {
            return;
        }
        let mut text = String::new();
        if self.live > 0 {
            write!(text, "\r\u{1b}[{}A\u{1b}[J", self.live).expect("a string takes any text");
        }
        for line in &frame.above {
            text.push_str(line);
            text.push('\n');
        }
        // Lines that the terminal finds wider than we do are cut off, not wrapped.
        text.push_str("\u{1b}[?7l");
        for line in &frame.live {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("\u{1b}[?7h");
        self.live = frame.live.len();
        let painted = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
        self.is_gone = painted.is_err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::testing::{Stage, Written, agent, broadcast, reply};

    fn frame(above: &[&str], live: &[&str]) -> Frame {
        let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        Frame { above: owned(above), live: owned(live) }
    }

    /// What a terminal shows after it was sent this.
    fn shown(bytes: &[u8]) -> String {
        let mut terminal = vt100::Parser::new(12, 40, 0);
        // A terminal turns a line feed into a new line.
        terminal.process(
            &bytes
                .iter()
                .flat_map(|&byte| match byte {
                    b'\n' => vec![b'\r', b'\n'],
                    byte => vec![byte],
                })
                .collect::<Vec<u8>>(),
        );
        terminal.screen().contents()
    }

    #[test]
    fn a_frame_takes_the_place_of_the_one_before() {
        let mut painter = Painter::new(Vec::new());
        painter.paint(&frame(&[], &["one call", "two calls", "bottom"]));
        assert_eq!(shown(&painter.to), "one call\ntwo calls\nbottom");
        painter.paint(&frame(&["settled"], &["two calls", "bottom"]));
        assert_eq!(shown(&painter.to), "settled\ntwo calls\nbottom");
        painter.paint(&frame(&["settled, too"], &[]));
        painter.paint(&frame(&[], &[]));
        assert_eq!(shown(&painter.to), "settled\nsettled, too");
    }

    #[test]
    fn what_the_terminal_echoes_of_an_interrupt_leaves_no_trace() {
        let mut painter = Painter::new(Vec::new());
        painter.paint(&frame(&[], &["one call", &"b".repeat(40)]));
        painter.to.extend(b"^C");
        painter.paint(&frame(&[], &["one call", "cancelling"]));
        painter.to.extend(b"^C");
        painter.paint(&frame(&["settled"], &[]));
        assert_eq!(shown(&painter.to), "settled");
    }

    #[test]
    fn a_terminal_that_is_gone_is_not_painted_on() {
        struct Gone(usize);
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut painter = Painter::new(Gone(0));
        painter.paint(&frame(&["one"], &["bottom"]));
        painter.paint(&frame(&["two"], &["bottom"]));
        assert_eq!(painter.to.0, 1);
    }

    #[test]
    fn a_run_of_any_length_ends_with_its_settled_calls_and_nothing_else() {
        let written = Written::default();
        let size = || Size { columns: 40, lines: 12 };
        let live = Live::new(Screen::grey(40), written.clone(), size);
        let agents = vec![agent("艾达", [reply(10, "42", 7)]), agent("bob", [reply(20, "!no", 0)])];
        let mut stage = Stage::new(broadcast(1, agents));
        live.note("run r1");
        stage.play(|spec, run, records| live.recorded(spec, run, records));
        live.delta(&Key::parse("round-1/bob"), Delta::Text("late"));
        live.finish();
        live.finish();
        assert_eq!(
            shown(written.text().as_bytes()),
            "• run r1\n▸ broadcast · 2 agents\n✓ 艾达 · round-1 · 0.0s · 7 tokens · 42\n\
             ✗ bob · round-1 · 0.0s · no"
        );
    }

    #[test]
    fn an_interrupted_run_leaves_no_line_that_moves() {
        let written = Written::default();
        let size = || Size { columns: 40, lines: 12 };
        let live = Live::new(Screen::grey(40), written.clone(), size);
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(10_000, "never", 0)])]));
        stage.tell(|spec, run, records| live.recorded(spec, run, records));
        while !written.text().contains("running") {
            thread::yield_now();
        }
        drop(live);
        assert_eq!(shown(written.text().as_bytes()), "▸ broadcast · 1 agent");
    }
}
