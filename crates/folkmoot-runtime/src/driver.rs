//! The one loop that drives a run: events in, records appended, then acted on.

mod mail;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::Path,
    sync::Arc,
    time::Duration,
};

use folkmoot_core::{
    call::{Call, FailureKind, Fault},
    check::Environment,
    event::{Event, Files, Record},
    extension::Registry,
    key::Key,
    known::Entry,
    mcp,
    programs::controller::Briefing,
    render,
    run::{Command, Run, Stepped},
    spec::Spec,
    team::{Agent, AgentId, FIRST_TARGET},
    time::Time,
    tools::is_of_service,
    undo::Basis,
};
use tokio::{
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    backend::{Backend, Delta, Request, Response},
    controllers::{Controllers, Dialogue},
    engine::{Engine, EngineError, RunId},
    gates::{GateRequest, Gates},
    messaging::Desk,
    place::Place,
    secrets::Secrets,
    servers::{ListRequest, Reached, ServerRequest, Servers},
    snapshots::Snapshots,
    store::{Append, Claim, Owner, Post, Store, StoreError, Watch},
    summary::Summary,
    tools::{ToolRequest, Toolbox},
    veil::{self, Veil},
    wish::{Granted, Wish},
};

/// How long a claim on a run counts without a sign of life.
pub(crate) const CLAIM: Duration = Duration::from_secs(15);

/// How many answers one append may hold.
const BATCH: usize = 256;

/// How far the wall clock may move away from the active time between two looks before that is noted.
const GAP: Duration = Duration::from_secs(10);

/// What a driver needs of its surroundings.
#[derive(Clone)]
pub(crate) struct World {
    /// Who drives.
    pub(crate) owner: Owner,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) tools: Arc<dyn Toolbox>,
    pub(crate) gates: Arc<dyn Gates>,
    pub(crate) controllers: Arc<dyn Controllers>,
    pub(crate) snapshots: Option<Arc<dyn Snapshots>>,
    pub(crate) servers: Arc<dyn Servers>,
    /// The variables that the programs of agents get; the others get the least.
    pub(crate) environments: Arc<BTreeMap<AgentId, Environment>>,
    /// What nobody may see.
    pub(crate) secrets: Secrets,
    /// What the code is that logs know by name.
    pub(crate) registry: Arc<Registry>,
    /// Whose mailboxes and boards agents have, if they have any.
    pub(crate) mail_of: Option<Arc<str>>,
    /// The wall clock, in microseconds since 1970.
    pub(crate) wall: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// What is told about a run under way; none of it is read by the run.
pub trait Observer: Send + Sync {
    /// Records became durable; `run` has them folded in.
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]);

    /// Something comes in from a call under way.
    fn delta(&self, key: &Key, delta: Delta<'_>);
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn recorded(&self, _: &Spec, _: &Run, _: &[Record]) {}

    fn delta(&self, _: &Key, _: Delta<'_>) {}
}

/// A run that this process owns and can drive.
pub struct Driver {
    id: RunId,
    spec: Arc<Spec>,
    run: Run,
    world: Arc<World>,
    claim: Claim,
    watch: Watch,
    /// The number of the last record that is durable.
    kept: u64,
    /// The posts up to this number have been looked at.
    posted: u64,
    /// The events to begin with.
    first: Vec<Event>,
    agents: HashMap<AgentId, Arc<Agent>>,
    /// The controller, once it was told anything; it ends with the drive.
    dialogue: Option<Arc<dyn Dialogue>>,
    /// Its servers, once one was needed; those that were started end with the drive.
    reached: Option<Arc<dyn Reached>>,
    clock: Clock,
    /// What the active time and the wall clock were at the last look.
    looked: (Time, u64),
    wakes_at: Option<Time>,
    jobs: JoinSet<Finished>,
    under_way: HashMap<Key, AbortHandle>,
    /// The calls that begin once the files are saved, by the job that saves them.
    saving: HashMap<Id, Vec<Attempt>>,
    /// The calls that begin once it is recorded that the files were saved.
    saved: Vec<Attempt>,
    /// Whether anything was begun that may have changed files.
    may_have_changed_files: bool,
    /// The mailboxes and boards of the agents, if they have any.
    desk: Option<Arc<Desk>>,
    /// The mail that was lent to calls under way.
    lent: mail::Lendings,
    /// Nothing more is begun once this is cancelled.
    leaves: CancellationToken,
}

/// The active time of a run while this process drives it: the time that was recorded before, and a
/// monotonic clock since.
#[derive(Clone, Copy, Debug)]
struct Clock {
    base: Time,
    since: Instant,
}

impl Clock {
    fn now(&self) -> Time {
        let elapsed = self.since.elapsed().as_micros();
        Time(self.base.0.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX)))
    }

    fn when(&self, at: Time) -> Instant {
        self.since + Duration::from_micros(at.0.saturating_sub(self.base.0))
    }
}

/// A call, and which attempt at it.
type Attempt = (Key, u32);

/// What a job has come to.
enum Finished {
    /// A call was answered.
    Call { key: Key, attempt: u32, response: Response },
    /// The files were saved, before these calls.
    Files { before: Vec<Attempt>, files: Files },
}

/// How a drive ended.
#[derive(Debug)]
pub struct Driven {
    /// The run.
    pub id: RunId,
    /// What it depends on.
    pub spec: Arc<Spec>,
    /// How far it has come.
    pub run: Run,
}

impl Driver {
    pub(crate) async fn new(
        id: RunId,
        spec: Arc<Spec>,
        run: Run,
        world: Arc<World>,
        claim: Claim,
        first: Vec<Event>,
    ) -> Result<Driver, EngineError> {
        let watch = world.store.watch(&id.stream()).await?;
        let agents = spec.team.all().into_iter().map(|it| (it.id.clone(), Arc::new(it)));
        let desk = |owner: &Arc<str>| Arc::new(Desk::new(&Engine::of(world.clone()), owner));
        let desk = world.mail_of.as_ref().map(desk);
        Ok(Driver {
            agents: agents.collect(),
            dialogue: None,
            reached: None,
            clock: Clock { base: run.at(), since: Instant::now() },
            kept: run.seq(),
            looked: (run.at(), (world.wall)()),
            id,
            spec,
            run,
            world,
            claim,
            watch,
            posted: 0,
            first,
            wakes_at: None,
            jobs: JoinSet::new(),
            under_way: HashMap::new(),
            saving: HashMap::new(),
            saved: Vec::new(),
            may_have_changed_files: false,
            desk,
            lent: mail::Lendings::default(),
            leaves: CancellationToken::new(),
        })
    }

    /// The same drive, which begins nothing more once `leaves` is cancelled: the run is left, so that it
    /// can be resumed, when what is under way by then is answered.
    #[must_use]
    pub fn leaving(self, leaves: CancellationToken) -> Driver {
        Driver { leaves, ..self }
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// What the run depends on.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// What the files of the workspace are to be when it begins, if it goes on from `origin`.
    pub fn basis(&self, origin: &[Record]) -> Basis {
        Basis::of(origin, &self.first)
    }

    /// Records that the run is to begin, and no more: whoever resumes it lets it begin.
    pub async fn enter(mut self) -> Result<RunId, EngineError> {
        let records = self.run.note(std::mem::take(&mut self.first));
        let bodies = records.iter().map(|record| record.to_json().into()).collect();
        let summary = Summary::of(&self.spec, &self.run).to_json();
        let append = Append::new(&self.claim.stream, self.kept, bodies).summary(summary);
        self.world.store.append(append).await?;
        Ok(self.id)
    }

    /// Drives the run until it ends, until only a person could let it go on, or until `interrupt`: then
    /// it is left so that it can be resumed.
    ///
    /// Fails with [`EngineError::Unkept`] if the record cannot be kept; nothing that was not recorded is
    /// acted on.
    pub async fn drive(
        mut self,
        observer: Arc<dyn Observer>,
        interrupt: CancellationToken,
    ) -> Result<Driven, EngineError> {
        let driven = self.drive_on(&observer, &interrupt).await;
        let driven = driven.map_err(|source| self.unkept(source));
        self.jobs.shutdown().await;
        if let Some(reached) = self.reached.take() {
            reached.close().await;
        }
        if let Some((snapshots, folder)) = self.snapshots().filter(|_| self.may_have_changed_files)
        {
            snapshots.leave(self.id.as_str(), Path::new(&*folder)).await;
        }
        // What ends a run gives the claim back too. One that cannot be given back lapses by itself, and
        // does not undo what was recorded.
        if driven.is_err() || self.run.ending().is_none() {
            let _ = self.world.store.release(self.claim).await;
        }
        driven?;
        Ok(Driven { id: self.id, spec: self.spec, run: self.run })
    }

    /// A run of which nothing was kept does not exist.
    fn unkept(&self, source: StoreError) -> EngineError {
        match self.kept {
            0 => EngineError::Store(source),
            kept => EngineError::Unkept { run: self.id.clone(), kept, source },
        }
    }

    async fn drive_on(
        &mut self,
        observer: &Arc<dyn Observer>,
        interrupt: &CancellationToken,
    ) -> Result<(), StoreError> {
        let first = std::mem::take(&mut self.first);
        self.clock.since = Instant::now();
        self.looked = (self.clock.base, (self.world.wall)());
        self.take_mail_up_again().await;
        // No time has passed: what was noted while nobody drove it is decided on at its own time.
        self.step(self.clock.base, first, None, observer).await?;
        let renewal = CLAIM / 3;
        let mut renewal = tokio::time::interval_at(Instant::now() + renewal, renewal);
        while self.run.ending().is_none() && !self.run.waits_for_person() {
            let wakes = self.wakes_at.map(|at| self.clock.when(at));
            let (mut events, mut posts) = (Vec::new(), Vec::new());
            tokio::select! {
                biased;
                () = interrupt.cancelled() => return Ok(()),
                () = self.leaves.cancelled() => return self.last_answers(observer, interrupt).await,
                () = self.watch.posts(self.posted) => posts = self.posts().await?,
                Some(joined) = self.jobs.join_next_with_id() => events.extend(self.finished(joined)),
                () = sleep_until(wakes) => events.push(Event::Ticked),
                _ = renewal.tick() => {
                    self.world.store.renew(&self.claim).await?;
                    self.keep_mail().await;
                    events.extend(self.woken());
                }
            }
            while events.len() < BATCH
                && let Some(joined) = self.jobs.try_join_next_with_id()
            {
                events.extend(self.finished(joined));
            }
            if !events.is_empty() {
                let now = self.time_of(&events);
                self.step(now, events, None, observer).await?;
            }
            // What came first counts first: a wish may come too late. Whoever waits for it then finds the
            // claim free and the run ended.
            for post in posts {
                if self.run.ending().is_none() {
                    self.grant(&post, observer).await?;
                }
            }
        }
        Ok(())
    }

    /// Records what is under way as it is answered. Nothing follows from it until the run goes on.
    async fn last_answers(
        &mut self,
        observer: &Arc<dyn Observer>,
        interrupt: &CancellationToken,
    ) -> Result<(), StoreError> {
        let renewal = CLAIM / 3;
        let mut renewal = tokio::time::interval_at(Instant::now() + renewal, renewal);
        while !self.under_way.is_empty() {
            let joined = tokio::select! {
                biased;
                () = interrupt.cancelled() => return Ok(()),
                joined = self.jobs.join_next_with_id() => joined,
                _ = renewal.tick() => {
                    self.world.store.renew(&self.claim).await?;
                    continue;
                }
            };
            let Some(joined) = joined else { return Ok(()) };
            let events = self.finished(joined);
            let answers = events.into_iter().filter(|it| matches!(it, Event::Answered { .. }));
            let after = self.run.seq();
            let records = self.run.note(answers);
            if !records.is_empty() {
                let bodies = records.iter().map(|record| record.to_json().into()).collect();
                self.world.store.append(Append::under(&self.claim, after, bodies)).await?;
                self.kept = self.run.seq();
                observer.recorded(&self.spec, &self.run, &records);
            }
        }
        Ok(())
    }

    /// Carries out what someone else wants, if it is still time.
    async fn grant(&mut self, post: &Post, observer: &Arc<dyn Observer>) -> Result<(), StoreError> {
        let wish = Wish::read(&post.body);
        let events = wish.map_or_else(Vec::new, |wish| wish.events(&self.spec, &self.run));
        let granted = Granted { taken: !events.is_empty() };
        let now = self.time_of(&events);
        self.step(now, events, Some((post.id.clone(), granted)), observer).await
    }

    /// The time that counts for events that come now.
    fn time_of(&self, events: &[Event]) -> Time {
        let struck = self.wakes_at.filter(|_| ticks(events));
        self.clock.now().max(struck.unwrap_or_default())
    }

    /// Whether the machine slept since the last look, or its clock was set: then the wall clock is where
    /// active time did not bring it (rules.md 6.6).
    fn woken(&mut self) -> Option<Event> {
        let (at, wall) = (self.clock.now(), (self.world.wall)());
        let (at_before, wall_before) = std::mem::replace(&mut self.looked, (at, wall));
        let expected = wall_before.saturating_add(at.since(at_before).0);
        (u128::from(expected.abs_diff(wall)) > GAP.as_micros()).then_some(Event::Woken { wall })
    }

    async fn posts(&mut self) -> Result<Vec<Post>, StoreError> {
        let posts = self.world.store.pending(&self.id.stream()).await?;
        self.posted = posts.last().map_or(self.posted, |post| post.number.max(self.posted));
        Ok(posts)
    }

    /// One step of the kernel: recorded first, then acted on. What mail comes to the calls that it starts is
    /// recorded too before they begin.
    async fn step(
        &mut self,
        now: Time,
        events: Vec<Event>,
        done: Option<(Arc<str>, Granted)>,
        observer: &Arc<dyn Observer>,
    ) -> Result<(), StoreError> {
        let mut starting = VecDeque::from(self.record(now, events, done, observer).await?);
        self.settle_mail().await;
        let mut changing = Vec::new();
        while let Some(key) = starting.pop_front() {
            if let Some((mailed, lending)) = self.mail_before(&key).await {
                starting.extend(self.record(now, vec![mailed], None, observer).await?);
                self.note_mail(&key, lending).await;
            }
            if self.saves_before(&key) {
                changing.push(key);
            } else {
                self.start_if_open(key, observer);
            }
        }
        self.save_before(&changing);
        Ok(())
    }

    /// Records events and what is decided because of them; gives the calls that are to begin.
    async fn record(
        &mut self,
        now: Time,
        events: Vec<Event>,
        done: Option<(Arc<str>, Granted)>,
        observer: &Arc<dyn Observer>,
    ) -> Result<Vec<Key>, StoreError> {
        let after = self.run.seq();
        let spec = self.spec.clone();
        let Stepped { records, wakes_at } = self.run.step(spec.program(), &spec, events, now);
        self.wakes_at = wakes_at;
        let bodies = records.iter().map(|record| record.to_json().into()).collect();
        let (is_new, is_over) = (after == 0, self.run.ending().is_some());
        let mut append = if is_new {
            Append::founding(&self.claim.stream, self.world.owner.clone(), CLAIM, bodies)
        } else {
            Append::under(&self.claim, after, bodies)
        };
        if is_over {
            append = append.last();
        }
        if is_new || is_over {
            append = append.summary(Summary::of(&self.spec, &self.run).to_json());
        }
        if let Some((post, granted)) = done {
            append = append.done(post, granted.to_json());
        }
        self.world.store.append(append).await?;
        self.kept = self.run.seq();
        observer.recorded(&self.spec, &self.run, &records);
        for attempt in std::mem::take(&mut self.saved) {
            self.begin_if_open(attempt, observer);
        }
        let mut starting = Vec::new();
        for command in self.run.commands(&records) {
            match command {
                Command::Start(key) => starting.push(key),
                Command::Abort(key) => {
                    starting.retain(|it| *it != key);
                    self.abort(&key);
                }
            }
        }
        Ok(starting)
    }

    /// Who saves files, and those of which folder.
    fn snapshots(&self) -> Option<(Arc<dyn Snapshots>, Arc<str>)> {
        self.world.snapshots.clone().zip(Some(self.spec.workspace.as_ref()?.folder.clone()))
    }

    fn saves_before(&self, key: &Key) -> bool {
        let entry = self.run.known().get(key.as_str()).expect("a started call is known");
        self.spec.saves_before(&entry.call) && self.snapshots().is_some()
    }

    /// Saves the files; the calls begin when that is recorded. Those that begin together begin from
    /// the same files.
    fn save_before(&mut self, keys: &[Key]) {
        let Some((snapshots, folder)) = self.snapshots().filter(|_| !keys.is_empty()) else {
            return;
        };
        self.may_have_changed_files = true;
        let attempt = |key: &Key| self.run.known().get(key.as_str()).map(|entry| entry.attempt);
        let before: Vec<Attempt> =
            keys.iter().filter_map(|key| Some((key.clone(), attempt(key)?))).collect();
        let (run, calls) = (self.id.as_arc(), before.clone());
        let job = self.jobs.spawn(async move {
            let files = snapshots.save(&run, Path::new(&*folder)).await;
            Finished::Files { before, files }
        });
        self.saving.insert(job.id(), calls);
    }

    /// Begins a call, unless nobody wants that attempt any longer.
    fn begin_if_open(&mut self, (key, attempt): Attempt, observer: &Arc<dyn Observer>) {
        let entry = self.run.known().get(key.as_str());
        if entry.is_some_and(|entry| entry.attempt == attempt) {
            self.start_if_open(key, observer);
        }
    }

    /// Begins a call, unless what was recorded meanwhile called it off.
    fn start_if_open(&mut self, key: Key, observer: &Arc<dyn Observer>) {
        if self.run.known().get(key.as_str()).is_some_and(Entry::is_open) {
            self.start(key, observer.clone());
        }
    }

    fn start(&mut self, key: Key, observer: Arc<dyn Observer>) {
        let entry = self.run.known().get(key.as_str()).expect("a started call is known");
        let (run, attempt, nth) = (self.id.as_arc(), entry.attempt, entry.nth);
        let agent = self.agents.get(entry.call.agent()).expect("the spec names its agents").clone();
        let world = self.world.clone();
        let place = Place {
            workspace: self.spec.workspace.clone().unwrap_or_default(),
            environment: world.environments.get(&agent.id).cloned().unwrap_or_default(),
        };
        let name = key.clone();
        let job = match &entry.call {
            Call::Person { .. } | Call::Team { .. } => return,
            Call::Agent { prompt, target, .. } => {
                let agent = match *target {
                    FIRST_TARGET => agent,
                    later => Arc::new(agent.answered_by(later)),
                };
                let messages = render::messages(&self.spec, self.run.known(), &agent, prompt);
                let tools = self.spec.tools(&agent.id, self.run.known());
                let without_tools = prompt.without_tools;
                let max_output_tokens = entry.reserved.map(|reserved| reserved.tokens.output);
                let request = Request {
                    run,
                    key: key.clone(),
                    attempt,
                    nth,
                    agent,
                    messages,
                    tools,
                    without_tools,
                    max_output_tokens,
                    place,
                };
                self.jobs.spawn(async move {
                    let show = |delta: Delta<'_>| observer.delta(&key, delta);
                    let veil = Veil::new(&world.secrets, &show);
                    let tell = |delta: Delta<'_>| veil.show(delta);
                    let response = world.backend.perform(request, &tell).await;
                    veil.lift();
                    Finished::Call { key, attempt, response }
                })
            }
            Call::Tool { request, .. } => {
                let call = request.clone();
                let tool = ToolRequest { run, key: key.clone(), attempt, agent, call, place };
                let server = mcp::parts(&tool.call.name).map(|(server, _)| server.to_owned());
                let desk = self.desk.clone().filter(|_| is_of_service(&tool.call.name));
                match (server, desk) {
                    (_, Some(desk)) => {
                        let by = mail::party(&tool.run, &tool.agent.id, &key);
                        self.jobs.spawn(async move {
                            let response = desk.call(&by, &tool.call).await;
                            Finished::Call { key, attempt, response }
                        })
                    }
                    (Some(server), None) => {
                        let pinned =
                            mcp::pinned(self.run.known(), entry.call.agent().team(), &server);
                        let (reached, request) = (self.reached(), ServerRequest { tool, pinned });
                        self.jobs.spawn(async move {
                            let response = reached.call(request).await;
                            Finished::Call { key, attempt, response }
                        })
                    }
                    (None, None) => self.jobs.spawn(async move {
                        let response = world.tools.call(tool).await;
                        Finished::Call { key, attempt, response }
                    }),
                }
            }
            Call::Listing { server, .. } => {
                let server = server.clone();
                let request = ListRequest { run, key: key.clone(), server, agent, place };
                let reached = self.reached();
                self.jobs.spawn(async move {
                    let response = reached.list(request).await;
                    Finished::Call { key, attempt, response }
                })
            }
            Call::Gate { gate, of, scripted, .. } => {
                let reply = self.run.known().get(of.as_str());
                let reply = reply.and_then(|it| it.outcome.as_ref()?.as_ref().ok().cloned());
                let request = GateRequest {
                    run,
                    key: key.clone(),
                    attempt,
                    gate: gate.clone(),
                    scripted: *scripted,
                    reply,
                    workspace: self.spec.workspace.clone(),
                };
                self.jobs.spawn(async move {
                    let response = world.gates.look(request).await;
                    Finished::Call { key, attempt, response }
                })
            }
            Call::Exchange { .. } => {
                let briefing = Briefing::of(&self.spec, self.run.known(), &key);
                let meet = || world.controllers.meet(&self.spec);
                let dialogue = self.dialogue.get_or_insert_with(meet).clone();
                self.jobs.spawn(async move {
                    let response = dialogue.tell(briefing).await;
                    Finished::Call { key, attempt, response }
                })
            }
        };
        self.under_way.insert(name, job);
    }

    /// The servers of the run.
    fn reached(&mut self) -> Arc<dyn Reached> {
        let meet = || self.world.servers.meet();
        self.reached.get_or_insert_with(meet).clone()
    }

    fn abort(&mut self, key: &Key) {
        if let Some(job) = self.under_way.remove(key) {
            job.abort();
        }
    }

    /// What a finished job means for the run; an aborted one means nothing.
    fn finished(&mut self, joined: Result<(Id, Finished), JoinError>) -> Vec<Event> {
        match joined {
            Ok((_, Finished::Call { key, attempt, response })) => {
                vec![self.answered(key, attempt, response)]
            }
            Ok((id, Finished::Files { before, files })) => {
                self.saving.remove(&id);
                self.files_saved(before, &files)
            }
            Err(error) if error.is_cancelled() => Vec::new(),
            Err(error) => match self.saving.remove(&error.id()) {
                Some(before) => self.files_saved(before, &Files::Unsaved("it panicked".into())),
                None => self.panicked(&error).into_iter().collect(),
            },
        }
    }

    fn answered(&mut self, key: Key, attempt: u32, response: Response) -> Event {
        self.under_way.remove(&key);
        let Response { outcome, usage } = response;
        let outcome = veil::outcome(&self.world.secrets, outcome);
        Event::Answered { key, attempt, settled: outcome.into(), usage }
    }

    /// What is recorded before the calls begin that are still wanted.
    fn files_saved(&mut self, before: Vec<Attempt>, files: &Files) -> Vec<Event> {
        let keys = before.iter().map(|(key, _)| key.clone());
        let events = keys.map(|key| Event::Saved { key, files: files.clone() }).collect();
        self.saved.extend(before);
        events
    }

    /// A back-end that panics fails its call and nothing else.
    fn panicked(&mut self, error: &JoinError) -> Option<Event> {
        let (key, _) = self.under_way.iter().find(|(_, job)| job.id() == error.id())?;
        let attempt = self.run.known().get(key.as_str())?.attempt;
        let outcome = Err(Fault::failed(FailureKind::Other, "the back-end panicked"));
        let usage = self.run.estimate(&self.spec, key);
        Some(self.answered(key.clone(), attempt, Response { outcome, usage }))
    }
}

fn ticks(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Ticked))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
