//! A card: what is to be done for one issue, and how far it is (orchestrate.md §§1, 4).

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Budget, Role};
use crate::limits::Limits;

/// What sort of card it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A record of something to be done: it belongs to no phase, and no agent is called for it.
    Record,
    /// Writes, in a branch of its own.
    Dev,
    /// Only reads.
    Support,
    /// Reads what all others of its phase made.
    Hub,
}

impl Kind {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Record => "record",
            Kind::Dev => "dev",
            Kind::Support => "support",
            Kind::Hub => "hub",
        }
    }
}

/// How far a card is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// Nobody has begun.
    Planned,
    /// Somebody is at it.
    Implementing,
    /// It is done and waits for a verdict, or for its merge.
    Reviewing,
    /// It has to be done better.
    ChangesRequested,
    /// It could not be done.
    Failed,
    /// It waits for other cards.
    Blocked,
    /// It is in.
    Integrated,
    /// Nobody wants it any longer.
    Cancelled,
}

impl State {
    /// All of them.
    pub const ALL: [State; 8] = [
        State::Planned,
        State::Implementing,
        State::Reviewing,
        State::ChangesRequested,
        State::Failed,
        State::Blocked,
        State::Integrated,
        State::Cancelled,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Planned => "PLANNED",
            State::Implementing => "IMPLEMENTING",
            State::Reviewing => "REVIEWING",
            State::ChangesRequested => "CHANGES_request::LARGESTUESTED",
            State::Failed => "FAILED",
            State::Blocked => "BLOCKED",
            State::Integrated => "INTEGRATED",
            State::Cancelled => "CANCELLED",
        }
    }

    /// Whether nothing can happen to it any longer.
    pub fn is_final(self) -> bool {
        matches!(self, State::Integrated | State::Cancelled)
    }
}

/// How far a branch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchState {
    /// There is none.
    #[default]
    None,
    /// Somebody works on it.
    Created,
    /// It waits for a verdict.
    UnderReview,
    /// Its head may go in.
    Approved,
    /// It is in.
    Merged,
    /// Nobody wants it any longer.
    Abandoned,
}

/// The branch of a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Its name; none before it is created.
    pub name: Option<Arc<str>>,
    /// The commit that it began from.
    pub base: Option<Arc<str>>,
    /// Its last commit that is known.
    pub head: Option<Arc<str>>,
    /// How far it is.
    pub state: BranchState,
}

/// What a reviewer finds of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may go in.
    Approved,
    /// It has to be done better.
    ChangesRequested,
}

impl Verdict {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Approved => "approved",
            Verdict::ChangesRequested => "changes_requested",
        }
    }
}

/// A verdict, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Review {
    /// The verdict.
    pub verdict: Verdict,
    /// The commit that it is about; none where nothing is written.
    pub commit: Option<Arc<str>>,
    /// Who says so.
    pub by: Arc<str>,
    /// What is wrong.
    pub findings: Vec<Arc<str>>,
}

/// What a card waits for a person with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// `input`, `conflict` or `merge`.
    pub reason: Arc<str>,
    /// The run that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
}

/// A change of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// When, in microseconds since 1970.
    pub at: u64,
    /// Who made it.
    pub actor: Arc<str>,
    /// What happened.
    pub event: &'static str,
    /// The state before; none of a new card.
    pub before: Option<State>,
    /// The state after.
    pub after: State,
}

/// A card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    /// Its name.
    pub task_id: Arc<str>,
    /// The phase that it belongs to.
    pub phase_id: Option<Arc<str>>,
    /// What it is called in the plan of the phase.
    pub card_id: Option<Arc<str>>,
    /// The issue.
    pub issue_id: Option<Arc<str>>,
    /// What it is about, in a line.
    pub title: Arc<str>,
    /// How far it is.
    pub state: State,
    /// Who is to do it.
    pub role: Role,
    /// And who that is.
    pub agent: Option<Arc<str>>,
    /// Whether it writes.
    pub write: bool,
    /// Its branch.
    pub branch: Branch,
    /// How often its work was begun.
    pub attempts: u32,
    /// The runs in which it was worked on.
    pub runs: Vec<Arc<str>>,
    /// The verdict that counts.
    pub review: Option<Review>,
    /// What has to be done better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Arc<str>>,
    /// What its work must pass, and whether it does.
    pub gates: BTreeMap<Arc<str>, Passed>,
    /// What it waits for a person with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<Waiting>,
    /// What happened to it, oldest first.
    pub events: Vec<Changed>,
    /// What sort it is.
    pub kind: Kind,
    /// The cards that come before it.
    pub depends_on: Vec<Arc<str>>,
    /// The template it is worked on with.
    #[serde(skip)]
    pub template: Option<Arc<str>>,
    /// What all runs of its phase may use together.
    #[serde(skip)]
    pub budget: Budget,
    /// What its last run may use of that.
    #[serde(skip)]
    pub limits: Limits,
    /// The digest of the plan it was made of.
    #[serde(skip)]
    pub digest: Option<Arc<str>>,
    /// The commit that a person has released.
    #[serde(skip)]
    pub released: Option<Arc<str>>,
    /// What reviewers say of the commit under review.
    #[serde(skip)]
    pub verdicts: Vec<Review>,
    /// Who has written for it.
    #[serde(skip)]
    pub authors: Vec<Arc<str>>,
    /// Whether a run of it is under way, or waits.
    #[serde(skip)]
    pub open_run: Option<Arc<str>>,
    /// How often in a row its runs have failed.
    #[serde(skip)]
    pub failures: u32,
    /// What it was asked for at length.
    #[serde(skip)]
    pub body: Arc<str>,
}

/// Whether a gate was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Passed {
    /// It was.
    Passed,
    /// It was not.
    Failed,
    /// Nobody has looked.
    Unknown,
}

impl Passed {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Passed::Passed => "passed",
            Passed::Failed => "failed",
            Passed::Unknown => "unknown",
        }
    }
}

impl Card {
    /// Whether its last commit is approved, and nobody objects.
    pub fn is_approved(&self) -> bool {
        let is_of_head =
            |it: &Review| it.verdict == Verdict::Approved && it.commit == self.branch.head;
        self.review.as_ref().is_some_and(is_of_head) && !self.is_disputed()
    }

    /// Whether reviewers disagree about its last commit.
    pub fn is_disputed(&self) -> bool {
        self.waiting_on.as_ref().is_some_and(|it| &*it.reason == "conflict")
    }

    /// Whether its work is of use to a card that comes after it.
    pub fn is_met_for(&self, after: &Card) -> bool {
        let is_enough = !after.write && self.state == State::Reviewing && self.is_approved();
        self.state == State::Integrated || is_enough
    }
}
