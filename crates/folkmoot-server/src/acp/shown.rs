//! What an editor is shown of a run as it goes: a plan of the turns, who says what, and which tools
//! are used.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, PoisonError},
};

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, MessageId, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, TextContent, ToolCall as Use, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use folkmoot_core::{
    call::Call,
    event::Record,
    key::Key,
    known::{Entry, Known},
    run::Run,
    spec::Spec,
};
use folkmoot_runtime::{backend::Delta, driver::Observer};

/// The most turns that a plan lists, the latest.
const TURNS: usize = 50;

/// The most bytes of what a tool gave back that are shown.
const PREVIEW: usize = 4 << 10;

/// Shows a run in one session.
///
/// An editor shows one stream, so one agent is heard at a time: what the others say meanwhile is kept
/// until it is their turn.
pub(super) struct Shown<Show> {
    show: Show,
    heard: Mutex<Heard>,
}

/// What was said so far.
#[derive(Default)]
struct Heard {
    /// Who is heard now.
    speaking: Option<Key>,
    /// Who has begun to speak and is not heard yet, in that order.
    waiting: VecDeque<Key>,
    /// What they have said.
    kept: BTreeMap<Key, String>,
    /// Of whom anything was shown.
    begun: BTreeSet<Key>,
    /// Who has ended.
    ended: BTreeSet<Key>,
    /// What those are called who speak in a call.
    names: BTreeMap<Key, String>,
    /// The plan as it was shown last.
    plan: Vec<PlanEntry>,
}

impl<Show: Fn(SessionUpdate) + Send + Sync> Shown<Show> {
    /// Shows it by `show`.
    pub(super) fn new(show: Show) -> Shown<Show> {
        Shown { show, heard: Mutex::default() }
    }

    fn tool(&self, key: &Key, entry: &Entry, spec: &Spec) {
        let Call::Tool { agent, request, .. } = &entry.call else { return };
        let Some(outcome) = &entry.outcome else {
            let title = format!("{}: {}", spec.team.full_name(agent), request.name);
            let begun = Use::new(key.to_string(), title).kind(kind(&request.name));
            let begun = begun.status(ToolCallStatus::InProgress);
            let begun = begun.raw_input(request.arguments.clone());
            return (self.show)(SessionUpdate::ToolCall(begun));
        };
        let (status, text) = match outcome {
            Ok(answer) => (ToolCallStatus::Completed, answer.text.to_string()),
            Err(fault) => (ToolCallStatus::Failed, fault.to_string()),
        };
        let content = ContentBlock::Text(TextContent::new(beginning(&text)));
        let fields = ToolCallUpdateFields::new().status(status).content(vec![content.into()]);
        (self.show)(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(key.to_string(), fields)));
    }

    fn plan(&self, heard: &mut Heard, spec: &Spec, known: &Known) {
        let plan = turns(spec, known);
        if plan != heard.plan {
            heard.plan.clone_from(&plan);
            (self.show)(SessionUpdate::Plan(Plan::new(plan)));
        }
    }

    fn say(&self, heard: &mut Heard, key: &Key, text: &str) {
        let speaking = heard.speaking.get_or_insert_with(|| key.clone());
        if speaking != key {
            if !heard.waiting.contains(key) {
                heard.waiting.push_back(key.clone());
            }
            heard.kept.entry(key.clone()).or_default().push_str(text);
            return;
        }
        let name = heard.names.get(key).filter(|_| !heard.begun.contains(key));
        let text = name.map_or_else(|| text.to_owned(), |name| format!("**{name}**\n\n{text}"));
        heard.begun.insert(key.clone());
        let content = ContentBlock::Text(TextContent::new(text));
        let chunk = ContentChunk::new(content).message_id(MessageId::new(key.to_string()));
        (self.show)(SessionUpdate::AgentThoughtChunk(chunk));
    }

    /// A call is over; `whole` is all that it came to, if nothing of it was told on the way.
    fn end(&self, heard: &mut Heard, key: &Key, whole: &str) {
        if !heard.begun.contains(key) && !heard.kept.contains_key(key) {
            self.say(heard, key, whole);
        }
        heard.ended.insert(key.clone());
        while let Some(over) = heard.speaking.clone().filter(|key| heard.ended.contains(key)) {
            self.say(heard, &over, "\n\n");
            heard.speaking = heard.waiting.pop_front();
            if let Some(next) = heard.speaking.clone() {
                let kept = heard.kept.remove(&next).unwrap_or_default();
                self.say(heard, &next, &kept);
            }
        }
    }
}

impl<Show: Fn(SessionUpdate) + Send + Sync> Observer for Shown<Show> {
    fn recorded(&self, spec: &Spec, run: &Run, records: &[Record]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = run.known();
        for key in records.iter().filter_map(|record| record.event.key()) {
            let Some(entry) = known.get(key.as_str()) else { continue };
            self.tool(key, entry, spec);
            if !is_turn(entry) {
                continue;
            }
            let name = spec.team.full_name(entry.call.agent());
            heard.names.entry(key.clone()).or_insert(name);
            match &entry.outcome {
                None => {}
                Some(Ok(answer)) => self.end(&mut heard, key, &answer.text),
                Some(Err(fault)) => {
                    self.say(&mut heard, key, &format!("({fault})"));
                    self.end(&mut heard, key, "");
                }
            }
        }
        self.plan(&mut heard, spec, known);
    }

    fn delta(&self, key: &Key, delta: Delta<'_>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match delta {
            Delta::Text(text) => self.say(&mut heard, key, text),
            Delta::Retry(why) => self.say(&mut heard, key, &format!("\n\n(again: {why})\n\n")),
            // What a model thinks aloud is not what an agent says.
            Delta::Reasoning(_) => {}
        }
    }
}

/// Whether an agent speaks in it.
fn is_turn(entry: &Entry) -> bool {
    matches!(entry.call, Call::Agent { .. } | Call::Team { .. })
}

/// The turns so far, each once, however many requests it took.
fn turns(spec: &Spec, known: &Known) -> Vec<PlanEntry> {
    let mut turns: Vec<(&str, PlanEntry)> = Vec::new();
    for (key, entry) in known.in_order().into_iter().filter(|(_, entry)| is_turn(entry)) {
        let place = place(key);
        let status =
            if entry.is_open() { PlanEntryStatus::InProgress } else { PlanEntryStatus::Completed };
        if let Some((_, turn)) = turns.iter_mut().find(|(known, _)| *known == place) {
            turn.status = status;
        } else {
            let text = format!("{} · {place}", spec.team.full_name(entry.call.agent()));
            turns.push((place, PlanEntry::new(text, PlanEntryPriority::Medium, status)));
        }
    }
    let left_out = turns.len().saturating_sub(TURNS);
    turns.into_iter().skip(left_out).map(|(_, turn)| turn).collect()
}

/// Where a turn stands that a request belongs to: the requests of one with tools are numbered.
fn place(key: &Key) -> &str {
    match key.as_str().rsplit_once('/') {
        Some((turn, last)) if last.starts_with("model-") => turn,
        Some(_) | None => key.as_str(),
    }
}

/// What kind of work a tool does.
fn kind(tool: &str) -> ToolKind {
    match tool {
        "file.read" | "file.list" => ToolKind::Read,
        "file.write" => ToolKind::Edit,
        "search" => ToolKind::Search,
        "shell" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn beginning(text: &str) -> String {
    if text.len() <= PREVIEW {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(PREVIEW)])
}
