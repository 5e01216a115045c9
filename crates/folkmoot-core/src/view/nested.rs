//! What results tell of the turns of teams that are members (agents.md §2).

use serde_json::{Map, Value, json};

use super::{Status, of_ending, strategy};
use crate::{call::Fault, event::Ending, known::Entry, run::Run, scope::Followed, spec::Spec};

/// Each turn, and behind it those of teams within its team. `stands` is how the run does.
pub(super) fn told(
    spec: &Spec,
    run: &Run,
    stands: Status,
    turns: &[Followed],
) -> Map<String, Value> {
    let mut told = Map::new();
    add(&mut told, spec, run, stands, turns);
    told
}

fn add(told: &mut Map<String, Value>, spec: &Spec, run: &Run, stands: Status, turns: &[Followed]) {
    for Followed { key, ending, account } in turns {
        // A turn that was never asked has nothing to show.
        let Some(entry) = run.known().get(key.as_str()) else { continue };
        let agent = spec.team.agent(entry.call.agent());
        let Some(nested) = agent.team() else { continue };
        let (status, reason) = stands_so(entry, ending.as_ref(), stands);
        let turn = json!({
            "agent": spec.team.full_name(entry.call.agent()),
            "team": nested.spec.team.name,
            "strategy": strategy(&nested.spec, account),
            "status": status,
            "reason": reason,
            "rounds": account.rounds,
        });
        told.insert(key.to_string(), turn);
        add(told, spec, run, stands, &account.nested);
    }
}

/// How a turn stands, and why: by what stopped it, else by how its program ended.
fn stands_so(entry: &Entry, ending: Option<&Ending>, stands: Status) -> (Status, Option<String>) {
    let stopped = |status, fault: &Fault| (status, Some(fault.to_string()));
    match &entry.outcome {
        None => (stands, None),
        Some(Err(fault @ (Fault::Deadline | Fault::TimedOut))) => stopped(Status::Deadline, fault),
        Some(Err(fault @ Fault::OverBudget { .. })) => stopped(Status::BudgetExhausted, fault),
        Some(Err(fault @ (Fault::Cancelled | Fault::Lost | Fault::Unwanted))) => {
            stopped(Status::Cancelled, fault)
        }
        Some(Err(fault @ Fault::Failed { .. })) => match ending {
            Some(ending) => (of_ending(ending), Some(ending.reason.to_string())),
            None => stopped(Status::Failed, fault),
        },
        Some(Ok(_)) => match ending {
            Some(ending) => (of_ending(ending), Some(ending.reason.to_string())),
            // A person put words in the place of what its team would have said.
            None => (Status::Done, None),
        },
    }
}
