use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Cli, exit::Exit, terminal::stdout};

/// Prints completions for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "folkmoot", &mut script);
        stdout::text(&String::from_utf8(script)?);
        Ok(Exit::DONE)
    }
}
