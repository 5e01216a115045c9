//! What a log must be before anything is made of it (rules.md 7.7).
//!
//! A store's hashes prove that a log is as it was written, not who wrote it: it may have been made by
//! hand, or by another program. Deliberately absent: whether the decisions are the right ones, which
//! only a [replay](crate::replay::replay) can tell.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use thiserror::Error;

use crate::{
    call::Call,
    event::{Event, Record},
    extension::Registry,
    key::Key,
    replay,
    run::Run,
    spec::Spec,
    team::AgentId,
};

/// How many calls may be taken up again in all, each time that a run is resumed; every one is kept as
/// an attempt of its own.
const MAX_RETAKEN: usize = 1 << 18;

/// Why records are no log that a run could have written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsound {
    /// It does not begin with a start.
    #[error("its log does not begin with a start")]
    NoStart,
    /// Its spec is none that a check would have let through.
    #[error("its spec cannot be followed: {0}")]
    Spec(String),
    /// A record has another number than its place.
    #[error("record {seq} stands where record {due} is due")]
    Number {
        /// Its number.
        seq: u64,
        /// The number that it should have.
        due: u64,
    },
    /// A record is older than the one before.
    #[error("record {0} is older than the one before it")]
    Time(u64),
    /// The run starts once more.
    #[error("record {0} starts the run once more")]
    StartedAgain(u64),
    /// A record names an agent that the spec does not have.
    #[error("record {seq} names agent \"{agent}\", which the run does not have")]
    ForeignAgent {
        /// The record.
        seq: u64,
        /// The agent.
        agent: AgentId,
    },
    /// A call goes on from one that was never made, or in the end from itself.
    #[error("record {seq} goes on from call {key}, which leads nowhere")]
    Continues {
        /// The record.
        seq: u64,
        /// The call it goes on from.
        key: Key,
    },
    /// Open calls are taken up again more often than any run could be interrupted.
    #[error("record {0} takes up more calls again than a log may hold")]
    Retaken(u64),
}

/// The spec of the log `records` and the run it folds to, if it is sound: numbered without gaps, in
/// order of time, started once, with a spec that can be followed, agents that it has, and
/// conversations that have a beginning. What is so can be shown, replayed and gone on with, whatever
/// else it says.
pub fn load(records: &[Record]) -> Result<(Arc<Spec>, Run), Unsound> {
    load_with(records, &Registry::default())
}

/// The same for a log whose spec may name conditions that are code of the caller's own.
pub fn load_with(records: &[Record], registry: &Registry) -> Result<(Arc<Spec>, Run), Unsound> {
    let mut spec = replay::spec_of(records).ok_or(Unsound::NoStart)?;
    registry.bind(Arc::make_mut(&mut spec));
    if let Some(flaw) = spec.flaw() {
        return Err(Unsound::Spec(flaw));
    }
    let agents: BTreeSet<AgentId> = spec.team.all().into_iter().map(|agent| agent.id).collect();
    let mut conversations = Conversations::default();
    let (mut run, mut retaken) = (Run::default(), 0);
    for record in records {
        let Record { seq, at, event } = record;
        let (seq, due) = (*seq, run.seq() + 1);
        if seq != due {
            return Err(Unsound::Number { seq, due });
        }
        if *at < run.at() {
            return Err(Unsound::Time(seq));
        }
        if let Some(agent) = event.agent().filter(|agent| !agents.contains(agent)).cloned() {
            return Err(Unsound::ForeignAgent { seq, agent });
        }
        match event {
            Event::Started { .. } if seq > 1 => return Err(Unsound::StartedAgain(seq)),
            Event::Asked { key, call, .. }
            | Event::Refused { key, call, .. }
            | Event::Inherited { key, call, .. } => {
                let lost = |key: &Key| Unsound::Continues { seq, key: key.clone() };
                conversations.add(key, call).map_err(lost)?;
            }
            Event::Resumed { .. } => retaken += run.known().open_count(),
            Event::Started { .. }
            | Event::Prompted { .. }
            | Event::Answered { .. }
            | Event::Amended { .. }
            | Event::CancelRequested
            | Event::Ticked
            | Event::Woken { .. }
            | Event::Saved { .. }
            | Event::Mailed { .. }
            | Event::Withdrawn { .. }
            | Event::Concluded { .. }
            | Event::Ended { .. } => {}
        }
        if retaken > MAX_RETAKEN {
            return Err(Unsound::Retaken(seq));
        }
        run.apply(record);
    }
    Ok((spec, run))
}

/// Which call goes on from which, as far as they are known.
#[derive(Default)]
struct Conversations<'a> {
    places: BTreeMap<&'a Key, usize>,
    /// By place, the one that a call goes on from.
    before: Vec<Option<usize>>,
}

impl<'a> Conversations<'a> {
    /// Adds a call, or another one under the same key. Gives what it goes on from if that is not
    /// known, or leads back to the call itself.
    fn add(&mut self, key: &'a Key, call: &'a Call) -> Result<(), &'a Key> {
        let continued = match call {
            Call::Agent { prompt, .. }
            | Call::Team { prompt, .. }
            | Call::Person { prompt, .. } => prompt.continues.as_ref(),
            Call::Tool { .. }
            | Call::Gate { .. }
            | Call::Exchange { .. }
            | Call::Listing { .. } => None,
        };
        let before = continued.map(|key| self.places.get(key).copied().ok_or(key)).transpose()?;
        let Some(&own) = self.places.get(key) else {
            self.places.insert(key, self.before.len());
            self.before.push(before);
            return Ok(());
        };
        let mut link = before;
        while let Some(at) = link {
            if at == own {
                return continued.map_or(Ok(()), Err);
            }
            link = self.before[at];
        }
        self.before[own] = before;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::Prompt,
        programs::{Broadcast, Clocks, Convergence, Relay},
        spec::Collaboration,
        testing::{agent, ids, play, spec},
        time::Time,
    };

    fn team() -> Spec {
        let (agents, clocks) = (ids(&["a", "b"]), Clocks::default());
        let collaboration = Collaboration::Broadcast(Broadcast { agents, rounds: 2, clocks });
        spec(vec![agent("a", &["A"]), agent("b", &["B"])], collaboration)
    }

    fn sound() -> Vec<Record> {
        play(team()).log
    }

    #[track_caller]
    fn refused(log: &[Record]) -> String {
        load(log).expect_err("it is not sound").to_string()
    }

    #[test]
    fn what_a_run_wrote_is_sound_wherever_it_is_cut() {
        let log = sound();
        assert_eq!(load(&[]), Err(Unsound::NoStart));
        for end in 1..=log.len() {
            assert_eq!(load(&log[..end]), Ok((team().into(), Run::fold(&log[..end]))));
        }
    }

    #[test]
    fn what_is_missing_twice_or_out_of_order_is_told() {
        let mut log = sound();
        log.remove(2);
        assert_eq!(refused(&log), "record 4 stands where record 3 is due");
        let mut log = sound();
        log[1].seq = u64::MAX;
        assert_eq!(refused(&log), format!("record {} stands where record 2 is due", u64::MAX));
        let mut log = sound();
        log[1].at = Time(7);
        assert_eq!(refused(&log), "record 3 is older than the one before it");
        let mut log = sound();
        log[1].event = log[0].event.clone();
        assert_eq!(refused(&log), "record 2 starts the run once more");
        assert_eq!(refused(&log[1..]), "record 2 stands where record 1 is due");
    }

    #[test]
    fn agents_that_the_spec_does_not_have_are_told() {
        let mut log = sound();
        let asked = Call::Agent { agent: "ghost".into(), target: 1, prompt: Prompt::task() };
        let Event::Asked { call, .. } = &mut log[1].event else { panic!("it begins so") };
        *call = asked;
        assert_eq!(refused(&log), "record 2 names agent \"ghost\", which the run does not have");
    }

    /// The log of calls that go on from one another.
    fn conversations(calls: &[(&str, Option<&str>)]) -> Vec<Record> {
        let mut log = sound();
        log.truncate(1);
        for (seq, (key, continues)) in (2..).zip(calls) {
            let prompt = Prompt { continues: continues.map(Key::parse), ..Prompt::default() };
            let call = Call::Agent { agent: "a".into(), target: 1, prompt };
            let key = Key::parse(key);
            let (nth, reserved, expires, scopes) = (seq - 1, None, None, Vec::new());
            let event = Event::Asked { key, call, nth, reserved, expires, scopes };
            log.push(Record { seq, at: Time(0), event });
        }
        log
    }

    #[test]
    fn a_conversation_without_a_beginning_is_told() {
        let refused = |calls: &[_]| refused(&conversations(calls));
        let itself = refused(&[("x", Some("x"))]);
        assert_eq!(itself, "record 2 goes on from call x, which leads nowhere");
        let circle = refused(&[("x", None), ("y", Some("x")), ("x", Some("y"))]);
        assert_eq!(circle, "record 4 goes on from call y, which leads nowhere");
        let unknown = refused(&[("x", Some("y")), ("y", Some("x"))]);
        assert_eq!(unknown, "record 2 goes on from call y, which leads nowhere");
        let sound = [("x", None), ("y", Some("x")), ("x", None), ("y", Some("x"))];
        assert!(load(&conversations(&sound)).is_ok());
    }

    #[test]
    fn a_run_goes_on_from_the_largest_number_that_an_agents_call_can_have() {
        let mut log = conversations(&[("other", None)]);
        let Event::Asked { nth, .. } = &mut log[1].event else { panic!("it is asked") };
        *nth = u64::MAX;
        let (spec, mut run) = load(&log).expect("it is sound");
        let events = [Event::Resumed { wall: 0 }];
        let stepped = run.step(spec.program(), &spec, events, Time(0));
        let asked = stepped.records.iter().filter_map(|record| match record.event {
            Event::Asked { nth, .. } => Some(nth),
            _ => None,
        });
        assert_eq!(asked.collect::<Vec<_>>(), [u64::MAX, 1]);
    }

    #[test]
    fn calls_are_not_taken_up_again_without_end() {
        let open: Vec<String> = (0..1 << 10).map(|n| n.to_string()).collect();
        let calls: Vec<_> = open.iter().map(|key| (&**key, None)).collect();
        let mut log = conversations(&calls);
        let first = log.len() as u64 + 1;
        let resumed = |seq| Record { seq, at: Time(0), event: Event::Resumed { wall: 0 } };
        log.extend((first..first + (1 << 8)).map(resumed));
        assert!(load(&log).is_ok());
        log.push(resumed(first + (1 << 8)));
        assert_eq!(load(&log), Err(Unsound::Retaken(first + (1 << 8))));
    }

    #[test]
    fn a_spec_that_no_check_lets_through_is_told() {
        let clocks = Clocks::default();
        let flaw = |collaboration| {
            let mut log = sound();
            let spec = spec(vec![agent("a", &[])], collaboration).into();
            log[0].event = Event::Started { spec, wall: 0, origin: None };
            refused(&log)
        };
        let agents = ids(&["a", "b"]);
        assert_eq!(
            flaw(Collaboration::Broadcast(Broadcast { agents, rounds: 1, clocks })),
            "its spec cannot be followed: there is no agent \"b\""
        );
        let (order, rounds, convergence) = (Vec::new(), u32::MAX, Convergence::default());
        assert_eq!(
            flaw(Collaboration::Relay(Relay { order, rounds, convergence, clocks })),
            "its spec cannot be followed: nobody takes part"
        );
    }
}
