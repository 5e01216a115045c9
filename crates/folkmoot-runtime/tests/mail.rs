//! Mail of agents in runs over the in-memory store, by a wall clock that the test sets (messaging.md §2).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use folkmoot_core::{
    board::Post,
    call::{Answer, FailureKind, Fault, Usage},
    limits::Limits,
    mail::{Draft, Party, State},
    programs::{Broadcast, Clocks},
    spec::{Collaboration, Mail as Takes, Spec},
    team::{Agent, Target, Team},
};
use folkmoot_runtime::{
    backend::{Backend, OnDelta, Request, Response},
    boards::Boards,
    driver::{Driven, Unobserved},
    engine::{Engine, RunId},
    mail::{Header, Mail, Which},
    store::MemoryStore,
    tools::NoTools,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a back-end does with a request.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Answers,
    Fails,
    /// Never answers.
    Hangs,
}

struct World {
    does: Mutex<Does>,
    asked: Notify,
}

#[async_trait]
impl Backend for World {
    async fn perform(&self, _: Request, _: OnDelta<'_>) -> Response {
        self.asked.notify_one();
        let does = *self.does.lock().expect("no panic");
        let outcome = match does {
            Does::Hangs => std::future::pending().await,
            Does::Fails => Err(Fault::failed(FailureKind::Auth, "no")),
            Does::Answers => Ok(Answer::text("done").into()),
        };
        Response { outcome, usage: Usage::default() }
    }
}

/// A store, an engine over it, and the clock on the wall.
struct Bench {
    store: Arc<MemoryStore>,
    world: Arc<World>,
    wall: Arc<AtomicU64>,
}

impl Bench {
    fn new() -> Bench {
        let does = Mutex::new(Does::Answers);
        let world = World { does, asked: Notify::new() };
        let wall = Arc::new(AtomicU64::new(1_000_000_000));
        Bench { store: Arc::new(MemoryStore::new()), world: Arc::new(world), wall }
    }

    /// An engine whose agents have no mailboxes.
    fn without_mail(&self) -> Engine {
        let wall = self.wall.clone();
        let engine = Engine::new(self.store.clone(), self.world.clone(), Arc::new(NoTools), "test");
        engine.by_wall(move || wall.load(Ordering::Relaxed))
    }

    fn engine(&self) -> Engine {
        self.without_mail().with_mail("ann")
    }

    fn mail(&self) -> Mail {
        Mail::new(&self.engine(), "ann")
    }

    fn does(&self, does: Does) {
        *self.world.does.lock().expect("no panic") = does;
    }

    fn passes(&self, seconds: u64) {
        self.wall.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }

    async fn send(&self, body: &str, draft: Draft) {
        let draft = Draft { body: body.into(), max_attempts: 5, ..draft };
        let ann = Party { name: "ann".into(), ..Party::default() };
        self.mail().send(&ann, "coder", draft).await.expect("it can be sent");
    }

    async fn run(&self) -> Driven {
        drive(&self.engine(), team()).await
    }

    /// Starts a run and leaves it in the middle of its call, as a crash would.
    async fn interrupted(&self) -> RunId {
        self.does(Does::Hangs);
        let driver = self.engine().start(team()).await.expect("it starts");
        let (id, interrupt) = (driver.id().clone(), CancellationToken::new());
        let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), interrupt.clone()));
        self.world.asked.notified().await;
        interrupt.cancel();
        driven.await.expect("no panic").expect("the store works");
        self.does(Does::Answers);
        id
    }

    async fn resume(&self, engine: &Engine, id: &RunId) -> Driven {
        let driver = engine.resume(id).await.expect("it can be resumed");
        let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
        driven.expect("the store works")
    }

    async fn sent(&self) -> Header {
        let mut sent = self.mail().sent("ann", 10).await.expect("the store works");
        sent.pop().expect("one was sent")
    }
}

async fn drive(engine: &Engine, spec: Arc<Spec>) -> Driven {
    let driver = engine.start(spec).await.expect("it starts");
    let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
    driven.expect("the store works")
}

fn team() -> Arc<Spec> {
    let coder = Agent::new("coder", Target::Demo);
    let agents = vec![coder.id.clone()];
    let broadcast = Broadcast { agents, rounds: 1, clocks: Clocks::default() };
    Arc::new(Spec {
        team: Team::new("team", vec![coder]),
        task: "TASK".into(),
        collaboration: Collaboration::Broadcast(broadcast),
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Takes::On,
    })
}

/// The messages that came to a run, with the attempts at them.
fn came(driven: &Driven) -> Vec<(String, u32)> {
    let mail = driven.run.known().all_mail().flat_map(|(_, _, mail)| mail);
    mail.map(|it| (it.body.to_string(), it.attempt)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_crash_left_unanswered_comes_to_another_run_once_its_lease_has_run_out() {
    let bench = Bench::new();
    bench.send("hello", Draft::default()).await;
    bench.interrupted().await;
    assert_eq!(bench.sent().await.state, State::Leased);
    assert_eq!(came(&bench.run().await), [], "somebody has it");
    bench.passes(301);
    assert_eq!(came(&bench.run().await), [("hello".to_owned(), 2)]);
    let header = bench.sent().await;
    assert_eq!((header.state, header.attempt), (State::Acknowledged, 2));
}

#[tokio::test(start_paused = true)]
async fn the_run_itself_takes_up_what_it_held_however_late_unless_somebody_else_has_it() {
    for late in [10, 301] {
        let bench = Bench::new();
        bench.send("hello", Draft::default()).await;
        let id = bench.interrupted().await;
        bench.passes(late);
        let driven = bench.resume(&bench.engine(), &id).await;
        assert_eq!(came(&driven), [("hello".to_owned(), 1)], "it is told once");
        assert_eq!(bench.sent().await.state, State::Acknowledged, "after {late} s");
        assert_eq!(came(&bench.run().await), []);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_never_comes_again_even_if_its_run_died_before_it_said_so() {
    let bench = Bench::new();
    bench.send("hello", Draft::default()).await;
    let id = bench.interrupted().await;
    // Nobody is told of this answer.
    bench.resume(&bench.without_mail(), &id).await;
    assert_eq!(bench.sent().await.state, State::Leased);
    bench.passes(301);
    assert_eq!(came(&bench.run().await), []);
    assert_eq!(bench.sent().await.state, State::Acknowledged);
}

#[tokio::test(start_paused = true)]
async fn vm_015_mail_of_calls_that_fail_comes_again_until_it_is_a_dead_letter() {
    let bench = Bench::new();
    bench.send("hello", Draft::default()).await;
    bench.does(Does::Fails);
    for attempt in 1..=5 {
        assert_eq!(came(&bench.run().await), [("hello".to_owned(), attempt)]);
    }
    assert_eq!(bench.sent().await.state, State::Dead);
    assert_eq!(came(&bench.run().await), []);
}

#[tokio::test(start_paused = true)]
async fn vm_008_and_vm_012_what_is_not_due_and_what_has_expired_comes_to_nobody() {
    let bench = Bench::new();
    bench.send("gone", Draft { ttl_s: Some(5), ..Draft::default() }).await;
    let deliver = folkmoot_core::mail::Deliver::DelayS(60);
    bench.send("later", Draft { deliver, ..Draft::default() }).await;
    bench.passes(6);
    assert_eq!(came(&bench.run().await), []);
    bench.passes(60);
    assert_eq!(came(&bench.run().await), [("later".to_owned(), 1)]);
    let sent = bench.mail().sent("ann", 10).await.expect("the store works");
    assert_eq!(sent[0].state, State::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_keeps_what_it_holds() {
    let bench = Bench::new();
    bench.send("hello", Draft::default()).await;
    bench.does(Does::Hangs);
    let driver = bench.engine().start(team()).await.expect("it starts");
    let interrupt = CancellationToken::new();
    let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), interrupt.clone()));
    bench.world.asked.notified().await;
    for _ in 0..4 {
        tokio::time::sleep(std::time::Duration::from_mins(2)).await;
        bench.passes(120);
        assert_eq!(bench.sent().await.state, State::Leased);
    }
    interrupt.cancel();
    driven.await.expect("no panic").expect("the store works");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_used_again_after_a_crash_does_nothing_twice() {
    let bench = Bench::new();
    let by = |call: &str| Party {
        name: "coder".into(),
        run: Some("r1".into()),
        call: Some(call.into()),
    };
    let (mail, boards) = (bench.mail(), Boards::new(&bench.engine(), "ann"));
    let draft = |body: &str| Draft { body: body.into(), max_attempts: 5, ..Draft::default() };
    let first = mail.send(&by("tool-1"), "bo", draft("hello")).await.expect("it can be sent");
    let again = mail.send(&by("tool-1"), "bo", draft("hello")).await.expect("it was sent");
    assert_eq!((&again.id, again.duplicate), (&first.id, true));
    mail.send(&by("tool-2"), "bo", draft("hello")).await.expect("another call, another message");
    // The same call, for which something else was asked since.
    mail.send(&by("tool-1"), "bo", draft("good bye")).await.expect("it can be sent");
    let inbox = mail.inbox("bo", Which::default(), 10).await.expect("the store works");
    assert_eq!(inbox.len(), 3);
    let post = || Post { topic: "risk".into(), text: "R1".into(), refs: Vec::new() };
    let posted = [
        boards.post(&by("tool-3"), "plans", post()).await,
        boards.post(&by("tool-3"), "plans", post()).await,
        boards.post(&by("tool-4"), "plans", post()).await,
        boards.set(&by("tool-5"), "plans", "owner", &json!("bo"), 0).await,
        boards.set(&by("tool-5"), "plans", "owner", &json!("bo"), 0).await,
    ];
    assert_eq!(posted.map(|it| it.expect("it is kept")), [1, 1, 2, 1, 1]);
    let lost = boards.set(&by("tool-6"), "plans", "owner", &json!("bo"), 0).await;
    assert!(lost.is_err(), "another call finds the cell set");
    assert_eq!(boards.show("plans", 0, None, 10).await.expect("the store works").version, 3);
}
