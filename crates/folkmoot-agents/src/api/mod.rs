//! Models behind APIs: asking them, as often as it takes, and reading what comes.
//!
//! A protocol is one file, `chat`, `messages` or `gemini`, behind [`Wire`]; attempts,
//! clocks, the layout of conversations and the draft of a reply know of none. Deliberately absent:
//! images, and every parameter beyond the bound of the reply.

mod arguments;
mod body;
mod chat;
mod draft;
mod error;
mod gemini;
mod kept;
mod layout;
mod messages;
mod recorded;
mod tool_calls;
mod wire;

use std::{sync::Arc, time::SystemTime};

use bytes::Bytes;
use folkmoot_core::{
    call::{Answer, FailureKind, Tokens, Tool, ToolCall, Usage},
    team::Model,
};
use folkmoot_runtime::backend::{Delta, OnDelta, Request, Response};
use futures_util::TryStreamExt;
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use tokio::time::timeout;

pub use self::recorded::Recorded;
pub(crate) use self::wire::{Wire, wire};
use self::{
    body::{Body, silence},
    draft::Draft,
    error::{in_refusal, kind_of, wait_in_refusal},
    layout::{lay_out, wire_name},
    wire::Question,
};
use crate::{
    http::{Http, failure_of},
    patience::Patience,
    provider::Provider,
    retry::{Backoff, Failure, Persisted, Terms, retry_after, retry_after_ms},
    usage::estimated_tokens,
};

/// What it takes to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Api<'a> {
    pub http: &'a Http,
    pub patience: &'a Patience,
    pub backoff: &'a Backoff,
}

/// One call on its way to a provider.
#[derive(Clone, Copy)]
struct Call<'a> {
    provider: &'a Provider,
    model: &'a Model,
    request: &'a Request,
    body: &'a Bytes,
    on_delta: OnDelta<'a>,
}

impl Call<'_> {
    /// How many bytes of it the model can have read: no more than fits its window, at four a token.
    fn sent(&self) -> usize {
        let window = self.model.context_window.and_then(|it| usize::try_from(it).ok());
        window.map_or(self.body.len(), |window| self.body.len().min(window.saturating_mul(4)))
    }
}

/// Calls tools by their own names, and takes away what a model that may use none asked of them: the bounds
/// of a run count one request for each of its turns (agents.md §5). A reply of nothing else is none.
fn within_offers(request: &Request, answer: Answer) -> Result<Answer, Failure> {
    let has_none =
        request.without_tools || request.tools.is_empty() && request.agent.grants.is_empty();
    let Some(asked) = answer.tool_calls.first().filter(|_| has_none) else {
        let meant = |call: ToolCall| {
            let offered = request.tools.iter().find(|tool| wire_name(&tool.name) == *call.name);
            ToolCall { name: offered.map_or(call.name, |tool| tool.name.clone()), ..call }
        };
        let tool_calls = answer.tool_calls.into_iter().map(meant).collect();
        return Ok(Answer { tool_calls, ..answer });
    };
    if answer.text.trim().is_empty() {
        let text = format!("the model has no tools and asked for `{}`", asked.name);
        return Err(Failure::new(FailureKind::Protocol, text));
    }
    Ok(Answer { tool_calls: Vec::new(), provider: None, ..answer })
}

/// An answer and what it used.
type Done = (Answer, Usage);

impl Api<'_> {
    /// Asks `model` of `provider`, as often as the agent's retries allow.
    pub(crate) async fn perform(
        &self,
        provider: &Provider,
        model: &Model,
        request: &Request,
        on_delta: OnDelta<'_>,
    ) -> Response {
        let body = body(&*provider.wire, model, request);
        let call = Call { provider, model, request, body: &body, on_delta };
        let terms = Terms {
            retries: request.agent.retries,
            is_metered: request.max_output_tokens.is_some(),
            gate: &provider.gate,
            backoff: self.backoff,
        };
        let tell = |text: &str| on_delta(Delta::Retry(text));
        response(terms.persist(tell, || self.attempt(call)).await)
    }

    /// One request and its reply. What a failed attempt says is safe to show.
    async fn attempt(&self, call: Call<'_>) -> Result<Done, Failure> {
        self.ask(call).await.map_err(|failure| Failure {
            text: call.provider.masked(&format!("{}: {}", call.model, failure.text)),
            ..failure
        })
    }

    async fn ask(&self, call: Call<'_>) -> Result<Done, Failure> {
        let response = self.send(call).await?;
        if !response.status().is_success() {
            return Err(self.refusal(call, response).await);
        }
        let mut draft = Draft::new(&*call.provider.wire, call.on_delta);
        let read = self.read(response, &mut draft).await;
        let usage = priced(draft.usage(call.sent()), call.model);
        let prefix = format!("call-{}", call.request.nth);
        let answer = read
            .and_then(|()| draft.finish(&call.model.provider, &prefix))
            .and_then(|answer| within_offers(call.request, answer));
        match answer {
            Ok(answer) => Ok((answer, usage)),
            Err(failure) => Err(Failure { usage, ..failure }),
        }
    }

    /// Asks for the list of models; only that there is an answer counts, and that the key is good.
    pub(crate) async fn probe(&self, provider: &Provider) -> Result<(), Failure> {
        let url = provider.models_url();
        let request = self.http.client(&url)?.get(url).headers(provider.headers.clone());
        let response = request.send().await.map_err(failure_of)?;
        let status = response.status();
        if status.is_success() || matches!(status.as_u16(), 404 | 405) {
            return Ok(());
        }
        let body = self.body(response).collect().await.unwrap_or_default();
        let words = in_refusal(&String::from_utf8_lossy(&body));
        let text = [status.to_string(), words].join("; ");
        Err(Failure::new(kind_of(status.as_u16(), &text), text.trim_end_matches("; ")))
    }

    /// Sends the request and waits for the beginning of the reply.
    async fn send(&self, call: Call<'_>) -> Result<reqwest::Response, Failure> {
        let url = call.provider.url(&call.model.model);
        let request = self
            .http
            .client(&url)?
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .headers(call.provider.headers.clone())
            .body(call.body.clone());
        let unheard =
            |failure| Failure { usage: priced(unanswered(call.sent()), call.model), ..failure };
        match timeout(self.patience.first_byte, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() || error.is_builder() => Err(failure_of(error)),
            Ok(Err(error)) => Err(unheard(failure_of(error))),
            Err(_) => Err(unheard(silence(self.patience.first_byte))),
        }
    }

    /// Why the server did not even begin.
    async fn refusal(&self, call: Call<'_>, response: reqwest::Response) -> Failure {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|it| it.to_str().ok());
        let asks = header(RETRY_AFTER).and_then(|value| retry_after(value, SystemTime::now()));
        let exactly = response.headers().get("retry-after-ms");
        let exactly = exactly.and_then(|it| retry_after_ms(it.to_str().ok()?));
        let asks = exactly.or(asks);
        let moved = header(LOCATION).map(|place| format!("moved to {place}"));
        // Its words are welcome, but not worth a long wait.
        let body = timeout(self.patience.connect, self.body(response).collect()).await;
        let body = body.unwrap_or(Ok(Vec::new())).unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        let (words, hint) = (in_refusal(&body), asks.or_else(|| wait_in_refusal(&body)));
        let kind = kind_of(status.as_u16(), &words);
        let size = || {
            let messages = call.request.messages.len();
            format!("the request has {messages} messages, {} bytes", call.body.len())
        };
        let is_about_the_request =
            matches!(status.as_u16(), 400 | 413 | 422) || kind == FailureKind::Unsupported;
        let parts = [Some(status.to_string()), moved, Some(words).filter(|it| !it.is_empty())];
        let parts = parts.into_iter().chain([is_about_the_request.then(size)]).flatten();
        let text = parts.collect::<Vec<_>>().join("; ");
        Failure { hint, ..Failure::new(kind, text) }
    }

    /// Reads a reply into `draft`, as a stream or whole, as the server likes it.
    async fn read(
        &self,
        response: reqwest::Response,
        draft: &mut Draft<'_>,
    ) -> Result<(), Failure> {
        let header = |name| {
            let value = response.headers().get(name).map(HeaderValue::as_bytes);
            String::from_utf8_lossy(value.unwrap_or_default()).to_lowercase()
        };
        let (content_type, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
        if !matches!(&*encoding, "" | "identity") {
            let text = format!("the reply is compressed ({encoding}), which nobody asked for");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        let mut body = self.body(response);
        let first = body.first_byte().await?;
        match shape_of(&content_type, first) {
            Shape::Whole => draft.take_whole(&body.collect().await?),
            Shape::Events => body.read_events(draft).await,
            Shape::Page => Err(page(&content_type)),
        }
    }

    fn body(&self, response: reqwest::Response) -> Body<'_> {
        Body::new(response.bytes_stream().map_err(failure_of), self.patience)
    }
}

/// What a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// An event stream.
    Events,
    /// One JSON value, though a stream was asked for.
    Whole,
    /// Something for people.
    Page,
}

/// Somebody answered, and not an API.
fn page(content_type: &str) -> Failure {
    let text = format!("this is no API: the reply is a page ({content_type})");
    Failure::new(FailureKind::Config, text)
}

/// What a reply is by its content; servers in between label it as they like (rules.md 10.2). No line of
/// an event stream begins with a brace or an angle; the label tells what its content does not.
fn shape_of(content_type: &str, first: Option<u8>) -> Shape {
    match first {
        Some(b'<') => Shape::Page,
        Some(b'{' | b'[') => Shape::Whole,
        Some(b'd' | b'e' | b'i' | b'r' | b':') => Shape::Events,
        _ if content_type.contains("html") => Shape::Page,
        Some(_) if content_type.contains("json") => Shape::Whole,
        None | Some(_) => Shape::Events,
    }
}

/// The bytes of a request; they are stable, so that providers can cache what stays the same.
pub(super) fn body(wire: &dyn Wire, model: &Model, request: &Request) -> Bytes {
    let on_wire = |tool: &Tool| Tool { name: wire_name(&tool.name).into(), ..tool.clone() };
    let tools: Vec<Tool> = request.tools.iter().map(on_wire).collect();
    let body = wire.body(&Question {
        model: &model.model,
        turns: lay_out(&request.messages, &model.provider),
        tools: &tools,
        without_tools: request.without_tools,
        max_tokens: request.max_output_tokens.or(model.max_output_tokens),
    });
    serde_json::to_vec(&body).expect("it is plain data").into()
}

/// A request that was sent and not answered may have been worked on all the same.
fn unanswered(sent: usize) -> Usage {
    let input = estimated_tokens(sent);
    Usage { tokens: Tokens { input, ..Tokens::default() }, cost: None, estimated: true }
}

/// What was used with its price, if that is known. Each attempt has its own: what the tokens of one
/// cost may depend on its length.
fn priced(usage: Usage, model: &Model) -> Usage {
    let price = model.price.as_ref().filter(|_| usage.tokens.total() > 0);
    Usage { cost: price.map(|price| price.of(usage.tokens)), ..usage }
}

fn response(persisted: Persisted<Done>) -> Response {
    let (outcome, last) = match persisted.outcome {
        Ok((answer, usage)) => (Ok(Arc::new(answer)), usage),
        Err(fault) => (Err(fault), Usage::default()),
    };
    Response { outcome, usage: persisted.wasted + last }
}
