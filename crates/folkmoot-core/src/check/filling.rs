//! Fills in the parameters of a strategy (strategies.md §§1.1, 1.2).

use std::collections::BTreeMap;

use crate::{
    check::{
        listing::{Listing, find},
        strategies::{AUTO, Strategy},
    },
    diagnostic::{Diagnostic, Place, quoted, shown},
    file::item::{Fields, Item},
    names,
    programs::{
        Adaptive, Broadcast, Clocks, Consensus, Convergence, Debate, Relay, Sequential, Supervise,
    },
    spec::Collaboration,
    team::{AgentId, Team},
};

/// The most tasks of a supervisor, unless given.
const MAX_TASKS: u64 = 32;

/// How many names a message lists, and how many unknown names of a list are told.
const SHOWN: usize = 30;

/// Fills in the parameters of a strategy.
pub(super) struct Filling<'a> {
    /// The strategy.
    pub(super) strategy: Strategy,
    /// Its parameters.
    pub(super) given: &'a Fields,
    /// The team.
    pub(super) team: &'a Team,
    /// What is wrong with them.
    pub(super) told: &'a mut Vec<Diagnostic>,
}

impl<'a> Filling<'a> {
    /// The strategy itself.
    pub(super) fn fixed(&mut self) -> Option<Collaboration> {
        Some(match self.strategy {
            Strategy::Broadcast => Collaboration::Broadcast(self.broadcast()),
            Strategy::Sequential => Collaboration::Sequential(self.sequential()),
            Strategy::Debate => Collaboration::Debate(self.debate()?),
            Strategy::Supervisor => Collaboration::Supervisor(self.supervise()?),
            Strategy::Consensus => Collaboration::Consensus(self.consensus()?),
            Strategy::Relay => Collaboration::Relay(self.relay()),
        })
    }

    /// The strategy as `auto: adaptive` goes about it.
    pub(super) fn adaptive(&mut self) -> Option<Collaboration> {
        match self.strategy {
            Strategy::Supervisor => {
                Some(Collaboration::Adaptive(Adaptive::Supervise(self.supervise()?)))
            }
            Strategy::Debate => Some(Collaboration::Adaptive(Adaptive::Debate(self.debate()?))),
            Strategy::Broadcast | Strategy::Sequential | Strategy::Consensus | Strategy::Relay => {
                self.fixed()
            }
        }
    }

    fn broadcast(&mut self) -> Broadcast {
        let agents = self.participants().ids();
        Broadcast { agents, rounds: self.rounds(), clocks: self.clocks() }
    }

    fn sequential(&mut self) -> Sequential {
        let participants = self.participants();
        Sequential { order: self.order(participants).ids(), clocks: self.clocks() }
    }

    fn debate(&mut self) -> Option<Debate> {
        let participants = self.at_least_two_participants();
        let judge = self.one("judge", &participants)?;
        let (agents, rounds, clocks) = (participants.ids(), self.rounds(), self.clocks());
        Some(Debate { agents, rounds, judge, clocks })
    }

    fn consensus(&mut self) -> Option<Consensus> {
        let participants = self.at_least_two_participants();
        let judge = self.one("judge", &participants)?;
        let self_votes = self.given.flag("self_votes").unwrap_or(true);
        Some(Consensus { agents: participants.ids(), judge, self_votes, clocks: self.clocks() })
    }

    fn relay(&mut self) -> Relay {
        let participants = self.participants();
        let order = self.order(participants);
        if order.distinct < 2 {
            let message = format!(
                "relay needs at least 2 different agents in order; it has {}",
                order.distinct
            );
            let place = self.place(&["order", "agents", "strategy"]);
            self.told.push(Diagnostic::error("too_few_agents", message).at(place));
        }
        let convergence = match self.given.text("convergence").map(|word| &**word) {
            Some("normalized") => Convergence::Normalized,
            _ => Convergence::Exact,
        };
        let (order, rounds, clocks) = (order.ids(), self.rounds(), self.clocks());
        Relay { order, rounds, convergence, clocks }
    }

    fn supervise(&mut self) -> Option<Supervise> {
        let participants = self.participants();
        let supervisor = self.one("supervisor", &participants);
        let workers = self.workers(supervisor.as_ref(), participants);
        Some(Supervise {
            supervisor: supervisor?,
            workers,
            replan: self.given.flag("replan").unwrap_or(true),
            strict: self.given.flag("strict").unwrap_or(false),
            max_tasks: self.given.whole("max_tasks").unwrap_or(MAX_TASKS) as u32,
            clocks: self.clocks(),
        })
    }

    /// Who works: those in `workers`, else the participants, but never the supervisor.
    fn workers(&mut self, supervisor: Option<&AgentId>, participants: Listing<'a>) -> Vec<AgentId> {
        let listed = self.given.get("workers").is_some();
        let mut workers =
            if listed { self.listing("workers").registered(self.team) } else { participants };
        let Some(supervisor) = supervisor else { return workers.ids() };
        if listed {
            self.tell_supervising_workers(supervisor);
        }
        workers.agents.retain(|agent| agent.id != *supervisor);
        if workers.agents.is_empty() && (!listed || workers.distinct == 0) {
            let name = quoted(&self.team.agent(supervisor).name);
            let message = format!("supervisor needs at least 1 worker besides {name}");
            let place = self.place(&["workers", "agents", "strategy"]);
            self.told.push(Diagnostic::error("too_few_workers", message).at(place));
        }
        workers.ids()
    }

    fn tell_supervising_workers(&mut self, supervisor: &AgentId) {
        for item in self.given.list("workers") {
            let Some(name) = item.text() else { continue };
            if find(self.team, name).is_some_and(|agent| agent.id == *supervisor) {
                let message =
                    format!("{} is the supervisor and cannot be in workers", quoted(name));
                self.told.push(Diagnostic::error("supervisor_is_worker", message).at(&item.place));
            }
        }
    }

    /// Who takes part; tells of names that are unknown or come twice.
    fn participants(&mut self) -> Listing<'a> {
        if self.given.get("agents").is_some() {
            self.listing("agents");
        }
        Listing::participants(self.given, self.team)
    }

    fn at_least_two_participants(&mut self) -> Listing<'a> {
        let participants = self.participants();
        if participants.distinct < 2 {
            let (name, count) = (self.strategy.name(), participants.distinct);
            let message = format!("{name} needs at least 2 agents; it has {count}");
            let place = self.place(&["agents", "strategy"]);
            self.told.push(Diagnostic::error("too_few_agents", message).at(place));
        }
        participants
    }

    /// Who speaks after whom.
    fn order(&mut self, participants: Listing<'a>) -> Listing<'a> {
        let items = self.given.list("order");
        if items.is_empty() {
            return participants;
        }
        self.tell_unknown("order", items);
        Listing::of(items, self.team)
    }

    /// The agents in a list; tells of names that are unknown or come twice.
    fn listing(&mut self, parameter: &str) -> Listing<'a> {
        let items = self.given.list(parameter);
        self.tell_unknown(parameter, items);
        let mut firsts = BTreeMap::new();
        for item in items {
            let Some((name, agent)) =
                item.text().and_then(|name| Some((name, find(self.team, name)?)))
            else {
                continue;
            };
            if let Some(first) = firsts.get(&agent.id).copied() {
                let message = format!("{} is listed twice in {parameter}", quoted(name));
                let twice = Diagnostic::error("listed_twice", message).at(&item.place);
                self.told.push(twice.also(first, "listed here first"));
            } else {
                firsts.insert(&agent.id, item.place.span);
            }
        }
        Listing::of(items, self.team)
    }

    /// The agent a parameter names, else the one of that name, else the first participant.
    fn one(&mut self, parameter: &str, participants: &Listing<'_>) -> Option<AgentId> {
        if self.given.is_broken(parameter) {
            return None;
        }
        if let Some(item) = self.given.get(parameter) {
            self.tell_unknown(parameter, std::slice::from_ref(item));
            return find(self.team, item.text()?).map(|agent| agent.id.clone());
        }
        let named = self.team.agents.iter().find(|agent| &*agent.name == parameter);
        named.or(participants.agents.first().copied()).map(|agent| agent.id.clone())
    }

    fn tell_unknown(&mut self, parameter: &str, items: &[Item]) {
        let unknown = items.iter().filter_map(|item| {
            let name = item.text().filter(|name| find(self.team, name).is_none())?;
            Some((name, &item.place))
        });
        for (name, place) in unknown.take(SHOWN) {
            self.told.push(self.unknown_agent(parameter, name).at(place));
        }
    }

    fn unknown_agent(&self, parameter: &str, name: &str) -> Diagnostic {
        let names = || self.team.agents.iter().map(|agent| &*agent.name);
        let known = names().take(SHOWN).map(shown).collect::<Vec<_>>().join(", ");
        let more = if names().nth(SHOWN).is_some() { ", …" } else { "" };
        let (strategy, unknown) = (self.strategy.name(), quoted(name));
        let message =
            format!("{strategy}: unknown agent {unknown} in {parameter}; agents: {known}{more}");
        Diagnostic::error("unknown_agent", message).help(names::suggestion(name, names()))
    }

    fn rounds(&self) -> u32 {
        self.given.whole("rounds").unwrap_or(self.strategy.rounds()) as u32
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            timeout: self.given.time("timeout").unwrap_or(Clocks::default().timeout),
            call_timeout: self.given.time("call_timeout").flatten(),
        }
    }

    /// Warns of parameters that mean something to other strategies only.
    pub(super) fn warn_ignored(&mut self, auto: bool) {
        let strategy = self.strategy;
        let means = |name: &str| strategy.knows(name) || auto && name == AUTO;
        for name in self.given.names().filter(|name| !means(name)) {
            let message = format!("{name} has no effect in {}", strategy.name());
            let warning = Diagnostic::warning("ignored_parameter", message);
            self.told.push(warning.at(self.given.key(name)));
        }
    }

    /// Where the first of these parameters stands that is given.
    fn place(&self, parameters: &[&str]) -> &'a Place {
        let given = parameters.iter().find(|name| self.given.get(name).is_some());
        self.given.place_of(given.unwrap_or(&""))
    }
}
