//! Wiring: from flags and config to an engine.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::{Args, ValueEnum};
use folkmoot_agents::Agents;
use folkmoot_runtime::{
    engine::{Engine, RunId},
    store::SqliteStore,
    tools::NoTools,
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{self, Config},
    terminal::stderr,
};

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The file in which runs are kept [default: in the user's state directory]
    #[arg(long, global = true, env = "FOLKMOOT_DB", value_name = "FILE")]
    db: Option<PathBuf>,
    /// How results are printed on standard output
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
    /// Short for --output json
    #[arg(long, global = true)]
    json: bool,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// One event a line, the result last.
    StreamJson,
}

impl Global {
    /// How results are to be printed.
    pub(crate) fn output(&self) -> Output {
        if self.json && self.output == Output::Text { Output::Json } else { self.output }
    }

    /// Whether a program reads what is printed.
    pub(crate) fn wants_json(&self) -> bool {
        self.output() != Output::Text
    }

    /// The engine over the store that was named, and the models of the config.
    pub(crate) fn engine(&self) -> Result<Engine> {
        let agents = Agents::new(Config::load()?.providers());
        let file = self.db.clone().map_or_else(config::state_file, Ok)?;
        let store = Arc::new(SqliteStore::open(&file)?);
        Ok(Engine::new(store, Arc::new(agents), Arc::new(NoTools), "folkmoot"))
    }

    /// The engine, and the run that is meant by `given`.
    pub(crate) async fn engine_and_run(&self, given: &str) -> Result<(Engine, RunId)> {
        let engine = self.engine()?;
        let run = engine.find(given).await?;
        Ok((engine, run))
    }
}

/// A token that Ctrl-C cancels, so that a run is left resumable; a second Ctrl-C ends the process.
pub(crate) fn interrupted_by_ctrl_c() -> CancellationToken {
    let interrupt = CancellationToken::new();
    let token = interrupt.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        stderr::line("suspending; press Ctrl-C again to quit at once");
        token.cancel();
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
    interrupt
}
