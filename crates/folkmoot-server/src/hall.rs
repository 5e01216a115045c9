//! The runs of one server: they go on in the background, whoever waits for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
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
    engine::{EngineError, RunId},
};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::office::{Office, Ready};

/// How many runs may wait for their turn to be driven.
const MOST_WAITING: usize = 64;

/// Drives runs, so many at once; the others wait in the order in which they came.
#[derive(Clone)]
pub struct Hall {
    office: Arc<dyn Office>,
    slots: Arc<Semaphore>,
    at_once: usize,
    /// Lets go of all runs: they can be resumed.
    leave: CancellationToken,
    drives: TaskTracker,
    /// The runs that are driven or wait for that, by their ids.
    open: Arc<Mutex<BTreeMap<RunId, watch::Receiver<Stage>>>>,
}

/// How far a run has come.
#[derive(Clone, Debug, Default)]
pub struct Stage {
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
}

impl Hall {
    /// A hall in which so many runs are driven at once.
    pub fn new(office: Arc<dyn Office>, at_once: usize) -> Hall {
        Hall {
            office,
            slots: Arc::new(Semaphore::new(at_once)),
            at_once,
            leave: CancellationToken::new(),
            drives: TaskTracker::new(),
            open: Arc::default(),
        }
    }

    /// Who makes of requests what is to be run.
    pub fn office(&self) -> &dyn Office {
        &*self.office
    }

    /// Begins what is asked for.
    pub async fn begin(&self, request: &Request) -> Result<Underway, Refusal> {
        let Ready { spec, engine, form, turns } = self.office.ready(request)?;
        self.admit()?;
        let driver = engine.start(Arc::new(spec)).await?;
        Ok(self.drive(driver, form, turns))
    }

    /// Goes on with a run that nobody drives.
    pub async fn resume(&self, id: &RunId) -> Result<Underway, EngineRefusal> {
        let loaded = self.office.engine().load(id).await?;
        let engine = self.office.engine_for(&loaded)?;
        self.admit()?;
        let driver = engine.resume(id).await?;
        Ok(self.drive(driver, Form::Unified, None))
    }

    /// The run, if it is driven here or waits for that.
    pub fn underway(&self, id: &RunId) -> Option<Underway> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Underway { id: id.clone(), stage: open.get(id)?.clone() })
    }

    /// Does something beside the runs that is to be finished before the hall closes.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.drives.spawn(work)
    }

    /// Lets go of all runs, so that they can be resumed, and waits until they are.
    pub async fn close(&self) {
        self.leave.cancel();
        self.drives.close();
        self.drives.wait().await;
    }

    /// Refuses a run if too many wait already.
    fn admit(&self) -> Result<(), Refusal> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).len();
        if open < self.at_once + MOST_WAITING && !self.leave.is_cancelled() {
            return Ok(());
        }
        let message = format!("{open} runs are under way or wait for that");
        Err(Refusal::new("too_many_runs", message).help("ask again when some of them have ended"))
    }

    /// Drives a run in the background.
    pub fn drive(&self, driver: Driver, form: Form, ceiling: Option<u64>) -> Underway {
        let id = driver.id().clone();
        let (tell, stage) = watch::channel(Stage { ceiling, ..Stage::default() });
        let tell = Arc::new(tell);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), stage.clone());
        let (hall, run) = (self.clone(), id.clone());
        self.drives.spawn(async move {
            let end = hall.driven(driver, &tell, &form).await;
            tell.send_modify(|stage| stage.end = Some(end));
            hall.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        });
        Underway { id, stage }
    }

    async fn driven(
        &self,
        driver: Driver,
        tell: &Arc<watch::Sender<Stage>>,
        form: &Form,
    ) -> Result<Arc<Value>, Refusal> {
        let leaving = || Refusal::new("server_ends", "the server ends; resume the run later");
        let slot = tokio::select! {
            slot = self.slots.acquire() => slot,
            () = self.leave.cancelled() => return Err(leaving()),
        };
        let _slot = slot.map_err(|_| leaving())?;
        let observer = Arc::new(Teller(tell.clone()));
        let Driven { id, spec, run } = driver.drive(observer, self.leave.clone()).await?;
        let outcome = view::outcome(id.as_str(), &spec, &run, false);
        Ok(Arc::new(form.record(&outcome, &spec, &run)))
    }
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
struct Teller(Arc<watch::Sender<Stage>>);

impl Observer for Teller {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        let is_turn = |entry: &Entry| matches!(entry.call, Call::Agent { .. });
        let calls = run.known().in_order();
        let turns = calls.iter().filter(|(_, it)| is_turn(it) && !it.is_open()).count() as u64;
        let speaks = calls.iter().rfind(|(_, it)| is_turn(it) && it.is_open());
        let now = speaks.map(|(_, entry)| spec.team.full_name(entry.call.agent()).into());
        if records.is_empty() {
            return;
        }
        self.0.send_if_modified(|stage| {
            let is_new = stage.turns != turns || stage.now != now;
            (stage.turns, stage.now) = (turns.max(stage.turns), now);
            is_new
        });
    }

    fn delta(&self, _: &Key, _: Delta<'_>) {}
}
