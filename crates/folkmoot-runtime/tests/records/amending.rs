//! A person puts another text in place of an answer.

use std::{sync::Arc, time::Duration};

use folkmoot_core::{event::Event, key::Key};
use folkmoot_runtime::{
    driver::Unobserved,
    engine::{Engine, EngineError, RunId},
    store::{MemoryStore, Store},
};
use tokio_util::sync::CancellationToken;

use super::{Replies, answer, chain, engine, finish, interrupted};

async fn amend(engine: &Engine, id: &RunId, key: &str, text: &str) -> Vec<String> {
    let again = engine.amend(id, &Key::parse(key), text.into()).await;
    again.expect("it is under way").iter().map(Key::to_string).collect()
}

async fn amendments(engine: &Engine, id: &RunId) -> usize {
    let records = engine.records(id, 0).await.expect("the store works");
    records.iter().filter(|it| matches!(it.event, Event::Amended { .. })).count()
}

/// Nothing was asked that the run was not then told of, and every decision comes out again.
async fn is_sound(engine: &Engine, id: &RunId) {
    engine.verify(id).await.expect("the chain is whole");
    engine.replay(id).await.expect("it decides as recorded");
}

#[tokio::test(start_paused = true)]
async fn the_process_that_drives_a_run_takes_an_amendment_and_asks_again_what_was_made_from_it() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~", "B"])]);
    let (engine, elsewhere) = (engine(&store, &replies), engine(&store, &replies));
    let driver = engine.start(chain(&["a", "b", "c"])).await.expect("it starts");
    let id = driver.id().clone();
    let driven = tokio::spawn(finish(driver));
    tokio::time::sleep(Duration::from_millis(50)).await;

    assert_eq!(amend(&elsewhere, &id, "step-1/a", "mine").await, ["step-2/b"]);
    let driven = driven.await.expect("no panic");
    assert_eq!(answer(&driven).as_deref(), Some("step-3/c says"));
    assert_eq!(replies.asked(), ["step-1/a", "step-2/b", "step-2/b", "step-3/c"]);
    assert_eq!(amendments(&engine, &id).await, 1);
    is_sound(&engine, &id).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_that_is_amended_is_called_off_and_counts_as_read() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-1/a", &["~"])]);
    let (engine, elsewhere) = (engine(&store, &replies), engine(&store, &replies));
    let driver = engine.start(chain(&["a", "b"])).await.expect("it starts");
    let id = driver.id().clone();
    let driven = tokio::spawn(finish(driver));
    tokio::time::sleep(Duration::from_millis(50)).await;

    assert_eq!(amend(&elsewhere, &id, "step-1/a", "mine").await, [""; 0]);
    let driven = driven.await.expect("no panic");
    let entry = driven.run.known().get("step-1/a").expect("it was asked");
    assert!(entry.usages[0].estimated, "nobody says what it used");
    assert!(entry.usages[0].tokens.input > 0);
    assert_eq!(answer(&driven).as_deref(), Some("step-2/b says"));
    is_sound(&engine, &id).await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_is_amended_where_it_lies_and_goes_on_from_there() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~", "B"])]);
    let engine = engine(&store, &replies);
    let driver = engine.start(chain(&["a", "b"])).await.expect("it starts");
    let id = interrupted(driver).await;

    assert_eq!(amend(&engine, &id, "step-1/a", "mine").await, ["step-2/b"]);
    assert_eq!(amend(&engine, &id, "step-1/a", "no, this").await, ["step-2/b"]);
    let loaded = engine.load(&id).await.expect("the store works");
    assert_eq!(loaded.run.known().text(&Key::parse("step-1/a")).map(|it| &**it), Some("no, this"));
    assert_eq!(replies.asked().len(), 2, "nobody is asked before somebody drives it");

    tokio::time::sleep(Duration::from_mins(1)).await;
    let driven = finish(engine.resume(&id).await.expect("nobody drives it")).await;
    assert_eq!(answer(&driven).as_deref(), Some("B"));
    assert_eq!(replies.asked(), ["step-1/a", "step-2/b", "step-2/b"]);
    assert_eq!(amendments(&engine, &id).await, 2);
    is_sound(&engine, &id).await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_call_that_is_amended_is_paid_for_and_not_asked_again() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~"])]);
    let engine = engine(&store, &replies);
    let id = interrupted(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;

    assert_eq!(amend(&engine, &id, "step-2/b", "mine").await, [""; 0]);
    let driven = finish(engine.resume(&id).await.expect("nobody drives it")).await;
    assert_eq!(answer(&driven).as_deref(), Some("mine"));
    assert_eq!(replies.asked(), ["step-1/a", "step-2/b"]);
    let entry = driven.run.known().get("step-2/b").expect("it was asked");
    assert!(entry.usages[0].estimated && entry.usages[0].tokens.input > 0);
    is_sound(&engine, &id).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_is_not_amended() {
    let (store, replies) = (Arc::new(MemoryStore::new()), Replies::new(&[]));
    let engine = engine(&store, &replies);
    let driven = finish(engine.start(chain(&["a"])).await.expect("it starts")).await;
    let refused = engine.amend(&driven.id, &Key::parse("step-1/a"), "mine".into()).await;
    assert!(matches!(refused, Err(EngineError::Ended(_))), "{refused:?}");
    assert_eq!(amendments(&engine, &driven.id).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_there_is_not_is_refused_with_those_that_may_be_meant() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~"])]);
    let engine = engine(&store, &replies);
    let id = interrupted(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;
    for (given, meant) in [
        ("b", &["step-2/b"][..]),
        ("step-1", &["step-1/a"]),
        ("step-1/b", &["step-1/a"]),
        ("Step-2/B", &["step-2/b"]),
        ("", &[]),
        ("/", &[]),
        ("nothing like it", &[]),
    ] {
        match engine.amend(&id, &Key::parse(given), "mine".into()).await {
            Err(EngineError::NoSuchCall { near, .. }) => {
                let near: Vec<&str> = near.iter().map(Key::as_str).collect();
                assert_eq!(near, meant, "{given}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(amendments(&engine, &id).await, 0);
}

/// A driver that leaves without having looked at its post.
#[tokio::test(start_paused = true)]
async fn an_amendment_outlives_a_driver_that_leaves_without_taking_it_and_is_made_once() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~", "B", "B"])]);
    let (engine, elsewhere) = (engine(&store, &replies), engine(&store, &replies));
    let id = interrupted(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;

    let driver = engine.resume(&id).await.expect("nobody drives it");
    let run = id.clone();
    let amending = tokio::spawn(async move { amend(&elsewhere, &run, "step-1/a", "mine").await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let interrupt = CancellationToken::new();
    interrupt.cancel();
    driver.drive(Arc::new(Unobserved), interrupt).await.expect("the store works");
    assert_eq!(amending.await.expect("no panic"), ["step-2/b"]);
    assert_eq!(store.pending(&format!("run/{id}").into()).await.expect("it works"), []);

    let driven = finish(engine.resume(&id).await.expect("nobody drives it")).await;
    assert_eq!(answer(&driven).as_deref(), Some("B"));
    assert_eq!(amendments(&engine, &id).await, 1);
    is_sound(&engine, &id).await;
}

/// Whoever asked may be gone by then.
#[tokio::test(start_paused = true)]
async fn an_amendment_that_was_left_for_a_driver_is_taken_by_the_next_one() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["~", "B"])]);
    let engine = engine(&store, &replies);
    let id = interrupted(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;
    let stream = format!("run/{id}").into();
    let body = r#"{"wish":"amend","key":"step-1/a","text":"mine"}"#;
    store.post(&stream, "1", body).await.expect("the store works");
    let unknown = r#"{"wish":"amend","key":"step-9/x","text":"mine"}"#;
    store.post(&stream, "2", unknown).await.expect("the store works");
    store.post(&stream, "3", r#"{"wish":"sing"}"#).await.expect("the store works");

    let driven = finish(engine.resume(&id).await.expect("nobody drives it")).await;
    assert_eq!(driven.run.known().text(&Key::parse("step-1/a")).map(|it| &**it), Some("mine"));
    assert_eq!(amendments(&engine, &id).await, 1);
    let outcome =
        async |name, body| store.post(&stream, name, body).await.expect("the store works").outcome;
    assert_eq!(outcome("1", body).await.as_deref(), Some(r#"{"taken":true}"#));
    assert_eq!(outcome("2", unknown).await.as_deref(), Some(r#"{"taken":false}"#));
    assert_eq!(outcome("3", r#"{"wish":"sing"}"#).await.as_deref(), Some(r#"{"taken":false}"#));
    is_sound(&engine, &id).await;
}

/// The driver finds the wish and the answer in the same moment.
#[tokio::test(start_paused = true)]
async fn an_amendment_that_meets_the_answer_counts_and_the_answer_is_paid_for() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-1/a", &["~", "A"]), ("step-2/b", &["B", "B2"])]);
    let engine = engine(&store, &replies);
    let id = interrupted(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;
    let stream = format!("run/{id}").into();
    let body = r#"{"wish":"amend","key":"step-1/a","text":"mine"}"#;
    store.post(&stream, "1", body).await.expect("the store works");
    let driven = finish(engine.resume(&id).await.expect("nobody drives it")).await;
    let entry = driven.run.known().get("step-1/a").expect("it was asked");
    let text = driven.run.known().text(&Key::parse("step-1/a")).map(|it| &**it);
    assert_eq!((text, entry.usages.len()), (Some("mine"), 2));
    assert!(entry.usages.iter().all(|usage| usage.tokens.input > 0), "each attempt was read");
    is_sound(&engine, &id).await;
}
