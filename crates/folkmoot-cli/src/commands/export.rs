use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

use anyhow::Result;
use clap::Args;
use folkmoot_runtime::export::Export as Lines;
use serde_json::json;

use super::new_file::NewFile;
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Writes the record of a run as one file, which can be shown, verified and replayed anywhere.
///
/// The file is JSON Lines: the records with their hashes, so that any change is found. It therefore
/// holds them as they are, nothing masked: a record in which a key of this machine occurs is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot export last -o run.jsonl
  folkmoot verify run.jsonl")]
pub(crate) struct Export {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// The file to write; standard output unless given
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes over a file that is there
    #[arg(long, requires = "out")]
    force: bool,
    /// Exports a record although a key of this machine occurs in it
    #[arg(long)]
    with_secrets: bool,
}

impl Export {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let (engine, id) = app.engine_and_run(&self.run).await?;
        if self.out.is_none() && io::stdout().is_terminal() {
            let message = "an exported run is raw data and is not written to a terminal";
            return Err(Refusal::new("usage", message).help("name a file with -o").into());
        }
        let file = self.out.as_deref().map(|file| NewFile::begin(file, self.force)).transpose()?;
        let is_withheld = |text: &str| !self.with_secrets && app.holds_secret(text);
        let mut lines = engine.export(&id, is_withheld).await?;
        let Some(mut file) = file else {
            return to_stdout(&mut lines).await;
        };
        copy(&mut lines, &mut file).await?;
        let file = file.finish()?;
        let end = lines.end();
        if app.wants_json() {
            app.print_json(&json!({
                "run_id": id.as_str(), "file": file.display().to_string(), "records": end.seq,
                "hash": end.hash.to_string(), "ended": lines.is_ended(),
            }));
        } else {
            let unfinished = if lines.is_ended() { "" } else { "; the run has not ended" };
            let file = app.screen().line(&file.display().to_string());
            app.tell(&format!("run {id}: {} records exported to {file}{unfinished}", end.seq));
        }
        Ok(Exit::DONE)
    }
}

/// Not through the sinks of text: what is hashed must arrive as it is.
async fn to_stdout(lines: &mut Lines<'_>) -> Result<Exit> {
    match copy(lines, &mut io::stdout()).await {
        // A reader that went away is no failure.
        Err(error) if is_broken_pipe(&error) => Ok(Exit::DONE),
        copied => copied.map(|()| Exit::DONE),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

async fn copy(lines: &mut Lines<'_>, to: &mut impl Write) -> Result<()> {
    while let Some(page) = lines.next().await? {
        to.write_all(page.as_bytes())?;
    }
    Ok(to.flush()?)
}
