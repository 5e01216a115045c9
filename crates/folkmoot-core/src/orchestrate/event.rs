//! What happens to cards: the rows of their stream.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::card::{Kind, Passed, Verdict};
use super::{Budget, Role};
use crate::limits::Limits;

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
    /// What all runs of its phase may use together.
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub limits: Budget,
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
        /// What it may use of the limits of its phase.
        #[serde(default, skip_serializing_if = "Limits::are_none")]
        limits: Limits,
    },
    /// Its checkout is again what it was before a call, and another run goes on from there.
    RolledBack {
        /// The run that goes on.
        run: Arc<str>,
        /// The run that the call is of.
        from: Arc<str>,
        /// The call, if one was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Arc<str>>,
        /// What the run that goes on may use of the limits of the phase.
        #[serde(default, skip_serializing_if = "Limits::are_none")]
        limits: Limits,
        /// The commit that holds what the files are again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Arc<str>>,
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
            Event::RolledBack { .. } => "rolled_back",
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
