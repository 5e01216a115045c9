//! Folkmoot, its log durable in a SQLite file.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use folkmoot_agents::{Agents, ProviderConfig, Providers};
use folkmoot_core::{call::Answer, call::Usage, spec::Spec};
use folkmoot_runtime::{
    backend::{Backend, OnDelta, Request, Response},
    driver::{Driven, Unobserved},
    engine::Engine,
    store::{Append, Owner, SqliteStore, Store, StreamId},
    tools::NoTools,
};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    figures::{Clock, Figures, figures, median, peak_mib},
    server::THINKS,
    teams::{self, MODEL, REPLY, Who},
};

/// How many runs one figure is the mean of, one after the other.
pub(crate) const RUNS: usize = 200;

/// How many runs go on side by side, and how many each of these is followed by.
pub(crate) const WRITERS: usize = 256;
pub(crate) const EACH: usize = 8;

/// About how long the record of an answered call is, in bytes.
pub(crate) const RECORD: usize = 400;

/// How many turns a chain has.
pub(crate) const CHAIN: usize = 100;

/// An engine with a database of its own.
struct Bench {
    engine: Engine,
    _folder: TempDir,
}

impl Bench {
    fn new(backend: Arc<dyn Backend>) -> Result<Arc<Bench>> {
        let folder = tempfile::tempdir()?;
        let store = Arc::new(SqliteStore::open(folder.path().join("bench.db"))?);
        let engine = Engine::new(store, backend, Arc::new(NoTools), "bench");
        Ok(Arc::new(Bench { engine, _folder: folder }))
    }

    /// One that asks the server at `url`.
    fn asking(url: &str) -> Result<Arc<Bench>> {
        let base_url = Some(url.to_owned());
        let provider = ProviderConfig { base_url, ..ProviderConfig::default() };
        let providers = Providers::new(&BTreeMap::from([(MODEL.to_owned(), provider)]), &|_| None);
        Bench::new(Arc::new(Agents::new(providers)))
    }

    async fn run(&self, spec: &Arc<Spec>) -> Result<Driven> {
        let driver = self.engine.start(spec.clone()).await?;
        Ok(driver.drive(Arc::new(Unobserved), CancellationToken::new()).await?)
    }

    async fn must_run(&self, spec: &Arc<Spec>) -> Result<()> {
        let ending = self.run(spec).await?.run.ending().cloned().context("it did not end")?;
        ensure!(ending.done, "it ended: {}", ending.reason);
        Ok(())
    }
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// Mean times of a run among many, one after the other.
fn in_turn(url: &str, spec: &Arc<Spec>, runs: usize, steps: usize) -> Result<Figures> {
    block_on(async {
        let bench = Bench::asking(url)?;
        bench.must_run(spec).await?;
        let clock = Clock::start();
        for _ in 0..runs {
            bench.must_run(spec).await?;
        }
        let (cpu, wall) = (clock.cpu_ms(), clock.wall_ms());
        Ok(figures([
            ("cpu_ms", cpu / runs as f64),
            ("wall_ms", wall / runs as f64),
            ("steps_per_s", (runs * steps) as f64 / wall * 1000.0),
        ]))
    })
}

pub(crate) fn pipelines_in_turn(url: &str) -> Result<Figures> {
    in_turn(url, &teams::pipeline(Who::Null, 4, 4), RUNS, 4)
}

pub(crate) fn chain(url: &str) -> Result<Figures> {
    in_turn(url, &teams::pipeline(Who::Null, 2, CHAIN), 5, CHAIN)
}

pub(crate) fn relay(url: &str) -> Result<Figures> {
    in_turn(url, &teams::relay(Who::Changing, CHAIN as u32 / 2), 5, CHAIN)
}

pub(crate) fn debates_in_turn(url: &str) -> Result<Figures> {
    in_turn(url, &teams::debate(Who::Null), 50, 21)
}

pub(crate) fn pipelines_side_by_side(url: &str) -> Result<Figures> {
    block_on(async {
        let bench = Bench::asking(url)?;
        let spec = teams::pipeline(Who::Null, 4, 4);
        bench.must_run(&spec).await?;
        let clock = Clock::start();
        let tasks: Vec<_> = (0..WRITERS)
            .map(|_| {
                let (bench, spec) = (bench.clone(), spec.clone());
                tokio::spawn(async move {
                    for _ in 0..EACH {
                        bench.must_run(&spec).await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        let (cpu, wall, runs) = (clock.cpu_ms(), clock.wall_ms(), (WRITERS * EACH) as f64);
        Ok(figures([("cpu_ms", cpu / runs), ("steps_per_s", runs * 4.0 / wall * 1000.0)]))
    })
}

/// The store alone: each writer appends to a claimed stream of its own.
pub(crate) fn appends(_url: &str) -> Result<Figures> {
    block_on(async {
        let folder = tempfile::tempdir()?;
        let store = Arc::new(SqliteStore::open(folder.path().join("bench.db"))?);
        let clock = Clock::start();
        let tasks: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(append(store.clone(), format!("run/{writer}").into())))
            .collect();
        for task in tasks {
            task.await??;
        }
        let appends = (WRITERS * EACH * 4) as f64;
        Ok(figures([("steps_per_s", appends / clock.wall_ms() * 1000.0)]))
    })
}

async fn append(store: Arc<SqliteStore>, stream: StreamId) -> Result<()> {
    let claim = store.claim(&stream, Owner::this("bench"), Duration::from_mins(1)).await?;
    let body: Arc<str> = "x".repeat(RECORD).into();
    for after in 0..(EACH * 4) as u64 {
        store.append(Append::under(&claim, after, vec![body.clone()])).await?;
    }
    Ok(())
}

/// The wall time of a run on warm connections, as a multiple of what its models take.
fn of_ideal(url: &str, spec: &Arc<Spec>, waits: u32) -> Result<Figures> {
    block_on(async {
        let bench = Bench::asking(url)?;
        bench.must_run(spec).await?;
        let mut walls = Vec::new();
        for _ in 0..9 {
            let clock = Clock::start();
            bench.must_run(spec).await?;
            walls.push(clock.wall_ms());
        }
        let ideal = (THINKS * waits).as_secs_f64() * 1000.0;
        Ok(figures([("of_ideal", median(walls).context("there are some")? / ideal)]))
    })
}

pub(crate) fn pipeline(url: &str) -> Result<Figures> {
    of_ideal(url, &teams::pipeline(Who::Model, 4, 4), 4)
}

pub(crate) fn debate(url: &str) -> Result<Figures> {
    of_ideal(url, &teams::debate(Who::Model), 6)
}

pub(crate) fn fan_out(url: &str) -> Result<Figures> {
    block_on(async {
        let bench = Bench::asking(url)?;
        let spec = teams::fan_out(Who::Model, 1000);
        let clock = Clock::start();
        bench.must_run(&spec).await?;
        let new = clock.wall_ms();
        let clock = Clock::start();
        bench.must_run(&spec).await?;
        Ok(figures([("new_ms", new), ("warm_ms", clock.wall_ms())]))
    })
}

pub(crate) fn thousand_pipelines(url: &str) -> Result<Figures> {
    block_on(async {
        let bench = Bench::asking(url)?;
        let spec = teams::pipeline(Who::Model, 4, 4);
        let clock = Clock::start();
        let tasks: Vec<_> = (0..1000)
            .map(|_| {
                let (bench, spec) = (bench.clone(), spec.clone());
                tokio::spawn(async move { bench.must_run(&spec).await })
            })
            .collect();
        let mut failed = 0;
        for task in tasks {
            failed += u32::from(task.await?.is_err());
        }
        let wall = clock.wall_ms() / 1000.0;
        Ok(figures([("wall_s", wall), ("peak_mib", peak_mib()), ("failed", failed.into())]))
    })
}

/// Answers at once, and notes what it was asked.
#[derive(Default)]
struct Scribe(Mutex<Vec<String>>);

#[async_trait]
impl Backend for Scribe {
    async fn perform(&self, request: Request, _: OnDelta<'_>) -> Response {
        let prompt = serde_json::to_string(&request.messages).expect("messages are plain data");
        self.0.lock().await.push(prompt);
        Response { outcome: Ok(Answer::text(REPLY).into()), usage: Usage::default() }
    }
}

pub(crate) fn debate_bytes(_url: &str) -> Result<Figures> {
    block_on(async {
        let scribe = Arc::new(Scribe::default());
        Bench::new(scribe.clone())?.must_run(&teams::debate(Who::Model)).await?;
        let prompts = scribe.0.lock().await;
        Ok(figures([("billed", billed(&prompts))]))
    })
}

/// The bytes of prompts, of which what an earlier prompt begins with counts a tenth.
pub(crate) fn billed(prompts: &[String]) -> f64 {
    let cost = |(at, prompt): (usize, &String)| {
        let same = |other: &String| {
            prompt.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
        };
        let cached = prompts[..at].iter().map(same).max().unwrap_or(0);
        (prompt.len() - cached) as f64 + cached as f64 / 10.0
    };
    prompts.iter().enumerate().map(cost).sum()
}

/// Never answers, and counts who waits.
#[derive(Default)]
struct Silence(AtomicUsize);

#[async_trait]
impl Backend for Silence {
    async fn perform(&self, _: Request, _: OnDelta<'_>) -> Response {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }
}

pub(crate) fn waiting_runs(_url: &str) -> Result<Figures> {
    const WAITING: usize = 10_000;
    block_on(async {
        let silence = Arc::new(Silence::default());
        let bench = Bench::new(silence.clone())?;
        let spec = teams::pipeline(Who::Model, 4, 4);
        let before = peak_mib();
        for _ in 0..WAITING {
            let (bench, spec) = (bench.clone(), spec.clone());
            tokio::spawn(async move { bench.run(&spec).await });
        }
        while silence.0.load(Ordering::Relaxed) < WAITING {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let peak = peak_mib();
        let each = (peak - before) * 1024.0 / WAITING as f64;
        Ok(figures([("peak_mib", peak), ("kib_per_run", each)]))
    })
}
