//! Chat completions.

use serde_json::{Value, json};

use super::Completion;

pub(super) fn usage(read: u64, written: u64) -> Value {
    json!({
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written
    })
}

pub(super) fn events(completion: &Completion) -> Vec<String> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    deltas.extend(completion.reasoning.iter().map(|it| json!({ "reasoning_content": it })));
    deltas.extend(completion.text.iter().map(|it| json!({ "content": it })));
    deltas.extend((0..).zip(tool_calls(completion)).map(|(index, mut call)| {
        call["index"] = json!(index);
        json!({ "tool_calls": [call] })
    }));
    let choice = |delta: Value| json!({ "index": 0, "delta": delta, "finish_reason": null });
    let mut choices: Vec<_> = deltas.into_iter().map(choice).collect();
    choices.push(json!({ "index": 0, "delta": {}, "finish_reason": completion.finish }));
    let chunk = |choices: Vec<Value>, usage: Option<&Value>| {
        json!({
            "id": "chatcmpl-stub", "object": "chat.completion.chunk", "created": 0,
            "model": "stub", "choices": choices, "usage": usage
        })
        .to_string()
    };
    let mut events: Vec<_> = choices.into_iter().map(|it| chunk(vec![it], None)).collect();
    events.extend(completion.usage.iter().map(|usage| chunk(vec![], Some(usage))));
    events.push("[DONE]".to_owned());
    events
}

pub(super) fn whole(completion: &Completion) -> Value {
    let text = completion.text.concat();
    let mut message = json!({
        "role": "assistant", "content": (!text.is_empty()).then_some(text)
    });
    if let Some(reasoning) = &completion.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if !completion.tool_calls.is_empty() {
        message["tool_calls"] = tool_calls(completion).collect();
    }
    json!({
        "id": "chatcmpl-stub", "object": "chat.completion", "created": 0, "model": "stub",
        "choices": [{ "index": 0, "message": message, "finish_reason": completion.finish }],
        "usage": completion.usage
    })
}

fn tool_calls(completion: &Completion) -> impl Iterator<Item = Value> {
    completion.tool_calls.iter().map(|(id, name, arguments)| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        let id = (!id.is_empty()).then_some(id);
        json!({ "id": id, "type": "function", "function": function })
    })
}
