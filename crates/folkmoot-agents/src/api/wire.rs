//! What sets one protocol apart from the others; everything else is shared.

use std::fmt;

use folkmoot_core::call::Tool;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    chat::Chat,
    draft::Piece,
    error::{self, broke_off, malformed},
    gemini::Gemini,
    layout::Turn,
    messages::Messages,
};
use crate::{known::Quirks, provider::Protocol, retry::Failure};

/// A wire format: how a model is asked and how its reply reads.
pub(crate) trait Wire: fmt::Debug + Send + Sync {
    /// Where `model` is asked, the API beginning at `base`.
    fn url(&self, base: &Url, model: &str) -> Url;

    /// Where it is asked which models it has.
    fn models_url(&self, base: &Url) -> Url {
        below(base, &["models"])
    }

    /// The header that carries the key, and what stands in it before the key.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Headers that each request needs besides.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The body of a request; equal questions give equal bytes, the fields in fixed order.
    fn body(&self, question: &Question<'_>) -> Value;

    /// What the data of one event, or the whole of a reply that is no stream, brings, in its order.
    fn read(&self, data: &str) -> Result<Vec<Piece>, Failure>;
}

/// The wire of `protocol`, nothing if it is not supported; `quirks` are those of servers that speak
/// `chat`.
pub(crate) fn wire(protocol: Protocol, quirks: Quirks) -> Option<Box<dyn Wire>> {
    match protocol {
        Protocol::Chat => Some(Box::new(Chat { quirks })),
        Protocol::Messages => Some(Box::new(Messages)),
        Protocol::Gemini => Some(Box::new(Gemini)),
        Protocol::Responses => None,
    }
}

/// What a model is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    /// The model's name at its provider.
    pub model: &'a str,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// The tools it may ask for; names are letters, digits and `_`.
    pub tools: &'a [Tool],
    /// Whether it may ask for none of them this time.
    pub without_tools: bool,
    /// The most tokens the reply may have, if somebody set a bound.
    pub max_tokens: Option<u64>,
}

/// `path` below `base`, whose query is kept.
pub(super) fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    url.path_segments_mut().expect("http addresses have paths").pop_if_empty().extend(path);
    url
}

/// `path` below `base`, under `version` of the API unless `base` ends in a version: the variables
/// of some programs hold it, those of others do not.
pub(super) fn below_version(base: &Url, version: &str, path: &[&str]) -> Url {
    let last = base.path_segments().and_then(|mut parts| parts.rfind(|it| !it.is_empty()));
    let is_version = |part: &str| {
        let number = part.strip_prefix('v').unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    };
    let base = if last.is_some_and(is_version) { base.clone() } else { below(base, &[version]) };
    below(&base, path)
}

/// Reads `data` in the shape of a protocol, unless it tells of an error (rules.md 10.2).
pub(super) fn parse<T: DeserializeOwned>(data: &str) -> Result<T, Failure> {
    let value: Value = serde_json::from_str(data).map_err(malformed)?;
    match error::in_reply(&value) {
        Some(said) => Err(broke_off(&said)),
        None => T::deserialize(value).map_err(malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::draft::Draft, *};
    use crate::sse::Event;

    #[test]
    fn a_version_stands_in_an_address_once_whoever_wrote_it() {
        for (base, expected) in [
            ("https://a", "https://a/v1/messages"),
            ("https://a/", "https://a/v1/messages"),
            ("https://a/v1", "https://a/v1/messages"),
            ("https://a/v1beta/", "https://a/v1beta/messages"),
            ("https://a/anthropic?k=1", "https://a/anthropic/v1/messages?k=1"),
            ("https://a/vertex", "https://a/vertex/v1/messages"),
        ] {
            let base = Url::parse(base).expect("it is an address");
            assert_eq!(below_version(&base, "v1", &["messages"]).as_str(), expected);
        }
    }

    /// The names and words of all protocols, and some that are none.
    const WORDS: [&str; 28] = [
        "type",
        "index",
        "message",
        "message_start",
        "message_delta",
        "content",
        "content_block",
        "content_block_start",
        "content_block_delta",
        "text",
        "tool_use",
        "thinking",
        "input",
        "delta",
        "text_delta",
        "input_json_delta",
        "partial_json",
        "usage",
        "choices",
        "tool_calls",
        "function",
        "arguments",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "error",
        "",
    ];

    /// JSON that looks like a protocol's without being so.
    fn nonsense() -> impl Strategy<Value = Value> {
        let word = proptest::sample::select(&WORDS[..]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2_i64..5).prop_map(Value::from),
            word.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 5, move |inner| {
            let field = (word.clone().prop_map(str::to_owned), inner.clone());
            prop_oneof![
                1 => proptest::collection::vec(inner, 0..3).prop_map(Value::from),
                3 => proptest::collection::vec(field, 0..6).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn nonsense_is_read_or_refused_and_nothing_worse(
            events in proptest::collection::vec(nonsense(), 0..6),
        ) {
            for protocol in [Protocol::Chat, Protocol::Messages, Protocol::Gemini] {
                let wire = wire(protocol, Quirks::USUAL).expect("it is supported");
                let mut draft = Draft::new(&*wire, &|_| {});
                for data in &events {
                    let event = Event { data: data.to_string(), ..Event::default() };
                    let _ = draft.take_event(&event);
                }
                prop_assert!(draft.usage(1).tokens.total() > 0);
                let _ = draft.finish("p", "call");
            }
        }
    }
}
