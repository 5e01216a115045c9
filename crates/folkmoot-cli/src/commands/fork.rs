use std::{ffi::OsString, path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::Args;
use folkmoot_core::{
    file::overrides::{Given, Override},
    key::Key,
};
use folkmoot_runtime::engine::{Change, Loaded};

use super::{
    drive::drive,
    orchestrate::Followed,
    team::{Origin, Team},
    undo::Undo,
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// Goes on from a recorded run with something changed; only what the change touches is asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot fork last --set agents.judge.model=openai/gpt-5
  folkmoot fork last --set collaboration.rounds=3
  folkmoot fork last --at round-2/alice
  folkmoot fork last --answer round-1/bob=\"Let us use SQLite.\"")]
pub(crate) struct Fork {
    /// The run: its id, the beginning of it, `last`, or an exported file
    run: OsString,
    /// Takes over what happened up to this event, or before this call
    #[arg(long, value_name = "SEQ|KEY")]
    at: Option<String>,
    /// Changes a value of the team file, for example agents.coder.model=openai/gpt-5
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Another team file in place of the one the run began with
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    /// Puts another answer in place of the one given
    #[arg(long, value_name = "KEY=TEXT")]
    answer: Vec<String>,
    #[command(flatten)]
    undo: Undo,
}

impl Fork {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let kept = app.kept(&self.run).await?;
        let at = self.at.as_deref().and_then(|at| at.parse().ok());
        let origin = kept.engine.load_until(&kept.run, at.unwrap_or(u64::MAX)).await?;
        let mut means = None;
        let spec = match self.spec(app, &origin)? {
            None => None,
            Some(team) => {
                means = Some(team.means());
                match team.spec(app) {
                    Ok(spec) => Some(Arc::new(spec)),
                    Err(exit) => return Ok(exit),
                }
            }
        };
        let answers = self.answer.iter().map(|answer| {
            let (key, text) = pair(answer, "--answer", "KEY=TEXT")?;
            Ok((Key::parse(key), text.into()))
        });
        let answers = answers.collect::<Result<_>>()?;
        let at = self.at.as_deref().map(|at| cut(&origin, at)).transpose()?;
        let engine = kept.engine_to_go_on(app)?;
        let engine = match means {
            Some(means) => means.given_to(engine),
            None => Team::engine_for(app, engine, &origin.spec, None)?,
        };
        let followed = Followed::by(app, &engine, &origin).await?;
        let within =
            |card: &Followed| Arc::new(card.within(spec.as_deref().unwrap_or(&origin.spec)));
        let spec = followed.as_ref().map(within).or(spec);
        let change = Change { at, spec, answers, retry: None };
        let driver = engine.fork(&origin, change).await?;
        self.undo.put_back(app, &origin, &driver).await?;
        match followed {
            Some(card) => card.drive(app, &engine, (&origin, self.at.as_deref()), driver).await,
            None => drive(driver, app).await,
        }
    }

    /// The team of the fork, if it is not that of the origin.
    fn spec(&self, app: &App, origin: &Loaded) -> Result<Option<Team>> {
        let changes: Result<Vec<Override>> = self.set.iter().map(|set| change(set)).collect();
        let changes = changes?;
        match (&self.team, &origin.spec.recipe) {
            (Some(file), _) => {
                Team::check(app, &Origin::File(file.clone()), Some(&origin.spec.task), &changes)
            }
            (None, _) if changes.is_empty() => return Ok(None),
            (None, Some(recipe)) => Team::check_again(app, recipe, &origin.spec, changes),
            (None, None) => {
                let message = format!("run {} keeps no team file: there was none", origin.id);
                return Err(Refusal::new("no_recipe", message).help("name one with --team").into());
            }
        }
        .map(Some)
    }
}

fn change(set: &str) -> Result<Override> {
    let (name, value) = pair(set, "--set", "PATH=VALUE")?;
    let is_json = value.starts_with(['[', '{']);
    let value = match serde_json::from_str(value) {
        Ok(value) if is_json => Given::Json(value),
        Ok(_) | Err(_) => Given::Text(value.to_owned()),
    };
    Ok(Override { name: name.to_owned(), value })
}

/// The last event to take over: `at` itself, or the one before the call `at` was asked.
fn cut(origin: &Loaded, at: &str) -> Result<u64> {
    if let Ok(seq) = at.parse() {
        let last = origin.run.seq();
        if seq > last {
            let message = format!("run {} has no event {seq}; its last is {last}", origin.id);
            return Err(Refusal::new("unknown_event", message).into());
        }
        return Ok(seq);
    }
    let (_, call) = origin.call(at)?;
    Ok(call.asked - 1)
}

fn pair<'a>(given: &'a str, flag: &str, form: &str) -> Result<(&'a str, &'a str)> {
    let refusal = || Refusal::new("bad_value", format!("{flag} must be {form}; got {given:?}"));
    Ok(given.split_once('=').ok_or_else(refusal)?)
}
