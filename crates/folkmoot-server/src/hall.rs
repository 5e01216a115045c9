//! The runs of one server: they go on in the background, whoever waits for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use folkmoot_core::{
    call::Call,
    event::Record,
    key::Key,
    known::Entry,
    refusal::Refusal,
    request::{Form, Request},
    run::Run,
    spec::Spec,
    view,
};
use folkmoot_runtime::{
    backend::Delta,
    driver::{Driven, Driver, Observer},
    engine::{Engine, EngineError, RunId},
};
use serde_json::Value;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::office::{Office, Ready};

/// How many runs may wait for their turn to be driven.
const MOST_WAITING: usize = 64;

/// Who else is told of a run while it is driven.
pub(crate) type Follow = dyn Fn(&RunId) -> Arc<dyn Observer> + Send + Sync;

/// Drives runs, so many at once; the others wait in the order in which they came.
///
/// A run is on record before anybody is told that it has begun, also one that waits.
#[derive(Clone)]
pub struct Hall {
    office: Arc<dyn Office>,
    slots: Arc<Semaphore>,
    at_once: usize,
    follow: Option<Arc<Follow>>,
    /// Whether the next process is to go on with what this one leaves.
    is_owing: bool,
    /// Begins nothing more: what is under way is still answered.
    leave: CancellationToken,
    /// Lets go of all runs: they can be resumed.
    stop: CancellationToken,
    drives: TaskTracker,
    /// The runs that are driven or wait for that, by their ids.
    open: Arc<Mutex<BTreeMap<RunId, watch::Receiver<Stage>>>>,
}

/// How far a run has come.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Whether it is driven by now, not waiting for that any longer.
    pub is_driven: bool,
    /// Turns that are finished.
    pub turns: u64,
    /// How many there are at most, if that is known.
    pub ceiling: Option<u64>,
    /// Who speaks, or what else happens.
    pub now: Option<Arc<str>>,
    /// What came of it: its record, or why it could not go on.
    pub end: Option<Result<Arc<Value>, Refusal>>,
}

/// A run under way, for whoever waits for it. Dropping it ends the waiting, not the run.
#[derive(Clone)]
pub struct Underway {
    /// The run.
    pub id: RunId,
    stage: watch::Receiver<Stage>,
}

/// How many runs of a server stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many are driven.
    pub driven: usize,
    /// How many wait for that.
    pub waiting: usize,
}

/// What is driven: a run that was made, or one on record.
enum Drive {
    Made(Box<Driver>),
    Kept(Engine, RunId),
}

impl Underway {
    /// The record of the run, if it ends within that time.
    pub async fn ended(&mut self, wait: Duration) -> Option<Result<Arc<Value>, Refusal>> {
        let ended = timeout(wait, self.stage.wait_for(|stage| stage.end.is_some())).await;
        ended.ok()?.ok()?.end.clone()
    }

    /// How far it has come, again and again.
    pub fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.clone()
    }

    /// Whether it waits to be driven.
    pub fn is_waiting(&self) -> bool {
        let stage = self.stage.borrow();
        !stage.is_driven && stage.end.is_none()
    }
}

impl Hall {
    /// A hall in which so many runs are driven at once.
    pub fn new(office: Arc<dyn Office>, at_once: usize) -> Hall {
        Hall {
            office,
            slots: Arc::new(Semaphore::new(at_once)),
            at_once,
            follow: None,
            is_owing: false,
            leave: CancellationToken::new(),
            stop: CancellationToken::new(),
            drives: TaskTracker::new(),
            open: Arc::default(),
        }
    }

    /// The same hall, in which somebody else is told of each run too.
    #[must_use]
    pub(crate) fn followed(self, follow: Arc<Follow>) -> Hall {
        Hall { follow: Some(follow), ..self }
    }

    /// The same hall, of which the next process goes on with what this one leaves.
    #[must_use]
    pub fn owing(self) -> Hall {
        Hall { is_owing: true, ..self }
    }

    /// Who makes of requests what is to be run.
    pub fn office(&self) -> &dyn Office {
        &*self.office
    }

    /// How many runs are driven at once at most.
    pub fn at_once(&self) -> usize {
        self.at_once
    }

    /// Begins what is asked for.
    pub async fn begin(&self, request: &Request) -> Result<Underway, Refusal> {
        self.begin_as(RunId::random(), self.office.ready(request)?).await
    }

    /// Begins a run of that id.
    pub async fn begin_as(&self, id: RunId, ready: Ready) -> Result<Underway, Refusal> {
        let Ready { spec, engine, form, turns } = ready;
        let driver = engine.start_as(id, Arc::new(spec)).await?;
        self.drive(engine, driver, form, turns).await
    }

    /// Goes on with a run that nobody drives.
    pub async fn resume(&self, id: &RunId) -> Result<Underway, EngineRefusal> {
        let loaded = self.office.engine().load(id).await?;
        let engine = self.office.engine_for(&loaded)?;
        if let Some(by) = loaded.owner {
            return Err(EngineError::Owned { run: id.clone(), by: Box::new(by) }.into());
        }
        if loaded.run.ending().is_some() {
            return Err(EngineError::Ended(id.clone()).into());
        }
        let slot = self.admit()?;
        let drive = match slot {
            Some(_) => Drive::Made(Box::new(engine.resume(id).await?)),
            None => Drive::Kept(engine, id.clone()),
        };
        Ok(self.go(id.clone(), drive, slot, (Form::Unified, None)).await?)
    }

    /// Goes on with the runs that the process before this one has left.
    pub async fn resume_owed(&self) -> Result<Vec<RunId>, EngineError> {
        let engine = self.office.engine();
        let mut resumed = Vec::new();
        for id in engine.owed().await? {
            match self.resume(&id).await {
                Ok(_) => resumed.push(id),
                // It waits, and its turn comes at the next start.
                Err(EngineRefusal::Refused(refusal)) if refusal.code == "too_many_runs" => {}
                Err(_) => engine.settle(&id).await?,
            }
        }
        Ok(resumed)
    }

    /// The run, if it is driven here or waits for that.
    pub fn underway(&self, id: &RunId) -> Option<Underway> {
        Some(Underway { id: id.clone(), stage: self.open().get(id)?.clone() })
    }

    /// Does something beside the runs that is to be finished before the hall closes.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.drives.spawn(work)
    }

    /// How many runs stand how.
    pub fn load(&self) -> Load {
        let open = self.open();
        let driven = open.values().filter(|stage| stage.borrow().is_driven).count();
        Load { driven, waiting: open.len() - driven }
    }

    /// Lets go of all runs, so that they can be resumed: what is under way may be answered for that long.
    pub async fn close(&self, patience: Duration) {
        self.leave.cancel();
        self.drives.close();
        if timeout(patience, self.drives.wait()).await.is_err() {
            self.stop.cancel();
            self.drives.wait().await;
        }
    }

    /// A place to drive a run at once, if there is one; refuses it if too many wait already.
    fn admit(&self) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        if self.leave.is_cancelled() {
            return Err(leaving());
        }
        let Load { waiting, driven } = self.load();
        if waiting == 0
            && let Ok(slot) = self.slots.clone().try_acquire_owned()
        {
            return Ok(Some(slot));
        }
        if waiting < MOST_WAITING {
            return Ok(None);
        }
        let message = format!("{driven} runs are under way and {waiting} wait for that");
        Err(Refusal::new("too_many_runs", message).help("ask again when some of them have ended"))
    }

    /// Drives a run in the background, at once or when its turn comes; it is on record by then. `ceiling`
    /// is the most turns it takes.
    pub async fn drive(
        &self,
        engine: Engine,
        driver: Driver,
        form: Form,
        ceiling: Option<u64>,
    ) -> Result<Underway, Refusal> {
        let (id, slot) = (driver.id().clone(), self.admit()?);
        if self.is_owing {
            engine.owe(&id).await?;
        }
        let drive = match slot {
            Some(_) => Drive::Made(Box::new(driver)),
            None => Drive::Kept(engine, driver.enter().await?),
        };
        self.go(id, drive, slot, (form, ceiling)).await
    }

    async fn go(
        &self,
        id: RunId,
        drive: Drive,
        slot: Option<OwnedSemaphorePermit>,
        (form, ceiling): (Form, Option<u64>),
    ) -> Result<Underway, Refusal> {
        let (tell, mut stage) = watch::channel(Stage { ceiling, ..Stage::default() });
        self.open().insert(id.clone(), stage.clone());
        let (hall, run, waits) = (self.clone(), id.clone(), slot.is_none());
        self.drives.spawn(async move {
            let tell = Arc::new(tell);
            let end = hall.driven(&run, drive, slot, &tell, &form).await;
            // Whoever sees the end finds the place free.
            hall.open().remove(&run);
            tell.send_modify(|stage| stage.end = Some(end));
        });
        if !waits {
            let begun = stage.wait_for(|stage| stage.is_driven || stage.end.is_some()).await;
            if let Ok(Some(Err(refused))) = begun.map(|stage| stage.end.clone()) {
                return Err(refused);
            }
        }
        Ok(Underway { id, stage })
    }

    async fn driven(
        &self,
        id: &RunId,
        drive: Drive,
        slot: Option<OwnedSemaphorePermit>,
        tell: &Arc<watch::Sender<Stage>>,
        form: &Form,
    ) -> Result<Arc<Value>, Refusal> {
        let _slot = if let Some(slot) = slot {
            slot
        } else {
            tokio::select! {
                slot = self.slots.clone().acquire_owned() => slot.map_err(|_| leaving())?,
                () = self.leave.cancelled() => return Err(leaving()),
            }
        };
        let driver = match drive {
            Drive::Made(driver) => *driver,
            Drive::Kept(engine, id) => match engine.resume(&id).await {
                // It was cancelled while it waited.
                Err(EngineError::Ended(_)) => {
                    let loaded = engine.load(&id).await?;
                    self.settle(&id).await?;
                    let outcome = view::outcome(id.as_str(), &loaded.spec, &loaded.run, false);
                    return Ok(Arc::new(form.record(&outcome, &loaded.spec, &loaded.run)));
                }
                resumed => resumed?,
            },
        };
        let others = self.follow.as_ref().map(|follow| follow(id));
        let observer = Arc::new(Teller { stage: tell.clone(), others });
        let driver = driver.leaving(self.leave.clone());
        let Driven { id, spec, run } = driver.drive(observer, self.stop.clone()).await?;
        if run.ending().is_some() || run.waits_for_person() {
            self.settle(&id).await?;
        }
        let outcome = view::outcome(id.as_str(), &spec, &run, false);
        Ok(Arc::new(form.record(&outcome, &spec, &run)))
    }

    async fn settle(&self, id: &RunId) -> Result<(), EngineError> {
        if self.is_owing { self.office.engine().settle(id).await } else { Ok(()) }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<RunId, watch::Receiver<Stage>>> {
        // Every change of the map is a single step, so a panic elsewhere leaves it whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn leaving() -> Refusal {
    Refusal::new("server_ends", "the server ends").help("the next one goes on with its runs")
}

/// Why a run cannot go on: the engine's own reason, or the office's.
#[derive(Debug)]
pub enum EngineRefusal {
    /// The engine says no.
    Engine(EngineError),
    /// Its team cannot be had any longer.
    Refused(Refusal),
}

impl From<EngineError> for EngineRefusal {
    fn from(error: EngineError) -> EngineRefusal {
        EngineRefusal::Engine(error)
    }
}

impl From<Refusal> for EngineRefusal {
    fn from(refusal: Refusal) -> EngineRefusal {
        EngineRefusal::Refused(refusal)
    }
}

impl From<EngineRefusal> for Refusal {
    fn from(refused: EngineRefusal) -> Refusal {
        match refused {
            EngineRefusal::Engine(error) => error.into(),
            EngineRefusal::Refused(refusal) => refusal,
        }
    }
}

/// Tells whoever waits how far a run has come.
struct Teller {
    stage: Arc<watch::Sender<Stage>>,
    others: Option<Arc<dyn Observer>>,
}

impl Observer for Teller {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        if let Some(others) = &self.others {
            others.recorded(spec, run, records);
        }
        let is_turn = |entry: &Entry| matches!(entry.call, Call::Agent { .. });
        let calls = run.known().in_order();
        let turns = calls.iter().filter(|(_, it)| is_turn(it) && !it.is_open()).count() as u64;
        let speaks = calls.iter().rfind(|(_, it)| is_turn(it) && it.is_open());
        let now = speaks.map(|(_, entry)| spec.team.full_name(entry.call.agent()).into());
        if records.is_empty() {
            return;
        }
        self.stage.send_if_modified(|stage| {
            let is_new = !stage.is_driven || stage.turns != turns || stage.now != now;
            (stage.is_driven, stage.turns, stage.now) = (true, turns.max(stage.turns), now);
            is_new
        });
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        if let Some(others) = &self.others {
            others.delta(key, delta);
        }
    }
}
