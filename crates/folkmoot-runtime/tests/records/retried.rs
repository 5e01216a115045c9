//! Another attempt at a run.

use std::sync::Arc;

use folkmoot_core::{key::Key, replay::Retry, view};
use folkmoot_runtime::{
    engine::{Change, Engine, EngineError, Loaded, RunId},
    store::MemoryStore,
};

use super::{Replies, answer, chain, engine, finish, interrupted};

async fn loaded(engine: &Engine, id: &RunId) -> Loaded {
    engine.load(id).await.expect("the store works")
}

fn from(key: &str) -> Retry {
    Retry { from: Some(Key::parse(key)), prompt: None }
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_a_run_of_its_own_that_names_its_origin_and_leaves_it_as_it_was() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-2/b", &["!boom"])]);
    let engine = engine(&store, &replies);
    let first = finish(engine.start(chain(&["a", "b", "c"])).await.expect("it starts")).await;
    let before = engine.verify(&first.id).await.expect("the chain is whole");

    let origin = loaded(&engine, &first.id).await;
    let retried = finish(engine.retry(&origin, Retry::default()).await.expect("b failed")).await;
    assert_eq!(answer(&retried).as_deref(), Some("step-3/c says"));
    assert_eq!(replies.asked()[3..], ["step-2/b", "step-3/c"]);
    let outcome = view::outcome("", &retried.spec, &retried.run, false);
    let told = outcome.origin.expect("it comes from the first");
    assert_eq!((&*told.run_id, told.seq, told.retried), (first.id.as_str(), before.seq, true));
    assert_eq!(outcome.meta.usage.calls, 2, "what was taken over is not paid for again");
    assert_eq!(engine.verify(&first.id).await.expect("the chain is whole"), before);
    engine.replay(&retried.id).await.expect("it decides as recorded");
    let listed = engine.list(None, 2).await.expect("the store works");
    let origins = listed.iter().map(|run| run.summary.as_ref().and_then(|it| it.origin.clone()));
    assert_eq!(origins.collect::<Vec<_>>(), [Some(told), None]);

    let forked = engine.fork(&origin, Change::default()).await.expect("it can be forked");
    let outcome = finish(forked).await;
    let outcome = view::outcome("", &outcome.spec, &outcome.run, false);
    assert!(!outcome.origin.expect("it comes from the first").retried);
}

#[tokio::test(start_paused = true)]
async fn where_everything_was_answered_a_retry_needs_a_place_to_begin() {
    let (store, replies) = (Arc::new(MemoryStore::new()), Replies::new(&[]));
    let engine = engine(&store, &replies);
    let first = finish(engine.start(chain(&["a", "b"])).await.expect("it starts")).await;
    let origin = loaded(&engine, &first.id).await;
    match engine.retry(&origin, Retry::default()).await.map(|_| ()) {
        Err(EngineError::NothingToRetry { last, .. }) => {
            assert_eq!(last, Some(Key::parse("step-2/b")));
        }
        other => panic!("{other:?}"),
    }
    finish(engine.retry(&origin, from("step-2/b")).await.expect("it was asked")).await;
    assert_eq!(replies.asked(), ["step-1/a", "step-2/b", "step-2/b"]);
    let unknown = engine.retry(&origin, from("step-3/b")).await.map(|_| ());
    assert!(matches!(unknown, Err(EngineError::NoSuchCall { .. })), "{unknown:?}");
    assert_eq!(engine.list(None, 9).await.expect("the store works").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_somebody_drives_is_not_tried_again_and_an_abandoned_one_is() {
    let store = Arc::new(MemoryStore::new());
    let replies = Replies::new(&[("step-1/a", &["~", "A"])]);
    let engine = engine(&store, &replies);
    let id = interrupted(engine.start(chain(&["a"])).await.expect("it starts")).await;
    let driver = engine.resume(&id).await.expect("nobody drives it");
    let driven = loaded(&engine, &id).await;
    let refused = engine.retry(&driven, Retry::default()).await.map(|_| ());
    assert!(matches!(refused, Err(EngineError::Owned { .. })), "{refused:?}");
    drop(driver);
    let origin = Loaded { owner: None, ..driven };
    let retried = finish(engine.retry(&origin, Retry::default()).await.expect("a is open")).await;
    assert_eq!(answer(&retried).as_deref(), Some("A"));
}
