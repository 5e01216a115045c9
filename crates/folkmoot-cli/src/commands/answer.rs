use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use folkmoot_runtime::{engine::EngineError, questions};

use super::{
    drive::{drive, tell},
    team::{Team, from_stdin_if_asked},
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Answers what a run asks a person, and goes on with it.
///
/// Where several questions are open, --key says which one is meant; the run goes on when all are
/// answered. Waiting for an answer takes neither time nor budget of the run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot answer last \"Use PostgreSQL.\"
  folkmoot answer last --key person/turn-2 - < answer.txt")]
pub(crate) struct Answer {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// The answer; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The question that is meant
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    key: Option<String>,
}

impl Answer {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let text = from_stdin_if_asked(self.text)?;
        if text.trim().is_empty() {
            return Err(Refusal::new("empty_answer", "the answer is empty").into());
        }
        let (engine, id) = app.engine_and_run(&self.run).await?;
        let loaded = engine.load(&id).await?;
        let key = questions::meant(loaded.run.known(), id.as_str(), self.key.as_deref())?;
        let engine = Team::engine_for(app, engine, &loaded.spec, None)?;
        if !engine.answer(&id, &key, text.into()).await? {
            return Err(questions::no_question(id.as_str()).into());
        }
        match engine.resume(&id).await {
            Ok(driver) => drive(driver, app).await,
            // Another process goes on with it, or it has ended meanwhile.
            Err(EngineError::Owned { .. } | EngineError::Ended(_)) => {
                let loaded = engine.load(&id).await?;
                let alive = loaded.is_alive();
                let outcome = view::outcome(id.as_str(), &loaded.spec, &loaded.run, alive);
                tell(&outcome, &loaded.spec.limits, app);
                Ok(if alive { Exit::DONE } else { outcome.status.into() })
            }
            Err(error) => Err(error.into()),
        }
    }
}
