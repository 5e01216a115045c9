//! A world for rehearsals: whoever can answer without a model does.

use folkmoot_core::{
    call::{Call, FailureKind, Fault, Usage},
    key::Key,
    known::Entry,
    render,
    run::Run,
    sim::{Happening, World},
    spec::Spec,
    team::Target,
    time::Duration,
};

use crate::{demo, script};

/// Scripts say what they are to say, and the offline demo stands in for models.
#[derive(Clone, Copy, Debug)]
pub struct Rehearsal;

impl World for Rehearsal {
    fn answer(&mut self, spec: &Spec, run: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let (agent, prompt) = match &entry.call {
            Call::Agent { prompt, .. } => (spec.team.asked(&entry.call), prompt),
            Call::Person { .. } => return None,
            Call::Tool { request, .. } => return Some(no_tool(&request.name)),
        };
        let messages = render::messages(spec, run.known(), &agent, prompt);
        Some(match &agent.target {
            Target::Script(script) => {
                let last = messages.last().map_or("", |message| &message.content);
                script::happening(script, entry.nth, last)
            }
            Target::Model(_) | Target::Demo => demo::happening(&agent, &messages),
        })
    }
}

fn no_tool(name: &str) -> Happening {
    let fault = Fault::failed(FailureKind::NotFound, format!("there is no tool {name}"));
    Happening { after: Duration::default(), outcome: Err(fault), usage: Usage::default() }
}
