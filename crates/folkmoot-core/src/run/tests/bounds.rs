//! No run takes more than its bounds say, nor less if nothing failed: strategies.md §9.
//!
//! Teams, answers and faults are random; a team for which it does not hold is made smaller until
//! nothing about it can be left out.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{graphs, patterns, roles, tables};
use crate::{
    bounds::{Bounds, Take},
    call::{Answer, Call, FailureKind, Fault, Outcome, Owner, Tokens, ToolCall, Usage},
    event::Event,
    gate::Evidence,
    key::Key,
    known::Entry,
    limits::Limits,
    money::{Money, Price, Tier},
    programs::{
        Adaptive, Broadcast, Clocks, Consensus, Convergence, Debate, Relay, Sequential, Supervise,
    },
    render::{self, Message},
    run::Run,
    sim::{Happening, Random, Sim, World},
    spec::{Collaboration, Spec},
    team::{
        Agent, AgentId, Fallback, Model, Nested, Says, Script, ScriptRule, ScriptedReply, Target,
        narrow,
    },
    testing::{id, spec},
    time::Duration,
};

/// Models that keep their word, and as little more than that as can be.
struct Honest {
    seed: u64,
    /// Of a hundred calls, how many fail.
    faults: u64,
}

impl World for Honest {
    fn answer(&mut self, spec: &Spec, run: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let mix = |mixed, byte| Random::new(mixed ^ u64::from(byte)).next();
        let mut random = Random::new(key.as_str().bytes().fold(self.seed, mix));
        let fails = random.below(100) < self.faults;
        if fails && entry.expires.is_some() && random.below(3) == 0 {
            return None;
        }
        let (outcome, usage) = match &entry.call {
            Call::Person { .. }
            | Call::Team { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => return None,
            Call::Gate { .. } => {
                (Ok(Evidence::of(random.below(3) > 0).answer().into()), Usage::default())
            }
            Call::Tool { .. } if fails => (Err(failed()), Usage::default()),
            Call::Tool { .. } => (Ok(text(&mut random, 2000)), Usage::default()),
            Call::Agent { prompt, .. } => {
                let agent = &spec.team.asked(&entry.call);
                let own = spec.of(entry.call.agent()).0;
                let messages = render::messages(spec, run.known(), agent, prompt);
                let (outcome, usage) = match &agent.target {
                    Target::Model(model) => self.model(&mut random, agent, model, &messages, entry),
                    Target::Script(script) => {
                        let (outcome, usage) = scripted(script, entry.nth, &messages);
                        (outcome, with_attempts(&mut random, agent, entry, usage))
                    }
                    Target::Demo => {
                        let (outcome, usage) = demo(&mut random, fails, &messages);
                        (outcome, with_attempts(&mut random, agent, entry, usage))
                    }
                    Target::Team(_) => return None,
                    Target::Cli(_) | Target::Acp(_) | Target::A2a(_) if fails => {
                        (Err(failed()), Usage::default())
                    }
                    Target::Cli(_) | Target::Acp(_) | Target::A2a(_) => {
                        (Ok(text(&mut random, 3000)), Usage::default())
                    }
                };
                let is_free = !matches!(agent.target, Target::Script(_));
                let is_told = graphs::is_graph(own) && is_free && random.below(4) > 0;
                let told = is_told.then(|| graphs::says(&mut random, own, &entry.call));
                let is_role = roles::is_roles(own) && is_free && random.below(3) > 0;
                let told = told.or_else(|| is_role.then(|| roles::says(&mut random)));
                // The demo has no tools.
                let told = told.filter(|it| {
                    it.tool_calls.is_empty() || matches!(agent.target, Target::Model(_))
                });
                let signals = patterns::is_pattern(own) && is_free && random.below(4) > 0;
                let told = told.or_else(|| signals.then(|| patterns::says(&mut random)));
                let sits = tables::is_table(own) && is_free && random.below(4) > 0;
                let told = told.or_else(|| sits.then(|| tables::says(&mut random)));
                (outcome.map(|said| shorter(&said, told).unwrap_or(said)), usage)
            }
        };
        let after = Duration(random.below(2_000_000));
        Some(Happening { after, outcome, usage })
    }
}

impl Honest {
    /// One call of a model: attempts that fail, and a last one that perhaps does not.
    fn model(
        &self,
        random: &mut Random,
        agent: &Agent,
        model: &Model,
        messages: &[Message],
        entry: &Entry,
    ) -> (Outcome, Usage) {
        // Each has a tokenizer of its own, which takes so many bytes for a token.
        let bytes = [1, 1, 2, 4, 4][(self.seed ^ (31 * agent.name.len() as u64)) as usize % 5];
        let input = messages.iter().map(|it| size(it).div_ceil(bytes)).sum::<u64>();
        let window = model.context_window.unwrap_or(u64::MAX);
        let asked = entry.reserved.map(|aside| aside.tokens.output).or(model.max_output_tokens);
        let room = asked.unwrap_or(3000).min(window.saturating_sub(input));
        if room == 0 {
            return (Err(failed()), Usage::default());
        }
        let retries = if entry.reserved.is_some() { 0 } else { agent.retries };
        let (mut used, mut cost) = (Tokens::default(), Some(Money(0)));
        let attempts = 1 + random.below(u64::from(retries) + 1);
        let mut outcome = Err(failed());
        for attempt in 1..=attempts {
            let output = if random.below(2) == 0 { room } else { 1 + random.below(room) };
            let is_last = attempt == attempts && random.below(100) >= self.faults;
            outcome = if is_last { Ok(reply(random, agent, output * bytes)) } else { outcome };
            let cached = random.below(input + 1);
            let cache_write = random.below(input - cached + 1);
            let tokens =
                Tokens { input: input - cached - cache_write, cached, cache_write, output };
            cost = cost.zip(model.price.as_ref()).map(|(sum, price)| sum + price.of(tokens));
            used = used + tokens;
        }
        (outcome, Usage { tokens: used, cost, estimated: false })
    }
}

/// What is to be said instead, if it is no longer.
fn shorter(said: &Answer, instead: Option<Answer>) -> Option<Arc<Answer>> {
    let size = |it: &Answer| {
        let calls = it.tool_calls.iter().map(|it| it.name.len() + it.arguments.to_string().len());
        it.text.len() + calls.sum::<usize>()
    };
    instead.filter(|it| said.tool_calls.is_empty() && size(it) <= size(said)).map(Arc::new)
}

fn size(message: &Message) -> u64 {
    let calls = message.tool_calls.iter();
    let calls: usize =
        calls.map(|it| it.id.len() + it.name.len() + it.arguments.to_string().len()).sum();
    (message.content.len() + calls) as u64
}

fn failed() -> Fault {
    Fault::failed(FailureKind::Incomplete, "boom ".repeat(200))
}

/// A reply of so many bytes at most.
fn reply(random: &mut Random, agent: &Agent, most: u64) -> Arc<Answer> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if !agent.grants.is_empty() && most > 200 && random.below(2) == 0 {
        let names = ["file.read", "shell", "file.write"];
        let calls = names.iter().take(1 + random.below(3) as usize).map(|name| ToolCall {
            id: (*name).into(),
            name: (*name).into(),
            arguments: json!({ "p": 1 }),
        });
        return Answer { tool_calls: calls.collect(), ..Answer::text("I look") }.into();
    }
    text(random, most)
}

fn text(random: &mut Random, most: usize) -> Arc<Answer> {
    let plan = |tasks: u64, random: &mut Random| {
        let task = |n: u64| {
            let needs: Vec<String> = (1..n).map(|it| format!("t {it}")).collect();
            let worker = ["b", "cc", "ddd"][random.below(3) as usize];
            json!({ "id": format!("t {n}"), "description": "<reply".repeat(8), "agent": worker, "depends_on": needs })
        };
        json!({ "tasks": (1..=tasks).map(task).collect::<Vec<_>>() }).to_string()
    };
    let kind = random.below(16);
    let mut text = match kind {
        0 => "same".to_owned(),
        1 => "vote:a".to_owned(),
        2 => "agree\nyes".to_owned(),
        3 => " ".to_owned(),
        4 => plan(1 + random.below(6), random),
        5 => plan(3, random),
        6 => format!("{}1{}", "{\"tasks\": [", ",2".repeat(most / 3)) + "]}",
        12 => "1. do it\n".repeat(most / 9 + 1),
        7 | 8 => "<reply".repeat(most / 6 + 1),
        9..=11 => "道".repeat(most / 3 + 1),
        _ => "word ".repeat(most / 5 + 1) + &random.next().to_string(),
    };
    text.truncate(text.floor_char_boundary(most));
    Answer::text(text).into()
}

/// What one call uses whose reply uses `last`, and before which attempts were cut off, as many as its
/// agent may make: in a rehearsal they befall scripts and the demo too.
fn with_attempts(random: &mut Random, agent: &Agent, entry: &Entry, last: Usage) -> Usage {
    let retries = if entry.reserved.is_some() { 0 } else { agent.retries };
    let lost = random.below(u64::from(retries) + 1);
    (0..lost).fold(last, |used, _| {
        let output = random.below(last.tokens.output + 1);
        used + Usage { tokens: Tokens { output, ..last.tokens }, ..last }
    })
}

fn scripted(script: &Script, nth: u64, messages: &[Message]) -> (Outcome, Usage) {
    let last = messages.last().map_or("", |message| &*message.content);
    let echo = ScriptedReply::text(last);
    let reply = script.reply(nth, last).unwrap_or(&echo);
    (reply.outcome(), Usage { tokens: reply.usage, ..Usage::default() })
}

fn demo(random: &mut Random, fails: bool, messages: &[Message]) -> (Outcome, Usage) {
    let read = messages.iter().map(|it| it.content.len()).sum::<usize>();
    let usage = Usage { tokens: crate::team::DEMO_USAGE, ..Usage::default() };
    (if fails { Err(failed()) } else { Ok(text(random, read.min(4000))) }, usage)
}

fn price() -> impl Strategy<Value = Option<Price>> {
    prop_oneof![
        Just(None),
        Just(Some(Price::new(1.0, 4.0))),
        Just(Some(Price { cached_input: Some(0.1), ..Price::new(1.0, 4.0) })),
        Just(Some(Price { cached_input: Some(1.5), ..Price::new(1.0, 0.5) })),
        Just(Some(Price { cache_write: Some(2.5), above: vec![tier()], ..Price::new(1.0, 4.0) })),
    ]
}

/// Longer requests are dearer to read and cheaper to write.
fn tier() -> Tier {
    let cached_input = Some(0.2);
    Tier { tokens: 200, input: 2.0, output: 1.0, cached_input, cache_write: None }
}

fn model() -> impl Strategy<Value = Target> {
    let most = prop_oneof![1 => Just(None), 4 => (1_u64..900).prop_map(Some)];
    let window = prop_oneof![
        3 => Just(None),
        1 => prop_oneof![1_u64..3000, 3000_u64..40_000].prop_map(Some),
    ];
    (most, window, price()).prop_map(|(max_output_tokens, context_window, price)| {
        Target::Model(Model { max_output_tokens, context_window, price, ..Model::new("p", "m") })
    })
}

fn scripted_reply() -> impl Strategy<Value = ScriptedReply> {
    let look = ToolCall { id: "1".into(), name: "file.read".into(), arguments: json!({}) };
    let says = prop_oneof![
        4 => "[a-z:]{0,12}".prop_map(|text| Says::Text(text.into())),
        1 => Just(Says::Text("vote:a".into())),
        1 => Just(Says::Error { text: "no".into(), kind: FailureKind::Harness }),
        1 => Just(Says::Json(json!({ "tasks": ["x", "y", "z"] }))),
        1 => (1_usize..3).prop_map(move |n| {
            Says::Tools { calls: vec![look.clone(); n], text: "so".into() }
        }),
    ];
    (says, 0_u64..90, 0_u64..9, 0_u64..90).prop_map(|(says, input, cached, output)| ScriptedReply {
        says,
        usage: Tokens { input, cached, output, ..Tokens::default() },
        ..ScriptedReply::text("")
    })
}

fn script() -> impl Strategy<Value = Target> {
    let rule = scripted_reply().prop_map(|reply| ScriptRule { contains: "vote".into(), reply });
    let rules = prop_oneof![3 => Just(Vec::new()), 1 => rule.prop_map(|rule| vec![rule])];
    (prop::collection::vec(scripted_reply(), 0..4), rules)
        .prop_map(|(replies, rules)| Target::Script(Script { replies, rules, label: None }))
}

fn limits(rare: u32) -> impl Strategy<Value = Limits> {
    let maybe = move |most: u64| prop_oneof![rare => Just(None), 1 => (0..most).prop_map(Some)];
    (maybe(12), maybe(30_000), maybe(60_000), maybe(4)).prop_map(|(calls, tokens, cost, slots)| {
        let cost = cost.map(|it| Money(it * 1_000_000));
        let concurrency = slots.map(|it| it + 1);
        Limits { calls, tokens, cost, concurrency, ..Limits::default() }
    })
}

fn member() -> impl Strategy<Value = Agent> {
    let target = || prop_oneof![6 => model(), 3 => script(), 1 => Just(Target::Demo)];
    let later = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(target(), 1..3),
    ];
    let grants = prop_oneof![3 => Just(Vec::new()), 1 => Just(vec!["file".into()])];
    (target(), later, grants, 1_u32..4, 0_u32..3, limits(12)).prop_map(
        |(target, later, grants, max_steps, retries, limits)| Agent {
            grants,
            max_steps,
            retries,
            limits,
            fallbacks: (2..)
                .zip(later)
                .map(|(number, target)| Fallback { number, target })
                .collect(),
            ..Agent::new("", target)
        },
    )
}

/// How a team works; indices are taken modulo the number of its agents.
fn work() -> impl Strategy<Value = (u8, u32, Vec<usize>, bool, bool)> {
    let order = prop::collection::vec(0_usize..4, 1..4);
    (0_u8..8, 1_u32..4, order, any::<bool>(), prop::bool::weighted(0.2))
}

fn collaboration(
    (kind, rounds, order, flag, strict): (u8, u32, Vec<usize>, bool, bool),
    agents: Vec<AgentId>,
    clocks: Clocks,
) -> Collaboration {
    let one = |at: usize| agents[at % agents.len()].clone();
    let (judge, order) = (one(order[0]), order.into_iter().map(one).collect());
    let supervise = || Supervise {
        supervisor: agents[0].clone(),
        workers: agents[1..].to_vec(),
        replan: flag,
        strict,
        max_tasks: rounds * 2 - 1,
        clocks,
    };
    let debate = |agents: &[AgentId]| Debate {
        agents: agents.to_vec(),
        rounds,
        judge: judge.clone(),
        clocks,
    };
    match kind {
        0 => Collaboration::Broadcast(Broadcast { agents, rounds, clocks }),
        1 => Collaboration::Sequential(Sequential { order, clocks }),
        2 => Collaboration::Debate(debate(&agents)),
        3 => Collaboration::Supervisor(supervise()),
        4 => Collaboration::Consensus(Consensus { agents, judge, self_votes: flag, clocks }),
        5 => {
            let convergence = if flag { Convergence::Normalized } else { Convergence::Exact };
            Collaboration::Relay(Relay { order, rounds, convergence, clocks })
        }
        6 => Collaboration::Adaptive(Adaptive::Debate(debate(&agents))),
        _ => Collaboration::Adaptive(Adaptive::Supervise(supervise())),
    }
}

fn teams() -> impl Strategy<Value = Spec> {
    let members = prop::collection::vec(member(), 2..5);
    let task =
        prop_oneof![Just("TASK"), Just("比较两种方案的优劣"), Just("<reply> and so on, at length")];
    let timeout = prop::option::of(200_u64..3000);
    (members, work(), limits(6), task, timeout).prop_map(
        |(members, work, limits, task, timeout)| {
            let names = ["a", "b", "cc", "ddd"];
            let agents: Vec<Agent> = (members.into_iter().zip(names))
                .map(|(agent, name)| Agent { id: id(name), name: name.into(), ..agent })
                .collect();
            let clocks = Clocks { timeout: timeout.map(Duration::from_millis), call_timeout: None };
            let ids = agents.iter().map(|agent| agent.id.clone()).collect();
            let collaboration = collaboration(work, ids, clocks);
            Spec { limits, task: task.into(), ..spec(agents, collaboration) }
        },
    )
}

/// What became of a run, counted from its log alone.
struct Count {
    turns: u64,
    requests: u64,
    started: u64,
    input: u64,
    output: u64,
    cost: Money,
}

fn count(sim: &Sim, is_own: impl Fn(&AgentId) -> bool) -> Count {
    let is_later = |key: &Key| {
        let is_of_a_chain = key.as_str().rsplit_once("/target-").is_some();
        let step = key.as_str().rsplit_once("/model-").and_then(|(_, step)| step.parse().ok());
        is_of_a_chain || step.is_some_and(|step: u64| step > 1)
    };
    let asked = sim.log.iter().filter_map(|record| match &record.event {
        Event::Asked { key, call, .. } if is_own(call.agent()) && !call.is_for_person() => {
            Some((key, call))
        }
        _ => None,
    });
    let requests = asked.clone().filter(|(_, call)| matches!(call, Call::Agent { .. }));
    let spent = sim.run.known().charged().filter(|entry| is_own(entry.call.agent()));
    let usages: Vec<Usage> = spent.flat_map(|entry| entry.usages.clone()).collect();
    // A team's turn is one, whatever is asked below it.
    let is_turn = |(key, call): &(&Key, &Call)| {
        let is_asked = matches!(call, Call::Agent { .. }) && !is_later(key);
        call.agent().ranks().count() == 1 && (call.is_of_team() || is_asked)
    };
    Count {
        turns: asked.clone().filter(is_turn).count() as u64,
        requests: requests.count() as u64,
        started: asked.filter(|(_, call)| call.is_performed()).count() as u64,
        input: usages.iter().map(|it| it.tokens.read()).sum(),
        output: usages.iter().map(|it| it.tokens.output).sum(),
        cost: Money(usages.iter().filter_map(|it| it.cost).map(|it| it.0).sum()),
    }
}

/// What of `count` is more than `take` says, and what is less.
fn beyond(take: &Take, count: &Count) -> (Vec<&'static str>, Vec<&'static str>) {
    let Count { turns, requests, started, input, output, cost } = *count;
    let all = [
        ("calls", turns, take.calls.min, Some(take.calls.max)),
        ("requests", requests, take.requests.min, Some(take.requests.max)),
        ("started", started, take.started.min, take.started.max),
        ("input", input, take.input.min, take.input.max),
        ("output", output, take.output.min, take.output.max),
        ("tokens", input + output, take.tokens.min, take.tokens.max),
        ("cost", cost.0, take.cost.min.0, take.cost.max.map(|it| it.0)),
    ];
    let over = all.iter().filter(|(_, is, _, most)| most.is_some_and(|most| *is > most));
    let under = all.iter().filter(|(_, is, least, _)| is < least);
    (over.map(|it| it.0).collect(), under.map(|it| it.0).collect())
}

/// What all calls of a phase have in their keys, by the names that phases have.
fn is_of_phase(key: &Key, phase: &str) -> bool {
    let is_of_lead = ["lead/final", "lead/model-"].iter().any(|it| key.as_str().starts_with(it));
    match phase {
        "lead" => return is_of_lead,
        "graph" | "dispatch" => return !is_of_lead,
        _ => {}
    }
    let head = key.as_str().split('/').next().unwrap_or_default();
    let round = |name: &str| name.strip_prefix("round-").and_then(|it| it.parse::<u32>().ok());
    match (phase.split_once(" to "), round(head)) {
        (Some((first, last)), Some(n)) => round(first) <= Some(n) && Some(n) <= round(last),
        _ => head == phase || phase == "work" && head == "solo",
    }
}

fn check(
    spec: Spec,
    mut world: Honest,
    cancelled_after: Option<usize>,
) -> Result<Sim, TestCaseError> {
    let bounds = Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task));
    let unaware = Bounds::of(&spec.collaboration, &spec.team, &spec.limits, None);
    let mut sim = Sim::start(Arc::new(spec), world.seed, 0, &mut world);
    while sim.run.ending().is_none() {
        let answered = sim.log.iter().filter(|it| matches!(it.event, Event::Answered { .. }));
        if cancelled_after == Some(answered.count()) && sim.run.stop().is_none() {
            sim.feed(Event::CancelRequested, &mut world);
        } else if sim.run.waits_for_person() && any_spec(&sim.spec, patterns::is_pattern) {
            // What an answer leads to is not foreseen.
            break;
        } else if sim.run.waits_for_person() {
            sim.feed_all(graphs::answers(&sim, world.seed), &mut world);
        } else {
            prop_assert!(sim.advance(&mut world), "it does not end");
        }
    }
    let whole = count(&sim, |_| true);
    let is_graph = graphs::is_graph(&sim.spec);
    let has_teams = sim.spec.team.everyone().any(|agent| agent.team().is_some());
    let nothing_failed = if has_teams {
        // How a team below goes its way is told by its own law.
        let may_stop_short = |it: &Spec| graphs::is_graph(it) || patterns::is_pattern(it);
        !any_spec(&sim.spec, may_stop_short) && has_no_fault(&sim)
    } else if is_graph {
        has_no_failed_step(&sim)
    } else {
        has_no_fault(&sim)
    } && (!patterns::is_pattern(&sim.spec)
        || patterns::has_gone_its_way(&sim));
    if is_graph && nothing_failed && !graphs::is_led(&sim.spec) {
        let (turns, calls) = (steps(&sim).len() as u64, whole.turns);
        prop_assert!(turns <= bounds.turns.max, "{turns} turns: {}", json!(bounds));
        prop_assert!(calls <= bounds.total.calls.max, "{calls} calls: {}", json!(bounds));
    }
    for bounds in [&bounds, &unaware] {
        let (mut over, mut under) = beyond(&bounds.total, &whole);
        if is_graph || roles::is_roles(&sim.spec) {
            // How many calls a graph takes is told for the case that none fails, and of a role team
            // for the case that it asks nobody.
            over.retain(|it| *it != "calls");
        }
        if is_graph {
            under.clear();
        }
        prop_assert!(over.is_empty(), "the run takes more {over:?}: {}", json!(bounds));
        prop_assert!(!nothing_failed || under.is_empty(), "it takes less {under:?}");
        let tokens = whole.input + whole.output;
        prop_assert!(bounds.tokens_max.is_none_or(|most| tokens <= most), "{tokens} tokens");
        for share in &bounds.agents {
            let is_own = |it: &AgentId| it.ranks().any(|rank| rank == share.id);
            let (over, under) = beyond(&share.take, &count(&sim, is_own));
            prop_assert!(over.is_empty(), "{} takes more {over:?}: {}", share.name, json!(bounds));
            let may_take_less = is_graph || !nothing_failed;
            prop_assert!(may_take_less || under.is_empty(), "{} takes less", share.name);
        }
        // What is set aside counts bytes, which can be more than a window holds.
        let has_window = |agent: &Agent| {
            let later = agent.fallbacks.iter().map(|it| &it.target);
            let is_one =
                |it: &Target| matches!(it, Target::Model(model) if model.context_window.is_some());
            [&agent.target].into_iter().chain(later).any(is_one)
        };
        let is_counted_alike = !sim.spec.team.all().iter().any(has_window);
        if bounds.fits == Some(true) && is_counted_alike {
            let refused = sim.run.known().iter().find(|(_, entry)| {
                // A budget of its program's own is not one of its limits, nor are those in a team below.
                let is_told = |of: Owner| match of {
                    Owner::Run => true,
                    Owner::Scope => !roles::is_roles(&sim.spec) && !has_teams,
                    Owner::Agent => !has_teams,
                };
                matches!(entry.fault(), Some(Fault::OverBudget { of, .. }) if is_told(*of))
            });
            prop_assert!(refused.is_none(), "what fits is refused: {refused:?}");
        }
    }
    if patterns::is_pattern(&sim.spec) || tables::is_table(&sim.spec) {
        return Ok(sim);
    }
    let phases: Vec<&str> = bounds.phases.iter().map(|phase| &*phase.name).collect();
    for (key, _) in sim.run.known().iter() {
        let of = phases.iter().filter(|phase| is_of_phase(key, phase)).count();
        prop_assert_eq!(of, 1, "{} is in one of {:?}", key, phases);
    }
    Ok(sim)
}

fn has_no_fault(sim: &Sim) -> bool {
    sim.run.known().iter().all(|(_, entry)| entry.fault().is_none())
}

/// Whether this, or a team that is a member of it, is so.
pub(super) fn any_spec(spec: &Spec, is_so: impl Copy + Fn(&Spec) -> bool) -> bool {
    let mut teams = spec.team.everyone().filter_map(Agent::team);
    is_so(spec) || teams.any(|nested| any_spec(&nested.spec, is_so))
}

/// The steps of a graph.
fn steps(sim: &Sim) -> Vec<serde_json::Value> {
    let rounds = sim.run.account(sim.spec.program(), &sim.spec).rounds;
    rounds.iter().filter_map(|round| round["steps"].as_array()).flatten().cloned().collect()
}

/// Whether every step has an answer, and so has every question beside the steps.
fn has_no_failed_step(sim: &Sim) -> bool {
    let is_missed = |fault: &Fault| *fault != Fault::Unwanted;
    sim.run.known().iter().all(|(_, entry)| !entry.fault().is_some_and(is_missed))
        && steps(sim).iter().all(|step| step["response"].get("error").is_none())
}

/// Teams that work along random graphs, with a lead or without.
fn graph_teams() -> impl Strategy<Value = Spec> {
    let members = prop::collection::vec(member(), 3..6);
    let timeout = prop::option::of(200_u64..3000);
    (members, limits(6), timeout, any::<u64>(), prop::option::of(1_u32..9)).prop_map(
        |(members, limits, timeout, seed, steps)| {
            let names = ["parent", "a", "b", "cc", "ddd"];
            let mut agents: Vec<Agent> = (members.into_iter().zip(names))
                .map(|(agent, name)| Agent { id: id(name), name: name.into(), ..agent })
                .collect();
            let clocks = Clocks { timeout: timeout.map(Duration::from_millis), call_timeout: None };
            let lead = agents.remove(0);
            let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
            let work = graphs::shape(&mut Random::new(seed), &ids, clocks);
            let steps = steps.or(matches!(work, Collaboration::Dispatch(_)).then_some(2));
            let mut spec = Spec { limits, ..spec(agents, work) };
            let lead = steps.map(|max_steps| Agent { max_steps, grants: Vec::new(), ..lead });
            spec.team.staff = lead.into_iter().collect();
            graphs::without_a_missing_lead(spec)
        },
    )
}

/// Teams that work by a pattern; some agents play several roles.
fn pattern_teams() -> impl Strategy<Value = Spec> {
    let members = prop::collection::vec(member(), 2..5);
    let timeout = prop::option::of(200_u64..9000);
    (members, limits(6), timeout, any::<u64>()).prop_map(|(members, limits, timeout, seed)| {
        let names = ["a", "b", "cc", "ddd"];
        let agents: Vec<Agent> = (members.into_iter().zip(names))
            .map(|(agent, name)| Agent { id: id(name), name: name.into(), ..agent })
            .collect();
        let clocks = Clocks { timeout: timeout.map(Duration::from_millis), call_timeout: None };
        let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
        let work = patterns::shape(&mut Random::new(seed), &ids, clocks);
        Spec { limits, ..spec(agents, work) }
    })
}

fn role_teams() -> impl Strategy<Value = Spec> {
    let target = || prop_oneof![6 => model(), 3 => script(), 1 => Just(Target::Demo)];
    let economy = prop::collection::vec(target(), 0..3);
    let members = prop::collection::vec((member(), economy), 5);
    (members, limits(6), prop::option::of(200_u64..3000), any::<u64>()).prop_map(
        |(members, limits, timeout, seed)| {
            let clocks = Clocks { timeout: timeout.map(Duration::from_millis), call_timeout: None };
            let work = roles::shape(&mut Random::new(seed), &[], clocks);
            let mut members = members.into_iter();
            let spec = roles::cast(spec(Vec::new(), work), |name| {
                let (agent, economy) = members.next().expect("there are five");
                roles::saving(Agent { id: id(name), name: name.into(), ..agent }, economy)
            });
            Spec { limits, ..spec }
        },
    )
}

/// Teams of which members are teams, perhaps two of them the same, whose members may be teams in
/// their turn.
fn teams_of_teams() -> impl Strategy<Value = Spec> {
    let outer = prop_oneof![4 => teams(), 2 => graph_teams(), 1 => tables()].boxed();
    let inner = prop_oneof![
        4 => teams(),
        2 => graph_teams(),
        1 => pattern_teams(),
        1 => role_teams(),
        1 => tables(),
    ];
    let inner = inner.boxed();
    let inmost = prop::option::weighted(0.3, inner.clone());
    (outer, inner, inmost, any::<prop::sample::Index>(), prop::bool::weighted(0.3)).prop_map(
        |(mut outer, mut inner, inmost, at, is_twice)| {
            // The role team has no members that are teams.
            let holder =
                inner.team.agents.last_mut().filter(|_| !misses_teams(&inner.collaboration));
            if let Some((agent, inmost)) = holder.zip(inmost) {
                answered_by(agent, &inmost);
            }
            let at = at.index(outer.team.agents.len());
            answered_by(&mut outer.team.agents[at], &inner);
            if let Some(other) = outer.team.agents.get_mut(at + 1).filter(|_| is_twice) {
                answered_by(other, &inner);
            }
            outer
        },
    )
}

/// Whether a way of working has no members that are teams.
fn misses_teams(collaboration: &Collaboration) -> bool {
    matches!(collaboration, Collaboration::Roles(_) | Collaboration::Pattern(_))
}

/// Lets this team answer for an agent.
fn answered_by(agent: &mut Agent, team: &Spec) {
    let nested =
        Nested { file: "inner.yaml".into(), spec: Spec { task: "".into(), ..team.clone() } };
    (agent.target, agent.fallbacks, agent.retries) =
        (Target::Team(Box::new(nested)), Vec::new(), 0);
    narrow(agent);
}

/// Round tables.
fn tables() -> impl Strategy<Value = Spec> {
    let members = prop::collection::vec(member(), 1..4);
    let timeout = prop::option::of(200_u64..3000);
    (members, limits(6), timeout, any::<u64>()).prop_map(|(members, limits, timeout, seed)| {
        let names = ["a", "b", "cc"];
        let agents: Vec<Agent> = (members.into_iter().zip(names))
            .map(|(agent, name)| Agent { id: id(name), name: name.into(), ..agent })
            .collect();
        let clocks = Clocks { timeout: timeout.map(Duration::from_millis), call_timeout: None };
        let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
        let work = tables::shape(&mut Random::new(seed), &ids, clocks);
        Spec { limits, ..spec(agents, work) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_run_takes_more_than_its_bounds_nor_less_if_nothing_failed(
        spec in teams(),
        seed in any::<u64>(),
        faults in prop_oneof![Just(0_u64), 1_u64..60],
        cancelled_after in prop_oneof![8 => Just(None), 1 => (0_usize..6).prop_map(Some)],
    ) {
        check(spec, Honest { seed, faults }, cancelled_after)?;
    }

    #[test]
    fn no_pattern_takes_more_than_its_bounds_nor_less_if_nothing_failed(
        spec in pattern_teams(),
        seed in any::<u64>(),
        faults in prop_oneof![Just(0_u64), 1_u64..60],
        cancelled_after in prop_oneof![8 => Just(None), 1 => (0_usize..6).prop_map(Some)],
    ) {
        check(spec, Honest { seed, faults }, cancelled_after)?;
    }

    #[test]
    fn no_graph_takes_more_than_its_bounds(
        spec in graph_teams(),
        seed in any::<u64>(),
        faults in prop_oneof![Just(0_u64), 1_u64..60],
        cancelled_after in prop_oneof![8 => Just(None), 1 => (0_usize..6).prop_map(Some)],
    ) {
        check(spec, Honest { seed, faults }, cancelled_after)?;
    }

    #[test]
    fn no_round_table_takes_more_than_its_bounds_nor_less_if_nothing_failed(
        spec in tables(),
        seed in any::<u64>(),
        faults in prop_oneof![Just(0_u64), 1_u64..60],
        cancelled_after in prop_oneof![8 => Just(None), 1 => (0_usize..6).prop_map(Some)],
    ) {
        check(spec, Honest { seed, faults }, cancelled_after)?;
    }

    #[test]
    fn no_role_team_takes_more_than_its_bounds(
        spec in role_teams(),
        seed in any::<u64>(),
        faults in prop_oneof![Just(0_u64), 1_u64..60],
        cancelled_after in prop_oneof![8 => Just(None), 1 => (0_usize..6).prop_map(Some)],
    ) {
        check(spec, Honest { seed, faults }, cancelled_after)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_team_of_teams_takes_more_than_its_bounds_nor_less_if_nothing_failed(
        spec in teams_of_teams(),
        seed in any::<u64>(),
        faults in prop_oneof![Just(0_u64), 1_u64..60],
        cancelled_after in prop_oneof![8 => Just(None), 1 => (0_usize..6).prop_map(Some)],
    ) {
        check(spec, Honest { seed, faults }, cancelled_after)?;
    }
}
