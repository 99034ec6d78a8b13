//! One call to the model. Nothing is tried twice here: the queue retries, by the journal.

use async_openai::{
    Client, config::OpenAIConfig, error::OpenAIError, traits::RequestOptionsBuilder,
};
use secrecy::ExposeSecret;
use serde_json::value::RawValue;

use super::{
    config::LlmConfig, error::LlmError, reply::Reply, request::ChatRequest, transport::Checked,
};
use crate::adapters::http_client::{self, Deadlines};

use std::time::Duration;

/// Idle connections are dropped before servers and proxies drop them.
const POOL_IDLE: Duration = Duration::from_secs(20);

/// An answer as it came, and read.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The body, byte for byte (surrounding blanks apart): this is what the journal keeps.
    pub body: String,
    /// What it says.
    pub reply: Reply,
}

/// A model behind an endpoint. Cheap to clone.
#[derive(Clone)]
pub struct LlmClient {
    client: Client<OpenAIConfig>,
    model: String,
}

impl LlmClient {
    /// A client for the configured model.
    ///
    /// # Errors
    /// The HTTP client can't be built.
    pub fn new(config: &LlmConfig) -> anyhow::Result<Self> {
        let deadlines = Deadlines {
            total: config.timeout,
            ..Deadlines::default()
        };
        let http = http_client::client(&config.base_url, deadlines, POOL_IDLE)?;
        let key = config.api_key.as_ref();
        let settings = OpenAIConfig::new()
            .with_api_base(config.base_url.as_str().trim_end_matches('/'))
            .with_api_key(key.map(|key| key.expose_secret()).unwrap_or_default());
        Ok(Self {
            client: Client::build(http.clone(), settings).with_http_service(Checked(http)),
            model: config.model.clone(),
        })
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Asks once. `key` goes along as `Idempotency-Key`, for servers that know it and for their logs.
    ///
    /// # Errors
    /// [`LlmError`]; its [`LlmError::maybe_billed`] says whether the question may have been paid for.
    pub async fn chat(&self, request: &ChatRequest, key: &str) -> Result<Answer, LlmError> {
        let chat = self
            .client
            .chat()
            .header("Idempotency-Key", key)
            .map_err(error_of)?;
        let body: Box<RawValue> = chat
            .create_byot(request.body(&self.model))
            .await
            .map_err(error_of)?;
        let body = body.get().to_owned();
        let reply = Reply::read(&body, request.max_tokens)?;
        Ok(Answer { body, reply })
    }
}

impl std::fmt::Debug for LlmClient {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmClient")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Our own error comes back out of the library's box; what the library itself found is told without its
/// text, which may quote the answer.
fn error_of(error: OpenAIError) -> LlmError {
    match error {
        OpenAIError::Boxed(inner) => match inner.downcast::<LlmError>() {
            Ok(ours) => *ours,
            Err(_) => LlmError::NoAnswer,
        },
        OpenAIError::InvalidArgument(_) => LlmError::NotSent {
            why: "the request can't be built".to_owned(),
        },
        OpenAIError::JSONDeserialize(..) => LlmError::Unreadable {
            why: "it is no JSON",
        },
        _ => LlmError::NoAnswer,
    }
}
