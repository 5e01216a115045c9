//! A run that waits in the middle.

use folkmoot_stub::{Door, Reply, Stub};

use crate::bench::{Bench, Process, until};

/// Two agents, one after the other.
pub(crate) const PAIR: &str = "
name: pair
agents:
  - { name: first, model: openai/stub }
  - { name: second, model: openai/stub }
collaboration: { strategy: sequential }
";

/// A run whose second call is under way, and stays so until the door is opened.
pub(crate) struct Held {
    pub(crate) run: Process,
    pub(crate) bench: Bench,
    pub(crate) stub: Stub,
    pub(crate) door: Door,
}

/// Starts such a run.
pub(crate) fn held(output: &str) -> Held {
    let door = Door::closed();
    let stub = Stub::start([Reply::text("one"), Reply::text("two").behind(&door)]);
    let bench = Bench::with_models(PAIR, &stub);
    let run = bench.start(["run", "team.yaml", "task", "--output", output]);
    until(&stub, |seen| seen.requests.len() == 2);
    Held { run, bench, stub, door }
}

/// Who was asked, in the order of asking.
pub(crate) fn asked(stub: &Stub) -> Vec<String> {
    let requests = stub.seen().requests;
    let name_in = |text: &str| {
        ["first", "second"].into_iter().find(|name| text.contains(&format!("Your name is {name}.")))
    };
    requests
        .iter()
        .map(|it| name_in(&it.body.to_string()).expect("each is told its name").to_owned())
        .collect()
}
