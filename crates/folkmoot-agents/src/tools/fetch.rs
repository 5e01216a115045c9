//! Pages of the web, but none of this machine's or its network's.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use folkmoot_core::call::{FailureKind, Fault};
use futures_util::TryStreamExt;
use reqwest::{
    Client, Response, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, LOCATION},
    redirect::Policy,
};
use serde::Deserialize;
use tokio::{net::lookup_host, time::timeout};

use super::{Result, other};
use crate::http::{USER_AGENT, failure_of, with_crypto};

/// The most bytes of a page.
const PAGE: usize = 1 << 20;

/// How long it may take to get one.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a page may be elsewhere.
const REDIRECTS: usize = 5;

/// Hosts that may be reached though their addresses are private, as `host` or `host:port`.
pub type Reach = BTreeSet<String>;

/// Gets pages.
#[derive(Debug, Default)]
pub(super) struct Fetch {
    reach: Arc<Reach>,
    client: OnceLock<std::result::Result<Client, String>>,
}

/// Arguments of `fetch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    url: String,
}

impl Fetch {
    pub(super) fn new(reach: Reach) -> Fetch {
        Fetch { reach: Arc::new(reach), client: OnceLock::new() }
    }

    /// The status and text of a page.
    pub(super) async fn get(&self, page: &Page) -> Result<String> {
        let url =
            Url::parse(&page.url).map_err(|error| other(format!("bad_arguments: {error}")))?;
        let late = || {
            let text = format!("no page within {} s", PATIENCE.as_secs());
            Fault::failed(FailureKind::Timeout, text)
        };
        timeout(PATIENCE, self.follow(url)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn follow(&self, mut url: Url) -> Result<String> {
        for _ in 0..=REDIRECTS {
            self.permit(&url)?;
            let client = self.client.get_or_init(|| client(Arc::clone(&self.reach)));
            let client = client.as_ref().map_err(|why| other(why.as_str()))?;
            let response = client.get(url.clone()).send().await.map_err(fault)?;
            let target =
                response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(target) = target else { return text_of(response).await };
            let target = target.to_str().ok().and_then(|target| url.join(target).ok());
            url = target.ok_or_else(|| other("it leads to an address that is none"))?;
        }
        Err(other(format!("it is elsewhere more than {REDIRECTS} times")))
    }

    /// Refuses what is no page of the web, by what its address alone tells.
    fn permit(&self, url: &Url) -> Result<()> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(denied("only http and https are fetched"));
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_private = literal.is_ok_and(is_private) && !may_reach(&self.reach, url);
        if is_private { Err(denied("the address is a private one")) } else { Ok(()) }
    }
}

fn denied(text: &str) -> Fault {
    Fault::failed(FailureKind::Denied, format!("denied: {text}"))
}

fn may_reach(reach: &Reach, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    reach.contains(host) || reach.contains(&format!("{host}:{port}"))
}

fn client(reach: Arc<Reach>) -> std::result::Result<Client, String> {
    with_crypto();
    let client = Client::builder()
        .user_agent(USER_AGENT)
        // A proxy would look names up where we cannot see.
        .no_proxy()
        .redirect(Policy::none())
        .dns_resolver(Arc::new(Guarded { reach }));
    client.build().map_err(|error| error.to_string())
}

/// Looks names up, and gives none of a private address: what was looked up is what is connected to.
struct Guarded {
    reach: Arc<Reach>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let is_free = self.reach.iter().any(|it| it.split(':').next() == Some(name.as_str()));
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            if !is_free && found.iter().any(|address| is_private(address.ip())) {
                return Err("denied: the address is a private one".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of this machine, of its network, or of nobody.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => is_private_v4(it),
        IpAddr::V6(it) => it.to_ipv4().map_or_else(|| is_private_v6(it), is_private_v4),
    }
}

fn is_private_v4(it: Ipv4Addr) -> bool {
    let [a, b, c, _] = it.octets();
    it.is_private()
        || it.is_loopback()
        || it.is_link_local()
        || it.is_multicast()
        || it.is_documentation()
        || matches!(
            (a, b, c),
            (0 | 240.., ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18..=19, _)
        )
}

fn is_private_v6(it: Ipv6Addr) -> bool {
    // Addresses that stand for ones of the older kind lead to those.
    let embedded = match it.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    let older = embedded.map(|(high, low)| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    it.is_loopback()
        || it.is_unspecified()
        || it.is_multicast()
        || it.is_unique_local()
        || it.is_unicast_link_local()
        || matches!(it.segments(), [0x2001, 0xdb8, ..] | [0xfec0..=0xfeff, ..])
        || older.is_some_and(is_private_v4)
}

fn fault(error: reqwest::Error) -> Fault {
    let failure = failure_of(error);
    if failure.text.contains("denied: ") {
        return denied("the address is a private one");
    }
    Fault::failed(failure.kind, failure.text)
}

async fn text_of(response: Response) -> Result<String> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.unwrap_or("text/plain").to_owned();
    let is_text = ["text/", "json", "xml", "javascript", "yaml", "toml", "x-www-form"];
    if !is_text.iter().any(|it| kind.contains(it)) {
        return Err(other(format!("binary: {status}, it is of the kind {kind}")));
    }
    let (mut bytes, mut stream) = (Vec::new(), response.bytes_stream());
    while let Some(piece) = stream.try_next().await.map_err(fault)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > PAGE {
            bytes.truncate(PAGE);
            bytes.extend_from_slice(b"\n[the page is longer than 1 MiB]");
            break;
        }
    }
    Ok(format!("status {status}\n\n{}", String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machines_and_networks_of_ones_own_are_private() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "::1",
            "::",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "255.255.255.255",
            "::127.0.0.1",
        ] {
            assert!(is_private(address.parse().expect("it is an address")), "{address}");
        }
        for address in ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808"] {
            assert!(!is_private(address.parse().expect("it is an address")), "{address}");
        }
    }
}
