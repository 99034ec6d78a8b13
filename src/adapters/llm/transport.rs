//! The innermost part of a call: sends the request and looks at status, size and pace of the answer, before
//! the client library does. The library would lose the status of an error whose body it does not know, and
//! would log a body it can't read; so what it gets to see is [`Kept`], which it always can.

use std::{future::Future, pin::Pin, task::Poll, time::Duration};

use async_openai::middleware::HttpRequestFactory;
use reqwest::{Client, Response, header::HeaderMap};
use serde::{Deserialize, Serialize};

use super::{
    error::{Heard, LlmError},
    retry_after,
    said::Said,
};
use crate::{adapters::http_client::chain, types::clock::Clock};

/// An answer is a few KB; more than this is none.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// A request id is longer nowhere.
const MAX_ID_BYTES: usize = 128;

/// An answer as it is handed through the client library.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The body, surrounding blanks apart.
    pub body: String,
    /// The server's name for the request.
    pub request_id: Option<String>,
}

/// One call, checked.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    /// Sends it; the connect and total deadlines are its.
    pub http: Client,
    /// How long the body of an answer may stand still.
    pub idle: Duration,
    /// The header that holds the request id.
    pub request_id: String,
}

impl tower::Service<HttpRequestFactory> for Checked {
    type Response = Response;
    type Error = LlmError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, LlmError>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), LlmError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let request = request
                .build()
                .await
                .map_err(|error| LlmError::NotSent { why: chain(&error) })?;
            let kept = this.send(request).await?;
            let json = serde_json::to_vec(&kept)
                .map_err(|_| LlmError::unreadable("it can't be handed on"))?;
            Ok(Response::from(http::Response::new(json)))
        })
    }
}

impl Checked {
    async fn send(&self, request: reqwest::Request) -> Result<Kept, LlmError> {
        let mut response = self.http.execute(request).await.map_err(transport)?;
        let status = response.status();
        let request_id = request_id(response.headers(), &self.request_id);
        let mut bytes = Vec::new();
        let whole = self.read(&mut response, &mut bytes).await;
        if !status.is_success() {
            // The status says enough, whatever became of the body.
            let heard = Heard {
                status: status.as_u16(),
                retry_after: retry_after::read(response.headers(), Clock::system().now()),
                request_id,
            };
            return Err(LlmError::of_status(heard, &Said::read(&bytes)));
        }
        let read = whole.and_then(|()| {
            String::from_utf8(bytes).map_err(|_| LlmError::unreadable("it is no UTF-8"))
        });
        match read {
            Ok(body) => Ok(Kept {
                body: body.trim().to_owned(),
                request_id,
            }),
            Err(error) => Err(error.of_request(request_id)),
        }
    }

    /// Reads the body into `bytes`. Servers that keep a connection alive by blank lines defeat the idle
    /// deadline; the total one ends that.
    async fn read(&self, response: &mut Response, bytes: &mut Vec<u8>) -> Result<(), LlmError> {
        loop {
            let chunk = tokio::time::timeout(self.idle, response.chunk()).await;
            let chunk = chunk.map_err(|_| no_answer("the answer stood still for too long"))?;
            let Some(chunk) = chunk.map_err(transport)? else {
                return Ok(());
            };
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(LlmError::unreadable("it is longer than 4 MB"));
            }
            bytes.extend_from_slice(&chunk);
        }
    }
}

/// The header, when it is a plain word: it goes into logs.
fn request_id(headers: &HeaderMap, name: &str) -> Option<String> {
    let id = headers.get(name)?.to_str().ok()?.trim();
    let plain = id
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_-.:/".contains(&b));
    ((1..=MAX_ID_BYTES).contains(&id.len()) && plain).then(|| id.to_owned())
}

fn no_answer(why: &'static str) -> LlmError {
    LlmError::NoAnswer {
        why,
        request_id: None,
    }
}

/// Before the connection stands nothing was sent; after that it may have been.
fn transport(error: reqwest::Error) -> LlmError {
    if error.is_connect() || error.is_builder() {
        LlmError::NotSent {
            why: chain(&error.without_url()),
        }
    } else if error.is_timeout() {
        no_answer("the time was up")
    } else {
        no_answer("the connection broke")
    }
}
