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
    let ring = Topology::new(|agents, _| {
        let [first, .., last] = agents else { return Err("a ring needs two agents".into()) };
        let next = agents.windows(2).map(|pair| Edge::new(pair[0].clone(), pair[1].clone()));
        let ends = [Edge::new(last.clone(), first.clone()), Edge::new(last.clone(), PARENT)];
        Ok([Edge::new(PARENT, first.clone())].into_iter().chain(next).chain(ends).collect())
    });
    registry.topology("ring", ring)?;
    // Somebody's latest reply has the word.
    let mut says = Kind::new(|facts, params| {
        let word = params["word"].as_str().unwrap_or_default();
        facts.agents().filter_map(|agent| facts.last(agent)).any(|reply| reply.text.contains(word))
    });
    says.params.insert("word".into(), "done".into());
    registry.condition("says", says)?;

    let input = Input {
        source: Source::File(TEAM.as_bytes()),
        name: "ring",
        path: None,
        overrides: &[],
        task: Some("Write a poem"),
        catalog: &Catalog::default(),
        variable: &|_| None,
        read: &|_| Err("there are no files".into()),
    };
    let checked = check_with(&input, &registry);
    let spec = checked.spec.ok_or_else(|| format!("{:#?}", checked.diagnostics))?;
    let sim = Sim::start(Arc::new(spec), 0, 0, &mut Scripted).finish(&mut Scripted);
    let (spec, run) = log::load_with(&sim.log, &registry)?;
    let result = view::outcome("ring", &spec, &run, false);
    println!(
        "ended by {}, with {}",
        result.reason.unwrap_or_default(),
        result.answer.unwrap_or_default()
    );
    Ok(())
}

#[test]
fn the_example_runs() {
    main().unwrap_or_else(|error| panic!("{error}"));
}
