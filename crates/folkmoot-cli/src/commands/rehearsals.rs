//! Many simulated runs, on all cores.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Result;
use folkmoot_core::sim::{
    hazard::Hazard,
    survey::{Spread, Survey},
};
use serde_json::{Value, json};

use super::{drive::Signals, simulate::Setting};
use crate::{
    app::App,
    exit::{Exit, Refusal},
    terminal::{
        meter::Meter,
        survey::{self, Asked},
    },
};

/// How many runs a thread takes on at once.
const BATCH: u64 = 16;

/// How often progress is shown.
const FRAME: Duration = Duration::from_millis(100);

/// What many runs are asked for, and how far they are.
struct Rehearsals {
    setting: Setting,
    seed: u64,
    runs: u64,
    /// How many runs have been taken on, and how many are done.
    taken: AtomicU64,
    done: AtomicU64,
    is_interrupted: AtomicBool,
}

/// Plays the runs of `seed` and the seeds after it, and tells what came of them.
pub(super) async fn play(
    setting: &Setting,
    seed: u64,
    runs: u64,
    keeps: bool,
    app: &App,
) -> Result<Exit> {
    if seed.checked_add(runs - 1).is_none() {
        let message = format!("there are no {runs} seeds from {seed} on");
        return Err(Refusal::new("bad_value", message).help("take a smaller --seed").into());
    }
    let rehearsals = Arc::new(Rehearsals {
        setting: setting.clone(),
        seed,
        runs,
        taken: AtomicU64::new(0),
        done: AtomicU64::new(0),
        is_interrupted: AtomicBool::new(false),
    });
    let survey = watched(rehearsals.clone(), app).await?;
    let ids = if keeps { kept(setting, &survey, app).await? } else { BTreeMap::new() };
    if app.wants_json() {
        app.print_json(&rehearsals.told(&survey, &ids));
    } else {
        let asked = Asked {
            seed,
            runs,
            faults: setting.hazards.to_string(),
            warnings: &setting.spec.warnings,
        };
        app.print(&survey::tables(&app.page(), &survey));
        app.tell(&survey::summary(&app.screen(), &survey, &asked, &ids));
    }
    Ok(if rehearsals.is_interrupted() {
        Exit::INTERRUPTED
    } else if survey.broken > 0 {
        Exit::FAILED
    } else {
        Exit::DONE
    })
}

/// Plays the runs while a person can see how far they are, and end them with Ctrl-C.
async fn watched(rehearsals: Arc<Rehearsals>, app: &App) -> Result<Survey> {
    let mut signals = Signals::listen()?;
    let mut meter = Meter::stderr(&app.screen());
    let mut frames = tokio::time::interval(FRAME);
    let playing = rehearsals.clone();
    let mut job = tokio::task::spawn_blocking(move || playing.survey());
    let survey = loop {
        tokio::select! {
            survey = &mut job => break survey?,
            () = signals.next() => {
                if rehearsals.is_interrupted.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            }
            _ = frames.tick() => meter.show(rehearsals.done.load(Ordering::Relaxed), rehearsals.runs),
        }
    };
    meter.clear();
    Ok(survey)
}

/// Keeps the failed runs that are listed, and gives their ids by seed.
async fn kept(setting: &Setting, survey: &Survey, app: &App) -> Result<BTreeMap<u64, String>> {
    let engine = app.engine()?;
    let mut ids = BTreeMap::new();
    for failure in survey.failures() {
        let sim = setting.live(failure.seed);
        let id = engine.keep(&sim.spec, &sim.log).await?;
        ids.insert(failure.seed, id.as_str().to_owned());
    }
    Ok(ids)
}

impl Rehearsals {
    fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }

    /// Plays all runs, each on whatever core is free; what comes of it does not depend on that.
    fn survey(&self) -> Survey {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..cores).map(|_| scope.spawn(|| self.work())).collect();
            let surveys = workers.into_iter().map(|it| it.join().expect("a survey never panics"));
            let mut whole = Survey::default();
            surveys.for_each(|survey| whole.merge(survey));
            whole
        })
    }

    fn work(&self) -> Survey {
        let mut survey = Survey::default();
        loop {
            let first = self.taken.fetch_add(BATCH, Ordering::Relaxed);
            if first >= self.runs {
                return survey;
            }
            for nth in first..self.runs.min(first.saturating_add(BATCH)) {
                if self.is_interrupted() {
                    return survey;
                }
                let seed = self.seed + nth;
                survey.add(seed, &self.setting.bounds, || self.setting.live(seed));
                self.done.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// What came of it, for programs.
    fn told(&self, survey: &Survey, ids: &BTreeMap<u64, String>) -> Value {
        let failures = survey.failures().map(|failure| {
            let mut told = json!({
                "seed": failure.seed,
                "why": failure.why,
                "status": failure.status,
                "broken": failure.is_broken,
            });
            if let Some(id) = ids.get(&failure.seed) {
                told["run_id"] = id.as_str().into();
            }
            told
        });
        let mut reasons = json!({});
        for ((status, reason), count) in &survey.endings {
            reasons[status.as_str()][reason] = (*count).into();
        }
        json!({
            "runs": survey.runs,
            "seed": self.seed,
            "faults": self.setting.hazards.iter().map(Hazard::as_str).collect::<Vec<_>>(),
            "statuses": survey.statuses(),
            "reasons": reasons,
            "calls": spread(&survey.calls, Value::from),
            "tokens": spread(&survey.tokens, Value::from),
            "rounds": spread(&survey.rounds, Value::from),
            "seconds": spread(&survey.tenths, |tenths| Value::from(tenths as f64 / 10.0)),
            "failures": failures.collect::<Vec<_>>(),
            "failed": survey.failed,
            "broken": survey.broken,
            "interrupted": self.is_interrupted(),
            "warnings": self.setting.spec.warnings,
        })
    }
}

fn spread(spread: &Spread, number: fn(u64) -> Value) -> Value {
    json!({
        "min": spread.min().map(number),
        "median": spread.median().map(number),
        "max": spread.max().map(number),
    })
}
