//! MCP servers: what tools they were seen to have, and what an agent is offered of them (agents.md
//! §§5, 6).
//!
//! What a server has is asked when an agent first needs it, in a call like any other. The answer is the
//! *pinned* list: whatever the server says later, that is what agents of this run are offered, and a
//! replay needs no server.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    call::{Call, Reply, Tool},
    key::Key,
    known::{Entry, Known},
    scope::{Scope, Step},
    team::Agent,
};

/// What the names of all tools of MCP servers begin with.
const PREFIX: &str = "mcp.";

/// The place in a run where servers are first asked what they have.
const PLACE: &str = "mcp";

/// A tool of a server, as it was at first sight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// What its server calls it.
    pub name: Arc<str>,
    /// What it does, in its server's words.
    pub description: Arc<str>,
    /// The JSON schema of its arguments, an object.
    pub parameters: Value,
    /// Whether its server says that it changes nothing, or nothing more when it is used again: then it
    /// may be, if a crash left its outcome unknown (rules.md 7.4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
}

impl Pinned {
    /// A list of tools as it stands in an answer.
    pub fn listed(tools: &[Pinned]) -> Value {
        serde_json::to_value(tools).expect("a tool is plain data")
    }
}

/// The name of a tool of a server as it is granted, offered and called.
pub fn tool_name(server: &str, tool: &str) -> String {
    format!("{PREFIX}{server}.{tool}")
}

/// The server and its own name of the tool `name`, if it is one of a server.
pub fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.split_once('.')
}

/// The server that a grant names, of which it grants one tool or all; none if it names none.
pub(crate) fn granted_server(grant: &str) -> Option<&str> {
    let rest = grant.strip_prefix(PREFIX)?;
    Some(rest.split_once('.').map_or(rest, |(server, _)| server))
}

/// Whether `grant` allows the tool `tool` of `server`: the whole name counts (rules.md 11.7).
pub(crate) fn grants(grant: &str, server: &str, tool: &str) -> bool {
    let Some(rest) = grant.strip_prefix(PREFIX) else { return grant == "*" };
    match rest.split_once('.') {
        None | Some((_, "*")) => granted_server(grant) == Some(server),
        Some((of, one)) => (of, one) == (server, tool),
    }
}

/// Asks the servers of an agent what they have, where that is not known; gives the reply that tells that
/// the run was stopped meanwhile, if it was.
///
/// A server that cannot be had keeps nobody from working: its agents have fewer tools, a warning says so,
/// and the next turn tries again.
pub(crate) fn meet(turn: &Scope, agent: &Agent) -> Step<Option<Reply>> {
    let met = turn.all(&agent.servers, |server| {
        let seen = seen(turn.known(), turn.team(), server).filter(|(key, _)| turn.has_reached(key));
        if let Some((key, entry)) = seen {
            return turn.shared(key.clone(), again(turn, &entry.call));
        }
        let first = first(turn.team(), server);
        match turn.asked(&first) {
            None => turn.shared(first, listing(agent, server)),
            Some(call) if !turn.has_reached(&first) => turn.shared(first, again(turn, call)),
            Some(_) => turn.call(&format!("{PLACE}-{server}"), listing(agent, server)),
        }
    })?;
    Ok(met.into_iter().find(Reply::is_stopped))
}

fn listing(agent: &Agent, server: &Arc<str>) -> Call {
    Call::Listing { agent: agent.id.clone(), server: server.clone() }
}

/// A listing that an agent of the same team asked for, as the program of that team asks for it.
fn again(turn: &Scope, call: &Call) -> Call {
    let Call::Listing { agent, server } = call else { return call.clone() };
    Call::Listing { agent: turn.local(agent), server: server.clone() }
}

/// The name of the call that first asks `server` of `team` what it has: each team has servers of its
/// own, which may share a name with those of another.
fn first(team: &str, server: &str) -> Key {
    let place = if team.is_empty() { format!("{PLACE}/") } else { format!("{PLACE}/{team}/") };
    Key::under(&place, server)
}

/// The call in which `server` was seen: the first one unless that failed, else the first to be answered
/// of those that were made later.
fn seen<'a>(known: &'a Known, team: &str, server: &str) -> Option<(&'a Key, &'a Entry)> {
    let is_answered = |(_, entry): &(&Key, &Entry)| matches!(entry.outcome, Some(Ok(_)));
    let asks = |(_, entry): &(&Key, &Entry)| matches!(&entry.call, Call::Listing { agent, server: of } if **of == *server && agent.team() == team);
    let first = known.named(&first(team, server))?;
    Some(first).filter(is_answered).or_else(|| {
        let later = known.iter().filter(asks).filter(is_answered);
        later.min_by_key(|(_, entry)| entry.settled)
    })
}

/// What `server` of the team `team` had at first sight; nothing if it was not seen.
pub fn pinned(known: &Known, team: &str, server: &str) -> Vec<Pinned> {
    let answer =
        seen(known, team, server).and_then(|(_, entry)| entry.outcome.as_ref()?.as_ref().ok());
    let listed = answer.and_then(|answer| answer.json.as_ref());
    listed.and_then(|listed| Vec::deserialize(listed).ok()).unwrap_or_default()
}

/// The tool `tool` of `server`, if it had that at first sight, as far as `turn` had come by then.
pub(crate) fn tool(turn: &Scope, server: &str, tool: &str) -> Option<Pinned> {
    seen(turn.known(), turn.team(), server).filter(|(key, _)| turn.has_reached(key))?;
    pinned(turn.known(), turn.team(), server).into_iter().find(|pinned| *pinned.name == *tool)
}

/// The tools of its servers that `agent` of the team `team` is offered.
pub(crate) fn offered_to(agent: &Agent, team: &str, known: &Known) -> Vec<Tool> {
    let of = |server: &Arc<str>| {
        let pinned = pinned(known, team, server).into_iter();
        let granted = pinned.map(|tool| (tool_name(server, &tool.name), tool));
        let granted = granted.filter(|(name, _)| agent.is_granted(name));
        let told = granted.map(|(name, Pinned { description, parameters, .. })| Tool {
            name: name.into(),
            description,
            parameters,
        });
        told.collect::<Vec<_>>()
    };
    agent.servers.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
