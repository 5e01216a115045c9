//! The engine over the in-memory store and scripted back-ends, in paused time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, Tokens, ToolCall, Usage},
    event::Event,
    key::Key,
    limits::Limits,
    programs::{Broadcast, Clocks, Debate},
    replay::Retry,
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Model, Says, Script, ScriptedReply, Target, Team},
    time::Duration,
    view::{self, Status},
};
use folkmoot_runtime::{
    backend::{Backend, OnDelta, Request, Response},
    driver::{Driven, Driver, Unobserved},
    engine::{Change, Engine, EngineError},
    promises::Promise,
    store::{MemoryStore, Owner, Store},
    tools::{NoTools, ToolRequest, Toolbox},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn agent(name: &str, replies: Vec<ScriptedReply>) -> Agent {
    Agent::new(name, Target::Script(Script { replies, ..Script::default() }))
}

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::text(text)
}

fn after_ms(milliseconds: u64, text: &str) -> ScriptedReply {
    ScriptedReply { delay: Duration::from_millis(milliseconds), ..says(text) }
}

fn spec(
    agents: Vec<Agent>,
    collaboration: impl FnOnce(Vec<AgentId>) -> Collaboration,
) -> Arc<Spec> {
    let ids = agents.iter().map(|agent| agent.id.clone()).collect();
    Arc::new(Spec {
        team: Team::new("team", agents),
        task: "TASK".into(),
        collaboration: collaboration(ids),
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::On,
    })
}

fn debate(judge: &str) -> impl FnOnce(Vec<AgentId>) -> Collaboration {
    let judge = AgentId(judge.into());
    |agents| Collaboration::Debate(Debate { agents, rounds: 1, judge, clocks: Clocks::default() })
}

fn broadcast(timeout_ms: u64) -> impl FnOnce(Vec<AgentId>) -> Collaboration {
    let timeout = Some(Duration::from_millis(timeout_ms));
    move |agents| {
        let clocks = Clocks { timeout, ..Clocks::default() };
        Collaboration::Broadcast(Broadcast { agents, rounds: 1, clocks })
    }
}

/// Says what the scripts say, and keeps count.
#[derive(Default)]
struct Scripted {
    asked: Mutex<BTreeMap<String, usize>>,
    dropped: Arc<AtomicUsize>,
}

impl Scripted {
    fn asked(&self) -> Vec<(String, usize)> {
        let asked = self.asked.lock().expect("no test panics while it counts");
        asked.iter().map(|(key, times)| (key.clone(), *times)).collect()
    }
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Backend for Scripted {
    async fn perform(&self, request: Request, _: OnDelta<'_>) -> Response {
        *self
            .asked
            .lock()
            .expect("no test panics while it counts")
            .entry(request.key.to_string())
            .or_default() += 1;
        let Target::Script(script) = &request.agent.target else { unreachable!("all are scripts") };
        let last = request.messages.last().map_or("", |message| &*message.content);
        let reply = script.reply(request.nth, last).cloned().unwrap_or_else(|| says(last));
        let unfinished = CountsDrops(self.dropped.clone());
        tokio::time::sleep(reply.delay.into()).await;
        std::mem::forget(unfinished);
        assert!(
            !matches!(&reply.says, Says::Text(text) if &**text == "PANIC"),
            "as the script says"
        );
        Response { outcome: reply.outcome(), usage: Usage::default() }
    }
}

struct Shout;

#[async_trait]
impl Toolbox for Shout {
    async fn call(&self, request: ToolRequest) -> Response {
        let text = request.call.arguments["text"].as_str().unwrap_or_default().to_uppercase();
        Response { outcome: Ok(Answer::text(text).into()), usage: Usage::default() }
    }
}

fn engine(store: &Arc<MemoryStore>, backend: &Arc<Scripted>) -> Engine {
    Engine::new(store.clone(), backend.clone(), Arc::new(NoTools), "test")
}

async fn finish(engine: &Engine, spec: Arc<Spec>) -> Driven {
    let driver = engine.start(spec).await.expect("a new run can be started");
    driver.drive(Arc::new(Unobserved), CancellationToken::new()).await.expect("the store works")
}

fn outcome(driven: &Driven) -> view::Outcome {
    view::outcome(driven.id.as_str(), &driven.spec, &driven.run, false)
}

#[tokio::test(start_paused = true)]
async fn a_run_is_driven_to_its_end_and_its_log_replays_without_a_world() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let agents = vec![agent("a", vec![says("A"), says("V")]), agent("b", vec![says("B")])];
    let driven = finish(&engine, spec(agents, debate("a"))).await;
    let result = outcome(&driven);
    assert_eq!((result.status, result.answer.as_deref()), (Status::Done, Some("V")));

    let asked_before = backend.asked();
    let replayed = engine.replay(&driven.id).await.expect("the log decides as recorded");
    assert_eq!(replayed.run, driven.run);
    assert_eq!(backend.asked(), asked_before);
    let head = engine.verify(&driven.id).await.expect("the chain is whole");
    assert_eq!(head.seq, driven.run.seq());
    assert_eq!(engine.find("last").await.expect("there is one run"), driven.id);
    let listed = engine.list(None, 10).await.expect("the store works");
    let summary = listed[0].summary.as_ref().expect("a run has a summary");
    assert_eq!((listed.len(), summary.status), (1, Some(Status::Done)));
}

#[tokio::test(start_paused = true)]
async fn a_clock_drops_a_slow_call_in_the_middle_and_the_run_goes_on() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let agents =
        vec![agent("slow", vec![after_ms(5_000, "late")]), agent("fast", vec![says("ok")])];
    let driven = finish(&engine(&store, &backend), spec(agents, broadcast(300))).await;
    let result = outcome(&driven);
    assert_eq!(result.answer.as_deref(), Some("ok"));
    assert_eq!(result.rounds[0]["responses"]["slow"], json!({ "error": "timeout" }));
    assert_eq!(backend.dropped.load(Ordering::Relaxed), 1);
    assert!((0.3..0.4).contains(&result.meta.elapsed_seconds), "{}", result.meta.elapsed_seconds);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_goes_on_and_no_answered_call_is_asked_again() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let agents = vec![agent("a", vec![says("A"), says("V")]), agent("b", vec![after_ms(500, "B")])];
    let driver = engine.start(spec(agents, debate("a"))).await.expect("a new run can be started");
    let interrupt = CancellationToken::new();
    let stop = interrupt.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        stop.cancel();
    });
    let driven = driver.drive(Arc::new(Unobserved), interrupt).await.expect("the store works");
    assert_eq!(outcome(&driven).status, Status::Interrupted);
    assert_eq!(backend.dropped.load(Ordering::Relaxed), 1);
    let listed = engine.list(None, 10).await.expect("the store works");
    let calls = listed[0].summary.as_ref().map(|summary| summary.usage.calls);
    assert_eq!(calls, Some(2), "a list tells what an unfinished run has used so far");

    let driver = engine.resume(&driven.id).await.expect("it can be resumed");
    let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
    let driven = driven.expect("the store works");
    assert_eq!(outcome(&driven).answer.as_deref(), Some("V"));
    let asked = [("judge", 1), ("round-1/a", 1), ("round-1/b", 2)];
    assert_eq!(backend.asked(), asked.map(|(key, times)| (key.to_owned(), times)));
    assert_eq!(driven.run.known().get("round-1/b").expect("it was asked").attempt, 2);
    let refused = engine.resume(&driven.id).await.map(|_| ());
    assert!(matches!(refused, Err(EngineError::Ended(_))), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn what_an_interruption_cut_off_is_estimated_and_counts() {
    /// A model that never answers the first request, and says what the second used.
    #[derive(Default)]
    struct Slow(AtomicUsize);

    #[async_trait]
    impl Backend for Slow {
        async fn perform(&self, _: Request, _: OnDelta<'_>) -> Response {
            if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                std::future::pending::<()>().await;
            }
            let tokens = Tokens { input: 100, output: 10, ..Tokens::default() };
            let usage = Usage { tokens, ..Usage::default() };
            Response { outcome: Ok(Answer::text("done").into()), usage }
        }
    }

    let engine = Engine::new(
        Arc::new(MemoryStore::new()),
        Arc::new(Slow::default()),
        Arc::new(NoTools),
        "test",
    );
    let model = Model::new("p", "m");
    let agent = Agent { target: Target::Model(model), ..agent("a", Vec::new()) };
    let driver = engine.start(spec(vec![agent], broadcast(90_000))).await;
    let driver = driver.expect("a new run can be started");
    let id = driver.id().clone();
    let interrupt = CancellationToken::new();
    let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), interrupt.clone()));
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    interrupt.cancel();
    driven.await.expect("no panic").expect("the store works");

    let driver = engine.resume(&id).await.expect("it can be resumed");
    let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
    let usage = outcome(&driven.expect("the store works")).meta.usage;
    assert!(usage.total.estimated, "what the first attempt used is not known");
    assert!(usage.total.prompt_tokens > 100, "{}", usage.total.prompt_tokens);
    assert_eq!((usage.total.completion_tokens, usage.calls), (10, 1));
}

#[tokio::test(start_paused = true)]
async fn a_second_starter_is_refused_and_told_who_owns_the_run() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let agents = vec![agent("a", vec![after_ms(200, "A")])];
    let driver =
        engine.start(spec(agents, broadcast(300))).await.expect("a new run can be started");
    let id = driver.id().clone();
    let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), CancellationToken::new()));
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    match engine.resume(&id).await.map(|_| ()) {
        Err(EngineError::Owned { by, .. }) => assert_eq!(&*by.label, "test"),
        other => panic!("{other:?}"),
    }
    driven.await.expect("no panic").expect("it goes on unharmed");
    match engine.resume(&id).await.map(|_| ()) {
        Err(EngineError::Ended(ended)) => assert_eq!(ended, id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_from_elsewhere_ends_the_run_with_everything_withdrawn() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let (engine, elsewhere) = (engine(&store, &backend), engine(&store, &backend));
    let slow = || vec![after_ms(60_000, "late")];
    let agents = vec![agent("a", slow()), agent("b", slow())];
    let driver =
        engine.start(spec(agents, broadcast(90_000))).await.expect("a new run can be started");
    let id = driver.id().clone();
    let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), CancellationToken::new()));
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(elsewhere.cancel(&id).await.expect("the store works"));
    let driven = driven.await.expect("no panic").expect("the store works");
    assert_eq!(outcome(&driven).status, Status::Cancelled);
    assert_eq!(driven.run.known().open_count(), 0);
    assert_eq!(backend.dropped.load(Ordering::Relaxed), 2);
    assert!(!elsewhere.cancel(&id).await.expect("the store works"), "it has ended already");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_outlives_a_driver_that_leaves_without_taking_it() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let (engine, elsewhere) = (engine(&store, &backend), engine(&store, &backend));
    let agents = vec![agent("a", vec![after_ms(60_000, "late")])];
    let leave = async |driver: Driver| {
        let interrupt = CancellationToken::new();
        interrupt.cancel();
        let driven = driver.drive(Arc::new(Unobserved), interrupt).await.expect("the store works");
        assert_eq!(outcome(&driven).status, Status::Interrupted);
        driven.id
    };
    let id = leave(engine.start(spec(agents, broadcast(90_000))).await.expect("it starts")).await;

    let driver = engine.resume(&id).await.expect("nobody drives it");
    let run = id.clone();
    let cancelling = tokio::spawn(async move { elsewhere.cancel(&run).await });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    leave(driver).await;
    let cancelled = tokio::time::timeout(std::time::Duration::from_secs(2), cancelling).await;
    assert!(cancelled.expect("in time").expect("no panic").expect("the store works"));
    let loaded = engine.load(&id).await.expect("the store works");
    assert_eq!(view::status(&loaded.run, loaded.is_alive()).0, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_is_refused_as_that_while_somebody_finds_it_out_who_cancels_it() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let failed = vec![agent("a", vec![says("PANIC")]), agent("b", vec![says("B")])];
    let id = finish(&engine, spec(failed, broadcast(300))).await.id;
    let (owner, time) = (Owner::this("folkmoot cancel"), std::time::Duration::from_secs(30));
    let stream = store.list("", None, 1).await.expect("the store works").remove(0).stream;
    store.claim(&stream, owner, time).await.expect("nobody drives it");

    let refused = engine.resume(&id).await.err().expect("it has ended");
    assert!(matches!(refused, EngineError::Ended(_)), "{refused}");
    let origin = engine.load(&id).await.expect("the store works");
    let retried = engine.retry(&origin, Retry::default()).await;
    assert!(retried.is_ok(), "nobody drives what has ended: {:?}", retried.err());
}

#[tokio::test(start_paused = true)]
async fn a_back_end_that_panics_fails_its_call_and_nothing_else() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let agents = vec![agent("a", vec![says("PANIC")]), agent("b", vec![says("B")])];
    let driven = finish(&engine(&store, &backend), spec(agents, broadcast(300))).await;
    let result = outcome(&driven);
    assert_eq!(result.answer.as_deref(), Some("B"));
    assert_eq!(result.errors[0].error, "the back-end panicked");
}

#[tokio::test(start_paused = true)]
async fn a_fork_with_another_judge_or_answer_asks_only_what_changed() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let agents =
        || vec![agent("a", vec![says("A"), says("VA")]), agent("b", vec![says("B"), says("VB")])];
    let driven = finish(&engine, spec(agents(), debate("a"))).await;
    let forked = |change| async {
        let origin = engine.load(&driven.id).await.expect("the store works");
        let driver = engine.fork(&origin, change).await.expect("it can be forked");
        let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
        driven.expect("the store works")
    };
    let asked = |driven: &Driven| -> Vec<String> {
        let calls = driven.run.known().in_order().into_iter();
        calls.filter(|(_, call)| call.is_charged()).map(|(key, _)| key.to_string()).collect()
    };

    let change = Change { spec: Some(spec(agents(), debate("b"))), ..Change::default() };
    let other_judge = forked(change).await;
    assert_eq!(outcome(&other_judge).answer.as_deref(), Some("VB"));
    assert_eq!(asked(&other_judge), ["judge"]);

    let answers = vec![(Key::parse("round-1/b"), "another B".into())];
    let other_answer = forked(Change { answers, ..Change::default() }).await;
    assert_eq!(asked(&other_answer), ["judge"]);

    let mut agents = agents();
    agents[0].prompt = Some("Be brief.".into());
    let change = Change { spec: Some(spec(agents, debate("a"))), ..Change::default() };
    assert_eq!(asked(&forked(change).await), ["round-1/a", "judge"]);
    engine.replay(&other_answer.id).await.expect("a fork's log replays too");
}

#[tokio::test(start_paused = true)]
async fn a_scripted_agent_uses_the_tools_it_is_granted_and_no_others() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let engine = Engine::new(store, backend, Arc::new(Shout), "test");
    let call = |name: &str| ToolCall {
        id: name.into(),
        name: name.into(),
        arguments: json!({ "text": "hello" }),
    };
    let calls = vec![call("shout.loud"), call("shell")];
    let wants_tools = ScriptedReply { says: Says::Tools { calls, text: "".into() }, ..says("") };
    let mut agent = agent("a", vec![wants_tools, says("done")]);
    agent.grants = vec!["shout".into()];
    let driven = finish(&engine, spec(vec![agent], broadcast(300))).await;
    assert_eq!(outcome(&driven).answer.as_deref(), Some("done"));
    let calls = view::calls(&driven.spec, &driven.run);
    let told: Vec<(&str, &str, Option<&str>)> =
        calls.iter().map(|it| (it.key.as_str(), it.state, it.reply.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("round-1/a/model-1", "answered", Some("")),
            ("round-1/a/tool-1", "answered", Some("HELLO")),
            ("round-1/a/tool-2", "refused", None),
            ("round-1/a/model-2", "answered", Some("done")),
        ]
    );
    let asked = &calls[3].request.messages;
    // Each stands in a frame of its own, a line before it and a line behind.
    let results = asked[asked.len() - 2..].iter().map(|it| it.content.lines().nth(1));
    assert_eq!(results.collect::<Vec<_>>(), [Some("HELLO"), Some("error: denied: shell")]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_no_run_could_have_written_is_refused_whatever_is_wanted_of_it() {
    let (store, backend) = (Arc::default(), Arc::default());
    let engine = engine(&store, &backend);
    let driven = finish(&engine, spec(vec![agent("a", vec![says("A")])], debate("a"))).await;
    let mut records = engine.load(&driven.id).await.expect("it is sound").records;
    let Event::Started { spec, .. } = &mut records[0].event else { panic!("it begins so") };
    let mut forged = Spec::clone(spec);
    forged.collaboration = debate("ghost")(vec!["a".into()]);
    *spec = forged.into();
    let id = engine.keep(&driven.spec, &records).await.expect("the store takes any log");
    let why = format!("run {id}: its spec cannot be followed: there is no agent \"ghost\"");
    for refused in [
        engine.load(&id).await.map(|_| ()),
        engine.replay(&id).await.map(|_| ()),
        engine.resume(&id).await.map(|_| ()),
        engine.cancel(&id).await.map(|_| ()),
    ] {
        assert_eq!(refused.map_err(|error| error.to_string()), Err(why.clone()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_every_record_once_and_in_order() {
    let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
    let (engine, elsewhere) = (engine(&store, &backend), engine(&store, &backend));
    let agents = vec![agent("a", vec![after_ms(10, "A"), says("V")]), agent("b", vec![says("B")])];
    let driver = engine.start(spec(agents, debate("a"))).await.expect("a new run can be started");
    let id = driver.id().clone();
    let mut watcher = elsewhere.watch(&id, 0).await.expect("the store works");
    let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), CancellationToken::new()));
    let mut seen = Vec::new();
    while !matches!(seen.last(), Some(Event::Ended { .. })) {
        let records = watcher.next().await.expect("the store works");
        assert_eq!(records[0].seq as usize, seen.len() + 1);
        seen.extend(records.into_iter().map(|record| record.event));
    }
    let driven = driven.await.expect("no panic").expect("the store works");
    assert_eq!(seen.len() as u64, driven.run.seq());
}

// Hours that the machine slept, or a clock that is set, are no active time; the gap is logged.
#[tokio::test(start_paused = true)]
async fn hours_that_the_machine_slept_are_not_charged_and_the_gap_is_logged() {
    const START: u64 = 1_800_000_000_000_000;
    const EIGHT_HOURS: i64 = 8 * 3_600_000_000;
    for jump in [EIGHT_HOURS, -EIGHT_HOURS] {
        let (began, jumped) = (tokio::time::Instant::now(), Arc::new(AtomicI64::new(0)));
        let ahead = jumped.clone();
        let wall = move || {
            let elapsed = began.elapsed().as_micros() as u64;
            (START + elapsed).saturating_add_signed(ahead.load(Ordering::Relaxed))
        };
        let (store, backend) = (Arc::new(MemoryStore::new()), Arc::new(Scripted::default()));
        let engine = engine(&store, &backend).by_wall(wall);
        let agents = vec![agent("a", vec![after_ms(600_000, "A")])];
        // Five minutes awake, the gap, five minutes awake, within eleven minutes.
        let driver = engine.start(spec(agents, broadcast(660_000))).await.expect("it starts");
        let id = driver.id().clone();
        let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), CancellationToken::new()));
        tokio::time::sleep(std::time::Duration::from_mins(5)).await;
        jumped.store(jump, Ordering::Relaxed);
        let driven = driven.await.expect("no panic").expect("the store works");

        let result = outcome(&driven);
        assert_eq!((result.status, result.answer.as_deref()), (Status::Done, Some("A")));
        assert!((600.0..601.0).contains(&result.meta.elapsed_seconds));
        let records = engine.replay(&id).await.expect("it decides as recorded").records;
        let gaps: Vec<&Event> = records
            .iter()
            .map(|it| &it.event)
            .filter(|it| matches!(it, Event::Woken { .. }))
            .collect();
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        let ended = driven.run.wall_at(driven.run.at());
        let expected = (START + 600_000_000).saturating_add_signed(jump);
        assert!(ended.abs_diff(expected) < 6_000_000, "{ended}, not {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_leaves_lets_open_calls_be_answered_and_begins_nothing_more() {
    let (store, backend) = (Arc::new(MemoryStore::default()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let agents = vec![
        agent("a", vec![after_ms(1_000, "A")]),
        agent("b", vec![after_ms(2_000, "B")]),
        agent("judge", vec![says("so it is")]),
    ];
    let driver = engine.start(spec(agents, debate("judge"))).await.expect("it is new");
    let (id, leaves) = (driver.id().clone(), CancellationToken::new());
    let driving = driver.leaving(leaves.clone());
    let driving = tokio::spawn(driving.drive(Arc::new(Unobserved), CancellationToken::new()));
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    leaves.cancel();
    let left = driving.await.expect("no panic").expect("it is left").run;
    assert!(left.ending().is_none(), "it can be resumed");
    assert_eq!(left.known().open().count(), 0, "both were answered");
    let first_round: Vec<_> = ["a", "b", "judge"].map(|it| (format!("round-1/{it}"), 1)).into();
    assert_eq!(backend.asked(), first_round, "the verdict is not asked for");
    let driver = engine.resume(&id).await.expect("nobody has it");
    let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
    assert_eq!(outcome(&driven.expect("it is driven")).status, Status::Done);
    let asked = backend.asked();
    assert!(asked.len() == 4 && asked.iter().all(|(_, times)| *times == 1), "{asked:?}");
    engine.replay(&id).await.expect("it decides as recorded");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_entered_is_there_and_begins_when_it_is_resumed() {
    let (store, backend) = (Arc::new(MemoryStore::default()), Arc::new(Scripted::default()));
    let engine = engine(&store, &backend);
    let spec = spec(vec![agent("a", vec![says("A")])], broadcast(1_000));
    let Promise::New(id) = engine.promise("me", "k", "request").await.expect("it is kept") else {
        panic!("the key is new");
    };
    let driver = engine.start_as(id.clone(), spec).await.expect("it is new");
    assert_eq!(driver.enter().await.expect("it is kept"), id);
    engine.owe(&id).await.expect("it is kept");
    assert_eq!(backend.asked(), [], "nobody is asked before its time");
    assert_eq!(engine.owed().await.expect("they can be read"), std::slice::from_ref(&id));
    for (caller, key, request, wanted) in
        [("me", "k", "request", Promise::Made(id.clone())), ("me", "k", "another", Promise::Taken)]
    {
        let found = engine.promise(caller, key, request).await.expect("it is kept");
        assert_eq!(found, wanted);
    }
    let other = engine.promise("you", "k", "another").await.expect("it is kept");
    assert!(matches!(other, Promise::New(_)), "{other:?}");
    let driver = engine.resume(&id).await.expect("nobody has it");
    let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new()).await;
    assert_eq!(outcome(&driven.expect("it is driven")).status, Status::Done);
    engine.replay(&id).await.expect("it decides as recorded");
    engine.settle(&id).await.expect("it is owed");
    assert_eq!(engine.owed().await.expect("they can be read"), []);
}
