use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// What `init` writes: it runs as it stands, offline.
const TEAM: &str = include_str!("../../../../examples/team.yaml");

/// Writes a team file to begin with.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The file to write
    #[arg(default_value = "team.yaml")]
    file: PathBuf,
}

impl Init {
    pub(crate) fn run(self, app: &App) -> Result<Exit> {
        write_new(&self.file, TEAM)?;
        let file = app.screen().line(&self.file.to_string_lossy());
        app.tell(&format!("wrote {file}; try: folkmoot run {file} \"your task\""));
        Ok(Exit::DONE)
    }
}

/// Writes a file that is not there yet.
fn write_new(file: &Path, text: &str) -> Result<()> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    match opened {
        Ok(mut opened) => opened
            .write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let message = format!("{} exists already", file.display());
            Err(Refusal::new("file_exists", message).help("name another file").into())
        }
        Err(error) => Err(error).with_context(|| format!("cannot write {}", file.display())),
    }
}
