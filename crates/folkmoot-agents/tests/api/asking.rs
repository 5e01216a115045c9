//! How the tests ask, and what they look at.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use folkmoot_agents::{Agents, Patience, ProviderConfig, Providers};
use folkmoot_core::{
    call::{Answer, FailureKind, Fault, Tool},
    key::Key,
    money::Price,
    render::{Message, Role},
    team::{Agent, Model, Target},
};
use folkmoot_runtime::{
    backend::{Backend, Delta, Request, Response},
    place::Place,
};
use folkmoot_stub::Stub;
use serde_json::json;

pub(crate) const KEY: &str = "sk-very-secret";

/// Agents whose providers `openai`, `anthropic` and `gemini` are the stub, with waits that a test can
/// bear.
pub(crate) fn agents(stub: &Stub) -> Agents {
    let patience = Patience {
        first_wait: Duration::from_millis(2),
        trailing: Duration::from_millis(50),
        ..Patience::default()
    };
    agents_with(stub, patience, ProviderConfig::default())
}

/// The same with a `config` for `openai`.
pub(crate) fn agents_with(stub: &Stub, patience: Patience, config: ProviderConfig) -> Agents {
    let base_url = stub.base_url();
    let env = |name: &str| match name {
        "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" | "GEMINI_API_KEY" => Some(KEY.to_owned()),
        "OPENAI_BASE_URL" | "ANTHROPIC_BASE_URL" | "GOOGLE_GEMINI_BASE_URL" => {
            Some(base_url.clone())
        }
        _ => None,
    };
    let config = BTreeMap::from([("openai".to_owned(), config)]);
    Agents::with_patience(Providers::new(&config, &env), patience)
}

pub(crate) fn message(role: Role, content: &str) -> Message {
    let content = content.into();
    Message { role, content, tool_calls: Vec::new(), tool_call_id: None, provider: None }
}

/// A call to a model of `openai`.
pub(crate) fn request(retries: u32) -> Request {
    request_to("openai", retries)
}

/// A call to a model of `provider`.
pub(crate) fn request_to(provider: &str, retries: u32) -> Request {
    let model = Model {
        price: Some(Price { cached_input: Some(1.0), ..Price::new(2.0, 8.0) }),
        ..Model::new(provider, "stub")
    };
    let agent = Agent {
        name: "Content Writer".into(),
        retries,
        ..Agent::new("writer", Target::Model(model))
    };
    Request {
        run: "run".into(),
        key: Key::parse("round-1/writer"),
        attempt: 1,
        nth: 1,
        agent: Arc::new(agent),
        messages: vec![message(Role::System, "Be brief."), message(Role::User, "Say hello.")],
        tools: Vec::new(),
        without_tools: false,
        max_output_tokens: None,
        place: Place::default(),
    }
}

/// A call to a model of `provider` that may look things up.
pub(crate) fn request_with_tools(provider: &str) -> Request {
    let at = json!({ "type": "string", "description": "Where." });
    let parameters = json!({ "type": "object", "properties": { "at": at }, "required": ["at"] });
    let look = Tool { name: "look".into(), description: "Looks somewhere.".into(), parameters };
    Request { tools: vec![look], ..request_to(provider, 0) }
}

pub(crate) async fn ask(stub: &Stub, retries: u32) -> Response {
    perform(stub, request(retries)).await
}

pub(crate) async fn perform(stub: &Stub, request: Request) -> Response {
    agents(stub).perform(request, &|_| {}).await
}

pub(crate) fn answer(response: &Response) -> &Answer {
    response.outcome.as_deref().expect("it was answered")
}

pub(crate) fn failure(response: &Response) -> (FailureKind, String) {
    match &response.outcome {
        Err(Fault::Failed { kind, text }) => (*kind, text.to_string()),
        other => panic!("it did not fail: {other:?}"),
    }
}

/// What is shown while a call is under way, as `T:text`, `R:reasoning`, `!retry`.
pub(crate) fn shown_to(shown: &Mutex<Vec<String>>) -> impl Fn(Delta<'_>) + Send + Sync {
    |delta| {
        let line = match delta {
            Delta::Text(text) => format!("T:{text}"),
            Delta::Reasoning(text) => format!("R:{text}"),
            Delta::Retry(why) => format!("!{why}"),
        };
        shown.lock().expect("nothing panics in it").push(line);
    }
}
