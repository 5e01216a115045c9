//! From the parameters of a strategy to a program with everything filled in (strategies.md §§1, 8).

use crate::{
    check::{filling::Filling, listing::Listing},
    diagnostic::{Diagnostic, quoted},
    file::{
        collaboration::{PARAMETERS, STRATEGIES},
        item::Fields,
        shape::Field,
    },
    names,
    spec::{Choice, Collaboration},
    team::Team,
};

/// A strategy with everything filled in, and why `auto` chose it, if it did.
pub(super) type Resolved = (Collaboration, Option<Choice>);

/// The parameters that mean something to a strategy, in the order of their table; for `auto` all.
pub fn parameters(strategy: &str) -> Vec<&'static Field> {
    let strategy = Strategy::named(strategy);
    let is_its = |field: &&Field| strategy.is_none_or(|it| it.knows(field.name));
    PARAMETERS.iter().filter(is_its).collect()
}

/// Fills in the strategy that `given` asks for; tells everything that keeps it from running.
pub(super) fn resolve(given: &Fields, team: &Team, told: &mut Vec<Diagnostic>) -> Option<Resolved> {
    let name = strategy_name(given, told);
    if team.agents.is_empty() {
        told.push(Diagnostic::error("no_agents", "the team has no agents").at(&given.place));
        return None;
    }
    let (strategy, choice) = match Strategy::named(&name?) {
        Some(strategy) => (strategy, None),
        None => choose(given, team),
    };
    let adaptive = choice.as_ref().is_some_and(|choice| &*choice.rule == ADAPTIVE);
    let mut filling = Filling { strategy, given, team, told };
    filling.warn_ignored(choice.is_some());
    let collaboration = if adaptive { filling.adaptive() } else { filling.fixed() };
    Some((collaboration?, choice))
}

/// The name as it stands in the list of strategies; nothing if there is no such strategy.
fn strategy_name(given: &Fields, told: &mut Vec<Diagnostic>) -> Option<String> {
    if given.is_broken("strategy") {
        return None;
    }
    let Some(item) = given.get("strategy") else { return Some(AUTO.into()) };
    let name = item.text()?.trim();
    let lower = name.to_lowercase();
    if STRATEGIES.contains(&&*lower) {
        return Some(lower);
    }
    let known = STRATEGIES.join(", ");
    let message = format!("unknown strategy {}; known: {known}", quoted(name));
    let help = names::suggestion(name, STRATEGIES.iter().copied());
    told.push(Diagnostic::error("unknown_strategy", message).at(&item.place).help(help));
    None
}

pub(super) const AUTO: &str = "auto";
const ADAPTIVE: &str = "adaptive";
const SUPERVISOR: &str = "supervisor";

/// A strategy that runs; `auto` becomes one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    Broadcast,
    Sequential,
    Debate,
    Supervisor,
    Consensus,
    Relay,
}

impl Strategy {
    fn named(name: &str) -> Option<Strategy> {
        use Strategy::{Broadcast, Consensus, Debate, Relay, Sequential, Supervisor};
        let all = [Broadcast, Sequential, Debate, Supervisor, Consensus, Relay];
        all.into_iter().find(|strategy| strategy.name() == name)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Strategy::Broadcast => "broadcast",
            Strategy::Sequential => "sequential",
            Strategy::Debate => "debate",
            Strategy::Supervisor => "supervisor",
            Strategy::Consensus => "consensus",
            Strategy::Relay => "relay",
        }
    }

    /// Whether a parameter means something to it.
    pub(super) fn knows(self, parameter: &str) -> bool {
        const ALL_KNOW: [&str; 4] = ["strategy", "agents", "timeout", "call_timeout"];
        ALL_KNOW.contains(&parameter) || self.own_parameters().contains(&parameter)
    }

    fn own_parameters(self) -> &'static [&'static str] {
        match self {
            Strategy::Broadcast => &["rounds"],
            Strategy::Sequential => &["order"],
            Strategy::Debate => &["rounds", "judge"],
            Strategy::Supervisor => &["supervisor", "workers", "replan", "strict", "max_tasks"],
            Strategy::Consensus => &["judge", "self_votes"],
            Strategy::Relay => &["rounds", "order", "convergence"],
        }
    }

    /// How many rounds it has unless told otherwise.
    pub(super) fn rounds(self) -> u64 {
        match self {
            Strategy::Debate => 3,
            Strategy::Relay => 2,
            Strategy::Broadcast
            | Strategy::Sequential
            | Strategy::Supervisor
            | Strategy::Consensus => 1,
        }
    }
}

/// What `auto` chooses: by names only, so the same team always gets the same strategy.
fn choose(given: &Fields, team: &Team) -> (Strategy, Option<Choice>) {
    let rule = given.text(AUTO).map_or("seed", |rule| rule);
    let participants = Listing::participants(given, team);
    let has_supervisor = participants.agents.iter().any(|agent| &*agent.name == SUPERVISOR);
    let (strategy, because) = if participants.distinct == 1 {
        (Strategy::Broadcast, "one agent takes part")
    } else if rule == ADAPTIVE && given.get(SUPERVISOR).is_some() {
        (Strategy::Supervisor, "a supervisor is given")
    } else if has_supervisor {
        (Strategy::Supervisor, "an agent is named supervisor")
    } else {
        (Strategy::Debate, "several agents take part, none named supervisor")
    };
    let (rule, chose, because) = (rule.into(), strategy.name().into(), because.into());
    (strategy, Some(Choice { rule, chose, because }))
}
