//! The protocol `chat`: completions as most servers speak them.

use folkmoot_core::call::Tool;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    draft::Piece,
    layout::{EarlierCall, Turn},
    tool_calls::CallPiece,
    wire::{Question, Wire, below, parse},
};
use crate::{
    known::Quirks,
    reported::{Reported, number, sum},
    retry::Failure,
};

/// Chat completions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chat {
    pub quirks: Quirks,
}

/// What the last event of a stream says.
const END_MARK: &str = "[DONE]";

/// The names under which servers send reasoning; if a piece has several, they say the same.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

impl Wire for Chat {
    fn url(&self, base: &Url, _model: &str) -> Url {
        below(base, &["chat", "completions"])
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn body(&self, question: &Question<'_>) -> Value {
        let mut body = json!({ "model": question.model });
        if !question.tools.is_empty() {
            body["tools"] = question.tools.iter().map(tool).collect();
            if question.without_tools {
                body["tool_choice"] = json!("none");
            }
        }
        body["messages"] = question.turns.iter().map(message).collect();
        if let Some(max_tokens) = question.max_tokens {
            body[self.quirks.max_tokens] = json!(max_tokens);
        }
        body["stream"] = json!(true);
        if self.quirks.stream_usage {
            body["stream_options"] = json!({ "include_usage": true });
        }
        body
    }

    /// A chunk may well be without choices, for example the one that brings the usage.
    fn read(&self, data: &str) -> Result<Vec<Piece>, Failure> {
        if data == END_MARK {
            return Ok(vec![Piece::EndMark]);
        }
        let chunk: Chunk = parse(data)?;
        let mut pieces: Vec<_> = self.usage(chunk.usage).collect();
        let choices = chunk.choices.unwrap_or_default().into_iter();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            pieces.extend(self.usage(choice.usage));
            for delta in choice.delta.into_iter().chain(choice.message) {
                delta.add_to(&mut pieces);
            }
            pieces.extend(Piece::end(choice.finish_reason));
        }
        Ok(pieces)
    }
}

impl Chat {
    fn usage(&self, usage: Option<Value>) -> impl Iterator<Item = Piece> {
        usage.map(|usage| Piece::Usage(self.reported(&usage))).into_iter()
    }

    fn reported(&self, usage: &Value) -> Reported {
        let written = number(usage, &["/completion_tokens"]);
        let reasoning =
            number(usage, &["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]);
        let apart = reasoning.filter(|_| written.is_some() && self.quirks.reasoning_apart);
        Reported {
            read: number(usage, &["/prompt_tokens"]),
            cached: number(
                usage,
                &[
                    "/prompt_tokens_details/cached_tokens",
                    "/prompt_cache_hit_tokens",
                    "/cached_tokens",
                ],
            ),
            cache_write: number(
                usage,
                &[
                    "/prompt_tokens_details/cache_creation_input_tokens",
                    "/prompt_tokens_details/cache_write_tokens",
                ],
            ),
            written: sum([written, apart]),
        }
    }
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

fn message(turn: &Turn) -> Value {
    match turn {
        Turn::System(text) => json!({ "role": "system", "content": text }),
        Turn::User(text) => json!({ "role": "user", "content": text }),
        Turn::Assistant { text, calls, kept } => {
            // Beside tool calls null, where a server refuses the empty string.
            let mut message = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                message["tool_calls"] = calls.iter().map(tool_call).collect();
            }
            with_fields(message, kept)
        }
        Turn::Result { call, text } => {
            json!({ "role": "tool", "tool_call_id": call.id, "content": text })
        }
    }
}

/// Arguments are sent as JSON text.
fn tool_call(EarlierCall { mark, arguments }: &EarlierCall) -> Value {
    let function = json!({ "name": mark.name, "arguments": arguments.to_string() });
    with_fields(json!({ "id": mark.id, "type": "function", "function": function }), &mark.kept)
}

fn with_fields(mut object: Value, fields: &Map<String, Value>) -> Value {
    for (name, value) in fields {
        object[name] = value.clone();
    }
    object
}

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
    delta: Option<Delta>,
    message: Option<Delta>,
    finish_reason: Option<String>,
    usage: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
    /// Reasoning, under whichever name, and fields of the provider's own.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "the content of a message is neither a text nor a list of parts")]
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

impl Delta {
    fn add_to(self, pieces: &mut Vec<Piece>) {
        let reasoning = REASONING.iter().find_map(|name| self.rest.get(*name)?.as_str());
        pieces.extend(reasoning.map(|thought| Piece::Thought(thought.to_owned())));
        match self.content {
            None => {}
            Some(Content::Text(text)) => pieces.push(Piece::Text(text)),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    pieces.extend(part.thinking.map(|it| Piece::Thought(it.text())));
                    pieces.extend(part.text.map(Piece::Text));
                }
            }
        }
        pieces.extend(self.refusal.map(Piece::Refusal));
        let calls = self.tool_calls.into_iter().flatten();
        pieces.extend(calls.map(|call| Piece::CallDelta(call.into())));
        let is_own = |name: &str| !matches!(name, "role" | "name");
        let own = self.rest.into_iter().filter(|(name, _)| is_own(name));
        pieces.push(Piece::Kept(own.collect()));
    }
}

/// A piece of a tool call, or a whole one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    /// Fields that only the provider understands, and the fixed `type`.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    /// A piece of JSON text, or an object at once.
    arguments: Option<Value>,
}

impl From<CallDelta> for CallPiece {
    fn from(CallDelta { index, id, function, rest }: CallDelta) -> CallPiece {
        let FunctionDelta { name, arguments } = function.unwrap_or_default();
        let kept = rest.into_iter().filter(|(name, _)| name != "type").collect();
        CallPiece { index, id, name, arguments, kept }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_core::{
        call::{Tokens, ToolCall},
        money::{Money, Price},
        render::{Message, Role},
        team::Model,
    };

    use super::{super::kept::Kept, *};
    use crate::testing::{body, conversation, message, model, with_a_tool};

    const USUAL: Chat = Chat { quirks: Quirks::USUAL };

    fn check(chat: Chat, model: &Model, messages: Vec<Message>, bytes: &Expect) {
        bytes.assert_eq(&body(&chat, model, messages));
    }

    #[test]
    fn a_first_request() {
        check(
            USUAL,
            &model("openai"),
            conversation(),
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"system","content":"You are 产品经理."},{"role":"user","content":"Q3 优先做哪个功能？\n\"Export\" </b>"}],"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
    }

    #[test]
    fn a_bounded_request_to_a_server_that_knows_no_stream_options() {
        let bounded = Model { max_output_tokens: Some(50), ..model("mistral") };
        let quirks =
            Quirks { stream_usage: false, max_tokens: "max_completion_tokens", ..Quirks::USUAL };
        check(
            Chat { quirks },
            &bounded,
            vec![message(Role::User, "hi")],
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":50,"stream":true}"#
            ]],
        );
    }

    /// A conversation in which `deepseek` thought aloud and called a tool.
    fn thoughtful() -> Vec<Message> {
        let reasoning = Map::from_iter([("reasoning_content".to_owned(), json!("I should look."))]);
        let kept_of_call = Map::from_iter([("extra_content".to_owned(), json!({"sig": "s"}))]);
        with_a_tool(Kept::stored("deepseek", reasoning, vec![kept_of_call]))
    }

    #[test]
    fn a_provider_gets_its_own_fields_back_with_its_tool_calls() {
        check(
            USUAL,
            &model("deepseek"),
            thoughtful(),
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"system","content":"You are 产品经理."},{"role":"user","content":"Q3 优先做哪个功能？\n\"Export\" </b>"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"a\"}"},"extra_content":{"sig":"s"}}],"reasoning_content":"I should look."},{"role":"tool","tool_call_id":"c1","content":"nothing there"}],"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
    }

    #[test]
    fn no_other_provider_gets_them() {
        check(
            USUAL,
            &model("moonshot"),
            thoughtful(),
            &expect![[
                r#"{"model":"m-1","messages":[{"role":"system","content":"You are 产品经理."},{"role":"user","content":"Q3 优先做哪个功能？\n\"Export\" </b>"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"a\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"nothing there"}],"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
    }

    #[test]
    fn tool_calls_and_their_results_keep_together() {
        let call = ToolCall {
            id: "c1".into(),
            name: "file.read".into(),
            arguments: json!({ "path": "a" }),
        };
        let broken = ToolCall { arguments: json!("{\"path"), id: "c2".into(), ..call.clone() };
        let asks = Message { tool_calls: vec![call, broken], ..message(Role::Assistant, "") };
        let result =
            |id: &str| Message { tool_call_id: Some(id.into()), ..message(Role::Tool, "") };
        let messages = vec![message(Role::User, "task"), asks, result("c1"), result("c2")];
        let body = body(&USUAL, &model("p"), messages);
        let body: Value = serde_json::from_str(&body).expect("it is JSON");
        expect![[r#"
            [
              {
                "role": "user",
                "content": "task"
              },
              {
                "role": "assistant",
                "content": null,
                "tool_calls": [
                  {
                    "id": "c1",
                    "type": "function",
                    "function": {
                      "name": "file_read",
                      "arguments": "{\"path\":\"a\"}"
                    }
                  },
                  {
                    "id": "c2",
                    "type": "function",
                    "function": {
                      "name": "file_read",
                      "arguments": "{\"unreadable\":\"{\\\"path\"}"
                    }
                  }
                ]
              },
              {
                "role": "tool",
                "tool_call_id": "c1",
                "content": "(no output)"
              },
              {
                "role": "tool",
                "tool_call_id": "c2",
                "content": "(no output)"
              }
            ]"#]]
        .assert_eq(&serde_json::to_string_pretty(&body["messages"]).expect("it is plain data"));
    }

    #[test]
    fn each_request_extends_the_one_before_byte_for_byte() {
        let mut messages = conversation();
        let first = body(&USUAL, &model("openai"), messages.clone());
        messages.extend([message(Role::Assistant, "Export."), message(Role::User, "Why?")]);
        let second = body(&USUAL, &model("openai"), messages);
        let shared = first.find("],\"stream\"").expect("the field stands behind the messages");
        assert_eq!(first[..shared], second[..shared]);
    }

    fn tokens_of(chat: Chat, reports: &[Value]) -> Tokens {
        let mut reported = Reported::default();
        for usage in reports {
            reported.update(chat.reported(usage));
        }
        reported.usage(400, 80).tokens
    }

    fn tokens(input: u64, cached: u64, output: u64) -> Tokens {
        Tokens { input, cached, output, ..Tokens::default() }
    }

    #[test]
    fn usage_that_says_nothing_is_estimated() {
        for report in [
            json!(null),
            json!({}),
            json!({"prompt_tokens": null, "completion_tokens": null}),
            json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
            json!({"prompt_tokens": "many", "completion_tokens": -4}),
            json!([1]),
        ] {
            assert_eq!(USUAL.reported(&report), Reported::default(), "{report}");
        }
    }

    #[test]
    fn the_cached_part_is_a_bucket_of_its_own_in_every_spelling() {
        for report in [
            json!({"prompt_tokens_details": {"cached_tokens": 900}}),
            json!({"prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}),
            json!({"cached_tokens": 900}),
            json!({"prompt_cache_hit_tokens": 900, "prompt_tokens_details": {"cached_tokens": 900}}),
        ] {
            let whole = json!({"prompt_tokens": 1000, "completion_tokens": 10});
            let used = tokens_of(USUAL, &[whole, report.clone()]);
            assert_eq!(used, tokens(100, 900, 10), "{report}");
            let price = Price { cached_input: Some(1.0), ..Price::new(10.0, 50.0) };
            assert_eq!(price.of(used), Money::from_usd(0.0024));
        }
    }

    #[test]
    fn a_running_total_counts_once_even_if_it_ends_in_nothing() {
        let totals = [(10, 1), (10, 5), (10, 9)];
        let mut reports: Vec<_> = totals
            .map(|(read, written)| json!({"prompt_tokens": read, "completion_tokens": written}))
            .into();
        assert_eq!(tokens_of(USUAL, &reports), tokens(10, 0, 9));
        reports.push(json!({"prompt_tokens": 0, "completion_tokens": 0}));
        assert_eq!(tokens_of(USUAL, &reports), tokens(10, 0, 9));
    }

    #[test]
    fn reasoning_is_a_part_of_the_output_or_is_added_to_it() {
        let report = json!({
            "prompt_tokens": 32, "completion_tokens": 109,
            "completion_tokens_details": {"reasoning_tokens": 100}
        });
        let apart = Chat { quirks: Quirks { reasoning_apart: true, ..Quirks::USUAL } };
        assert_eq!(tokens_of(USUAL, std::slice::from_ref(&report)).output, 109);
        assert_eq!(tokens_of(apart, std::slice::from_ref(&report)).output, 209);
    }
}
