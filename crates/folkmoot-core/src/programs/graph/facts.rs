//! What conditions of a team's own are judged on (extensions.md §2).

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    call::{Answer, Reply},
    programs::graph::Matchers,
    team::AgentId,
    time::Duration,
    verdict::{REVIEWS, Review},
};

/// Everything delivered so far, the reply just handled included. Failed attempts are no part of it.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub(crate) replies: Arc<BTreeMap<AgentId, Vec<Reply>>>,
    /// The round of the reply just handled.
    pub round: u32,
    /// How many steps there were, failed ones included.
    pub steps: u64,
    /// What the clock shows (graph.md §8).
    pub elapsed: Duration,
    /// What the run has used.
    pub usage: Used,
    /// The task.
    pub task: Arc<str>,
}

/// What a run has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens that answered calls read and wrote.
    pub tokens: u64,
    /// Calls that were started.
    pub calls: u64,
}

impl Facts {
    /// The agents of the graph.
    pub fn agents(&self) -> impl Iterator<Item = &AgentId> {
        self.replies.keys()
    }

    /// What an agent has said, oldest first; nothing if it is no agent of the graph.
    pub fn replies(&self, agent: &AgentId) -> Option<impl DoubleEndedIterator<Item = &Answer>> {
        Some(self.replies.get(agent)?.iter().filter_map(Reply::contribution))
    }

    /// What an agent has said last.
    pub fn last(&self, agent: &AgentId) -> Option<&Answer> {
        self.replies(agent)?.next_back()
    }

    /// The verdict of an agent's latest reply (graph.md §10).
    pub fn verdict(&self, agent: &AgentId) -> Option<Review> {
        REVIEWS.read(self.last(agent)?).value()
    }

    /// The score of an agent's latest reply (graph.md §10).
    pub fn score(&self, agent: &AgentId) -> Option<f64> {
        Matchers::default().score(self.last(agent)?)
    }
}
