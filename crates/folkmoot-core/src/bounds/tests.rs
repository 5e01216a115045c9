use super::*;
use crate::{
    call::{Limit, Tokens},
    limits::CONCURRENCY,
    money::{Money, Price},
    programs::{
        Adaptive, Broadcast, Clocks, Consensus, Convergence, Debate, Relay, Sequential, Supervise,
        graph::{Edge, PARENT},
    },
    spec::Spec,
    team::{Agent, Fallback, Model, Target},
    testing::{self, agent, ids, play, spec},
    time::Duration,
};

fn bounds(spec: &Spec) -> Bounds {
    Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task))
}

/// An agent whose every call uses three tokens to read and four to write.
fn worker(name: &str, replies: &[&str]) -> Agent {
    let mut agent = agent(name, replies);
    if let Target::Script(script) = &mut agent.target {
        let usage = Tokens { input: 2, cached: 1, output: 4, ..Tokens::default() };
        script.replies.iter_mut().for_each(|reply| reply.usage = usage);
    }
    agent
}

fn model(name: &str, model: Model) -> Agent {
    Agent { target: Target::Model(model), ..agent(name, &[]) }
}

/// A team of three in which nobody agrees, no draft stays as it is and the first plan is broken.
fn quarrel(collaboration: Collaboration) -> Spec {
    let broken = r#"{"tasks": [{"id": "x", "description": "1", "depends_on": ["ghost"]}]}"#;
    let plan = r#"{"tasks": ["1", "2", "3", "4"]}"#;
    let agents = vec![
        worker("a", &[broken, plan, "a3", "a4", "a5", "a6"]),
        worker("b", &["b1", "b2", "b3", "b4", "b5", "b6"]),
        worker("c", &["c1", "c2", "c3", "c4", "c5", "c6"]),
    ];
    spec(agents, collaboration)
}

fn supervise() -> Supervise {
    let (supervisor, workers, clocks) = ("a".into(), ids(&["b", "c"]), Clocks::default());
    Supervise { supervisor, workers, replan: true, strict: false, max_tasks: 4, clocks }
}

/// One of each strategy, and its line in the table of strategies.md §9.
fn table() -> Vec<(Collaboration, [u64; 3])> {
    let (agents, clocks) = (ids(&["a", "b", "c"]), Clocks::default());
    let debate = || Debate { agents: agents.clone(), rounds: 2, judge: "c".into(), clocks };
    let order = ids(&["b", "c", "b"]);
    let convergence = Convergence::Exact;
    let (judge, self_votes) = ("a".into(), true);
    vec![
        (
            Collaboration::Broadcast(Broadcast { agents: agents.clone(), rounds: 2, clocks }),
            [6, 6, 2],
        ),
        (Collaboration::Sequential(Sequential { order: order.clone(), clocks }), [3, 3, 3]),
        (Collaboration::Debate(debate()), [6, 7, 3]),
        (Collaboration::Supervisor(supervise()), [3, 7, 7]),
        (Collaboration::Supervisor(Supervise { strict: true, ..supervise() }), [1, 7, 7]),
        (Collaboration::Supervisor(Supervise { replan: false, ..supervise() }), [3, 6, 6]),
        (
            Collaboration::Consensus(Consensus {
                agents: agents.clone(),
                judge,
                self_votes,
                clocks,
            }),
            [3, 7, 3],
        ),
        (Collaboration::Relay(Relay { order, rounds: 2, convergence, clocks }), [3, 6, 6]),
        (Collaboration::Adaptive(Adaptive::Supervise(supervise())), [2, 7, 7]),
        (Collaboration::Adaptive(Adaptive::Debate(debate())), [3, 8, 4]),
    ]
}

#[test]
fn the_bounds_are_those_of_the_table() {
    for (collaboration, [least, most, path]) in table() {
        let bounds = bounds(&quarrel(collaboration.clone()));
        let calls = Range { min: least, max: most };
        assert_eq!((bounds.total.calls, bounds.critical_path), (calls, path), "{collaboration:?}");
        assert_eq!((bounds.turns, bounds.total.requests), (calls, calls), "{collaboration:?}");
        let started = Span { min: least, max: Some(most) };
        assert_eq!(bounds.total.started, started, "{collaboration:?}");
    }
}

/// Where the first plan must be broken and the second not, a run without a second falls short.
#[test]
fn a_small_team_that_never_agrees_takes_all_of_it() {
    for (collaboration, [_, most, _]) in table() {
        let replans = !matches!(&collaboration, Collaboration::Supervisor(it) if !it.replan);
        let spec = quarrel(collaboration.clone());
        let bounds = bounds(&spec);
        let ledger = play(spec).run.ledger().clone();
        if replans {
            assert_eq!(ledger.run.calls, most, "{collaboration:?}");
            assert_eq!(
                bounds.total.tokens.max,
                Some(ledger.run.tokens.total()),
                "{collaboration:?}"
            );
            assert_eq!(
                bounds.total.output.max,
                Some(ledger.run.tokens.output),
                "{collaboration:?}"
            );
        }
    }
}

#[test]
fn scripts_are_counted_reply_by_reply() {
    let clocks = Clocks::default();
    let broadcast = Broadcast { agents: ids(&["a"]), rounds: 3, clocks };
    let mut dear = worker("a", &["one", "two"]);
    if let Target::Script(script) = &mut dear.target {
        script.replies[0].usage = Tokens { input: 100, output: 50, ..Tokens::default() };
    }
    let spec = spec(vec![dear], Collaboration::Broadcast(broadcast));
    let tokens = bounds(&spec).total.tokens;
    assert_eq!(tokens, Span { min: 150 + 2 * 7, max: Some(150 + 2 * 7) });
    assert_eq!(play(spec).run.ledger().run.tokens.total(), 164);
}

/// A debate of two models of which nothing is known but `known`.
fn models(known: Model) -> Spec {
    let (agents, clocks) = (ids(&["a", "b"]), Clocks::default());
    let debate = Debate { agents, rounds: 2, judge: "a".into(), clocks };
    let agents = vec![model("a", known.clone()), model("b", known)];
    spec(agents, Collaboration::Debate(debate))
}

fn keys(bounds: &Bounds) -> Vec<&str> {
    bounds.unknown.iter().filter_map(|unknown| unknown.key.as_deref()).collect()
}

#[test]
fn what_nothing_bounds_is_unknown_and_it_is_said_which_key_would_bound_it() {
    let unknown = Model::new("p", "m");
    let price = Some(Price::new(1.0, 2.0));
    let none = bounds(&models(unknown.clone()));
    assert_eq!((none.total.tokens.max, none.total.cost.max), (None, None));
    assert_eq!(keys(&none), ["max_output_tokens.\"p/m\"", "prices.\"p/m\""]);
    let short = bounds(&models(Model { max_output_tokens: Some(100), ..unknown.clone() }));
    assert!(short.total.tokens.max.is_some());
    assert_eq!((short.total.cost.max, keys(&short)), (None, vec!["prices.\"p/m\""]));
    let known = Model { context_window: Some(1000), price, ..unknown };
    let known = bounds(&models(known));
    // Five requests, each with its reply in a window of 1,000.
    assert_eq!(known.total.tokens.max, Some(5000));
    assert!(known.total.cost.max.is_some() && keys(&known).is_empty());
}

#[test]
fn an_attempt_that_may_be_made_again_counts_again_unless_a_limit_forbids_it() {
    let known = Model { context_window: Some(1000), ..Model::new("p", "m") };
    let mut spec = models(known);
    spec.team.agents.iter_mut().for_each(|agent| agent.retries = 2);
    assert_eq!(bounds(&spec).total.tokens.max, Some(15_000));
    spec.limits.tokens = Some(100_000);
    assert_eq!(bounds(&spec).total.tokens.max, Some(5000));
}

#[test]
fn tools_take_more_requests_and_what_they_give_is_bounded_by_the_window_alone() {
    let mut spec = models(Model { max_output_tokens: Some(100), ..Model::new("p", "m") });
    spec.team.agents[1] =
        Agent { grants: vec!["file".into()], max_steps: 4, ..spec.team.agents[1].clone() };
    let open = bounds(&spec);
    assert_eq!(open.total.calls, Range { min: 4, max: 5 });
    assert_eq!(open.total.requests, Range { min: 4, max: 3 + 2 * 4 });
    assert_eq!((open.total.started.max, open.total.tokens.max), (None, None));
    assert!(keys(&open).contains(&"context_windows.\"p/m\""));
    for agent in &mut spec.team.agents {
        let Target::Model(model) = &mut agent.target else { unreachable!("they are models") };
        model.context_window = Some(2000);
    }
    assert!(bounds(&spec).total.tokens.max.is_some_and(|most| most <= 11 * 2000));
}

#[test]
fn without_a_task_only_what_does_not_depend_on_it_is_known() {
    let of = |model: Model| {
        let spec = models(model);
        Bounds::of(&spec.collaboration, &spec.team, &spec.limits, None)
    };
    let short = Model { max_output_tokens: Some(100), ..Model::new("p", "m") };
    let unaware = of(short.clone());
    assert_eq!((unaware.total.tokens.max, unaware.total.output.max), (None, Some(500)));
    assert_eq!(unaware.unknown[0].help, "give the task");
    let windowed = of(Model { context_window: Some(1000), ..short });
    assert_eq!(windowed.total.tokens.max, Some(5000));
}

#[test]
fn the_smallest_limit_of_all_levels_is_the_one_that_holds() {
    let limits = |tokens| Limits { tokens, ..Limits::default() };
    for (run, own, effective) in
        [(Some(50), None, Some(50)), (None, Some(50), Some(50)), (Some(50), Some(90), Some(50))]
    {
        let mut spec = quarrel(Collaboration::Debate(Debate {
            agents: ids(&["a", "b"]),
            rounds: 1,
            judge: "a".into(),
            clocks: Clocks::default(),
        }));
        spec.limits = limits(run);
        spec.team.agents[0].limits = limits(own);
        assert_eq!(bounds(&spec).agents[0].limits.tokens, effective);
        assert_eq!(bounds(&spec).limits.tokens, run);
    }
    let all = Limits {
        calls: Some(3),
        cost: Some(Money::from_usd(0.5)),
        time: Some(Duration::from_secs(90)),
        ..Limits::default()
    };
    let effective = Effective::from(Limits { calls: Some(2), ..Limits::default() }.within(&all));
    let wanted = Effective {
        calls: Some(2),
        tokens: None,
        cost_usd: Some(0.5),
        time: Some(90.0),
        concurrency: CONCURRENCY,
    };
    assert_eq!(effective, wanted);
}

#[test]
fn a_limit_fits_if_all_that_can_be_taken_is_within_it() {
    let mut spec = quarrel(table().swap_remove(2).0);
    let fits = |spec: &Spec| bounds(spec).fits;
    assert_eq!(fits(&spec), Some(true), "no limit can be passed where there is none");
    for (calls, wanted) in [(7, Some(true)), (6, Some(false)), (0, Some(false))] {
        spec.limits.calls = Some(calls);
        assert_eq!(fits(&spec), wanted, "{calls}");
    }
    (spec.limits.calls, spec.limits.tokens) = (None, Some(49));
    assert_eq!(fits(&spec), Some(true));
    spec.team.agents[2].limits.tokens = Some(20);
    let bounds = bounds(&spec);
    let beyond = bounds.against.iter().find(|fit| fit.holds() != Some(true));
    let beyond = beyond.expect("c speaks three times");
    assert_eq!((beyond.agent.as_deref(), beyond.limit), (Some("c"), Limit::Tokens));
    assert_eq!((beyond.allowed, beyond.most), (20, Some(21)));
}

#[test]
fn what_cannot_be_proved_does_not_count_as_fitting() {
    let mut spec = models(Model::new("p", "m"));
    spec.limits.calls = Some(5);
    assert_eq!(bounds(&spec).fits, Some(true));
    spec.team.agents[0].grants = vec!["*".into()];
    assert_eq!(bounds(&spec).fits, None);
    let bound = bounds(&spec).against[0].clone();
    assert_eq!((bound.limit, bound.most), (Limit::Calls, None));
}

#[test]
fn the_run_s_own_limit_bounds_its_tokens_where_nothing_else_does() {
    let mut spec = models(Model::new("p", "m"));
    spec.limits.tokens = Some(9000);
    spec.team.agents[0].grants = vec!["*".into()];
    let bounds = bounds(&spec);
    assert_eq!((bounds.total.tokens.max, bounds.tokens_max), (None, Some(9000)));
}

#[test]
fn money_at_best_comes_from_the_cache_and_at_worst_does_not() {
    let price = Some(Price { cached_input: Some(0.1), ..Price::new(1.0, 10.0) });
    let known = Model { max_output_tokens: Some(100), price, ..Model::new("p", "m") };
    let Take { input, output, cost, .. } = bounds(&models(known)).total;
    let at = |input: f64, output: u64, of: u64| {
        Money::from_usd((of as f64 * input + output as f64 * 10.0) / 1e6)
    };
    assert_eq!(cost.min, at(0.1, output.min, input.min));
    assert_eq!(
        cost.max,
        Some(at(1.0, output.max.expect("it is bounded"), input.max.expect("it is bounded")))
    );
}

#[test]
fn each_later_target_of_a_chain_may_be_asked_once_more_at_its_own_price() {
    let known = |output| Model {
        max_output_tokens: Some(100),
        price: Some(Price::new(0.0, output)),
        ..Model::new("p", "m")
    };
    let mut spec = models(known(1.0));
    let alone = bounds(&spec);
    let later = [2, 3].map(|number| Fallback { number, target: Target::Model(known(10.0)) });
    spec.team.agents[0].fallbacks = later.to_vec();
    let chained = bounds(&spec);
    let [was, is] = [&alone, &chained].map(|bounds| &bounds.agents[0].take);
    assert_eq!((is.calls, is.requests.min), (was.calls, was.requests.min));
    assert_eq!(is.requests.max, 3 * was.requests.max);
    assert_eq!(is.started.max, was.started.max.map(|most| 3 * most));
    assert_eq!(is.cost.max, was.cost.max.map(|most| Money(21 * most.0)));
    assert_eq!(is.cost.min, was.cost.min);

    let spec = |fallbacks: Vec<Fallback>| {
        let mut spec = spec.clone();
        let agent = &mut spec.team.agents[0];
        (agent.grants, agent.max_steps, agent.fallbacks) = (vec!["file".into()], 5, fallbacks);
        bounds(&spec).agents[0].take.requests.max
    };
    let rounds = was.calls.max;
    assert_eq!((spec(Vec::new()), spec(later.to_vec())), (5 * rounds, 7 * rounds));
}

/// Bounds are worked out whenever a team is checked.
#[test]
fn a_large_team_is_bounded_at_once() {
    let names: Vec<String> = (0..1000).map(|n| format!("agent-{n}")).collect();
    let agents: Vec<Agent> = names
        .iter()
        .map(|name| model(name, Model { max_output_tokens: Some(4000), ..Model::new("p", "m") }))
        .collect();
    let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
    let broadcast = Broadcast { agents: ids, rounds: 100, clocks: Clocks::default() };
    let bounds = bounds(&spec(agents, Collaboration::Broadcast(broadcast)));
    assert_eq!(bounds.total.calls, Range { min: 100_000, max: 100_000 });
    assert!(bounds.total.tokens.max.is_some());
}

#[test]
fn an_echo_in_a_loop_is_named_as_what_keeps_tokens_from_being_known() {
    let file = |reply: &[&str]| {
        let edges = [(PARENT, "a"), ("a", "b"), ("b", "a"), ("b", PARENT)];
        let edges = edges.map(|(from, to)| Edge::new(from, to)).to_vec();
        let graph = testing::graph(edges);
        let known = Model { max_output_tokens: Some(100), ..Model::new("p", "m") };
        spec(vec![agent("a", reply), model("b", known)], Collaboration::Graph(graph))
    };
    let echo = bounds(&file(&[]));
    assert_eq!(echo.total.tokens.max, None);
    let told: Vec<&str> = echo.unknown.iter().map(|it| &*it.message).collect();
    assert!(
        told.contains(&"\"a\" repeats what it reads, and its words can come back to it"),
        "{told:?}"
    );
    let worded = bounds(&file(&["A"]));
    assert!(worded.total.tokens.max.is_some());
    assert!(worded.unknown.iter().all(|it| it.of != Limit::Tokens), "{:?}", worded.unknown);
}
