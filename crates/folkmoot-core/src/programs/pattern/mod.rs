//! The ready-made patterns of roles: review, consensus, debate (collaborate.md §§5 to 12).
//!
//! A pattern is data ([`Shape`]) over one staged program: stages in order, the members of a stage side
//! by side; which stages come again; whose reply is the work; whose word may end it. What is to follow
//! a stage stands in `convergence`, in the order in which it is decided.

mod convergence;
mod course;
mod prompt;
mod record;
mod shape;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::shape::{Form, Role, Shape, Stage};
use self::{
    convergence::Next,
    course::{Answered, At, Course, Question},
};
use crate::{
    call::{Call, Prompt},
    event::Ending,
    scope::{Program, Scope, Step},
    team::{AgentId, Team},
    time::Duration,
    words::Language,
};

/// Roles that work on a task by a ready-made pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Which pattern.
    pub form: Form,
    /// Who plays which role, in the order in which the roles first speak.
    pub cast: Vec<Part>,
    /// How many turns there are.
    pub max_rounds: u64,
    /// How long the run may take, without the time that it waits for people.
    pub timeout: Option<Duration>,
    /// Who says how it is to be done, before anybody begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<AgentId>,
    /// Who is asked if a review gives no signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<AgentId>,
    /// Whether replies are read by plain keywords (collaborate.md §12).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub literal: bool,
}

/// Who plays a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The role.
    pub role: Role,
    /// The agent.
    pub agent: AgentId,
    /// What was asked to answer for it, as it is written.
    pub target: Arc<str>,
}

/// How long a run may take unless told otherwise.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(1800);

impl Program for Pattern {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let mut course = Course::new(self);
        let ending = self.go(cx, &mut course);
        cx.tell(|account| record::tell(cx, &course, account));
        ending
    }
}

impl Pattern {
    /// Stage after stage, until one of the four layers ends it.
    fn go(&self, cx: &Scope, course: &mut Course) -> Step<Ending> {
        self.plan(cx, course)?;
        let mut at = At::first(self);
        loop {
            self.take(cx, course, &at)?;
            at = match convergence::after(cx, course, &at)? {
                Next::Stage(next) => next,
                Next::Ask(questions) => self.ask(cx, course, &at, questions)?,
                Next::End(end) => {
                    let ending = end.ending(course);
                    course.end = Some(end);
                    return Ok(ending);
                }
            };
        }
    }

    /// Asks the planner, if there is one; without a plan the work goes on all the same.
    fn plan(&self, cx: &Scope, course: &mut Course) -> Step<()> {
        let Some(planner) = &self.planner else { return Ok(()) };
        let place = cx.at("plan").before(course.deadline());
        course.planned = Some(place.ask("planner", planner, prompt::of_planner(cx.language()))?);
        Ok(())
    }

    /// Lets the members of a stage speak, and records them in their declared order.
    fn take(&self, cx: &Scope, course: &mut Course, at: &At) -> Step<()> {
        let place = cx.at(course.place()).before(course.end_of_turn(cx, at));
        let replies = place.all(&at.roles, |role| {
            place.ask(role.as_str(), self.agent(*role), prompt::of_turn(cx, course, *role, at))
        })?;
        course.add(&place, at, replies);
        Ok(())
    }

    /// Asks people; the roles that asked are to speak again, each with all answers.
    fn ask(&self, cx: &Scope, course: &mut Course, at: &At, questions: Vec<Question>) -> Step<At> {
        let (place, asked) = (cx.at("person"), cx.moment().at);
        course.open.clone_from(&questions);
        let replies = place.all(&questions, |question| {
            let agent = self.agent(question.role).clone();
            let prompt = Prompt::default().quote(&question.of).say(&*question.text);
            place.call(&question.name(), Call::Person { agent, prompt })
        })?;
        course.open.clear();
        course.waited = course.waited + cx.moment().at.since(asked);
        let roles = questions.iter().map(|question| question.role).collect();
        for (question, reply) in questions.into_iter().zip(replies) {
            course.answers.push(Answered { question, reply });
        }
        Ok(At { roles, is_answered: true, ..at.clone() })
    }

    /// Who plays a role. Panics on a foreign one: specs are checked when they are made, and logs when
    /// they are loaded.
    fn agent(&self, role: Role) -> &AgentId {
        let part = self.cast.iter().find(|part| part.role == role);
        &part.expect("a checked pattern has its roles cast").agent
    }

    /// The agents by the parts that they play; a role that nobody plays is an empty one.
    pub(crate) fn agents(&self) -> Vec<Vec<&AgentId>> {
        let of = |role| self.cast.iter().filter(move |part| part.role == role);
        let cast = self.form.roles().into_iter().map(|role| of(role).map(|it| &it.agent).collect());
        let staff = self.planner.iter().chain(&self.judge).map(|agent| vec![agent]);
        cast.chain(staff).collect()
    }

    /// What the system prompt of an agent tells of its role.
    pub(crate) fn role(&self, team: &Team, agent: &AgentId, language: Language) -> Option<String> {
        let part = self.cast.iter().find(|part| part.agent == *agent);
        let brief = part.map(|part| prompt::brief(part.role, language));
        let is = |it: &Option<AgentId>| it.as_ref() == Some(agent) && team.has(agent);
        brief
            .or_else(|| is(&self.planner).then(|| prompt::brief_of_planner(language)))
            .or_else(|| is(&self.judge).then(|| prompt::brief_of_judge(language)))
    }

    /// The longest of these, in bytes, for whatever language.
    pub(crate) fn longest_brief(&self, team: &Team, agent: &AgentId) -> u64 {
        let briefs = [Language::English, Language::Chinese].map(|it| self.role(team, agent, it));
        briefs.into_iter().flatten().map(|it| it.len() as u64 + 2).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
