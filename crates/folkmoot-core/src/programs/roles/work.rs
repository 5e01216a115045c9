//! The roles at work: who speaks after whom, and what ends it.

use super::{
    Complexity, Path, Role, Roles,
    handoff::{HandOff, Written},
    review::{asks, passes},
    role::{hand_off_now, once_more},
};
use crate::{
    call::{Call, FailureKind, Fault, Limit, Outcome, Owner, Part, Prompt, Reply},
    event::Ending,
    key::Key,
    known::Entry,
    programs::{language, turn},
    scope::{Halt, Scope},
    verdict::Reading,
};

/// How a role team ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The last review passes, or the one agent has answered.
    Done,
    /// The review after the rework still reports issues.
    DoneWithFindings,
    /// A role failed.
    Failed,
    /// Nothing is left of the budget, or of the run's.
    BudgetExceeded,
    /// Someone cancelled it.
    Cancelled,
}

/// Why the work goes no further for now, or at all.
pub(super) enum Stop {
    Halted(Halt),
    Ended(End),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Stop {
        Stop::Halted(halt)
    }
}

/// A turn that is over.
pub(super) struct Spoken<'s> {
    pub(super) role: Role,
    pub(super) round: u32,
    pub(super) reply: Reply,
    /// Its calls, in the order of asking.
    pub(super) calls: Vec<&'s Entry>,
    /// Whether it was told to hand off before it was done.
    pub(super) is_incomplete: bool,
    /// Whether it needs to hear from a person before it can go on.
    pub(super) is_asking: bool,
    /// The tokens that it took, and whether all so far are inside the budget.
    pub(super) tokens: u64,
    pub(super) is_inside: bool,
    /// The record with which it ended.
    pub(super) seq: u64,
}

impl Spoken<'_> {
    /// Whether it came to something that others can go on from.
    pub(super) fn is_finished(&self) -> bool {
        self.reply.outcome.is_ok() && !self.is_asking
    }
}

/// How often people are asked in one run.
pub(crate) const MOST_QUESTIONS: usize = 3;

/// Under what the turns of the rework stand.
const REWORK: &str = "rework";

/// The work so far.
pub(super) struct Work<'a, 's> {
    pub(super) roles: &'a Roles,
    pub(super) cx: &'a Scope<'s>,
    pub(super) complexity: Complexity,
    pub(super) spoken: Vec<Spoken<'s>>,
    /// Whether the review calls for the rework.
    is_rework: bool,
    /// The review whose findings are open.
    pub(super) open: Option<Key>,
    /// What people were asked, and by whom; the last one may not be answered yet.
    pub(super) questions: Vec<(Role, Key)>,
    /// Who failed.
    pub(super) failed: Option<Role>,
    /// Whether an economy model was due and there is none.
    pub(super) lacks_economy: bool,
}

impl<'a, 's> Work<'a, 's> {
    pub(super) fn new(roles: &'a Roles, cx: &'a Scope<'s>) -> Work<'a, 's> {
        Work {
            roles,
            cx,
            complexity: roles.weighing.of(&cx.spec().task),
            spoken: Vec::new(),
            is_rework: false,
            open: None,
            questions: Vec::new(),
            failed: None,
            lacks_economy: false,
        }
    }

    /// One agent does everything.
    pub(super) fn alone(&mut self) -> Result<End, Stop> {
        self.turn(Role::General)?;
        Ok(End::Done)
    }

    /// Explorer, planner, coder and reviewer; if that finds issues, coder and reviewer once more.
    pub(super) fn in_turn(&mut self) -> Result<End, Stop> {
        self.turn(Role::Explorer)?;
        self.turn(Role::Planner)?;
        self.turn(Role::Coder)?;
        if self.review()? {
            return Ok(End::Done);
        }
        self.is_rework = true;
        self.turn(Role::Coder)?;
        Ok(if self.review()? { End::Done } else { End::DoneWithFindings })
    }

    /// Whether the work passes; what cannot be read even when asked for once more does not.
    fn review(&mut self) -> Result<bool, Stop> {
        let reply = self.turn(Role::Reviewer)?;
        let passed = reply.contribution().map(passes) == Some(Reading::Value(true));
        self.open = (!passed).then_some(reply.key);
        Ok(passed)
    }

    /// A role speaks; gives its last reply. If it needs to hear from a person, the run waits for that,
    /// and the role speaks again.
    fn turn(&mut self, role: Role) -> Result<Reply, Stop> {
        let place = if self.is_rework { self.cx.at(REWORK) } else { self.cx.clone() };
        let mut reply = self.speak(role, &place, role.name())?;
        while self.may_ask() && reply.contribution().is_some_and(asks) {
            let n = self.questions.len() + 1;
            let place = self.cx.at("person");
            let (agent, name) = (role.agent(), format!("question-{n}"));
            self.questions.push((role, place.key(&name)));
            let question = Call::Person { agent, prompt: Prompt::default().quote(&reply) };
            let answer = place.call(&name, question)?;
            if answer.is_stopped() {
                self.judge(role, answer)?;
            }
            reply = self.speak(role, &place, &format!("{}-{n}", role.name()))?;
        }
        Ok(reply)
    }

    fn may_ask(&self) -> bool {
        self.questions.len() < MOST_QUESTIONS
    }

    /// A role speaks once, unless nothing is left of the budget.
    fn speak(&mut self, role: Role, place: &Scope<'s>, name: &str) -> Result<Reply, Stop> {
        let used = self.cx.consumed();
        if self.total().is_some_and(|total| used >= total) {
            return Err(Stop::Ended(End::BudgetExceeded));
        }
        let agent = self.cx.spec().team.agent(&role.agent());
        self.lacks_economy |= self.cx.is_low() && agent.economy.is_empty();
        let round = if self.is_rework { 2 } else { 1 };
        let timed = self.roles.clocks.phase(place);
        let mut turn = turn::Turn::begin(&timed, name, agent, self.prompt(role))?;
        let most = self.roles.hand_off_at.get(&agent.id).copied().unwrap_or(u64::MAX);
        turn.go_on(|| self.cx.consumed_by(&agent.id) < most)?;
        let is_incomplete = turn.is_open();
        if is_incomplete {
            turn.ask(self.ask_again(&turn.reply, hand_off_now(language(self.cx))))?;
        }
        let mut is_cut_off = false;
        if role == Role::Reviewer && !is_read(&turn.reply) {
            let unread = turn.reply.clone();
            turn.ask(self.ask_again(&unread, once_more(language(self.cx))))?;
            is_cut_off = is_spent(&turn.reply);
            // What could not be read was said all the same.
            if is_cut_off || !turn.reply.is_stopped() && turn.reply.contribution().is_none() {
                turn.reply = unread;
            }
        }
        let reply = Reply { outcome: said(turn.reply.outcome), ..turn.reply };
        let total = self.cx.consumed();
        let calls = place.calls_of(name);
        // What was not started is no turn.
        if calls.iter().any(|call| !call.refused) {
            self.spoken.push(Spoken {
                role,
                round,
                reply: reply.clone(),
                calls,
                is_incomplete,
                is_asking: self.may_ask() && reply.contribution().is_some_and(asks),
                tokens: total.saturating_sub(used),
                is_inside: self.total().is_none_or(|most| total <= most),
                seq: self.cx.moment().seq,
            });
        }
        match self.judge(role, reply)? {
            _ if is_cut_off => Err(Stop::Ended(End::BudgetExceeded)),
            reply => Ok(reply),
        }
    }

    /// What a turn that is over means for the others.
    fn judge(&mut self, role: Role, reply: Reply) -> Result<Reply, Stop> {
        let is_inside = self.spoken.last().is_none_or(|spoken| spoken.is_inside);
        match reply.fault() {
            Some(Fault::Cancelled) => Err(Stop::Ended(End::Cancelled)),
            Some(Fault::Deadline) => Err(Stop::Ended(End::Failed)),
            Some(_) if is_spent(&reply) => Err(Stop::Ended(End::BudgetExceeded)),
            Some(_) => {
                self.failed = Some(role);
                Err(Stop::Ended(End::Failed))
            }
            None if !is_inside => Err(Stop::Ended(End::BudgetExceeded)),
            None => Ok(reply),
        }
    }

    /// The record with which the rework began, if it did: one that nothing was left for is none.
    pub(super) fn rework(&self) -> Option<u64> {
        let calls = self.is_rework.then(|| self.cx.at(REWORK).calls_of(Role::Coder.name()))?;
        Some(calls.iter().find(|call| !call.refused)?.asked)
    }

    pub(super) fn total(&self) -> Option<u64> {
        Some(self.roles.budget.as_ref()?.total())
    }

    /// The task, what people answered, what was handed on, the findings to be mended, and how to hand on.
    fn prompt(&self, role: Role) -> Prompt {
        let mut prompt = Prompt::task();
        let label = language(self.cx).pick("the answer to a question", "对提问的回答");
        prompt.parts.extend(self.questions.iter().map(|(_, key)| {
            let (key, label) = (key.clone(), label.into());
            Part::Handed { key, label }
        }));
        if role == Role::General {
            return prompt;
        }
        let handed = self.handed_on();
        if !handed.is_empty() {
            prompt.parts.push(Part::Memory(handed.into_iter().cloned().collect()));
        }
        if let Some(review) = self.open.clone().filter(|_| role == Role::Coder) {
            prompt.parts.push(Part::Findings(review));
        }
        prompt.say(role.form(language(self.cx)))
    }

    fn ask_again(&self, reply: &Reply, words: &str) -> Prompt {
        Prompt::after(reply).say(words).without_tools()
    }

    /// The replies that hand something on.
    pub(super) fn handed_on(&self) -> Vec<&Key> {
        self.finished().map(|spoken| &spoken.reply.key).collect()
    }

    /// The turns that came to something.
    fn finished(&self) -> impl DoubleEndedIterator<Item = &Spoken<'s>> {
        self.spoken.iter().filter(|spoken| spoken.is_finished())
    }

    /// How each of those replies handed on.
    pub(super) fn written(&self) -> impl Iterator<Item = (Role, Written)> {
        self.finished().map(|spoken| {
            let (known, language) = (self.cx.known(), language(self.cx));
            (spoken.role, HandOff::of(known, &spoken.reply.key, language).1)
        })
    }

    /// The last product: what the coder said, or who worked alone.
    fn product(&self) -> Option<Key> {
        let mut latest = self.finished().rev();
        let last = latest.find(|it| matches!(it.role, Role::Coder | Role::General))?;
        Some(last.reply.key.clone())
    }

    pub(super) fn ending(&self, end: End) -> Ending {
        let product: Vec<Key> = self.product().into_iter().collect();
        let latest = || self.handed_on().last().map(|key| (*key).clone());
        let partial = || self.product().or_else(latest).into_iter().collect();
        match end {
            End::Done if self.complexity.path == Path::Single => Ending::done("answered", product),
            End::Done => Ending::done("review_passed", product),
            End::DoneWithFindings => Ending::bound("findings_remain", product),
            End::Failed => Ending::failed("role_failed", partial()),
            End::Cancelled => Ending::failed("cancelled", partial()),
            End::BudgetExceeded => {
                let limit = Some(Limit::Tokens);
                Ending { limit, ..Ending::failed("budget_exceeded", partial()) }
            }
        }
    }
}

/// What a turn came to: one that says nothing failed, and tools that cannot be had any more are not
/// waited for.
fn said(outcome: Outcome) -> Outcome {
    let blank = || Fault::failed(FailureKind::Incomplete, "it said nothing");
    let answer = outcome?;
    let is_blank = answer.json.is_none() && answer.text.trim().is_empty();
    if is_blank { Err(blank()) } else { Ok(answer) }
}

/// Whether there is no budget left for a call.
fn is_spent(reply: &Reply) -> bool {
    matches!(reply.fault(), Some(Fault::OverBudget { of: Owner::Run | Owner::Scope, .. }))
}

/// Whether a review can be read; one that failed, or says nothing, is none that could be.
fn is_read(reply: &Reply) -> bool {
    let is_read = |answer| asks(answer) || matches!(passes(answer), Reading::Value(_));
    reply.contribution().is_none_or(is_read)
}
