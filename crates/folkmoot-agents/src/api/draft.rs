//! A reply on its way: what the pieces so far make of it.

use folkmoot_core::call::{Answer, FailureKind, Usage};
use folkmoot_runtime::backend::{Delta, OnDelta};
use serde_json::{Map, Value};

use super::{
    error::{self, broke_off, malformed},
    kept::{Kept, extend},
    tool_calls::{CallDraft, CallPiece},
    wire::Wire,
};
use crate::{reported::Reported, retry::Failure, sse::Event};

/// Something that a reply brings, whatever the protocol.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// More of the answer.
    Text(String),
    /// More of the reasoning.
    Thought(String),
    /// More of the words with which the model refuses.
    Refusal(String),
    /// A tool call begins.
    Call(CallPiece),
    /// The arguments of the latest call with this index go on.
    Arguments { index: u64, text: String },
    /// A tool call begins or goes on, which only its id and name tell.
    CallDelta(CallPiece),
    /// Fields that only the provider understands.
    Kept(Map<String, Value>),
    /// Usage so far.
    Usage(Reported),
    /// The model has ended, and why.
    End(String),
    /// The reply has ended.
    EndMark,
}

impl Piece {
    /// The end, if `reason` names one; servers fill the field in many ways when there is none.
    pub(super) fn end(reason: Option<String>) -> Option<Piece> {
        let is_none = |it: &str| it.is_empty() || it == "null" || it.ends_with("_UNSPECIFIED");
        reason.filter(|reason| !is_none(reason)).map(Piece::End)
    }
}

/// The finish reasons that do not mean that the model was done, and what they mean; servers in
/// between let those of one protocol through into another.
const BAD_ENDS: &[(&str, FailureKind, &str)] = &[
    ("length", FailureKind::Incomplete, "the reply was cut off"),
    ("max_tokens", FailureKind::Incomplete, "the reply was cut off"),
    ("model_length", FailureKind::Incomplete, "the reply was cut off"),
    ("model_context_window_exceeded", FailureKind::Incomplete, "the reply was cut off"),
    ("pause_turn", FailureKind::Incomplete, "the reply was cut off"),
    ("other", FailureKind::Incomplete, "the reply was cut off"),
    ("content_filter", FailureKind::Other, "a filter stopped the reply"),
    ("sensitive", FailureKind::Other, "a filter stopped the reply"),
    ("safety", FailureKind::Other, "a filter stopped the reply"),
    ("recitation", FailureKind::Other, "a filter stopped the reply"),
    ("language", FailureKind::Other, "a filter stopped the reply"),
    ("blocklist", FailureKind::Other, "a filter stopped the reply"),
    ("prohibited_content", FailureKind::Other, "a filter stopped the reply"),
    ("spii", FailureKind::Other, "a filter stopped the reply"),
    ("model_armor", FailureKind::Other, "a filter stopped the reply"),
    ("refusal", FailureKind::Other, "the model refused"),
    ("malformed_function_call", FailureKind::Protocol, "the model called a tool wrongly"),
    ("unexpected_tool_call", FailureKind::Protocol, "the model called a tool wrongly"),
    ("malformed_response", FailureKind::Protocol, "the model said what cannot be read"),
    ("error", FailureKind::Transport, "the server broke the reply off"),
    ("abort", FailureKind::Transport, "the server broke the reply off"),
    ("network_error", FailureKind::Transport, "the server broke the reply off"),
    ("insufficient_system_resource", FailureKind::Transport, "the server broke the reply off"),
];

/// The part of a reply that has come.
///
/// Tagged reasoning inside the text stays where it is: the log keeps what the model wrote, and one
/// reader takes the tags out wherever it matters.
pub(super) struct Draft<'a> {
    wire: &'a dyn Wire,
    on_delta: OnDelta<'a>,
    text: String,
    reasoning: String,
    refusal: String,
    calls: CallDraft,
    kept: Map<String, Value>,
    reported: Reported,
    finish_reason: Option<String>,
    has_end_mark: bool,
}

impl<'a> Draft<'a> {
    /// The draft of a reply that comes over `wire`, of which nothing has come yet.
    pub(super) fn new(wire: &'a dyn Wire, on_delta: OnDelta<'a>) -> Draft<'a> {
        Draft {
            wire,
            on_delta,
            text: String::new(),
            reasoning: String::new(),
            refusal: String::new(),
            calls: CallDraft::default(),
            kept: Map::new(),
            reported: Reported::default(),
            finish_reason: None,
            has_end_mark: false,
        }
    }

    /// Adds an event of a stream.
    pub(super) fn take_event(&mut self, event: &Event) -> Result<(), Failure> {
        match event.data.trim() {
            _ if event.name == "error" => Err(broke_off(&error::in_event(&event.data))),
            "" => Ok(()),
            data => self.read(data),
        }
    }

    /// Adds a whole reply. That it came whole does not say that the model was done (rules.md 10.1); all
    /// protocols have a place where it does.
    pub(super) fn take_whole(&mut self, body: &[u8]) -> Result<(), Failure> {
        let text = std::str::from_utf8(body).map_err(malformed)?;
        self.read(text.trim_start_matches('\u{feff}'))?;
        if self.is_complete() {
            return Ok(());
        }
        let text = "the reply may be cut off: it does not say why it ends";
        Err(Failure::new(FailureKind::Incomplete, text))
    }

    fn read(&mut self, data: &str) -> Result<(), Failure> {
        for piece in self.wire.read(data)? {
            self.take(piece);
        }
        Ok(())
    }

    /// Behind the end of the reply only the bill counts.
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Usage(usage) => self.reported.update(usage),
            Piece::EndMark => self.has_end_mark = true,
            _ if self.is_complete() => {}
            Piece::Text(text) => self.say(&text),
            Piece::Thought(thought) => self.think(&thought),
            Piece::Refusal(words) => self.refusal.push_str(&words),
            Piece::Call(piece) => self.calls.begin(piece),
            Piece::Arguments { index, text } => self.calls.go_on(index, &text),
            Piece::CallDelta(piece) => self.calls.begin_or_go_on(piece),
            Piece::Kept(fields) => extend(&mut self.kept, fields),
            Piece::End(reason) => self.finish_reason = Some(reason),
        }
    }

    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_str(text);
            (self.on_delta)(Delta::Text(text));
        }
    }

    fn think(&mut self, thought: &str) {
        if !thought.is_empty() {
            self.reasoning.push_str(thought);
            (self.on_delta)(Delta::Reasoning(thought));
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
    pub(super) fn usage(&self, sent: usize) -> Usage {
        let received = self.text.len() + self.reasoning.len() + self.calls.bytes();
        self.reported.usage(sent, received)
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
            asks: false,
            provider: provider.flatten(),
            session: None,
            warnings: Vec::new(),
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
