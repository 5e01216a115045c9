//! What a team can do beyond asking models: what no request may bring along (server.md §1).

use std::collections::BTreeSet;

use folkmoot_core::{
    spec::{Collaboration, Spec},
    team::{Agent, Target},
};

/// What an agent may be granted by whoever sends a team: to look at the workspace.
const LOOKING: [&str; 3] = ["file.read", "file.list", "search"];

/// Everything in which a team goes beyond models and scripts that look at the workspace: programs,
/// services elsewhere, grants. In words, each once.
pub(super) fn powers(spec: &Spec) -> BTreeSet<String> {
    let agents = spec.team.all();
    let mut powers: BTreeSet<String> = agents.iter().flat_map(of_agent).collect();
    collect(spec, &mut powers);
    powers
}

/// Those that an agent has.
fn of_agent(agent: &Agent) -> Vec<String> {
    let later = agent.fallbacks.iter().chain(&agent.economy).map(|it| &it.target);
    let targets = [&agent.target].into_iter().chain(later);
    let beyond = targets.filter_map(|target| match target {
        Target::Model(_) | Target::Script(_) | Target::Demo | Target::Team(_) => None,
        Target::Cli(_) | Target::Acp(_) => {
            let program = target.label().unwrap_or_default();
            Some(format!("{} is the program {program}", agent.name))
        }
        Target::A2a(_) => Some(format!("{} is an agent elsewhere", agent.name)),
    });
    let grants = agent.grants.iter().filter(|grant| !LOOKING.contains(&&***grant));
    let grants = grants.map(|grant| format!("{} is granted {grant}", agent.name));
    beyond.chain(grants).collect()
}

/// Those that the way has in which it works together, its members' too.
fn collect(spec: &Spec, powers: &mut BTreeSet<String>) {
    if matches!(spec.collaboration, Collaboration::Controller(_)) {
        powers.insert("its program is a process".to_owned());
    }
    let required = spec.collaboration.requirements().into_iter().filter(|it| it.script.is_empty());
    powers.extend(required.map(|it| format!("an edge requires {}", it.gate)));
    for nested in spec.team.everyone().filter_map(Agent::team) {
        collect(&nested.spec, powers);
    }
}
