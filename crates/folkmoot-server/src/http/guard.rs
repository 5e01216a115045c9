//! What every request must keep before anything looks at it (server.md §1).

use std::{borrow::Cow, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE},
        request::Parts,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use http_body_util::{BodyExt, Limited};
use tokio::time::timeout;

use super::{
    Masks,
    metrics::Meters,
    page,
    problem::{self, Problem},
    tokens::{Role, Tokens},
};

/// The largest body, in bytes.
pub(super) const LARGEST_BODY: usize = 1 << 20;

/// The largest head of a request, in bytes.
pub(super) const LARGEST_HEAD: usize = 16 << 10;

/// How long a client may take to send a request: its head, and then its body.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Where nothing is told but that the server is there, and who it is to other agents.
const OPEN: [&str; 2] = ["/healthz", "/.well-known/agent-card.json"];

/// Who may ask, and by what name.
pub(super) struct Guard {
    pub(super) tokens: Tokens,
    pub(super) names: Names,
    pub(super) masks: Arc<dyn Masks>,
    pub(super) meters: Arc<Meters>,
}

/// Whoever asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    /// What it may do.
    pub(super) role: Role,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        let message = "a token is needed: `Authorization: Bearer TOKEN`";
        let nobody = || Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
        parts.extensions.get().copied().ok_or_else(nobody)
    }
}

/// The names under which the server is asked; any other is somebody else's that leads here.
#[derive(Debug)]
pub(super) struct Names {
    /// What may stand in `Host`, in lower case.
    authorities: Vec<String>,
}

impl Names {
    /// Those of a server that listens at `address`, and those that it was told: `name` or `name:port`.
    pub(super) fn new(address: SocketAddr, told: &[String]) -> Names {
        let port = address.port();
        let own = match address.ip() {
            ip if ip.is_loopback() || ip.is_unspecified() => {
                ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).to_vec()
            }
            std::net::IpAddr::V4(ip) => vec![ip.to_string()],
            std::net::IpAddr::V6(ip) => vec![format!("[{ip}]")],
        };
        let with_port = own.iter().map(|name| format!("{name}:{port}"));
        // Clients leave the port of the protocol out.
        let without = own.iter().filter(|_| port == 80).cloned();
        let told = told.iter().flat_map(|name| {
            let name = name.to_ascii_lowercase();
            let with_port = (!has_port(&name)).then(|| format!("{name}:{port}"));
            [Some(name), with_port].into_iter().flatten()
        });
        Names { authorities: with_port.chain(without).chain(told).collect() }
    }

    fn has(&self, authority: &str) -> bool {
        self.authorities.contains(&authority.to_ascii_lowercase())
    }
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|it| it.is_ascii_digit()))
}

/// Lets a request through that keeps the rules, its body read in full.
pub(super) async fn admit(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let is_models = matches!(request.uri().path(), "/v1/chat/completions" | "/v1/models");
    let response = match guard.admitted(request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let response = if is_models { problem::as_models_do(response) } else { response };
    guard.meters.answered(response.status());
    let mut response = guard.masked(response).await;
    page::harden(response.headers_mut());
    response
}

impl Guard {
    async fn admitted(&self, request: Request) -> Result<Request, Problem> {
        self.is_meant(&request)?;
        if !is_open(request.method(), request.uri().path()) {
            let role = self.role(request.headers())?;
            if role == Role::Read && !is_reading(request.method()) {
                let message = "this token may look at everything and change nothing";
                return Err(Problem::new(StatusCode::FORBIDDEN, "read_only", message));
            }
            let (mut head, body) = request.into_parts();
            head.extensions.insert(Caller { role });
            return Ok(Request::from_parts(head, received(body).await?));
        }
        Ok(request)
    }

    /// Whether it is this server that is meant, and nobody else's page that asks.
    fn is_meant(&self, request: &Request) -> Result<(), Problem> {
        let host = only(request.headers(), &HOST)?.unwrap_or_default();
        let is_other = |authority: &axum::http::uri::Authority| authority.as_str() != host;
        if !self.names.has(host) || request.uri().authority().is_some_and(is_other) {
            let message = "this server is not asked under that name; --host tells it another";
            return Err(Problem::new(StatusCode::FORBIDDEN, "foreign_host", message));
        }
        let origin = only(request.headers(), &ORIGIN)?;
        let is_own = |origin: &str| {
            let (scheme, authority) = origin.split_once("://").unwrap_or_default();
            matches!(scheme, "http" | "https") && authority.eq_ignore_ascii_case(host)
        };
        if origin.is_some_and(|origin| !is_own(origin)) {
            let message = "pages of other origins may not ask";
            return Err(Problem::new(StatusCode::FORBIDDEN, "foreign_origin", message));
        }
        Ok(())
    }

    /// An answer without what no answer may show. What is told bit by bit is masked where it is told.
    async fn masked(&self, response: Response) -> Response {
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_none_or(|kind| kind.starts_with(b"text/event-stream")) {
            return response;
        }
        let (mut head, body) = response.into_parts();
        // A body of ours is in memory already.
        let Ok(body) = body.collect().await else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let bytes = body.to_bytes();
        let masked = std::str::from_utf8(&bytes).ok().map(|text| self.masks.mask(text));
        let Some(Cow::Owned(masked)) = masked else {
            return Response::from_parts(head, Body::from(bytes));
        };
        head.headers.remove(CONTENT_LENGTH);
        Response::from_parts(head, Body::from(masked))
    }

    fn role(&self, headers: &HeaderMap) -> Result<Role, Problem> {
        let given = only(headers, &AUTHORIZATION)?.and_then(|given| given.split_once(' '));
        let token = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let role = token.and_then(|(_, token)| self.tokens.role(token.trim()));
        role.ok_or_else(|| {
            let message = "a token is needed: `Authorization: Bearer TOKEN`";
            Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
                .with(WWW_AUTHENTICATE, "Bearer")
        })
    }
}

/// The only value of a header; what comes twice is read differently by others.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    let text = first.map(|value| value.to_str().map_err(|_| ()));
    if let (Ok(text), None) = (text.transpose(), second) {
        return Ok(text);
    }
    let message = format!("the header {name} comes twice, or is no text");
    Err(Problem::new(StatusCode::BAD_REQUEST, "bad_header", message))
}

fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn is_open(method: &Method, path: &str) -> bool {
    is_reading(method) && (OPEN.contains(&path) || page::is_there(path))
}

/// The whole body, if it comes in time and is not too large.
async fn received(body: Body) -> Result<Body, Problem> {
    let collected = timeout(PATIENCE, Limited::new(body, LARGEST_BODY).collect()).await;
    let Ok(collected) = collected else {
        let message = "the request did not come within 30 seconds";
        return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message));
    };
    match collected {
        Ok(collected) => Ok(Body::from(collected.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = "the request is over 1 MiB";
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message))
        }
        Err(_) => {
            let message = "the request broke off";
            Err(Problem::new(StatusCode::BAD_REQUEST, "broken_request", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_knows_its_own_names_and_those_it_was_told() {
        let address = "127.0.0.1:7878".parse().expect("it is one");
        let names = Names::new(address, &["Box.lan".to_owned(), "proxy:9000".to_owned()]);
        let own = ["127.0.0.1:7878", "LOCALHOST:7878", "[::1]:7878"];
        for name in own.into_iter().chain(["box.lan", "box.lan:7878", "proxy:9000"]) {
            assert!(names.has(name), "{name}");
        }
        for name in
            ["", "evil.example", "127.0.0.1", "localhost:80", "box.lan:1", "proxy", "proxy:7878"]
        {
            assert!(!names.has(name), "{name}");
        }
        let web = Names::new("127.0.0.1:80".parse().expect("it is one"), &[]);
        assert!(web.has("localhost"), "clients leave the usual port out");
    }
}
