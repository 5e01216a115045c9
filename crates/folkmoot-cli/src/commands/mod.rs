//! The commands. One file each, all shaped alike: the arguments, and `run`.

mod agents;
mod broadcast;
mod cancel;
mod check;
mod completions;
mod dispatch;
mod drive;
mod fork;
mod init;
mod models;
mod replay;
mod report;
mod resume;
mod run;
mod runs;
mod schema;
mod show;
mod simulate;
mod targets;
mod team;
mod verify;
mod watch;

use anyhow::Result;
use clap::Subcommand;

use crate::{exit::Exit, world::Global};

/// What can be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Check(check::Check),
    Simulate(simulate::Simulate),
    Dispatch(dispatch::Dispatch),
    Broadcast(broadcast::Broadcast),
    Runs(runs::Runs),
    Show(show::Show),
    Watch(watch::Watch),
    Report(report::Report),
    Resume(resume::Resume),
    Cancel(cancel::Cancel),
    Fork(fork::Fork),
    Replay(replay::Replay),
    Verify(verify::Verify),
    Init(init::Init),
    Agents(agents::Agents),
    Models(models::Models),
    Schema(schema::Schema),
    Completions(completions::Completions),
}

impl Command {
    /// Carries the command out.
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        match self {
            Command::Run(it) => it.run(global).await,
            Command::Check(it) => it.run(global),
            Command::Simulate(it) => it.run(global).await,
            Command::Dispatch(it) => it.run(global).await,
            Command::Broadcast(it) => it.run(global).await,
            Command::Runs(it) => it.run(global).await,
            Command::Show(it) => it.run(global).await,
            Command::Watch(it) => it.run(global).await,
            Command::Report(it) => it.run(global).await,
            Command::Resume(it) => it.run(global).await,
            Command::Cancel(it) => it.run(global).await,
            Command::Fork(it) => it.run(global).await,
            Command::Replay(it) => it.run(global).await,
            Command::Verify(it) => it.run(global).await,
            Command::Init(it) => it.run(),
            Command::Agents(it) => it.run(global),
            Command::Models(it) => it.run(global),
            Command::Schema(it) => it.run(),
            Command::Completions(it) => it.run(),
        }
    }
}
