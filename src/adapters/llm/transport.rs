//! The innermost part of a call: sends the request and looks at status, size and form of the answer,
//! before the client library does. The library would lose the status of an error whose body it does not
//! know, and would log a body it can't read.

use std::{future::Future, pin::Pin, task::Poll, time::Duration};

use async_openai::middleware::HttpRequestFactory;
use reqwest::{Client, Response, header::RETRY_AFTER};
use serde::de::IgnoredAny;

use super::error::{LlmError, Said};
use crate::adapters::http_client::chain;

/// An answer is a few KB; more than this is none.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// One call, checked.
#[derive(Debug, Clone)]
pub(super) struct Checked(pub Client);

impl tower::Service<HttpRequestFactory> for Checked {
    type Response = Response;
    type Error = LlmError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, LlmError>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), LlmError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        let http = self.0.clone();
        Box::pin(async move {
            let request = request
                .build()
                .await
                .map_err(|error| LlmError::NotSent { why: chain(&error) })?;
            let mut response = http.execute(request).await.map_err(transport)?;
            let status = response.status();
            let retry_after = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.trim().parse().ok())
                .map(Duration::from_secs);
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(transport)? {
                if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                    return Err(LlmError::Unreadable {
                        why: "it is longer than 4 MB",
                    });
                }
                body.extend_from_slice(&chunk);
            }
            if !status.is_success() {
                let said = Said::read(&body);
                return Err(LlmError::of_status(status.as_u16(), &said, retry_after));
            }
            // The library reads it as text, which this check of the form alone does not.
            let is_json = std::str::from_utf8(&body)
                .is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
            if !is_json {
                return Err(LlmError::Unreadable {
                    why: "it is no JSON",
                });
            }
            Ok(Response::from(http::Response::new(body)))
        })
    }
}

/// Before the connection stands nothing was sent; after that it may have been.
fn transport(error: reqwest::Error) -> LlmError {
    if error.is_connect() || error.is_builder() {
        LlmError::NotSent {
            why: chain(&error.without_url()),
        }
    } else {
        LlmError::NoAnswer
    }
}
