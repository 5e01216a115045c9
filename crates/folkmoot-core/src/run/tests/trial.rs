//! A random team, and what happens to it beside the answers of its world.

use std::{collections::BTreeMap, sync::Arc};

use super::{graphs, patterns, roles, tables, world::Answers};
use crate::{
    call::{Answer, Fault, Tokens, Usage},
    event::{Event, Record, Settled},
    key::Key,
    limits::Limits,
    money::{Money, Price, Tier},
    programs::{
        Adaptive, Broadcast, Clocks, Consensus, Convergence, Debate, Relay, Sequential, Supervise,
    },
    run::Run,
    sim::{
        Random, Sim,
        hazard::{Hazard, Hazards},
        weather::Weather,
    },
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Fallback, Model, Nested, PARENT, Target, narrow},
    testing::{agent, ids, spec},
    time::Duration,
};

type Strategy = fn(&mut Random, &[AgentId], Clocks) -> Collaboration;

/// How a team can be told to work; a further strategy is a further line.
const STRATEGIES: [Strategy; 9] = [
    broadcast,
    sequential,
    debate,
    consensus,
    relay,
    supervise,
    adaptive,
    patterns::shape,
    roles::shape,
];

/// Ways of working in which any agent may be a team.
const OUTER: [Strategy; 8] =
    [broadcast, sequential, debate, consensus, relay, supervise, adaptive, tables::shape];

/// Ways of working in which it matters who answers first.
const GRAPHS: [Strategy; 3] = [graphs::shape; 3];
const TABLES: [Strategy; 1] = [tables::shape];

fn broadcast(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    Collaboration::Broadcast(Broadcast { agents: agents.to_vec(), rounds: rounds(random), clocks })
}

fn sequential(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    Collaboration::Sequential(Sequential { order: order(random, agents), clocks })
}

fn debate(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    Collaboration::Debate(debaters(random, agents, clocks))
}

fn debaters(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Debate {
    let (judge, rounds) = (random.pick(agents), rounds(random));
    Debate { agents: agents[..2].to_vec(), rounds, judge, clocks }
}

fn consensus(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    let (agents, judge, self_votes) = (agents.to_vec(), random.pick(agents), random.one_in(2));
    Collaboration::Consensus(Consensus { agents, judge, self_votes, clocks })
}

fn relay(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    let (order, rounds) = (order(random, agents), rounds(random));
    let convergence = random.pick(&[Convergence::Exact, Convergence::Normalized]);
    Collaboration::Relay(Relay { order, rounds, convergence, clocks })
}

fn supervise(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    Collaboration::Supervisor(supervisor(random, agents, clocks))
}

fn supervisor(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Supervise {
    let (supervisor, workers) = (agents[0].clone(), agents[1..].to_vec());
    let (replan, strict) = (random.one_in(2), random.one_in(6));
    Supervise { supervisor, workers, replan, strict, max_tasks: 1 + rounds(random), clocks }
}

fn adaptive(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    Collaboration::Adaptive(if random.one_in(2) {
        Adaptive::Supervise(supervisor(random, agents, clocks))
    } else {
        Adaptive::Debate(debaters(random, agents, clocks))
    })
}

fn rounds(random: &mut Random) -> u32 {
    random.pick(&[1, 1, 2, 3])
}

fn order(random: &mut Random, agents: &[AgentId]) -> Vec<AgentId> {
    (0..=random.below(3)).map(|_| random.pick(agents)).collect()
}

fn perhaps<T>(random: &mut Random, n: u64, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
    random.one_in(n).then(|| value(random))
}

/// Clocks that meet the answers of the world, which take up to two seconds.
fn clocks(random: &mut Random) -> Clocks {
    let clock = |random: &mut Random| Duration::from_millis(1 + random.below(4000));
    Clocks { timeout: perhaps(random, 3, clock), call_timeout: perhaps(random, 6, clock) }
}

/// Each kind of limit once in `rare` cases, zero among them.
fn limits(random: &mut Random, rare: u64) -> Limits {
    let money = |it: &mut Random| Money(it.pick(&[0, 1, 3_000, 9_000, 40_000]) * 1_000_000);
    Limits {
        calls: perhaps(random, rare, |it| it.below(10)),
        tokens: perhaps(random, rare, |it| it.pick(&[0, 1, 1000, 3000, 9000, 20_000])),
        cost: perhaps(random, rare, money),
        time: perhaps(random, rare, |it| Duration::from_millis(it.pick(&[0, 1, 900, 3000, 6000]))),
        concurrency: perhaps(random, rare, |it| it.pick(&[0, 1, 1, 2, 2])),
        ..Limits::default()
    }
}

/// One price for all, or one with dearer tokens in longer requests.
fn price(random: &mut Random) -> Price {
    let tier =
        Tier { tokens: 500, input: 2.0, output: 5.0, cache_write: Some(2.5), cached_input: None };
    let above = perhaps(random, 2, |_| vec![tier]).unwrap_or_default();
    Price { cached_input: Some(0.1), cache_write: Some(1.25), above, ..Price::new(1.0, 4.0) }
}

fn target(random: &mut Random) -> Target {
    if random.one_in(4) {
        return Target::Demo;
    }
    Target::Model(Model {
        provider: random.pick(&["p", "q"]).into(),
        model: "m".into(),
        max_output_tokens: perhaps(random, 2, |it| 1 + it.below(900)),
        context_window: perhaps(random, 4, |it| 1 + it.below(2000)),
        price: perhaps(random, 2, price),
    })
}

fn member(random: &mut Random, name: &str) -> Agent {
    let fallback = |it: &mut Random, number| Fallback { number, target: target(it) };
    let mut fallbacks = Vec::new();
    for number in [2, 4] {
        fallbacks.extend(perhaps(random, 3, |it| fallback(it, number)));
    }
    let target = target(random);
    let grants = perhaps(random, 4, |_| vec!["file".into()]).unwrap_or_default();
    let max_steps = 1 + random.below(3) as u32;
    Agent { limits: limits(random, 24), grants, max_steps, target, fallbacks, ..agent(name, &[]) }
}

/// A random team of which a member is a team in its turn, and now and then another one the same.
fn team_of_teams(
    random: &mut Random,
    clocks: Clocks,
    outer: &[Strategy],
    inner: &[Strategy],
) -> Spec {
    let mut spec = team(random, clocks, outer);
    let at = random.below(spec.team.agents.len() as u64) as usize;
    let target = nested(random, clocks, inner, 2);
    for (n, member) in spec.team.agents.iter_mut().enumerate() {
        if n == at || random.one_in(4) {
            (member.target, member.fallbacks) = (target.clone(), Vec::new());
            narrow(member);
        }
    }
    spec
}

fn nested(random: &mut Random, clocks: Clocks, strategies: &[Strategy], depth: u32) -> Target {
    let mut spec = team(random, clocks, strategies);
    let takes_teams =
        !matches!(spec.collaboration, Collaboration::Roles(_) | Collaboration::Pattern(_));
    if depth > 1 && takes_teams && random.one_in(3) {
        let inmost = nested(random, clocks, strategies, depth - 1);
        let member = &mut spec.team.agents[0];
        (member.target, member.fallbacks) = (inmost, Vec::new());
    }
    Target::Team(Box::new(Nested { file: "inner.yaml".into(), spec }))
}

fn team(random: &mut Random, clocks: Clocks, strategies: &[Strategy]) -> Spec {
    let names = &["a", "b", "c", "d"][..2 + random.pick(&[0, 0, 0, 1, 1, 1, 2]) as usize];
    let agents = names.iter().map(|name| member(random, name)).collect();
    let strategy = random.pick(strategies);
    let spec = spec(agents, strategy(random, &ids(names), clocks));
    let mut spec = roles::cast(spec, |name| {
        let economy = perhaps(random, 2, |it| vec![target(it), target(it)]).unwrap_or_default();
        roles::saving(member(random, name), economy)
    });
    if matches!(spec.collaboration, Collaboration::Dispatch(_))
        || graphs::is_graph(&spec) && random.one_in(2)
    {
        let max_steps = 1 + random.below(8) as u32;
        let lead = Agent { grants: Vec::new(), max_steps, ..member(random, PARENT) };
        spec.team.staff.push(lead);
    }
    graphs::without_a_missing_lead(Spec { limits: limits(random, 8), ..spec })
}

const NO_CLOCKS: Clocks = Clocks { timeout: None, call_timeout: None };

/// Leaves no limit but those of how much goes on at once, in all teams.
fn unlimited(spec: &mut Spec) {
    let slots = |of: Limits| Limits { concurrency: of.concurrency, ..Limits::default() };
    spec.limits = slots(spec.limits);
    if let Collaboration::Roles(roles) = &mut spec.collaboration {
        (roles.budget, roles.hand_off_at) = (None, BTreeMap::new());
    }
    for agent in &mut spec.team.agents {
        agent.limits = slots(agent.limits);
        if let Some(nested) = agent.team_mut() {
            unlimited(&mut nested.spec);
        }
    }
}

/// A random team in bad weather.
pub(super) struct Trial {
    pub(super) spec: Arc<Spec>,
    pub(super) world: Answers,
    hazards: Hazards,
    /// After how many answers someone cancels.
    cancelled_after: Option<usize>,
    /// Whether strange answers come, people amend and the clock strikes at any time.
    is_disturbed: bool,
}

/// What changes nothing about the others if it befalls one call.
const OF_CALLS: [Hazard; 5] =
    [Hazard::Errors, Hazard::RateLimits, Hazard::Malformed, Hazard::Blank, Hazard::CutOff];

impl Trial {
    /// Nothing but what befalls its calls, and perhaps a cancel, happens to it.
    pub(super) fn quiet(seed: u64) -> Trial {
        let mut random = Random::new(seed);
        let clocks = clocks(&mut random);
        let strategies = [&STRATEGIES[..], &GRAPHS, &TABLES].concat();
        let mut spec = team(&mut random, clocks, &strategies);
        spec.mail = if seed.is_multiple_of(2) { Mail::On } else { Mail::Unknown };
        let spec = Arc::new(spec);
        let world = Answers { seed: random.next(), order: random.next(), counts: true };
        let hazards = OF_CALLS.into_iter().chain([Hazard::Latency, Hazard::Silence]).collect();
        let cancelled_after = perhaps(&mut random, 6, |it| it.below(6) as usize);
        Trial { spec, world, hazards, cancelled_after, is_disturbed: false }
    }

    /// Everything happens to it.
    pub(super) fn disturbed(seed: u64) -> Trial {
        Trial { hazards: Hazards::all(), is_disturbed: true, ..Trial::quiet(seed) }
    }

    /// The same with a team as a member.
    pub(super) fn nested(seed: u64) -> Trial {
        Trial { spec: Trial::quiet_nested(seed).spec, ..Trial::disturbed(seed) }
    }

    /// A team as a member, and nothing but what befalls calls happens to it.
    pub(super) fn quiet_nested(seed: u64) -> Trial {
        let mut random = Random::new(seed);
        let clocks = clocks(&mut random);
        let outer = [&OUTER[..], &GRAPHS].concat();
        let inner = [&STRATEGIES[..], &GRAPHS, &TABLES].concat();
        let spec = team_of_teams(&mut random, clocks, &outer, &inner).into();
        Trial { spec, ..Trial::quiet(seed) }
    }

    /// Nothing about it depends on when something happens.
    pub(super) fn timeless(seed: u64) -> Trial {
        let mut random = Random::new(seed);
        let spec = team(&mut random, NO_CLOCKS, &STRATEGIES);
        Trial::without_clocks(spec, random)
    }

    /// Nothing about it depends on when something happens, except for what comes first at a round table.
    pub(super) fn timeless_nested(seed: u64) -> Trial {
        let mut random = Random::new(seed);
        let inner = [&STRATEGIES[..], &TABLES].concat();
        let spec = team_of_teams(&mut random, NO_CLOCKS, &OUTER, &inner);
        Trial::without_clocks(spec, random)
    }

    fn without_clocks(mut spec: Spec, mut random: Random) -> Trial {
        unlimited(&mut spec);
        let world = Answers { seed: random.next(), order: random.next(), counts: false };
        let hazards = OF_CALLS.into_iter().collect();
        Trial { spec: spec.into(), world, hazards, cancelled_after: None, is_disturbed: false }
    }

    /// The same with the answers coming in another order.
    pub(super) fn reordered(self) -> Trial {
        let order = !self.world.order;
        Trial { world: Answers { order, ..self.world }, ..self }
    }

    fn weather(&self) -> Weather<Answers> {
        Weather::new(self.world, self.world.seed, self.hazards.clone())
    }

    /// Lives it from its start to its end.
    pub(super) fn live(&self) -> Sim {
        self.live_and(|_| ())
    }

    /// Lives it, and looks at it after every step.
    pub(super) fn live_and(&self, look: impl FnMut(&Sim)) -> Sim {
        let mut weather = self.weather();
        let sim = Sim::start(self.spec.clone(), self.world.order, 0, &mut weather);
        self.finish(sim, weather, look)
    }

    /// Goes on from a log that breaks off, as another process.
    pub(super) fn resume(&self, run: Run, log: &[Record]) -> Sim {
        let sim = Sim::resume(self.spec.clone(), run, log.to_vec(), self.world.order);
        self.go_on(sim, vec![Event::Resumed { wall: 0 }])
    }

    /// Goes on with a run to which all this happens now.
    pub(super) fn go_on(&self, mut sim: Sim, events: Vec<Event>) -> Sim {
        let mut weather = self.weather();
        sim.feed_all(events, &mut weather);
        self.finish(sim, weather, |_| ())
    }

    fn finish(
        &self,
        mut sim: Sim,
        mut weather: Weather<Answers>,
        mut look: impl FnMut(&Sim),
    ) -> Sim {
        let mut random = Random::new(self.world.seed);
        // A team of teams takes what its turns take together.
        let is_nested = self.spec.team.agents.iter().any(|agent| agent.team().is_some());
        let most = if is_nested { 20_000 } else { 1000 };
        let mut amendments = if self.is_disturbed { random.below(3) } else { 0 };
        loop {
            look(&sim);
            assert!(sim.log.len() < most, "it does not end");
            if self.is_cancelled_now(&sim) {
                sim.feed(Event::CancelRequested, &mut weather);
            } else if self.is_disturbed && sim.run.ending().is_none() && random.one_in(3) {
                sim.feed(disturbance(&mut random, &sim.log), &mut weather);
            } else if sim.run.waits_for_person() {
                sim.feed_all(graphs::answers(&sim, self.world.seed), &mut weather);
            } else if !sim.advance(&mut weather) {
                assert!(sim.run.ending().is_some(), "it has not ended, but nothing can happen");
                if amendments == 0 {
                    return sim;
                }
                amendments -= 1;
                sim.feed(amendment(&mut random, &sim.log), &mut weather);
            }
        }
    }

    fn is_cancelled_now(&self, sim: &Sim) -> bool {
        let is_answer = |record: &&Record| matches!(record.event, Event::Answered { .. });
        self.cancelled_after.is_some_and(|after| {
            sim.run.ending().is_none()
                && sim.run.stop() != Some(&Fault::Cancelled)
                && sim.log.iter().filter(is_answer).count() == after
        })
    }
}

/// Something that comes at a bad time.
fn disturbance(random: &mut Random, log: &[Record]) -> Event {
    if random.one_in(12) {
        return amendment(random, log);
    }
    match &random.pick(log).event {
        answered @ Event::Answered { .. } => answered.clone(),
        Event::Withdrawn { key, .. } | Event::Refused { key, .. } => late(key, 1),
        Event::Asked { key, .. } => late(key, random.pick(&[0, 2, 3])),
        Event::Started { .. } if random.one_in(2) => late(&Key::parse("nobody/asked"), 1),
        Event::Started { .. } | Event::CancelRequested => Event::Resumed { wall: 0 },
        Event::Resumed { .. } => Event::Woken { wall: random.next() },
        Event::Ticked
        | Event::Woken { .. }
        | Event::Saved { .. }
        | Event::Mailed { .. }
        | Event::Inherited { .. }
        | Event::Prompted { .. }
        | Event::Amended { .. }
        | Event::Concluded { .. }
        | Event::Ended { .. } => Event::Ticked,
    }
}

fn late(key: &Key, attempt: u32) -> Event {
    let usage =
        Usage { tokens: Tokens { input: 7, output: 5, ..Tokens::default() }, ..Usage::default() };
    let settled = Settled::Answer(Answer::text("late").into());
    Event::Answered { key: key.clone(), attempt, settled, usage }
}

fn amendment(random: &mut Random, log: &[Record]) -> Event {
    let known = log.iter().filter_map(|record| record.event.key().cloned());
    let key = random.pick(&known.chain([Key::parse("nobody/asked")]).collect::<Vec<_>>());
    Event::Amended { key, text: random.pick(&["", "better", "vote:c"]).into() }
}
