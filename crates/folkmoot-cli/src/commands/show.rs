use anyhow::Result;
use clap::Args;
use folkmoot_core::{event::Record, view};
use folkmoot_runtime::engine::{EngineError, Loaded};
use serde_json::{Value, json};

use crate::{
    exit::Exit,
    terminal::{moment, stdout, tables},
    world::Global,
};

/// Shows a run: its result, every call with its request and reply, its events.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// Shows one call in full
    #[arg(long, value_name = "KEY")]
    call: Option<String>,
    /// Shows the events too
    #[arg(long)]
    events: bool,
}

impl Show {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let (engine, id) = global.engine_and_run(&self.run).await?;
        let loaded = engine.load(&id).await?;
        if global.wants_json() {
            stdout::json(&self.as_json(&loaded)?);
        } else {
            stdout::text(&self.as_text(&loaded)?);
        }
        Ok(Exit::DONE)
    }

    fn as_json(&self, loaded: &Loaded) -> Result<Value> {
        let Loaded { id, spec, run, .. } = loaded;
        let calls = match &self.call {
            None => view::calls(spec, run),
            Some(key) => vec![one_call(loaded, key)?],
        };
        let calls: Vec<Value> = calls.iter().map(|call| moment::readable(json!(call))).collect();
        let outcome = view::outcome(id.as_str(), spec, run, loaded.is_alive());
        let mut shown = json!({ "run": outcome, "calls": calls });
        if self.events {
            shown["events"] = loaded.records.iter().map(event).collect();
        }
        Ok(shown)
    }

    fn as_text(&self, loaded: &Loaded) -> Result<String> {
        let Loaded { id, spec, run, .. } = loaded;
        if let Some(key) = &self.call {
            return Ok(tables::call(&one_call(loaded, key)?));
        }
        let outcome = view::outcome(id.as_str(), spec, run, loaded.is_alive());
        let mut text = tables::run(&outcome, &view::calls(spec, run));
        if self.events {
            let lines = loaded.records.iter().map(|record| event(record).to_string() + "\n");
            text.extend(lines);
        }
        Ok(text)
    }
}

fn one_call(loaded: &Loaded, key: &str) -> Result<view::CallView> {
    let calls = view::calls(&loaded.spec, &loaded.run);
    let call = calls.into_iter().find(|call| call.key.as_str() == key);
    let no_such_call = || EngineError::NoSuchCall { run: loaded.id.clone(), key: key.to_owned() };
    Ok(call.ok_or_else(no_such_call)?)
}

fn event(record: &Record) -> Value {
    json!(record)
}
