//! Which files another attempt begins from (agents.md §10).
//!
//! A call that may change files begins only after they were saved, so a log tells what they were
//! before each one. Deliberately absent: how they are saved and put back, which is for the edge.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    event::{Event, Files, Record},
    key::Key,
    replay,
    spec::Spec,
};

/// What the files of a workspace are to be when a run begins that goes on from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// As they are: nothing is asked again that could have changed them.
    AsTheyAre,
    /// As they were before a call that is asked again.
    Before {
        /// The call.
        key: Key,
        /// The files.
        tree: Arc<str>,
    },
    /// As they are, for want of anything better.
    Unknown {
        /// The first call that is asked again and may have changed them.
        key: Key,
        /// Why they are not what they were before it.
        why: Arc<str>,
    },
}

impl Basis {
    /// The basis of a run that begins with the events `fork`, of which the others stand in `records`.
    ///
    /// Whatever is not taken over is undone: the files are what they were before the first such call.
    /// But what is taken over keeps its effects, so if some of that was still at work then, nothing
    /// can be undone.
    pub fn of(records: &[Record], fork: &[Event]) -> Basis {
        let Some(spec) = replay::spec_of(records) else { return Basis::AsTheyAre };
        let kept: BTreeSet<&Key> = fork.iter().filter_map(inherited).collect();
        let past = Past::of(&spec, records);
        let undone = past.saved.iter().filter(|(key, _)| !kept.contains(*key));
        let Some((key, (since, files))) = undone.min_by_key(|(_, (seq, _))| *seq) else {
            return Basis::AsTheyAre;
        };
        let key = Key::clone(key);
        let others =
            past.ended.iter().filter(|(other, seq)| kept.contains(**other) && *seq > since);
        match (others.map(|(other, _)| other).next(), files) {
            (Some(other), _) => {
                let why = format!("{other}, which is kept, was still at work then");
                Basis::Unknown { key, why: why.into() }
            }
            (None, Files::Unsaved(why)) => Basis::Unknown { key, why: why.clone() },
            (None, Files::Tree(tree)) => Basis::Before { key, tree: tree.clone() },
        }
    }
}

fn inherited(event: &Event) -> Option<&Key> {
    event.key().filter(|_| matches!(event, Event::Inherited { .. }))
}

/// What a log tells about files, by call and the number of the record.
#[derive(Default)]
struct Past<'a> {
    /// When they were saved before the first attempt at a call.
    saved: BTreeMap<&'a Key, (u64, Files)>,
    /// When a call was over that may have changed them.
    ended: BTreeMap<&'a Key, u64>,
}

impl<'a> Past<'a> {
    fn of(spec: &Spec, records: &'a [Record]) -> Past<'a> {
        let mut past = Past::default();
        let mut changing = BTreeSet::new();
        for Record { seq, event, .. } in records {
            match event {
                Event::Asked { key, call, .. } => {
                    past.saved.remove(key);
                    if spec.changes_files(call) {
                        changing.insert(key);
                    }
                }
                Event::Inherited { key, call, .. } if spec.saves_before(call) => {
                    let why =
                        "it was taken over from another run, which can be tried again instead";
                    past.saved.insert(key, (*seq, Files::Unsaved(why.into())));
                }
                Event::Saved { key, files } => {
                    past.saved.entry(key).or_insert_with(|| (*seq, files.clone()));
                }
                Event::Answered { key, .. } | Event::Withdrawn { key, .. } => {
                    if changing.contains(key) {
                        past.ended.insert(key, *seq);
                    }
                }
                Event::Inherited { .. }
                | Event::Started { .. }
                | Event::Prompted { .. }
                | Event::Resumed { .. }
                | Event::Amended { .. }
                | Event::CancelRequested
                | Event::Ticked
                | Event::Woken { .. }
                | Event::Mailed { .. }
                | Event::Refused { .. }
                | Event::Concluded { .. }
                | Event::Ended { .. } => {}
            }
        }
        past
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        call::ToolCall,
        programs::{Broadcast, Clocks},
        replay::{Change, Retry, fork, replay},
        spec::Collaboration,
        team::{Agent, Sandbox, Says, Script, ScriptedReply, Target},
        testing::{agent, ids, play, spec},
    };

    fn writes(path: &str) -> ScriptedReply {
        let arguments = json!({ "path": path, "content": "" });
        let call = ToolCall { id: "1".into(), name: "file.write".into(), arguments };
        ScriptedReply {
            says: Says::Tools { calls: vec![call], text: "".into() },
            ..ScriptedReply::text("")
        }
    }

    fn writer(id: &str, replies: Vec<ScriptedReply>) -> Agent {
        let target = Target::Script(Script { replies, ..Script::default() });
        let (grants, sandbox) = (vec!["file".into()], Sandbox::Write);
        Agent { grants, sandbox, target, ..agent(id, &[]) }
    }

    /// Two turns, one after the other, of agents that write a file each.
    fn team() -> Spec {
        let said = |text| ScriptedReply::text(text);
        let agents = vec![
            writer("a", vec![writes("a"), said("A")]),
            writer("b", vec![writes("b"), said("B")]),
        ];
        let broadcast =
            Broadcast { agents: ids(&["a", "b"]), rounds: 1, clocks: Clocks::default() };
        spec(agents, Collaboration::Broadcast(broadcast))
    }

    /// The log of a run in which the files were saved whenever they were to be.
    fn recorded(files: impl Fn(&Key) -> Files) -> Vec<Record> {
        let spec = team();
        let (mut events, mut due) = (Vec::new(), Vec::new());
        for Record { at, event, .. } in play(spec.clone()).log {
            if !event.is_decision() {
                events.append(&mut due);
            }
            if let Event::Asked { key, call, .. } = &event
                && spec.saves_before(call)
            {
                due.push((at, Event::Saved { key: key.clone(), files: files(key) }));
            }
            events.push((at, event));
        }
        let number = |(seq, (at, event))| Record { seq, at, event };
        (1..).zip(events).map(number).collect()
    }

    fn tree(key: &Key) -> Files {
        Files::Tree(format!("before {key}").into())
    }

    /// What another attempt from `key` on begins from.
    fn from(records: &[Record], key: &str) -> Basis {
        let spec = replay::spec_of(records).expect("it starts");
        let retry = Some(Retry { from: Some(Key::parse(key)), prompt: None });
        let at = records.len() as u64;
        let change = Change { at, spec, answers: Vec::new(), retry };
        Basis::of(records, &fork("r1", records, &change, 0))
    }

    #[test]
    fn saving_files_changes_no_decision() {
        let records = recorded(tree);
        let saved = records.iter().filter(|it| matches!(it.event, Event::Saved { .. }));
        assert_eq!(saved.count(), 6);
        replay(&records).expect("every decision comes out as recorded");
    }

    #[test]
    fn the_files_are_those_before_the_first_call_that_is_asked_again() {
        let records = recorded(tree);
        let before = |key: &str| {
            let key = Key::parse(key);
            Basis::Before { tree: format!("before {key}").into(), key }
        };
        assert_eq!(from(&records, "round-1/b/model-2"), before("round-1/b/model-2"));
        assert_eq!(from(&records, "nobody/asked"), Basis::AsTheyAre);
        let spec = replay::spec_of(&records).expect("it starts");
        let anew = [Event::Started { spec, wall: 0, origin: None }];
        assert_eq!(Basis::of(&records, &anew), before("round-1/a/model-1"));
    }

    #[test]
    fn what_is_kept_keeps_its_effects_and_then_nothing_is_undone() {
        let Basis::Unknown { key, why } = from(&recorded(tree), "round-1/b/tool-1") else {
            panic!("a was at work beside b")
        };
        assert_eq!(key.as_str(), "round-1/b/tool-1");
        assert_eq!(&*why, "round-1/a/tool-1, which is kept, was still at work then");
    }

    #[test]
    fn what_was_not_saved_is_not_known() {
        let records = recorded(|_| Files::Unsaved("there is no git".into()));
        let Basis::Unknown { why, .. } = from(&records, "round-1/b/model-2") else {
            panic!("nothing was saved")
        };
        assert_eq!(&*why, "there is no git");
    }
}
