use std::slice;

use anyhow::Result;
use clap::Args;
use folkmoot_core::{run::Run, view};
use folkmoot_runtime::driver::Observer;

use super::drive::tell;
use crate::{
    app::App,
    exit::{Exit, Refusal},
    terminal::{plain::Detail, progress::Progress, stream},
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
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let (engine, id) = app.engine_and_run(&self.run).await?;
        let mut watcher = engine.watch(&id, self.after).await?;
        let loaded = engine.load(&id).await?;
        let last = loaded.run.seq();
        if self.after > last {
            let message = format!("run {id} has no event {}; its last is {last}", self.after);
            return Err(Refusal::new("unknown_event", message).into());
        }
        let mut run = Run::fold(loaded.records.iter().filter(|it| it.seq <= self.after));
        if loaded.run.ending().is_some() {
            let outcome = view::outcome(id.as_str(), &loaded.spec, &loaded.run, false);
            let status = outcome.status.as_str().replace('_', " ");
            let reason = outcome.reason.map(|it| format!(" ({it})")).unwrap_or_default();
            let behind = match self.after {
                0 => String::new(),
                after => format!("; what came behind event {after} of {last}:"),
            };
            app.tell(&format!("run {id} has ended: {status}{reason}{behind}"));
        } else if loaded.run.waits_for_person() {
            app.tell(&format!(
                "run {id} waits for a person; `folkmoot answer {id} …` goes on with it"
            ));
        } else if !loaded.is_alive() {
            app.tell(&format!("nobody drives run {id}; `folkmoot resume {id}` goes on with it"));
        }
        // Events are the output here: the JSON of a watch is the stream of them.
        let progress =
            (!app.wants_json()).then(|| Progress::stderr(app.screen(), Detail::Everything));
        // Nothing comes of a run that waits for a person, for days if need be.
        let is_over =
            |run: &Run| run.ending().is_some() || run.waits_for_person() && run.seq() >= last;
        while !is_over(&run) {
            let records = watcher.next().await?;
            for record in &records {
                run.apply(record);
                if progress.is_none() {
                    app.print(&stream::record(id.as_str(), record));
                    for told in view::notices(&loaded.spec, &run, slice::from_ref(record)) {
                        app.print(&stream::notice(id.as_str(), &told));
                    }
                }
            }
            if let Some(progress) = &progress {
                progress.recorded(&loaded.spec, &run, &records);
            }
        }
        let outcome = view::outcome(id.as_str(), &loaded.spec, &run, false);
        match progress {
            None => app.print(&stream::result(&outcome)),
            Some(progress) => {
                progress.finish();
                tell(&outcome, &loaded.spec.limits, app);
            }
        }
        Ok(outcome.status.into())
    }
}
