//! From a goal to merged cards (orchestrate.md): issues, the plan of a phase, and cards as a fold.
//!
//! Everything here is pure. Plans and cards are folds of streams; a request is decided on what they
//! come to and gives the rows that are to be appended. Deliberately absent: git, runs and gates, which
//! the caller looks at and tells of.

mod budget;
mod card;
mod cards;
mod event;
mod fold;
mod issue;
mod layout;
mod phase;
mod request;
mod review;
mod role;
mod template;
#[cfg(test)]
mod tests;

pub use self::{
    budget::{Budget, Dollars, Taken},
    card::{Branch, BranchState, Card, Changed, Kind, Passed, Review, State, Verdict, Waiting},
    cards::Cards,
    event::{Event, Mark, New, Origin, Row},
    fold::MOST_TRIES,
    issue::Issue,
    phase::{Deferred, Phases, Plan, PlanRequest, Planned, Topology, Warned},
    request::{Assignment, Materialized, usual_branch},
    review::Judgement,
    role::Role,
    template::{Release, Template},
};
use crate::{names::suggestion, refusal::Refusal};

/// Why a request is refused: each of its faults.
pub type Refusals = Vec<Refusal>;

/// What can be asked for, in the order of work.
pub const ACTIONS: [&str; 8] =
    ["plan", "phase-plan", "phase-materialize", "assign", "execute", "status", "review", "merge"];

/// What can be asked for, by its name; blanks around it and case do not count.
pub fn action(name: &str) -> Result<&'static str, Refusals> {
    let name = name.trim().to_lowercase();
    let known = ACTIONS.into_iter().find(|action| *action == name);
    known.ok_or_else(|| {
        let message = format!("there is no action {}", crate::diagnostic::quoted(&name));
        let near = suggestion(&name, ACTIONS);
        let help = Some(near.unwrap_or_else(|| format!("there are: {}", ACTIONS.join(", "))));
        vec![Refusal { help, allowed: texts(&ACTIONS), ..refused("unknown_action", message) }]
    })
}

/// A refusal without more to say.
fn refused(code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(code, message)
}

/// A refusal, and the way out.
fn helped(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Refusal {
    Refusal { help: Some(help.into()), ..refused(code, message) }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
