use anyhow::Result;
use clap::Args;
use folkmoot_core::{event::Event, run::Run, view};

use crate::{
    exit::Exit,
    terminal::{self, Watching},
    world::{Global, Output},
};

/// Follows a run, whoever drives it, until it ends.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// Begins behind this event
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    after: u64,
}

impl Watch {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit> {
        let (engine, id) = global.engine_and_run(&self.run).await?;
        let mut watcher = engine.watch(&id, self.after).await?;
        let loaded = engine.load(&id).await?;
        // Events are the output here: the JSON of a watch is the stream of them.
        let output = if global.wants_json() { Output::StreamJson } else { Output::Text };
        let watching = Watching::begin(output, &id, &loaded.spec);
        let mut run = Run::fold(loaded.records.iter().filter(|it| it.seq <= self.after));
        while run.ending().is_none() {
            let records = watcher.next().await?;
            records.iter().for_each(|record| run.apply(record));
            watching.observer().recorded(&loaded.spec, &run, &records);
            if records.iter().any(|record| matches!(record.event, Event::Ended { .. })) {
                break;
            }
        }
        watching.end();
        let outcome = view::outcome(id.as_str(), &loaded.spec, &run, false);
        terminal::result::tell(&outcome, output);
        Ok(outcome.status.into())
    }
}
