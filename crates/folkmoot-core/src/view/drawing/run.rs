//! The picture of a run: who spoke, after whom, and how it ended.

use super::{Drawing, Kind, NOTE, steps, text, turns};
use crate::{
    run::Run,
    spec::Spec,
    time::Duration,
    view::{Outcome, outcome},
};

/// Draws a run as far as it has come. `alive` tells whether somebody drives it.
pub fn of_run(run_id: &str, spec: &Spec, run: &Run, alive: bool) -> Drawing {
    let outcome = outcome(run_id, spec, run, alive);
    let name = if spec.team.name.is_empty() { "Team" } else { &spec.team.name };
    let mut drawing = Drawing::new(&format!("{name}: {}, run {run_id}", outcome.strategy));
    match &*spec.collaboration.graphs() {
        [] => turns::draw(&mut drawing, spec, run, &outcome),
        stages => steps::draw(&mut drawing, spec, run, &outcome, stages),
    }
    drawing.note(format!("task: {}", text::shown(&outcome.prompt, NOTE - "task: ".len())));
    let took = Duration::from_secs_f64(outcome.meta.elapsed_seconds);
    drawing.note(format!("{}, after {took}", state(&outcome)));
    if let Some(origin) = &outcome.origin {
        let what = if origin.retried { "another attempt at" } else { "forked from" };
        drawing.note(format!("{what} run {}, event {}", origin.run_id, origin.seq));
    }
    drawing
}

/// How a run stands, and why.
fn state(outcome: &Outcome) -> String {
    let status = outcome.status.as_str().replace('_', " ");
    match &outcome.reason {
        Some(reason) => format!("{status}: {}", reason.replace('_', " ")),
        None => status,
    }
}

/// Where a run has ended; nothing while it has not.
pub(super) fn end(drawing: &mut Drawing, outcome: &Outcome) -> Option<usize> {
    outcome.reason.as_ref()?;
    Some(drawing.node(Kind::Outside, [state(outcome).as_str()]))
}
