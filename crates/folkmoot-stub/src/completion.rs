//! What a well-behaved server says.

use serde_json::{Value, json};

/// A chat completion, as a stream or whole.
#[derive(Clone, Debug)]
pub struct Completion {
    /// What the model says, in pieces.
    pub text: Vec<String>,
    /// What it thinks aloud first, in the field `reasoning_content`.
    pub reasoning: Option<String>,
    /// The tools it wants, `(id, name, arguments)`.
    pub tool_calls: Vec<(String, String, Value)>,
    /// Why it ends.
    pub finish: String,
    /// The usage it reports, in the wire's own shape.
    pub usage: Option<Value>,
}

impl Completion {
    /// A completion that says `text`, piece by piece, and reports 10 tokens read and 5 written.
    pub fn text<'a>(text: impl IntoIterator<Item = &'a str>) -> Completion {
        Completion {
            text: text.into_iter().map(str::to_owned).collect(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish: "stop".to_owned(),
            usage: Some(json!({
                "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15
            })),
        }
    }

    /// The data of its events in order, the end mark included.
    pub fn events(&self) -> Vec<String> {
        let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
        deltas.extend(self.reasoning.iter().map(|it| json!({ "reasoning_content": it })));
        deltas.extend(self.text.iter().map(|it| json!({ "content": it })));
        deltas.extend((0..).zip(self.wire_calls()).map(|(index, mut call)| {
            call["index"] = json!(index);
            json!({ "tool_calls": [call] })
        }));
        let choice = |delta: Value| json!({ "index": 0, "delta": delta, "finish_reason": null });
        let mut choices: Vec<_> = deltas.into_iter().map(choice).collect();
        choices.push(json!({ "index": 0, "delta": {}, "finish_reason": self.finish }));
        let chunk = |choices: Vec<Value>, usage: Option<&Value>| {
            json!({
                "id": "chatcmpl-stub", "object": "chat.completion.chunk", "created": 0,
                "model": "stub", "choices": choices, "usage": usage
            })
            .to_string()
        };
        let mut events: Vec<_> = choices.into_iter().map(|it| chunk(vec![it], None)).collect();
        events.extend(self.usage.iter().map(|usage| chunk(vec![], Some(usage))));
        events.push("[DONE]".to_owned());
        events
    }

    /// It as one JSON reply.
    pub fn whole(&self) -> Value {
        let text = self.text.concat();
        let mut message = json!({
            "role": "assistant", "content": (!text.is_empty()).then_some(text)
        });
        if let Some(reasoning) = &self.reasoning {
            message["reasoning_content"] = json!(reasoning);
        }
        if !self.tool_calls.is_empty() {
            message["tool_calls"] = self.wire_calls().collect();
        }
        json!({
            "id": "chatcmpl-stub", "object": "chat.completion", "created": 0, "model": "stub",
            "choices": [{ "index": 0, "message": message, "finish_reason": self.finish }],
            "usage": self.usage
        })
    }

    fn wire_calls(&self) -> impl Iterator<Item = Value> {
        self.tool_calls.iter().map(|(id, name, arguments)| {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "id": id, "type": "function", "function": function })
        })
    }
}
