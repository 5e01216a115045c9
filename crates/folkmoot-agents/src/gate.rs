//! One gate per provider, so that what one call learns holds for all of them (rules.md 5.9).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::Notify,
    time::{Duration, Instant, sleep_until},
};

/// Lets calls through to a provider.
///
/// It starts wide open. A refused call closes it for everybody while the provider asks to wait, and
/// lowers the number of calls let through at once to what the provider was still serving then; calls
/// that succeed raise it again.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug)]
struct State {
    closed_until: Option<Instant>,
    /// Calls under way.
    inside: usize,
    /// The most calls under way at once.
    width: usize,
    /// Calls that have succeeded since the width last changed.
    successes: usize,
}

impl Default for Gate {
    fn default() -> Gate {
        let state = State { closed_until: None, inside: 0, width: usize::MAX, successes: 0 };
        Gate { state: Mutex::new(state), left: Notify::new() }
    }
}

/// Gates of programs, by name: what one call of a program learns of its limits holds for all.
#[derive(Debug, Default)]
pub(crate) struct Gates(Mutex<BTreeMap<String, Arc<Gate>>>);

impl Gates {
    /// The gate of the program of this name.
    pub(crate) fn of(&self, name: &str) -> Arc<Gate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(name.to_owned()).or_default().clone()
    }
}

/// Leave to ask the provider; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
}

impl Gate {
    /// Waits until one more call may be made.
    pub(crate) async fn enter(&self) -> Pass<'_> {
        loop {
            let left = self.left.notified();
            let closed_until = {
                let mut state = self.state();
                match state.closed_until.filter(|until| *until > Instant::now()) {
                    None if state.inside < state.width => {
                        state.inside += 1;
                        return Pass { gate: self };
                    }
                    closed_until => closed_until,
                }
            };
            match closed_until {
                Some(until) => sleep_until(until).await,
                None => left.await,
            }
        }
    }

    /// Keeps everybody outside for `wait`.
    pub(crate) fn close_for(&self, wait: Duration) {
        let mut state = self.state();
        state.closed_until = state.closed_until.max(Some(Instant::now() + wait));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// The provider served the call.
    pub(crate) fn succeeded(self) {
        let mut state = self.gate.state();
        state.successes += 1;
        if state.successes >= state.width {
            state.width += (state.width / 4).max(1);
            state.successes = 0;
        }
    }

    /// The provider refused the call because there were too many.
    pub(crate) fn refused(self) {
        let mut state = self.gate.state();
        let served = state.inside - 1;
        state.width = state.width.min(served.max(1));
        state.successes = 0;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.state().inside -= 1;
        self.gate.left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// As many passes as the gate gives at once, at most `wanted`.
    fn passes(gate: &Gate, wanted: usize) -> Vec<Pass<'_>> {
        std::iter::from_fn(|| gate.enter().now_or_never()).take(wanted).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_gate_holds_everybody_until_its_time_and_no_longer() {
        let gate = Gate::default();
        let start = Instant::now();
        gate.close_for(Duration::from_secs(5));
        gate.close_for(Duration::from_secs(2));
        let (_a, _b) = tokio::join!(gate.enter(), gate.enter());
        assert_eq!(start.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test]
    async fn after_a_burst_only_as_many_are_let_through_as_were_served() {
        let gate = Gate::default();
        let mut burst = passes(&gate, 6);
        for refused in burst.drain(2..) {
            refused.refused();
        }
        assert_eq!(passes(&gate, 9).len(), 0);
        drop(burst);
        assert_eq!(passes(&gate, 9).len(), 2);
    }

    #[tokio::test]
    async fn somebody_is_always_let_through() {
        let gate = Gate::default();
        for alone in passes(&gate, 1) {
            alone.refused();
        }
        assert_eq!(passes(&gate, 9).len(), 1);
    }

    #[tokio::test]
    async fn success_widens_the_gate_step_by_step() {
        let gate = Gate::default();
        passes(&gate, 1).pop().expect("it is open").refused();
        let mut widths = Vec::new();
        for _ in 0..6 {
            let served = passes(&gate, 99);
            widths.push(served.len());
            served.into_iter().for_each(Pass::succeeded);
        }
        assert_eq!(widths, [1, 2, 3, 4, 5, 6]);
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_another_leaves_and_who_gave_up_is_not_missed() {
        let gate = Gate::default();
        passes(&gate, 1).pop().expect("it is open").refused();
        let inside = gate.enter().await;
        let mut gave_up = Box::pin(gate.enter());
        assert!((&mut gave_up).now_or_never().is_none());
        let mut waiting = Box::pin(gate.enter());
        assert!((&mut waiting).now_or_never().is_none());
        drop(gave_up);
        drop(inside);
        assert!(waiting.now_or_never().is_some());
    }
}
