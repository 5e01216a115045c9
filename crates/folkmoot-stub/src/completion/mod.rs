//! What a well-behaved server says.

mod chat;
mod gemini;
mod messages;

use serde_json::Value;

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// Google's generated contents.
    Gemini,
}

/// A model's reply, as a stream or whole.
#[derive(Clone, Debug)]
pub struct Completion {
    /// How it goes over the wire.
    pub wire: Wire,
    /// What the model says, in pieces.
    pub text: Vec<String>,
    /// What it thinks aloud first; in `chat` in the field `reasoning_content`.
    pub reasoning: Option<String>,
    /// What has to go back with its tool calls: in `messages` that of the reasoning, in `gemini` that
    /// of the first call; `chat` has none.
    pub signature: Option<String>,
    /// The tools it wants, `(id, name, arguments)`; an empty id is left out.
    pub tool_calls: Vec<(String, String, Value)>,
    /// Why it ends, in the wire's own word.
    pub finish: String,
    /// The usage it reports, in the wire's own shape.
    pub usage: Option<Value>,
}

impl Completion {
    /// A chat completion that says `text`, piece by piece, and reports 10 tokens read and 5 written.
    pub fn text<'a>(text: impl IntoIterator<Item = &'a str>) -> Completion {
        let completion = Completion {
            wire: Wire::Chat,
            text: text.into_iter().map(str::to_owned).collect(),
            reasoning: None,
            signature: None,
            tool_calls: Vec::new(),
            finish: String::new(),
            usage: None,
        };
        completion.over(Wire::Chat)
    }

    /// The same over `wire`, with its word for a good end and its shape of 10 tokens read and 5
    /// written.
    #[must_use]
    pub fn over(self, wire: Wire) -> Completion {
        let (finish, usage) = match wire {
            Wire::Chat => ("stop", chat::usage(10, 5)),
            Wire::Messages => ("end_turn", messages::usage(10, 5)),
            Wire::Gemini => ("STOP", gemini::usage(10, 5)),
        };
        Completion { wire, finish: finish.to_owned(), usage: Some(usage), ..self }
    }

    /// The data of its events in order, the end mark included.
    pub fn events(&self) -> Vec<String> {
        match self.wire {
            Wire::Chat => chat::events(self),
            Wire::Messages => messages::events(self).iter().map(Value::to_string).collect(),
            Wire::Gemini => gemini::events(self).iter().map(Value::to_string).collect(),
        }
    }

    /// Its events as they go over the wire, with their names where the wire names them.
    pub fn frames(&self) -> Vec<String> {
        match self.wire {
            Wire::Chat | Wire::Gemini => {
                self.events().into_iter().map(|data| format!("data: {data}\n\n")).collect()
            }
            Wire::Messages => messages::events(self).iter().map(messages::frame).collect(),
        }
    }

    /// It as one JSON reply.
    pub fn whole(&self) -> Value {
        match self.wire {
            Wire::Chat => chat::whole(self),
            Wire::Messages => messages::whole(self),
            Wire::Gemini => gemini::whole(self),
        }
    }
}
