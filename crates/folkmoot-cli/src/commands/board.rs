use anyhow::Result;
use clap::{Args, Subcommand};
use folkmoot_core::{board::Post as Entry, mail::Party};
use folkmoot_runtime::{boards::Boards, told};
use serde_json::{Value, json};

use super::team::from_stdin_if_asked;
use crate::{
    app::{self, App},
    exit::{Exit, Refusal},
    terminal::shared,
};

/// Shows and fills boards: what people and agents leave for whoever looks, addressed to nobody.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot board post plans risk \"The parser has no limit.\"
  folkmoot board set plans owner ann --expect 0
  folkmoot board show plans --after 12")]
pub(crate) struct Board {
    #[command(subcommand)]
    action: Action,
    /// Who you are: the name of an agent, or your own [default: the user's name]
    #[arg(long = "as", global = true, value_name = "NAME")]
    me: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows what came after a change
    Show {
        /// The board
        board: String,
        /// The number of the last change that you know
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
        /// Shows entries of this topic only
        #[arg(long)]
        topic: Option<String>,
        /// The most entries to show
        #[arg(long, default_value_t = 100, value_name = "N")]
        limit: usize,
    },
    /// Adds an entry
    Post {
        /// The board
        board: String,
        /// What it is about
        topic: String,
        /// What it says; `-` reads it from standard input
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// What it refers to; may be given several times
        #[arg(long = "ref", value_name = "TEXT")]
        refs: Vec<String>,
    },
    /// Shows a cell
    Get {
        /// The board
        board: String,
        /// The cell
        key: String,
    },
    /// Sets a cell, if nobody has set it since you saw it
    Set {
        /// The board
        board: String,
        /// The cell
        key: String,
        /// What it is to hold: JSON, else a text
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// The version that you saw; 0 for a new cell
        #[arg(long, value_name = "N")]
        expect: u64,
    },
}

impl Board {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let boards = Boards::new(&app.engine()?, &app.owner()?);
        let by = Party { name: self.me.unwrap_or_else(app::user).into(), ..Party::default() };
        match self.action {
            Action::Show { board, after, topic, limit } => {
                let delta = boards.show(&board, after, topic.as_deref(), limit).await;
                let delta = delta.map_err(Refusal::from)?;
                if app.wants_json() {
                    app.print_json(&told::delta(&delta));
                } else {
                    app.print(&shared::page(&app.page(), &delta, app::now()));
                }
            }
            Action::Post { board, topic, text, refs } => {
                let (text, refs) = (from_stdin_if_asked(text)?.into(), refs.into_iter());
                let entry =
                    Entry { topic: topic.into(), text, refs: refs.map(Into::into).collect() };
                let seq = boards.post(&by, &board, entry).await.map_err(Refusal::from)?;
                tell(app, &json!({ "seq": seq }), &format!("entry {seq} is on board {board}"));
            }
            Action::Get { board, key } => {
                let (version, cell) = boards.get(&board, &key).await.map_err(Refusal::from)?;
                if app.wants_json() {
                    app.print_json(&json!({ "version": version, "cell": cell }));
                } else if let Some(cell) = cell {
                    app.print(&app.page().text(&shown(&cell.value)));
                } else {
                    app.tell(&format!("board {board} has no cell {key}"));
                }
            }
            Action::Set { board, key, value, expect } => {
                let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
                let version = boards.set(&by, &board, &key, &value, expect).await;
                let version = version.map_err(Refusal::from)?;
                tell(
                    app,
                    &json!({ "version": version }),
                    &format!("{key} is at version {version}"),
                );
            }
        }
        Ok(Exit::DONE)
    }
}

fn tell(app: &App, told: &Value, text: &str) {
    if app.wants_json() {
        app.print_json(told);
    } else {
        app.tell(text);
    }
}

/// A value as people read it: a text without its quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
