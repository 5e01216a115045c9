//! How far a pattern has come: what was said, by whom, and what it means.

use super::{Form, Pattern, Role, convergence::End};
use crate::{
    call::{Fault, Owner, Reply},
    scope::Scope,
    time::{Duration, Time},
    verdict::{self, Ruling, Signal, Signals},
};

/// A place in a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// Which of the pattern's stages.
    pub(super) index: usize,
    /// Which cycle, from 1.
    pub(super) round: u64,
    /// Who speaks.
    pub(super) roles: Vec<Role>,
    /// Whether people were asked for it: such a turn is there whatever the ceiling.
    pub(super) is_answered: bool,
}

/// What may follow a stage.
pub(super) enum Plan {
    /// This one.
    Stage(At),
    /// Another one, for which there are too few turns.
    Full,
    /// Nothing: the pattern has gone its way.
    Over,
}

/// One role that has spoken, or failed to.
pub(super) struct Turn {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its cycle, from 1.
    pub(super) round: u64,
    /// Its stage among all of the run, from 1.
    pub(super) stage: u64,
    /// Which of the pattern's stages that is.
    pub(super) index: usize,
    pub(super) role: Role,
    pub(super) reply: Reply,
    /// What it signals.
    pub(super) says: Signals,
    /// Of that the one that counts.
    pub(super) counts: Option<Signal>,
}

impl Turn {
    /// Whether nothing came of it: it failed, or is blank.
    pub(super) fn has_failed(&self) -> bool {
        self.reply.contribution().is_none()
    }

    /// Whether it said something else than that a person has to be asked.
    fn has_contributed(&self) -> bool {
        !self.has_failed() && self.counts != Some(Signal::NeedsInput)
    }
}

/// What a person is to answer.
#[derive(Clone)]
pub(super) struct Question {
    /// The turn it is about.
    pub(super) turn: u64,
    /// Who speaks again once it is answered.
    pub(super) role: Role,
    /// The reply it comes from.
    pub(super) of: Reply,
    pub(super) text: String,
}

impl Question {
    /// What its call is called, below `person`.
    pub(super) fn name(&self) -> String {
        format!("turn-{}", self.turn)
    }
}

/// A question with what a person said to it.
pub(super) struct Answered {
    pub(super) question: Question,
    pub(super) reply: Reply,
}

/// All that has come of a pattern so far.
pub(super) struct Course<'p> {
    pub(super) pattern: &'p Pattern,
    /// What the planner said.
    pub(super) planned: Option<Reply>,
    pub(super) turns: Vec<Turn>,
    pub(super) answers: Vec<Answered>,
    /// What is asked and not answered, all of it.
    pub(super) open: Vec<Question>,
    /// Why people are asked, and which layer says so.
    pub(super) asks_because: Option<(&'static str, &'static str)>,
    /// How long people were waited for.
    pub(super) waited: Duration,
    /// How many turns in a row have failed.
    pub(super) failures: usize,
    pub(super) judge_calls: u64,
    /// The cycle in which the judge was asked last.
    pub(super) judged: u64,
    /// How many stages have begun.
    pub(super) stages: u64,
    /// Why nothing more can be asked.
    pub(super) stopped: Option<Fault>,
    pub(super) end: Option<End>,
}

impl At {
    /// Where a pattern begins.
    pub(super) fn first(pattern: &Pattern) -> At {
        let mut first = At::stage(pattern, 0, 1);
        first.cut(pattern, 0);
        first
    }

    fn stage(pattern: &Pattern, index: usize, round: u64) -> At {
        let roles = pattern.form.shape().stages[index].roles.to_vec();
        At { index, round, roles, is_answered: false }
    }

    /// Lets only so many speak as there are turns: by plain keywords no turn is kept for anybody.
    fn cut(&mut self, pattern: &Pattern, turns: u64) {
        if pattern.literal {
            let left =
                usize::try_from(pattern.max_rounds.saturating_sub(turns)).unwrap_or(usize::MAX);
            self.roles.truncate(left);
        }
    }
}

impl<'p> Course<'p> {
    pub(super) fn new(pattern: &'p Pattern) -> Course<'p> {
        Course {
            pattern,
            planned: None,
            turns: Vec::new(),
            answers: Vec::new(),
            open: Vec::new(),
            asks_because: None,
            waited: Duration::default(),
            failures: 0,
            judge_calls: 0,
            judged: 0,
            stages: 0,
            stopped: None,
            end: None,
        }
    }

    /// The name of the stage that comes next.
    pub(super) fn place(&self) -> String {
        format!("stage-{}", self.stages + 1)
    }

    /// When the time of the run is over.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.pattern.timeout.map(|timeout| Time::default() + timeout + self.waited)
    }

    /// Whether it is.
    pub(super) fn is_late(&self, cx: &Scope) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= cx.moment().at)
    }

    /// When the turns of a stage are cut off. The one that an answer opens is there for that answer,
    /// and has the time of a whole run if there is none left.
    pub(super) fn end_of_turn(&self, cx: &Scope, at: &At) -> Option<Time> {
        let afresh = || self.pattern.timeout.map(|timeout| cx.moment().at + timeout);
        if at.is_answered && self.is_late(cx) { afresh() } else { self.deadline() }
    }

    /// Adds what the members of a stage said. A stage in which nobody could be asked at all is none.
    pub(super) fn add(&mut self, place: &Scope, at: &At, replies: Vec<Reply>) {
        self.stopped = stop(&replies);
        let was_asked = at.roles.iter().any(|role| place.was_asked(role.as_str()));
        if !was_asked && self.stopped.is_some() {
            return;
        }
        self.stages += 1;
        let failed = |reply: &&Reply| reply.contribution().is_none() && !reply.is_stopped();
        let failures = replies.iter().filter(failed).count();
        let has_success = replies.iter().any(|reply| reply.contribution().is_some());
        self.failures = if has_success { 0 } else { self.failures + failures };
        for (role, reply) in at.roles.iter().zip(replies) {
            let says = self.read(&reply);
            self.turns.push(Turn {
                number: self.turns.len() as u64 + 1,
                round: at.round,
                stage: self.stages,
                index: at.index,
                role: *role,
                counts: self.counting(*role, &says),
                reply,
                says,
            });
        }
    }

    fn read(&self, reply: &Reply) -> Signals {
        let Some(answer) = reply.contribution() else { return Signals::default() };
        if self.pattern.literal {
            verdict::literal_signals(answer)
        } else {
            verdict::signals(answer)
        }
    }

    /// The signal that counts of those that a role gives: the first that it may give.
    fn counting(&self, role: Role, says: &Signals) -> Option<Signal> {
        let literal = self.pattern.literal;
        let mut given = says.given.clone();
        if literal {
            given.sort_by_key(|signal| *signal != Signal::Approval);
        }
        let may_give = |signal: &Signal| match signal {
            Signal::NeedsInput => true,
            Signal::Blocking => matches!(role, Role::Reviewer | Role::Critic),
            Signal::Conflict => role == Role::Synthesizer,
            Signal::Approval => literal || self.closes(role) && role != Role::Arbiter,
            Signal::NoBlocking => role == Role::Reviewer,
            Signal::Ruling(_) => role == Role::Arbiter,
        };
        given.into_iter().find(may_give)
    }

    /// Whether a role's word may end it.
    pub(super) fn closes(&self, role: Role) -> bool {
        self.pattern.form.shape().closes == role
    }

    /// The turns of the last stage.
    pub(super) fn last_stage(&self) -> &[Turn] {
        let last = self.turns.last().map(|turn| turn.stage);
        let begins = self.turns.iter().position(|turn| Some(turn.stage) == last);
        &self.turns[begins.unwrap_or_default()..]
    }

    /// The contributions of a role, the latest last.
    pub(super) fn said(&self, role: Role) -> impl DoubleEndedIterator<Item = &Turn> {
        self.turns.iter().filter(move |turn| turn.role == role && turn.has_contributed())
    }

    /// What each of these roles said last in a stage of the pattern in this cycle, or that it failed.
    pub(super) fn of_stage(&self, index: usize, round: u64) -> Vec<&Turn> {
        let roles = self.pattern.form.shape().stages[index].roles.iter();
        let of_role = |role: &Role| {
            let mut turns = self
                .turns
                .iter()
                .filter(|it| (it.index, it.round, it.role) == (index, round, *role));
            let last = turns.clone().next_back();
            turns.rfind(|turn| turn.has_contributed()).or(last)
        };
        roles.filter_map(of_role).collect()
    }

    /// The work as it is, and as it was before.
    pub(super) fn products(&self) -> impl Iterator<Item = &Turn> {
        let products = self.pattern.form.shape().products;
        let is_one = |turn: &&Turn| products.contains(&turn.role) && turn.has_contributed();
        self.turns.iter().rev().filter(is_one)
    }

    /// The latest decision of the arbiter.
    pub(super) fn ruling(&self) -> Option<Ruling> {
        self.said(Role::Arbiter).next_back()?.says.ruling()
    }

    /// What may follow the stage at `at`, which is the last one.
    pub(super) fn plan(&self, at: &At) -> Plan {
        let (shape, literal) = (self.pattern.form.shape(), self.pattern.literal);
        let again = At { is_answered: false, ..at.clone() };
        if !literal && self.last_stage().iter().all(Turn::has_failed) {
            if self.fits(&again) {
                return Plan::Stage(again);
            }
            if !shape.stages[at.index].may_be_dropped {
                return Plan::Full;
            }
        }
        let mut index = at.index + 1;
        while shape.stages.get(index).is_some_and(|stage| {
            !literal
                && stage.may_be_dropped
                && !self.fits(&At::stage(self.pattern, index, at.round))
        }) {
            index += 1;
        }
        let mut next = match (shape.stages.get(index), shape.again) {
            (Some(_), _) => At::stage(self.pattern, index, at.round),
            (None, Some(_)) if literal && self.pattern.form == Form::Review => {
                At::stage(self.pattern, 0, at.round + 1)
            }
            (None, Some(first)) => At::stage(self.pattern, first, at.round + 1),
            (None, None) => return Plan::Over,
        };
        let begins_cycle = next.round > at.round && self.pattern.form == Form::Consensus;
        if begins_cycle && self.turns_left() < self.pattern.form.slots() {
            return Plan::Over;
        }
        if !self.fits(&next) {
            return Plan::Full;
        }
        next.cut(self.pattern, self.turns.len() as u64);
        Plan::Stage(next)
    }

    fn turns_left(&self) -> u64 {
        self.pattern.max_rounds.saturating_sub(self.turns.len() as u64)
    }

    /// Whether there are turns for a stage. Consensus and debate keep one for who closes them, and that
    /// one may be repeated beyond the ceiling.
    fn fits(&self, at: &At) -> bool {
        let left = self.turns_left();
        if self.pattern.literal || self.pattern.form == Form::Review {
            return left > 0;
        }
        let is_last = at.roles.iter().any(|role| self.closes(*role));
        is_last || (at.roles.len() as u64) < left
    }
}

/// Why nothing more can be asked, if that befell one of these: what lets nothing go on comes first.
pub(super) fn stop(replies: &[Reply]) -> Option<Fault> {
    let mut stops = replies.iter().filter(|reply| reply.is_stopped()).filter_map(Reply::fault);
    let is_budget = |fault: &&Fault| matches!(fault, Fault::OverBudget { of: Owner::Run, .. });
    let halted = stops.clone().find(|fault| !is_budget(fault));
    halted.or_else(|| stops.next()).cloned()
}
