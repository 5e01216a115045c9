//! Servers at an address: streamable HTTP.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use folkmoot_core::call::{FailureKind, Fault};
use reqwest::{
    Client, Url,
    header::{HeaderName, HeaderValue},
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};

use super::{Result, lines::LONGEST};
use crate::{http::Http, patience::Patience};

/// Speaks with the server at `url`.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<Arc<str>, Arc<str>>,
) -> Result<StreamableHttpClientTransport<Client>> {
    let wrong = |text: String| Fault::failed(FailureKind::Config, text);
    let address = Url::parse(url).map_err(|error| wrong(format!("its url is none: {error}")))?;
    let http = Http::new(&Patience::default());
    let client = http.client(&address).map_err(|failure| wrong(failure.text))?.clone();
    let header = |(name, value): (&Arc<str>, &Arc<str>)| {
        let name: HeaderName = name.parse().ok()?;
        let mut value: HeaderValue = value.parse().ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    let named: Option<HashMap<_, _>> = headers.iter().map(header).collect();
    let named = named.ok_or_else(|| wrong("a header holds what no header can".to_owned()))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(named)
        .max_sse_event_size(LONGEST)
        .max_json_response_size(LONGEST);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
