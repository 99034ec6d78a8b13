//! Plain calls to WeCom's API: deadlines, a size cap, and what a failure says about delivery.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use super::errcode;
use super::error::SendError;

/// A real answer is under 1 KB; more than this is not WeCom.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// WeCom closes idle connections; reusing a dying one makes a send ambiguous for nothing.
const POOL_IDLE: Duration = Duration::from_secs(5);

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

/// A decoded answer: `errcode`, without which it is not WeCom's, `errmsg`, and the whole object.
#[derive(Debug)]
pub(super) struct Answer {
    pub errcode: i64,
    pub errmsg: String,
    pub body: Value,
}

/// One server, called with secrets in the query: so no URL ever reaches a log or an error, and no
/// redirect is followed.
#[derive(Debug, Clone)]
pub(super) struct Api {
    http: Client,
    base: Url,
}

impl Api {
    pub fn new(base: &Url, deadlines: Deadlines) -> anyhow::Result<Self> {
        ensure!(
            rustls::crypto::CryptoProvider::get_default().is_some(),
            "no TLS provider is installed: call rustls::crypto::ring::default_provider().install_default() first"
        );
        let mut builder = Client::builder()
            .connect_timeout(deadlines.connect)
            .timeout(deadlines.total)
            .pool_idle_timeout(POOL_IDLE)
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
        let http = builder.build().context("the HTTPS client for WeCom can't be built; install the package ca-certificates and check the proxy variables")?;
        Ok(Self {
            http,
            base: base.clone(),
        })
    }

    /// GET `cgi-bin/<path>`.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, SendError> {
        call(self.http.get(self.url(path)).query(query)).await
    }

    /// POST `cgi-bin/<path>` with a JSON body.
    pub async fn post(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &Value,
    ) -> Result<Answer, SendError> {
        call(self.http.post(self.url(path)).query(query).json(body)).await
    }

    fn url(&self, path: &str) -> String {
        format!(
            "{}/cgi-bin/{path}",
            self.base.as_str().trim_end_matches('/')
        )
    }
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

async fn call(request: RequestBuilder) -> Result<Answer, SendError> {
    let mut response = request.send().await.map_err(transport)?;
    let status = response.status();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(transport)? {
        if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(unreadable(status, "longer than 64 KB"));
        }
        bytes.extend_from_slice(&chunk);
    }
    let body: Value = serde_json::from_slice(&bytes).map_err(|_| unreadable(status, "no JSON"))?;
    let errcode = match body.get("errcode") {
        Some(code) => code
            .as_i64()
            .ok_or_else(|| unreadable(status, "with an errcode that is no number"))?,
        None => return Err(unreadable(status, "without errcode")),
    };
    let errmsg = body
        .get("errmsg")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if errcode == 0 && !status.is_success() {
        return Err(unreadable(status, "that says ok"));
    }
    Ok(Answer {
        errcode,
        errmsg,
        body,
    })
}

/// What an HTTP answer that isn't WeCom's says: a redirect and a 4xx were not taken, but for the two by
/// which a gateway says that it lost patience; everything else may have been, by somebody behind it.
fn unreadable(status: StatusCode, what: &str) -> SendError {
    match status.as_u16() {
        code @ (300..=407 | 409..=498) => errcode::stranger(code, what),
        code => SendError::Ambiguous {
            why: format!("HTTP {code}, answer {what}"),
        },
    }
}

/// Before the connection stands nothing was sent; after that it may have been.
fn transport(error: reqwest::Error) -> SendError {
    let never_left = error.is_connect() || error.is_builder();
    let why = chain(&error.without_url());
    if never_left {
        SendError::NotSent { why }
    } else {
        SendError::Ambiguous { why }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
