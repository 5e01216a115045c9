//! A topology, a condition and a program of one's own, in Rust.

#![expect(clippy::print_stdout, reason = "it shows what came of it")]

use std::{error::Error, sync::Arc};

use folkmoot_core::{
    call::{Answer, Prompt, Usage},
    check::{Input, Source, check_with},
    event::Ending,
    extension::{Kind, Registry},
    file::models::Catalog,
    key::Key,
    known::Entry,
    log,
    programs::graph::{Edge, PARENT, Topology},
    run::Run,
    scope::{Program, Scope, Step},
    sim::{Happening, Sim, World},
    spec::Spec,
    time::Duration,
};

const RING: &str = "topology: ring, agents: [ann, bob], termination: { any_of: [{ done: {} }] }";

/// All are asked, and the longest answer is the run's.
#[derive(Debug)]
struct Longest;

impl Program for Longest {
    fn run(&self, cx: &Scope) -> Step<Ending> {
        let agents = &cx.spec().team.agents;
        let all = cx.all(agents, |it| cx.ask(it.id.as_str(), &it.id, Prompt::task()))?;
        let longest = all.iter().max_by_key(|it| it.text().map_or(0, |text| text.len()));
        Ok(Ending::done("answered", longest.map(|it| it.key.clone()).into_iter().collect()))
    }
}

/// Everybody is done the second time.
struct Second;

impl World for Second {
    fn answer(&mut self, _: &Spec, _: &Run, _: &Key, entry: &Entry) -> Option<Happening> {
        let answer = Answer::text(if entry.nth < 2 { "not yet" } else { "DONE" });
        Some(Happening { after: Duration(0), outcome: Ok(answer.into()), usage: Usage::default() })
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
    let done = Kind::new(|it, _| it.last(&"bob".into()).is_some_and(|it| &*it.text == "DONE"));
    registry.topology("ring", ring)?;
    registry.condition("done", done)?;
    registry.program("longest", Longest)?;
    for work in [RING, "program: longest"] {
        let agents = "agents: [{ name: ann, demo: true }, { name: bob, demo: true }]";
        let file = format!("{agents}\ncollaboration: {{ {work} }}");
        let (source, task) = (Source::File(file.as_bytes()), Some("Write a poem"));
        let (name, path, overrides, catalog) = ("own", None, &[], &Catalog::default());
        let (variable, read) = (&|_: &str| None, &|_: &str| Err("there are no files".into()));
        let (list, around) = (&|_: &str| Err("no such folder".into()), &[]);
        let beside = &|_: &str, _: &str| Ok(None);
        let input = Input {
            source,
            name,
            path,
            overrides,
            task,
            catalog,
            variable,
            read,
            beside,
            list,
            around,
        };
        let spec = check_with(&input, &registry).spec.ok_or("the team is refused")?;
        let sim = Sim::start(Arc::new(spec), 0, 0, &mut Second).finish(&mut Second);
        let (_, run) = log::load_with(&sim.log, &registry)?;
        println!("{:?}", run.ending().ok_or("it has no end")?);
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap_or_else(|error| panic!("{error}"));
}
