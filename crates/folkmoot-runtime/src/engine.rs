//! The whole service: every command and every server verb is one external event or one query.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use folkmoot_core::{
    check::Environment,
    event::{Event, Record, Unreadable},
    extension::Registry,
    key::Key,
    known::Entry,
    log::{self, Unsound},
    names,
    replay::{self, Divergence, Retry},
    run::Run,
    spec::Spec,
    team::AgentId,
    time::Time,
};
use thiserror::Error;

use crate::{
    backend::Backend,
    controllers::{Controllers, NoControllers},
    driver::{CLAIM, Driver, World},
    gates::{Gates, NoGates},
    secrets::Secrets,
    servers::{NoServers, Servers},
    snapshots::Snapshots,
    store::{Append, Claim, Head, Owner, Store, StoreError, StreamId, Watch},
    summary::Summary,
    tools::Toolbox,
};

/// Names a run: twelve letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Arc<str>);

/// Streams of runs begin with this.
const RUNS: &str = "run/";

/// How many records are read at a time.
pub(crate) const PAGE: u64 = 1_000;

/// How many records a watcher is given at a time.
const WATCHED: u64 = 100;

/// How many runs are named when a shortened id fits several, and how many calls for a wrong key.
const NAMED: usize = 5;

impl RunId {
    /// A new id that no other run has.
    pub fn random() -> RunId {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let random = uuid::Uuid::new_v4().as_u128();
        let digit = |at: u32| char::from(DIGITS[(random >> (at * 5)) as usize % 32]);
        // Bits that a version 4 id fixes lie above the ones used here.
        RunId((0..12).map(digit).collect::<String>().into())
    }

    /// Takes an id as it was printed.
    pub fn parse(text: &str) -> RunId {
        RunId(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn as_arc(&self) -> Arc<str> {
        self.0.clone()
    }

    pub(crate) fn stream(&self) -> StreamId {
        format!("{RUNS}{}", self.0).into()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why the engine could not do what it was asked.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There is no such run.
    #[error("there is no run {0}")]
    NoSuchRun(String),
    /// A shortened id fits several runs.
    #[error("run {given} could be {}", .fits.iter().map(RunId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// What was given.
        given: String,
        /// The runs it fits.
        fits: Vec<RunId>,
    },
    /// Another process drives the run.
    #[error("run {run} is being driven by {by}")]
    Owned {
        /// The run.
        run: RunId,
        /// Who drives it.
        by: Box<Owner>,
    },
    /// The run has ended.
    #[error("run {0} has ended already")]
    Ended(RunId),
    /// A record cannot be read.
    #[error("run {run}: record {seq} cannot be read: {source}")]
    Unreadable {
        /// The run.
        run: RunId,
        /// The record.
        seq: u64,
        /// Why not.
        source: Unreadable,
    },
    /// Its records are no log that a run could have written.
    #[error("run {run}: {source}")]
    Unsound {
        /// The run.
        run: RunId,
        /// Why not.
        source: Unsound,
    },
    /// There is no such call in the run.
    #[error("run {run} has no call {key}")]
    NoSuchCall {
        /// The run.
        run: RunId,
        /// What was given.
        key: String,
        /// The calls that may have been meant.
        near: Vec<Key>,
    },
    /// Everything that was asked was answered.
    #[error("run {run} has no call that failed, was refused or is open")]
    NothingToRetry {
        /// The run.
        run: RunId,
        /// The call that was asked last.
        last: Option<Key>,
    },
    /// A record holds what must not leave.
    #[error("run {run}: record {seq} holds a secret of this machine")]
    Withheld {
        /// The run.
        run: RunId,
        /// The record.
        seq: u64,
    },
    /// A fork does not take over the call whose answer it is to change.
    #[error(
        "call {key} of run {run} is not taken over: it was not answered by then, or is asked again"
    )]
    NotTakenOver {
        /// The run.
        run: RunId,
        /// The call.
        key: Key,
    },
    /// A replay decided otherwise than the record says.
    #[error("run {run}: {divergence}")]
    Diverged {
        /// The run.
        run: RunId,
        /// Where.
        #[source]
        divergence: Box<Divergence>,
    },
    /// What happens in a run cannot be recorded any longer, so it stops where the record does.
    #[error("run {run} stops at record {kept}: {source}")]
    Unkept {
        /// The run.
        run: RunId,
        /// The last record that was kept.
        kept: u64,
        /// Why the next one was not.
        #[source]
        source: StoreError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run as it was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The run.
    pub id: RunId,
    /// What it depends on.
    pub spec: Arc<Spec>,
    /// The fold of its log.
    pub run: Run,
    /// The log.
    pub records: Vec<Record>,
    /// Who drives it.
    pub owner: Option<Owner>,
}

impl Loaded {
    /// Whether somebody drives it.
    pub fn is_alive(&self) -> bool {
        self.owner.is_some()
    }

    /// It as it stands in a list.
    pub fn listed(&self) -> Listed {
        let summary = Some(Summary::of(&self.spec, &self.run));
        Listed { id: self.id.clone(), number: 0, summary, owner: self.owner.clone() }
    }

    /// The call named `key`.
    pub fn call(&self, key: &str) -> Result<(&Key, &Entry), EngineError> {
        let found = self.run.known().iter().find(|(name, _)| name.as_str() == key);
        found.ok_or_else(|| {
            let near = near(&self.run, key).into_iter().cloned().collect();
            EngineError::NoSuchCall { run: self.id.clone(), key: key.to_owned(), near }
        })
    }

    /// The call named `key`, or the first one of the turn of that name.
    fn turn(&self, key: &str) -> Result<(&Key, &Entry), EngineError> {
        let first = self.call(&format!("{key}/model-1"));
        self.call(key).or_else(|unknown| first.map_err(|_| unknown))
    }
}

/// The calls whose names `given` is a part of, else the one with the most like name.
fn near<'a>(run: &'a Run, given: &str) -> Vec<&'a Key> {
    let calls = run.known().in_order().into_iter().map(|(key, _)| key);
    let is_part = |key: &&Key| format!("/{key}/").contains(&format!("/{given}/"));
    let parts: Vec<&Key> = calls.clone().filter(is_part).take(NAMED).collect();
    if given.is_empty() || parts.is_empty() {
        let nearest = names::nearest(given, calls.clone().map(Key::as_str));
        return calls.filter(|key| Some(key.as_str()) == nearest).collect();
    }
    parts
}

/// A run in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The run.
    pub id: RunId,
    /// A cursor: the next page begins below it.
    pub number: u64,
    /// What is known of it, unless its log is damaged from the start.
    pub summary: Option<Summary>,
    /// Who drives it.
    pub owner: Option<Owner>,
}

/// What a fork changes.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The last record to take over; all of them unless given.
    pub at: Option<u64>,
    /// Another spec.
    pub spec: Option<Arc<Spec>>,
    /// Other answers.
    pub answers: Vec<(Key, Arc<str>)>,
    /// What is tried again, if the fork is another attempt at its origin.
    pub retry: Option<Retry>,
}

/// Starts, loads, lists, forks, watches and checks runs.
#[derive(Clone)]
pub struct Engine {
    world: Arc<World>,
}

impl Engine {
    /// An engine over a store and a world. `label` says what the process is, for people.
    pub fn new(
        store: Arc<dyn Store>,
        backend: Arc<dyn Backend>,
        tools: Arc<dyn Toolbox>,
        label: &str,
    ) -> Engine {
        let owner = Owner::this(label);
        let (gates, controllers) = (Arc::new(NoGates), Arc::new(NoControllers));
        let servers = Arc::new(NoServers);
        let world = World {
            owner,
            store,
            backend,
            tools,
            gates,
            controllers,
            snapshots: None,
            servers,
            environments: Arc::default(),
            secrets: Secrets::default(),
            registry: Arc::new(Registry::default()),
            mail_of: None,
            wall: Arc::new(system_wall),
        };
        Engine { world: Arc::new(world) }
    }

    /// The same engine for agents whose programs get these variables.
    #[must_use]
    pub fn with_environments(self, environments: BTreeMap<AgentId, Environment>) -> Engine {
        let environments = Arc::new(environments);
        let world = World { environments, ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine, which keeps these secrets too: nothing that comes in is recorded or shown with
    /// one of them (rules.md 14.6).
    #[must_use]
    pub fn keeping(self, secrets: &Secrets) -> Engine {
        let secrets = self.world.secrets.and(secrets);
        let world = World { secrets, ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine with somebody who looks at what edges of graphs require.
    #[must_use]
    pub fn with_gates(self, gates: Arc<dyn Gates>) -> Engine {
        let world = World { gates, ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine with somebody who starts controllers.
    #[must_use]
    pub fn with_controllers(self, controllers: Arc<dyn Controllers>) -> Engine {
        let world = World { controllers, ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine with somebody who saves the files of workspaces; without, nobody does.
    #[must_use]
    pub fn with_snapshots(self, snapshots: Arc<dyn Snapshots>) -> Engine {
        let world = World { snapshots: Some(snapshots), ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine with somebody who reaches MCP servers.
    #[must_use]
    pub fn with_servers(self, servers: Arc<dyn Servers>) -> Engine {
        let world = World { servers, ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine for runs whose agents have the mailboxes and boards of `owner`; without, they have none.
    #[must_use]
    pub fn with_mail(self, owner: &str) -> Engine {
        let world = World { mail_of: Some(owner.into()), ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine for runs whose conditions or programs may be code: a log knows them by name.
    #[must_use]
    pub fn with_registry(self, registry: Registry) -> Engine {
        let world = World { registry: Arc::new(registry), ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    /// The same engine by another wall clock, in microseconds since 1970.
    #[must_use]
    pub fn by_wall(self, wall: impl Fn() -> u64 + Send + Sync + 'static) -> Engine {
        let world = World { wall: Arc::new(wall), ..World::clone(&self.world) };
        Engine { world: Arc::new(world) }
    }

    pub(crate) fn of(world: Arc<World>) -> Engine {
        Engine { world }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.world.store
    }

    pub(crate) fn wall(&self) -> u64 {
        (self.world.wall)()
    }

    /// Makes a run of a checked spec; nothing happens before it is driven.
    pub async fn start(&self, spec: Arc<Spec>) -> Result<Driver, EngineError> {
        self.start_as(RunId::random(), spec).await
    }

    /// The same for a run that was noted elsewhere under this id, so that it is made once however often
    /// that is tried: a second one cannot be driven.
    pub async fn start_as(&self, id: RunId, spec: Arc<Spec>) -> Result<Driver, EngineError> {
        let started =
            Event::Started { spec: spec.clone(), wall: (self.world.wall)(), origin: None };
        self.begin_as(id, spec, vec![started]).await
    }

    async fn begin(&self, spec: Arc<Spec>, first: Vec<Event>) -> Result<Driver, EngineError> {
        self.begin_as(RunId::random(), spec, first).await
    }

    async fn begin_as(
        &self,
        id: RunId,
        spec: Arc<Spec>,
        first: Vec<Event>,
    ) -> Result<Driver, EngineError> {
        let claim = Claim::on_new(&id.stream());
        Driver::new(id, spec, Run::default(), self.world.clone(), claim, first).await
    }

    /// Takes up a run that was interrupted. One that has ended is refused as that, also while somebody
    /// holds it: who comes to cancel it holds it for a moment to find out.
    pub async fn resume(&self, id: &RunId) -> Result<Driver, EngineError> {
        let claim = match self.claim(id).await {
            Err(owned @ EngineError::Owned { .. }) => {
                let has_ended = self.load(id).await?.run.ending().is_some();
                return Err(if has_ended { EngineError::Ended(id.clone()) } else { owned });
            }
            claim => claim?,
        };
        match self.load(id).await {
            Ok(Loaded { spec, run, .. }) if run.ending().is_none() => {
                let bills = run.cut_off(&spec);
                let resumed = Event::Resumed { wall: (self.world.wall)() };
                let resumed = [resumed].into_iter().chain(bills).collect();
                Driver::new(id.clone(), spec, run, self.world.clone(), claim, resumed).await
            }
            refused => {
                self.store().release(claim).await?;
                refused.and(Err(EngineError::Ended(id.clone())))
            }
        }
    }

    /// Makes a run that goes on from another with something changed; only what differs is asked.
    pub async fn fork(&self, origin: &Loaded, change: Change) -> Result<Driver, EngineError> {
        let (spec, events) = forked(origin, change, (self.world.wall)())?;
        self.begin(spec, events).await
    }

    /// Makes another attempt at a run that nobody drives: what was answered is taken over and costs
    /// nothing again, what was not is asked again, under the limits of a new run. A call to begin
    /// from may be named by its turn.
    pub async fn retry(&self, origin: &Loaded, retry: Retry) -> Result<Driver, EngineError> {
        if let Some(owner) = origin.owner.as_ref().filter(|_| origin.run.ending().is_none()) {
            let (run, by) = (origin.id.clone(), Box::new(owner.clone()));
            return Err(EngineError::Owned { run, by });
        }
        let from = match &retry.from {
            Some(key) => Some(origin.turn(key.as_str())?.0.clone()),
            None => None,
        };
        let retry = Some(Retry { from, ..retry });
        let (spec, events) =
            forked(origin, Change { retry, ..Change::default() }, (self.world.wall)())?;
        let first = Run::default().step(spec.program(), &spec, events.clone(), Time::default());
        let decides_on = |it: &Record| it.event.is_decision() && it.event.key().is_some();
        if !first.records.iter().any(decides_on) {
            let last = origin.run.known().in_order().last().map(|(key, _)| (*key).clone());
            return Err(EngineError::NothingToRetry { run: origin.id.clone(), last });
        }
        self.begin(spec, events).await
    }

    /// Keeps a log that was made elsewhere, such as a rehearsal.
    pub async fn keep(&self, spec: &Spec, records: &[Record]) -> Result<RunId, EngineError> {
        let id = RunId::random();
        let bodies = records.iter().map(|record| record.to_json().into()).collect();
        let summary = Summary::of(spec, &Run::fold(records)).to_json();
        let append = Append::new(&id.stream(), 0, bodies).summary(summary);
        self.store().append(append).await?;
        Ok(id)
    }

    pub(crate) async fn claim(&self, id: &RunId) -> Result<Claim, EngineError> {
        let claim = self.store().claim(&id.stream(), self.world.owner.clone(), CLAIM).await;
        claim.map_err(|error| match error {
            StoreError::Held { by, .. } => EngineError::Owned { run: id.clone(), by },
            error => EngineError::Store(error),
        })
    }

    /// Loads a run: its whole log, checked against its hashes, and the fold of it.
    pub async fn load(&self, id: &RunId) -> Result<Loaded, EngineError> {
        self.load_until(id, u64::MAX).await
    }

    /// Loads a run as it stood at number `last`, its start at least; damage behind that does no harm.
    pub async fn load_until(&self, id: &RunId, last: u64) -> Result<Loaded, EngineError> {
        let entry = self.store().entry(&id.stream()).await?;
        let entry = entry.filter(|entry| entry.head.seq > 0);
        let entry = entry.ok_or_else(|| EngineError::NoSuchRun(id.to_string()))?;
        let mut records = self.records_until(id, 0, last.max(1)).await?;
        let (spec, run) = log::load_with(&records, &self.world.registry)
            .map_err(|source| EngineError::Unsound { run: id.clone(), source })?;
        // Whoever replays the records or forks from them needs the code as well.
        if let Some(Event::Started { spec: named, .. }) =
            records.first_mut().map(|it| &mut it.event)
        {
            *named = spec.clone();
        }
        Ok(Loaded { id: id.clone(), spec, run, records, owner: entry.owner })
    }

    /// The records of a run after number `after`.
    pub async fn records(&self, id: &RunId, after: u64) -> Result<Vec<Record>, EngineError> {
        self.records_until(id, after, u64::MAX).await
    }

    async fn records_until(
        &self,
        id: &RunId,
        after: u64,
        until: u64,
    ) -> Result<Vec<Record>, EngineError> {
        let mut records = Vec::new();
        let mut at = after;
        while at < until {
            let most = (until - at).min(PAGE);
            let rows = self.store().read(&id.stream(), at, most as usize).await?;
            let Some(last) = rows.last() else { break };
            at = last.seq;
            for row in rows {
                let record = Record::parse(&row.body);
                records.push(record.map_err(|source| unreadable(id, row.seq, source))?);
            }
        }
        Ok(records)
    }

    /// The run meant by `given`: its id, an unmistakable beginning of it, or `last`.
    pub async fn find(&self, given: &str) -> Result<RunId, EngineError> {
        let exact = RunId::parse(given);
        if self.store().entry(&exact.stream()).await?.is_some() {
            return Ok(exact);
        }
        if given.trim().is_empty() {
            return Err(EngineError::NoSuchRun("\"\"".to_owned()));
        }
        let prefix = if given == "last" { RUNS.to_owned() } else { format!("{RUNS}{given}") };
        let most = if given == "last" { 1 } else { NAMED };
        let found = self.store().list(&prefix, None, most).await?;
        let mut fits = found.iter().map(|entry| run_of(&entry.stream));
        match (fits.next(), fits.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(EngineError::NoSuchRun(given.to_owned())),
            (Some(one), Some(other)) => {
                let fits = [one, other].into_iter().chain(fits).collect();
                Err(EngineError::Ambiguous { given: given.to_owned(), fits })
            }
        }
    }

    /// Lists runs, newest first, from below the cursor `before` if one is given.
    pub async fn list(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Listed>, EngineError> {
        let entries = self.store().list(RUNS, before, limit).await?;
        let mut listed = Vec::new();
        for entry in entries {
            let id = run_of(&entry.stream);
            let kept = entry.summary.and_then(|text| serde_json::from_str(&text).ok());
            let summary = self.summary(&id, kept).await;
            listed.push(Listed { id, number: entry.number, summary, owner: entry.owner });
        }
        Ok(listed)
    }

    /// A run's summary: the one that is kept if the run has ended; else what its log has come to,
    /// or, where that cannot be read, what was last said of it.
    async fn summary(&self, id: &RunId, kept: Option<Summary>) -> Option<Summary> {
        match kept {
            Some(kept) if kept.ended_at.is_some() => Some(kept),
            kept => {
                let loaded = self.load(id).await.ok();
                loaded.map(|loaded| Summary::of(&loaded.spec, &loaded.run)).or(kept)
            }
        }
    }

    /// Follows a run's records, those after number `after` and all that come.
    pub async fn watch(&self, id: &RunId, after: u64) -> Result<Watcher, EngineError> {
        let watch = self.store().watch(&id.stream()).await?;
        Ok(Watcher { engine: self.clone(), id: id.clone(), after, watch })
    }

    /// Proves that a run's log is as it was written, and that a run could have written it: hashes can
    /// be made anew.
    pub async fn verify(&self, id: &RunId) -> Result<Head, EngineError> {
        let head = self.store().verify(&id.stream()).await?;
        self.load_until(id, head.seq).await?;
        Ok(head)
    }

    /// Runs a log again without a world; gives the run if every decision comes out as recorded.
    pub async fn replay(&self, id: &RunId) -> Result<Loaded, EngineError> {
        let loaded = self.load(id).await?;
        match replay::replay(&loaded.records) {
            Ok(_) => Ok(loaded),
            Err(divergence) => {
                let divergence = Box::new(divergence);
                Err(EngineError::Diverged { run: id.clone(), divergence })
            }
        }
    }
}

/// Follows the records of a run. It holds none of them, so who reads slowly costs nothing.
pub struct Watcher {
    engine: Engine,
    id: RunId,
    after: u64,
    watch: Watch,
}

impl Watcher {
    /// The next records, not all of them if they are many, waiting for them if there are none yet.
    pub async fn next(&mut self) -> Result<Vec<Record>, EngineError> {
        loop {
            let records =
                self.engine.records_until(&self.id, self.after, self.after.saturating_add(WATCHED));
            let records = records.await?;
            if let Some(last) = records.last() {
                self.after = last.seq;
                return Ok(records);
            }
            self.watch.rows(self.after).await;
        }
    }
}

/// The spec and the first events of a run that goes on from `origin`.
fn forked(
    origin: &Loaded,
    change: Change,
    wall: u64,
) -> Result<(Arc<Spec>, Vec<Event>), EngineError> {
    let change = replay::Change {
        at: change.at.unwrap_or_else(|| origin.run.seq()),
        spec: change.spec.unwrap_or_else(|| origin.spec.clone()),
        answers: change.answers,
        retry: change.retry,
    };
    let events = replay::fork(origin.id.as_str(), &origin.records, &change, wall);
    let is_taken_over = |key: &Key| {
        let inherited = |it: &Event| matches!(it, Event::Inherited { .. }) && it.key() == Some(key);
        events.iter().any(inherited)
    };
    if let Some((key, _)) = change.answers.iter().find(|(key, _)| !is_taken_over(key)) {
        return Err(EngineError::NotTakenOver { run: origin.id.clone(), key: key.clone() });
    }
    Ok((change.spec, events))
}

/// A record that this version cannot take.
pub(crate) fn unreadable(run: &RunId, seq: u64, source: Unreadable) -> EngineError {
    EngineError::Unreadable { run: run.clone(), seq, source }
}

fn run_of(stream: &StreamId) -> RunId {
    RunId::parse(stream.as_str().strip_prefix(RUNS).unwrap_or(stream.as_str()))
}

fn system_wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
