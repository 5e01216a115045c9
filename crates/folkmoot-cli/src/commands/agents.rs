use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::{
    check,
    team::{Origin, Team},
};
use crate::{app::App, exit::Exit, terminal::tables};

/// Lists the agents of a team and what answers for them.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// The team file
    team: PathBuf,
}

impl Agents {
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        let team = Team::check(app, &Origin::File(self.team), None, &[])?;
        let agents: Vec<Value> = team.checked.team.agents.iter().map(check::agent).collect();
        if app.wants_json() {
            app.print_json(&Value::Array(agents));
        } else {
            team.tell_people(app);
            app.print(&tables::agents(&app.page(), &team.checked.team));
        }
        Ok(if team.checked.is_valid() { Exit::DONE } else { Exit::USAGE })
    }
}
