//! What may be tried again, how often, and after what wait (agents.md §3, rules.md 10.8, 10.9).

use std::{
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use folkmoot_core::call::{Again, FailureKind, Fault, Usage};
use tokio::time::{Duration, sleep};

use crate::{gate::Gate, patience::Patience};

/// An attempt that gave no answer; nothing it brought is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// How often it is answered by a further attempt, as its kind says unless more is known.
    pub again: Again,
    /// What happened, in words for people.
    pub text: String,
    /// How long the provider asks to wait.
    pub hint: Option<Duration>,
    /// What was used all the same.
    pub usage: Usage,
}

impl Failure {
    /// A failure that cost nothing and gives no hint.
    pub(crate) fn new(kind: FailureKind, text: impl Into<String>) -> Failure {
        let again = kind.again();
        Failure { kind, again, text: text.into(), hint: None, usage: Usage::default() }
    }
}

/// What became of a call after all its attempts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Persisted<T> {
    /// The last attempt's result.
    pub outcome: Result<T, Fault>,
    /// What the failed attempts used.
    pub wasted: Usage,
}

/// Chooses waiting times.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    random: Mutex<fastrand::Rng>,
}

/// By how much at most a call waits longer than the provider asks, so that calls do not return in
/// step.
const SPREAD: Duration = Duration::from_millis(500);

impl Backoff {
    /// Waits as `patience` says, spread by `random`.
    pub(crate) fn new(patience: &Patience, random: fastrand::Rng) -> Backoff {
        let Patience { first_wait: first, longest_wait: longest, .. } = *patience;
        Backoff { first, longest, random: Mutex::new(random) }
    }

    /// The wait after the failed attempt `attempt` (from 1); `Err` holds a hint that is too long.
    fn wait(&self, attempt: u32, hint: Option<Duration>) -> Result<Duration, Duration> {
        let doubled = self.first.saturating_mul(1_u32 << (attempt - 1).min(31));
        match hint {
            Some(hint) if hint > self.longest => Err(hint),
            Some(hint) => Ok(hint + self.part_of(SPREAD)),
            None => Ok(self.part_of(doubled.min(self.longest))),
        }
    }

    fn part_of(&self, whole: Duration) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        whole.mul_f64(random.f64())
    }
}

/// The terms on which a call is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// How many attempts may follow the first.
    pub retries: u32,
    /// Whether what is reserved for the call pays for one attempt only: then none follows one that
    /// may have cost something, so that no limit is passed (rules.md 4.6).
    pub is_metered: bool,
    /// The provider's gate.
    pub gate: &'a Gate,
    /// The waits.
    pub backoff: &'a Backoff,
}

impl Terms<'_> {
    /// Makes attempts until one succeeds or no further one is due; `on_retry` is told of each wait.
    ///
    /// All waiting ends when the future is dropped.
    pub(crate) async fn persist<T, Attempt>(
        &self,
        on_retry: impl Fn(&str) + Send + Sync,
        ask: impl Fn() -> Attempt + Send + Sync,
    ) -> Persisted<T>
    where
        Attempt: Future<Output = Result<T, Failure>> + Send,
    {
        let mut wasted = Usage::default();
        let mut had_its_once = false;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let pass = self.gate.enter().await;
            let failure = match ask().await {
                Ok(done) => {
                    pass.succeeded();
                    return Persisted { outcome: Ok(done), wasted };
                }
                Err(failure) => failure,
            };
            if failure.kind == FailureKind::RateLimited {
                pass.refused();
            } else {
                drop(pass);
            }
            wasted = wasted + failure.usage;
            let is_paid_up = self.is_metered && wasted.tokens.total() > 0;
            let is_due = attempt <= self.retries
                && !is_paid_up
                && match failure.again {
                    Again::Never => false,
                    Again::Once => !std::mem::replace(&mut had_its_once, true),
                    Again::Always => true,
                };
            match self.wait_after(attempt, &failure) {
                Ok(wait) if is_due => {
                    on_retry(&announcement(&failure, attempt, self.retries, wait));
                    sleep(wait).await;
                }
                wait => {
                    let fault = Fault::failed(failure.kind, last_words(&failure, attempt, wait));
                    return Persisted { outcome: Err(fault), wasted };
                }
            }
        }
    }

    /// Waits that the provider asks for hold for all its calls, the call that gives up included.
    fn wait_after(&self, attempt: u32, failure: &Failure) -> Result<Duration, Duration> {
        let wait = self.backoff.wait(attempt, failure.hint);
        let is_asked = failure.hint.is_some() || failure.kind == FailureKind::RateLimited;
        if let (Ok(wait), true) = (wait, is_asked) {
            self.gate.close_for(wait);
        }
        wait
    }
}

fn announcement(failure: &Failure, attempt: u32, retries: u32, wait: Duration) -> String {
    let (next, of) = (attempt + 1, retries.saturating_add(1));
    format!("{}; attempt {next} of {of} in {:.1} s", failure.text, wait.as_secs_f64())
}

fn last_words(failure: &Failure, attempts: u32, wait: Result<Duration, Duration>) -> String {
    let asked = wait.err().map(|hint| format!("; it asks to wait {} s", hint.as_secs()));
    let count = (attempts > 1).then(|| format!(" (after {attempts} attempts)"));
    [Some(failure.text.clone()), asked, count].into_iter().flatten().collect()
}

/// Reads a `Retry-After`: seconds, or a date that is compared with `now`.
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let date = || httpdate::parse_http_date(value.trim()).ok();
    wait(value, 1.0).or_else(|| Some(date()?.duration_since(now).unwrap_or_default()))
}

/// Reads a `retry-after-ms`, which some send beside the other: milliseconds.
pub(crate) fn retry_after_ms(value: &str) -> Option<Duration> {
    wait(value, 1e3)
}

/// Reads a wait in units of which a second has so many. One that is written out in digits and cannot be
/// counted is a wait all the same, and too long.
pub(crate) fn wait(value: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = value.trim().parse().ok()?;
    let is_written_out = value.trim().bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let counted = Duration::try_from_secs_f64(number / per_second).ok();
    counted.or(is_written_out.then_some(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use folkmoot_core::call::Tokens;
    use tokio::time::Instant;

    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(&Patience::default(), fastrand::Rng::with_seed(7))
    }

    /// Attempts that fail as listed, then succeed; the result, their number and the announcements.
    async fn tried(retries: u32, failures: Vec<Failure>) -> (Persisted<()>, usize, Vec<String>) {
        tried_on(retries, false, failures).await
    }

    async fn tried_metered(
        retries: u32,
        failures: Vec<Failure>,
    ) -> (Persisted<()>, usize, Vec<String>) {
        tried_on(retries, true, failures).await
    }

    async fn tried_on(
        retries: u32,
        is_metered: bool,
        failures: Vec<Failure>,
    ) -> (Persisted<()>, usize, Vec<String>) {
        let (gate, backoff) = (Gate::default(), backoff());
        let made = AtomicUsize::new(0);
        let told = Mutex::new(Vec::new());
        let tell = |text: &str| told.lock().expect("no test panics in it").push(text.to_owned());
        let attempt = || {
            let failure = failures.get(made.fetch_add(1, Ordering::Relaxed)).cloned();
            async move { failure.map_or(Ok(()), Err) }
        };
        let terms = Terms { retries, is_metered, gate: &gate, backoff: &backoff };
        let persisted = terms.persist(tell, attempt).await;
        (persisted, made.into_inner(), told.into_inner().expect("no test panics in it"))
    }

    fn hinted(kind: FailureKind, seconds: u64) -> Failure {
        Failure { hint: Some(Duration::from_secs(seconds)), ..Failure::new(kind, "busy") }
    }

    #[tokio::test(start_paused = true)]
    async fn the_kind_decides_how_many_requests_a_lasting_failure_gets() {
        use FailureKind::*;
        let requests = [
            (RateLimited, 4),
            (Timeout, 4),
            (Transport, 4),
            (Harness, 4),
            (Spawn, 4),
            (Incomplete, 2),
            (Protocol, 2),
            (Auth, 1),
            (Config, 1),
            (Unsupported, 1),
            (NotFound, 1),
            (Io, 1),
            (Denied, 1),
            (Other, 1),
        ];
        for (kind, expected) in requests {
            let (persisted, made, told) = tried(3, vec![Failure::new(kind, "no"); 9]).await;
            assert_eq!((made, told.len()), (expected, expected - 1), "{kind:?}");
            let Err(Fault::Failed { kind: last, .. }) = persisted.outcome else {
                panic!("{kind:?}")
            };
            assert_eq!(last, kind);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_retries_there_is_one_request() {
        assert_eq!(tried(0, vec![Failure::new(FailureKind::Transport, "no"); 9]).await.1, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_may_come_once_does_not_use_up_the_others() {
        let failures = [FailureKind::Incomplete, FailureKind::Transport, FailureKind::Transport];
        let failures = failures.map(|kind| Failure::new(kind, "no")).to_vec();
        let (persisted, made, _) = tried(3, failures).await;
        assert_eq!((persisted.outcome, made), (Ok(()), 4));
    }

    #[tokio::test(start_paused = true)]
    async fn under_a_limit_nothing_is_tried_again_that_may_have_cost_something() {
        let usage = Usage { tokens: Tokens { input: 5, ..Tokens::default() }, ..Usage::default() };
        let free = Failure::new(FailureKind::Transport, "refused");
        let dear = Failure { usage, ..Failure::new(FailureKind::Incomplete, "cut off") };
        let failures = || vec![free.clone(), free.clone(), dear.clone(), free.clone()];
        assert_eq!(tried_metered(5, failures()).await.1, 3);
        assert_eq!(tried(5, failures()).await.1, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn failed_attempts_are_paid_for_and_counted_in_the_fault() {
        let usage = Usage { tokens: Tokens { input: 5, ..Tokens::default() }, ..Usage::default() };
        let failure = Failure { usage, ..Failure::new(FailureKind::Transport, "reset") };
        let (persisted, ..) = tried(1, vec![failure; 2]).await;
        assert_eq!(persisted.wasted.tokens.input, 10);
        let fault = persisted.outcome.expect_err("it failed").to_string();
        assert_eq!(fault, "reset (after 2 attempts)");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_is_obeyed() {
        let start = Instant::now();
        let (persisted, made, told) = tried(2, vec![hinted(FailureKind::RateLimited, 40)]).await;
        let waited = start.elapsed();
        assert_eq!((persisted.outcome, made), (Ok(()), 2));
        assert!(waited >= Duration::from_secs(40) && waited <= Duration::from_secs(41));
        assert!(told[0].starts_with("busy; attempt 2 of 3 in 40."), "{told:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_above_the_cap_ends_the_call_with_that_time_in_its_text() {
        let start = Instant::now();
        let (persisted, made, _) = tried(2, vec![hinted(FailureKind::RateLimited, 86_400)]).await;
        assert_eq!((start.elapsed(), made), (Duration::ZERO, 1));
        let fault = persisted.outcome.expect_err("it failed").to_string();
        assert_eq!(fault, "busy; it asks to wait 86400 s");
    }

    #[test]
    fn waits_without_a_hint_double_up_to_the_cap_and_differ() {
        let backoff = backoff();
        for (attempt, most) in [(1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (40, 60)] {
            let waits: Vec<_> = (0..200).map(|_| backoff.wait(attempt, None)).collect();
            let longest = waits.iter().flatten().max().expect("all are waits").as_secs_f64();
            assert!(longest <= f64::from(most) && longest > f64::from(most) * 0.9, "{longest}");
            assert_ne!(waits[0], waits[1]);
        }
    }

    #[test]
    fn equal_seeds_wait_equally() {
        let waits = || {
            let it = backoff();
            [1, 2, 3].map(|attempt| it.wait(attempt, None))
        };
        assert_eq!(waits(), waits());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_to_wait_holds_back_all_others_and_who_fails_otherwise_does_not() {
        for (failure, least, most) in [
            (Failure::new(FailureKind::Transport, "reset"), 0, 0),
            (hinted(FailureKind::Transport, 3), 3, 4),
            (hinted(FailureKind::RateLimited, 9), 9, 10),
            (hinted(FailureKind::RateLimited, 86_400), 0, 0),
        ] {
            let (gate, backoff) = (Gate::default(), backoff());
            let terms = Terms { retries: 0, is_metered: false, gate: &gate, backoff: &backoff };
            let fail = || {
                let failure = failure.clone();
                async move { Err::<(), _>(failure) }
            };
            assert!(terms.persist(|_| {}, fail).await.outcome.is_err());
            let start = Instant::now();
            drop(gate.enter().await);
            let held = start.elapsed();
            let range = Duration::from_secs(least)..=Duration::from_secs(most);
            assert!(range.contains(&held), "{failure:?} {held:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_at_a_provider_that_serves_two_at_a_time_is_answered_in_full() {
        let (gate, backoff) = (Gate::default(), backoff());
        let terms = Terms { retries: 2, is_metered: false, gate: &gate, backoff: &backoff };
        let (served, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ask = || async {
            if served.load(Ordering::Relaxed) == 2 {
                refused.fetch_add(1, Ordering::Relaxed);
                return Err(hinted(FailureKind::RateLimited, 1));
            }
            served.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(30)).await;
            served.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        };
        let burst = (0..6).map(|_| terms.persist(|_| {}, ask));
        let burst = futures_util::future::join_all(burst).await;
        assert!(burst.iter().all(|call| call.outcome.is_ok()), "{burst:?}");
        assert!(refused.into_inner() <= 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_nobody_wants_any_longer_stops_waiting() {
        let (gate, backoff) = (Gate::default(), backoff());
        let terms = Terms { retries: 9, is_metered: false, gate: &gate, backoff: &backoff };
        let made = AtomicUsize::new(0);
        let fail = || {
            made.fetch_add(1, Ordering::Relaxed);
            async { Err::<(), _>(hinted(FailureKind::RateLimited, 30)) }
        };
        let call = terms.persist(|_| {}, fail);
        assert!(tokio::time::timeout(Duration::from_secs(5), call).await.is_err());
        sleep(Duration::from_mins(5)).await;
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn hints_are_seconds_or_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let read = |value| retry_after(value, now);
        assert_eq!(read("2"), Some(Duration::from_secs(2)));
        assert_eq!(read(" 0 "), Some(Duration::ZERO));
        assert_eq!(read("1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(read("86400"), Some(Duration::from_hours(24)));
        assert_eq!(read("Tue, 14 Nov 2023 22:13:27 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(read("Tue, 14 Nov 2023 22:13:13 GMT"), Some(Duration::ZERO));
        let endless = "9".repeat(400);
        for long in ["999999999999999999999999", "18446744073709551616.5", &endless] {
            assert_eq!(read(long), Some(Duration::MAX), "{long}");
            assert!(retry_after_ms(long) > Some(Duration::from_mins(1)), "{long}");
        }
        for nonsense in ["abc", "", "-1", "NaN", "inf", "1e300", "Tue, 99 Nov 2023"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
