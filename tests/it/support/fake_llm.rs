//! A language model's server: OpenAI's chat completions over HTTP, with a log of its own and faults on
//! demand. What it says is decided by a function of the test's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    /// `<run>/<step>/<ask>`
    pub key: String,
    /// The body.
    pub body: Value,
}

impl Request {
    /// The messages of one role, in order.
    pub fn said_by(&self, role: &str) -> Vec<&str> {
        let messages = self.body["messages"].as_array().unwrap();
        messages
            .iter()
            .filter(|message| message["role"] == role)
            .map(|message| message["content"].as_str().unwrap())
            .collect()
    }

    /// The record's data as it was shown.
    pub fn data(&self) -> Value {
        let first = self.said_by("user")[0];
        let line = first.lines().find(|line| line.starts_with('{')).unwrap();
        serde_json::from_str(line).unwrap()
    }
}

/// What the server does with a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// An ordinary answer with this text.
    Says(String),
    /// This status, these headers, this body.
    Http(u16, Vec<(&'static str, String)>, String),
    /// Waits until `open`, then answers with this text.
    Held(Hold, String),
    /// Thinks this aloud and calls these tools: name and arguments as the model wrote them.
    Calls(String, Vec<(String, String)>),
}

impl Answer {
    /// One call.
    pub fn call(name: &str, arguments: impl ToString) -> Self {
        Self::Calls(
            String::new(),
            vec![(name.to_owned(), arguments.to_string())],
        )
    }
}

/// Stops a request until the test lets it go.
#[derive(Debug, Clone, Default)]
pub struct Hold {
    /// Told when the request is there.
    pub reached: Arc<Notify>,
    /// Lets it go.
    pub open: Arc<Notify>,
}

type Model = dyn Fn(&Request) -> Answer + Send + Sync;

#[derive(Clone)]
struct Shared {
    model: Arc<Model>,
    log: Arc<Mutex<Vec<Request>>>,
    next: Arc<Mutex<VecDeque<Answer>>>,
    always: Arc<Mutex<Option<Answer>>>,
}

/// The server, stopped with the value.
pub struct FakeLlm {
    address: SocketAddr,
    shared: Shared,
    serving: tokio::task::JoinHandle<()>,
}

impl FakeLlm {
    /// A model that says what `model` says.
    pub async fn start(model: impl Fn(&Request) -> String + Send + Sync + 'static) -> Self {
        Self::answering(move |request| Answer::Says(model(request))).await
    }

    /// A model that does what `model` says.
    pub async fn answering(model: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let shared = Shared {
            model: Arc::new(model),
            log: Arc::default(),
            next: Arc::default(),
            always: Arc::default(),
        };
        let app = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            shared,
            serving,
        }
    }

    /// A model that finds nothing wrong with anybody's history.
    pub async fn passing() -> Self {
        Self::start(|request| verdict(request, "pass", "history")).await
    }

    /// The settings of a program that uses it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LLM_BASE_URL", format!("http://{}/v1", self.address)),
            ("LLM_API_KEY", "fake-llm-key".to_owned()),
            ("LLM_MODEL", "fake-model".to_owned()),
            ("LLM_TIMEOUT_S", "30".to_owned()),
        ]
    }

    /// The next requests are answered so, one each.
    pub fn next(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.next.lock().unwrap().extend(answers);
    }

    /// From now on every request is answered so; `None`: as the model says.
    pub fn always(&self, answer: Option<Answer>) {
        *self.shared.always.lock().unwrap() = answer;
    }

    /// Every request so far, in order of arrival.
    pub fn log(&self) -> Vec<Request> {
        self.shared.log.lock().unwrap().clone()
    }
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A verdict that quotes the value of `field` in the first row that has one.
pub fn verdict(request: &Request, verdict: &str, field: &str) -> String {
    let data = request.data();
    let row = data["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["values"][field].is_string());
    let Some(row) = row else {
        return json!({ "verdict": "unable", "reason": "没有数据" }).to_string();
    };
    json!({
        "verdict": verdict,
        "reason": format!("依据 {field}"),
        "evidence": [{
            "record": data["record"], "event": row["event"], "instance": row["instance"],
            "field": field, "quote": row["values"][field],
        }],
    })
    .to_string()
}

async fn complete(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    assert_eq!(headers["authorization"], "Bearer fake-llm-key");
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    let request = Request { key, body };
    shared.log.lock().unwrap().push(request.clone());
    let next = shared.next.lock().unwrap().pop_front();
    let answer = next.or_else(|| shared.always.lock().unwrap().clone());
    match answer.unwrap_or_else(|| (shared.model)(&request)) {
        Answer::Says(text) => said(&text),
        Answer::Calls(text, calls) => called(&text, &calls),
        Answer::Http(status, headers, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        Answer::Held(hold, text) => {
            hold.reached.notify_one();
            tokio::time::timeout(Duration::from_secs(60), hold.open.notified())
                .await
                .expect("the test lets the request go");
            said(&text)
        }
    }
}

fn said(text: &str) -> Response {
    Json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake-model",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": text } }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 },
    }))
    .into_response()
}

fn called(text: &str, calls: &[(String, String)]) -> Response {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            // As some servers do, the same ids in every answer.
            json!({ "id": format!("call_{at}"), "type": "function",
                    "function": { "name": name, "arguments": arguments } })
        })
        .collect();
    Json(json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake-model",
        "choices": [{ "index": 0, "finish_reason": "tool_calls",
                      "message": { "role": "assistant", "content": text, "tool_calls": calls } }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 },
    }))
    .into_response()
}
