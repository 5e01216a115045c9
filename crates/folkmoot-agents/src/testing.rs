//! What the tests of this crate share.

use std::sync::{Arc, Mutex};

use folkmoot_core::{
    call::ToolCall,
    key::Key,
    render::{Message, Role},
    team::{Agent, Model, Target},
};
use folkmoot_runtime::{
    backend::{Delta, Request},
    place::Place,
};
use serde_json::{Value, json};

use crate::api::{self, Wire};

/// A message that says `content` and nothing else.
pub(crate) fn message(role: Role, content: &str) -> Message {
    let content = content.into();
    Message { role, content, tool_calls: Vec::new(), tool_call_id: None, provider: None }
}

/// The model `m-1` of `provider`.
pub(crate) fn model(provider: &str) -> Model {
    Model::new(provider, "m-1")
}

/// The body of a request that asks `model` to go on from `messages`.
pub(crate) fn body(wire: &dyn Wire, model: &Model, messages: Vec<Message>) -> String {
    let request = request(agent("a", Target::Demo), messages);
    String::from_utf8(api::body(wire, model, &request).into()).expect("it is JSON")
}

/// Instructions, and what somebody says.
pub(crate) fn conversation() -> Vec<Message> {
    vec![
        message(Role::System, "You are 产品经理."),
        message(Role::User, "Q3 优先做哪个功能？\n\"Export\" </b>"),
    ]
}

/// The same after the model, which had `provider` in mind, called a tool that found nothing.
pub(crate) fn with_a_tool(provider: Option<Value>) -> Vec<Message> {
    let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: json!({"at": "a"}) };
    let mut messages = conversation();
    messages.push(Message { tool_calls: vec![call], provider, ..message(Role::Assistant, "") });
    messages
        .push(Message { tool_call_id: Some("c1".into()), ..message(Role::Tool, "nothing there") });
    messages
}

/// An agent with two retries.
pub(crate) fn agent(name: &str, target: Target) -> Agent {
    Agent { retries: 2, ..Agent::new(name, target) }
}

/// The first call to `agent`.
pub(crate) fn request(agent: Agent, messages: Vec<Message>) -> Request {
    Request {
        run: "run".into(),
        key: Key::parse("k"),
        attempt: 1,
        nth: 1,
        agent: Arc::new(agent),
        messages,
        tools: Vec::new(),
        without_tools: false,
        max_output_tokens: None,
        place: Place::default(),
    }
}

/// Waits until this is so; a test that passes never waits for long.
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed().as_secs() < 60, "it does not come to it");
        std::thread::yield_now();
    }
}

/// Whether a process runs. One that has ended and was not reaped does not.
#[cfg(target_os = "linux")]
pub(crate) fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Collects the text that is shown while a call is under way.
#[derive(Default)]
pub(crate) struct Shown(Mutex<String>);

impl Shown {
    pub(crate) fn show(&self, delta: Delta<'_>) {
        if let Delta::Text(text) = delta {
            self.0.lock().expect("nothing panics in it").push_str(text);
        }
    }

    pub(crate) fn text(self) -> String {
        self.0.into_inner().expect("nothing panics in it")
    }
}
