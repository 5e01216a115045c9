//! Whether expressions of a team's own can be evaluated at all: they are tried out on made-up histories
//! (extensions.md §3).

use std::sync::Arc;

use crate::{
    call::{Answer, Reply},
    check::extensions::BAD_EXTENSION,
    diagnostic::{Diagnostic, Place, quoted},
    extension::{NO_TRUTH, Parameters},
    key::Key,
    programs::graph::{Edge, Facts, Guard, Own, PARENT},
    team::AgentId,
    time::Duration,
};

/// What agents say in trials: something for most ways in which a text may be taken apart.
const TEXTS: [&str; 4] =
    ["APPROVED", "7", "score: 7\nFAILED\na, b, c: d", "{\"score\": 7, \"verdict\": \"reject\"}"];

/// What is tried out.
type Holds<'a> = dyn Fn(&Facts) -> Result<bool, String> + 'a;

/// Histories that a graph of these edges may come to.
#[derive(Debug)]
pub(super) struct Trials {
    /// After the first reply.
    first: Vec<Facts>,
    /// After the first round, and after some.
    later: [Vec<Facts>; 2],
}

impl Trials {
    /// What is wrong with a condition. What fails after the first reply, to which every run comes, is an
    /// error.
    pub(super) fn of_condition(&self, own: &Own, place: &Place) -> Option<Diagnostic> {
        let holds = |facts: &Facts| own.rule.holds(facts, &own.params);
        let what = format!("condition {}", quoted(&own.name));
        let failed = |why| Diagnostic::error(BAD_EXTENSION, format!("{what}: {why}")).at(place);
        let failed = fails(&holds, &self.first).map(failed);
        failed.or_else(|| self.later(&holds, &what, place))
    }

    /// What is wrong with the guard of an edge.
    pub(super) fn of_guard(&self, edge: &Edge, place: &Place) -> Option<Diagnostic> {
        let Some(Guard::Expr(expression)) = &edge.when else { return None };
        let holds = |facts: &Facts| expression.holds(facts, &Parameters::new());
        self.later(&holds, &format!("guard of {}", quoted(&edge.to_string())), place)
    }

    /// What fails later whatever is said may be meant for replies of some other form: a warning.
    fn later(&self, holds: &Holds, what: &str, place: &Place) -> Option<Diagnostic> {
        let why = self.later.iter().find_map(|facts| fails(holds, facts))?;
        let told = if why.starts_with(NO_TRUTH) {
            Diagnostic::error(BAD_EXTENSION, format!("{what}: {why}"))
        } else {
            let message = format!("{what} cannot be evaluated in a trial: {why}");
            Diagnostic::warning("trial_failed", message)
        };
        Some(told.at(place))
    }

    /// Those of a graph of these edges.
    pub(super) fn of(edges: &[Edge]) -> Trials {
        let ends = edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
        let agents: Vec<&AgentId> = ends.filter(|agent| agent.as_str() != PARENT).collect();
        let entries: Vec<&AgentId> =
            edges.iter().filter(|edge| edge.from.as_str() == PARENT).map(|edge| &edge.to).collect();
        let each = |round: u32, has_spoken: &dyn Fn(&AgentId) -> bool| -> Vec<Facts> {
            let said = |text: &str| {
                let replies = agents.iter().map(|agent| {
                    let count = if has_spoken(agent) { round } else { 0 };
                    ((*agent).clone(), (0..count).map(|_| reply(agent, text)).collect())
                });
                let (steps, elapsed) = (u64::from(round), Duration::from_millis(1000));
                Facts {
                    round,
                    steps,
                    elapsed,
                    replies: Arc::new(replies.collect()),
                    ..Facts::default()
                }
            };
            TEXTS.into_iter().map(said).collect()
        };
        let first = entries.iter().flat_map(|entry| each(1, &|agent| agent == *entry)).collect();
        Trials { first, later: [each(1, &|_| true), each(3, &|_| true)] }
    }
}

/// Why nothing can be told on any of these.
fn fails(holds: &Holds, all: &[Facts]) -> Option<String> {
    let whys: Option<Vec<String>> = all.iter().map(|facts| holds(facts).err()).collect();
    whys?.into_iter().next()
}

fn reply(agent: &AgentId, text: &str) -> Reply {
    let outcome = Ok(Arc::new(Answer::text(text)));
    Reply { key: Key::parse(agent.as_str()), agent: agent.clone(), outcome }
}
