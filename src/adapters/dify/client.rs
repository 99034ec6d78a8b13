//! One call: `POST {base}/v1/datasets/{id}/retrieve` with the question. How it is searched is the dataset's own
//! setting, which its owners tuned; a setting of ours would fail where their embedding differs.

use std::time::Duration;

use reqwest::{Client, Response, Url};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{DifyConfig, DifyError, answer, config::is_dataset_id};
use crate::{
    adapters::http_client::{self, Deadlines},
    types::protocol::Found,
};

/// Its embedding model may be slow; a person waits, though.
const DEADLINE: Duration = Duration::from_secs(15);
/// Dify refuses longer questions.
pub const LONGEST_QUERY: usize = 250;
/// An answer is some KB; more than this is none.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// Dify's knowledge API.
#[derive(Debug)]
pub struct DifyClient {
    config: DifyConfig,
    http: Client,
    deadline: Duration,
}

impl DifyClient {
    /// A client with the usual deadlines.
    ///
    /// # Errors
    /// The HTTP client can't be built.
    pub fn new(config: DifyConfig) -> anyhow::Result<Self> {
        let http = http_client::client(
            &config.base_url,
            Deadlines::default(),
            Duration::from_secs(30),
        )?;
        Ok(Self {
            config,
            http,
            deadline: DEADLINE,
        })
    }

    /// The same, with answers that must be whole within `total`.
    #[must_use]
    pub fn within(mut self, total: Duration) -> Self {
        self.deadline = total;
        self
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &DifyConfig {
        &self.config
    }

    /// The passages a dataset has on a question, best first. A question of more than 250 characters is cut.
    ///
    /// # Errors
    /// [`DifyError`]; nothing is tried again.
    pub async fn retrieve(&self, dataset: &str, query: &str) -> Result<Vec<Found>, DifyError> {
        let address = self.address(dataset).ok_or(DifyError::NoDataset)?;
        let query: String = query.chars().take(LONGEST_QUERY).collect();
        let response = self
            .http
            .post(address)
            .bearer_auth(self.config.api_key.expose_secret())
            .json(&json!({ "query": query }))
            .timeout(self.deadline)
            .send()
            .await
            .map_err(transport)?;
        let status = response.status().as_u16();
        match status {
            200..=299 => answer::read(&body(response).await?),
            401 | 403 => Err(DifyError::Key(status)),
            404 => Err(DifyError::NoDataset),
            408 => Err(DifyError::Timeout),
            429 => Err(DifyError::RateLimited),
            500.. => Err(DifyError::Trouble(status)),
            _ => Err(DifyError::Refused(status)),
        }
    }

    fn address(&self, dataset: &str) -> Option<Url> {
        let mut address = self.config.base_url.clone();
        address
            .path_segments_mut()
            .ok()?
            .pop_if_empty()
            .extend(["v1", "datasets", dataset, "retrieve"]);
        is_dataset_id(dataset).then_some(address)
    }
}

async fn body(mut response: Response) -> Result<Vec<u8>, DifyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(transport)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(DifyError::Unreadable("it is longer than 2 MB"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn transport(error: reqwest::Error) -> DifyError {
    if error.is_connect() || error.is_builder() {
        DifyError::Unreachable
    } else if error.is_timeout() {
        DifyError::Timeout
    } else {
        DifyError::Unreadable("it broke off")
    }
}
