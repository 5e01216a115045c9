//! The phases of each strategy, each with the most that its calls can read, whatever is answered
//! before (strategies.md §§2 to 9).
//!
//! It follows the programs, but is none of them run: the worst case in calls, in their longest chain,
//! in tokens and in money are different runs, and a bound must hold in every one. That no run of a
//! program passes it is tried on thousands of random ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use super::{
    forecast::{Comes, Forecast, Talk, WORDS},
    member::escaped,
    most::Most,
    take::Take,
};
use crate::{
    plan::LISTED,
    programs::{
        Adaptive, Broadcast, Consensus, Debate, ERROR, NOTES, Relay, Sequential, Supervise,
    },
    render::FRAME,
    spec::Collaboration,
    team::{AgentId, Team},
};

/// The most bytes of a character.
const CHARACTER: u64 = 4;

impl Forecast<'_> {
    pub(super) fn lay_out(
        &mut self,
        collaboration: &Collaboration,
        team: &Team,
        task: Option<&str>,
    ) {
        match collaboration {
            Collaboration::Broadcast(Broadcast { agents, rounds, .. }) => {
                let mut talk = self.first("round-1", agents);
                self.later_rounds(&mut talk, *rounds, Comes::Surely);
            }
            Collaboration::Sequential(sequential) => self.sequential(sequential),
            Collaboration::Debate(debate) => {
                let talk = self.first("round-1", &debate.agents);
                self.debate(debate, talk, Comes::Surely);
            }
            Collaboration::Supervisor(supervise) => self.supervised(supervise, Comes::Surely),
            Collaboration::Consensus(consensus) => self.consensus(consensus),
            Collaboration::Relay(relay) => self.relay(relay),
            Collaboration::Adaptive(Adaptive::Debate(debate)) => {
                let talk = self.first("round-1", &debate.agents);
                let heard = self.quotes(&talk).into_iter().sum();
                self.judge("agree", &debate.judge, heard, Comes::Perhaps);
                self.debate(debate, talk, Comes::Perhaps);
            }
            // One worker with the whole task is a part of the work.
            Collaboration::Adaptive(Adaptive::Supervise(supervise)) => {
                self.supervised(supervise, Comes::Perhaps);
            }
            Collaboration::Graph(graph) => self.graph(graph, team),
            Collaboration::Stages(stages) => self.stages(stages, team),
            Collaboration::Dispatch(dispatch) => self.dispatch(dispatch, team),
            Collaboration::Roles(roles) => self.roles(roles, task),
            Collaboration::Controller(controller) => self.controlled(controller),
            Collaboration::Coded(_) => {
                let agents: Vec<AgentId> = team.agents.iter().map(|it| it.id.clone()).collect();
                self.coded(&agents);
            }
            Collaboration::Pattern(pattern) => self.pattern(pattern, team),
            Collaboration::Roundtable(table) => self.roundtable(table),
        }
    }

    fn later_rounds(&mut self, talk: &mut Talk, rounds: u32, comes: Comes) {
        let name = rounds_from(2, rounds);
        for _ in 2..=rounds {
            self.next(&name, talk, 0, comes);
        }
    }

    fn debate(&mut self, debate: &Debate, mut talk: Talk, comes: Comes) {
        self.later_rounds(&mut talk, debate.rounds, comes);
        // An earlier round is heard if nobody spoke in the last; it was no longer.
        let heard = self.quotes(&talk).into_iter().sum();
        self.judge("judge", &debate.judge, heard, Comes::Perhaps);
    }

    fn sequential(&mut self, sequential: &Sequential) {
        // What was said so far, and each speaker's conversation as it was then.
        let mut said = Most::NOTHING;
        let mut known: BTreeMap<&AgentId, (Most, Most)> = BTreeMap::new();
        for (n, agent) in (1..).zip(&sequential.order) {
            let (kept, heard) = match known.get(agent) {
                Some((kept, then)) => (*kept + FRAME, since(said, *then)),
                None => (self.member(agent).opening, said),
            };
            let read = kept + heard + WORDS;
            let turn = self.one(&format!("step-{n}"), agent, read, Comes::Surely);
            said += self.member(agent).quote(turn.said);
            known.insert(agent, (turn.kept, said));
        }
    }

    fn consensus(&mut self, Consensus { agents, judge, .. }: &Consensus) {
        let mut talk = self.first("propose", agents);
        let proposals: Most = self.quotes(&talk).into_iter().sum();
        let names = self.names(agents);
        self.next("vote", &mut talk, names, Comes::Perhaps);
        let ballots: Most = self.quotes(&talk).into_iter().sum();
        self.judge("judge", judge, proposals + ballots + names, Comes::Perhaps);
    }

    /// The names in a list of candidates, or in a tally.
    fn names(&self, agents: &[AgentId]) -> u64 {
        let names = agents.iter().map(|agent| 3 * self.member(agent).agent.name.len() as u64 + 32);
        names.sum()
    }

    fn relay(&mut self, relay: &Relay) {
        let mut draft = Most::NOTHING;
        let later = rounds_from(2, relay.rounds);
        for n in 1..=relay.rounds {
            let (name, comes) =
                if n == 1 { ("round-1", Comes::Surely) } else { (&*later, Comes::Perhaps) };
            self.add(name, &distinct(&relay.order), Take::NOTHING);
            for agent in &relay.order {
                let read = self.member(agent).opening + draft + WORDS;
                let turn = self.one(name, agent, read, comes);
                draft = draft.or(self.member(agent).quote(turn.said));
            }
        }
    }

    fn supervised(&mut self, supervise: &Supervise, reports: Comes) {
        let Supervise { supervisor, workers, replan, strict, max_tasks, .. } = supervise;
        let notes = Most::of(NOTES).times(CHARACTER);
        let introductions: u64 = workers.iter().map(|worker| self.introduction(worker)).sum();
        let read = self.member(supervisor).opening + (2 * WORDS + introductions);
        let plan = self.one("plan", supervisor, read, Comes::Surely);
        let (mut kept, mut written) = (plan.kept, plan.said);
        if *replan {
            let read = kept + escaped(notes) + (FRAME + WORDS);
            let again = self.one("replan", supervisor, read, Comes::Perhaps);
            (kept, written) = (again.kept, written.or(again.said));
        }
        let works = if *strict { Comes::Perhaps } else { Comes::Surely };
        let outputs = self.work(workers, u64::from(*max_tasks), written, works);
        let reports = if *strict { Comes::Perhaps } else { reports };
        // A line and a quote for each task, a line for those that are too many; each id stands in a
        // line and, maybe with three characters for one, in the key of a quote.
        let name = workers.iter().map(|it| self.member(it).agent.name.len()).max();
        let line = 64 + 2 * name.unwrap_or_default() as u64;
        let error = ERROR as u64 * CHARACTER;
        let tasks = (outputs + (line + error)).times(u64::from(*max_tasks));
        let over = Most(written.0.map(|it| it / 2)).within(Most::of(LISTED)).times(2 * line);
        let read = kept + tasks + over + escaped(written).times(4) + escaped(notes);
        self.one("report", supervisor, read + (FRAME + WORDS), reports);
    }

    /// How a worker is introduced to the planner.
    fn introduction(&self, worker: &AgentId) -> u64 {
        let agent = self.member(worker).agent;
        let tags = agent.capabilities.iter().map(|tag| tag.len() + 2).sum::<usize>();
        let description = agent.description.as_ref().map_or(0, |it| it.len());
        let size = Most::of(agent.name.len() + description + tags + 16);
        escaped(size).0.unwrap_or(u64::MAX)
    }

    /// The tasks of a plan of this size, each of which may need all before it and go to any worker.
    /// Gives the largest quote of what comes of one.
    fn work(&mut self, workers: &[AgentId], tasks: u64, plan: Most, comes: Comes) -> Most {
        let opening =
            workers.iter().map(|it| self.member(it).opening).fold(Most::NOTHING, Most::or);
        // The descriptions stand in the plan, or the one is the task. So do the ids, each time
        // that they are named; a key may have three characters for one of them.
        let described = escaped(plan + opening) + plan.times(3);
        let mut before = Most::NOTHING;
        let mut largest = Most::NOTHING;
        let paths = workers.iter().map(|worker| self.member(worker).path());
        self.path += tasks.saturating_mul(paths.max().unwrap_or(1));
        for n in 1..=tasks {
            let mut most = None;
            let mut said = Most::NOTHING;
            for worker in workers {
                let member = self.member(worker);
                let read = member.opening + before + WORDS;
                said = said.or(member.quote(member.said(read + described)));
                let take = member.turn_priced(read, read + described).take;
                self.charge(worker, take.perhaps());
                most = Some(most.map_or(take, |most: Take| most.or(take)));
            }
            let take = most.unwrap_or(Take::NOTHING);
            let take = if n == 1 && comes == Comes::Surely { take } else { take.perhaps() };
            self.add("work", workers, take).any = workers.len() > 1;
            before += said;
            largest = largest.or(said);
        }
        // All descriptions together are no longer than the plan, whichever task has which.
        let mut most = Take::NOTHING;
        for worker in workers {
            let take = self.member(worker).reading(described);
            self.charge(worker, take);
            most = most.or(take);
        }
        self.add("work", workers, most);
        largest
    }
}

/// What came after something, of a sum that only grows.
fn since(all: Most, then: Most) -> Most {
    Most(all.0.zip(then.0).and_then(|(all, then)| all.checked_sub(then)))
}

fn distinct(agents: &[AgentId]) -> Vec<AgentId> {
    let mut seen = BTreeSet::new();
    agents.iter().filter(|agent| seen.insert(*agent)).cloned().collect()
}

/// What rounds alike are called together.
fn rounds_from(first: u32, last: u32) -> String {
    let rounds = iter::once(first).chain((last > first).then_some(last));
    rounds.map(|n| format!("round-{n}")).collect::<Vec<_>>().join(" to ")
}
