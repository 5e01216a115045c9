//! A world for rehearsals: whoever can answer without a model does.

use std::collections::BTreeSet;

use folkmoot_core::{
    call::{Answer, Call, FailureKind, Fault, Outcome, Usage},
    gate::Evidence,
    key::Key,
    known::Entry,
    mcp::{self, Pinned},
    render,
    run::Run,
    sim::{Happening, World},
    spec::Spec,
    team::{Says, Target},
    time::Duration,
};
use serde_json::json;

use crate::{demo, evidence, script};

/// Scripts say what they are to say, and the offline demo stands in for models.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal;

impl World for Rehearsal {
    fn answer(&mut self, spec: &Spec, run: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let (agent, prompt) = match &entry.call {
            Call::Agent { prompt, .. } => (spec.team.asked(&entry.call), prompt),
            Call::Person { .. } | Call::Team { .. } => return None,
            Call::Tool { request, .. } => return Some(no_tool(&request.name)),
            Call::Listing { server, .. } => return Some(looked(Ok(listed(spec, server).into()))),
            Call::Exchange { .. } => {
                let text = "a rehearsal starts no controller";
                return Some(looked(Err(Fault::failed(FailureKind::Unsupported, text))));
            }
            Call::Gate { gate, of, scripted, .. } => {
                let reply = run.known().get(of.as_str());
                let reply = reply.and_then(|it| it.outcome.as_ref()?.as_ref().ok());
                let known = evidence::known(gate, *scripted, reply.map(|it| &**it));
                return Some(looked(known.unwrap_or_else(|| Ok(unseen().into()))));
            }
        };
        let messages = render::messages(spec, run.known(), &agent, prompt);
        Some(match &agent.target {
            Target::Script(script) => {
                let last = messages.last().map_or("", |message| &message.content);
                script::happening(script, entry.nth, last)
            }
            Target::Model(_)
            | Target::Demo
            | Target::Cli(_)
            | Target::Acp(_)
            | Target::A2a(_)
            | Target::Team(_) => demo::happening(&agent, &messages),
        })
    }
}

/// What was made of a gate; it takes no time.
fn looked(outcome: Outcome) -> Happening {
    Happening { after: Duration::default(), outcome, usage: Usage::default() }
}

/// A rehearsal has no workspace: what only that could tell counts as passed.
fn unseen() -> Answer {
    let detail = Some("rehearsed: nobody looked".to_owned());
    Evidence { detail, ..Evidence::of(true) }.answer()
}

/// A rehearsal starts no server: one has the tools that scripts ask for.
fn listed(spec: &Spec, server: &str) -> Answer {
    let scripts = spec.team.everyone().filter_map(|agent| match &agent.target {
        Target::Script(script) => Some(script),
        Target::Model(_)
        | Target::Demo
        | Target::Cli(_)
        | Target::Acp(_)
        | Target::A2a(_)
        | Target::Team(_) => None,
    });
    let replies = scripts.flat_map(|script| {
        let rules = script.rules.iter().map(|rule| &rule.reply);
        script.replies.iter().chain(rules)
    });
    let calls = replies.flat_map(|reply| match &reply.says {
        Says::Tools { calls, .. } => calls.as_slice(),
        Says::Text(_) | Says::Json(_) | Says::Error { .. } => &[],
    });
    let tools = calls.filter_map(|call| mcp::parts(&call.name)).filter(|(of, _)| *of == server);
    let tools: BTreeSet<&str> = tools.map(|(_, tool)| tool).collect();
    let tools = tools.into_iter().map(|name| Pinned {
        name: name.into(),
        description: "".into(),
        parameters: json!({ "type": "object" }),
        repeatable: true,
    });
    let tools: Vec<Pinned> = tools.collect();
    let json = Some(Pinned::listed(&tools));
    Answer { json, ..Answer::text(format!("{} tools", tools.len())) }
}

fn no_tool(name: &str) -> Happening {
    let fault = Fault::failed(FailureKind::NotFound, format!("there is no tool {name}"));
    Happening { after: Duration::default(), outcome: Err(fault), usage: Usage::default() }
}
