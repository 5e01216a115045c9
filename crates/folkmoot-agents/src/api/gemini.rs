//! The protocol `gemini`: Google's, its replies as an event stream.

use folkmoot_core::call::Tool;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    draft::Piece,
    error::malformed,
    layout::{CallMark, EarlierCall, Turn, sides},
    tool_calls::CallPiece,
    wire::{Question, Wire, below_version, parse},
};
use crate::{
    reported::{REQUEST, Reported, number, total},
    retry::Failure,
};

/// Google's generated contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gemini;

/// The field that holds what the model thought before it called a tool, encrypted.
const SIGNATURE: &str = "thoughtSignature";

/// Stands for the signature of calls that have none, as those of another provider's model: without
/// any, newer models refuse the request.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl Wire for Gemini {
    fn url(&self, base: &Url, model: &str) -> Url {
        let method = format!("{model}:streamGenerateContent");
        let mut url = below_version(base, "v1beta", &["models", &method]);
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn models_url(&self, base: &Url) -> Url {
        below_version(base, "v1beta", &["models"])
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn body(&self, question: &Question<'_>) -> Value {
        let (instructions, sides) = sides(&question.turns);
        let mut body = json!({});
        if let Some(text) = instructions {
            body["system_instruction"] = json!({ "parts": [{ "text": text }] });
        }
        if !question.tools.is_empty() {
            let functions: Value = question.tools.iter().map(function).collect();
            body["tools"] = json!([{ "functionDeclarations": functions }]);
            if question.without_tools {
                body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "NONE" } });
            }
        }
        body["contents"] = sides.map(content).collect();
        if let Some(max_tokens) = question.max_tokens {
            body["generationConfig"] = json!({ "maxOutputTokens": max_tokens });
        }
        body
    }

    fn read(&self, data: &str) -> Result<Vec<Piece>, Failure> {
        // A reply that is no event stream may be a list of chunks.
        let chunks = match parse(data)? {
            Value::Array(chunks) => chunks,
            chunk => vec![chunk],
        };
        let chunks = chunks.into_iter().map(Chunk::deserialize).collect::<Result<Vec<_>, _>>();
        Ok(chunks.map_err(malformed)?.into_iter().flat_map(Chunk::pieces).collect())
    }
}

fn function(Tool { name, description, parameters }: &Tool) -> Value {
    json!({ "name": name, "description": description, "parameters": parameters })
}

fn content(side: &[Turn]) -> Value {
    let is_model = matches!(side, [Turn::Assistant { .. }, ..]);
    let role = if is_model { "model" } else { "user" };
    let parts: Value = side.iter().flat_map(parts).collect();
    json!({ "role": role, "parts": parts })
}

fn parts(turn: &Turn) -> Vec<Value> {
    match turn {
        Turn::System(text) | Turn::User(text) => vec![json!({ "text": text })],
        Turn::Assistant { text, calls, .. } => {
            let text = text.iter().map(|text| json!({ "text": text }));
            text.chain(function_calls(calls)).collect()
        }
        Turn::Result { call, text } => {
            let response = json!({ "name": call.name, "response": { "output": text } });
            vec![json!({ "functionResponse": with_id(response, call) })]
        }
    }
}

/// Of calls made at once only the first has a signature.
fn function_calls(calls: &[EarlierCall]) -> impl Iterator<Item = Value> {
    let are_unsigned = calls.iter().all(|call| !call.mark.kept.contains_key(SIGNATURE));
    let stand_in = json!(NO_SIGNATURE);
    calls.iter().enumerate().map(move |(at, EarlierCall { mark, arguments })| {
        let call = json!({ "name": mark.name, "args": arguments });
        let mut part = json!({ "functionCall": with_id(call, mark) });
        let otherwise = (are_unsigned && at == 0).then_some(&stand_in);
        if let Some(signature) = mark.kept.get(SIGNATURE).or(otherwise) {
            part[SIGNATURE] = signature.clone();
        }
        part
    })
}

/// Only the models that give their calls ids know what an id is.
fn with_id(mut object: Value, mark: &CallMark) -> Value {
    if let Some(id) = mark.kept.get("id") {
        object["id"] = id.clone();
    }
    object
}

/// What the model thinks is counted beside what it writes, what tools of the server read beside the
/// rest; what came from the cache is a part of what was read.
fn reported(usage: &Value) -> Reported {
    Reported {
        read: total(usage, &["/promptTokenCount", "/toolUsePromptTokenCount"], REQUEST),
        cached: number(usage, &["/cachedContentTokenCount"]),
        cache_write: None,
        written: total(usage, &["/candidatesTokenCount", "/thoughtsTokenCount"], REQUEST),
    }
}

/// A chunk of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    function_call: Option<FunctionCall>,
    thought_signature: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

impl Chunk {
    fn pieces(self) -> Vec<Piece> {
        let candidates = self.candidates.unwrap_or_default().into_iter();
        let first = candidates.filter(|candidate| candidate.index.unwrap_or(0) == 0);
        let usage = self.usage_metadata.map(|usage| Piece::Usage(reported(&usage)));
        let blocked = self.prompt_feedback.and_then(|feedback| feedback.block_reason);
        let said = first.flat_map(Candidate::pieces);
        usage.into_iter().chain(said).chain(Piece::end(blocked)).collect()
    }
}

impl Candidate {
    fn pieces(self) -> Vec<Piece> {
        let parts = self.content.and_then(|content| content.parts).into_iter().flatten();
        parts.flat_map(Part::pieces).chain(Piece::end(self.finish_reason)).collect()
    }
}

impl Part {
    fn pieces(self) -> Vec<Piece> {
        let is_thought = self.thought.unwrap_or(false);
        let text = self.text.map(if is_thought { Piece::Thought } else { Piece::Text });
        let call = self.function_call.map(|call| call.piece(self.thought_signature));
        text.into_iter().chain(call).collect()
    }
}

impl FunctionCall {
    /// A call comes whole; what has to go back with it is the server's id, as it was, and the
    /// signature.
    fn piece(self, signature: Option<Value>) -> Piece {
        let id = self.id.clone().map(|id| ("id".to_owned(), json!(id)));
        let signature = signature.map(|signature| (SIGNATURE.to_owned(), signature));
        let kept = id.into_iter().chain(signature).collect();
        let FunctionCall { id, name, args: arguments } = self;
        Piece::Call(CallPiece { index: None, id, name, arguments, kept })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use folkmoot_core::{
        call::{Answer, Tokens, ToolCall},
        render::{Message, Role},
        team::Model,
    };
    use serde_json::Map;

    use super::{
        super::{draft::Draft, kept::Kept},
        *,
    };
    use crate::{
        sse,
        testing::{body, conversation, message, model, with_a_tool},
    };

    fn check(model: &Model, messages: Vec<Message>, bytes: &Expect) {
        bytes.assert_eq(&body(&Gemini, model, messages));
    }

    #[test]
    fn a_first_request() {
        check(
            &model("gemini"),
            conversation(),
            &expect![[
                r#"{"system_instruction":{"parts":[{"text":"You are 产品经理."}]},"contents":[{"role":"user","parts":[{"text":"Q3 优先做哪个功能？\n\"Export\" </b>"}]}]}"#
            ]],
        );
    }

    #[test]
    fn a_bounded_request_without_instructions() {
        let bounded = Model { max_output_tokens: Some(50), ..model("gemini") };
        check(
            &bounded,
            vec![message(Role::User, "hi")],
            &expect![[
                r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":50}}"#
            ]],
        );
    }

    /// A conversation in which `gemini` called a tool.
    fn signed() -> Vec<Message> {
        let kept = [("id", json!("call.1")), (SIGNATURE, json!("s1"))];
        let kept = Map::from_iter(kept.map(|(name, value)| (name.to_owned(), value)));
        with_a_tool(Kept::stored("gemini", Map::new(), vec![kept]))
    }

    #[test]
    fn a_provider_gets_its_signature_and_id_back_with_its_tool_calls() {
        check(
            &model("gemini"),
            signed(),
            &expect![[
                r#"{"system_instruction":{"parts":[{"text":"You are 产品经理."}]},"contents":[{"role":"user","parts":[{"text":"Q3 优先做哪个功能？\n\"Export\" </b>"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"a"},"id":"call.1"},"thoughtSignature":"s1"}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"nothing there"},"id":"call.1"}}]}]}"#
            ]],
        );
    }

    #[test]
    fn no_other_provider_gets_them_and_results_go_before_words() {
        let mut messages = signed();
        messages.push(message(Role::User, "Look again."));
        check(
            &model("vertex"),
            messages,
            &expect![[
                r#"{"system_instruction":{"parts":[{"text":"You are 产品经理."}]},"contents":[{"role":"user","parts":[{"text":"Q3 优先做哪个功能？\n\"Export\" </b>"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":"a"}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"nothing there"}}},{"text":"Look again."}]}]}"#
            ]],
        );
    }

    #[test]
    fn of_calls_made_at_once_only_the_first_needs_a_signature() {
        let signature = Map::from_iter([(SIGNATURE.to_owned(), json!("s1"))]);
        for (kept, expected) in [
            (vec![signature, Map::new()], [json!("s1"), json!(null)]),
            (vec![], [json!(NO_SIGNATURE), json!(null)]),
        ] {
            let call =
                |id: &str| ToolCall { id: id.into(), name: "t".into(), arguments: json!({}) };
            let asks = Message {
                tool_calls: vec![call("a"), call("b")],
                provider: Kept::stored("gemini", Map::new(), kept),
                ..message(Role::Assistant, "Let me see.")
            };
            let body = body(&Gemini, &model("gemini"), vec![message(Role::User, "go"), asks]);
            let body: Value = serde_json::from_str(&body).expect("it is JSON");
            let parts = body["contents"][1]["parts"].as_array().expect("there are some");
            let signatures: Vec<_> =
                parts[1..].iter().map(|part| part[SIGNATURE].clone()).collect();
            assert_eq!((parts.len(), &signatures[..]), (3, &expected[..]));
        }
    }

    #[test]
    fn each_request_extends_the_one_before_byte_for_byte() {
        let mut messages = conversation();
        let first = body(&Gemini, &model("gemini"), messages.clone());
        messages.extend([message(Role::Assistant, "Export."), message(Role::User, "Why?")]);
        let second = body(&Gemini, &model("gemini"), messages);
        let shared = first.strip_suffix("]}").expect("the contents come last");
        assert!(second.starts_with(shared), "{second}");
    }

    fn read(data: &Value) -> Result<Answer, Failure> {
        let mut draft = Draft::new(&Gemini, &|_| {});
        let event = sse::Event { data: data.to_string(), ..sse::Event::default() };
        draft.take_event(&event)?;
        draft.finish("gemini", "call-7")
    }

    fn said(parts: &Value) -> Value {
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    }

    #[test]
    fn thoughts_are_kept_apart_and_unknown_parts_say_nothing() {
        let parts = json!([
            {"text": "I should.", "thought": true},
            {"text": "so "},
            {"executableCode": {"code": "1"}},
            {"text": "it is", "thoughtSignature": "s"},
        ]);
        let answer = read(&said(&parts)).expect("it says something");
        assert_eq!((answer.reasoning.as_deref(), &*answer.text), (Some("I should."), "so it is"));
        assert_eq!(answer.provider, None);
    }

    #[test]
    fn each_call_comes_whole_whatever_its_id_and_name() {
        let call = |call: Value| json!({"functionCall": call});
        let parts = json!([
            {"functionCall": {"id": "g1", "name": "read", "args": {"p": 1}}, "thoughtSignature": "s"},
            call(json!({"id": "g1", "name": "read", "args": {"p": 2}})),
            call(json!({"name": "read"})),
            call(json!({"name": "read", "args": null})),
            call(json!({"name": "read", "args": "p=1"})),
        ]);
        let answer = read(&said(&parts)).expect("it says something");
        let calls: Vec<_> =
            answer.tool_calls.iter().map(|call| (&*call.id, call.arguments.clone())).collect();
        let expected = [
            ("g1", json!({"p": 1})),
            ("call-7-2", json!({"p": 2})),
            ("call-7-3", json!({})),
            ("call-7-4", json!({})),
            ("call-7-5", json!("p=1")),
        ];
        assert_eq!(calls, expected);
        let kept = Kept::of(answer.provider.as_ref(), "gemini").tool_calls;
        assert_eq!(Value::from(kept[0].clone()), json!({"id": "g1", "thoughtSignature": "s"}));
    }

    #[test]
    fn a_list_of_chunks_is_a_reply_and_other_candidates_are_none() {
        let other = json!({"index": 1, "content": {"parts": [{"text": "other"}]}});
        let half =
            |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}, other]});
        let answer = read(&json!([half("hel"), half("lo")])).expect("it says something");
        assert_eq!(answer, Answer::text("hello"));
    }

    #[test]
    fn a_prompt_that_is_blocked_has_no_answer() {
        let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
        let failure = read(&blocked).expect_err("it is blocked");
        assert!(failure.text.contains("`PROHIBITED_CONTENT`"), "{}", failure.text);
    }

    #[test]
    fn buckets_do_not_overlap_and_thinking_is_output() {
        let mut total = Reported::default();
        for usage in [
            json!({"promptTokenCount": 1000, "totalTokenCount": 1000}),
            json!({"promptTokenCount": 1000, "thoughtsTokenCount": 30}),
            json!({
                "promptTokenCount": 1000, "cachedContentTokenCount": 900,
                "toolUsePromptTokenCount": 5, "candidatesTokenCount": 10, "thoughtsTokenCount": 30,
                "totalTokenCount": 1045
            }),
        ] {
            total.update(reported(&usage));
        }
        let usage = total.usage(400, 80);
        assert_eq!(
            usage.tokens,
            Tokens { input: 105, cached: 900, output: 40, ..Tokens::default() }
        );
        assert_eq!((usage.tokens.total(), usage.estimated), (1045, false));
    }
}
