//! Teams that work by a pattern, for the trials of the kernel.

use crate::{
    call::Answer,
    programs::{
        Clocks,
        pattern::{Form, Part, Pattern},
    },
    sim::{Random, Sim},
    spec::{Collaboration, Spec},
    team::AgentId,
};

const TEXTS: [&str; 17] = [
    "same",
    "same",
    "```\ncode\n```",
    "a review that says nothing",
    "[BLOCKING] it leaks",
    "[MINOR] a name",
    "There are no blocking issues.",
    "APPROVED",
    "LGTM, but not yet",
    "CONFLICT: cache or not",
    "ADOPT.",
    "Verdict: REJECT",
    "ADOPT or REJECT",
    "NEEDS_INPUT: which one?",
    "{\"verdict\": \"approve\"}",
    "{\"conflicts\": \"none\"}",
    "COMPLETE",
];

/// A pattern whose roles are played by these agents, some by the same one.
pub(super) fn shape(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    let form = random.pick(&Form::ALL);
    let literal = random.one_in(4);
    let least = if literal { 1 } else { form.shape().least };
    let usual = form.usual_ceiling();
    let max_rounds = random.pick(&[least, least, least + 1, least + 2, usual]);
    let judge = random.one_in(2).then(|| random.pick(agents)).filter(|_| form == Form::Review);
    let planner = random.one_in(3).then(|| random.pick(agents));
    let cast = form.roles().into_iter().map(|role| Part {
        role,
        agent: random.pick(agents),
        target: role.usual_target().into(),
    });
    let cast = cast.collect();
    Collaboration::Pattern(Pattern {
        form,
        cast,
        max_rounds,
        timeout: clocks.timeout,
        planner,
        judge,
        literal,
    })
}

/// Whether a team works by a pattern.
pub(super) fn is_pattern(spec: &Spec) -> bool {
    matches!(spec.collaboration, Collaboration::Pattern(_))
}

/// Whether every turn said something, and no clock or person stopped it.
pub(super) fn has_gone_its_way(sim: &Sim) -> bool {
    let told = sim.run.account(sim.spec.program(), &sim.spec).record;
    let mut turns = told["turns"].as_array().into_iter().flatten();
    let is_own = sim.run.ending().is_some_and(|ending| &*ending.reason != "max_wall_time");
    is_own && turns.all(|turn| turn.get("error").is_none())
}

/// What a role says.
pub(super) fn says(random: &mut Random) -> Answer {
    let text = random.pick(&TEXTS);
    let unique = random.one_in(2).then(|| random.next());
    Answer::text(unique.map_or_else(|| text.to_owned(), |unique| format!("{unique}\n{text}")))
}
