//! What there is to know of the MCP servers of a run (agents.md §6).

use crate::{
    call::{Call, Fault},
    known::Entry,
    run::Run,
    spec::Warning,
};

/// The servers that could not be had, and what was odd about those that could, each once, in the order
/// of asking.
pub(super) fn warnings(run: &Run) -> Vec<Warning> {
    let mut told: Vec<Warning> = Vec::new();
    for (_, entry) in run.known().in_order() {
        for warning in lack(entry).into_iter().chain(oddities(entry)) {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
    }
    told
}

fn lack(entry: &Entry) -> Option<Warning> {
    let Call::Listing { server, .. } = &entry.call else { return None };
    let why = entry.fault().filter(|fault| !fault.stops_run() && **fault != Fault::Unwanted)?;
    let message = format!("the tools of MCP server {server} could not be had: {why}");
    Some(Warning { code: "mcp_server_unavailable".into(), message: message.into() })
}

fn oddities(entry: &Entry) -> Vec<Warning> {
    let answer = entry.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
    let told = answer.into_iter().flat_map(|answer| &answer.warnings);
    told.map(|text| Warning { code: "mcp_server".into(), message: text.clone() }).collect()
}
