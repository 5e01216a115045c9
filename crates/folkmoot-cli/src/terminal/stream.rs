//! A run as JSON lines on standard output (`stream-json`): every record, what comes in between, and
//! last the result.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use folkmoot_core::{
    call::Call,
    event::{Event, Record},
    key::Key,
    run::Run,
    scope::Notice,
    spec::Spec,
    view::Outcome,
};
use folkmoot_runtime::{
    backend::Delta,
    driver::Observer,
    notices::{Subscribers, USUAL_PRIORITY},
    stream::{self, Line, Piece},
};

use super::{json, sink::Sink};

/// One record as a line of the stream.
pub(crate) fn record(run_id: &str, record: &Record) -> String {
    json::line(&Line::record(run_id, record))
}

/// What the run's public stream is told, as a line of this one.
pub(crate) fn notice(run_id: &str, notice: &Notice) -> String {
    json::line(&stream::notice(run_id, notice))
}

/// The result as the last line of the stream.
pub(crate) fn result(outcome: &Outcome) -> String {
    json::line(&Line::Result(outcome))
}

/// Streams a run that is under way.
///
/// Records are never left out. Deltas are, where the reader is far behind: no more come of that call
/// then, and its answer has all of them.
#[derive(Debug)]
pub(crate) struct Stream {
    run_id: String,
    sink: Arc<Sink>,
    public: Subscribers,
    calls: Mutex<HashMap<Key, Flow>>,
}

/// What a call under way has sent so far.
#[derive(Debug)]
struct Flow {
    agent: Arc<str>,
    /// The end of the last text or reasoning, which may be the beginning of a secret.
    held: Option<(Kind, String)>,
    /// Whether some of it was left out.
    is_cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl Kind {
    fn piece(self, text: &str) -> Piece<'_> {
        match self {
            Kind::Text => Piece::Text(text),
            Kind::Reasoning => Piece::Reasoning(text),
        }
    }
}

impl Flow {
    fn of(spec: &Spec, call: &Call) -> Flow {
        let agent = spec.team.agent(call.agent()).name.clone();
        Flow { agent, held: None, is_cut: false }
    }
}

impl Stream {
    /// Streams the run `run_id` to `sink`.
    pub(crate) fn new(run_id: impl Into<String>, sink: Sink) -> Stream {
        let (run_id, sink) = (run_id.into(), Arc::new(sink));
        let (id, lines) = (run_id.clone(), sink.clone());
        // A sink tells at its end what could not be written.
        let public = Subscribers::new(|_| ()).with(None, USUAL_PRIORITY, move |told| {
            lines.put(&notice(&id, told));
            Ok(())
        });
        Stream { run_id, sink, public, calls: Mutex::default() }
    }

    /// Writes the last line and waits until everything is written.
    pub(crate) fn finish(&self, outcome: &Outcome) -> io::Result<()> {
        self.sink.put(&result(outcome));
        self.sink.close()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Key, Flow>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: &Key, agent: &str, piece: Piece<'_>) {
        self.sink.put(&json::line(&Line::Delta { key, agent, piece }));
    }

    /// Lets go of what was held back: nothing follows that would make it a secret.
    fn flush(&self, key: &Key, flow: &mut Flow) {
        if let Some((kind, held)) = flow.held.take().filter(|(_, held)| !held.is_empty()) {
            self.put(key, &flow.agent, kind.piece(&self.sink.secrets().mask(&held)));
        }
    }

    fn text(&self, key: &Key, flow: &mut Flow, (kind, text): (Kind, &str)) {
        if flow.held.as_ref().is_some_and(|(held, _)| *held != kind) {
            self.flush(key, flow);
        }
        let (_, held) = flow.held.get_or_insert_with(|| (kind, String::new()));
        let mut masked = String::new();
        self.sink.secrets().push(held, text, &mut masked);
        if !masked.is_empty() {
            self.put(key, &flow.agent, kind.piece(&masked));
        }
    }
}

impl Observer for Stream {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        let mut calls = self.calls();
        for it in records {
            let flow = it.event.key().and_then(|key| Some((key, calls.get_mut(key)?)));
            if let Some((key, flow)) = flow {
                self.flush(key, flow);
            }
            self.sink.put(&record(&self.run_id, it));
            match &it.event {
                Event::Asked { key, call, .. } => {
                    calls.insert(key.clone(), Flow::of(spec, call));
                }
                Event::Resumed { .. } => {
                    let open = run.known().open();
                    calls.extend(open.map(|(key, it)| (key.clone(), Flow::of(spec, &it.call))));
                }
                Event::Answered { key, .. }
                | Event::Withdrawn { key, .. }
                | Event::Concluded { key, .. } => {
                    // An answer to an earlier attempt leaves the call open.
                    if run.known().get(key.as_str()).is_none_or(|entry| !entry.is_open()) {
                        calls.remove(key);
                    }
                }
                Event::Started { .. }
                | Event::Inherited { .. }
                | Event::Prompted { .. }
                | Event::Amended { .. }
                | Event::CancelRequested
                | Event::Ticked
                | Event::Woken { .. }
                | Event::Saved { .. }
                | Event::Mailed { .. }
                | Event::Refused { .. }
                | Event::Ended { .. } => {}
            }
        }
        self.public.recorded(spec, run, records);
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        let mut calls = self.calls();
        let Some(flow) = calls.get_mut(key) else { return };
        if flow.is_cut || self.sink.is_behind() {
            (flow.is_cut, flow.held) = (true, None);
            return;
        }
        match delta {
            Delta::Text(text) => self.text(key, flow, (Kind::Text, text)),
            Delta::Reasoning(text) => self.text(key, flow, (Kind::Reasoning, text)),
            Delta::Retry(why) => {
                flow.held = None;
                self.put(key, &flow.agent, Piece::Retry(why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_agents::Secrets;
    use folkmoot_core::view;
    use serde_json::Value;

    use super::*;
    use crate::terminal::testing::{Stage, Written, agent, broadcast, reply};

    fn stream(secrets: Secrets) -> (Stream, Written) {
        let written = Written::default();
        (Stream::new("r1", Sink::new(written.clone(), secrets)), written)
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
    fn check(lines: &str, expected: Expect) {
        let short = lines.lines().map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("each line is JSON");
            for long in ["spec", "call", "rounds", "meta", "prompt"] {
                value.as_object_mut().expect("each line is an object").shift_remove(long);
            }
            value.to_string()
        });
        expected.assert_eq(&(short.collect::<Vec<_>>().join("\n") + "\n"));
    }

    fn finish(stream: &Stream, stage: &Stage) {
        let outcome = view::outcome("r1", &stage.sim.spec, &stage.sim.run, true);
        stream.finish(&outcome).expect("memory takes everything");
    }

    #[test]
    fn every_record_is_a_line_deltas_stand_between_and_the_result_is_last() {
        let (stream, written) = stream(Secrets::default());
        let ada = agent("艾达", [reply(1200, "42", 340)]);
        let mut stage = Stage::new(broadcast(1, vec![ada]));
        stage.tell(|spec, run, records| stream.recorded(spec, run, records));
        let key = Key::parse("round-1/艾达");
        stream.delta(&key, Delta::Reasoning("hm"));
        stream.delta(&key, Delta::Retry("cut off"));
        stream.delta(&key, Delta::Text("4\u{9b}2"));
        stream.delta(&Key::parse("nobody"), Delta::Text("unasked"));
        stage.play(|spec, run, records| stream.recorded(spec, run, records));
        finish(&stream, &stage);
        assert!(written.text().contains(r"4\u009b2"), "harmless on a terminal");
        check(
            &written.text(),
            expect![[r#"
            {"type":"record","run_id":"r1","seq":1,"at":0,"event":"started","wall":0,"elapsed_ms":0}
            {"type":"record","run_id":"r1","seq":2,"at":0,"event":"asked","key":"round-1/艾达","nth":1,"expires":600000000,"elapsed_ms":0}
            {"type":"delta","key":"round-1/艾达","agent":"艾达","reasoning":"hm"}
            {"type":"delta","key":"round-1/艾达","agent":"艾达","retry":"cut off"}
            {"type":"delta","key":"round-1/艾达","agent":"艾达","text":"42"}
            {"type":"record","run_id":"r1","seq":3,"at":1200000,"event":"answered","key":"round-1/艾达","attempt":1,"answer":{"text":"42"},"usage":{"input":340,"output":0},"elapsed_ms":1200}
            {"type":"record","run_id":"r1","seq":4,"at":1200000,"event":"ended","done":true,"reason":"answered","final":{"replies":["round-1/艾达"]},"elapsed_ms":1200}
            {"type":"result","run_id":"r1","status":"done","reason":"answered","strategy":"broadcast","final":"42","errors":[],"warnings":[]}
        "#]],
        );
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_not_seen_and_no_other_letter_is_lost() {
        let (stream, written) = stream(Secrets::new(["sk-0123456789"]));
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(10, "done", 0)])]));
        stage.tell(|spec, run, records| stream.recorded(spec, run, records));
        let key = Key::parse("round-1/a");
        for piece in ["it is sk-01", "23456", "789, ask", " others"] {
            stream.delta(&key, Delta::Text(piece));
        }
        stage.play(|spec, run, records| stream.recorded(spec, run, records));
        finish(&stream, &stage);
        let text = written.text();
        let deltas = text.lines().filter_map(|line| {
            let value: Value = serde_json::from_str(line).expect("each line is JSON");
            Some(value["text"].as_str()?.to_owned())
        });
        assert_eq!(deltas.collect::<String>(), "it is ***, ask others");
    }

    #[test]
    fn a_reader_far_behind_misses_deltas_but_no_record() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let sink = Sink::new(writer, Secrets::default());
        let stream = Stream::new("r1", sink);
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(10, "done", 0)])]));
        stage.tell(|spec, run, records| stream.recorded(spec, run, records));
        for n in 0..40_000 {
            stream.delta(&Key::parse("round-1/a"), Delta::Text(&n.to_string()));
        }
        stage.play(|spec, run, records| stream.recorded(spec, run, records));
        let read = std::thread::spawn(move || std::io::read_to_string(reader));
        finish(&stream, &stage);
        let text = read.join().expect("no panic").expect("text");
        let of = |kind: &str| text.lines().filter(|line| line.contains(kind)).count();
        assert_eq!(of(r#"{"type":"record""#), stage.sim.log.len());
        assert_eq!(of(r#"{"type":"result""#), 1);
        let deltas = of(r#"{"type":"delta""#);
        assert!((1..40_000).contains(&deltas), "{deltas}");
        assert!(text.contains(&format!(r#""text":"{}""#, deltas - 1)), "none before a missing one");
        assert!(!text.contains(&format!(r#""text":"{deltas}""#)), "none after a missing one");
    }

    #[test]
    fn a_reader_that_is_gone_ends_nothing() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let stream = Stream::new("r1", Sink::new(writer, Secrets::default()));
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(10, "done", 0)])]));
        stage.play(|spec, run, records| stream.recorded(spec, run, records));
        finish(&stream, &stage);
        assert!(stage.sim.run.ending().is_some_and(|ending| ending.done));
    }
}
