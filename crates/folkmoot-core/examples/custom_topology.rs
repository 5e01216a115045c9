//! A topology and a condition of one's own: `cargo run -p folkmoot-core --example custom_topology`.

#![expect(clippy::print_stdout, reason = "it shows what came of it")]

use std::{error::Error, sync::Arc};

use folkmoot_core::{
    call::{Answer, Usage},
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
    time::Duration,
    view,
};

const TEAM: &str = "
agents: [{ name: ann, demo: true }, { name: bob, demo: true }]
collaboration:
  topology: ring
  agents: [ann, bob]
  max_iterations: 9
  termination: { any_of: [{ says: { word: DONE } }] }
";

/// Everybody is done the third time.
struct Third;

impl World for Third {
    fn answer(&mut self, _: &Spec, _: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let text = if entry.nth < 3 { "not yet" } else { "DONE" };
        let (after, usage) = (Duration::default(), Usage::default());
        Some(Happening { after, outcome: Ok(Answer::text(text).into()), usage })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let ring = Topology::new(|agents, _| {
        let [first, .., last] = agents else { return Err("a ring needs two agents".into()) };
        let next = agents.windows(2).map(|pair| Edge::new(pair[0].clone(), pair[1].clone()));
        let ends = [Edge::new(last.clone(), first.clone()), Edge::new(last.clone(), PARENT)];
        Ok([Edge::new(PARENT, first.clone())].into_iter().chain(next).chain(ends).collect())
    });
    let mut says = Kind::new(|facts, params| {
        let word = params["word"].as_str().unwrap_or_default();
        facts.agents().filter_map(|agent| facts.last(agent)).any(|it| it.text.contains(word))
    });
    says.params.insert("word".into(), "FINE".into());
    let mut registry = Registry::default();
    registry.topology("ring", ring)?;
    registry.condition("says", says)?;

    let source = Source::File(TEAM.as_bytes());
    let (task, catalog) = (Some("Write a poem"), &Catalog::default());
    let (variable, read) = (&|_: &str| None, &|_: &str| Err("there are no files".into()));
    let (name, path, overrides) = ("ring", None, &[]);
    let input = Input { source, name, path, overrides, task, catalog, variable, read };
    let spec = check_with(&input, &registry).spec.ok_or("the team is refused")?;
    let sim = Sim::start(Arc::new(spec), 0, 0, &mut Third).finish(&mut Third);

    // A log knows the condition by its name alone.
    let (spec, run) = log::load_with(&sim.log, &registry)?;
    let result = view::outcome("ring", &spec, &run, false);
    println!("{} after {} records", result.reason.ok_or("it has no end")?, sim.log.len());
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap_or_else(|error| panic!("{error}"));
}
