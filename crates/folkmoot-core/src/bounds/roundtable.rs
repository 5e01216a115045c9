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
        for agent in agents {
            let turn = self.member(agent).turn(Most::UNKNOWN).take;
            // All are asked once; a single turn of one may end it.
            let more = turn.perhaps().times(table.max_turns.saturating_sub(1));
            let take = turn.and(more);
            self.add("turns", agents, take);
            self.charge(agent, take);
        }
        // In the worst case each waits for what another one left.
        self.path += table.max_turns.saturating_mul(agents.len() as u64);
        if let Some(scribe) = &table.scribe {
            self.one("scribe", scribe, Most::UNKNOWN, Comes::Perhaps);
        }
    }
}
