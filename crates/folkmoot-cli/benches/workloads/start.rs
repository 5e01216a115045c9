//! From the start of a process to its first request.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{
    figures::{Figures, figures, median},
    server::Server,
    teams::{MODEL, TASK},
};

/// Makes this program a bare client that asks once.
pub(crate) const ASK: &str = "--ask";

/// How many starts one figure is the median of.
const STARTS: usize = 9;

/// The command line with a team file, a config and a database that is there already.
pub(crate) fn ours(_url: &str) -> Result<Figures> {
    let (folder, server) = (tempfile::tempdir()?, Server::start());
    let config = format!("[providers.{MODEL}]\nbase_url = \"{}\"\n", server.base_url());
    std::fs::write(folder.path().join("folkmoot.toml"), config)?;
    let team = format!(
        "model: {MODEL}/{MODEL}\nagents: [{{ name: a, prompt: You are brief. }}]\n\
         collaboration: {{ strategy: broadcast, agents: [a] }}\n"
    );
    std::fs::write(folder.path().join("team.yaml"), team)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.args(["--db", "runs.db", "--json", "run", "team.yaml", TASK]);
    measure(&mut command, &folder, &server)
}

/// This program as a client and nothing else.
pub(crate) fn bare(_url: &str) -> Result<Figures> {
    let (folder, server) = (tempfile::tempdir()?, Server::start());
    let mut command = Command::new(std::env::current_exe()?);
    command.args([ASK, &server.base_url()]);
    measure(&mut command, &folder, &server)
}

fn measure(command: &mut Command, folder: &TempDir, server: &Server) -> Result<Figures> {
    command.current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path()).stdin(Stdio::null());
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let came = server.first_request().context("it asked nothing")?;
        times.push((came - start).as_secs_f64() * 1000.0);
    }
    Ok(figures([("first_request_ms", median(times).context("there are some")?)]))
}
