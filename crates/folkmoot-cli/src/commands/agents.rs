use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::{
    check,
    team::{Origin, Team},
};
use crate::{
    exit::Exit,
    terminal::{stdout, tables},
    world::Global,
};

/// Lists the agents of a team and what answers for them.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// The team file
    team: PathBuf,
}

impl Agents {
    pub(crate) fn run(self, global: &Global) -> Result<Exit> {
        let team = Team::check(&Origin::File(self.team), None, &[])?;
        let agents: Vec<Value> = team.checked.team.agents.iter().map(check::agent).collect();
        if global.wants_json() {
            stdout::json(&Value::Array(agents));
        } else {
            team.tell_people();
            stdout::text(&tables::agents(&agents));
        }
        Ok(if team.checked.is_valid() { Exit::DONE } else { Exit::USAGE })
    }
}
