//! The phases of a role team (agents.md §7).
//!
//! Whoever speaks is shown the task and what those before handed on, which has a bound of its own,
//! whatever they said; so no turn hangs on the size of another.

use super::{
    asked::Asked,
    forecast::{Comes, Forecast, WORDS},
    graph::Taken,
    member::{Turn, escaped},
    most::Most,
    take::{Range, Take},
};
use crate::{
    programs::roles::{Budget, MOST_QUESTIONS, Role, Roles, handoff::MOST_BYTES, review::LONGEST},
    team::AgentId,
    words::Language,
};

/// The most bytes of a character.
const CHARACTER: u64 = 4;

impl Forecast<'_> {
    pub(super) fn roles(&mut self, roles: &Roles, task: Option<&str>) {
        let parts = roles.agents(task);
        for role in &parts {
            let told = [Language::English, Language::Chinese].map(|it| role.told(it));
            let longest = told.into_iter().map(|it| it.len() + 2).max();
            self.brief(&role.agent(), longest.unwrap_or_default() as u64);
        }
        // Nothing starts where nothing may be used; and which path is taken hangs on the task.
        let starts = roles.budget.as_ref().map(Budget::total) != Some(0);
        let is_sure = starts && parts.len() < Role::ALL.len();
        for (handed, role) in (0..).zip(parts.iter().copied().filter(|it| *it != Role::General)) {
            let comes = if is_sure && handed == 0 { Comes::Surely } else { Comes::Perhaps };
            self.role(role.name(), role, handed, comes);
        }
        if parts.contains(&Role::Coder) {
            let again = [Role::Coder, Role::Reviewer];
            self.add("rework", &again.map(Role::agent), Take::NOTHING);
            for (handed, role) in (4..).zip(again) {
                self.role("rework", role, handed, Comes::Perhaps);
            }
        }
        let calls = Range { min: u64::from(starts), max: (self.path).max(1) };
        self.unfailing = Some(Taken { turns: calls, calls, critical_path: calls.max });
        if parts.contains(&Role::General) {
            let before = self.path;
            let comes = if is_sure { Comes::Surely } else { Comes::Perhaps };
            self.role(Role::General.name(), Role::General, 0, comes);
            self.path = before.max(1);
        }
        self.answered(&parts);
    }

    /// Whoever asked a person speaks again once that has answered. How many turns a run takes is told
    /// for the case that nobody asks; all else holds whoever does.
    fn answered(&mut self, parts: &[Role]) {
        let questions = MOST_QUESTIONS as u64;
        let may_ask = |role: &&Role| {
            let mut chain = self.member(&role.agent()).chain.iter();
            chain.any(Asked::may_ask)
        };
        let parts: Vec<&Role> = parts.iter().filter(may_ask).collect();
        if parts.is_empty() {
            return;
        }
        let agents: Vec<AgentId> = parts.iter().map(|role| role.agent()).collect();
        let mut most = Take::NOTHING;
        for role in parts {
            let take = self.speaks(*role, 5).take;
            self.charge(&role.agent(), take.times(questions).perhaps());
            most = most.or(take.times(questions));
        }
        self.add("person", &agents, most.perhaps()).any = true;
    }

    /// A role speaks after so many others.
    fn role(&mut self, phase: &str, role: Role, handed: u64, comes: Comes) {
        let agent = role.agent();
        let take = comes.of(self.speaks(role, handed).take);
        self.path += 1;
        self.add(phase, std::slice::from_ref(&agent), take);
        self.charge(&agent, take);
    }

    /// One turn of a role. What people answered is taken to be short.
    fn speaks(&self, role: Role, handed: u64) -> Turn {
        let member = self.member(&role.agent());
        let memory = escaped(Most::from(MOST_BYTES)).times(handed);
        let findings = escaped(Most::of(LONGEST).times(CHARACTER));
        let answers = WORDS * MOST_QUESTIONS as u64;
        let read = member.opening + memory + findings + (2 * WORDS + answers);
        // It hands off when its steps are used up, and a review is asked for once more.
        let more = u64::from(member.has_tools()) + u64::from(role == Role::Reviewer);
        member.turn_and_more(read, read, more)
    }
}
