//! Measures whole workloads beside a plain reference: `cargo bench -p folkmoot [-- WORKLOAD]`.
//!
//! Each workload runs in processes of its own, ours and the reference in turn, against one model
//! server in this process. What counts is the ratio within a pair: machines and their moods differ.
//! The page of benchmarks in `docs` tells what is measured.
#![expect(clippy::print_stdout, reason = "it measures and tells")]

mod bare;
mod figures;
mod ours;
mod server;
mod start;
mod table;
mod teams;

use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::{
    figures::{Figures, median},
    server::Server,
    table::{Goal, Row},
};

/// How often each workload is measured; the median counts.
const ROUNDS: usize = 5;

/// What a subject is given: where models answer after 50 ms.
type Subject = fn(&str) -> Result<Figures>;

/// A workload: two subjects that do the same, and what is read off them.
struct Workload {
    name: &'static str,
    ours: Subject,
    reference: Option<(&'static str, Subject)>,
    rows: &'static [Measured],
}

/// One row of the table.
struct Measured {
    title: &'static str,
    figure: &'static str,
    goal: Option<Goal>,
}

const fn row(title: &'static str, figure: &'static str, goal: Option<Goal>) -> Measured {
    Measured { title, figure, goal }
}

const CLIENT: &str = "bare client";
const SQLITE: &str = "bare SQLite";

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "pipeline-null",
        ours: ours::pipelines_in_turn,
        reference: Some((SQLITE, bare::commits_of_pipelines)),
        rows: &[
            row("pipeline of 4, null, one after the other: CPU ms a run", "cpu_ms", None),
            row("the same, wall ms a run", "wall_ms", None),
        ],
    },
    Workload {
        name: "pipelines-null",
        ours: ours::pipelines_side_by_side,
        reference: Some((SQLITE, bare::commits_side_by_side)),
        rows: &[
            row("pipeline of 4, null, 256 at once: CPU ms a run", "cpu_ms", Some(Goal::Most(0.1))),
            row(
                "durable steps a second over 256 runs at once",
                "steps_per_s",
                Some(Goal::Least(10_000.0)),
            ),
        ],
    },
    Workload {
        name: "appends",
        ours: ours::appends,
        reference: Some((SQLITE, bare::commits_side_by_side)),
        rows: &[row("the store alone: appends a second, 256 streams at once", "steps_per_s", None)],
    },
    Workload {
        name: "pipeline",
        ours: ours::pipeline,
        reference: Some((CLIENT, bare::pipeline)),
        rows: &[row("pipeline of 4 at 50 ms: wall ÷ 200 ms", "of_ideal", Some(Goal::Most(1.04)))],
    },
    Workload {
        name: "fan-out",
        ours: ours::fan_out,
        reference: Some((CLIENT, bare::fan_out)),
        rows: &[
            row(
                "fan-out 1,000 at 50 ms, new connections: wall ms",
                "new_ms",
                Some(Goal::Most(300.0)),
            ),
            row("the same on warm connections: wall ms", "warm_ms", Some(Goal::Most(130.0))),
        ],
    },
    Workload {
        name: "chain-null",
        ours: ours::chain,
        reference: Some((SQLITE, bare::commits_of_chain)),
        rows: &[
            row("chain of 100 turns, null: CPU ms", "cpu_ms", Some(Goal::Most(10.0))),
            row("durable steps a second within one run", "steps_per_s", Some(Goal::Least(250.0))),
        ],
    },
    Workload {
        name: "relay-null",
        ours: ours::relay,
        reference: Some((SQLITE, bare::commits_of_chain)),
        rows: &[row("relay of 100 turns, null: CPU ms", "cpu_ms", Some(Goal::Most(10.0)))],
    },
    Workload {
        name: "debate-null",
        ours: ours::debates_in_turn,
        reference: Some((SQLITE, bare::commits_of_debates)),
        rows: &[row("debate 4 x 5 and judge, null: CPU ms", "cpu_ms", Some(Goal::Most(0.9)))],
    },
    Workload {
        name: "debate",
        ours: ours::debate,
        reference: Some((CLIENT, bare::debate)),
        rows: &[row("debate at 50 ms: wall ÷ 300 ms", "of_ideal", Some(Goal::Most(1.05)))],
    },
    Workload {
        name: "thousand",
        ours: ours::thousand_pipelines,
        reference: Some((CLIENT, bare::thousand_pipelines)),
        rows: &[
            row("1,000 pipelines at once at 50 ms: wall s", "wall_s", Some(Goal::Most(1.5))),
            row("the same: peak memory, MiB", "peak_mib", Some(Goal::Most(100.0))),
            row("the same: failed runs", "failed", Some(Goal::Most(0.0))),
        ],
    },
    Workload {
        name: "start",
        ours: start::ours,
        reference: Some((CLIENT, start::bare)),
        rows: &[row(
            "start of the process to its first request: ms",
            "first_request_ms",
            Some(Goal::Most(10.0)),
        )],
    },
    Workload {
        name: "bytes",
        ours: ours::debate_bytes,
        reference: Some(("whole transcripts", bare::debate_bytes)),
        rows: &[row(
            "debate: prompt bytes, cached ones at a tenth",
            "billed",
            Some(Goal::Most(25_000.0)),
        )],
    },
    Workload {
        name: "waiting",
        ours: ours::waiting_runs,
        reference: None,
        rows: &[
            row("10,000 runs that wait: peak memory, MiB", "peak_mib", None),
            row("the same: KiB a run", "kib_per_run", None),
        ],
    },
];

/// What a child process is asked for, before the workload, the subject and the server's address.
const CHILD: &str = "--child";

fn main() -> Result<()> {
    // Cargo passes flags of its own.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [CHILD, name, subject, url] => {
            println!("{}", serde_json::to_string(&be(name, subject, url)?)?);
            Ok(())
        }
        [start::ASK, url] => bare::first_request(url),
        [] => measure_all(""),
        [name] => measure_all(name),
        _ => anyhow::bail!("give the beginning of a workload's name, or nothing"),
    }
}

fn be(name: &str, subject: &str, url: &str) -> Result<Figures> {
    let workload = WORKLOADS.iter().find(|it| it.name == name).context("an unknown workload")?;
    match (subject, workload.reference) {
        ("reference", Some((_, reference))) => reference(url),
        _ => (workload.ours)(url),
    }
}

fn measure_all(prefix: &str) -> Result<()> {
    let server = Server::start();
    println!("{}", table::HEAD);
    for workload in WORKLOADS.iter().filter(|it| it.name.starts_with(prefix)) {
        for row in measure(workload, &server)? {
            println!("{row}");
        }
    }
    Ok(())
}

fn measure(workload: &Workload, server: &Server) -> Result<Vec<Row>> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(ask(workload.name, "ours", server)?);
        if workload.reference.is_some() {
            theirs.push(ask(workload.name, "reference", server)?);
        }
    }
    let row = |measured: &Measured| {
        let values = |all: &[Figures]| -> Vec<f64> {
            all.iter().filter_map(|it| it.get(measured.figure)).copied().collect()
        };
        let (ours, theirs) = (values(&ours), values(&theirs));
        let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        Row {
            title: measured.title,
            ours: median(ours),
            reference: workload.reference.map(|(name, _)| name),
            theirs: median(theirs),
            ratio: median(ratios),
            goal: measured.goal,
        }
    };
    Ok(workload.rows.iter().map(row).collect())
}

/// Has a subject run in a process of its own.
fn ask(name: &str, subject: &str, server: &Server) -> Result<Figures> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.args([CHILD, name, subject, &server.base_url()]).output()?;
    let shown = || String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{name}, {subject}: {}", shown());
    Ok(serde_json::from_slice(&output.stdout)?)
}
