use std::{sync::Arc, time::Duration};

use anyhow::Result;
use clap::Args;
use folkmoot_agents::end_orphans;
use folkmoot_core::team::Sandbox;
use folkmoot_server::{Hall, mcp::Server};

use super::drive::Signals;
use crate::{
    app::App,
    exit::{Exit, Refusal},
    office::Local,
};

/// Serves Folkmoot's tools to another agent, by the Model Context Protocol on standard input and output.
///
/// The folder that it is started in is the workspace: teams are named by their paths there, and agents
/// work there. When the client closes standard input, runs under way are let go of: `folkmoot resume`
/// goes on with them.
#[derive(Debug, Args)]
#[command(after_help = "Example, for an agent that reads .mcp.json:
  {\"mcpServers\": {\"folkmoot\": {\"command\": \"folkmoot\", \"args\": [\"mcp\"]}}}")]
pub(crate) struct Mcp {
    /// What the caller is called in mailboxes, on boards and on cards
    #[arg(long = "as", value_name = "NAME", default_value = "user")]
    me: String,
    /// What agents may do at most, whatever is asked for: read-only, write or full
    #[arg(long, value_name = "LEVEL", default_value = "write", allow_hyphen_values = true)]
    sandbox: String,
    /// How many runs are driven at once; more wait for their turn
    #[arg(long, value_name = "N", default_value_t = 4)]
    max_runs: usize,
}

impl Mcp {
    pub(crate) async fn run(self, app: &Arc<App>) -> Result<Exit> {
        let level: Option<Sandbox> = serde_json::from_value(self.sandbox.as_str().into()).ok();
        let Some(level) = level else {
            let message = format!("sandbox is {:?}, not read-only, write, full", self.sandbox);
            let allowed = ["read-only", "write", "full"].map(str::to_owned).to_vec();
            let refusal = Refusal::new("invalid_sandbox", message);
            return Err(Refusal { allowed, ..refusal }.into());
        };
        let mut signals = Signals::listen()?;
        let office = Local::new(app.clone(), level, &std::env::current_dir()?)?;
        end_orphans().await;
        let hall = Hall::new(Arc::new(office), self.max_runs.max(1));
        let served = tokio::select! {
            served = Server::new(hall.clone(), &self.me).serve() => served,
            () = signals.next() => Ok(()),
            () = orphaned() => Ok(()),
        };
        hall.close(Duration::ZERO).await;
        match served {
            Ok(()) => Ok(Exit::DONE),
            Err(why) => {
                app.tell(&format!("error: the client does not speak the protocol: {why}"));
                Ok(Exit::FAILED)
            }
        }
    }
}

/// Waits until whoever has started this process is gone.
#[cfg(unix)]
async fn orphaned() {
    let parent = rustix::process::getppid();
    let mut looks = tokio::time::interval(std::time::Duration::from_secs(1));
    while rustix::process::getppid() == parent {
        looks.tick().await;
    }
}

/// Waits until standard input tells that whoever has started this process is gone.
#[cfg(windows)]
async fn orphaned() {
    std::future::pending().await
}
