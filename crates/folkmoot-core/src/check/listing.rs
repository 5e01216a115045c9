//! Which agents are meant by names in a file.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use crate::{
    file::item::{Fields, Item},
    team::{Agent, AgentId, Team},
};

/// The agent meant by a name in a file: the exact display name, else the id, in any Unicode form.
pub(super) fn find<'t>(team: &'t Team, name: &str) -> Option<&'t Agent> {
    let name: String = name.nfc().collect();
    let by_name = team.agents.iter().find(|agent| agent.name.nfc().eq(name.chars()));
    by_name.or_else(|| team.agents.iter().find(|agent| agent.id.as_str() == name))
}

/// The agents of a team by all that names them, for whoever looks many of them up.
pub(super) struct Roster<'t> {
    names: BTreeMap<String, &'t Agent>,
    ids: BTreeMap<&'t str, &'t Agent>,
}

impl<'t> Roster<'t> {
    /// Those of `team`.
    pub(super) fn of(team: &'t Team) -> Roster<'t> {
        let mut roster = Roster { names: BTreeMap::new(), ids: BTreeMap::new() };
        for agent in &team.agents {
            roster.names.entry(agent.name.nfc().collect()).or_insert(agent);
            roster.ids.entry(agent.id.as_str()).or_insert(agent);
        }
        roster
    }

    /// The agent meant by a name, as [`find`] finds it.
    pub(super) fn find(&self, name: &str) -> Option<&'t Agent> {
        let name: String = name.nfc().collect();
        self.names.get(&name).or_else(|| self.ids.get(&*name)).copied()
    }
}

/// The agents that a list names.
pub(super) struct Listing<'t> {
    /// Those that exist, as listed.
    pub(super) agents: Vec<&'t Agent>,
    /// How many different ones are meant, those that do not exist included.
    pub(super) distinct: usize,
}

impl<'t> Listing<'t> {
    /// The agents that `items` name.
    pub(super) fn of(items: &[Item], team: &'t Team) -> Listing<'t> {
        let names = items.iter().filter_map(Item::text);
        let roster = Roster::of(team);
        let meant: Vec<_> = names.map(|name| (&**name, roster.find(name))).collect();
        let ids = meant.iter().map(|(name, agent)| agent.map_or(*name, |agent| agent.id.as_str()));
        let distinct = ids.collect::<BTreeSet<_>>().len();
        Listing { agents: meant.into_iter().filter_map(|(_, agent)| agent).collect(), distinct }
    }

    /// Who takes part, in registration order: those in `agents`, else all.
    pub(super) fn participants(given: &Fields, team: &'t Team) -> Listing<'t> {
        if given.get("agents").is_none() {
            let agents: Vec<_> = team.agents.iter().collect();
            return Listing { distinct: agents.len(), agents };
        }
        Listing::of(given.list("agents"), team).registered(team)
    }

    /// The same agents, each once, in registration order.
    pub(super) fn registered(self, team: &'t Team) -> Listing<'t> {
        let listed: BTreeSet<_> = self.agents.iter().map(|agent| &agent.id).collect();
        let agents = team.agents.iter().filter(|agent| listed.contains(&agent.id)).collect();
        Listing { agents, ..self }
    }

    /// Their ids.
    pub(super) fn ids(&self) -> Vec<AgentId> {
        self.agents.iter().map(|agent| agent.id.clone()).collect()
    }
}
