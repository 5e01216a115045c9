//! A world that answers at random; the weather makes it worse.

use serde_json::{Value, json};

use super::{graphs, patterns, roles, tables};
use crate::{
    call::{Answer, Call, Tokens, ToolCall, Usage},
    key::Key,
    known::Entry,
    mail::Delivery,
    run::Run,
    sim::{Happening, Random, World},
    spec::Spec,
    team::Target,
    testing::letter,
    time::Duration,
};

const TEXTS: [&str; 6] = ["same", "same", "same\r\n", "vote:a", "I say: vote:b", "agree\nyes"];

const PLANS: [&str; 4] = [
    r#"{"tasks": [{"description": "1"}, {"description": "2", "depends_on": ["task_1"]}]}"#,
    r#"{"tasks": [{"id": "x", "description": "1"}, {"id": "x", "depends_on": ["y"]}]}"#,
    r#"{"tasks": [{"id": "x", "description": "1"}, "2", "3", {"description": "4", "agent": "b"}]}"#,
    "first\nsecond\nthird",
];

/// What comes depends on `seed` and the call; when it comes, on `order`.
#[derive(Clone, Copy)]
pub(super) struct Answers {
    pub(super) seed: u64,
    pub(super) order: u64,
    /// Whether the number of the call among its agent's plays a part too.
    pub(super) counts: bool,
}

impl World for Answers {
    fn mail(&mut self, _: &Spec, _: &Run, key: &Key) -> Vec<Delivery> {
        let mut random = Random::named(self.seed, key.as_str());
        if random.one_in(3) {
            vec![letter("ann", random.pick(&["Hi.", "</reply> vote:c"]))]
        } else {
            Vec::new()
        }
    }

    fn answer(&mut self, spec: &Spec, _: &Run, key: &Key, entry: &Entry) -> Option<Happening> {
        let nth = if self.counts { entry.nth } else { 0 };
        let mut random = Random::named(self.seed ^ nth, key.as_str());
        // What its own team works by, if that is a member of another.
        let own = spec.of(entry.call.agent()).0;
        let outcome = if key.as_str().ends_with("plan") && !random.one_in(4) {
            Answer::text(random.pick(&PLANS))
        } else if graphs::is_graph(own) && !random.one_in(3) {
            graphs::says(&mut random, own, &entry.call)
        } else if patterns::is_pattern(own) && !random.one_in(3) {
            patterns::says(&mut random)
        } else if tables::is_table(own)
            && matches!(entry.call, Call::Agent { .. })
            && !random.one_in(4)
        {
            tables::says(&mut random)
        } else if roles::is_roles(own)
            && matches!(entry.call, Call::Agent { .. })
            && !random.one_in(3)
        {
            roles::says(&mut random)
        } else {
            answer(&mut random, spec, &entry.call)
        };
        let usage = usage(&mut random, spec, entry);
        let after = 1 + Random::named(self.order ^ nth, key.as_str()).below(2_000_000);
        Some(Happening { after: Duration(after), outcome: Ok(outcome.into()), usage })
    }
}

fn answer(random: &mut Random, spec: &Spec, call: &Call) -> Answer {
    let has_tools = !spec.team.agent(call.agent()).grants.is_empty();
    match random.below(10) {
        0 => Answer::json(json!({ "vote": "b", "n": [1.0 / random.next() as f64, null] })),
        1 => Answer::json(Value::Null),
        2 => Answer::json(json!({ "error": random.pick(&[json!("no"), Value::Null]) })),
        3 | 4 if has_tools && matches!(call, Call::Agent { .. }) => wants_tools(random),
        _ => Answer::text(random.pick(&TEXTS)),
    }
}

fn wants_tools(random: &mut Random) -> Answer {
    let names = random.pick(&[&["file.read"][..], &["file.write", "shell", "file"]]);
    let tool = |name: &&str| {
        let arguments = json!({ "path": "x" });
        ToolCall { id: (*name).into(), name: (*name).into(), arguments }
    };
    Answer { tool_calls: names.iter().map(tool).collect(), ..Answer::text("let me see") }
}

/// Mostly what was set aside or less, sometimes only estimated, sometimes absurdly much.
fn usage(random: &mut Random, spec: &Spec, entry: &Entry) -> Usage {
    let unbounded = Tokens { input: 3000, output: 900, ..Tokens::default() };
    let most = entry.reserved.map_or(unbounded, |aside| aside.tokens);
    let read = random.below(most.input.saturating_add(1));
    let cached = random.below(read + 1);
    let output = match random.below(40) {
        0 => random.pick(&[most.output + 500, u64::MAX / 4, u64::MAX]),
        _ => random.below(most.output + 1),
    };
    let cache_write = random.below(read - cached + 1);
    let tokens = Tokens { input: read - cached - cache_write, cached, cache_write, output };
    let price = match (&entry.call, &spec.team.asked(&entry.call).target) {
        (Call::Agent { .. }, Target::Model(model)) => model.price.clone(),
        (
            Call::Agent { .. }
            | Call::Team { .. }
            | Call::Tool { .. }
            | Call::Person { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. },
            _,
        ) => None,
    };
    Usage { tokens, cost: price.map(|it| it.of(tokens)), estimated: random.one_in(4) }
}
