//! What a round table can take (messaging.md §4).
//!
//! What anybody reads hangs on what all the others wrote before, so only a window bounds it.

use super::{
    forecast::{Comes, Forecast},
    most::Most,
};
use crate::programs::Roundtable;

impl Forecast<'_> {
    pub(super) fn roundtable(&mut self, table: &Roundtable) {
        let agents = &table.agents;
        for (agent, n) in agents.iter().zip(0..) {
            let turn = self.member(agent).turn(Most::UNKNOWN).take;
            // All who can be asked at once are asked once; then a single turn of one may end it.
            let first = if n < self.at_once { turn } else { turn.perhaps() };
            let more = turn.perhaps().times(table.max_turns.saturating_sub(1));
            let take = first.and(more);
            self.add("turns", agents, take);
            self.charge(agent, take);
        }
        // In the worst case each waits for what another one left.
        let paths: u64 = agents.iter().map(|agent| self.member(agent).path()).sum();
        self.path += table.max_turns.saturating_mul(paths);
        if let Some(scribe) = &table.scribe {
            self.one("scribe", scribe, Most::UNKNOWN, Comes::Perhaps);
        }
    }
}
