//! The protocol `chat`, and what all protocols share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use folkmoot_agents::{Agents, Patience, ProviderConfig, Providers};
use folkmoot_core::{
    call::{FailureKind, Tokens, Usage},
    money::Money,
    render::{Message, Role},
    team::Target,
};
use folkmoot_runtime::backend::{Backend, Request};
use folkmoot_stub::{Completion, Door, Reply, Stub};
use serde_json::{Value, json};

use crate::asking::{
    KEY, agents, agents_with, answer, ask, failure, message, perform, request, request_with_tools,
    shown_to,
};

#[tokio::test]
async fn a_streamed_reply_comes_in_pieces_with_its_usage_and_cost() {
    let completion = Completion {
        reasoning: Some("They greet.".to_owned()),
        usage: Some(json!({
            "prompt_tokens": 1000, "completion_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": 600}
        })),
        ..Completion::text(["Hello", ", 世界"])
    };
    let stub = Stub::start([Reply::stream(&completion)]);
    let shown = Mutex::new(Vec::new());
    let response = agents(&stub).perform(request(0), &shown_to(&shown)).await;

    assert_eq!(*answer(&response).text, *"Hello, 世界");
    assert_eq!(answer(&response).reasoning.as_deref(), Some("They greet."));
    assert_eq!(answer(&response).provider, None);
    let shown = shown.into_inner().expect("nothing panics in it");
    assert_eq!(shown, ["R:They greet.", "T:Hello", "T:, 世界"]);
    let tokens = Tokens { input: 400, cached: 600, output: 100, ..Tokens::default() };
    let cost = Some(Money::from_usd(0.0022));
    assert_eq!(response.usage, Usage { tokens, cost, estimated: false });
}

#[tokio::test]
async fn a_request_carries_the_key_and_asks_for_usage() {
    let stub = Stub::start([Reply::text("hello")]);
    ask(&stub, 0).await;
    let seen = stub.seen().requests.remove(0);
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-very-secret"));
    assert!(seen.header("user-agent").expect("it has one").starts_with("folkmoot/"));
    assert_eq!(seen.body["stream_options"], json!({"include_usage": true}));
    assert!(!String::from_utf8_lossy(&seen.bytes).contains("Content Writer"));
}

#[tokio::test]
async fn the_bound_of_the_call_wins() {
    let stub = Stub::start([Reply::text("hello")]);
    for (of_call, of_model, sent) in
        [(Some(20), Some(50), json!(20)), (None, Some(50), json!(50)), (None, None, json!(null))]
    {
        let mut request = Request { max_output_tokens: of_call, ..request(0) };
        let agent = Arc::make_mut(&mut request.agent);
        let Target::Model(model) = &mut agent.target else { panic!("it is a model") };
        model.max_output_tokens = of_model;
        perform(&stub, request).await;
        let body = stub.seen().requests.pop().expect("it was asked").body;
        assert_eq!(body["max_completion_tokens"], sent);
    }
}

#[tokio::test]
async fn a_provider_can_be_spared_the_stream_options_and_given_headers() {
    let stub = Stub::start([Reply::text("hello")]);
    let config = ProviderConfig {
        stream_usage: Some(false),
        headers: BTreeMap::from([("X-Team".to_owned(), "red".to_owned())]),
        ..ProviderConfig::default()
    };
    let agents = agents_with(&stub, Patience::default(), config);
    agents.perform(request(0), &|_| {}).await;
    let seen = stub.seen().requests.remove(0);
    assert_eq!(seen.body.get("stream_options"), None);
    assert_eq!(seen.header("x-team"), Some("red"));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_too() {
    let tool_calls = vec![("c1".to_owned(), "look".to_owned(), json!({"at": "a"}))];
    let completion = Completion { tool_calls, ..Completion::text(["hello"]) };
    let stub = Stub::start([Reply::whole(&completion)]);
    let response = perform(&stub, request_with_tools("openai")).await;
    assert_eq!(*answer(&response).text, *"hello");
    assert_eq!(answer(&response).tool_calls[0].arguments, json!({"at": "a"}));
    assert_eq!(response.usage.tokens, Tokens { input: 10, output: 5, ..Tokens::default() });
}

#[tokio::test]
async fn a_reply_that_is_not_proven_complete_is_a_failed_attempt() {
    let mut half = Completion::text(["hel", "lo"]).events();
    half.truncate(3);
    for broken in [
        Reply::events(&half),
        Reply::events(&half).cut(),
        Reply::events(&half).until_close(),
        Reply::status(200).header("content-type", "text/event-stream"),
    ] {
        let stub = Stub::start([broken]);
        let response = ask(&stub, 5).await;
        let (kind, text) = failure(&response);
        assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Incomplete, 2), "{text}");
        assert!(text.ends_with("(after 2 attempts)"), "{text}");
        assert!(response.usage.estimated && response.usage.tokens.input > 0);
    }
}

#[tokio::test]
async fn nothing_of_a_failed_attempt_reaches_the_answer() {
    let half = Reply::events(&Completion::text(["wrong ", "lost"]).events()[..2]).cut();
    let stub = Stub::start([half, Reply::text("right")]);
    let shown = Mutex::new(Vec::new());
    let response = agents(&stub).perform(request(2), &shown_to(&shown)).await;
    assert_eq!(*answer(&response).text, *"right");
    let shown = shown.into_inner().expect("nothing panics in it");
    assert_eq!((&*shown[0], &*shown[2]), ("T:wrong ", "T:right"));
    assert!(shown[1].starts_with("!openai/stub: ") && shown[1].contains("attempt 2 of 3"));
    // The lost attempt is paid for.
    assert!(response.usage.tokens.input > 10 && response.usage.estimated);
}

#[tokio::test]
async fn an_end_mark_or_a_finish_reason_is_the_end_whatever_the_socket_does() {
    let whole = Completion::text(["hello"]).events();
    let without_done = &whole[..whole.len() - 1];
    let without_usage = &whole[..whole.len() - 2];
    for complete in [
        Reply::events(&whole).left_open(),
        Reply::events(&whole).cut(),
        Reply::events(without_done).left_open(),
        Reply::events(without_usage).until_close(),
        Reply::events(without_usage).cut(),
        Reply::events(without_usage).left_open(),
    ] {
        let stub = Stub::start([complete]);
        assert_eq!(*answer(&ask(&stub, 0).await).text, *"hello");
    }
}

#[tokio::test]
async fn usage_that_is_missing_is_estimated() {
    for usage in [None, Some(Value::Null), Some(json!({"prompt_tokens": null}))] {
        let stub = Stub::start([Reply::stream(&Completion {
            usage: usage.clone(),
            ..Completion::text(["hello hello hello"])
        })]);
        let usage_of = ask(&stub, 0).await.usage;
        assert!(usage_of.estimated && usage_of.cost > Some(Money(0)), "{usage:?}");
        assert!(usage_of.tokens.input > 20 && usage_of.tokens.output == 5, "{usage_of:?}");
    }
}

#[tokio::test]
async fn permanent_refusals_get_one_request_and_say_what_was_asked() {
    use FailureKind::{Auth, Config, NotFound, Unsupported};
    for (status, text, kind) in [
        (400, "This model's maximum context length is 8 tokens", Unsupported),
        (400, "", Config),
        (401, "who?", Auth),
        (404, "no such model", NotFound),
        (413, "", Unsupported),
        (422, "odd", Config),
        (429, "the request itself is too large", Unsupported),
    ] {
        let body = json!({"error": {"message": text}});
        let stub = Stub::start([Reply::json(status, &body)]);
        let response = ask(&stub, 5).await;
        let (got, words) = failure(&response);
        assert_eq!((got, stub.seen().requests.len()), (kind, 1), "{status} {text}");
        assert!(words.starts_with(&format!("openai/stub: {status} ")), "{words}");
        assert!(words.contains(text), "{words}");
        let tells_sizes = words.contains("the request has 2 messages, ");
        assert_eq!(tells_sizes, !matches!(status, 401 | 404), "{words}");
        assert_eq!(response.usage.tokens, Tokens::default());
    }
}

#[tokio::test]
async fn passing_refusals_are_tried_again_as_often_as_allowed() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        let stub = Stub::start([Reply::status(status), Reply::status(status), Reply::text("ok")]);
        assert_eq!(*answer(&ask(&stub, 2).await).text, *"ok", "{status}");
        assert_eq!(stub.seen().requests.len(), 3, "{status}");

        let stub = Stub::start([Reply::status(status)]);
        assert!(ask(&stub, 1).await.outcome.is_err());
        assert_eq!(stub.seen().requests.len(), 2, "{status}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_ends_the_call_and_is_told() {
    let stub = Stub::start([Reply::status(429).header("retry-after", "86400")]);
    let (kind, text) = failure(&ask(&stub, 5).await);
    assert_eq!((kind, stub.seen().requests.len()), (FailureKind::RateLimited, 1));
    assert!(text.contains("86400 s"), "{text}");
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_kept() {
    let stub = Stub::start([Reply::status(429).header("retry-after", "0.1"), Reply::text("ok")]);
    let start = std::time::Instant::now();
    assert_eq!(*answer(&ask(&stub, 1).await).text, *"ok");
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn success_proves_nothing_where_the_body_tells_of_an_error() {
    let error = json!({"error": {"message": "slow down", "code": 429}});
    let text = Completion::text(["so far "]).events();
    for broken in [
        Reply::json(200, &error),
        Reply::events([error.to_string()]),
        Reply::events([&*text[1], &*error.to_string(), &*text[2], "[DONE]"]),
        Reply::sse(["event: error\ndata: {\"code\": 429, \"message\": \"slow down\"}\n\n"]),
        Reply::json(
            200,
            &json!({"success": false, "errors": [{"code": 429, "message": "slow down"}]}),
        ),
        Reply::json(200, &error).header("content-type", "text/event-stream"),
    ] {
        let stub = Stub::start([broken]);
        let (kind, words) = failure(&ask(&stub, 1).await);
        assert_eq!((kind, stub.seen().requests.len()), (FailureKind::RateLimited, 2), "{words}");
        assert!(words.contains("slow down"), "{words}");
    }
}

#[tokio::test]
async fn a_cut_and_padded_line_fails_the_attempt_which_is_tried_again() {
    let long = "x".repeat(70_000);
    let line = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{long}\"}}}}]}}\n\n");
    let padded = format!("{}{}\n\n", &line[..65_536], " ".repeat(4466));
    let normal = Completion::text(["after all"]).events().join("\n\ndata: ");
    let stub = Stub::start([
        Reply::sse([padded, format!("data: {normal}\n\n")]),
        Reply::sse([line, format!("data: {normal}\n\n")]),
    ]);
    let response = ask(&stub, 2).await;
    assert_eq!(answer(&response).text.len(), 70_009);
    assert_eq!(stub.seen().requests.len(), 2);

    let stub = Stub::start([Reply::sse(["data: {oops\n\n"])]);
    let (kind, text) = failure(&ask(&stub, 5).await);
    assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Protocol, 2));
    assert!(text.contains("malformed stream"), "{text}");
}

#[tokio::test]
async fn a_reply_that_says_nothing_is_no_answer() {
    let with = |text: &'static str, finish: &str, reasoning: Option<&str>| Completion {
        finish: finish.to_owned(),
        reasoning: reasoning.map(str::to_owned),
        ..Completion::text([text])
    };
    for (completion, word) in [
        (with("", "length", Some("so far …")), "`length`"),
        (with("half of it", "length", None), "`length`"),
        (with("", "stop", None), "empty"),
        (with("  \n ", "stop", None), "empty"),
        (with("", "stop", Some("hm")), "reasoning"),
        (with("<think>hm</think>\n", "stop", None), "reasoning"),
        (with("<think>hm", "stop", None), "reasoning"),
    ] {
        for reply in [Reply::stream(&completion), Reply::whole(&completion)] {
            let stub = Stub::start([reply]);
            let response = ask(&stub, 5).await;
            let (kind, text) = failure(&response);
            assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Incomplete, 2), "{text}");
            assert!(text.contains(word), "{text}");
            assert_eq!(response.usage.tokens.output, 10, "both attempts count");
        }
    }
}

#[tokio::test]
async fn tagged_reasoning_stays_in_the_text() {
    let stub = Stub::start([Reply::text("<think>hm</think>hello")]);
    assert_eq!(*answer(&ask(&stub, 0).await).text, *"<think>hm</think>hello");
}

#[tokio::test]
async fn a_filtered_reply_is_not_asked_for_again() {
    let completion =
        Completion { finish: "content_filter".to_owned(), ..Completion::text(["I cannot"]) };
    let stub = Stub::start([Reply::stream(&completion)]);
    let (kind, text) = failure(&ask(&stub, 5).await);
    assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Other, 1));
    assert!(text.contains("filter"), "{text}");
}

#[tokio::test]
async fn a_thinking_provider_gets_its_reasoning_back_with_its_tool_calls() {
    let first = Completion {
        reasoning: Some("I should look.".to_owned()),
        tool_calls: vec![("c1".to_owned(), "look".to_owned(), json!({}))],
        finish: "tool_calls".to_owned(),
        ..Completion::text([])
    };
    let mut asked = 0;
    let stub = Stub::answering(move |request| {
        asked += 1;
        let messages = request.body["messages"].as_array().expect("there are some").iter();
        let mut own = messages.filter(|it| it.get("tool_calls").is_some());
        match (asked, own.all(|it| it["reasoning_content"] == "I should look.")) {
            (1, _) => Reply::stream(&first),
            (_, true) => Reply::text("nothing there"),
            (_, false) => Reply::status(400),
        }
    });
    let agents = agents(&stub);
    let response = agents.perform(request_with_tools("openai"), &|_| {}).await;
    let said = answer(&response);

    let mut request = request(0);
    // As a restart finds it: read back from a log.
    let provider = said.provider.as_ref().map(|it| it.to_string().parse().expect("it is JSON"));
    request.messages.push(Message {
        tool_calls: said.tool_calls.clone(),
        provider,
        ..message(Role::Assistant, &said.text)
    });
    request.messages.push(Message {
        tool_call_id: Some(said.tool_calls[0].id.clone()),
        ..message(Role::Tool, "empty")
    });
    let response = agents.perform(request, &|_| {}).await;
    assert_eq!(*answer(&response).text, *"nothing there");
}

#[tokio::test]
async fn every_conversation_suits_the_strictest_server() {
    let stub = Stub::answering(|request| {
        let messages = request.body["messages"].as_array().expect("there are some");
        let roles: Vec<_> = messages.iter().map(|it| it["role"].as_str()).collect();
        let spoken = &roles[usize::from(roles[0] == Some("system"))..];
        let alternates = spoken.windows(2).all(|pair| pair[0] != pair[1]);
        let is_framed = [spoken.first(), spoken.last()] == [Some(&Some("user")); 2];
        let is_full =
            messages.iter().all(|it| it["content"].as_str().is_some_and(|it| !it.is_empty()));
        Reply::json(if alternates && is_framed && is_full { 200 } else { 400 }, &json!({}))
    });
    let agents = agents(&stub);
    let roles = [Role::System, Role::User, Role::Assistant];
    for shape in 0..3_usize.pow(5) {
        let mut request = request(0);
        request.messages = (0..5)
            .map(|at| {
                let content = if (shape + at).is_multiple_of(4) { " " } else { "said" };
                message(roles[shape / 3_usize.pow(at as u32) % 3], content)
            })
            .collect();
        let (kind, text) = failure(&agents.perform(request, &|_| {}).await);
        // The stub's 200 says nothing, which is another failure than its 400.
        assert_eq!(kind, FailureKind::Incomplete, "{shape} {text}");
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_masked() {
    let body = json!({"error": {"message": format!("Incorrect API key: {KEY}")}});
    let stub = Stub::start([Reply::json(401, &body)]);
    let (_, text) = failure(&ask(&stub, 0).await);
    assert!(text.ends_with("Incorrect API key: ***"), "{text}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Stub::start([Reply::text("hello")]);
    let moved = Reply::status(307).header("location", &elsewhere.base_url());
    let stub = Stub::start([moved]);
    let (kind, text) = failure(&ask(&stub, 3).await);
    assert_eq!((kind, elsewhere.seen().connections), (FailureKind::Config, 0));
    assert!(text.contains(&elsewhere.base_url()), "{text}");
}

#[tokio::test]
async fn a_page_is_not_an_answer() {
    let page = Reply::status(200).header("content-type", "text/html; charset=utf-8").send("<html>");
    let (kind, text) = failure(&ask(&Stub::start([page]), 3).await);
    assert_eq!(kind, FailureKind::Config);
    assert!(text.contains("text/html"), "{text}");
}

#[tokio::test]
async fn a_reply_is_what_its_content_says_whatever_its_label() {
    let completion = Completion::text(["hel", "lo"]);
    let stream: String = completion.frames().concat();
    let whole = completion.whole().to_string();
    let marked = format!("\u{feff} \r\n{whole}");
    let labels =
        ["application/json", "text/event-stream; charset=utf-8", "text/plain", "text/html", ""];
    for label in labels {
        for body in
            [&stream, &format!(": hi\n\n{stream}"), &format!("\n\n{stream}"), &whole, &marked]
        {
            let labelled = Reply::status(200).header("content-type", label);
            // Also one byte a write, at least of the beginning.
            let (head, rest) = body.split_at(body.ceil_char_boundary(9));
            let head = head.bytes().map(|byte| vec![byte]);
            let pieces = head.chain([rest.as_bytes().to_vec()]);
            for reply in [labelled.clone().send(body.as_str()), pieces.fold(labelled, Reply::send)]
            {
                let response = ask(&Stub::start([reply]), 0).await;
                assert_eq!(*answer(&response).text, *"hello", "{label} {body}");
            }
        }
    }
    for (label, body, kind) in [
        ("application/json", "<!doctype html>", FailureKind::Config),
        ("", " \n<html>", FailureKind::Config),
        ("application/json", "upstream is gone", FailureKind::Protocol),
        ("application/json", "", FailureKind::Incomplete),
        ("text/plain", "upstream is gone", FailureKind::Incomplete),
        ("text/html", "Upstream is gone", FailureKind::Config),
        ("text/html", "data: {\"choices\": []}\n\n", FailureKind::Incomplete),
    ] {
        let reply = Reply::status(200).header("content-type", label).send(body);
        let (got, text) = failure(&ask(&Stub::start([reply]), 0).await);
        assert_eq!(got, kind, "{body} {text}");
    }
}

#[tokio::test]
async fn a_compressed_reply_is_refused_by_that_name() {
    let reply = Reply::text("hello").header("content-encoding", "gzip");
    let (kind, text) = failure(&ask(&Stub::start([reply]), 0).await);
    assert_eq!(kind, FailureKind::Protocol);
    assert!(text.contains("compressed (gzip)"), "{text}");
    let stub = Stub::start([Reply::text("hello").header("content-encoding", "identity")]);
    assert_eq!(*answer(&ask(&stub, 0).await).text, *"hello");
    assert_eq!(stub.seen().requests[0].header("accept-encoding"), None, "nobody asks for it");
}

#[tokio::test]
async fn a_server_may_ask_for_a_wait_in_several_words() {
    // The shorter wait shows which of them counts; the other would end the call.
    let both = Reply::status(429).header("retry-after", "86400").header("retry-after-ms", "20");
    let stub = Stub::start([both, Reply::text("ok")]);
    assert_eq!(*answer(&ask(&stub, 1).await).text, *"ok");
    for nothing in ["abc", "-5", "nan", "Wed, 21 Oct 1999 07:28:00 GMT", ""] {
        let odd = Reply::status(429).header("retry-after", nothing);
        let stub = Stub::start([odd.header("retry-after-ms", "soon"), Reply::text("ok")]);
        assert_eq!(*answer(&ask(&stub, 1).await).text, *"ok", "{nothing}");
    }
    let far = Reply::status(503).header("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT");
    let stub = Stub::start([far]);
    let (kind, text) = failure(&ask(&stub, 5).await);
    assert_eq!((kind, stub.seen().requests.len()), (FailureKind::Transport, 1));
    assert!(text.contains("it asks to wait"), "{text}");
}

#[tokio::test]
async fn usage_may_come_in_pieces_in_parts_and_as_a_running_total() {
    let chunk = |usage: Value| {
        let choices = json!([{ "index": 0, "delta": { "content": "x" } }]);
        json!({ "choices": choices, "usage": usage }).to_string()
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let report = |read: Value, written: Value| json!({ "prompt_tokens": read, "completion_tokens": written });
    for (reports, expected) in [
        (vec![report(json!(10), json!(1)), report(json!(10), json!(2))], Some((10, 2))),
        (vec![report(json!(10), json!(null)), report(json!(null), json!(2))], Some((10, 2))),
        (vec![report(json!(10), json!(2)), report(json!(0), json!(0))], Some((10, 2))),
        (vec![json!(null), json!({}), json!([]), json!("much")], None),
        (vec![report(json!("10"), json!(-2))], None),
    ] {
        let events = reports.iter().cloned().map(chunk);
        let events = events.chain([end.to_string(), "[DONE]".to_owned()]);
        let usage = ask(&Stub::start([Reply::events(events)]), 0).await.usage;
        let exact = (!usage.estimated).then_some((usage.tokens.input, usage.tokens.output));
        assert_eq!(exact, expected, "{reports:?}");
        assert!(usage.tokens.input > 0 && usage.tokens.output > 0, "{reports:?}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_a_failure_of_transport() {
    let stub = Stub::start([]);
    let agents = agents(&stub);
    let base_url = stub.base_url();
    drop(stub);
    // The port may take a moment to become free.
    while tokio::net::TcpStream::connect(&base_url[7..base_url.len() - 3]).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let response = agents.perform(request(1), &|_| {}).await;
    let (kind, text) = failure(&response);
    assert_eq!(
        (kind, response.usage.tokens),
        (FailureKind::Transport, Tokens::default()),
        "{text}"
    );
    assert!(!text.contains("/v1") && text.ends_with("(after 2 attempts)"), "{text}");
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let brief = Duration::from_millis(30);
    let patience = Patience { first_byte: brief, idle: brief, ..Patience::default() };
    let half = Reply::events(&Completion::text(["hel"]).events()[..2]);
    for silent in [half.left_open(), Reply::text("late").behind(&Door::closed())] {
        let stub = Stub::start([silent]);
        let agents = agents_with(&stub, patience, ProviderConfig::default());
        let response = agents.perform(request(0), &|_| {}).await;
        assert_eq!(failure(&response).0, FailureKind::Timeout);
        assert!(response.usage.estimated && response.usage.tokens.input > 0);
        stub.until(|seen| seen.hung_up == 1).await;
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection_wherever_it_stands() {
    let door = Door::closed();
    let events = Completion::text(["hel", "lo"]).events();
    let first = &events[..2];
    for reply in [
        Reply::text("late").behind(&door),
        Reply::sse([""]).wait_for(&door),
        Reply::events(first).wait_for(&door),
    ] {
        let stub = Stub::start([reply, Reply::text("again")]);
        let agents = agents(&stub);
        tokio::select! {
            _ = agents.perform(request(3), &|_| {}) => panic!("the door is closed"),
            () = stub.until(|seen| seen.under_way == 1) => {}
        }
        stub.until(|seen| seen.hung_up == 1).await;
        assert_eq!(stub.seen().requests.len(), 1);
        let response = agents.perform(request(0), &|_| {}).await;
        assert_eq!(*answer(&response).text, *"again", "the provider stays usable");
    }
}

#[tokio::test]
async fn calls_one_after_the_other_share_their_connections() {
    let stub = Stub::start([Reply::text("hello")]);
    let agents = agents(&stub);
    for _ in 0..20 {
        assert!(agents.perform(request(0), &|_| {}).await.outcome.is_ok());
    }
    // On a busy machine the end of a body may come too late to save its connection.
    assert!(stub.seen().requests.len() == 20 && stub.seen().connections < 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once_are_answered_each_with_its_own_words() {
    let door = Door::closed();
    let behind = door.clone();
    let stub = Stub::answering(move |request| {
        let task = request.body["messages"][1]["content"].as_str().expect("there is a task");
        Reply::text(task).behind(&behind)
    });
    let agents = Arc::new(agents(&stub));
    let calls = (0..1000).map(|number: u32| {
        let agents = agents.clone();
        let mut request = request(0);
        request.messages[1] = message(Role::User, &number.to_string());
        tokio::spawn(async move { agents.perform(request, &|_| {}).await })
    });
    let calls: Vec<_> = calls.collect();
    stub.until(|seen| seen.under_way == 1000).await;
    door.open();
    for (number, call) in calls.into_iter().enumerate() {
        let response = call.await.expect("no call panics");
        assert_eq!(*answer(&response).text, *number.to_string());
    }
}

#[tokio::test]
async fn an_unusable_provider_is_a_fault_of_its_kind() {
    let agents = Agents::new(Providers::new(&BTreeMap::new(), &|_| None));
    for (provider, kind) in [
        ("openai", FailureKind::Auth),
        ("anthropic", FailureKind::Auth),
        ("opnai", FailureKind::Config),
    ] {
        let mut request = request(3);
        let agent = Arc::make_mut(&mut request.agent);
        let Target::Model(model) = &mut agent.target else { panic!("it is a model") };
        model.provider = provider.into();
        let response = agents.perform(request, &|_| {}).await;
        assert_eq!((failure(&response).0, response.usage), (kind, Usage::default()));
    }
}
