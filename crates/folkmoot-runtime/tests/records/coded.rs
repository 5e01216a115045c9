//! Runs whose program or conditions are code, which a record knows by name alone.

use std::sync::Arc;

use folkmoot_core::{
    call::Prompt,
    check::{Input, Source, check_with},
    event::Ending,
    extension::{Kind, Registry},
    file::models::Catalog,
    scope::{Program, Scope, Step},
    spec::Spec,
};
use folkmoot_runtime::{
    engine::{Change, EngineError},
    store::MemoryStore,
};

use super::{Replies, engine, finish, interrupted};

/// One agent after the other; the answer is the last one's.
#[derive(Debug)]
struct InTurn;

impl Program for InTurn {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut last = Vec::new();
        for agent in &cx.spec().team.agents {
            last = vec![cx.ask(agent.id.as_str(), &agent.id, Prompt::task())?.key];
        }
        Ok(Ending::done("in_turn", last))
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    let spoke = Kind::new(|facts, _| facts.last(&"b".into()).is_some());
    registry.condition("spoke", spoke).expect("the name is free");
    registry.program("in-turn", InTurn).expect("the name is free");
    registry
}

fn team(collaboration: &str) -> Arc<Spec> {
    let file = format!(
        "agents: [{{ name: a, demo: true }}, {{ name: b, demo: true }}]\ncollaboration: {collaboration}"
    );
    let checked = check_with(
        &Input {
            source: Source::File(file.as_bytes()),
            name: "team",
            path: None,
            overrides: &[],
            task: Some("TASK"),
            catalog: &Catalog::default(),
            list: &|_| Err("no such folder".into()),
            around: &[],
            variable: &|_| None,
            read: &|_| Err("there are no files".into()),
            beside: &|_, _| Ok(None),
        },
        &registry(),
    );
    checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)).into()
}

#[tokio::test(start_paused = true)]
async fn a_run_by_code_goes_on_where_that_code_is_and_is_refused_by_its_name_where_it_is_not() {
    let review =
        "{ topology: review-loop, agents: [a, b], termination: { any_of: [{ spoke: {} }] } }";
    for (collaboration, second, reason, missing) in [
        ("{ program: in-turn }", "b", "in_turn", "the code of program \"in-turn\" is not here"),
        (review, "b/1", "spoke", "the code of condition \"spoke\" is not here"),
    ] {
        let store = Arc::new(MemoryStore::new());
        let replies = Replies::new(&[(second, &["~", "B"])]);
        let knowing = engine(&store, &replies).with_registry(registry());
        let id = interrupted(knowing.start(team(collaboration)).await.expect("it starts")).await;

        let unknowing = engine(&store, &replies);
        let refused = unknowing.resume(&id).await.map(|_| ()).expect_err("it has no code");
        assert!(matches!(refused, EngineError::Unsound { .. }), "{refused:?}");
        assert!(refused.to_string().ends_with(missing), "{refused}");

        let driven = finish(knowing.resume(&id).await.expect("it has the code")).await;
        assert_eq!(driven.run.ending().map(|it| &*it.reason), Some(reason));
        knowing.replay(&id).await.expect("it decides as recorded");
        let loaded = knowing.load(&id).await.expect("it has the code");
        let asked = replies.asked().len();
        let forked = knowing.fork(&loaded, Change::default()).await.expect("it can be forked");
        let forked = finish(forked).await;
        assert_eq!(forked.run.ending().map(|it| &*it.reason), Some(reason));
        assert_eq!(replies.asked().len(), asked, "a fork with nothing changed asks nothing");
    }
}
