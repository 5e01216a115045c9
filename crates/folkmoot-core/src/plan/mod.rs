//! The plan of a supervisor, made sound: what it says is kept as far as it can be, what it cannot mean
//! is repaired by the smallest change and noted, and every task gets a worker (strategies.md §5).
//!
//! Only `depends_on` orders tasks; nothing is guessed from prose. Plans that people give are not
//! repaired here but refused (rules.md 3.7).

mod cycles;
mod repair;
mod routing;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc};

pub(crate) use repair::LISTED;
pub use repair::repair;
pub use routing::route;

use crate::team::AgentId;

/// The tasks that a team works on: ids are unique, every dependency is a task of the plan, nothing
/// depends on itself even indirectly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The tasks, in the order in which they were planned.
    pub tasks: Vec<Task>,
    /// How the plan came.
    pub format: Format,
    /// What was repaired, in the order of the checks.
    pub notes: Vec<Note>,
}

/// One part of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: Arc<str>,
    /// What is to be done.
    pub description: Arc<str>,
    /// Who does it.
    pub agent: AgentId,
    /// Which rule chose the agent.
    pub routed_by: RoutedBy,
    /// The ids of the tasks whose outputs it needs.
    pub depends_on: Vec<Arc<str>>,
    /// Whether it is one task too many and will not run; what depends on it does not either.
    pub over_max: bool,
}

/// How a plan came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As JSON.
    Json,
    /// As prose, a task a line.
    Lines,
    /// Not at all: one task is the whole work.
    Fallback,
}

/// Which rule chose the worker of a task (strategies.md §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutedBy {
    /// The plan names it.
    Named,
    /// It alone has most of the required capabilities.
    Capability,
    /// Most of its capabilities stand in the description.
    Description,
    /// It had the fewest tasks.
    Load,
}

/// What was repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// In words.
    pub text: String,
    /// Whether the defect touches the shape of the plan, so that it is worth asking again.
    pub structural: bool,
}

impl Plan {
    /// How many defects touched the shape of the plan.
    pub fn structural_defects(&self) -> usize {
        self.notes.iter().filter(|note| note.structural).count()
    }

    /// Whether this plan, asked for because of the defects of `first`, is used in its place: it is JSON
    /// and has fewer; a fallback is worse than anything.
    pub fn improves_on(&self, first: &Plan) -> bool {
        let defects = match first.format {
            Format::Json | Format::Lines => first.structural_defects(),
            Format::Fallback => usize::MAX,
        };
        self.format == Format::Json && self.structural_defects() < defects
    }

    /// Whether two of the tasks that run do not depend on each other, even indirectly, so that a team
    /// can gain time over one worker (strategies.md §8).
    pub fn has_independent_tasks(&self) -> bool {
        let running: Vec<&Task> = self.tasks.iter().filter(|task| !task.over_max).collect();
        let places = running.iter().enumerate().map(|(place, task)| (&*task.id, place));
        let places: BTreeMap<&str, usize> = places.collect();
        let place = |id: &Arc<str>| places.get(&**id).copied();
        let needs: Vec<Vec<usize>> =
            running.iter().map(|task| task.depends_on.iter().filter_map(place).collect()).collect();
        !cycles::is_chain(&needs)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Json => "json",
            Format::Lines => "lines",
            Format::Fallback => "fallback",
        })
    }
}

impl fmt::Display for RoutedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RoutedBy::Named => "named",
            RoutedBy::Capability => "capability",
            RoutedBy::Description => "description",
            RoutedBy::Load => "load",
        })
    }
}
