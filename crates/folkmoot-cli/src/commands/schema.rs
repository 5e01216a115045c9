use anyhow::Result;
use clap::Args;
use folkmoot_core::file;

use crate::{app::App, exit::Exit};

/// Prints the JSON Schema of team files, for editors.
#[derive(Debug, Args)]
#[command(after_help = "Editors with the YAML language server take it from a first line such as
  # yaml-language-server: $schema=./team.schema.json")]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        app.print_json(&file::schema(&file::team::TEAM));
        Ok(Exit::DONE)
    }
}
