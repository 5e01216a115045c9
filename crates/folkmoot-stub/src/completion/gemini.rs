//! Google's generated contents.

use serde_json::{Value, json};

use super::Completion;

pub(super) fn usage(read: u64, written: u64) -> Value {
    json!({
        "promptTokenCount": read, "candidatesTokenCount": written,
        "totalTokenCount": read + written
    })
}

pub(super) fn events(completion: &Completion) -> Vec<Value> {
    let texts = completion.text.iter().map(|text| json!({ "text": text }));
    let mut events: Vec<_> =
        thought(completion).into_iter().chain(texts).map(|part| chunk(&[part])).collect();
    let calls = function_calls(completion);
    events.extend((!calls.is_empty()).then(|| chunk(&calls)));
    events.push(ended(chunk(&[json!({ "text": "" })]), completion));
    events
}

pub(super) fn whole(completion: &Completion) -> Value {
    let mut parts: Vec<_> = thought(completion).into_iter().collect();
    if !completion.text.is_empty() {
        parts.push(json!({ "text": completion.text.concat() }));
    }
    parts.extend(function_calls(completion));
    ended(chunk(&parts), completion)
}

fn chunk(parts: &[Value]) -> Value {
    json!({
        "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
        "modelVersion": "stub", "responseId": "stub"
    })
}

fn ended(mut chunk: Value, completion: &Completion) -> Value {
    chunk["candidates"][0]["finishReason"] = json!(completion.finish);
    if let Some(usage) = &completion.usage {
        chunk["usageMetadata"] = usage.clone();
    }
    chunk
}

fn thought(completion: &Completion) -> Option<Value> {
    completion.reasoning.as_ref().map(|text| json!({ "text": text, "thought": true }))
}

fn function_calls(completion: &Completion) -> Vec<Value> {
    let part = |(id, name, args): &(String, String, Value)| {
        let mut call = json!({ "name": name, "args": args });
        if !id.is_empty() {
            call["id"] = json!(id);
        }
        json!({ "functionCall": call })
    };
    let mut parts: Vec<_> = completion.tool_calls.iter().map(part).collect();
    if let (Some(first), Some(signature)) = (parts.first_mut(), &completion.signature) {
        first["thoughtSignature"] = json!(signature);
    }
    parts
}
