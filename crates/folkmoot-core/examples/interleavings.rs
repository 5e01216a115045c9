//! Plays many interleavings of a tree of budgets, nested teams and tools included, and judges each from
//! its log alone: `cargo run --release -p folkmoot-core --example interleavings -- 1000000`.

use std::sync::Arc;

use folkmoot_core::{
    call::{Answer, Call, FailureKind, Fault, Tokens, ToolCall, Usage},
    key::Key,
    known::Entry,
    limits::Limits,
    money::{Money, Price},
    programs::{Broadcast, Clocks, Sequential},
    run::Run,
    sim::{Happening, Random, Sim, World, audit::Audit},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, AgentId, Model, Nested, Target, Team},
    time::Duration,
};

/// How many are played unless a number is given.
const USUAL: u64 = 1_000;

fn main() -> Result<(), String> {
    let given = std::env::args().nth(1).map(|it| it.parse::<u64>().map_err(|it| it.to_string()));
    (0..given.transpose()?.unwrap_or(USUAL)).try_for_each(play)
}

/// Plays one to its end; tells what rule it broke, if it did.
fn play(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let spec = Arc::new(team(&mut random, 2));
    let mut world = Whims(random.next());
    let sim = Sim::start(spec.clone(), seed, 0, &mut world).finish(&mut world);
    let audit = Audit::default().go_on(&spec, &sim.log).map_err(|it| format!("{seed}: {it}"))?;
    if audit.has_ended() { Ok(()) } else { Err(format!("{seed}: it does not end")) }
}

/// A team with limits at every level, of which some members are teams.
fn team(random: &mut Random, depth: u64) -> Spec {
    let names = ["a", "b", "c"];
    let agents: Vec<Agent> = names[..2 + random.below(2) as usize]
        .iter()
        .map(|name| {
            let target = match random.below(3) {
                0 if depth > 0 => Target::Team(Box::new(Nested {
                    file: "inner.yaml".into(),
                    spec: team(random, depth - 1),
                })),
                _ => Target::Model(model()),
            };
            let grants: &[&str] = random.pick(&[&[][..], &["file.read"], &["*"]]);
            let grants = grants.iter().map(|it| (*it).into()).collect();
            let max_steps = 3;
            Agent { grants, limits: limits(random, 6), max_steps, ..Agent::new(name, target) }
        })
        .collect();
    let ids: Vec<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
    let clocks = Clocks { timeout: None, call_timeout: None };
    let collaboration = if random.one_in(2) {
        Collaboration::Broadcast(Broadcast { agents: ids, rounds: 2, clocks })
    } else {
        Collaboration::Sequential(Sequential { order: ids, clocks })
    };
    Spec {
        team: Team::new("interleaved", agents),
        task: "task".into(),
        collaboration,
        auto: None,
        limits: limits(random, 12),
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    }
}

fn model() -> Model {
    Model { max_output_tokens: Some(300), price: Some(price()), ..Model::new("p", "m") }
}

fn price() -> Price {
    let (cached_input, cache_write, above, as_of) = (None, None, Vec::new(), None);
    Price { input: 1.0, output: 3.0, cached_input, cache_write, above, as_of }
}

fn limits(random: &mut Random, most: u64) -> Limits {
    Limits {
        calls: random.one_in(3).then(|| random.below(most)),
        tokens: random.one_in(3).then(|| random.below(1000 * most)),
        cost: random.one_in(4).then(|| Money(random.below(1000 * most))),
        concurrency: random.one_in(4).then(|| 1 + random.below(3)),
        ..Limits::default()
    }
}

/// Answers come when they will, use what they will of what was set aside, and want tools or fail.
struct Whims(u64);

impl World for Whims {
    fn answer(&mut self, _: &Spec, _: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let mut random = Random::named(self.0, key.as_str());
        let tool = |name: &str| ToolCall {
            id: name.into(),
            name: name.into(),
            arguments: serde_json::json!({}),
        };
        let is_request = matches!(entry.call, Call::Agent { .. });
        let outcome = match random.below(6) {
            0 => Err(Fault::failed(FailureKind::Other, "no")),
            1 | 2 if is_request => {
                let tool_calls = vec![tool("file.read"), tool("shell")];
                Ok(Answer { tool_calls, ..Answer::text("let me see") }.into())
            }
            _ => Ok(Answer::text("well").into()),
        };
        let aside = entry.reserved.map(|it| it.tokens).unwrap_or_default();
        let tokens = Tokens {
            input: random.below(aside.input + 1),
            output: random.below(aside.output + 1),
            ..Tokens::default()
        };
        let cost = is_request.then(|| price().of(tokens));
        let after = Duration::from_millis(random.below(1000));
        Some(Happening { after, outcome, usage: Usage { tokens, cost, estimated: false } })
    }
}

#[cfg(test)]
mod tests {
    use super::play;

    #[test]
    fn no_interleaving_passes_a_limit_or_widens_a_grant() {
        (0..500).try_for_each(play).expect("every rule is kept");
    }
}
