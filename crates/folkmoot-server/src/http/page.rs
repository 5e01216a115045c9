//! The page: static files that the program carries, with no data in them (server.md §3).

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
            REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::problem::Problem;

/// The files of the page.
#[derive(RustEmbed)]
#[folder = "assets/"]
#[exclude = ".*"]
struct Assets;

/// What browsers are told with every answer: nothing foreign is loaded, framed, sent or guessed.
const HARDENING: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Says to browsers what they may do with an answer; data is kept by nobody.
pub(super) fn harden(headers: &mut HeaderMap) {
    for (name, value) in HARDENING {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Whether the page has a file there.
pub(super) fn is_there(path: &str) -> bool {
    name(path).is_some_and(|name| Assets::get(name).is_some())
}

/// The file of the page that is meant, or that there is nothing.
pub(super) async fn file(request: Request) -> Response {
    let path = request.uri().path();
    let found = name(path).and_then(|name| Some((name, Assets::get(name)?)));
    if let Some((name, file)) = found {
        return served(name, &file, request.headers());
    }
    let message = "there is nothing here; `GET /openapi.json` tells what there is";
    Problem::new(StatusCode::NOT_FOUND, "not_found", message).into_response()
}

/// A file: asked for again each time, and sent again if it is another.
fn served(name: &str, file: &EmbeddedFile, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", blake3::hash(&file.data).to_hex());
    let is_known = asked.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let headers = [(CONTENT_TYPE, kind(name)), (ETAG, &tag), (CACHE_CONTROL, "no-cache")];
    if is_known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, Body::from(file.data.clone().into_owned())).into_response()
}

fn name(path: &str) -> Option<&str> {
    if path == "/" { Some("index.html") } else { path.strip_prefix('/') }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => "application/octet-stream",
    }
}
