//! What the same work takes without teams, records and recovery: a client in a loop, and SQLite
//! with one table that is written in order.

use std::{fmt::Write, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use reqwest::Client;
use rusqlite::{Connection, params};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::{
    figures::{Clock, Figures, figures, median, peak_mib},
    ours::{CHAIN, EACH, RECORD, RUNS, WRITERS, billed},
    server::THINKS,
    teams::{MODEL, REPLY, TASK},
};

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// A client, where it asks, and what.
#[derive(Clone)]
struct Asking {
    client: Client,
    url: Arc<str>,
    body: bytes::Bytes,
}

impl Asking {
    fn new(url: &str) -> Result<Asking> {
        // Whoever installed one before chose as well as we do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .http1_only()
            .tcp_nodelay(true)
            .no_proxy()
            .tls_certs_only([])
            .pool_max_idle_per_host(1024)
            .build()?;
        let body = json!({
            "model": MODEL,
            "messages": [
                { "role": "system", "content": "You are brief." },
                { "role": "user", "content": TASK },
            ],
            "stream": true,
        });
        let url = format!("{url}/chat/completions").into();
        Ok(Asking { client, url, body: serde_json::to_vec(&body)?.into() })
    }

    async fn ask(&self) -> Result<()> {
        let request = self.client.post(&*self.url).header("content-type", "application/json");
        let response = request.body(self.body.clone()).send().await?;
        ensure!(response.status().is_success());
        let reply = response.bytes().await?;
        ensure!(reply.ends_with(b"[DONE]\n\n"), "the reply is not whole");
        Ok(())
    }

    async fn ask_in_turn(&self, turns: usize) -> Result<()> {
        for _ in 0..turns {
            self.ask().await?;
        }
        Ok(())
    }

    /// Has so many tasks at once ask so many times.
    async fn ask_at_once(&self, tasks: usize, turns: usize) -> Result<u32> {
        let tasks: Vec<_> = (0..tasks)
            .map(|_| {
                let asking = self.clone();
                tokio::spawn(async move { asking.ask_in_turn(turns).await })
            })
            .collect();
        let mut failed = 0;
        for task in tasks {
            failed += u32::from(task.await?.is_err());
        }
        Ok(failed)
    }
}

pub(crate) fn first_request(url: &str) -> Result<()> {
    block_on(async { Asking::new(url)?.ask().await })
}

pub(crate) fn pipeline(url: &str) -> Result<Figures> {
    block_on(async {
        let asking = Asking::new(url)?;
        asking.ask_in_turn(4).await?;
        let mut walls = Vec::new();
        for _ in 0..9 {
            let clock = Clock::start();
            asking.ask_in_turn(4).await?;
            walls.push(clock.wall_ms());
        }
        Ok(figures([("of_ideal", of_ideal(walls, 4)?)]))
    })
}

pub(crate) fn debate(url: &str) -> Result<Figures> {
    block_on(async {
        let asking = Asking::new(url)?;
        asking.ask_at_once(4, 1).await?;
        let mut walls = Vec::new();
        for _ in 0..9 {
            let clock = Clock::start();
            for _ in 0..5 {
                asking.ask_at_once(4, 1).await?;
            }
            asking.ask().await?;
            walls.push(clock.wall_ms());
        }
        Ok(figures([("of_ideal", of_ideal(walls, 6)?)]))
    })
}

fn of_ideal(walls: Vec<f64>, waits: u32) -> Result<f64> {
    Ok(median(walls).context("there are some")? / (THINKS * waits).as_secs_f64() / 1000.0)
}

pub(crate) fn fan_out(url: &str) -> Result<Figures> {
    block_on(async {
        let asking = Asking::new(url)?;
        let clock = Clock::start();
        ensure!(asking.ask_at_once(1000, 1).await? == 0);
        let new = clock.wall_ms();
        let clock = Clock::start();
        ensure!(asking.ask_at_once(1000, 1).await? == 0);
        Ok(figures([("new_ms", new), ("warm_ms", clock.wall_ms())]))
    })
}

pub(crate) fn thousand_pipelines(url: &str) -> Result<Figures> {
    block_on(async {
        let asking = Asking::new(url)?;
        let clock = Clock::start();
        let failed = asking.ask_at_once(1000, 4).await?;
        let wall = clock.wall_ms() / 1000.0;
        Ok(figures([("wall_s", wall), ("peak_mib", peak_mib()), ("failed", failed.into())]))
    })
}

/// A row to be written, and who waits for it.
type Job = (u64, oneshot::Sender<()>);

/// One thread that writes; whatever waits shares a commit.
fn writer(connection: Connection) -> mpsc::Sender<Job> {
    let (jobs, mut queue) = mpsc::channel::<Job>(1024);
    thread::spawn(move || -> rusqlite::Result<()> {
        let body = "x".repeat(RECORD);
        let mut waiting = Vec::new();
        while queue.blocking_recv_many(&mut waiting, 1024) > 0 {
            let transaction = connection.unchecked_transaction()?;
            let sql = "INSERT INTO records (stream, body) VALUES (?1, ?2)";
            let mut insert = transaction.prepare_cached(sql)?;
            for (stream, _) in &waiting {
                insert.execute(params![stream.cast_signed(), body])?;
            }
            drop(insert);
            transaction.commit()?;
            for (_, done) in waiting.drain(..) {
                let _ = done.send(());
            }
        }
        Ok(())
    });
    jobs
}

/// Has so many writers each append so many rows, each durable before the next; gives the times
/// for each `steps` rows.
fn commits(writers: usize, rows: usize, steps: usize) -> Result<Figures> {
    block_on(async {
        let folder = tempfile::tempdir()?;
        let connection = Connection::open(folder.path().join("bare.db"))?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE records (id INTEGER PRIMARY KEY, stream INTEGER, body TEXT) STRICT",
        )?;
        let jobs = writer(connection);
        let clock = Clock::start();
        let tasks: Vec<_> = (0..writers as u64)
            .map(|stream| {
                let jobs = jobs.clone();
                tokio::spawn(async move {
                    for _ in 0..rows {
                        let (done, durable) = oneshot::channel();
                        jobs.send((stream, done)).await?;
                        durable.await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        let (cpu, wall, all) = (clock.cpu_ms(), clock.wall_ms(), (writers * rows) as f64);
        let runs = all / steps as f64;
        Ok(figures([
            ("cpu_ms", cpu / runs),
            ("wall_ms", wall / runs),
            ("steps_per_s", all / wall * 1000.0),
        ]))
    })
}

pub(crate) fn commits_of_pipelines(_url: &str) -> Result<Figures> {
    commits(1, RUNS * 4, 4)
}

pub(crate) fn commits_of_chain(_url: &str) -> Result<Figures> {
    commits(1, 5 * CHAIN, CHAIN)
}

pub(crate) fn commits_of_debates(_url: &str) -> Result<Figures> {
    commits(1, 50 * 21, 21)
}

pub(crate) fn commits_side_by_side(_url: &str) -> Result<Figures> {
    commits(WRITERS, EACH * 4, 4)
}

/// What a debate sends if everybody is shown the whole transcript in one message each time.
pub(crate) fn debate_bytes(_url: &str) -> Result<Figures> {
    let prompt = |who: &str, transcript: &str, say: &str| {
        let content = format!("{TASK}\n\n{transcript}{say}");
        json!([
            { "role": "system", "content": format!("You are {who}.") },
            { "role": "user", "content": content },
        ])
        .to_string()
    };
    let (mut prompts, mut transcript) = (Vec::new(), String::new());
    for round in 1..=5 {
        let mut said = String::new();
        for debater in 1..=4 {
            let who = format!("agent-{debater}");
            prompts.push(prompt(&who, &transcript, "Answer the others and state your position."));
            write!(said, "Round {round}, {who}: {REPLY}\n\n")?;
        }
        transcript.push_str(&said);
    }
    prompts.push(prompt("agent-5", &transcript, "You are the judge. Give the final answer."));
    Ok(figures([("billed", billed(&prompts))]))
}
