//! One call to the model. Nothing is tried twice here: the queue retries, by the journal.

use std::time::Duration;

use async_openai::{
    Client, config::OpenAIConfig, error::OpenAIError, traits::RequestOptionsBuilder,
};
use secrecy::ExposeSecret;

use serde_json::Value;

use super::{
    config::LlmConfig,
    error::LlmError,
    profile::Profile,
    reply::Reply,
    request::ChatRequest,
    transcript,
    transport::{Checked, Kept},
    wire,
};
use crate::adapters::http_client::{self, Deadlines};

/// Idle connections are dropped before servers and proxies drop them.
const POOL_IDLE: Duration = Duration::from_secs(20);

/// An answer as it came, and read.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The body, byte for byte (surrounding blanks apart): this is what the journal keeps.
    pub body: String,
    /// What it says.
    pub reply: Reply,
    /// The server's name for the request, for a complaint to its operator; a plain word.
    pub request_id: Option<String>,
}

/// A model behind an endpoint. Cheap to clone.
#[derive(Clone)]
pub struct LlmClient {
    client: Client<OpenAIConfig>,
    model: String,
    profile: Profile,
}

impl LlmClient {
    /// A client for the configured model.
    ///
    /// # Errors
    /// The HTTP client can't be built.
    pub fn new(config: &LlmConfig) -> anyhow::Result<Self> {
        let deadlines = Deadlines {
            connect: config.connect_timeout,
            total: config.timeout,
        };
        let http = http_client::client(&config.base_url, deadlines, POOL_IDLE)?;
        let key = config.api_key.as_ref();
        let settings = OpenAIConfig::new()
            .with_api_base(config.base_url.as_str().trim_end_matches('/'))
            .with_api_key(key.map(|key| key.expose_secret()).unwrap_or_default());
        let checked = Checked {
            http: http.clone(),
            idle: config.idle_timeout,
            request_id: config.profile.request_id.clone(),
        };
        Ok(Self {
            client: Client::build(http, settings).with_http_service(checked),
            model: config.model.clone(),
            profile: config.profile.clone(),
        })
    }

    /// The model's name.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// How the server wants to be asked.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// `request` as it is sent to this model.
    #[must_use]
    pub fn body(&self, request: &ChatRequest) -> Value {
        wire::body(request, &self.model, &self.profile)
    }

    /// SHA-256 of `request` as it is sent to this model, in hex.
    #[must_use]
    pub fn hash(&self, request: &ChatRequest) -> String {
        wire::hash(&self.body(request))
    }

    /// Asks once. `key` goes along as `Idempotency-Key`, for servers that know it and for their logs.
    ///
    /// # Errors
    /// [`LlmError`]; its [`LlmError::maybe_billed`] says whether the question may have been paid for.
    pub async fn chat(&self, request: &ChatRequest, key: &str) -> Result<Answer, LlmError> {
        transcript::check(request, &self.profile).map_err(|why| LlmError::Invalid { why })?;
        let chat = self
            .client
            .chat()
            .header("Idempotency-Key", key)
            .map_err(error_of)?;
        let kept: Kept = chat
            .create_byot(self.body(request))
            .await
            .map_err(error_of)?;
        match Reply::read(&kept.body, request.max_tokens) {
            Ok(reply) => Ok(Answer {
                body: kept.body,
                reply,
                request_id: kept.request_id,
            }),
            Err(error) => Err(error.of_request(kept.request_id)),
        }
    }
}

impl std::fmt::Debug for LlmClient {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LlmClient")
            .field("model", &self.model)
            .field("profile", &self.profile.name)
            .finish_non_exhaustive()
    }
}

/// Our own error comes back out of the library's box; what the library itself found is told without its
/// text, which may quote the answer.
fn error_of(error: OpenAIError) -> LlmError {
    match error {
        OpenAIError::Boxed(inner) => match inner.downcast::<LlmError>() {
            Ok(ours) => *ours,
            Err(_) => LlmError::unreadable("the client library failed"),
        },
        OpenAIError::InvalidArgument(_) => LlmError::NotSent {
            why: "the request can't be built".to_owned(),
        },
        _ => LlmError::unreadable("the client library failed"),
    }
}
