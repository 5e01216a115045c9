//! What a program takes that is not built in: nothing is known of it, so only limits bound it.

use super::{
    forecast::Forecast,
    graph::Taken,
    most::Most,
    take::{Range, Span, Take},
};
use crate::{
    programs::{Controller, controller::USUAL_CALLS},
    team::AgentId,
};

impl Forecast<'_> {
    /// A controller: its exchanges are calls beside the turns that it wants.
    pub(super) fn controlled(&mut self, controller: &Controller) {
        let calls = self.allowed();
        let staff = controller.staff().id;
        let range = Range { min: 1, max: calls };
        let started = Span { min: 1, max: None };
        let take = Take { calls: range, requests: range, started, ..Take::NOTHING };
        self.add("controller", std::slice::from_ref(&staff), take);
        self.charge(&staff, take);
        self.whoever(&controller.agents, calls.saturating_sub(1));
        let turns = Range { min: 0, max: calls.saturating_sub(1) };
        self.unfailing = Some(Taken { turns, calls: range, critical_path: calls });
    }

    /// Code of the caller's own.
    pub(super) fn coded(&mut self, agents: &[AgentId]) {
        let calls = self.allowed();
        self.whoever(agents, calls);
        let range = Range { min: 0, max: calls };
        self.unfailing = Some(Taken { turns: range, calls: range, critical_path: calls });
    }

    fn allowed(&self) -> u64 {
        self.calls.unwrap_or(USUAL_CALLS)
    }

    /// Any of these agents is asked any of so many times, whatever it is.
    fn whoever(&mut self, agents: &[AgentId], most: u64) {
        self.path = self.allowed();
        self.is_open = true;
        for agent in agents {
            let take = self.member(agent).turn(Most::UNKNOWN).take.perhaps().times(most);
            let take = Take { started: Span { min: 0, max: None }, ..take };
            self.add("work", agents, take).any = true;
            self.charge(agent, take);
        }
    }
}
