//! A team made up from bytes, and what happens to it.

mod graph;
mod team;
mod world;

use std::sync::Arc;

use folkmoot_core::{
    bounds::Bounds,
    call::{Answer, Call, Usage},
    event::{Event, Record, Settled},
    key::Key,
    known::Entry,
    log,
    run::Run,
    sim::{Sim, audit::audit},
    spec::Spec,
    view,
};

use self::{team::team, world::Hostile};
use crate::source::Choices;

/// A run that has not ended after so many records never will.
const ENDLESS: usize = 5000;

/// Whatever the team, its world and the people around it do: the run ends, and its log keeps the
/// laws.
pub fn run(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let Some(spec) = team(&mut choices) else { return };
    let (sim, appended) = live(Arc::new(spec), &mut choices);
    check(&sim);
    check(&resume(&sim, choices.pick(&appended)));
}

/// Lives it to its end; tells too how long the log was after each step, which is appended as one.
fn live(spec: Arc<Spec>, choices: &mut Choices<'_>) -> (Sim, Vec<usize>) {
    let seed = choices.number();
    let mut sim = Sim::start(spec, seed, 0, &mut Hostile(choices));
    let mut amendments = choices.below(3);
    let mut appended = Vec::new();
    loop {
        appended.push(sim.log.len());
        assert!(sim.log.len() < ENDLESS, "it does not end");
        if sim.run.ending().is_some() {
            if amendments == 0 {
                return (sim, appended);
            }
            amendments -= 1;
            let amended = amended(choices, &sim.log);
            sim.feed(amended, &mut Hostile(choices));
        } else if let Some(event) = disturbance(choices, &sim.log) {
            sim.feed(event, &mut Hostile(choices));
        } else if sim.run.waits_for_person() {
            let answers = people(&sim.run, choices);
            sim.feed_all(answers, &mut Hostile(choices));
        } else {
            let went_on = sim.advance(&mut Hostile(choices));
            assert!(went_on, "nothing more can happen, but it has not ended");
        }
    }
}

/// Another process takes up what was cut off after so many records; nothing disturbs it.
fn resume(whole: &Sim, cut: usize) -> Sim {
    let log = whole.log[..cut].to_vec();
    let run = Run::fold(&log);
    let lost = run.cut_off(&whole.spec);
    let mut sim = Sim::resume(whole.spec.clone(), run, log, 0);
    let mut nothing = Choices::new(&[]);
    let mut world = Hostile(&mut nothing);
    sim.feed_all([Event::Resumed { wall: 0 }].into_iter().chain(lost).collect(), &mut world);
    while sim.run.ending().is_none() {
        assert!(sim.log.len() < 2 * ENDLESS, "it does not end");
        if sim.run.waits_for_person() {
            let answers = people(&sim.run, world.0);
            sim.feed_all(answers, &mut world);
        } else {
            assert!(sim.advance(&mut world), "nothing more can happen, but it has not ended");
        }
    }
    sim
}

/// What people answer to all that waits for them.
fn people(run: &Run, choices: &mut Choices<'_>) -> Vec<Event> {
    let answer = |(key, entry): (&Key, &Entry)| {
        let text = choices.pick(&["stop", "retry", "skip", "well"]);
        let settled = Settled::Answer(Answer::text(text).into());
        let (key, attempt) = (key.clone(), entry.attempt);
        Event::Answered { key, attempt, settled, usage: Usage::default() }
    };
    run.known().questions().map(answer).collect()
}

/// Something that comes at a bad time.
fn disturbance(choices: &mut Choices<'_>, log: &[Record]) -> Option<Event> {
    if choices.is_empty() {
        return None;
    }
    let known = choices.pick(log).event.key().cloned();
    match choices.below(32) {
        0 => Some(Event::Ticked),
        1 => Some(Event::CancelRequested),
        2 => Some(Event::Resumed { wall: choices.number() }),
        3 => Some(late(known?, choices.below(4).into(), choices.number())),
        4 => Some(amended(choices, log)),
        5 => log.iter().rev().map(|it| &it.event).find(|it| it.key() == known.as_ref()).cloned(),
        _ => None,
    }
    .filter(|event| !event.is_decision() && !matches!(event, Event::Started { .. }))
}

fn late(key: Key, attempt: u32, tokens: u64) -> Event {
    let mut usage = Usage::default();
    usage.tokens.input = tokens;
    let settled = Settled::Answer(Answer::text("late").into());
    Event::Answered { key, attempt, settled, usage }
}

fn amended(choices: &mut Choices<'_>, log: &[Record]) -> Event {
    let keys: Vec<Key> = log.iter().filter_map(|record| record.event.key().cloned()).collect();
    let key = if keys.is_empty() { Key::parse("nobody/asked") } else { choices.pick(&keys) };
    Event::Amended { key, text: choices.text().into() }
}

/// The laws that hold for every run that has ended.
fn check(sim: &Sim) {
    let Sim { spec, run, log: records, .. } = sim;
    let loaded = log::load(records);
    assert!(loaded == Ok((spec.clone(), run.clone())), "the log is not sound, or of another state");
    let written: Vec<String> = records.iter().map(Record::to_json).collect();
    let read: Vec<Record> =
        written.iter().map(|json| Record::parse(json).expect("it can be read back")).collect();
    assert!(read == *records, "what was written is not what is read");
    let bounds = Bounds::of(&spec.collaboration, &spec.team, &spec.limits, Some(&spec.task));
    audit(sim, &bounds).unwrap_or_else(|broken| panic!("{broken}\n{}", written.join("\n")));
    let outcome = view::outcome("run", spec, run, true);
    serde_json::to_string(&outcome).expect("a result is plain data");
    let _ = view::report("run", spec, run, true);
    let is_charged =
        |event: &Event| matches!(event, Event::Asked { call, .. } if !call.is_for_person());
    let asked = records.iter().filter(|record| is_charged(&record.event)).count();
    assert_eq!(outcome.meta.usage.calls, asked as u64, "the bill counts other calls");
    for (key, entry) in run.known().iter() {
        let agent = entry.call.agent();
        assert!(spec.team.has(agent), "{key} is of nobody");
        let is_tool = matches!(entry.call, Call::Tool { .. });
        assert!(!is_tool || entry.nth == 0 || key.as_str().contains("/tool-"), "{key}");
    }
}
