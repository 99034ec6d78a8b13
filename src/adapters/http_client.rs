//! The HTTP client that adapters call an outside system with.

use std::{net::IpAddr, time::Duration};

use anyhow::{Context as _, ensure};
use reqwest::{Client, Url};

/// How long one call may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Until the connection stands.
    pub connect: Duration,
    /// From start to the last byte of the answer.
    pub total: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(10),
        }
    }
}

/// A client for one server. No redirect is followed: it would carry secrets to another host. Idle
/// connections are dropped after `pool_idle`.
///
/// # Errors
/// No TLS provider is installed, or the machine has no certificates.
pub fn client(base: &Url, deadlines: Deadlines, pool_idle: Duration) -> anyhow::Result<Client> {
    ensure!(
        rustls::crypto::CryptoProvider::get_default().is_some(),
        "no TLS provider is installed: call rustls::crypto::ring::default_provider().install_default() first"
    );
    let mut builder = Client::builder()
        .connect_timeout(deadlines.connect)
        .timeout(deadlines.total)
        .pool_idle_timeout(pool_idle)
        .redirect(reqwest::redirect::Policy::none())
        // One call is one request: what a server that goes away did with it is not ours to guess.
        .retry(reqwest::retry::never())
        .user_agent(concat!("iit-manager/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    if base.scheme() == "http" {
        // No certificate is ever looked at, so a machine without ca-certificates will do.
        builder = builder.tls_certs_only([]);
    }
    builder.build().context(
        "the HTTPS client can't be built; install the package ca-certificates and check the proxy variables",
    )
}

/// Whether `base` is this very machine.
#[must_use]
pub fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// An error and everything behind it, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
