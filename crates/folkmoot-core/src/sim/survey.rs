//! What came of many simulated runs.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{Sim, audit::audit};
use crate::{
    bounds::Bounds,
    view::{self, Status},
};

/// How many failed runs are kept by seed, of those that merely failed and of those that broke a rule.
pub const LISTED: usize = 100;

/// Counts over many simulated runs. The order in which runs are added plays no part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// How many runs there were.
    pub runs: u64,
    /// How many ended with each status and reason.
    pub endings: BTreeMap<(Status, String), u64>,
    /// The calls started in a run.
    pub calls: Spread,
    /// The tokens of a run, estimates among them.
    pub tokens: Spread,
    /// The rounds in the result of a run.
    pub rounds: Spread,
    /// The virtual time of a run, in tenths of seconds.
    pub tenths: Spread,
    /// How many runs kept the rules and were not done.
    pub failed: u64,
    /// How many broke a rule that every run keeps, whatever happens.
    pub broken: u64,
    failed_runs: BTreeMap<u64, Failure>,
    broken_runs: BTreeMap<u64, Failure>,
}

/// A run that was not done, or that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed that gives this run again.
    pub seed: u64,
    /// How it stands.
    pub status: Status,
    /// What went wrong, in one line.
    pub why: String,
    /// Whether the fault is Folkmoot's: a rule was broken that every run keeps.
    pub is_broken: bool,
}

impl Survey {
    /// Adds the run that `live` gives, which is that of `seed`; `bounds` are those of its spec.
    pub fn add(&mut self, seed: u64, bounds: &Bounds, live: impl FnOnce() -> Sim) {
        // One run that panics must not take the others with it.
        let lived = catch_unwind(AssertUnwindSafe(|| {
            let sim = live();
            let audited = audit(&sim, bounds);
            (sim, audited)
        }));
        self.runs += 1;
        let Ok((sim, audited)) = lived else {
            self.end(Status::Failed, "panicked");
            return self.fail(seed, Status::Failed, true, || "it panicked".to_owned());
        };
        let (status, reason) = view::status(&sim.run, false);
        self.end(status, reason.as_deref().unwrap_or_default());
        self.count(&sim);
        if let Err(broken) = audited {
            self.fail(seed, status, true, || broken.to_string());
        } else if status != Status::Done {
            self.fail(seed, status, false, || why(&sim));
        }
    }

    fn end(&mut self, status: Status, reason: &str) {
        *self.endings.entry((status, reason.to_owned())).or_default() += 1;
    }

    fn count(&mut self, Sim { spec, run, .. }: &Sim) {
        let spent = run.ledger().run;
        self.calls.add(spent.calls);
        self.tokens.add(spent.tokens.total());
        self.rounds.add(run.account(spec.program(), spec).rounds.len() as u64);
        self.tenths.add(run.at().0 / 100_000);
    }

    fn fail(&mut self, seed: u64, status: Status, is_broken: bool, why: impl FnOnce() -> String) {
        let (count, listed) = if is_broken {
            (&mut self.broken, &mut self.broken_runs)
        } else {
            (&mut self.failed, &mut self.failed_runs)
        };
        *count += 1;
        if listed.len() < LISTED || listed.last_key_value().is_some_and(|(last, _)| seed < *last) {
            listed.insert(seed, Failure { seed, status, why: why(), is_broken });
            trim(listed);
        }
    }

    /// Adds what came of other runs.
    pub fn merge(&mut self, other: Survey) {
        self.runs += other.runs;
        for (ending, count) in other.endings {
            *self.endings.entry(ending).or_default() += count;
        }
        self.calls.merge(other.calls);
        self.tokens.merge(other.tokens);
        self.rounds.merge(other.rounds);
        self.tenths.merge(other.tenths);
        self.failed += other.failed;
        self.broken += other.broken;
        for (listed, others) in
            [(&mut self.failed_runs, other.failed_runs), (&mut self.broken_runs, other.broken_runs)]
        {
            listed.extend(others);
            trim(listed);
        }
    }

    /// How many ended with each status.
    pub fn statuses(&self) -> BTreeMap<Status, u64> {
        let mut statuses = BTreeMap::new();
        for ((status, _), count) in &self.endings {
            *statuses.entry(*status).or_default() += count;
        }
        statuses
    }

    /// The failed runs with the lowest seeds, those that broke a rule first; [`LISTED`] of each at
    /// the most.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.broken_runs.values().chain(self.failed_runs.values())
    }
}

fn trim(listed: &mut BTreeMap<u64, Failure>) {
    while listed.len() > LISTED {
        listed.pop_last();
    }
}

/// The reason, and the last of the errors that led to it.
fn why(Sim { spec, run, .. }: &Sim) -> String {
    let outcome = view::outcome("", spec, run, false);
    let reason = outcome.reason.unwrap_or_else(|| outcome.status.as_str().to_owned());
    match outcome.errors.last() {
        Some(last) => format!("{reason}; {} ({}): {}", last.agent, last.key, last.error),
        None => reason,
    }
}

/// Numbers of which the least, the greatest and the one in the middle are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread(BTreeMap<u64, u64>);

impl Spread {
    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    fn merge(&mut self, other: Spread) {
        for (number, count) in other.0 {
            *self.0.entry(number).or_default() += count;
        }
    }

    /// The least; `None` if there are none.
    pub fn min(&self) -> Option<u64> {
        self.0.first_key_value().map(|(number, _)| *number)
    }

    /// The one in the middle, the lower of two.
    pub fn median(&self) -> Option<u64> {
        let half = self.0.values().sum::<u64>().div_ceil(2);
        let mut before = 0;
        let mut is_reached = |count: &u64| {
            before += count;
            before >= half
        };
        self.0.iter().find(|(_, count)| is_reached(count)).map(|(number, _)| *number)
    }

    /// The greatest.
    pub fn max(&self) -> Option<u64> {
        self.0.last_key_value().map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        programs::{Broadcast, Clocks},
        run::Run,
        sim::{hazard::Hazards, weather::Weather},
        spec::{Collaboration, Spec},
        testing::{Scripted, agent, ids, spec},
    };

    fn live(spec: &Arc<Spec>, seed: u64) -> Sim {
        Weather::new(Scripted, seed, Hazards::all()).live(spec.clone(), 0)
    }

    fn bounds(spec: &Spec) -> Bounds {
        Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task))
    }

    fn alone() -> Arc<Spec> {
        let clocks = Clocks { timeout: None, call_timeout: None };
        let broadcast = Broadcast { agents: ids(&["a"]), rounds: 1, clocks };
        spec(vec![agent("a", &["yes"])], Collaboration::Broadcast(broadcast)).into()
    }

    #[test]
    fn the_order_of_runs_plays_no_part_and_the_failures_with_the_lowest_seeds_are_listed() {
        let spec = alone();
        let survey = |seeds: &mut dyn Iterator<Item = u64>| {
            let mut survey = Survey::default();
            seeds.for_each(|seed| survey.add(seed, &bounds(&spec), || live(&spec, seed)));
            survey
        };
        let whole = survey(&mut (0..900));
        assert!(whole.failed > LISTED as u64, "{} failed", whole.failed);
        assert_eq!(whole.failures().count(), LISTED);
        assert_eq!(whole, survey(&mut (0..900).rev()));
        let mut merged = survey(&mut (0..900).filter(|seed| seed % 3 == 0));
        merged.merge(survey(&mut (0..900).filter(|seed| seed % 3 != 0)));
        assert_eq!(merged, whole);
        let first = whole.failures().next().expect("some failed");
        assert!(
            (0..first.seed)
                .all(|seed| view::status(&live(&spec, seed).run, false).0 == Status::Done)
        );
        assert_eq!(whole.statuses().values().sum::<u64>(), 900);
    }

    #[test]
    fn a_run_that_breaks_a_rule_is_told_apart_and_listed_first() {
        let spec = alone();
        let mut survey = Survey::default();
        for seed in 0..200 {
            survey.add(seed, &bounds(&spec), || {
                let mut sim = live(&spec, seed);
                match seed {
                    190 => sim.log.iter_mut().for_each(|record| record.seq += 1),
                    191 => drop(sim.log.pop()),
                    192 => sim.log.swap(0, 1),
                    193 => sim.run = Run::default(),
                    _ => {}
                }
                sim
            });
        }
        let broken: Vec<_> = survey.failures().filter(|it| it.is_broken).collect();
        assert_eq!(broken.iter().map(|it| it.seed).collect::<Vec<_>>(), [190, 191, 192, 193]);
        assert_eq!(broken[0].why, "record 2 follows record 0");
        assert_eq!(broken[1].why, "it does not end");
        assert_eq!(broken[3].why, "its replay comes to another state");
        assert_eq!((survey.broken, survey.runs), (4, 200));
        assert!(survey.failures().take(4).all(|it| it.is_broken));
    }

    #[test]
    fn a_run_that_panics_takes_no_other_with_it() {
        let spec = alone();
        let mut survey = Survey::default();
        survey.add(0, &bounds(&spec), || panic!("this is the test's own"));
        survey.add(1, &bounds(&spec), || live(&spec, 1));
        let why: Vec<&str> = survey.failures().map(|it| &*it.why).collect();
        assert_eq!((survey.runs, survey.broken, why), (2, 1, vec!["it panicked"]));
    }

    fn spread(numbers: &[u64]) -> [Option<u64>; 3] {
        let mut spread = Spread::default();
        for number in numbers {
            spread.add(*number);
        }
        [spread.min(), spread.median(), spread.max()]
    }

    #[test]
    fn the_median_is_a_number_that_occurred() {
        assert_eq!(spread(&[]), [None; 3]);
        assert_eq!(spread(&[7]), [Some(7); 3]);
        assert_eq!(spread(&[9, 1]), [1, 1, 9].map(Some));
        assert_eq!(spread(&[5, 1, 9]), [1, 5, 9].map(Some));
        assert_eq!(spread(&[2, 2, 2, 100]), [2, 2, 100].map(Some));
        assert_eq!(spread(&[0, u64::MAX, u64::MAX]), [0, u64::MAX, u64::MAX].map(Some));
    }
}
