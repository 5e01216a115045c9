//! What a pattern of roles can take (collaborate.md §6).
//!
//! Who speaks in which turn depends on what fails and on what is said, so each turn is reckoned as the
//! dearest that could be had then, and each role as speaking as late as it can. A turn that a person's
//! answer opens is not foreseen.

use super::{
    forecast::{Comes, Forecast, WORDS},
    most::Most,
    take::Take,
};
use crate::{
    programs::pattern::{Form, Pattern, Role},
    team::{AgentId, Team},
};

/// Folkmoot's own words in one prompt of a role, in bytes.
const TOLD: u64 = 4 * WORDS;

/// How many turns are reckoned one by one; in later ones nothing bounds what is read but a window.
const RECKONED: u64 = 1000;

/// How often a role may fail in a row before the run ends.
const FAILURES: u64 = 3;

impl Forecast<'_> {
    pub(super) fn pattern(&mut self, pattern: &Pattern, team: &Team) {
        let agents: Vec<AgentId> = team.everyone().map(|agent| agent.id.clone()).collect();
        for agent in &agents {
            self.brief(agent, pattern.longest_brief(team, agent));
        }
        let counted = Counted::of(pattern);
        let plan = self.planned(pattern);
        let name = pattern.form.shape().name;
        let (mut work, mut reviews, mut latest) = (Most::NOTHING, Most::NOTHING, Most::NOTHING);
        let mut sure = vec![0; pattern.cast.len()];
        let cast: Vec<AgentId> = pattern.cast.iter().map(|part| part.agent.clone()).collect();
        for n in 1..=counted.turns.min(RECKONED + 1) {
            // Behind the last one that is reckoned, one stands for all the rest.
            let (times, unknown) =
                if n > RECKONED { (counted.turns - RECKONED, true) } else { (1, false) };
            let shown = if unknown { Most::UNKNOWN } else { plan + work + reviews };
            let (mut dearest, mut said) = (None, Vec::new());
            for (at, part) in pattern.cast.iter().enumerate() {
                let Range { from, to, most } = counted.of_role(part.role);
                if n < from || n > to {
                    continue;
                }
                let turn =
                    self.member(&part.agent).turn(self.member(&part.agent).opening + shown + TOLD);
                dearest = Some(dearest.map_or(turn.take, |dearest: Take| dearest.or(turn.take)));
                said.push((part.role, self.member(&part.agent).quote(turn.said)));
                // As late as it can: what it is shown grows with every turn.
                let speaks = if unknown { times.min(most) } else { u64::from(n + most > to) };
                let is_sure = sure[at] < counted.least_of(part.role) && speaks > 0;
                sure[at] += u64::from(is_sure);
                if is_sure {
                    self.charge(&part.agent, turn.take);
                }
                let more = speaks - u64::from(is_sure);
                self.charge(&part.agent, turn.take.perhaps().times(more));
            }
            for (role, size) in said {
                match role {
                    Role::Reviewer => {
                        reviews += size;
                        latest = latest.or(size);
                    }
                    Role::Implementer | Role::Reviser | Role::Synthesizer => work = work.or(size),
                    // All of a stage are shown, and all stages of a debate.
                    Role::AnalystImpl
                    | Role::AnalystDesign
                    | Role::AnalystSecurity
                    | Role::Advocate
                    | Role::Critic => reviews += size,
                    Role::Arbiter => {}
                }
            }
            let take = dearest.unwrap_or(Take::NOTHING);
            let take = if n <= counted.least { take } else { take.perhaps() };
            self.add(name, &cast, take.times(times)).any = true;
        }
        self.path += counted.path;
        if let Some(judge) = pattern.judge.as_ref().filter(|_| counted.judge > 0) {
            let read = self.member(judge).opening + work + latest + TOLD;
            let read = if counted.turns > RECKONED { Most::UNKNOWN } else { read };
            let take = self.member(judge).turn(read).take.perhaps().times(counted.judge);
            self.add("judge", std::slice::from_ref(judge), take);
            self.charge(judge, take);
            self.path += counted.judge;
        }
    }
}

impl Forecast<'_> {
    /// The planner's turn, which comes first; gives the size of the plan as it is quoted.
    fn planned(&mut self, pattern: &Pattern) -> Most {
        let Some(planner) = &pattern.planner else { return Most::NOTHING };
        let read = self.member(planner).opening + TOLD;
        let said = self.one("plan", planner, read, Comes::Surely).said;
        self.member(planner).quote(said)
    }
}

/// The turns in which a role may speak, from 1, and how many of them at most.
struct Range {
    from: u64,
    to: u64,
    most: u64,
}

/// How often anything may happen.
struct Counted<'p> {
    pattern: &'p Pattern,
    /// Turns at most, and at least if nothing fails.
    turns: u64,
    least: u64,
    /// The longest chain of turns.
    path: u64,
    /// Calls of the judge.
    judge: u64,
}

impl<'p> Counted<'p> {
    fn of(pattern: &'p Pattern) -> Counted<'p> {
        let ceiling = pattern.max_rounds;
        // Who closes consensus and debate may be repeated beyond the ceiling.
        let beyond = if pattern.literal { 0 } else { FAILURES - 1 };
        let cycles = (ceiling / pattern.form.slots()).max(1);
        let slots = cycles.saturating_mul(pattern.form.slots());
        let (turns, path) = match pattern.form {
            Form::Review => (ceiling, ceiling),
            Form::Consensus if pattern.literal => (ceiling.min(slots), 2 * cycles),
            Form::Consensus => (ceiling.saturating_add(beyond), 2 * cycles + ceiling % 4 + beyond),
            Form::Debate if pattern.literal => (ceiling.min(5), 3),
            // Each of its two stages twice, and who rules three times.
            Form::Debate => (ceiling.saturating_add(beyond).min(11), 4 + FAILURES),
        };
        let least = match (pattern.form, pattern.literal) {
            (Form::Review, true) => 1,
            (Form::Consensus, true) => ceiling.min(3),
            (Form::Debate, true) | (Form::Review, false) => ceiling.min(2),
            (Form::Consensus, false) => 4,
            (Form::Debate, false) => {
                if ceiling < 5 {
                    3
                } else {
                    5
                }
            }
        };
        let judge = if pattern.form == Form::Review { ceiling.saturating_sub(1) / 2 } else { 0 };
        Counted { pattern, turns, least, path, judge }
    }

    fn of_role(&self, role: Role) -> Range {
        let (turns, literal) = (self.turns, self.pattern.literal);
        let cycles = (self.pattern.max_rounds / self.pattern.form.slots()).max(1);
        let (from, to, most) = match role {
            Role::Implementer if literal => (1, turns, turns.div_ceil(3)),
            Role::Reviewer | Role::Reviser if literal => (2, turns, turns.div_ceil(3)),
            Role::Implementer => (1, turns.min(FAILURES), FAILURES),
            Role::Reviewer => (2, turns, turns.saturating_sub(1)),
            Role::Reviser => (3, turns, turns.saturating_sub(2)),
            Role::AnalystImpl | Role::AnalystDesign | Role::AnalystSecurity => (1, turns, cycles),
            Role::Synthesizer => (4, turns, (cycles * FAILURES).min(turns.saturating_sub(3))),
            Role::Advocate | Role::Critic if literal => (1, turns, 2),
            Role::Advocate | Role::Critic => (1, turns.min(8), 4),
            Role::Arbiter => (3, turns, FAILURES),
        };
        Range { from, to, most: most.min((to + 1).saturating_sub(from)) }
    }

    /// How often a role speaks at least, if nothing fails.
    fn least_of(&self, role: Role) -> u64 {
        let is_literal = self.pattern.literal;
        match role {
            Role::AnalystImpl | Role::Advocate if is_literal => 1,
            Role::AnalystDesign | Role::Critic if is_literal => u64::from(self.least >= 2),
            Role::AnalystSecurity if is_literal => u64::from(self.least >= 3),
            Role::Reviewer | Role::Synthesizer | Role::Arbiter if is_literal => 0,
            Role::Reviewer => u64::from(self.least >= 2),
            Role::Reviser => 0,
            Role::Implementer
            | Role::AnalystImpl
            | Role::AnalystDesign
            | Role::AnalystSecurity
            | Role::Synthesizer
            | Role::Arbiter => 1,
            Role::Advocate | Role::Critic => {
                if self.least >= 5 {
                    2
                } else {
                    1
                }
            }
        }
    }
}
