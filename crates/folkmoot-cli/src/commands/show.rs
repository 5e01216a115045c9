use std::ffi::OsString;

use anyhow::Result;
use clap::Args;
use folkmoot_core::view;
use folkmoot_runtime::{engine::Loaded, told};
use serde_json::{Value, json};

use crate::{
    app::{App, Kept},
    exit::Exit,
    terminal::show,
};

/// Shows a run: its result, every call with its request and reply, its events.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run: its id, the beginning of it, `last`, or an exported file
    run: OsString,
    /// Shows one call in full
    #[arg(long, value_name = "KEY")]
    call: Option<String>,
    /// Shows which texts a call had read, and who wrote them
    #[arg(long, value_name = "KEY", conflicts_with_all = ["call", "events"])]
    why: Option<String>,
    /// Shows the events too
    #[arg(long)]
    events: bool,
}

impl Show {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let Kept { engine, run: id, .. } = app.kept(&self.run).await?;
        let loaded = engine.load(&id).await?;
        if app.wants_json() {
            app.print_json(&self.as_json(&loaded)?);
        } else {
            app.print(&self.as_text(&loaded, app)?);
        }
        Ok(Exit::DONE)
    }

    fn as_json(&self, loaded: &Loaded) -> Result<Value> {
        let Loaded { id, spec, run, .. } = loaded;
        if let Some(key) = &self.why {
            let outcome = view::outcome(id.as_str(), spec, run, loaded.is_alive());
            return Ok(json!({ "run": outcome, "why": readings(loaded, key)? }));
        }
        let calls = match &self.call {
            None => view::calls(spec, run),
            Some(key) => vec![one_call(loaded, key)?],
        };
        let calls: Vec<Value> = calls.iter().map(told::call).collect();
        let outcome = view::outcome(id.as_str(), spec, run, loaded.is_alive());
        let mut shown = json!({ "run": outcome, "calls": calls });
        if self.events {
            shown["events"] = json!(loaded.records);
        }
        Ok(shown)
    }

    fn as_text(&self, loaded: &Loaded, app: &App) -> Result<String> {
        let Loaded { id, spec, run, .. } = loaded;
        if let Some(key) = &self.why {
            return Ok(show::readings(&app.page(), &readings(loaded, key)?));
        }
        if let Some(key) = &self.call {
            return Ok(show::call(&app.page(), &one_call(loaded, key)?));
        }
        let outcome = view::outcome(id.as_str(), spec, run, loaded.is_alive());
        let mut text = show::run(&app.page(), &outcome, &view::calls(spec, run));
        if self.events {
            let lines =
                loaded.records.iter().map(|record| app.page().line(&record.to_json()) + "\n");
            text.extend(lines);
        }
        Ok(text)
    }
}

fn one_call(loaded: &Loaded, key: &str) -> Result<view::CallView> {
    loaded.call(key)?;
    let mut calls = view::calls(&loaded.spec, &loaded.run).into_iter();
    Ok(calls.find(|call| call.key.as_str() == key).expect("every call is shown"))
}

fn readings(loaded: &Loaded, key: &str) -> Result<view::Readings> {
    loaded.call(key)?;
    Ok(view::readings(&loaded.spec, &loaded.run, key).expect("the call is there"))
}
