//! Random round tables.

use serde_json::json;

use crate::{
    call::Answer,
    programs::{Clocks, Roundtable},
    sim::Random,
    spec::{Collaboration, Spec},
    team::AgentId,
};

/// These agents around a board, perhaps with one of them as the scribe.
pub(super) fn shape(random: &mut Random, agents: &[AgentId], clocks: Clocks) -> Collaboration {
    Collaboration::Roundtable(Roundtable {
        agents: agents.to_vec(),
        max_posts: random.pick(&[1, 3, 8, 40]),
        max_turns: random.pick(&[1, 2, 4, 6]),
        scribe: random.one_in(3).then(|| random.pick(agents)),
        clocks,
    })
}

/// Whether a team sits at a round table.
pub(super) fn is_table(spec: &Spec) -> bool {
    matches!(spec.collaboration, Collaboration::Roundtable(_))
}

/// What somebody there says: mostly nothing new, or it would never be quiet.
pub(super) fn says(random: &mut Random) -> Answer {
    let version = random.below(3);
    let post =
        json!({ "topic": random.pick(&["risk", "<reply"]), "text": "it leaks", "refs": ["1"] });
    let cell = json!({ "key": "plan", "expect": version, "value": random.below(9) });
    match random.below(8) {
        0 => Answer::json(json!({ "posts": [post], "cells": [] })),
        1 => Answer::text(json!({ "posts": [post.clone(), post], "cells": [cell] }).to_string()),
        2 => Answer::json(json!({ "cells": [cell] })),
        3 => Answer::json(json!({ "pass": true })),
        4 => Answer::text("a plain note"),
        _ => Answer::text("PASS"),
    }
}
