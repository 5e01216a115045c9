//! All cards of an owner: a fold of their stream.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::card::{
    Branch, BranchState, Card, Changed, Kind, Passed, Review, State, Verdict, Waiting,
};
use super::{Refusals, Role, refused};
use crate::diagnostic::quoted;

/// How often a card is begun in a row before it counts as failed.
pub const MOST_TRIES: u32 = 3;

/// A row of the stream: something happened to a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// Who made it happen.
    pub actor: Arc<str>,
    /// The card.
    pub task_id: Arc<str>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Who asks, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// Who.
    pub actor: Arc<str>,
}

impl Mark {
    /// A row of this moment.
    pub fn row(&self, task_id: &Arc<str>, event: Event) -> Row {
        Row { at: self.at, actor: self.actor.clone(), task_id: task_id.clone(), event }
    }
}

/// A new card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct New {
    /// What it is about, in a line.
    pub title: Arc<str>,
    /// And at length.
    pub body: Arc<str>,
    /// What sort it is.
    pub kind: Kind,
    /// Who is to do it.
    pub role: Role,
    /// Whether it writes.
    pub write: bool,
    /// The plan that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The cards that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Arc<str>>,
    /// What its work must pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Arc<str>>,
}

/// The plan that a card comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The phase.
    pub phase_id: Arc<str>,
    /// The digest of its plan.
    pub digest: Arc<str>,
    /// What the card is called there.
    pub card_id: Arc<str>,
    /// The issue.
    pub issue_id: Arc<str>,
    /// The template.
    pub template: Arc<str>,
}

/// What happens to a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// It is there.
    Made(New),
    /// Somebody is to do it.
    Assigned {
        /// As what.
        role: Role,
        /// Who.
        agent: Arc<str>,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
    },
    /// It was asked for before other cards were done.
    Blocked {
        /// Those.
        by: Vec<Arc<str>>,
    },
    /// A run of it began.
    Begun {
        /// The run.
        run: Arc<str>,
        /// Who works in it.
        agent: Arc<str>,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
        /// Who may write in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        authors: Vec<Arc<str>>,
        /// The commit that the branch began from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<Arc<str>>,
    },
    /// Its run asks a person.
    Asked,
    /// Its run failed.
    Fell {
        /// Why.
        why: Arc<str>,
    },
    /// Its run is done.
    Executed {
        /// The last commit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Arc<str>>,
        /// What its work passed.
        #[serde(default)]
        gates: BTreeMap<Arc<str>, Passed>,
        /// Why it has to be done better; nothing if it may be reviewed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Arc<str>>,
    },
    /// It is to be reviewed.
    Submitted {
        /// Where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<Arc<str>>,
        /// The last commit there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Arc<str>>,
    },
    /// A reviewer gave a verdict.
    Judged {
        /// The verdict.
        verdict: Verdict,
        /// The commit that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Arc<str>>,
        /// What is wrong.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Arc<str>>,
    },
    /// A person was asked what reviewers could not agree on.
    Disputed {
        /// The run that asks.
        run: Arc<str>,
    },
    /// A person said what reviewers could not agree on.
    Settled {
        /// The verdict.
        verdict: Verdict,
    },
    /// A person was asked whether it may be merged.
    ReleaseAsked {
        /// The run that asks.
        run: Arc<str>,
    },
    /// It may be merged.
    Released {
        /// The commit that may.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Arc<str>>,
        /// Whether nobody had to be asked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        waived: bool,
    },
    /// It may not.
    Denied,
    /// It could not be merged.
    SentBack {
        /// Why not.
        findings: Vec<Arc<str>>,
    },
    /// It is in.
    Integrated {
        /// The commit that brought it in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Arc<str>>,
    },
    /// Nobody wants it any longer.
    Cancelled,
}

impl Event {
    /// Its word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Event::Made(_) => "made",
            Event::Assigned { .. } => "assigned",
            Event::Blocked { .. } => "blocked",
            Event::Begun { .. } => "begun",
            Event::Asked => "asked",
            Event::Fell { .. } => "fell",
            Event::Executed { .. } => "executed",
            Event::Submitted { .. } => "submitted",
            Event::Judged { .. } => "judged",
            Event::Disputed { .. } => "disputed",
            Event::Settled { .. } => "settled",
            Event::ReleaseAsked { .. } => "release_asked",
            Event::Released { .. } => "released",
            Event::Denied => "denied",
            Event::SentBack { .. } => "sent_back",
            Event::Integrated { .. } => "integrated",
            Event::Cancelled => "cancelled",
        }
    }
}

/// The cards, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cards {
    cards: Vec<Card>,
}

impl Cards {
    /// All of them, oldest first.
    pub fn all(&self) -> &[Card] {
        &self.cards
    }

    /// The card of that name.
    pub fn get(&self, task_id: &str) -> Option<&Card> {
        self.cards.iter().find(|card| *card.task_id == *task_id)
    }

    /// The newest card with that branch.
    pub fn on(&self, branch: &str) -> Option<&Card> {
        let is_on = |card: &&Card| card.branch.name.as_deref() == Some(branch);
        self.cards.iter().rev().find(is_on)
    }

    /// The card that is meant by its name, by its branch, or by both.
    pub fn meant(&self, task_id: Option<&str>, branch: Option<&str>) -> Result<&Card, Refusals> {
        let given =
            |text: Option<&str>| text.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        let unknown = |what: String| vec![refused("unknown_task_id", what)];
        match (given(task_id), given(branch)) {
            (None, None) => Err(unknown("no card is named: give task_id or branch".to_owned())),
            (Some(id), None) => {
                self.get(&id).ok_or_else(|| unknown(format!("there is no card {}", quoted(&id))))
            }
            (None, Some(branch)) => {
                let none = || unknown(format!("no card has the branch {}", quoted(&branch)));
                self.on(&branch).ok_or_else(none)
            }
            (Some(id), Some(branch)) => {
                let card = self.meant(Some(&id), None)?;
                let other = self.on(&branch).filter(|other| other.task_id != card.task_id);
                other.map_or(Ok(card), |other| {
                    let other = &other.task_id;
                    let message =
                        format!("{id} is one card, and the branch {branch} is that of {other}");
                    Err(vec![refused("ambiguous_target", message)])
                })
            }
        }
    }

    /// Whether an issue of that id is in.
    pub fn is_integrated(&self, issue_id: &str) -> bool {
        let is_it = |card: &Card| card.issue_id.as_deref() == Some(issue_id);
        self.cards.iter().any(|card| is_it(card) && card.state == State::Integrated)
    }

    /// The cards that must be done before `card` and are not.
    pub fn unmet(&self, card: &Card) -> Vec<Arc<str>> {
        let is_met = |id: &&Arc<str>| self.get(id).is_some_and(|before| before.is_met_for(card));
        card.depends_on.iter().filter(|id| !is_met(id)).cloned().collect()
    }

    /// The first name that no card has.
    pub fn free_id(&self) -> Arc<str> {
        let numbers =
            self.cards.iter().filter_map(|card| card.task_id.strip_prefix('T')?.parse().ok());
        let last: u64 = numbers.filter(|it| *it < u64::MAX).max().unwrap_or(0);
        format!("T{:03}", last + 1).into()
    }

    /// Folds a row; what makes no sense changes nothing.
    pub fn apply(&mut self, row: Row) {
        let Row { at, actor, task_id, event } = row;
        let name = event.as_str();
        if let Event::Made(new) = event {
            if self.get(&task_id).is_none() {
                let after = State::Planned;
                let mut card = made(task_id, new);
                card.events.push(Changed { at, actor, event: name, before: None, after });
                self.cards.push(card);
            }
            return;
        }
        let Some(card) = self.cards.iter_mut().find(|card| card.task_id == task_id) else { return };
        let before = card.state;
        if before.is_final() {
            return;
        }
        card.take(&actor, event);
        let after = card.state;
        card.events.push(Changed {
            at,
            actor: actor.clone(),
            event: name,
            before: Some(before),
            after,
        });
        self.unblock(at, &actor);
    }

    /// Lets the cards go on whose predecessors are done.
    fn unblock(&mut self, at: u64, actor: &Arc<str>) {
        let blocked = |card: &&Card| card.state == State::Blocked && self.unmet(card).is_empty();
        let free: Vec<Arc<str>> =
            self.cards.iter().filter(blocked).map(|card| card.task_id.clone()).collect();
        for card in self.cards.iter_mut().filter(|card| free.contains(&card.task_id)) {
            let (before, after) = (Some(card.state), State::Planned);
            card.state = after;
            let actor = actor.clone();
            card.events.push(Changed { at, actor, event: "unblocked", before, after });
        }
    }
}

fn made(task_id: Arc<str>, new: New) -> Card {
    let New { title, body, kind, role, write, origin, depends_on, gates } = new;
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

impl Card {
    fn take(&mut self, actor: &Arc<str>, event: Event) {
        match event {
            Event::Made(_) => {}
            Event::Assigned { role, agent, branch } => {
                self.authors.push(agent.clone());
                (self.role, self.agent, self.state) = (role, Some(agent), State::Implementing);
                self.enter(branch, None, BranchState::Created);
                self.void();
            }
            Event::Blocked { .. } => self.state = State::Blocked,
            Event::Begun { run, agent, authors, branch, base } => {
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
