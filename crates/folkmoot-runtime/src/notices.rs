//! Who is told what goes to a run's public stream (agents.md §9).
//!
//! The stream is a fold of the log, so it can be told again at any time; nothing hangs on who listens,
//! nor on what becomes of that.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use folkmoot_core::{event::Record, key::Key, run::Run, scope::Notice, spec::Spec, view};

use crate::{backend::Delta, driver::Observer};

/// The priority of a subscriber that does not say.
pub const USUAL_PRIORITY: i32 = 100;

/// What a subscriber does with a notice; an error says what went wrong.
type Listen = Box<dyn Fn(&Notice) -> Result<(), String> + Send + Sync>;

/// Subscribers of public streams, told in ascending priority; of the same one, in the order in which
/// they came.
pub struct Subscribers {
    all: Vec<Subscriber>,
    /// Is told of those that fail.
    log: Box<dyn Fn(&str) + Send + Sync>,
}

struct Subscriber {
    /// What it is told of; of everything if nothing is named.
    kind: Option<String>,
    priority: i32,
    listen: Listen,
}

impl Subscribers {
    /// Nobody yet; `log` is told of those that fail.
    pub fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Subscribers {
        Subscribers { all: Vec::new(), log: Box::new(log) }
    }

    /// Lets `listen` be told of notices of this kind, or of all.
    #[must_use]
    pub fn with(
        mut self,
        kind: Option<&str>,
        priority: i32,
        listen: impl Fn(&Notice) -> Result<(), String> + Send + Sync + 'static,
    ) -> Subscribers {
        let place = self.all.partition_point(|other| other.priority <= priority);
        let (kind, listen) = (kind.map(str::to_owned), Box::new(listen));
        self.all.insert(place, Subscriber { kind, priority, listen });
        self
    }

    /// Tells everybody whom it concerns; gives how many took it in. One that fails, or panics, keeps it
    /// from nobody else.
    pub fn tell(&self, notice: &Notice) -> usize {
        let concerned = self.all.iter().filter(|it| {
            let kind = it.kind.as_deref();
            kind.is_none_or(|kind| kind == notice.kind)
        });
        let told = concerned.filter(|it| {
            let heard = catch_unwind(AssertUnwindSafe(|| (it.listen)(notice)));
            let failure = match heard {
                Ok(Ok(())) => return true,
                Ok(Err(why)) => why,
                Err(_) => "it panicked".to_owned(),
            };
            (self.log)(&format!("a subscriber of {} failed: {failure}", notice.kind));
            false
        });
        told.count()
    }
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.iter().map(|it| (&it.kind, it.priority));
        f.debug_list().entries(all).finish()
    }
}

impl Observer for Subscribers {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        for notice in view::notices(spec, run, records) {
            self.tell(&notice);
        }
    }

    /// What comes in from a call under way is nothing for the public stream.
    fn delta(&self, _: &Key, _: Delta<'_>) {}
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use serde_json::Map;

    use super::*;

    /// What happened, in its order.
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl Heard {
        fn note(&self, text: &str) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }

        fn by(&self, name: &'static str) -> impl Fn(&Notice) -> Result<(), String> + use<> {
            let heard = self.clone();
            move |_| {
                heard.note(name);
                Ok(())
            }
        }

        fn all(&self) -> Vec<String> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    fn notice() -> Notice {
        Notice { seq: 3, kind: "task_phase_change", fields: Map::new() }
    }

    #[test]
    fn subscribers_run_in_ascending_priority_those_of_everything_in_their_place() {
        let heard = Heard::default();
        let subscribers = Subscribers::new(|_| ())
            .with(Some("task_phase_change"), USUAL_PRIORITY, heard.by("a"))
            .with(Some("task_phase_change"), 10, heard.by("b"))
            .with(None, 50, heard.by("wild"))
            .with(Some("pipeline_complete"), 1, heard.by("not concerned"))
            .with(None, USUAL_PRIORITY, heard.by("later"));
        assert_eq!(subscribers.tell(&notice()), 4);
        assert_eq!(heard.all(), ["b", "wild", "a", "later"]);
    }

    #[test]
    fn a_failing_subscriber_is_logged_and_not_counted_and_stops_nobody() {
        let (heard, logged) = (Heard::default(), Heard::default());
        let log = logged.clone();
        let subscribers = Subscribers::new(move |line| log.note(line))
            .with(None, 1, |_| Err("no room".to_owned()))
            .with(None, 2, |_| panic!("boom"))
            .with(None, 3, heard.by("ok"));
        assert_eq!(subscribers.tell(&notice()), 1);
        assert_eq!(heard.all(), ["ok"]);
        assert_eq!(
            logged.all(),
            [
                "a subscriber of task_phase_change failed: no room",
                "a subscriber of task_phase_change failed: it panicked"
            ]
        );
    }
}
