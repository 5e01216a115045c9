//! A topology and a condition of one's own, in Rust: `cargo run -p folkmoot-core --example custom_topology`.

#![expect(clippy::print_stdout, reason = "it shows what came of it")]

use std::{error::Error, sync::Arc};

use folkmoot_core::{
    call::Usage,
    check::{Input, Source, check_with},
    extension::{Kind, Registry},
    file::models::Catalog,
    key::Key,
    known::Entry,
    log,
    programs::graph::{Edge, PARENT, Topology},
    run::Run,
    sim::{Happening, Sim, World},
    spec::Spec,
    team::Target,
    view,
};

const TEAM: &str = "
agents:
  - { name: ann, script: { replies: [a, b, c] } }
  - { name: bob, script: { replies: [rough, better, DONE] } }
collaboration:
  topology: ring
  agents: [ann, bob]
  max_iterations: 9
  termination: { any_of: [ { says: { word: DONE } } ] }
";

/// Scripted agents say what they are to say.
struct Scripted;

impl World for Scripted {
    fn answer(&mut self, spec: &Spec, _: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let Target::Script(script) = &spec.team.agent(entry.call.agent()).target else {
            return None;
        };
        let reply = script.reply(entry.nth, "")?;
        Some(Happening { after: reply.delay, outcome: reply.outcome(), usage: Usage::default() })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::default();
    // Each hands over to the next, and the last to the first; nobody but a condition ends it.
    let ring = Topology::new(|agents, _| {
        let to = agents.iter().skip(1).chain(agents.first());
        let edges = agents.iter().zip(to).map(|(from, to)| Edge::new(from.clone(), to.clone()));
        let ends = agents
            .iter()
            .flat_map(|it| [Edge::new(PARENT, it.clone()), Edge::new(it.clone(), PARENT)]);
        Ok(ends
            .take(1)
            .chain(edges)
            .chain(agents.last().map(|it| Edge::new(it.clone(), PARENT)))
            .collect())
    });
    registry.topology("ring", ring)?;
    // Somebody's latest reply has the word.
    let mut says = Kind::new(|facts, params| {
        let word = params["word"].as_str().unwrap_or_default();
        facts.agents().filter_map(|agent| facts.last(agent)).any(|reply| reply.text.contains(word))
    });
    says.params.insert("word".into(), "done".into());
    registry.condition("says", says)?;

    let checked = check_with(
        &Input {
            source: Source::File(TEAM.as_bytes()),
            name: "ring",
            path: None,
            overrides: &[],
            task: Some("Write a poem"),
            catalog: &Catalog::default(),
            variable: &|_| None,
            read: &|_| Err("there are no files".into()),
        },
        &registry,
    );
    let spec = checked.spec.ok_or_else(|| format!("{:#?}", checked.diagnostics))?;
    let sim = Sim::start(Arc::new(spec), 0, 0, &mut Scripted).finish(&mut Scripted);
    let (spec, run) = log::load_with(&sim.log, &registry)?;
    let result = view::outcome("ring", &spec, &run, false);
    println!("{} after {} steps", result.reason.unwrap_or_default(), sim.log.len());
    Ok(())
}
