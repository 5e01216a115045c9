//! Wiring: from flags, config and environment to an engine and to where output goes.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use folkmoot_agents::{Agents, Archive, Inspector, Providers, Secrets, Starter, Workbench};
use folkmoot_runtime::{
    engine::{Engine, EngineError, RunId},
    export, refusals,
    store::SqliteStore,
    tools::NoTools,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    config::{self, Config},
    exit::{self, Refusal},
    terminal::{json, screen::Screen, sink::Sink, stream::Stream},
};

/// Flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The file in which runs are kept [default: in the user's state directory]
    #[arg(long, global = true, env = "FOLKMOOT_DB", hide_env_values = true, value_name = "FILE")]
    db: Option<PathBuf>,
    /// How results are printed on standard output
    #[arg(long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    output: Output,
    /// Short for --output json
    #[arg(long, global = true)]
    json: bool,
}

impl Global {
    /// The same flags, with results printed as a command's own flag says.
    pub(crate) fn printing(self, output: Option<Output>) -> Global {
        match output {
            Some(output) => Global { output, json: false, ..self },
            None => self,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// One event a line, the result last.
    StreamJson,
}

/// What every command needs: its global flags, and where output goes.
pub(crate) struct App {
    global: Global,
    /// The config, or what is wrong with it: for those commands to tell that need it.
    config: std::result::Result<Config, Refusal>,
    secrets: Secrets,
    out: Sink,
    err: Sink,
    /// Where results go that somebody in this process has asked for.
    taken: Option<Mutex<Taken>>,
}

/// What a command has come to, for whoever takes that in place of standard output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// What was told.
    pub(crate) value: Option<Value>,
    /// Why it was refused.
    pub(crate) refusal: Option<Refusal>,
}

impl App {
    /// The application of one command.
    pub(crate) fn new(global: Global) -> App {
        // The process may come to work in another folder.
        let db = global.db.map(|db| std::path::absolute(&db).unwrap_or(db));
        let global = Global { db, ..global };
        let config = Config::load();
        // The usual variables hold keys even if the config cannot be read.
        let secrets = config.as_ref().map_or_else(|_| Config::default().secrets(), Config::secrets);
        let (out, err) = (Sink::stdout(secrets.clone()), Sink::stderr(secrets.clone()));
        App { global, config, secrets, out, err, taken: None }
    }

    /// The same for a command whose result is taken by its caller: nothing is printed.
    pub(crate) fn taking(&self) -> App {
        let global = Global { output: Output::Json, ..self.global.clone() };
        App { taken: Some(Mutex::default()), ..App::new(global) }
    }

    /// What was told and would have been printed.
    pub(crate) fn taken(&self) -> Taken {
        let taken = self.taken.as_ref().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
        taken.map(|it| it.clone()).unwrap_or_default()
    }

    /// Hands a refusal to whoever takes results; gives whether somebody does.
    pub(crate) fn refuse(&self, refusal: &Refusal) -> bool {
        let Some(taken) = &self.taken else { return false };
        taken.lock().unwrap_or_else(PoisonError::into_inner).refusal = Some(refusal.clone());
        true
    }

    /// How results are to be printed.
    pub(crate) fn output(&self) -> Output {
        match self.global.output {
            Output::Text if self.global.json => Output::Json,
            output => output,
        }
    }

    /// Whether a program reads what is printed.
    pub(crate) fn wants_json(&self) -> bool {
        self.output() != Output::Text
    }

    /// What no output may show.
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    /// The config of this machine.
    pub(crate) fn config(&self) -> std::result::Result<&Config, Refusal> {
        self.config.as_ref().map_err(Clone::clone)
    }

    /// What people read on standard output.
    pub(crate) fn page(&self) -> Screen {
        Screen::stdout(self.secrets.clone())
    }

    /// What people read on standard error.
    pub(crate) fn screen(&self) -> Screen {
        Screen::stderr(self.secrets.clone())
    }

    /// Prints text that is safe already.
    pub(crate) fn print(&self, text: &str) {
        self.out.put(text);
    }

    /// Prints a value for programs; laid out for reading if a person looks on.
    pub(crate) fn print_json(&self, value: &impl Serialize) {
        if let Some(taken) = &self.taken {
            let value = serde_json::to_value(value).ok();
            taken.lock().unwrap_or_else(PoisonError::into_inner).value = value;
            return;
        }
        let is_read = self.page().is_live();
        self.out.put(&if is_read { json::page(value) } else { json::line(value) });
    }

    /// Tells people something of Folkmoot's own, on standard error.
    pub(crate) fn tell(&self, text: &str) {
        self.err.put(text);
    }

    /// A stream of the events of `run` on standard output.
    pub(crate) fn stream(&self, run: &RunId) -> Stream {
        Stream::new(run.as_str(), Sink::stdout(self.secrets.clone()))
    }

    /// Waits until what was printed is written, and tells if it could not be; nothing is printed behind
    /// it.
    pub(crate) fn printed(&self) -> std::io::Result<()> {
        self.out.end()
    }

    /// Whose mailboxes are meant: those of the config's `owner`, else the user's.
    pub(crate) fn owner(&self) -> std::result::Result<String, Refusal> {
        let owner = self.config()?.owner().map_or_else(user, str::to_owned);
        // It is a part of the names of streams.
        if owner.trim().is_empty() || owner.contains('/') {
            let message = format!("owner {owner:?} is no name: it is blank, or holds a slash");
            return Err(Refusal::new("bad_config", message));
        }
        Ok(owner)
    }

    /// Waits until everything is written, and tells what could not be.
    pub(crate) fn close(&self) -> std::io::Result<()> {
        self.err.close()?;
        exit::told_if_lost(self.out.close())
    }

    /// The file in which runs are kept.
    pub(crate) fn state_file(&self) -> Result<PathBuf> {
        self.global.db.clone().map_or_else(config::state_file, Ok)
    }

    /// The engine over the store that was named, and the models of the config.
    pub(crate) fn engine(&self) -> Result<Engine> {
        let agents = Agents::new(self.config()?.providers());
        let agents = agents.with_environment(config::environment()).with_closed(self.closed()?);
        let store = SqliteStore::open(self.state_file()?);
        let store = store.map_err(|error| {
            Refusal::new("unusable_store", error.to_string()).help(refusals::ELSEWHERE)
        })?;
        let (store, tools) = (Arc::new(store), Arc::new(self.workbench()?));
        let engine = Engine::new(store, Arc::new(agents), tools, "folkmoot");
        let gates = Arc::new(Inspector::new(config::environment()));
        let controllers = Arc::new(Starter::new(config::environment()));
        let engine = engine.with_gates(gates).with_controllers(controllers);
        let engine = engine.with_mail(&self.owner()?).keeping(&self.secrets);
        Ok(engine.with_snapshots(Arc::new(self.archive()?)))
    }

    /// Where the files of workspaces are kept: beside the file in which runs are kept.
    pub(crate) fn archive(&self) -> Result<Archive> {
        let path = config::variable("PATH").unwrap_or_default();
        Ok(Archive::new(self.beside("-files")?, &path))
    }

    /// The file in which the tokens of the server are kept.
    pub(crate) fn token_file(&self) -> Result<PathBuf> {
        self.beside("-tokens")
    }

    /// The path of the state file with this end.
    fn beside(&self, end: &str) -> Result<PathBuf> {
        let mut path = self.state_file()?.into_os_string();
        path.push(end);
        Ok(std::path::absolute(PathBuf::from(path))?)
    }

    /// The tools of this machine, which keep their hands off the file in which runs are kept.
    fn workbench(&self) -> Result<Workbench> {
        let reach = self.config()?.reach();
        Ok(Workbench::new(config::environment(), self.closed()?, reach))
    }

    /// The file in which runs are kept, and what is kept beside it.
    fn closed(&self) -> Result<Vec<PathBuf>> {
        let ends = ["", "-wal", "-shm", "-journal", "-files", "-tokens"];
        ends.into_iter().map(|end| self.beside(end)).collect()
    }

    /// Whether a secret of this machine occurs in `text`.
    pub(crate) fn holds_secret(&self, text: &str) -> bool {
        matches!(self.secrets.mask(text), Cow::Owned(_))
    }

    /// The record that is meant by `given`: that of a run in the store, or an exported file.
    ///
    /// A file is meant by what has a folder in it, ends in `.jsonl` or is no text, and by the name of a
    /// file that is there if no run is meant by it.
    pub(crate) async fn kept(&self, given: &OsStr) -> Result<Kept> {
        let path = Path::new(given);
        let Some(given) = given.to_str().filter(|given| !is_file_name(given)) else {
            return Kept::read(path).await;
        };
        let engine = self.engine()?;
        match engine.find(given).await {
            Err(EngineError::NoSuchRun(_)) if path.is_file() => Kept::read(path).await,
            found => Ok(Kept { engine, run: found?, is_file: false }),
        }
    }

    /// The engine, and the run in its store that is meant by `given`.
    pub(crate) async fn engine_and_run(&self, given: &str) -> Result<(Engine, RunId)> {
        if is_file_name(given) {
            let help = "a file can be shown, reported, verified, replayed, forked and tried again";
            let message = format!("{given} is a file, not a run that can go on");
            return Err(Refusal::new("not_a_run", message).help(help).into());
        }
        let engine = self.engine()?;
        let run = engine.find(given).await?;
        Ok((engine, run))
    }
}

/// Whether `given` is a path by its form; no id of a run is.
fn is_file_name(given: &str) -> bool {
    given.contains(std::path::is_separator)
        || Path::new(given).extension().is_some_and(|it| it.eq_ignore_ascii_case("jsonl"))
}

/// Where a record is kept, and which it is.
pub(crate) struct Kept {
    /// The engine over the store, or over the file alone.
    pub(crate) engine: Engine,
    /// The run.
    pub(crate) run: RunId,
    is_file: bool,
}

impl Kept {
    /// Reads an exported file. Nobody can be asked from it.
    async fn read(path: &Path) -> Result<Kept> {
        let (store, run) = export::read(path).await?;
        let nobody = Arc::new(Agents::new(Providers::new(&BTreeMap::new(), &|_| None)));
        let engine = Engine::new(Arc::new(store), nobody, Arc::new(NoTools), "folkmoot");
        Ok(Kept { engine, run, is_file: true })
    }

    /// The engine in which what goes on from the record is kept.
    pub(crate) fn engine_to_go_on(self, app: &App) -> Result<Engine> {
        if self.is_file { app.engine() } else { Ok(self.engine) }
    }
}

/// What this user is called.
pub(crate) fn user() -> String {
    let names = ["USER", "LOGNAME", "USERNAME"].into_iter();
    let name = names.filter_map(config::variable).find(|name| !name.trim().is_empty());
    name.unwrap_or_else(|| "user".to_owned())
}

/// The wall clock, in microseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
