//! Plain calls to WeCom's API: deadlines, a size cap, and what a failure says about delivery.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use super::errcode;
use super::error::SendError;
pub use crate::adapters::http_client::Deadlines;
use crate::adapters::http_client::{self, chain};

/// A real answer is under 1 KB; more than this is not WeCom.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// WeCom closes idle connections; reusing a dying one makes a send ambiguous for nothing.
const POOL_IDLE: Duration = Duration::from_secs(5);

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
        let http = http_client::client(base, deadlines, POOL_IDLE)?;
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
