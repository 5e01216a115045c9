//! How the parts of a request are read: what cannot be read is the caller's mistake, and told so.

use axum::{
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::request::Parts,
};
use bytes::Bytes;
use folkmoot_core::refusal::Refusal;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problem::Problem;

/// The fields of a request, judged where it is carried out. No body is no fields.
pub(super) struct Fields(pub(super) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Fields, Problem> {
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| Refusal::new("broken_request", error.to_string()))?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Fields(Map::new()));
        }
        match serde_json::from_slice(&body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) => Err(Refusal::new("bad_json", "the body must be a JSON object").into()),
            Err(error) => {
                Err(Refusal::new("bad_json", format!("the body is no JSON: {error}")).into())
            }
        }
    }
}

/// The body of a request: the fields of `T` and no others.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        let Fields(fields) = Fields::from_request(request, state).await?;
        let read = serde_json::from_value(Value::Object(fields));
        read.map(Body).map_err(|error| {
            let message = error.to_string();
            let is_unknown = message.starts_with("unknown field");
            Refusal::new(if is_unknown { "unknown_field" } else { "bad_value" }, message).into()
        })
    }
}

/// What stands behind `?`: the fields of `T` and no others.
pub(super) struct Asked<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asked<T>, Problem> {
        let read = Query::<T>::try_from_uri(&parts.uri);
        let read = read.map_err(|error| Refusal::new("bad_query", error.to_string()))?;
        Ok(Asked(read.0))
    }
}
