//! What can be done with the record of a run: amended, tried again, exported and read elsewhere.

mod amending;
mod coded;
mod exported;
mod retried;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Tokens, Usage},
    limits::Limits,
    programs::{Clocks, Sequential},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, Model, Target, Team},
};
use folkmoot_runtime::{
    backend::{Backend, OnDelta, Request, Response},
    driver::{Driven, Driver, Unobserved},
    engine::{Engine, RunId},
    store::MemoryStore,
    tools::NoTools,
};
use tokio_util::sync::CancellationToken;

/// Says of each call what comes next for it: `!boom` fails, `~` never comes, and without any the
/// name of the call and how often it was asked.
#[derive(Default)]
struct Replies {
    coming: Mutex<BTreeMap<String, VecDeque<String>>>,
    asked: Mutex<Vec<String>>,
}

impl Replies {
    fn new(replies: &[(&str, &[&str])]) -> Arc<Replies> {
        let coming = replies.iter().map(|(key, texts)| {
            ((*key).to_owned(), texts.iter().map(|text| (*text).to_owned()).collect())
        });
        Arc::new(Replies { coming: Mutex::new(coming.collect()), asked: Mutex::default() })
    }

    /// The calls that were asked, in order.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nothing panics with it").clone()
    }

    fn next(&self, key: &str) -> String {
        self.asked.lock().expect("nothing panics with it").push(key.to_owned());
        let mut coming = self.coming.lock().expect("nothing panics with it");
        let next = coming.get_mut(key).and_then(VecDeque::pop_front);
        next.unwrap_or_else(|| format!("{key} says"))
    }
}

#[async_trait]
impl Backend for Replies {
    async fn perform(&self, request: Request, _: OnDelta<'_>) -> Response {
        let text = self.next(request.key.as_str());
        let tokens = Tokens { input: 100, output: 10, ..Tokens::default() };
        let usage = Usage { tokens, ..Usage::default() };
        match text.strip_prefix('!') {
            _ if text == "~" => std::future::pending().await,
            Some(error) => {
                Response { outcome: Err(Fault::failed(FailureKind::Harness, error)), usage }
            }
            None => Response { outcome: Ok(Answer::text(text).into()), usage },
        }
    }
}

/// Models that speak one after the other.
fn chain(names: &[&str]) -> Arc<Spec> {
    let model = || Target::Model(Model::new("p", "m"));
    let agents: Vec<Agent> = names.iter().map(|name| Agent::new(name, model())).collect();
    let order = agents.iter().map(|agent| agent.id.clone()).collect();
    Arc::new(Spec {
        team: Team::new("team", agents),
        task: "TASK".into(),
        collaboration: Collaboration::Sequential(Sequential { order, clocks: Clocks::default() }),
        auto: None,
        limits: Limits::default(),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    })
}

fn engine(store: &Arc<MemoryStore>, replies: &Arc<Replies>) -> Engine {
    Engine::new(store.clone(), replies.clone(), Arc::new(NoTools), "test")
}

async fn finish(driver: Driver) -> Driven {
    let driven = driver.drive(Arc::new(Unobserved), CancellationToken::new());
    let driven = tokio::time::timeout(Duration::from_hours(1), driven).await;
    driven.expect("it does not wait for ever").expect("the store works")
}

/// Drives a run until nothing more happens, and leaves it.
async fn interrupted(driver: Driver) -> RunId {
    let interrupt = CancellationToken::new();
    let driven = tokio::spawn(driver.drive(Arc::new(Unobserved), interrupt.clone()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    interrupt.cancel();
    let driven = driven.await.expect("no panic").expect("the store works");
    assert!(driven.run.ending().is_none(), "it waits");
    driven.id
}

/// The answer of a run.
fn answer(driven: &Driven) -> Option<String> {
    folkmoot_core::view::outcome("", &driven.spec, &driven.run, false).answer
}
