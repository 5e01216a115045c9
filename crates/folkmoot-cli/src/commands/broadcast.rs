use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use folkmoot_core::request::{Kind, Request};
use serde_json::Map;

use super::{
    drive::carry_out,
    team::{Team, from_stdin_if_asked},
};
use crate::{app::App, exit::Exit};

/// Gives one task to many agents or models at once; nobody sees anybody.
#[derive(Debug, Args)]
pub(crate) struct Broadcast {
    /// Agents of --team, or provider/model, or aliases, separated by commas
    #[arg(value_name = "TARGETS")]
    targets: String,
    /// The task; `-` reads it from standard input
    prompt: String,
    /// The team file whose agents are meant
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    /// The most time a call may take: seconds, `30m`, or `none`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// Refuses to start unless the worst case is proved to fit the limits
    #[arg(long)]
    strict_budget: bool,
}

impl Broadcast {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let task = from_stdin_if_asked(self.prompt)?;
        let request = Request::new(Kind::Broadcast, Map::new())
            .with("targets", Some(self.targets))
            .with("task", Some(task))
            .with("timeout", self.timeout);
        let team = Team::asked(app, request.clone(), self.team)?.within_budget(self.strict_budget);
        carry_out(app, &request, team).await
    }
}
