//! A run laid out in its phases, before any of it happens.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;

use super::{
    graph::Taken,
    member::{Member, Turn},
    most::{Most, others},
    take::Take,
};
use crate::{
    limits::{CONCURRENCY, Limits},
    render::FRAME,
    spec::Collaboration,
    team::{AgentId, Team},
};

/// Folkmoot's own words in one prompt, in bytes, without the names in them.
pub(super) const WORDS: u64 = 512;

/// A part of a run that begins when the one before it is over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its name, the head of its calls' keys; of phases alike, the first and the last.
    pub name: String,
    /// Who is asked, by name.
    pub agents: Vec<Arc<str>>,
    /// Whether it is known only on the way who of them is asked how often.
    pub any: bool,
    /// What it takes.
    #[serde(flatten)]
    pub take: Take,
}

/// Whether a phase comes whatever happens, as long as the run is not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comes {
    Surely,
    Perhaps,
}

impl Comes {
    pub(super) fn of(self, take: Take) -> Take {
        match self {
            Comes::Surely => take,
            Comes::Perhaps => take.perhaps(),
        }
    }
}

/// What is laid out so far.
pub(super) struct Forecast<'a> {
    members: BTreeMap<&'a AgentId, Member<'a>>,
    pub(super) phases: Vec<Phase>,
    pub(super) shares: BTreeMap<&'a AgentId, Take>,
    /// The longest chain of calls of which each waits for the one before.
    pub(super) path: u64,
    /// Agents that repeat what they are shown, and to whom their own words can come back.
    pub(super) echoes: Vec<Arc<str>>,
    /// What a graph takes if no call fails (graph.md §16); all else holds whatever fails.
    pub(super) unfailing: Option<Taken>,
    /// Whether nothing but limits bounds how often anybody is asked.
    pub(super) is_open: bool,
    /// The run's limit of calls.
    pub(super) calls: Option<u64>,
    /// How many calls can be under way at once, whatever is set aside for each.
    pub(super) at_once: u64,
}

/// Agents that hear each other: what each one's conversation has come to, and what it said last.
pub(super) struct Talk<'p> {
    pub(super) agents: &'p [AgentId],
    turns: Vec<Turn>,
}

impl<'a> Forecast<'a> {
    /// The work of a team on `task`, or on any task.
    pub(super) fn of(
        collaboration: &Collaboration,
        team: &'a Team,
        limits: &Limits,
        task: Option<&str>,
    ) -> Forecast<'a> {
        let soft_tokens = collaboration.soft_tokens();
        let mut forecast = Forecast::new(team, &Limits { soft_tokens, ..*limits }, task);
        forecast.lay_out(collaboration, team, task);
        forecast
    }

    /// What all phases take together.
    pub(super) fn total(&self) -> Take {
        self.phases.iter().fold(Take::NOTHING, |total, phase| total.and(phase.take))
    }

    fn new(team: &'a Team, limits: &Limits, task: Option<&str>) -> Forecast<'a> {
        let members = team.everyone().map(|it| (&it.id, Member::new(it, limits, task)));
        let shares = team.everyone().map(|agent| (&agent.id, Take::NOTHING));
        Forecast {
            members: members.collect(),
            phases: Vec::new(),
            shares: shares.collect(),
            path: 0,
            echoes: Vec::new(),
            unfailing: None,
            is_open: false,
            calls: limits.calls,
            at_once: match limits.concurrency {
                _ if limits.is_metered() => 1,
                most => most.unwrap_or(CONCURRENCY),
            },
        }
    }

    /// Panics on a foreign id: specs are checked when they are made.
    pub(super) fn member(&self, agent: &AgentId) -> &Member<'a> {
        self.members.get(agent).expect("a checked spec names its own agents")
    }

    /// Adds so much to the system message of an agent, in bytes.
    pub(super) fn brief(&mut self, agent: &AgentId, more: u64) {
        if let Some(member) = self.members.get_mut(agent) {
            member.opening += Most::from(more);
        }
    }

    /// Lets an agent lead: its tools are Folkmoot's own.
    pub(super) fn lead(&mut self, agent: &AgentId) {
        if let Some(member) = self.members.get_mut(agent) {
            member.lead();
        }
    }

    /// Adds to a phase; begins it unless it is under way.
    pub(super) fn add(&mut self, phase: &str, agents: &[AgentId], take: Take) -> &mut Phase {
        if self.phases.last().is_none_or(|last| last.name != phase) {
            let names = agents.iter().map(|agent| self.member(agent).agent.name.clone());
            let (name, agents) = (phase.to_owned(), names.collect());
            self.phases.push(Phase { name, agents, any: false, take: Take::NOTHING });
        }
        let last = self.phases.last_mut().expect("it was just begun");
        last.take = last.take.and(take);
        last
    }

    /// Adds to what an agent takes.
    pub(super) fn charge(&mut self, agent: &AgentId, take: Take) {
        let share = self.shares.get_mut(agent).expect("a checked spec names its own agents");
        *share = share.and(take);
    }

    /// One agent speaks, once asked a request of this size.
    pub(super) fn one(&mut self, phase: &str, agent: &AgentId, read: Most, comes: Comes) -> Turn {
        self.path += self.member(agent).path();
        let turn = self.member(agent).turn(read);
        let take = comes.of(turn.take);
        self.add(phase, std::slice::from_ref(agent), take);
        self.charge(agent, take);
        turn
    }

    /// All speak at once, each asked a request of its size.
    fn everyone(
        &mut self,
        phase: &str,
        agents: &[AgentId],
        reads: impl IntoIterator<Item = Most>,
        comes: Comes,
    ) -> Vec<Turn> {
        let paths = agents.iter().map(|agent| self.member(agent).path());
        self.path += paths.max().unwrap_or(1);
        let turn = |(agent, read): (&AgentId, Most)| {
            let turn = self.member(agent).turn(read);
            let take = comes.of(turn.take);
            self.add(phase, agents, take);
            self.charge(agent, take);
            turn
        };
        agents.iter().zip(reads).map(turn).collect()
    }

    /// All answer the task, and nobody has heard anybody.
    pub(super) fn first<'p>(&mut self, phase: &str, agents: &'p [AgentId]) -> Talk<'p> {
        let reads: Vec<Most> =
            agents.iter().map(|agent| self.member(agent).opening + WORDS).collect();
        let turns = self.everyone(phase, agents, reads, Comes::Surely);
        Talk { agents, turns }
    }

    /// All go on after having heard the others; `more` is what else the prompt says.
    pub(super) fn next(&mut self, phase: &str, talk: &mut Talk, more: u64, comes: Comes) {
        let heard = others(&self.quotes(talk));
        let kept = talk.turns.iter().map(|turn| turn.kept);
        let reads: Vec<Most> =
            kept.zip(heard).map(|(kept, heard)| kept + heard + (FRAME + WORDS + more)).collect();
        talk.turns = self.everyone(phase, talk.agents, reads, comes);
    }

    /// The quotes of what was said last.
    pub(super) fn quotes(&self, talk: &Talk) -> Vec<Most> {
        let said = talk.agents.iter().zip(&talk.turns);
        said.map(|(agent, turn)| self.member(agent).quote(turn.said)).collect()
    }

    /// Somebody is asked afresh, and shown quotes of this size.
    pub(super) fn judge(&mut self, phase: &str, judge: &AgentId, shown: Most, comes: Comes) {
        let read = self.member(judge).opening + shown + WORDS;
        self.one(phase, judge, read, comes);
    }
}
