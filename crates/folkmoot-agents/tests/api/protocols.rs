//! What holds in every protocol, and what each says in its own words.

use std::sync::Mutex;

use folkmoot_core::{
    call::{Answer, FailureKind, Tokens, ToolCall},
    money::Money,
    render::{Message, Role},
};
use folkmoot_runtime::backend::{Backend, Request};
use folkmoot_stub::{Completion, Received, Reply, Stub, Wire};
use serde_json::{Value, json};

use crate::asking::{
    KEY, agents, answer, failure, message, perform, request_to, request_with_tools, shown_to,
};

/// Every protocol with a provider that speaks it.
pub(crate) const PROTOCOLS: [(Wire, &str); 3] =
    [(Wire::Chat, "openai"), (Wire::Messages, "anthropic"), (Wire::Gemini, "gemini")];

/// The reply that says `text` over each wire.
fn saying<'a>(text: impl IntoIterator<Item = &'a str>, wire: Wire) -> Completion {
    Completion::text(text).over(wire)
}

/// The word of `wire` for the end of a reply that wants tools.
fn wants_tools(wire: Wire) -> String {
    let word = match wire {
        Wire::Chat => "tool_calls",
        Wire::Messages => "tool_use",
        Wire::Gemini => "STOP",
    };
    word.to_owned()
}

/// How servers that speak `wire` put an error.
fn error(wire: Wire, status: u16, name: &str) -> Value {
    match wire {
        Wire::Chat => json!({"error": {"message": "no", "type": name, "code": null}}),
        Wire::Messages => json!({"type": "error", "error": {"type": name, "message": "no"}}),
        Wire::Gemini => json!({"error": {"code": status, "message": "no", "status": name}}),
    }
}

/// Whole replies of each protocol that say hello, the field that tells why they end set to `end`.
fn wholes(end: &Value) -> [(&'static str, Value); 4] {
    let candidate = |end: &Value| json!({"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": end}]});
    [
        ("openai", json!({"choices": [{"message": {"content": "hello"}, "finish_reason": end}]})),
        (
            "anthropic",
            json!({"type": "message", "content": [{"type": "text", "text": "hello"}], "stop_reason": end}),
        ),
        ("gemini", candidate(end)),
        ("gemini", json!([candidate(&Value::Null), candidate(end)])),
    ]
}

#[tokio::test]
async fn a_whole_reply_that_does_not_say_why_it_ends_is_a_failed_attempt() {
    for (provider, body) in wholes(&Value::Null).into_iter().chain(wholes(&json!(""))) {
        let stub = Stub::start([Reply::json(200, &body)]);
        let (kind, text) = failure(&perform(&stub, request_to(provider, 5)).await);
        assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Incomplete, 2), "{body}");
        assert!(text.contains("it does not say why it ends"), "{text}");
    }
    for (provider, body) in wholes(&json!("stop")) {
        let response =
            perform(&Stub::start([Reply::json(200, &body)]), request_to(provider, 0)).await;
        assert!(answer(&response).text.starts_with("hello"), "{body}");
    }
}

#[tokio::test]
async fn content_of_another_type_is_told_in_words_for_people() {
    let says = |content: Value| json!({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]});
    let candidate = json!([{"candidates": [{"content": {"parts": 42}, "finishReason": "STOP"}]}]);
    for (provider, body, expected) in [
        ("openai", says(json!(42)), "neither a text nor a list of parts"),
        ("openai", says(json!({"text": "hello"})), "neither a text nor a list of parts"),
        ("gemini", candidate, "invalid type: integer `42`, expected a sequence"),
    ] {
        let (kind, text) = failure(
            &perform(&Stub::start([Reply::json(200, &body)]), request_to(provider, 0)).await,
        );
        assert_eq!(kind, FailureKind::Protocol, "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn usage_that_cannot_be_is_not_believed() {
    for (wire, provider) in PROTOCOLS {
        let usage = match wire {
            Wire::Chat => json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}),
            Wire::Messages => json!({"input_tokens": u64::MAX, "output_tokens": 1_000_000_000}),
            Wire::Gemini => {
                json!({"promptTokenCount": u64::MAX, "candidatesTokenCount": 1_u64 << 40})
            }
        };
        let completion = Completion { usage: Some(usage), ..saying(["hello"], wire) };
        for reply in [Reply::stream(&completion), Reply::whole(&completion)] {
            let response = perform(&Stub::start([reply]), request_to(provider, 0)).await;
            let tokens = response.usage.tokens.total();
            assert!(response.usage.estimated && tokens < 1000, "{provider}: {tokens}");
        }
    }
}

#[tokio::test]
async fn a_request_goes_to_its_place_with_its_key() {
    for (wire, provider) in PROTOCOLS {
        let stub = Stub::start([Reply::stream(&saying(["hello"], wire))]);
        perform(&stub, request_to(provider, 0)).await;
        let seen = stub.seen().requests.remove(0);
        let (path, key) = match wire {
            Wire::Chat => ("/v1/chat/completions", "authorization"),
            Wire::Messages => ("/v1/messages", "x-api-key"),
            Wire::Gemini => ("/v1/models/stub:streamGenerateContent?alt=sse", "x-goog-api-key"),
        };
        assert_eq!(seen.line, format!("POST {path} HTTP/1.1"));
        let holds_key: Vec<_> =
            seen.headers.iter().filter(|(_, value)| value.contains(KEY)).collect();
        assert_eq!(holds_key.len(), 1, "{wire:?}");
        assert_eq!(holds_key[0].0, key);
        let version = (wire == Wire::Messages).then_some("2023-06-01");
        assert_eq!(seen.header("anthropic-version"), version);
        assert!(!String::from_utf8_lossy(&seen.bytes).contains("Content Writer"));
    }
}

#[tokio::test]
async fn a_reply_comes_in_pieces_with_its_usage_and_cost() {
    for (wire, provider) in PROTOCOLS {
        let usage = match wire {
            Wire::Chat => json!({
                "prompt_tokens": 1000, "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 600}
            }),
            Wire::Messages => json!({
                "input_tokens": 300, "cache_read_input_tokens": 600,
                "cache_creation_input_tokens": 100, "output_tokens": 100
            }),
            Wire::Gemini => json!({
                "promptTokenCount": 1000, "cachedContentTokenCount": 600,
                "candidatesTokenCount": 70, "thoughtsTokenCount": 30
            }),
        };
        let stub = Stub::start([Reply::stream(&Completion {
            reasoning: Some("They greet.".to_owned()),
            usage: Some(usage),
            ..saying(["Hello", ", 世界"], wire)
        })]);
        let shown = Mutex::new(Vec::new());
        let response = agents(&stub).perform(request_to(provider, 0), &shown_to(&shown)).await;
        let expected =
            Answer { reasoning: Some("They greet.".into()), ..Answer::text("Hello, 世界") };
        assert_eq!(*answer(&response), expected, "{wire:?}");
        let shown = shown.into_inner().expect("nothing panics in it");
        assert_eq!(shown, ["R:They greet.", "T:Hello", "T:, 世界"]);
        // Only one protocol tells what went into the cache.
        let cache_write = if wire == Wire::Messages { 100 } else { 0 };
        let tokens = Tokens { input: 400 - cache_write, cached: 600, cache_write, output: 100 };
        assert_eq!((response.usage.tokens, response.usage.estimated), (tokens, false), "{wire:?}");
        assert_eq!(response.usage.cost, Some(Money::from_usd(0.0022)));
    }
}

#[tokio::test]
async fn a_reply_is_the_same_streamed_and_whole() {
    for (wire, provider) in PROTOCOLS {
        let completion = Completion {
            reasoning: Some("I should look.".to_owned()),
            signature: Some("c2ln".to_owned()),
            tool_calls: vec![
                ("c1".to_owned(), "look".to_owned(), json!({"at": "研究", "deep": {"er": [1]}})),
                ("c2".to_owned(), "look".to_owned(), json!({})),
                (String::new(), "look".to_owned(), json!({"at": "b"})),
            ],
            finish: wants_tools(wire),
            ..saying(["Let ", "me see."], wire)
        };
        let stub = Stub::start([Reply::stream(&completion), Reply::whole(&completion)]);
        let streamed = perform(&stub, request_with_tools(provider)).await;
        let whole = perform(&stub, request_with_tools(provider)).await;
        assert_eq!(streamed, whole, "{wire:?}");
        let calls = &answer(&whole).tool_calls;
        let calls: Vec<_> = calls.iter().map(|it| (&*it.id, it.arguments["at"].as_str())).collect();
        let expected = [("c1", Some("研究")), ("c2", None), ("call-1-3", Some("b"))];
        assert_eq!(calls, expected, "{wire:?}");
        assert_eq!(
            whole.usage.tokens,
            Tokens { input: 10, output: 5, ..Tokens::default() },
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn only_the_end_that_the_protocol_names_is_the_end() {
    for (wire, provider) in PROTOCOLS {
        let frames = saying(["hel", "lo"], wire).frames();
        // The end stands in the last event; before it, `chat` and `messages` tell why.
        let is_enough = |count: usize| match wire {
            Wire::Chat => count >= frames.len() - 2,
            Wire::Messages => count >= frames.len() - 1,
            Wire::Gemini => count == frames.len(),
        };
        for count in 0..=frames.len() {
            let part = Reply::sse(frames[..count].iter().cloned());
            for reply in [part.clone(), part.clone().cut(), part.until_close()] {
                let stub = Stub::start([reply]);
                let response = perform(&stub, request_to(provider, 5)).await;
                if is_enough(count) {
                    assert_eq!(*answer(&response).text, *"hello", "{wire:?} {count}");
                } else {
                    let asked = stub.seen().requests.len();
                    let (kind, text) = failure(&response);
                    assert_eq!(
                        (kind, asked),
                        (FailureKind::Incomplete, 2),
                        "{wire:?} {count} {text}"
                    );
                    assert!(response.usage.estimated && response.usage.tokens.input > 0);
                }
            }
        }
        let stub = Stub::start([Reply::sse(frames).left_open()]);
        let response = perform(&stub, request_to(provider, 0)).await;
        assert_eq!(*answer(&response).text, *"hello", "{wire:?} left open");
    }
}

#[tokio::test]
async fn an_end_mark_of_another_protocol_proves_nothing() {
    for (wire, provider) in [(Wire::Messages, "anthropic"), (Wire::Gemini, "gemini")] {
        let mut frames = saying(["hel", "lo"], wire).frames();
        let done = "data: [DONE]\n\n".to_owned();
        let whole = [frames.clone(), vec![done.clone()]].concat();
        frames.truncate(2);
        frames.push(done);
        let stub = Stub::start([Reply::sse(frames), Reply::sse(whole)]);
        let response = perform(&stub, request_to(provider, 1)).await;
        assert_eq!(
            (&*answer(&response).text, stub.seen().requests.len()),
            ("hello", 2),
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn permanent_refusals_get_one_request() {
    use FailureKind::{Auth, Config, NotFound, Unsupported};
    for (wire, provider) in PROTOCOLS {
        for (status, name, kind) in [
            (400, "invalid_request_error", Config),
            (401, "authentication_error", Auth),
            (402, "billing_error", Auth),
            (403, "permission_error", Auth),
            (404, "not_found_error", NotFound),
            (413, "request_too_large", Unsupported),
        ] {
            let stub = Stub::start([Reply::json(status, &error(wire, status, name))]);
            let (got, text) = failure(&perform(&stub, request_to(provider, 5)).await);
            assert_eq!((got, stub.seen().requests.len()), (kind, 1), "{wire:?} {text}");
            assert!(text.starts_with(&format!("{provider}/stub: {status} ")), "{text}");
            assert!(text.contains(&format!("{name}: no")), "{text}");
        }
    }
}

#[tokio::test]
async fn passing_refusals_are_tried_again() {
    for (wire, provider) in PROTOCOLS {
        for (status, name) in [
            (429, "rate_limit_error"),
            (500, "api_error"),
            (503, "UNAVAILABLE"),
            (504, "timeout_error"),
            (529, "overloaded_error"),
        ] {
            let refusal = Reply::json(status, &error(wire, status, name));
            let stub =
                Stub::start([refusal.clone(), refusal, Reply::stream(&saying(["ok"], wire))]);
            let response = perform(&stub, request_to(provider, 2)).await;
            assert_eq!(*answer(&response).text, *"ok", "{wire:?} {status}");
            assert_eq!(stub.seen().requests.len(), 3, "{wire:?} {status}");
        }
    }
}

#[tokio::test]
async fn a_wait_that_a_body_asks_for_is_obeyed_or_told() {
    let mut refusal = error(Wire::Gemini, 429, "RESOURCE_EXHAUSTED");
    refusal["error"]["details"] = json!([{"retryDelay": "86400s"}]);
    let stub = Stub::start([Reply::json(429, &refusal)]);
    let (kind, text) = failure(&perform(&stub, request_to("gemini", 5)).await);
    assert_eq!((kind, stub.seen().requests.len()), (FailureKind::RateLimited, 1));
    assert!(text.contains("86400 s"), "{text}");
}

#[tokio::test]
async fn success_proves_nothing_where_the_body_tells_of_an_error() {
    for (wire, provider) in PROTOCOLS {
        let frames = saying(["so far ", "so good"], wire).frames();
        let (before, after) = frames.split_at(frames.len() / 2);
        for (status, name, kind) in [
            (429, "rate_limit_error", FailureKind::RateLimited),
            (529, "overloaded_error", FailureKind::Transport),
        ] {
            let error = error(wire, status, name);
            let frame = format!("data: {error}\n\n");
            let named = format!("event: error\n{frame}");
            for broken in [
                Reply::json(200, &error),
                Reply::json(200, &json!([error])),
                Reply::sse([frame.clone()]),
                Reply::sse([before, &[frame], after].concat()),
                Reply::sse([before, &[named], after].concat()),
            ] {
                let right = Reply::stream(&saying(["right"], wire));
                let stub = Stub::start([broken.clone(), right]);
                let response = perform(&stub, request_to(provider, 1)).await;
                assert_eq!(*answer(&response).text, *"right", "{wire:?} {error}");

                let stub = Stub::start([broken]);
                let (got, text) = failure(&perform(&stub, request_to(provider, 0)).await);
                assert_eq!(got, kind, "{wire:?} {text}");
                assert!(text.contains(name), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_malformed_event_fails_the_attempt_and_is_tried_once_more() {
    for (wire, provider) in PROTOCOLS {
        let frames = saying(["hel", "lo"], wire).frames();
        for bad in ["data: {oops\n\n", "data: 12\n\n", "data: \"hel\"\n\n"] {
            let stream = [&frames[..2], &[bad.to_owned()], &frames[2..]].concat();
            let stub = Stub::start([Reply::sse(stream)]);
            let (kind, text) = failure(&perform(&stub, request_to(provider, 5)).await);
            assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Protocol, 2), "{wire:?}");
            assert!(text.contains("malformed stream"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_did_not_come_to_its_end_is_no_answer() {
    use FailureKind::{Incomplete, Other, Protocol};
    let ends = [
        (Wire::Chat, "length", Incomplete),
        (Wire::Chat, "content_filter", Other),
        (Wire::Messages, "max_tokens", Incomplete),
        (Wire::Messages, "model_context_window_exceeded", Incomplete),
        (Wire::Messages, "pause_turn", Incomplete),
        (Wire::Messages, "refusal", Other),
        (Wire::Gemini, "MAX_TOKENS", Incomplete),
        (Wire::Gemini, "SAFETY", Other),
        (Wire::Gemini, "RECITATION", Other),
        (Wire::Gemini, "PROHIBITED_CONTENT", Other),
        (Wire::Gemini, "MALFORMED_FUNCTION_CALL", Protocol),
    ];
    for (wire, end, kind) in ends {
        let (_, provider) = PROTOCOLS.into_iter().find(|(it, _)| *it == wire).expect("it is one");
        let completion = Completion { finish: end.to_owned(), ..saying(["half of it"], wire) };
        for reply in [Reply::stream(&completion), Reply::whole(&completion)] {
            let stub = Stub::start([reply]);
            let response = perform(&stub, request_to(provider, 5)).await;
            let (got, text) = failure(&response);
            let requests = if kind == Other { 1 } else { 2 };
            assert_eq!((got, stub.seen().requests.len()), (kind, requests), "{wire:?} {text}");
            assert!(text.contains(&format!("`{end}`")), "{text}");
            assert_eq!(response.usage.tokens.output, 5 * requests as u64, "{wire:?} {text}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_says_nothing_is_no_answer() {
    for (wire, provider) in PROTOCOLS {
        for (text, reasoning, word) in [("", None, "empty"), (" \n", Some("hm"), "reasoning")] {
            let completion =
                Completion { reasoning: reasoning.map(str::to_owned), ..saying([text], wire) };
            for reply in [Reply::stream(&completion), Reply::whole(&completion)] {
                let stub = Stub::start([reply]);
                let (kind, text) = failure(&perform(&stub, request_to(provider, 5)).await);
                let requests = stub.seen().requests.len();
                assert_eq!((kind, requests), (FailureKind::Incomplete, 2), "{wire:?} {text}");
                assert!(text.contains(word), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn usage_that_is_missing_is_estimated() {
    for (wire, provider) in PROTOCOLS {
        let completion = Completion { usage: None, ..saying(["hello hello hello"], wire) };
        let stub = Stub::start([Reply::stream(&completion)]);
        let usage = perform(&stub, request_to(provider, 0)).await.usage;
        assert!(usage.estimated && usage.cost > Some(Money(0)), "{wire:?}");
        assert!(usage.tokens.input > 20 && usage.tokens.output == 5, "{wire:?} {usage:?}");
    }
}

#[tokio::test]
async fn what_a_model_without_tools_asks_of_them_is_dropped_and_alone_no_reply() {
    for (wire, provider) in PROTOCOLS {
        let wants = |text: &[&str]| Completion {
            tool_calls: vec![("c1".to_owned(), "look".to_owned(), json!({}))],
            finish: wants_tools(wire),
            ..saying(text.iter().copied(), wire)
        };
        let stub = Stub::start([Reply::stream(&wants(&["It is 4."]))]);
        let response = perform(&stub, request_to(provider, 0)).await;
        let said = answer(&response);
        assert_eq!((&*said.text, &*said.tool_calls, &said.provider), ("It is 4.", &[][..], &None));

        let again = [wants(&[]), saying(["It is 4."], wire)].map(|it| Reply::stream(&it));
        let stub = Stub::start(again);
        let response = perform(&stub, request_to(provider, 1)).await;
        assert_eq!(&*answer(&response).text, "It is 4.", "{wire:?}");

        let stub = Stub::start([Reply::stream(&wants(&[]))]);
        let (kind, text) = failure(&perform(&stub, request_to(provider, 0)).await);
        assert_eq!(kind, FailureKind::Protocol, "{wire:?}");
        assert!(text.ends_with("the model has no tools and asked for `look`"), "{text}");
    }
}

#[tokio::test]
async fn tools_that_may_not_be_asked_for_are_shown_and_forbidden_and_what_is_asked_all_the_same_is_dropped()
 {
    for (wire, provider) in PROTOCOLS {
        let wants = Completion {
            tool_calls: vec![("c1".to_owned(), "look".to_owned(), json!({}))],
            finish: wants_tools(wire),
            ..saying(["It is 4."], wire)
        };
        let stub = Stub::start([Reply::stream(&wants)]);
        let request = Request { without_tools: true, ..request_with_tools(provider) };
        let response = perform(&stub, request).await;
        assert!(answer(&response).tool_calls.is_empty(), "{wire:?}");
        let body = &stub.seen().requests[0].body;
        let choice = match wire {
            Wire::Chat => body["tool_choice"] == "none",
            Wire::Messages => body["tool_choice"] == json!({ "type": "none" }),
            Wire::Gemini => body["toolConfig"]["functionCallingConfig"]["mode"] == "NONE",
        };
        assert!(choice && body["tools"].is_array(), "{wire:?}: {body}");
    }
}

#[tokio::test]
async fn a_provider_gets_back_what_it_wants_with_its_tool_calls_and_no_other_does() {
    let returned = |wire: Wire, request: &Received| match wire {
        Wire::Chat => request.body["messages"][2]["reasoning_content"].clone(),
        Wire::Messages => request.body["messages"][1]["content"][0]["signature"].clone(),
        Wire::Gemini => request.body["contents"][1]["parts"][0]["thoughtSignature"].clone(),
    };
    for (wire, provider) in PROTOCOLS {
        let first = Completion {
            reasoning: Some("I should look.".to_owned()),
            signature: Some("s1".to_owned()),
            tool_calls: vec![("c1".to_owned(), "look".to_owned(), json!({}))],
            finish: wants_tools(wire),
            ..saying([], wire)
        };
        let stub = Stub::start([Reply::stream(&first)]);
        let response = perform(&stub, request_with_tools(provider)).await;
        let said = answer(&response);
        // As a restart finds it: read back from a log.
        let kept = said.provider.as_ref().expect("there is something to keep").to_string();
        for (wire_of_other, other) in PROTOCOLS {
            let mut request = request_to(other, 0);
            request.messages.push(Message {
                tool_calls: said.tool_calls.clone(),
                provider: Some(kept.parse().expect("it is JSON")),
                ..message(Role::Assistant, &said.text)
            });
            request.messages.push(Message {
                tool_call_id: Some(said.tool_calls[0].id.clone()),
                ..message(Role::Tool, "empty")
            });
            let stub = Stub::start([Reply::status(400)]);
            perform(&stub, request).await;
            let request = stub.seen().requests.remove(0);
            let expected = match (wire, other == provider, wire_of_other) {
                (Wire::Chat, true, _) => json!("I should look."),
                (Wire::Messages | Wire::Gemini, true, _) => json!("s1"),
                (_, false, Wire::Gemini) => json!("skip_thought_signature_validator"),
                (_, false, Wire::Chat | Wire::Messages) => Value::Null,
            };
            assert_eq!(returned(wire_of_other, &request), expected, "{provider} to {other}");
        }
    }
}

/// Who speaks in the turns of a request, and how much each says; no word of the instructions.
fn spoken(wire: Wire, body: &Value) -> Vec<(String, usize)> {
    let (turns, parts) = match wire {
        Wire::Chat | Wire::Messages => (&body["messages"], "content"),
        Wire::Gemini => (&body["contents"], "parts"),
    };
    let said = |part: &Value| match part.get("text").map_or(part, |text| text) {
        Value::String(text) => text.trim().len(),
        other => other.to_string().len(),
    };
    let least = |turn: &Value| match &turn[parts] {
        Value::Array(parts) => parts.iter().map(said).min().unwrap_or(0),
        text => said(text),
    };
    let turns = turns.as_array().expect("there are some").iter();
    let turns =
        turns.map(|turn| (turn["role"].as_str().unwrap_or_default().to_owned(), least(turn)));
    turns.filter(|(role, _)| role != "system").collect()
}

/// A conversation of four messages, the `shape`th of all there are.
fn conversation(shape: usize) -> Vec<Message> {
    let call = |at: usize| ToolCall {
        id: format!("c{at}").into(),
        name: "look".into(),
        arguments: json!({}),
    };
    let mut messages = Vec::new();
    for at in 0..4 {
        let content = if (shape + at).is_multiple_of(4) { " " } else { "said" };
        match shape / 4_usize.pow(at as u32) % 4 {
            0 => messages.push(message(Role::System, content)),
            1 => messages.push(message(Role::User, content)),
            2 => messages.push(message(Role::Assistant, content)),
            _ => {
                let calls = vec![call(at), call(at + 10)];
                let results = [at, at + 10].map(|id| Message {
                    tool_call_id: Some(format!("c{id}").into()),
                    ..message(Role::Tool, content)
                });
                messages.push(Message { tool_calls: calls, ..message(Role::Assistant, content) });
                messages.extend(results);
            }
        }
    }
    messages
}

#[tokio::test]
async fn every_conversation_suits_the_strictest_server() {
    for (wire, provider) in PROTOCOLS {
        let model = if wire == Wire::Gemini { "model" } else { "assistant" };
        let stub = Stub::start([Reply::status(400)]);
        let agents = agents(&stub);
        for shape in 0..4_usize.pow(4) {
            let request = Request { messages: conversation(shape), ..request_to(provider, 0) };
            agents.perform(request, &|_| {}).await;
        }
        for (shape, request) in stub.seen().requests.iter().enumerate() {
            let turns = spoken(wire, &request.body);
            let roles: Vec<_> = turns.iter().map(|(role, _)| &**role).collect();
            let repeats = |pair: &[&str]| pair[0] == pair[1] && pair[0] != "tool";
            assert!(!roles.windows(2).any(repeats), "{wire:?} {shape} {roles:?}");
            assert_eq!(roles[0], "user", "{wire:?} {shape} {roles:?}");
            assert_ne!(roles[roles.len() - 1], model, "{wire:?} {shape} {roles:?}");
            let is_full =
                |(role, said): &(String, usize)| *said > 0 || wire == Wire::Chat && role == model;
            assert!(turns.iter().all(is_full), "{wire:?} {shape} {}", request.body);
        }
        assert_eq!(stub.seen().requests.len(), 256);
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_masked() {
    for (wire, provider) in PROTOCOLS {
        let mut error = error(wire, 401, "authentication_error");
        error["error"]["message"] = json!(format!("Incorrect API key: {KEY}"));
        for reply in [Reply::json(401, &error), Reply::events([error.to_string()])] {
            let (_, text) = failure(&perform(&Stub::start([reply]), request_to(provider, 0)).await);
            assert!(text.contains("Incorrect API key: ***") && !text.contains(KEY), "{text}");
        }
    }
}

#[tokio::test]
async fn a_bound_is_sent_in_the_words_of_the_protocol() {
    for (wire, provider) in PROTOCOLS {
        let stub = Stub::start([Reply::status(400)]);
        for bound in [Some(300), None] {
            let request = Request { max_output_tokens: bound, ..request_to(provider, 0) };
            perform(&stub, request).await;
        }
        let at = match wire {
            Wire::Chat => "/max_completion_tokens",
            Wire::Messages => "/max_tokens",
            Wire::Gemini => "/generationConfig/maxOutputTokens",
        };
        let requests = stub.seen().requests;
        let sent: Vec<_> = requests.iter().map(|it| it.body.pointer(at).cloned()).collect();
        let usual = (wire == Wire::Messages).then(|| json!(8192));
        assert_eq!(sent, [Some(json!(300)), usual], "{wire:?}");
    }
}
