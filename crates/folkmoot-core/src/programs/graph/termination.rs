//! When a graph ends before its work is done (graph.md §§8, 9).

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{Condition, Facts, Group, Member, PARENT, Structure, Test, matching::is_equal};
use crate::{
    call::{Answer, Reply},
    findings::End,
    team::AgentId,
    time::Time,
};

/// Why a graph ended, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The judge said so.
    Converged,
    /// A reply matched.
    ResultMatch,
    /// A condition of the team's own holds, as strong as a match.
    Own(Arc<str>),
    /// A bound of the team's own is reached, as strong as a standstill.
    OwnBound(Arc<str>),
    /// No material finding was open.
    NoMaterialFindings,
    /// Replies no longer changed.
    Stuck,
    /// A loop had its rounds.
    MaxIterations,
    /// The clock ran out.
    Timeout,
    /// A finding came back twice.
    Oscillation,
    /// The number of open material findings did not fall.
    Plateau,
}

impl From<End> for Reason {
    fn from(end: End) -> Reason {
        match end {
            End::NoMaterialFindings => Reason::NoMaterialFindings,
            End::Oscillation => Reason::Oscillation,
            End::Plateau => Reason::Plateau,
        }
    }
}

impl Reason {
    /// Its word in results.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Reason::Converged => "converged",
            Reason::ResultMatch => "result_match",
            Reason::Own(name) | Reason::OwnBound(name) => name,
            Reason::Stuck => "stuck",
            Reason::MaxIterations => "max_iterations",
            Reason::Timeout => "timeout",
            Reason::NoMaterialFindings => "no_material_findings",
            Reason::Oscillation => "oscillation",
            Reason::Plateau => "plateau",
        }
    }

    /// Whether it ends a run without success.
    pub(super) fn is_bound(&self) -> bool {
        self.rank() > Reason::NoMaterialFindings.rank()
    }

    /// How strong it is, the strongest first. Those of one rank count in the order of the conditions.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Reason::Converged => 0,
            Reason::ResultMatch | Reason::Own(_) => 1,
            Reason::NoMaterialFindings => 2,
            Reason::Stuck | Reason::OwnBound(_) => 3,
            Reason::MaxIterations => 4,
            Reason::Timeout => 5,
            Reason::Oscillation => 6,
            Reason::Plateau => 7,
        }
    }

    /// The reason that a condition with this test is.
    pub(super) fn of(test: &Test) -> Reason {
        match test {
            Test::MaxIterations { .. } => Reason::MaxIterations,
            Test::Timeout(_) => Reason::Timeout,
            Test::Converged { .. } => Reason::Converged,
            Test::Matches { .. } => Reason::ResultMatch,
            Test::Own(own) if own.bound => Reason::OwnBound(own.name.clone()),
            Test::Own(own) => Reason::Own(own.name.clone()),
            Test::Stuck { .. } => Reason::Stuck,
        }
    }
}

/// Everything delivered so far: what conditions are judged on. Failed attempts are no part of it.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// By agent, its contributions, the latest last. Shared with those who look at them.
    replies: Arc<BTreeMap<AgentId, Vec<Reply>>>,
    /// What the lead has said who routes, the latest last.
    heard: Vec<Reply>,
    /// By loop: the rounds in which its closing agents have replied, and how many of them.
    rounds: Vec<BTreeMap<u32, u32>>,
    /// When the clock started.
    began: Option<Time>,
    now: Time,
    /// The round of the latest reply.
    round: u32,
}

impl History {
    /// Nothing yet. In a graph without loop the clock starts at once.
    pub(super) fn new(structure: &Structure, now: Time) -> History {
        let began = structure.loops.is_empty().then_some(now);
        let rounds = vec![BTreeMap::new(); structure.loops.len()];
        let silent = structure.agents.iter().map(|agent| (agent.clone(), Vec::new()));
        let replies = Arc::new(silent.collect());
        History { replies, heard: Vec::new(), rounds, began, now, round: 0 }
    }

    /// Adds what came in at `now`, in a round.
    pub(super) fn add(
        &mut self,
        structure: &Structure,
        agent: usize,
        round: u32,
        reply: &Reply,
        now: Time,
    ) {
        (self.now, self.round) = (now, round);
        let replies = Arc::make_mut(&mut self.replies);
        replies.entry(reply.agent.clone()).or_default().push(reply.clone());
        if let Some(own) = structure.loop_of(agent).filter(|_| structure.closes(agent)) {
            *self.rounds[own].entry(round).or_default() += 1;
        }
    }

    /// Takes the latest reply of an agent back, which counts as failed after all.
    pub(super) fn drop_last(
        &mut self,
        structure: &Structure,
        agent: usize,
        round: u32,
        id: &AgentId,
    ) {
        Arc::make_mut(&mut self.replies).get_mut(id).and_then(Vec::pop);
        if let Some(own) = structure.loop_of(agent).filter(|_| structure.closes(agent)) {
            let replies = self.rounds[own].entry(round).or_default();
            *replies = replies.saturating_sub(1);
            self.rounds[own].retain(|_, replies| *replies > 0);
        }
    }

    /// Notes that a back edge is taken.
    pub(super) fn goes_back(&mut self) {
        self.began = self.began.or(Some(self.now));
    }

    /// How many rounds a loop has finished.
    pub(super) fn rounds(&self, own: usize) -> usize {
        self.rounds[own].len()
    }

    /// The latest contribution of an agent.
    pub(super) fn latest(&self, agent: &AgentId) -> Option<&Reply> {
        self.replies.get(agent)?.last()
    }

    /// Adds a reply of the lead who routes. It is no contribution to the work.
    pub(super) fn hear(&mut self, reply: &Reply) {
        self.heard.push(reply.clone());
    }

    /// Who has contributed.
    pub(super) fn speakers(&self) -> impl Iterator<Item = &AgentId> {
        let spoken = self.replies.iter().filter(|(_, replies)| !replies.is_empty());
        spoken.map(|(agent, _)| agent)
    }

    /// What conditions of the team's own see of it.
    pub(super) fn facts(&self) -> Facts {
        let elapsed = self.began.map(|began| self.now.since(began)).unwrap_or_default();
        Facts { replies: self.replies.clone(), round: self.round, elapsed, ..Facts::default() }
    }

    fn contributions<'a>(&'a self, agent: &AgentId) -> impl DoubleEndedIterator<Item = &'a Answer> {
        let of_lead = Some(&self.heard).filter(|_| agent.as_str() == PARENT);
        let replies = self.replies.get(agent).or(of_lead);
        replies.into_iter().flatten().filter_map(Reply::contribution)
    }

    fn holds(&self, structure: &Structure, test: &Test) -> bool {
        match test {
            Test::MaxIterations { rounds, of } => {
                let meant = of.as_ref().map(|agent| {
                    structure.number(agent).and_then(|agent| structure.loop_of(agent))
                });
                let is_meant = |own: usize| meant.is_none_or(|meant| meant == Some(own));
                let finished = |own| self.rounds(own) >= *rounds as usize;
                (0..self.rounds.len()).any(|own| is_meant(own) && finished(own))
            }
            Test::Timeout(most) => self.began.is_some_and(|began| self.now.since(began) >= *most),
            // The judge is asked, or a rule of the team's own, not the history.
            Test::Converged { .. } | Test::Own(_) => false,
            Test::Matches { agent, matchers } => {
                let mut latest = self.contributions(agent).rev();
                latest.next().is_some_and(|reply| matchers.hold(reply, latest.next()))
            }
            Test::Stuck { repeats, agent } => {
                let mut agents: Box<dyn Iterator<Item = &AgentId>> = match agent {
                    Some(agent) => Box::new(std::iter::once(agent)),
                    None => Box::new(self.speakers()),
                };
                agents.any(|agent| self.is_stuck(agent, *repeats as usize))
            }
        }
    }

    fn is_stuck(&self, agent: &AgentId, repeats: usize) -> bool {
        let mut latest = self.contributions(agent).rev();
        let Some(last) = latest.next() else { return false };
        let others = repeats.saturating_sub(1);
        latest.take(others).take_while(|earlier| is_equal(last, earlier)).count() == others
    }
}

/// What a termination comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged<'g> {
    /// The true conditions, the strongest first, if it holds.
    pub(super) holding: Option<Vec<&'g Condition>>,
}

impl Judged<'_> {
    /// The true conditions with their reasons, as they are written.
    pub(super) fn ends(&self) -> Vec<(Reason, Value)> {
        let ends = self.holding.iter().flatten();
        ends.map(|it| (Reason::of(&it.test), it.written.clone())).collect()
    }

    /// Why it holds, the strongest reason first.
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let mut reasons: Vec<Reason> = Vec::new();
        for condition in self.holding.iter().flatten() {
            let reason = Reason::of(&condition.test);
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }
}

impl Group {
    /// Judges all conditions on one snapshot; `said` is what is taken for true of those that the judge
    /// has been asked about, and of the team's own.
    pub(super) fn judge<'g>(
        &'g self,
        structure: &Structure,
        history: &History,
        said: &dyn Fn(&Condition) -> bool,
    ) -> Judged<'g> {
        let test = |condition: &Condition| match condition.test {
            Test::Converged { .. } | Test::Own(_) => said(condition),
            _ => history.holds(structure, &condition.test),
        };
        let holding = self.holds(&test).then(|| {
            let mut holding: Vec<&Condition> =
                self.conditions().into_iter().filter(|it| test(it)).collect();
            holding.sort_by_key(|condition| Reason::of(&condition.test).rank());
            holding
        });
        Judged { holding }
    }

    fn holds(&self, test: &dyn Fn(&Condition) -> bool) -> bool {
        let member = |member: &Member| match member {
            Member::One(condition) => test(condition),
            Member::Group(group) => group.holds(test),
        };
        self.any_of.as_ref().is_none_or(|any| any.iter().any(member))
            && self.all_of.as_ref().is_none_or(|all| all.iter().all(member))
    }
}
