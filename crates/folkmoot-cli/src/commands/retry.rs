use std::{ffi::OsString, path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use folkmoot_core::key::Key;

use super::{
    drive::drive,
    orchestrate::Followed,
    team::{Team, from_stdin_if_asked},
    undo::Undo,
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Tries a run again: what was answered is kept, what failed or was refused is asked again.
///
/// The attempt is a run of its own, with the limits of a new one; the old record stays as it is.
/// With --from nothing else that failed is asked again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot retry last
  folkmoot retry last --prompt \"Answer in one paragraph.\"
  folkmoot retry last --from judge")]
pub(crate) struct Retry {
    /// The run: its id, the beginning of it, `last`, or an exported file
    run: OsString,
    /// Asks this call again, and all that follows from it
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Adds these words to what failed, or to the call of --from; `-` reads standard input
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The team file that sets the variables of its programs, if it has moved since
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    #[command(flatten)]
    undo: Undo,
}

impl Retry {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let prompt = self.prompt.map(words).transpose()?;
        let from = self.from.as_deref().map(Key::parse);
        let kept = app.kept(&self.run).await?;
        let origin = kept.engine.load(&kept.run).await?;
        let engine =
            Team::engine_for(app, kept.engine_to_go_on(app)?, &origin.spec, self.team.as_deref())?;
        let retry = folkmoot_core::replay::Retry { from, prompt };
        let followed = Followed::by(app, &engine, &origin).await?;
        let driver = engine.retry(&origin, retry).await?;
        self.undo.put_back(app, &origin, &driver).await?;
        match followed {
            Some(card) => card.drive(app, &engine, (&origin, self.from.as_deref()), driver).await,
            None => drive(driver, app).await,
        }
    }
}

fn words(given: String) -> Result<Arc<str>> {
    let words = from_stdin_if_asked(given)?;
    if words.trim().is_empty() {
        return Err(Refusal::new("empty_prompt", "--prompt adds nothing: its text is empty").into());
    }
    Ok(words.into())
}
