//! What an event makes of a card (orchestrate.md §4).

use std::sync::Arc;

use super::card::{Branch, BranchState, Card, Passed, Review, State, Verdict, Waiting};
use super::event::{Event, New, Origin};
use crate::limits::Limits;

/// How often a card is begun in a row before it counts as failed.
pub const MOST_TRIES: u32 = 3;

impl Card {
    /// A new card.
    pub(super) fn new(task_id: Arc<str>, new: New) -> Card {
        let New { title, body, kind, role, write, origin, depends_on, gates, limits } = new;
        let of = |part: fn(&Origin) -> &Arc<str>| origin.as_ref().map(part).cloned();
        Card {
            task_id,
            phase_id: of(|it| &it.phase_id),
            card_id: of(|it| &it.card_id),
            issue_id: of(|it| &it.issue_id),
            title,
            state: State::Planned,
            role,
            agent: None,
            write,
            branch: Branch::default(),
            attempts: 0,
            runs: Vec::new(),
            review: None,
            gates: gates.into_iter().map(|gate| (gate, Passed::Unknown)).collect(),
            waiting_on: None,
            events: Vec::new(),
            kind,
            depends_on,
            template: of(|it| &it.template),
            budget: limits,
            limits: Limits::default(),
            digest: of(|it| &it.digest),
            released: None,
            verdicts: Vec::new(),
            findings: Vec::new(),
            authors: Vec::new(),
            open_run: None,
            failures: 0,
            body,
        }
    }

    /// Lets an event happen to it.
    pub(super) fn take(&mut self, actor: &Arc<str>, event: Event) {
        match event {
            Event::Made(_) => {}
            Event::Assigned { role, agent, branch } => {
                self.authors.push(agent.clone());
                (self.role, self.agent, self.state) = (role, Some(agent), State::Implementing);
                self.enter(branch, None, BranchState::Created);
                self.void();
            }
            Event::Blocked { .. } => self.state = State::Blocked,
            Event::Begun { run, agent, authors, branch, base, limits } => {
                self.limits = limits;
                self.state = State::Implementing;
                self.attempts += 1;
                self.authors.extend([agent.clone()].into_iter().chain(authors));
                self.agent = Some(agent);
                self.runs.push(run.clone());
                self.open_run = Some(run);
                self.branch.base = self.branch.base.take().or(base);
                self.enter(branch, None, BranchState::Created);
                self.void();
            }
            Event::RolledBack { run, head, limits, .. } => {
                self.limits = limits;
                self.state = State::Implementing;
                self.runs.push(run.clone());
                self.open_run = Some(run);
                self.findings.clear();
                self.enter(None, head, BranchState::Created);
                self.void();
            }
            Event::Asked => {
                let (reason, run) = ("input".into(), self.open_run.clone());
                self.waiting_on = Some(Waiting { reason, run });
            }
            Event::Fell { .. } => {
                (self.open_run, self.waiting_on) = (None, None);
                self.failures += 1;
                if self.failures >= MOST_TRIES {
                    (self.state, self.failures) = (State::Failed, 0);
                }
            }
            Event::Executed { head, gates, findings } => {
                (self.open_run, self.waiting_on, self.failures) = (None, None, 0);
                self.gates.extend(gates);
                self.branch.head = head.or(self.branch.head.take());
                if findings.is_empty() {
                    self.submit();
                } else {
                    self.ask_for_changes(findings);
                }
            }
            Event::Submitted { branch, head } => {
                if head != self.branch.head {
                    self.void();
                }
                self.enter(branch, head, BranchState::UnderReview);
                self.submit();
            }
            Event::Judged { verdict, commit, findings } => {
                // Where nobody can tell the head, the commit that was looked at is it.
                self.branch.head = self.branch.head.take().or_else(|| commit.clone());
                let review = Review { verdict, commit, by: actor.clone(), findings };
                self.judge(review);
            }
            Event::Settled { verdict } => {
                self.verdicts.clear();
                let commit = self.branch.head.clone();
                self.judge(Review { verdict, commit, by: actor.clone(), findings: Vec::new() });
            }
            Event::Disputed { run } => {
                self.waiting_on = Some(Waiting { reason: "conflict".into(), run: Some(run) });
            }
            Event::ReleaseAsked { run } => {
                self.waiting_on = Some(Waiting { reason: "merge".into(), run: Some(run) });
            }
            Event::Released { commit, .. } => (self.released, self.waiting_on) = (commit, None),
            Event::Denied => self.waiting_on = None,
            Event::SentBack { findings } => {
                self.void();
                self.ask_for_changes(findings);
            }
            Event::Integrated { .. } => {
                (self.state, self.waiting_on) = (State::Integrated, None);
                self.leave(BranchState::Merged);
            }
            Event::Cancelled => {
                (self.state, self.waiting_on, self.open_run) = (State::Cancelled, None, None);
                self.leave(BranchState::Abandoned);
            }
        }
    }

    fn enter(&mut self, name: Option<Arc<str>>, head: Option<Arc<str>>, state: BranchState) {
        self.branch.name = name.or(self.branch.name.take());
        self.branch.head = head.or(self.branch.head.take());
        self.leave(state);
    }

    fn leave(&mut self, state: BranchState) {
        if self.branch.name.is_some() {
            self.branch.state = state;
        }
    }

    /// What was said of other work counts no longer.
    fn void(&mut self) {
        (self.review, self.released, self.waiting_on) = (None, None, None);
        self.verdicts.clear();
    }

    fn submit(&mut self) {
        self.findings.clear();
        self.state = State::Reviewing;
        let is_approved = self.is_approved();
        self.leave(if is_approved { BranchState::Approved } else { BranchState::UnderReview });
    }

    fn ask_for_changes(&mut self, findings: Vec<Arc<str>>) {
        self.findings = findings;
        self.state = State::ChangesRequested;
        self.leave(BranchState::UnderReview);
    }

    fn judge(&mut self, review: Review) {
        self.verdicts.retain(|it| it.by != review.by && it.commit == review.commit);
        self.verdicts.push(review.clone());
        let disagrees = self.verdicts.iter().any(|it| it.verdict != review.verdict);
        let (verdict, findings) = (review.verdict, review.findings.clone());
        self.review = Some(review);
        (self.released, self.waiting_on) = (None, None);
        match verdict {
            _ if disagrees => {
                self.waiting_on = Some(Waiting { reason: "conflict".into(), run: None });
                self.state = State::Reviewing;
                self.leave(BranchState::UnderReview);
            }
            Verdict::Approved => self.submit(),
            Verdict::ChangesRequested => self.ask_for_changes(findings),
        }
    }
}
