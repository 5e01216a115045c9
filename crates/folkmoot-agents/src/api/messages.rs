//! The protocol `messages`: Anthropic's, which others speak too.

use folkmoot_core::call::Tool;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    draft::Piece,
    layout::{EarlierCall, Turn, sides},
    tool_calls::CallPiece,
    wire::{Question, Wire, below_version, parse},
};
use crate::{
    reported::{REQUEST, Reported, number, total},
    retry::Failure,
};

/// Anthropic's messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Messages;

/// The bound of a reply for which nobody set one, because the protocol wants one: what the kernel
/// sets aside for such a reply, and no more than any current model can write.
const USUAL_OUTPUT: u64 = 8192;

/// Under which name thinking blocks are kept, by their index in the reply.
const THINKING: &str = "thinking";

impl Wire for Messages {
    fn url(&self, base: &Url, _model: &str) -> Url {
        below_version(base, "v1", &["messages"])
    }

    fn models_url(&self, base: &Url) -> Url {
        below_version(base, "v1", &["models"])
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    /// Requests only grow at their end, so what this one marks there is what the next one finds in
    /// the cache; the instructions, which all conversations of an agent share, have their own mark.
    /// Servers look only twenty blocks back from a mark for what they have, so where the request
    /// before ended is marked again: three marks of the four that a request may have.
    fn body(&self, question: &Question<'_>) -> Value {
        let (instructions, sides) = sides(&question.turns);
        let max_tokens = question.max_tokens.unwrap_or(USUAL_OUTPUT);
        let mut body = json!({ "model": question.model, "max_tokens": max_tokens });
        if !question.tools.is_empty() {
            body["tools"] = question.tools.iter().map(tool).collect();
            if question.without_tools {
                body["tool_choice"] = json!({ "type": "none" });
            }
        }
        if let Some(text) = instructions {
            body["system"] = json!([{ "type": "text", "text": text }]);
            mark_for_cache(&mut body["system"]);
        }
        let mut messages: Vec<_> = sides.map(message).collect();
        let ends = messages.iter_mut().rev().filter(|message| message["role"] == "user");
        ends.take(2).for_each(|message| mark_for_cache(&mut message["content"]));
        body["messages"] = messages.into();
        body["stream"] = json!(true);
        body
    }

    fn read(&self, data: &str) -> Result<Vec<Piece>, Failure> {
        Ok(match parse(data)? {
            Event::MessageStart { message } => {
                // What it has written so far is no number to rely on.
                let usage =
                    message.usage.map(|usage| Reported { written: None, ..reported(&usage) });
                usage.map(Piece::Usage).into_iter().collect()
            }
            Event::ContentBlockStart { index, content_block } => content_block.pieces(index),
            Event::ContentBlockDelta { index, delta } => delta.pieces(index),
            Event::MessageDelta { delta, usage } => ending(usage, delta.stop_reason).collect(),
            Event::Message(Message { content, usage, stop_reason }) => {
                let blocks = (0..).zip(content.unwrap_or_default());
                let said = blocks.flat_map(|(index, block)| block.pieces(index));
                said.chain(ending(usage, stop_reason)).collect()
            }
            Event::MessageStop => vec![Piece::EndMark],
            Event::Other => Vec::new(),
        })
    }
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    json!({ "name": name, "description": description, "input_schema": parameters })
}

fn mark_for_cache(blocks: &mut Value) {
    if let Some(last) = blocks.as_array_mut().and_then(|blocks| blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}

fn message(side: &[Turn]) -> Value {
    let is_model = matches!(side, [Turn::Assistant { .. }, ..]);
    let role = if is_model { "assistant" } else { "user" };
    let content: Value = side.iter().flat_map(blocks).collect();
    json!({ "role": role, "content": content })
}

fn blocks(turn: &Turn) -> Vec<Value> {
    match turn {
        Turn::System(text) | Turn::User(text) => vec![text_block(text)],
        Turn::Assistant { text, calls, kept } => {
            let text = text.iter().map(|text| text_block(text));
            thoughts(kept).chain(text).chain(calls.iter().map(tool_use)).collect()
        }
        Turn::Result { call, text } => {
            vec![json!({ "type": "tool_result", "tool_use_id": call.id, "content": text })]
        }
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn tool_use(EarlierCall { mark, arguments }: &EarlierCall) -> Value {
    json!({ "type": "tool_use", "id": mark.id, "name": mark.name, "input": arguments })
}

/// The thinking blocks of an earlier reply, as they came; one may hold nothing but its signature.
fn thoughts(kept: &Map<String, Value>) -> impl Iterator<Item = Value> {
    let blocks = kept.get(THINKING).and_then(Value::as_object).into_iter().flat_map(Map::values);
    blocks.cloned().map(|mut block| {
        if block["type"] == "thinking" && block.get("thinking").is_none() {
            block["thinking"] = json!("");
        }
        block
    })
}

/// The parts that came from the cache and that went into it are counted beside the others.
fn reported(usage: &Value) -> Reported {
    let parts = ["/input_tokens", "/cache_read_input_tokens", "/cache_creation_input_tokens"];
    Reported {
        read: total(usage, &parts, REQUEST),
        cached: number(usage, &parts[1..2]),
        cache_write: number(usage, &parts[2..]),
        written: number(usage, &["/output_tokens"]),
    }
}

fn ending(usage: Option<Value>, reason: Option<String>) -> impl Iterator<Item = Piece> {
    let usage = usage.map(|usage| Piece::Usage(reported(&usage)));
    usage.into_iter().chain(Piece::end(reason))
}

/// An event of a stream, or a whole reply.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        #[serde(default)]
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: u64,
        delta: More,
    },
    MessageDelta {
        delta: Ending,
        usage: Option<Value>,
    },
    Message(Message),
    MessageStop,
    /// Pings, the ends of blocks, and what may come some day.
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Option<Vec<Block>>,
    stop_reason: Option<String>,
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ending {
    stop_reason: Option<String>,
}

/// A part of the reply, or its beginning.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
    },
    Thinking(Map<String, Value>),
    RedactedThinking(Map<String, Value>),
    #[serde(other)]
    Other,
}

impl Block {
    fn pieces(self, index: u64) -> Vec<Piece> {
        match self {
            Block::Text { text } => vec![Piece::Text(text)],
            Block::ToolUse { id, name, input } => {
                // Where the arguments follow in pieces, an empty object holds their place.
                let arguments =
                    input.filter(|input| input.as_object().is_none_or(|it| !it.is_empty()));
                let index = Some(index);
                vec![Piece::Call(CallPiece { index, id, name, arguments, kept: Map::new() })]
            }
            Block::Thinking(fields) => {
                let thought = fields.get("thinking").and_then(Value::as_str).unwrap_or_default();
                let thought = Piece::Thought(thought.to_owned());
                vec![thought, kept(index, typed("thinking", fields))]
            }
            Block::RedactedThinking(fields) => {
                vec![kept(index, typed("redacted_thinking", fields))]
            }
            Block::Other => Vec::new(),
        }
    }
}

/// More of a part.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum More {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

impl More {
    fn pieces(self, index: u64) -> Vec<Piece> {
        match self {
            More::TextDelta { text } => vec![Piece::Text(text)],
            More::ThinkingDelta { thinking } => {
                let more = json!({ "thinking": thinking });
                vec![Piece::Thought(thinking), kept(index, more)]
            }
            More::SignatureDelta { signature } => {
                vec![kept(index, json!({ "signature": signature }))]
            }
            More::InputJsonDelta { partial_json: text } => {
                vec![Piece::Arguments { index, text }]
            }
            More::Other => Vec::new(),
        }
    }
}

fn typed(name: &str, fields: Map<String, Value>) -> Value {
    let mut block = json!({ "type": name });
    block.as_object_mut().expect("it is one").extend(fields);
    block
}

/// A piece of the thinking block at `index`.
fn kept(index: u64, fields: Value) -> Piece {
    let blocks = Map::from_iter([(index.to_string(), fields)]);
    Piece::Kept(Map::from_iter([(THINKING.to_owned(), Value::Object(blocks))]))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_core::{
        call::{Answer, Tokens},
        money::{Money, Price},
        render::{Message, Role},
        team::Model,
    };

    use super::{
        super::{draft::Draft, kept::Kept},
        *,
    };
    use crate::{
        sse,
        testing::{body, conversation, message, model, with_a_tool},
    };

    fn check(model: &Model, messages: Vec<Message>, bytes: &Expect) {
        bytes.assert_eq(&body(&Messages, model, messages));
    }

    #[test]
    fn a_first_request_has_a_bound_and_marks_what_stays() {
        check(
            &model("anthropic"),
            conversation(),
            &expect![[
                r#"{"model":"m-1","max_tokens":8192,"system":[{"type":"text","text":"You are 产品经理.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Q3 优先做哪个功能？\n\"Export\" </b>","cache_control":{"type":"ephemeral"}}]}],"stream":true}"#
            ]],
        );
    }

    #[test]
    fn a_bounded_request_without_instructions() {
        let bounded = Model { max_output_tokens: Some(50), ..model("anthropic") };
        check(
            &bounded,
            vec![message(Role::User, "hi")],
            &expect![[
                r#"{"model":"m-1","max_tokens":50,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"stream":true}"#
            ]],
        );
    }

    /// A conversation in which `anthropic` thought and called a tool.
    fn thoughtful() -> Vec<Message> {
        let blocks = json!({"thinking": {
            "0": {"type": "thinking", "thinking": "I should look.", "signature": "s1"},
            "1": {"type": "redacted_thinking", "data": "d1"},
            "2": {"type": "thinking", "signature": "s2"},
        }});
        let Value::Object(fields) = blocks else { panic!("it is an object") };
        with_a_tool(Kept::stored("anthropic", fields, vec![Map::new()]))
    }

    #[test]
    fn a_provider_gets_its_thinking_back_with_its_tool_calls() {
        check(
            &model("anthropic"),
            thoughtful(),
            &expect![[
                r#"{"model":"m-1","max_tokens":8192,"system":[{"type":"text","text":"You are 产品经理.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Q3 优先做哪个功能？\n\"Export\" </b>","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"I should look.","signature":"s1"},{"type":"redacted_thinking","data":"d1"},{"type":"thinking","signature":"s2","thinking":""},{"type":"tool_use","id":"c1","name":"look","input":{"at":"a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"nothing there","cache_control":{"type":"ephemeral"}}]}],"stream":true}"#
            ]],
        );
    }

    #[test]
    fn no_other_provider_gets_it_and_results_go_before_words() {
        let mut messages = thoughtful();
        messages.push(message(Role::User, "Look again."));
        check(
            &model("deepseek"),
            messages,
            &expect![[
                r#"{"model":"m-1","max_tokens":8192,"system":[{"type":"text","text":"You are 产品经理.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"Q3 优先做哪个功能？\n\"Export\" </b>","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{"at":"a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"nothing there"},{"type":"text","text":"Look again.","cache_control":{"type":"ephemeral"}}]}],"stream":true}"#
            ]],
        );
    }

    #[test]
    fn each_request_extends_the_one_before_with_the_mark_at_its_end() {
        let mut messages = conversation();
        let first = body(&Messages, &model("anthropic"), messages.clone());
        messages.extend([message(Role::Assistant, "Export."), message(Role::User, "Why?")]);
        let second = body(&Messages, &model("anthropic"), messages);
        let shared = first.rfind("],\"stream\"").expect("the field stands behind the messages");
        assert_eq!(first[..shared], second[..shared]);
        assert_eq!(second.matches("cache_control").count(), 3);
    }

    fn answer(events: &[Value]) -> Answer {
        let mut draft = Draft::new(&Messages, &|_| {});
        for data in events {
            let event = sse::Event { data: data.to_string(), ..sse::Event::default() };
            draft.take_event(&event).expect("it is sound");
        }
        draft.finish("anthropic", "call-7").expect("it says something")
    }

    fn begun(index: u64, block: &Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn goes_on(index: u64, delta: &Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn arguments(index: u64, text: &str) -> Value {
        goes_on(index, &json!({"type": "input_json_delta", "partial_json": text}))
    }

    #[test]
    fn thinking_and_its_signature_are_kept_apart_block_by_block() {
        let tool = json!({"type": "tool_use", "id": "t", "name": "look", "input": {}});
        let thought = |text: &str| json!({"type": "thinking_delta", "thinking": text});
        let signed = |text: &str| json!({"type": "signature_delta", "signature": text});
        let answer = answer(&[
            begun(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
            goes_on(0, &thought("I ")),
            goes_on(0, &thought("should.")),
            goes_on(0, &signed("s1")),
            begun(1, &json!({"type": "redacted_thinking", "data": "d1"})),
            begun(2, &json!({"type": "thinking", "thinking": "", "signature": ""})),
            goes_on(2, &signed("s2")),
            begun(3, &tool),
        ]);
        assert_eq!((answer.reasoning.as_deref(), &*answer.text), (Some("I should."), ""));
        let kept = Kept::of(answer.provider.as_ref(), "anthropic").message;
        let expected = json!([
            {"type": "thinking", "thinking": "I should.", "signature": "s1"},
            {"type": "redacted_thinking", "data": "d1"},
            {"type": "thinking", "signature": "s2", "thinking": ""},
        ]);
        assert_eq!(thoughts(&kept).collect::<Value>(), expected);
    }

    #[test]
    fn each_tool_block_is_a_call_whatever_its_index_id_and_name() {
        let tool = |id: Value, input: Value| json!({"type": "tool_use", "id": id, "name": "read", "input": input});
        let answer = answer(&[
            begun(0, &tool(json!("t1"), json!({}))),
            arguments(0, "{\"p\""),
            arguments(0, ":1}"),
            begun(0, &tool(json!("t1"), json!({}))),
            arguments(0, "{\"p\":2}"),
            begun(1, &tool(json!(null), json!({"p": 3}))),
            begun(2, &tool(json!(""), json!(null))),
            begun(3, &tool(json!("t5"), json!({}))),
            arguments(3, "{\"p\": \"cut"),
        ]);
        let calls: Vec<_> =
            answer.tool_calls.iter().map(|call| (&*call.id, call.arguments.clone())).collect();
        let expected = [
            ("t1", json!({"p": 1})),
            ("call-7-2", json!({"p": 2})),
            ("call-7-3", json!({"p": 3})),
            ("call-7-4", json!({})),
            ("t5", json!("{\"p\": \"cut")),
        ];
        assert_eq!(calls, expected);
    }

    #[test]
    fn what_is_not_ours_to_read_says_nothing() {
        let answer = answer(&[
            json!({"type": "ping"}),
            json!({"type": "something_new", "delta": 3}),
            begun(0, &json!({"type": "server_tool_use", "id": "x", "name": "web_search"})),
            arguments(0, "{\"query\": \"y\"}"),
            begun(1, &json!({"type": "web_search_tool_result", "content": []})),
            begun(2, &json!({"type": "text", "text": "so "})),
            goes_on(2, &json!({"type": "citations_delta", "citation": {}})),
            goes_on(2, &json!({"type": "text_delta", "text": "it is"})),
        ]);
        assert_eq!(answer, Answer::text("so it is"));
    }

    fn tokens_of(reports: &[Value]) -> Tokens {
        let mut total = Reported::default();
        for usage in reports {
            total.update(reported(usage));
        }
        total.usage(400, 80).tokens
    }

    #[test]
    fn what_came_from_the_cache_is_a_bucket_of_its_own_and_what_went_in_is_input() {
        let usage = json!({
            "input_tokens": 100, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50,
            "output_tokens": 10
        });
        let used = tokens_of(std::slice::from_ref(&usage));
        assert_eq!(used, Tokens { input: 100, cached: 900, cache_write: 50, output: 10 });
        let prices = Price::new(10.0, 50.0);
        let price = Price { cached_input: Some(1.0), cache_write: Some(12.5), ..prices };
        assert_eq!(price.of(used), Money::from_usd(0.003_025));
        // The end of a stream may repeat it in whole or in part.
        for again in [usage.clone(), json!({"output_tokens": 10}), json!({"input_tokens": 0})] {
            assert_eq!(tokens_of(&[usage.clone(), again]), used);
        }
    }

    #[test]
    fn only_the_end_of_a_stream_says_how_much_was_written() {
        let start = json!({"type": "message_start", "message": {
            "content": [], "usage": {"input_tokens": 7, "output_tokens": 1}
        }});
        let mut draft = Draft::new(&Messages, &|_| {});
        let event = |data: &Value| sse::Event { data: data.to_string(), ..sse::Event::default() };
        draft.take_event(&event(&start)).expect("it is sound");
        assert!(draft.usage(400).estimated);
        let end = json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}});
        draft.take_event(&event(&end)).expect("it is sound");
        assert_eq!(draft.usage(400).tokens, Tokens { input: 7, output: 3, ..Tokens::default() });
        assert!(!draft.usage(400).estimated);
    }
}
