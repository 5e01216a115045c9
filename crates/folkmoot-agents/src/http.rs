//! The connections to providers.

use std::{error::Error, io, sync::OnceLock, time::Duration};

use folkmoot_core::call::FailureKind;
use reqwest::{Client, Url, redirect::Policy};

use crate::{patience::Patience, retry::Failure};

/// How Folkmoot introduces itself.
pub(crate) const USER_AGENT: &str = concat!("folkmoot/", env!("CARGO_PKG_VERSION"));

/// Connections kept for each server, so that a thousand calls at once open no more than they need.
const IDLE_CONNECTIONS: usize = 1024;

/// Two pools of connections that all providers share, each made when it is first used: what is
/// costly about a client are the root certificates, and servers on this machine need none.
#[derive(Debug)]
pub(crate) struct Http {
    connect: Duration,
    /// Unencrypted, to this machine, past any proxy.
    local: OnceLock<Result<Client, String>>,
    /// To everywhere else.
    remote: OnceLock<Result<Client, String>>,
}

impl Http {
    /// No connection yet.
    pub(crate) fn new(patience: &Patience) -> Http {
        Http { connect: patience.connect, local: OnceLock::new(), remote: OnceLock::new() }
    }

    /// The client that reaches `url`.
    pub(crate) fn client(&self, url: &Url) -> Result<&Client, Failure> {
        let client = if is_local(url) {
            self.local.get_or_init(|| self.build(|client| client.no_proxy().tls_certs_only([])))
        } else {
            self.remote.get_or_init(|| self.build(|client| client))
        };
        client.as_ref().map_err(|why| Failure::new(FailureKind::Config, why))
    }

    fn build(
        &self,
        finish: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Client, String> {
        with_crypto();
        let client = Client::builder()
            .user_agent(USER_AGENT)
            .http1_only()
            .tcp_nodelay(true)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .connect_timeout(self.connect)
            // A key belongs to one address, and no API moves while it is asked.
            .redirect(Policy::none());
        finish(client).build().map_err(|error| words_of(&error))
    }
}

/// Lets clients encrypt.
pub(crate) fn with_crypto() {
    // Whoever installed a provider before chose as well as we do.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_this_machine = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    url.scheme() == "http" && is_this_machine
}

/// The failure that `error` is, without the address, which may hold a key.
pub(crate) fn failure_of(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let kind = if error.is_timeout() {
        FailureKind::Timeout
    } else if was_cut_off(&error) {
        FailureKind::Incomplete
    } else if error.is_builder() {
        FailureKind::Config
    } else {
        FailureKind::Transport
    };
    Failure::new(kind, words_of(&error))
}

/// Whether the other side ended the transfer before its proper end.
fn was_cut_off(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| {
        let fault = cause.downcast_ref::<io::Error>();
        fault.is_some_and(|fault| fault.kind() == io::ErrorKind::UnexpectedEof)
    })
}

fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut cause = error.source();
    std::iter::from_fn(move || {
        let this = cause?;
        cause = this.source();
        Some(this)
    })
}

/// The words of an error and its causes, each once.
fn words_of(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |words, cause| {
        let cause = cause.to_string();
        if words.contains(&cause) { words } else { format!("{words}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_local(url: &str) -> bool {
        super::is_local(&Url::parse(url).expect("it is an address"))
    }

    #[test]
    fn only_unencrypted_addresses_of_this_machine_are_local() {
        for url in
            ["http://127.0.0.1:8000/v1", "http://127.9.9.9", "http://[::1]:1", "http://localhost"]
        {
            assert!(is_local(url), "{url}");
        }
        for url in ["https://127.0.0.1", "http://10.0.0.1", "http://localhost.example", "http://a"]
        {
            assert!(!is_local(url), "{url}");
        }
    }
}
