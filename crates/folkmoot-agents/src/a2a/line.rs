//! The connection to a remote agent: its card, one request at a time, and streams of events.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use ::a2a::{AgentCard, JsonRpcId, JsonRpcRequest, JsonRpcResponse};
use bytes::Bytes;
use folkmoot_core::{call::FailureKind, team::A2a};
use folkmoot_runtime::secrets::MASK;
use futures_util::TryStreamExt;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::World;
use crate::{
    http::failure_of,
    retry::{Failure, retry_after},
    secret::Secret,
    sse::{Event, Reader},
};

/// Where a card stands on a host.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// The way in which requests are written.
const BINDING: &str = "JSONRPC";

/// The header that tells the version of the protocol, and that version.
const VERSION: (&str, &str) = ("A2A-Version", "1.0");

/// How long a card may take.
const CARD: Duration = Duration::from_secs(30);

/// The most bytes of a card, and of any other reply.
const LONGEST: (usize, usize) = (1 << 20, LONGEST_REPLY);

/// The most bytes of a reply, whether it comes whole or in pieces.
pub(super) const LONGEST_REPLY: usize = 16 << 20;

/// The number of a request: each has a connection of its own.
const ID: i64 = 1;

/// How much of an error's text is shown, in characters.
const WORDS: usize = 400;

/// How to reach a remote agent.
#[derive(Clone, Debug)]
pub(super) struct Line {
    client: Client,
    url: Url,
    key: Option<Secret>,
    tenant: Option<String>,
    /// For the first sign of a reply, and between two.
    patience: (Duration, Duration),
}

impl Line {
    /// Reads the card of `a2a`; tells also whether it streams.
    pub(super) async fn open(a2a: &A2a, world: World<'_>) -> Result<(Line, bool), Failure> {
        let unfit = |text: String| Failure::new(FailureKind::Config, text);
        let url = Url::parse(&a2a.url).map_err(|error| unfit(format!("its address: {error}")))?;
        let held = |name: &Arc<str>| {
            let key = world.machine.ours.get(&**name).filter(|key| !key.trim().is_empty());
            let none = || Failure::new(FailureKind::Auth, format!("there is no key: set {name}"));
            key.map(|key| Secret::new(key)).ok_or_else(none)
        };
        let key = a2a.key_env.as_ref().map(held).transpose()?;
        let client = world.http.client(&url)?.clone();
        let patience = (world.patience.first_byte, world.patience.idle);
        let mut line = Line { client, url: card_of(&url), key, tenant: None, patience };
        let asked = async {
            let response = line.sent(line.request(Method::GET)).await?;
            whole(response, LONGEST.0, CARD).await
        };
        let late = || Failure::new(FailureKind::Timeout, "its card did not come within 30 s");
        let card = timeout(CARD, asked).await.map_err(|_| late())??;
        let card: AgentCard = serde_json::from_slice(&card).map_err(|error| {
            let text = format!("its card cannot be read as one of version 1: {error}");
            Failure::new(FailureKind::Protocol, text)
        })?;
        let is_spoken = |version: &str| version == "1" || version.starts_with("1.");
        let fit = card
            .supported_interfaces
            .iter()
            .find(|it| it.protocol_binding == BINDING && is_spoken(&it.protocol_version));
        let Some(fit) = fit else {
            let text = "its card names no interface for version 1 over JSON-RPC";
            return Err(Failure::new(FailureKind::Unsupported, text));
        };
        let there = url.join(&fit.url).map_err(|error| unfit(format!("its card: {error}")))?;
        // A key belongs to one host, and so does what the team says.
        if there.origin() != url.origin() {
            let there = there.origin().ascii_serialization();
            return Err(unfit(format!("its card leads to {there}: give that as its address")));
        }
        (line.url, line.tenant) = (there, fit.tenant.clone());
        Ok((line, card.capabilities.streaming == Some(true)))
    }

    /// Whose agent it is, where a host serves several.
    pub(super) fn tenant(&self) -> Option<String> {
        self.tenant.clone()
    }

    /// Calls a method, and waits for the result.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self.posted(method, params, "application/json").await?;
        self.result(&whole(response, LONGEST.1, self.patience.1).await?)
    }

    /// Calls a method, and gives each result of its stream to `take`, as long as that wants more.
    pub(super) async fn stream<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        mut take: impl FnMut(T) -> bool,
    ) -> Result<(), Failure> {
        let response = self.posted(method, params, "text/event-stream").await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        if !kind.is_some_and(|it| it.starts_with("text/event-stream")) {
            // Errors come as a whole.
            take(self.result(&whole(response, LONGEST.1, self.patience.1).await?)?);
            return Ok(());
        }
        let mut chunks = response.bytes_stream();
        let mut reader = Reader::new(LONGEST.1);
        loop {
            let next = timeout(self.patience.1, chunks.try_next())
                .await
                .map_err(|_| silence(self.patience.1))?;
            let Some(chunk) = next.map_err(failure_of)? else { return Ok(()) };
            let mut events: Vec<Event> = Vec::new();
            let read = reader.read(&chunk, &mut events);
            for event in events {
                if !take(self.result(event.data.as_bytes())?) {
                    return Ok(());
                }
            }
            read.map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()))?;
        }
    }

    async fn posted(
        &self,
        method: &str,
        params: &impl Serialize,
        accept: &str,
    ) -> Result<Response, Failure> {
        let params = serde_json::to_value(params).ok();
        let body = JsonRpcRequest::new(JsonRpcId::Number(ID), method, params);
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let request = self.request(Method::POST).header(ACCEPT, accept);
        self.sent(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    fn request(&self, method: Method) -> RequestBuilder {
        let request = self.client.request(method, self.url.clone()).header(VERSION.0, VERSION.1);
        match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let sent = timeout(self.patience.0, request.send()).await;
        let response = sent.map_err(|_| silence(self.patience.0))?.map_err(failure_of)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let hint = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
        let hint = hint.and_then(|hint| retry_after(hint, SystemTime::now()));
        let body = whole(response, LONGEST.0, self.patience.1).await.unwrap_or_default();
        let said = words(&self.masked(&body));
        let text = [status.to_string(), said].into_iter().filter(|it| !it.is_empty());
        let text = text.collect::<Vec<_>>().join(": ");
        Err(Failure { hint, ..Failure::new(kind_of(status), text) })
    }

    /// The result of a call.
    fn result<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Failure> {
        let malformed = |error: serde_json::Error| {
            Failure::new(FailureKind::Protocol, format!("malformed reply: {error}"))
        };
        let response: JsonRpcResponse =
            serde_json::from_str(&self.masked(body)).map_err(malformed)?;
        // Whoever could not read a request does not know its number.
        let is_ours = match &response.id {
            JsonRpcId::Number(id) => *id == ID,
            JsonRpcId::Null => response.error.is_some(),
            JsonRpcId::String(_) => false,
        };
        if !is_ours {
            let text = "malformed reply: it answers another request";
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        if let Some(error) = response.error {
            let text = format!("error {}: {}", error.code, words(&error.message));
            return Err(Failure::new(FailureKind::Harness, text));
        }
        T::deserialize(response.result.unwrap_or_default()).map_err(malformed)
    }

    /// What came, without the key, which the other side may repeat.
    fn masked(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        match &self.key {
            Some(key) => text.replace(key.reveal(), MASK),
            None => text.into_owned(),
        }
    }
}

/// Where the card is: at the address itself if that is one of a file, else where cards are.
fn card_of(url: &Url) -> Url {
    let mut card = url.clone();
    let is_file =
        Path::new(url.path()).extension().is_some_and(|it| it.eq_ignore_ascii_case("json"));
    if !is_file {
        card.set_path(&format!("{}{WELL_KNOWN}", url.path().trim_end_matches('/')));
    }
    card
}

fn kind_of(status: StatusCode) -> FailureKind {
    match status.as_u16() {
        401 | 403 => FailureKind::Auth,
        404 | 410 => FailureKind::NotFound,
        408 | 504 => FailureKind::Timeout,
        429 => FailureKind::RateLimited,
        500.. => FailureKind::Transport,
        _ => FailureKind::Protocol,
    }
}

/// A body to its end, no longer than `most`.
async fn whole(response: Response, most: usize, idle: Duration) -> Result<Vec<u8>, Failure> {
    let mut chunks = response.bytes_stream();
    let mut body = Vec::new();
    loop {
        let next = timeout(idle, chunks.try_next()).await.map_err(|_| silence(idle))?;
        let Some(chunk): Option<Bytes> = next.map_err(failure_of)? else { return Ok(body) };
        if body.len() + chunk.len() > most {
            let text = format!("a reply is larger than {most} bytes");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        body.extend_from_slice(&chunk);
    }
}

fn silence(wait: Duration) -> Failure {
    Failure::new(FailureKind::Timeout, format!("nothing came for {} s", wait.as_secs()))
}

/// What is shown of an error's text.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(WORDS).collect()
}
