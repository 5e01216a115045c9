//! How far something long is, in one line on a terminal that is drawn over.

use std::{
    io::{self, Stderr},
    time::Instant,
};

use folkmoot_core::time::Duration;

use super::{board::Frame, figures, live::Painter, screen::Screen};

/// A line that tells how far something is; nothing where lines cannot be drawn over.
#[derive(Debug)]
pub(crate) struct Meter {
    painter: Option<Painter<Stderr>>,
    began: Instant,
}

impl Meter {
    /// A meter on standard error, which is `screen`.
    pub(crate) fn stderr(screen: &Screen) -> Meter {
        let painter = screen.is_live().then(|| Painter::new(io::stderr()));
        Meter { painter, began: Instant::now() }
    }

    /// Shows that `done` of `all` runs are done.
    pub(crate) fn show(&mut self, done: u64, all: u64) {
        let line = line(done, all, self.began.elapsed().as_secs_f64());
        self.paint(vec![line]);
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.paint(Vec::new());
    }

    fn paint(&mut self, live: Vec<String>) {
        if let Some(painter) = &mut self.painter {
            painter.paint(&Frame { above: Vec::new(), live });
        }
    }
}

fn line(done: u64, all: u64, seconds: f64) -> String {
    let pace = done as f64 / seconds.max(1e-3);
    let left = Duration::from_secs_f64((all - done.min(all)) as f64 / pace.max(1e-3));
    let told = format!("{} of {}", figures::grouped(done), figures::things(all, "run"));
    // The first runs tell nothing about the pace.
    if seconds < 0.5 {
        return told;
    }
    let pace = figures::count(pace.round() as u64);
    format!("{told} · {pace} a second · {} left", figures::elapsed(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_far_it_is_how_fast_and_how_long_it_will_take() {
        assert_eq!(line(12, 1_000_000, 0.1), "12 of 1,000,000 runs");
        let later = "50,000 of 1,000,000 runs · 25k a second · 38.0s left";
        assert_eq!(line(50_000, 1_000_000, 2.0), later);
        assert_eq!(line(2, 2, 2.0), "2 of 2 runs · 1 a second · 0.0s left");
        assert!(line(0, 1, 1.0).starts_with("0 of 1 run · 0 a second"));
    }
}
