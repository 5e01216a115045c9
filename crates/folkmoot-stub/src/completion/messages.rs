//! Anthropic's messages.

use serde_json::{Value, json};

use super::Completion;

pub(super) fn usage(read: u64, written: u64) -> Value {
    json!({
        "input_tokens": read, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": written
    })
}

/// The event as it goes over the wire, where its name stands beside its data.
pub(super) fn frame(event: &Value) -> String {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n")
}

pub(super) fn events(completion: &Completion) -> Vec<Value> {
    let mut begun = message(completion);
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    if completion.usage.is_some() {
        begun["usage"]["output_tokens"] = json!(1);
    }
    let mut events = vec![json!({ "type": "message_start", "message": begun })];
    events.push(json!({ "type": "ping" }));
    events.extend((0..).zip(blocks(completion)).flat_map(|(index, block)| block.events(index)));
    let mut end = json!({
        "type": "message_delta",
        "delta": { "stop_reason": completion.finish, "stop_sequence": null }
    });
    if let Some(usage) = &completion.usage {
        end["usage"] = json!({ "output_tokens": usage["output_tokens"] });
    }
    events.extend([end, json!({ "type": "message_stop" })]);
    events
}

pub(super) fn whole(completion: &Completion) -> Value {
    let mut message = message(completion);
    message["content"] = blocks(completion).into_iter().map(|block| block.whole).collect();
    message
}

fn message(completion: &Completion) -> Value {
    let mut message = json!({
        "id": "msg_stub", "type": "message", "role": "assistant", "model": "stub",
        "content": null, "stop_reason": completion.finish, "stop_sequence": null
    });
    if let Some(usage) = &completion.usage {
        message["usage"] = usage.clone();
    }
    message
}

/// A part of a message: how it begins in a stream, how it goes on, and what it is in the end.
struct Block {
    begun: Value,
    deltas: Vec<Value>,
    whole: Value,
}

impl Block {
    fn events(self, index: u64) -> Vec<Value> {
        let begun = json!({
            "type": "content_block_start", "index": index, "content_block": self.begun
        });
        let delta =
            |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        let ended = json!({ "type": "content_block_stop", "index": index });
        std::iter::once(begun).chain(self.deltas.into_iter().map(delta)).chain([ended]).collect()
    }
}

fn blocks(completion: &Completion) -> Vec<Block> {
    let signature = completion.signature.as_deref();
    let thinks = completion.reasoning.is_some() || signature.is_some();
    let thinking = thinks.then(|| thinking(completion.reasoning.as_deref(), signature));
    let text = (!completion.text.is_empty()).then(|| text(&completion.text));
    let tools = completion.tool_calls.iter().map(|(id, name, input)| tool_use(id, name, input));
    thinking.into_iter().chain(text).chain(tools).collect()
}

fn thinking(reasoning: Option<&str>, signature: Option<&str>) -> Block {
    let thought = reasoning.map(|it| json!({ "type": "thinking_delta", "thinking": it }));
    let signed = signature.map(|it| json!({ "type": "signature_delta", "signature": it }));
    Block {
        begun: json!({ "type": "thinking", "thinking": "", "signature": "" }),
        deltas: thought.into_iter().chain(signed).collect(),
        whole: json!({
            "type": "thinking", "thinking": reasoning.unwrap_or_default(),
            "signature": signature.unwrap_or_default()
        }),
    }
}

fn text(pieces: &[String]) -> Block {
    Block {
        begun: json!({ "type": "text", "text": "" }),
        deltas: pieces.iter().map(|it| json!({ "type": "text_delta", "text": it })).collect(),
        whole: json!({ "type": "text", "text": pieces.concat() }),
    }
}

/// The arguments come in two pieces, however small they are.
fn tool_use(id: &str, name: &str, input: &Value) -> Block {
    let block = |input: &Value| {
        let mut block = json!({ "type": "tool_use", "name": name, "input": input });
        if !id.is_empty() {
            block["id"] = json!(id);
        }
        block
    };
    let json = input.to_string();
    let (first, second) = json.split_at(json.ceil_char_boundary(json.len() / 2));
    let delta = |it: &str| json!({ "type": "input_json_delta", "partial_json": it });
    Block {
        begun: block(&json!({})),
        deltas: vec![delta(""), delta(first), delta(second)],
        whole: block(input),
    }
}
