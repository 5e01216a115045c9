//! Random role teams.

use serde_json::json;

use super::trial::Trial;
use crate::{
    call::{Answer, Call},
    decimal::Decimal,
    event::Event,
    programs::{
        Clocks, Roles,
        roles::{Budget, Path, Role, Weighing},
    },
    sim::Random,
    spec::{Collaboration, Spec},
    team::{Agent, AgentId, ECONOMY, Fallback, Target},
};

/// Roles with a budget or without one, mostly on their own path.
pub(super) fn shape(random: &mut Random, _: &[AgentId], clocks: Clocks) -> Collaboration {
    let path = random.pick(&[None, Some(Path::Single), Some(Path::Roles), Some(Path::Roles)]);
    let multipliers = ["1.5", "1.1", "2", "0"].map(|it| Decimal::parse(it).expect("a decimal"));
    let budget = Budget {
        single: random.pick(&[1, 700, 3000, 9000, 30_000]),
        multiplier: random.pick(&multipliers),
    };
    let soft = random.pick(&[None, Some(1), Some(2000)]);
    Collaboration::Roles(Roles {
        weighing: Weighing { path, ..Weighing::default() },
        budget: random.one_in(2).then_some(budget),
        hand_off_at: soft.map(|tokens| (Role::Coder.name().into(), tokens)).into_iter().collect(),
        clocks,
        ..Roles::usual()
    })
}

/// The same spec with an agent for each role, if roles work on it.
pub(super) fn cast(mut spec: Spec, mut member: impl FnMut(&str) -> Agent) -> Spec {
    if is_roles(&spec) {
        spec.team.agents = Role::ALL.map(|role| member(role.name())).to_vec();
    }
    spec
}

pub(super) fn is_roles(spec: &Spec) -> bool {
    matches!(spec.collaboration, Collaboration::Roles(_))
}

/// The same agent with something that answers when the budget runs low.
pub(super) fn saving(agent: Agent, targets: impl IntoIterator<Item = Target>) -> Agent {
    let targets = (ECONOMY..).zip(targets);
    let economy = targets.map(|(number, target)| Fallback { number, target }).collect();
    Agent { economy, ..agent }
}

/// What a role may say.
pub(super) fn says(random: &mut Random) -> Answer {
    let hand_off = json!({
        "summary": "<reply".repeat(random.below(60) as usize),
        "artifacts": ["a.rs", "道"],
        "decisions": [], "errors": null,
        "verdict": random.pick(&["PASS", "ISSUES", "maybe"]),
    });
    match random.below(6) {
        0 => Answer::json(hand_off),
        1 => Answer::text(format!("So:\n```json\n{hand_off}\n```")),
        2 => Answer::text(random.pick(&["hm", "NEEDS_INPUT: which?"])),
        3 => Answer::text("ISSUES: x"),
        _ => Answer::text("PASS"),
    }
}

#[test]
fn no_call_of_a_role_starts_with_nothing_left_of_its_budget() {
    let mut passed = 0;
    for seed in 0..4000 {
        let trial = Trial::quiet(seed);
        let Collaboration::Roles(Roles { budget: Some(budget), .. }) = &trial.spec.collaboration
        else {
            continue;
        };
        let (total, mut used) = (budget.total(), 0_u64);
        for record in trial.live().log {
            match record.event {
                Event::Asked { call: Call::Agent { .. }, key, .. } => {
                    assert!(used < total, "seed {seed}: {key} starts with {used} of {total} used");
                }
                Event::Answered { usage, .. } | Event::Withdrawn { usage, .. } => {
                    used = used.saturating_add(usage.tokens.total());
                }
                _ => {}
            }
        }
        passed += u64::from(used > total);
    }
    assert!(passed > 20, "only {passed} runs came to the end of their budget");
}
