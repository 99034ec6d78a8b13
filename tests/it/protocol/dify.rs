//! Dify's knowledge base behind a server of the test's: what is sent, and what each answer comes to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, Uri};
use iit_manager::adapters::dify::{DifyClient, DifyConfig};
use serde_json::{Value, json};

/// A request as it came: path, key, body.
pub type Asked = (String, String, Value);

/// Dify, as far as it is asked.
pub struct FakeDify {
    pub base: String,
    log: Arc<Mutex<Vec<Asked>>>,
    serving: tokio::task::JoinHandle<()>,
}

/// What it says.
#[derive(Clone)]
pub enum Says {
    Http(u16, String),
    /// The head of an answer and never its end.
    Hangs,
}

impl FakeDify {
    pub async fn start(says: Says) -> Self {
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let shared = Arc::clone(&log);
        let app = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let (says, log) = (says.clone(), Arc::clone(&shared));
            async move {
                let key = headers
                    .get("authorization")
                    .map(|k| k.to_str().unwrap().to_owned());
                let body = serde_json::from_slice(&body).unwrap_or_default();
                log.lock()
                    .unwrap()
                    .push((uri.to_string(), key.unwrap_or_default(), body));
                match says {
                    Says::Http(status, text) => {
                        let location = "http://127.0.0.1:1/elsewhere";
                        Response::builder()
                            .status(status)
                            .header("location", location)
                            .body(Body::from(text))
                            .unwrap()
                    }
                    Says::Hangs => std::future::pending().await,
                }
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base, log, serving }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for FakeDify {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An answer with these passages of one document.
pub fn passages(texts: &[&str]) -> Says {
    let records: Vec<Value> = texts
        .iter()
        .map(|text| json!({"segment": {"content": text, "document": {"name": "方案V2.docx"}}, "score": 0.5}))
        .collect();
    Says::Http(
        200,
        json!({"query": {"content": "?"}, "records": records}).to_string(),
    )
}

/// A client of the server at `base`.
pub fn client(base: &str, total: Duration) -> DifyClient {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = DifyConfig::from_lookup(|name| match name {
        "DIFY_BASE_URL" => Some(format!("{base}/v1")),
        "DIFY_API_KEY" => Some("dataset-secret".to_owned()),
        "DIFY_DATASET_ID" => Some("11111111-2222-3333-4444-555555555555".to_owned()),
        _ => None,
    });
    DifyClient::new(config.unwrap().unwrap())
        .unwrap()
        .within(total)
}

async fn outcome(says: Says) -> String {
    let server = FakeDify::start(says).await;
    match client(&server.base, Duration::from_millis(300))
        .retrieve("ds-1", "访视窗口")
        .await
    {
        Ok(found) => found
            .iter()
            .map(|f| format!("{} {}", f.citation(), f.text))
            .collect::<Vec<_>>()
            .join("|"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn the_question_alone_is_sent_with_the_key_and_passages_come_back_in_order() {
    let server = FakeDify::start(passages(&["窗口 ±3 天", "另一段"])).await;
    let client = client(&server.base, Duration::from_secs(30));
    let found = client.retrieve("ds-1", &"问".repeat(300)).await.unwrap();
    assert_eq!(found[0].text, "窗口 ±3 天");
    assert_eq!(found[1].citation().to_string(), "《方案V2.docx》");
    let (path, key, body) = server.asked().remove(0);
    assert_eq!(
        (path.as_str(), key.as_str()),
        ("/v1/datasets/ds-1/retrieve", "Bearer dataset-secret")
    );
    assert_eq!(body, json!({"query": "问".repeat(250)}));
}

#[tokio::test]
async fn every_way_to_fail_is_one_sentence_that_repeats_nothing_the_server_said() {
    let said = "访视窗口 dataset-secret <html>";
    let mut told = Vec::new();
    for status in [301, 400, 401, 403, 404, 408, 429, 500, 502] {
        told.push(format!(
            "{status}: {}",
            outcome(Says::Http(status, said.to_owned())).await
        ));
    }
    told.push(format!(
        "junk: {}",
        outcome(Says::Http(200, said.to_owned())).await
    ));
    told.push(format!(
        "no records: {}",
        outcome(Says::Http(200, "{\"data\":[]}".to_owned())).await
    ));
    told.push(format!(
        "too long: {}",
        outcome(Says::Http(200, "x".repeat(3 << 20))).await
    ));
    told.push(format!("hangs: {}", outcome(Says::Hangs).await));
    let gone = client("http://127.0.0.1:1", Duration::from_secs(5))
        .retrieve("ds-1", "q")
        .await;
    told.push(format!("gone: {}", gone.unwrap_err()));
    insta::assert_snapshot!(told.join("\n"));
    assert!(
        told.iter()
            .all(|line| !line.contains("secret") && !line.contains("html"))
    );
}

#[tokio::test]
async fn a_dataset_that_would_lead_elsewhere_is_never_asked() {
    let server = FakeDify::start(passages(&["x"])).await;
    let client = client(&server.base, Duration::from_secs(5));
    for dataset in ["../../console", "a/b", "", "a b", "a?x=1"] {
        assert!(client.retrieve(dataset, "q").await.is_err(), "{dataset}");
    }
    assert_eq!(server.asked(), []);
}
