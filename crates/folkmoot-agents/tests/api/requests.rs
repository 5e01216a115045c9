//! Requests of whole runs as they go over the wire, pinned byte for byte: what a provider has in its
//! cache it has because nothing in them moves.
//!
//! `UPDATE_EXPECT=1 cargo test` rewrites the files in `requests`; a difference in one costs every
//! conversation of every user its cache once.

use std::sync::Arc;

use async_trait::async_trait;
use expect_test::expect_file;
use folkmoot_core::{
    call::{Answer, Usage},
    limits::Limits,
    programs::{Broadcast, Clocks},
    spec::{Collaboration, Mail, Spec},
    team::{Agent, Fallback, Model, Target, Team},
};
use folkmoot_runtime::{
    backend::Response,
    driver::Unobserved,
    engine::Engine,
    store::MemoryStore,
    tools::{ToolRequest, Toolbox},
};
use folkmoot_stub::{Completion, Received, Reply, Stub, Wire};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{asking::agents, protocols::PROTOCOLS};

fn member(name: &str, prompt: &str, provider: &str) -> Agent {
    let target = Target::Model(Model::new(provider, "stub"));
    Agent { prompt: Some(prompt.into()), ..Agent::new(name, target) }
}

/// Everybody is asked one after the other, in each of `rounds` rounds.
fn spec(task: &str, agents: Vec<Agent>, rounds: u32) -> Spec {
    let ids = agents.iter().map(|agent| agent.id.clone()).collect();
    let broadcast = Broadcast { agents: ids, rounds, clocks: Clocks::default() };
    Spec {
        team: Team::new("team", agents),
        task: task.into(),
        collaboration: Collaboration::Broadcast(broadcast),
        auto: None,
        limits: Limits { concurrency: Some(1), ..Limits::default() },
        workspace: None,
        warnings: Vec::new(),
        recipe: None,
        mail: Mail::Unknown,
    }
}

/// A tool that finds something, whatever it is.
struct Finds;

#[async_trait]
impl Toolbox for Finds {
    async fn call(&self, request: ToolRequest) -> Response {
        let text = format!("1: found {}", request.call.arguments["path"]);
        Response { outcome: Ok(Answer::text(text).into()), usage: Usage::default() }
    }
}

/// The requests of a run whose providers give `replies` in turn.
async fn requests(spec: Spec, replies: Vec<Reply>) -> Vec<Received> {
    let stub = Stub::start(replies);
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::new(store, Arc::new(agents(&stub)), Arc::new(Finds), "test");
    let driver = engine.start(Arc::new(spec)).await.expect("it starts");
    driver.drive(Arc::new(Unobserved), CancellationToken::new()).await.expect("it ends");
    stub.seen().requests
}

fn bodies(requests: &[Received]) -> Vec<String> {
    let text = |it: &Received| String::from_utf8(it.bytes.clone()).expect("it is JSON");
    requests.iter().map(text).collect()
}

/// Compares the bodies of requests, one a line, with a file.
fn check(name: &str, bodies: &[String]) {
    expect_file![format!("requests/{name}.jsonl")].assert_eq(&(bodies.join("\n") + "\n"));
}

fn name_of(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "chat",
        Wire::Messages => "messages",
        Wire::Gemini => "gemini",
    }
}

fn saying(text: &str, wire: Wire) -> Reply {
    Reply::stream(&Completion::text([text]).over(wire))
}

/// A reply that thinks, says something and wants to read two files.
fn wanting_tools(wire: Wire) -> Reply {
    let call =
        |id: &str, path: &str| (id.to_owned(), "file.read".to_owned(), json!({ "path": path }));
    let completion = Completion::text(["Let me see."]).over(wire);
    let finish = match wire {
        Wire::Chat => "tool_calls",
        Wire::Messages => "tool_use",
        Wire::Gemini => "STOP",
    };
    Reply::stream(&Completion {
        reasoning: Some("I should look.".to_owned()),
        signature: Some("c2lnbmVk".to_owned()),
        tool_calls: vec![call("c1", "a.txt"), call("c2", "研究.md")],
        finish: finish.to_owned(),
        ..completion
    })
}

/// What of a request is the conversation and all before it: what the next one begins with, but for
/// the marks of what is to be cached, which are no part of it.
fn conversation(body: &str, wire: Wire) -> String {
    let end = match wire {
        Wire::Chat | Wire::Messages => body.rfind("],\"stream\":true"),
        Wire::Gemini => body.rfind("]}"),
    };
    unmarked(&body[..end.expect("the messages end somewhere")])
}

fn unmarked(body: &str) -> String {
    body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
}

#[tokio::test]
async fn a_conversation_grows_at_its_end_and_nowhere_else() {
    for (wire, provider) in PROTOCOLS {
        let team = vec![
            member("writer", "You write.\nBriefly.", provider),
            member("critic", "You object.", provider),
        ];
        let replies = ["Draft 1.", "No.", "Draft \"2\".", "Still </no>.", "Draft 3.", "Yes."];
        let replies = replies.map(|text| saying(text, wire)).to_vec();
        let sent =
            bodies(&requests(spec("Write a line about tea & <time>.", team, 3), replies).await);
        check(&format!("{}-conversation", name_of(wire)), &sent);
        for (earlier, later) in sent.iter().zip(&sent[2..]) {
            let shared = conversation(earlier, wire);
            assert!(unmarked(later).starts_with(&shared), "{wire:?}\n{earlier}\n{later}");
        }
        // Where it matters to servers: up to the next request also the marks stay where they were.
        let end = sent[0].rfind("],\"stream\"").unwrap_or(sent[0].len() - 2);
        assert!(sent[2].starts_with(&sent[0][..end]), "{wire:?}");
    }
}

#[tokio::test]
async fn a_conversation_in_chinese_is_sent_as_it_is() {
    for (wire, provider) in PROTOCOLS {
        let team = vec![
            member("产品经理", "你从用户价值出发。", provider),
            member("怀疑者", "你主张稳妥。", provider),
        ];
        let replies = ["先做导出📤。", "风险：「权限」。", "同意。", "同意。"];
        let replies = replies.map(|text| saying(text, wire)).to_vec();
        let sent = bodies(&requests(spec("第三季度优先做哪个功能？", team, 2), replies).await);
        assert!(sent[2].contains("先做导出📤。") && !sent[2].contains("\\u"), "{}", sent[2]);
        check(&format!("{}-chinese", name_of(wire)), &sent);
    }
}

#[tokio::test]
async fn tools_and_what_goes_back_with_them_keep_their_place() {
    for (wire, provider) in PROTOCOLS {
        let mut reader = member("reader", "You read.", provider);
        reader.grants = vec!["file".into()];
        let replies = vec![wanting_tools(wire), saying("Both say it.", wire), saying("Yes.", wire)];
        let sent = bodies(&requests(spec("What do they say?", vec![reader], 2), replies).await);
        check(&format!("{}-tools", name_of(wire)), &sent);
        for pair in sent.windows(2) {
            let shared = conversation(&pair[0], wire);
            assert!(unmarked(&pair[1]).starts_with(&shared), "{wire:?}\n{}\n{}", pair[0], pair[1]);
        }
    }
}

#[tokio::test]
async fn after_a_failover_the_other_provider_gets_the_conversation_and_nothing_of_the_first_s_own()
{
    for (at, (wire, provider)) in PROTOCOLS.into_iter().enumerate() {
        let (wire_of_other, other) = PROTOCOLS[(at + 1) % PROTOCOLS.len()];
        let mut reader = member("reader", "You read.", provider);
        reader.grants = vec!["file".into()];
        let target = Target::Model(Model::new(other, "stub"));
        reader.fallbacks = vec![Fallback { number: 2, target }];
        let replies =
            vec![wanting_tools(wire), Reply::status(401), saying("Both say it.", wire_of_other)];
        let sent = requests(spec("What do they say?", vec![reader], 1), replies).await;
        let [first, failed, second] = &bodies(&sent)[..] else { panic!("{}", sent.len()) };
        assert!(unmarked(failed).starts_with(&conversation(first, wire)));
        for own in ["I should look.", "c2lnbmVk"] {
            assert!(!second.contains(own), "{provider} to {other}: {second}");
        }
        check(
            &format!("{}-after-{}", name_of(wire_of_other), name_of(wire)),
            std::slice::from_ref(second),
        );
    }
}

/// At most four marks; one at the end of the instructions, and the last at the end of all.
#[tokio::test]
async fn marks_for_the_cache_stand_where_the_next_request_finds_them_and_are_never_too_many() {
    let team = vec![
        member("writer", "You write.", "anthropic"),
        member("critic", "You object.", "anthropic"),
    ];
    let replies = vec![saying("Hm.", Wire::Messages)];
    let sent = requests(spec("Write.", team, 6), replies).await;
    assert_eq!(sent.len(), 12);
    let is_marked = |block: &Value| block.get("cache_control").is_some();
    for request in &sent {
        let of = |value: &Value| value.as_array().expect("it is a list").clone();
        let messages = of(&request.body["messages"]);
        let ends =
            messages.iter().map(|message| of(&message["content"]).last().is_some_and(is_marked));
        let ends: Vec<bool> = ends.collect();
        let marks = String::from_utf8_lossy(&request.bytes).matches("cache_control").count();
        assert_eq!(marks, 1 + ends.iter().filter(|it| **it).count(), "{ends:?}");
        assert!(marks <= 4 && is_marked(&request.body["system"][0]), "{ends:?}");
        assert_eq!(ends.last(), Some(&true));
        // So what the request before marked last is marked in this one too.
        assert!(ends.len() < 3 || ends[ends.len() - 3], "{ends:?}");
    }
}
