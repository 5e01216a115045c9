//! The calls under way, and what each record of a run means for people.

use std::collections::HashMap;

use folkmoot_core::{
    call::{Answer, Call, Fault, Outcome, Usage},
    event::{Event, Record},
    key::Key,
    run::Run,
    spec::Spec,
    team::FIRST_TARGET,
    time::Time,
    view,
};

use super::{
    figures,
    screen::{Screen, Tone},
};

/// How much of an answer a line quotes, in columns.
const WORDS: usize = 100;

/// The calls under way: a fold of the records that were seen.
#[derive(Debug, Default)]
pub(crate) struct Calls(HashMap<Key, Open>);

/// A call under way.
#[derive(Debug)]
pub(crate) struct Open {
    /// Who is asked what, made safe: `alice · round-1`.
    pub(crate) title: String,
    /// The record in which it was asked.
    pub(crate) asked: u64,
    /// When it was asked.
    pub(crate) since: Time,
}

/// What happened, on one line. All of its text is safe.
#[derive(Debug)]
pub(crate) struct Line {
    /// What kind of thing.
    pub(crate) mark: Mark,
    /// What it is about, with its figures: `alice · round-1 · 1.2s · 340 tokens`.
    pub(crate) text: String,
    /// The first words that were said, or why there are none.
    pub(crate) words: String,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The run started.
    Started,
    /// A call was started.
    Asked,
    /// A call was answered.
    Answered,
    /// A call failed.
    Failed,
    /// A call was not started.
    Refused,
    /// A call was called off.
    Withdrawn,
    /// A back-end tries again.
    Retried,
    /// Something else that a person should know.
    Noted,
    /// The run is over.
    Ended,
}

impl Mark {
    /// In one sign, where lines are few and in colour.
    pub(crate) fn sign(self) -> char {
        match self {
            Mark::Started | Mark::Asked => '▸',
            Mark::Answered => '✓',
            Mark::Failed | Mark::Refused => '✗',
            Mark::Withdrawn => '–',
            Mark::Retried => '↻',
            Mark::Noted | Mark::Ended => '•',
        }
    }

    /// In one word, where lines are searched.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mark::Started => "started",
            Mark::Asked => "asked",
            Mark::Answered => "answered",
            Mark::Failed => "failed",
            Mark::Refused => "refused",
            Mark::Withdrawn => "withdrawn",
            Mark::Retried => "retried",
            Mark::Noted => "note",
            Mark::Ended => "ended",
        }
    }

    /// In colour.
    pub(crate) fn tone(self) -> Tone {
        match self {
            Mark::Answered => Tone::Good,
            Mark::Failed | Mark::Refused => Tone::Bad,
            Mark::Retried => Tone::Doubtful,
            Mark::Started | Mark::Noted | Mark::Ended => Tone::Strong,
            Mark::Asked | Mark::Withdrawn => Tone::Quiet,
        }
    }
}

impl Calls {
    /// A call under way.
    pub(crate) fn get(&self, key: &Key) -> Option<&Open> {
        self.0.get(key)
    }

    /// How many calls are under way.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The calls under way, those asked first in front.
    pub(crate) fn in_order(&self) -> Vec<(&Key, &Open)> {
        let mut open: Vec<(&Key, &Open)> = self.0.iter().collect();
        open.sort_unstable_by_key(|(_, open)| open.asked);
        open
    }

    /// Folds in one record of `run`, and says what it means, if anything.
    pub(crate) fn apply(
        &mut self,
        screen: &Screen,
        spec: &Spec,
        run: &Run,
        record: &Record,
    ) -> Option<Line> {
        match &record.event {
            Event::Started { origin, .. } => {
                let team = spec.team.agents.len() as u64;
                let text = [spec.collaboration.name().to_owned(), figures::things(team, "agent")];
                let from = origin.as_ref().map(|it| {
                    let how = if it.is_retried() { "retry of" } else { "forked from" };
                    format!("{how} {}", screen.line(&it.run))
                });
                Some(Line::new(Mark::Started, text.into_iter().chain(from)))
            }
            Event::Resumed { .. } => {
                for (key, entry) in run.known().open().filter(|(_, it)| it.asked < record.seq) {
                    self.open(screen, spec, (key, &entry.call), (entry.asked, record.at));
                }
                Some(Line::note("the run goes on"))
            }
            Event::Asked { key, call, .. } => {
                self.open(screen, spec, (key, call), (record.seq, record.at));
                self.0.get(key).map(|open| Line::new(Mark::Asked, [open.title.clone()]))
            }
            Event::Answered { key, settled, usage, .. } => {
                let open = self.close(run, key)?;
                Some(open.settled(screen, record.at, &settled.clone().into(), *usage))
            }
            Event::Concluded { key, settled } => {
                let open = self.close(run, key)?;
                let nothing = Usage::default();
                Some(open.settled(screen, record.at, &settled.clone().into(), nothing))
            }
            Event::Withdrawn { key, fault, usage } => {
                let open = self.0.remove(key)?;
                let line = open.settled(screen, record.at, &Err(fault.clone()), *usage);
                let is_wanted = *fault != Fault::Unwanted;
                Some(Line { mark: if is_wanted { Mark::Failed } else { Mark::Withdrawn }, ..line })
            }
            Event::Refused { key, call, fault } => {
                let title = title(screen, spec, key, call);
                let words = screen.words(&fault.to_string(), WORDS);
                Some(Line { words, ..Line::new(Mark::Refused, [title]) })
            }
            Event::Inherited { .. } | Event::Saved { .. } | Event::Ticked => None,
            Event::Prompted { key, text } => {
                let what = format!("{} is asked in other words", screen.line(key.as_str()));
                Some(Line { words: screen.words(text, WORDS), ..Line::new(Mark::Noted, [what]) })
            }
            Event::Mailed { key, mail, .. } => {
                let mut from: Vec<&str> = mail.iter().map(|it| &*it.from).collect();
                from.dedup();
                let (what, from) = (screen.line(key.as_str()), screen.line(&from.join(", ")));
                Some(Line::new(Mark::Noted, [format!("mail for {what} from {from}")]))
            }
            Event::Woken { .. } => Some(Line::note("the machine slept, or its clock was set")),
            Event::Amended { key, text } => {
                self.0.remove(key);
                let what = format!("{} was amended", screen.line(key.as_str()));
                Some(Line { words: screen.words(text, WORDS), ..Line::new(Mark::Noted, [what]) })
            }
            Event::CancelRequested => Some(Line::note("cancelling")),
            Event::Ended { .. } => {
                let (status, reason) = view::status(run, true);
                let reason = reason.map(|it| screen.line(&it));
                let reason = reason.filter(|it| it != status.as_str());
                Some(Line::new(Mark::Ended, [status.as_str().to_owned()].into_iter().chain(reason)))
            }
        }
    }

    /// A line that says that the back-end of a call under way tries again.
    pub(crate) fn retried(&self, screen: &Screen, key: &Key, why: &str) -> Option<Line> {
        let open = self.get(key)?;
        let words = screen.words(why, WORDS);
        Some(Line { words, ..Line::new(Mark::Retried, [open.title.clone()]) })
    }

    fn open(
        &mut self,
        screen: &Screen,
        spec: &Spec,
        (key, call): (&Key, &Call),
        (asked, since): (u64, Time),
    ) {
        let title = title(screen, spec, key, call);
        self.0.insert(key.clone(), Open { title, asked, since });
    }

    /// Takes a call off the list, unless another attempt of it is still under way.
    fn close(&mut self, run: &Run, key: &Key) -> Option<Open> {
        let is_open =
            |seq| run.known().get(key.as_str()).is_some_and(|it| it.is_open() && it.asked == seq);
        let open = self.0.get(key)?;
        if is_open(open.asked) { None } else { self.0.remove(key) }
    }
}

impl Open {
    fn settled(&self, screen: &Screen, at: Time, outcome: &Outcome, usage: Usage) -> Line {
        let figures =
            [figures::elapsed(at.since(self.since))].into_iter().chain(figures::tokens(usage));
        let text = [self.title.clone()].into_iter().chain(figures);
        match outcome {
            Ok(answer) => Line { words: said(screen, answer), ..Line::new(Mark::Answered, text) },
            Err(fault) => Line {
                words: screen.words(&fault.to_string(), WORDS),
                ..Line::new(Mark::Failed, text)
            },
        }
    }
}

impl Line {
    fn new(mark: Mark, parts: impl IntoIterator<Item = String>) -> Line {
        let text = parts.into_iter().collect::<Vec<_>>().join(" · ");
        Line { mark, text, words: String::new() }
    }

    /// Something that a person should know; `text` is safe.
    pub(crate) fn note(text: impl Into<String>) -> Line {
        Line::new(Mark::Noted, [text.into()])
    }
}

/// The first words of an answer, or what it wants to use before it goes on.
fn said(screen: &Screen, answer: &Answer) -> String {
    if answer.is_blank() {
        return "(blank)".to_owned();
    }
    if !answer.text.trim().is_empty() {
        return screen.words(&answer.text, WORDS);
    }
    let wanted: Vec<&str> = answer.tool_calls.iter().map(|call| &*call.name).collect();
    screen.words(&format!("wants {}", wanted.join(", ")), WORDS)
}

/// Who is asked what: the agent, the tool or later target if it is one, and the place in the run.
fn title(screen: &Screen, spec: &Spec, key: &Key, call: &Call) -> String {
    let agent = spec.team.asked(call);
    let looked_at = match call {
        Call::Gate { gate, .. } => Some(gate.to_string()),
        Call::Listing { server, .. } => Some(format!("mcp.{server}")),
        Call::Agent { .. }
        | Call::Team { .. }
        | Call::Tool { .. }
        | Call::Person { .. }
        | Call::Exchange { .. } => None,
    };
    let (tool, model) = match call {
        Call::Agent { target: FIRST_TARGET, .. } | Call::Person { .. } | Call::Exchange { .. } => {
            (None, None)
        }
        Call::Agent { .. } | Call::Team { .. } => (None, agent.target.label()),
        Call::Tool { request, .. } => (Some(&*request.name), None),
        Call::Gate { .. } | Call::Listing { .. } => (looked_at.as_deref(), None),
    };
    let mut place: Vec<&str> = key.as_str().split('/').collect();
    if let Some(at) = place.iter().rposition(|segment| *segment == agent.id.as_str()) {
        place.remove(at);
    }
    let place = place.join("/");
    let place = (!place.is_empty()).then_some(&*place);
    let parts = [Some(&*agent.name), tool, model.as_deref(), place];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| screen.line(part)).collect();
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use folkmoot_agents::Secrets;
    use folkmoot_core::event::Settled;

    use super::*;
    use crate::terminal::testing::{Stage, agent, broadcast, reply};

    fn marks(calls: &mut Calls, stage: &mut Stage) -> Vec<Mark> {
        let mut marks = Vec::new();
        stage.tell(|spec, run, records| {
            let screen = Screen::page(Secrets::default());
            let lines = records.iter().filter_map(|it| calls.apply(&screen, spec, run, it));
            marks.extend(lines.map(|line| line.mark));
        });
        marks
    }

    fn answered(attempt: u32) -> Event {
        let settled = Settled::Answer(Answer::text("late").into());
        Event::Answered { key: Key::parse("round-1/a"), attempt, settled, usage: Usage::default() }
    }

    #[test]
    fn an_answer_to_an_attempt_that_a_crash_ended_leaves_the_call_under_way() {
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(50, "A", 0)])]));
        stage.feed(Event::Resumed { wall: 0 });
        let mut calls = Calls::default();
        assert_eq!(marks(&mut calls, &mut stage), [Mark::Started, Mark::Asked, Mark::Noted]);
        stage.feed(answered(1));
        assert_eq!(marks(&mut calls, &mut stage), []);
        assert_eq!(calls.count(), 1);
        stage.feed(answered(2));
        assert_eq!(marks(&mut calls, &mut stage), [Mark::Answered, Mark::Ended]);
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn who_sees_only_the_end_of_a_run_knows_what_is_under_way() {
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(50, "A", 0)])]));
        stage.tell(|_, _, _| {});
        stage.feed(Event::Resumed { wall: 0 });
        let mut calls = Calls::default();
        assert_eq!(marks(&mut calls, &mut stage), [Mark::Noted]);
        assert_eq!(calls.get(&Key::parse("round-1/a")).expect("under way").title, "a · round-1");
    }

    #[test]
    fn what_nobody_wants_any_longer_has_not_failed() {
        let mut stage = Stage::new(broadcast(1, vec![agent("a", [reply(50, "A", 0)])]));
        let mut calls = Calls::default();
        marks(&mut calls, &mut stage);
        let (key, usage) = (Key::parse("round-1/a"), Usage::default());
        let withdrawn = Event::Withdrawn { key, fault: Fault::Unwanted, usage };
        let record = Record { seq: 3, at: Time(2_000_000), event: withdrawn };
        let screen = Screen::page(Secrets::default());
        let line = calls.apply(&screen, &stage.sim.spec, &stage.sim.run, &record);
        let line = line.expect("it was under way");
        assert_eq!((line.mark, &*line.text), (Mark::Withdrawn, "a · round-1 · 2.0s"));
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn a_title_names_agent_tool_and_place_and_no_place_twice() {
        let spec = broadcast(1, vec![agent("work", [])]);
        let screen = Screen::page(Secrets::default());
        let prompt = folkmoot_core::call::Prompt::task();
        let call = Call::Agent { agent: "work".into(), target: FIRST_TARGET, prompt };
        let title = |key, call| title(&screen, &spec, &Key::parse(key), call);
        assert_eq!(title("work/t1/work", &call), "work · work/t1");
        assert_eq!(title("work", &call), "work");
        assert_eq!(title("round-2/work/model-1", &call), "work · round-2/model-1");
        let request = folkmoot_core::call::ToolCall {
            id: "1".into(),
            name: "file.read".into(),
            arguments: serde_json::Value::Null,
        };
        let tool = Call::Tool { agent: "work".into(), request, repeatable: false };
        assert_eq!(title("round-1/work/tool-1", &tool), "work · file.read · round-1/tool-1");
    }
}
