//! The commands. One file each, all shaped alike: the arguments, and `run`.

mod acp;
mod agents;
mod amend;
mod answer;
mod board;
mod broadcast;
mod budget;
mod cancel;
mod check;
mod collaborate;
mod completions;
mod dispatch;
mod doctor;
mod drive;
mod export;
mod fork;
mod graph;
mod init;
mod mail;
mod mcp;
mod models;
mod new_file;
mod orchestrate;
pub(crate) mod plan;
mod rehearsals;
mod replay;
mod report;
mod resume;
mod retry;
mod run;
mod runs;
mod schema;
mod serve;
mod show;
mod simulate;
mod team;
mod undo;
mod verify;
mod watch;

use std::sync::Arc;

use anyhow::Result;
use clap::Subcommand;

pub(crate) use self::{
    check::{label, report},
    orchestrate::asked,
    simulate::rehearsed,
    team::{Origin, Team},
    undo::Undo,
};

use crate::{
    app::{App, Output},
    exit::Exit,
};

/// What can be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Check(check::Check),
    Plan(plan::Plan),
    Simulate(simulate::Simulate),
    Graph(graph::Graph),
    Dispatch(dispatch::Dispatch),
    Broadcast(broadcast::Broadcast),
    Collaborate(collaborate::Collaborate),
    Orchestrate(Box<orchestrate::Orchestrate>),
    Serve(serve::Serve),
    Runs(runs::Runs),
    Show(show::Show),
    Watch(watch::Watch),
    Report(report::Report),
    Resume(resume::Resume),
    Answer(answer::Answer),
    Retry(retry::Retry),
    Amend(amend::Amend),
    Cancel(cancel::Cancel),
    Fork(fork::Fork),
    Replay(replay::Replay),
    Verify(verify::Verify),
    Export(export::Export),
    Mail(mail::Mail),
    Board(board::Board),
    Mcp(mcp::Mcp),
    Acp(acp::Acp),
    Init(init::Init),
    Agents(agents::Agents),
    Models(models::Models),
    Doctor(doctor::Doctor),
    Schema(schema::Schema),
    Completions(completions::Completions),
}

impl Command {
    /// How results are printed, if a flag of the command's own says so.
    pub(crate) fn output(&self) -> Option<Output> {
        if let Command::Check(it) = self { it.output() } else { None }
    }

    /// Carries the command out.
    pub(crate) async fn run(self, app: &Arc<App>) -> Result<Exit> {
        match self {
            Command::Run(it) => it.run(app).await,
            Command::Check(it) => it.run(app),
            Command::Plan(it) => it.run(app),
            Command::Simulate(it) => it.run(app).await,
            Command::Graph(it) => it.run(app).await,
            Command::Dispatch(it) => it.run(app).await,
            Command::Broadcast(it) => it.run(app).await,
            Command::Collaborate(it) => it.run(app).await,
            Command::Orchestrate(it) => it.run(app).await,
            Command::Serve(it) => it.run(app).await,
            Command::Runs(it) => it.run(app).await,
            Command::Show(it) => it.run(app).await,
            Command::Watch(it) => it.run(app).await,
            Command::Report(it) => it.run(app).await,
            Command::Resume(it) => it.run(app).await,
            Command::Answer(it) => it.run(app).await,
            Command::Retry(it) => it.run(app).await,
            Command::Amend(it) => it.run(app).await,
            Command::Cancel(it) => it.run(app).await,
            Command::Fork(it) => it.run(app).await,
            Command::Replay(it) => it.run(app).await,
            Command::Verify(it) => it.run(app).await,
            Command::Export(it) => it.run(app).await,
            Command::Mail(it) => it.run(app).await,
            Command::Board(it) => it.run(app).await,
            Command::Mcp(it) => it.run(app).await,
            Command::Acp(it) => it.run(app).await,
            Command::Init(it) => it.run(app),
            Command::Agents(it) => it.run(app),
            Command::Models(it) => it.run(app),
            Command::Doctor(it) => it.run(app).await,
            Command::Schema(it) => it.run(app),
            Command::Completions(it) => it.run(app),
        }
    }
}
