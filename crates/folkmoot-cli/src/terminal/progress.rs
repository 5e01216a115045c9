//! What is shown of a run while it is under way.

use std::sync::Arc;

use folkmoot_core::{event::Record, key::Key, run::Run, spec::Spec};
use folkmoot_runtime::{backend::Delta, driver::Observer};

use super::{
    live::Live,
    plain::{Detail, Plain},
    screen::Screen,
    sink::Sink,
};

/// Progress on standard error.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Lines that are drawn over.
    Live(Live),
    /// Lines that stay.
    Plain(Plain),
}

impl Progress {
    /// Shows progress on standard error, which is `screen`: live where that can be.
    ///
    /// Where standard output is streamed to the same terminal, take [`Progress::plain`].
    pub(crate) fn stderr(screen: Screen, detail: Detail) -> Progress {
        if screen.is_live() {
            Progress::Live(Live::stderr(screen))
        } else {
            Progress::plain(screen, detail)
        }
    }

    /// Shows progress on standard error, which is `screen`, in plain lines.
    pub(crate) fn plain(screen: Screen, detail: Detail) -> Progress {
        let sink = Sink::stderr(screen.secrets().clone());
        Progress::Plain(Plain::new(screen, detail, sink))
    }

    /// Shows a note of Folkmoot's own.
    pub(crate) fn note(&self, text: &str) {
        match self {
            Progress::Live(live) => live.note(text),
            Progress::Plain(plain) => plain.note(text),
        }
    }

    /// Shows what was not shown yet. Nothing else may be written to standard error before.
    pub(crate) fn finish(&self) {
        match self {
            Progress::Live(live) => live.finish(),
            Progress::Plain(plain) => plain.finish(),
        }
    }
}

impl Observer for Progress {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        match self {
            Progress::Live(live) => live.recorded(spec, run, records),
            Progress::Plain(plain) => plain.recorded(spec, run, records),
        }
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        match self {
            Progress::Live(live) => live.delta(key, delta),
            Progress::Plain(plain) => plain.delta(key, delta),
        }
    }
}

/// Several observers of one run, told in this order.
pub(crate) struct Several(pub(crate) Vec<Arc<dyn Observer>>);

impl Observer for Several {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        self.0.iter().for_each(|it| it.recorded(spec, run, records));
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        self.0.iter().for_each(|it| it.delta(key, delta));
    }
}
