//! A reply on its way: what the pieces so far make of it.

use folkmoot_core::call::{Answer, FailureKind, Usage};
use folkmoot_runtime::backend::{Delta, OnDelta};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    error::{self, Said, kind_of},
    kept::{Kept, extend},
    reported::Reported,
    tool_calls::{CallDelta, CallDraft},
};
use crate::{known::Quirks, retry::Failure, sse::Event};

/// A chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    index: Option<u64>,
    delta: Option<Piece>,
    message: Option<Piece>,
    finish_reason: Option<String>,
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Piece {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
    /// Reasoning, under whichever name, and fields of the provider's own.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentPart {
    text: Option<String>,
    thinking: Option<Content>,
}

impl Content {
    fn text(self) -> String {
        match self {
            Content::Text(text) => text,
            Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

/// The names under which servers send reasoning; if a piece has several, they say the same.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The finish reasons that do not mean that the model was done, and what they mean.
const BAD_ENDS: &[(&str, FailureKind, &str)] = &[
    ("length", FailureKind::Incomplete, "the reply was cut off"),
    ("max_tokens", FailureKind::Incomplete, "the reply was cut off"),
    ("model_length", FailureKind::Incomplete, "the reply was cut off"),
    ("model_context_window_exceeded", FailureKind::Incomplete, "the reply was cut off"),
    ("content_filter", FailureKind::Other, "a filter stopped the reply"),
    ("sensitive", FailureKind::Other, "a filter stopped the reply"),
    ("safety", FailureKind::Other, "a filter stopped the reply"),
    ("error", FailureKind::Transport, "the server broke the reply off"),
    ("abort", FailureKind::Transport, "the server broke the reply off"),
    ("network_error", FailureKind::Transport, "the server broke the reply off"),
    ("insufficient_system_resource", FailureKind::Transport, "the server broke the reply off"),
];

/// The part of a reply that has come.
///
/// Tagged reasoning inside the text stays where it is: the log keeps what the model wrote, and one
/// reader takes the tags out wherever it matters.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: String,
    reasoning: String,
    refusal: String,
    calls: CallDraft,
    kept: Map<String, Value>,
    reported: Reported,
    finish_reason: Option<String>,
    has_end_mark: bool,
}

impl Draft {
    /// Adds an event of a stream.
    pub(super) fn take_event(
        &mut self,
        event: &Event,
        on_delta: OnDelta<'_>,
    ) -> Result<(), Failure> {
        match event.data.trim() {
            _ if event.name == "error" => return Err(said_in_reply(&error::in_event(&event.data))),
            "[DONE]" => self.has_end_mark = true,
            "" => {}
            data => self.take_json(data.as_bytes(), on_delta)?,
        }
        Ok(())
    }

    /// Adds a whole reply, whose end proves itself.
    pub(super) fn take_whole(&mut self, body: &[u8], on_delta: OnDelta<'_>) -> Result<(), Failure> {
        self.take_json(body, on_delta)?;
        self.has_end_mark = true;
        Ok(())
    }

    fn take_json(&mut self, json: &[u8], on_delta: OnDelta<'_>) -> Result<(), Failure> {
        let value: Value = serde_json::from_slice(json).map_err(|error| malformed(&error))?;
        if let Some(said) = error::in_reply(&value) {
            return Err(said_in_reply(&said));
        }
        self.take_chunk(Chunk::deserialize(value).map_err(|error| malformed(&error))?, on_delta);
        Ok(())
    }

    /// A chunk may well be without choices, for example the one that brings the usage; behind the end
    /// of the reply, that is all that counts.
    fn take_chunk(&mut self, chunk: Chunk, on_delta: OnDelta<'_>) {
        self.take_usage(chunk.usage);
        let choices = chunk.choices.unwrap_or_default().into_iter();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.take_usage(choice.usage);
            if self.is_complete() {
                continue;
            }
            for piece in choice.delta.into_iter().chain(choice.message) {
                self.take_piece(piece, on_delta);
            }
            self.finish_reason = choice.finish_reason.filter(|it| !it.is_empty() && it != "null");
        }
    }

    fn take_usage(&mut self, usage: Option<Value>) {
        if let Some(usage) = usage {
            self.reported.take(&usage);
        }
    }

    fn take_piece(&mut self, piece: Piece, on_delta: OnDelta<'_>) {
        let named = REASONING.iter().find_map(|name| piece.rest.get(*name)?.as_str());
        self.think(named.unwrap_or_default(), on_delta);
        match piece.content {
            None => {}
            Some(Content::Text(text)) => self.say(&text, on_delta),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    self.think(&part.thinking.map_or_else(String::new, Content::text), on_delta);
                    self.say(&part.text.unwrap_or_default(), on_delta);
                }
            }
        }
        self.refusal.push_str(&piece.refusal.unwrap_or_default());
        for call in piece.tool_calls.into_iter().flatten() {
            self.calls.take(call);
        }
        let is_own = |(name, _): &(String, Value)| !matches!(&**name, "role" | "name");
        extend(&mut self.kept, piece.rest.into_iter().filter(is_own).collect());
    }

    fn say(&mut self, text: &str, on_delta: OnDelta<'_>) {
        if !text.is_empty() {
            self.text.push_str(text);
            on_delta(Delta::Text(text));
        }
    }

    fn think(&mut self, thought: &str, on_delta: OnDelta<'_>) {
        if !thought.is_empty() {
            self.reasoning.push_str(thought);
            on_delta(Delta::Reasoning(thought));
        }
    }

    /// Whether the protocol has said that the reply is complete (rules.md 10.1).
    pub(super) fn is_complete(&self) -> bool {
        self.has_end_mark || self.finish_reason.is_some()
    }

    /// Whether nothing that could follow would be of use.
    pub(super) fn is_over(&self) -> bool {
        self.has_end_mark || (self.finish_reason.is_some() && self.reported.is_complete())
    }

    /// What the reply has used so far, the request for it having had `sent` bytes.
    pub(super) fn usage(&self, sent: usize, quirks: &Quirks) -> Usage {
        let received = self.text.len() + self.reasoning.len() + self.calls.bytes();
        self.reported.usage(sent, received, quirks)
    }

    /// The answer of `provider`; tool calls without an id get one that begins with `prefix`.
    pub(super) fn finish(self, provider: &str, prefix: &str) -> Result<Answer, Failure> {
        self.check()?;
        let has_calls = self.calls.len() > 0;
        let (tool_calls, kept_of_calls) = self.calls.finish(prefix);
        // Only a message with tool calls takes its provider's fields back to it.
        let provider = has_calls.then(|| Kept::stored(provider, self.kept, kept_of_calls));
        Ok(Answer {
            text: self.text.into(),
            json: None,
            reasoning: (!self.reasoning.is_empty()).then(|| self.reasoning.into()),
            tool_calls,
            provider: provider.flatten(),
        })
    }

    /// A reply that is cut off, filtered or empty is none.
    fn check(&self) -> Result<(), Failure> {
        let end = self.finish_reason.as_deref().unwrap_or_default();
        let bad = BAD_ENDS.iter().find(|(reason, ..)| reason.eq_ignore_ascii_case(end));
        if let Some((_, kind, words)) = bad {
            return Err(Failure::new(*kind, format!("{words}: its end is marked `{end}`")));
        }
        if self.calls.len() > 0 || !is_only_thought(&self.text) {
            return Ok(());
        }
        if !self.refusal.is_empty() {
            let text = format!("the model refused: {}", self.refusal);
            return Err(Failure::new(FailureKind::Other, text));
        }
        let is_thought = !self.reasoning.is_empty() || !self.text.trim().is_empty();
        let is_what = if is_thought { "nothing but reasoning" } else { "empty" };
        Err(Failure::new(FailureKind::Incomplete, format!("the reply is {is_what}")))
    }
}

/// Whether a text is blank but for reasoning in tags at its beginning.
fn is_only_thought(text: &str) -> bool {
    let text = text.trim();
    let said = match text.strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>").map_or("", |(_, said)| said),
        None => text,
    };
    said.trim().is_empty()
}

fn said_in_reply(said: &Said) -> Failure {
    let text = format!("the reply broke off with an error: {}", said.text);
    Failure::new(kind_of(said.status, &said.text), text)
}

fn malformed(why: &serde_json::Error) -> Failure {
    let why = error::excerpt(&why.to_string());
    Failure::new(FailureKind::Protocol, format!("malformed stream: {why}"))
}
