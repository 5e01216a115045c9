use anyhow::Result;
use clap::Args;
use folkmoot_core::{key::Key, view};
use folkmoot_runtime::engine::EngineError;
use serde_json::json;

use super::team::from_stdin_if_asked;
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Puts another text in place of an answer of a run under way, whoever drives it.
///
/// What was made from the answer is asked again, at once, or when an interrupted run is resumed.
/// The answer that was given stays in the record.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot amend last round-1/alice \"Let us use SQLite.\"
  folkmoot amend last step-2/coder - < answer.txt")]
pub(crate) struct Amend {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// The call whose answer it is
    key: String,
    /// The text; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
}

impl Amend {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let text = from_stdin_if_asked(self.text)?;
        let (engine, id) = app.engine_and_run(&self.run).await?;
        let key = Key::parse(&self.key);
        let again = match engine.amend(&id, &key, text.into()).await {
            Err(EngineError::Ended(id)) => return Err(has_ended(id.as_str(), &self.key).into()),
            amended => amended?,
        };
        let loaded = engine.load(&id).await?;
        let (status, _) = view::status(&loaded.run, loaded.is_alive());
        if app.wants_json() {
            app.print_json(&json!({
                "run_id": id.as_str(), "key": key, "status": status, "asked_again": again,
            }));
            return Ok(Exit::DONE);
        }
        let screen = app.screen();
        let names: Vec<String> = again.iter().map(|key| screen.line(key.as_str())).collect();
        let again = match &names[..] {
            [] => "nothing was made from it yet".to_owned(),
            names => format!("asked again: {}", names.join(", ")),
        };
        let key = screen.line(&self.key);
        app.tell(&format!("run {id}: the answer of {key} is amended; {again}"));
        if loaded.run.ending().is_none() && !loaded.is_alive() {
            app.tell(&format!("nobody drives run {id}; `folkmoot resume {id}` goes on with it"));
        }
        Ok(Exit::DONE)
    }
}

fn has_ended(id: &str, key: &str) -> Refusal {
    let help = format!("`folkmoot fork {id} --answer {key}=TEXT` goes on from it with that answer");
    Refusal::new("run_has_ended", format!("run {id} has ended already")).help(help)
}
