//! A model's server that keeps every byte it was sent, and answers as the test says.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::fake_llm::Hold;

/// What came in and what shall go out.
pub struct Recorder {
    address: std::net::SocketAddr,
    bytes: Arc<Mutex<Vec<Vec<u8>>>>,
    serving: tokio::task::JoinHandle<()>,
}

/// A request, read.
pub struct Request {
    /// `<run>/<step>/<ask>`
    pub key: String,
    /// The body.
    pub body: Value,
}

impl Request {
    /// The text of the last message.
    pub fn last(&self) -> &str {
        self.body["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_str()
            .unwrap()
    }

    /// All it says, as a server that repeats prompts in its errors would.
    pub fn all(&self) -> String {
        self.body["messages"].to_string()
    }
}

/// Status and body.
pub type Answer = (u16, String);

/// A completion with this message.
pub fn says(message: &Value) -> Answer {
    let body = json!({
        "choices": [{ "index": 0, "finish_reason": "stop", "message": message }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 20 },
    });
    (200, body.to_string())
}

impl Recorder {
    /// A server that answers so; with a hold, the first request waits for it.
    pub async fn start(
        hold: Option<Hold>,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bytes: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&bytes);
        let answer = Arc::new(answer);
        let hold = Arc::new(Mutex::new(hold));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer, hold) =
                    (Arc::clone(&kept), Arc::clone(&answer), Arc::clone(&hold));
                tokio::spawn(async move { serve(stream, &kept, &*answer, &hold).await });
            }
        });
        Self {
            address,
            bytes,
            serving,
        }
    }

    /// The settings of a program that uses it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LLM_BASE_URL", format!("http://{}/v1", self.address)),
            ("LLM_API_KEY", "recorder-key".to_owned()),
            ("LLM_MODEL", "m".to_owned()),
            ("LLM_TIMEOUT_S", "30".to_owned()),
        ]
    }

    /// Every request, whole: request line, headers, body.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        self.bytes.lock().unwrap().clone()
    }

    /// The bodies.
    pub fn bodies(&self) -> Vec<Value> {
        self.bytes().iter().map(|bytes| read(bytes).body).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut stream: tokio::net::TcpStream,
    kept: &Mutex<Vec<Vec<u8>>>,
    answer: &(dyn Fn(&Request) -> Answer + Send + Sync),
    hold: &Mutex<Option<Hold>>,
) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    while !is_whole(&bytes) {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
        }
    }
    if bytes.is_empty() {
        return;
    }
    kept.lock().unwrap().push(bytes.clone());
    let held = hold.lock().unwrap().take();
    if let Some(hold) = held {
        hold.reached.notify_one();
        hold.open.notified().await;
    }
    let (status, body) = answer(&read(&bytes));
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // Whoever asked may be dead by now.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
}

fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn header(bytes: &[u8], name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..head_end(bytes)?]).into_owned();
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = head_end(bytes) else {
        return false;
    };
    let length = header(bytes, "content-length").expect("a body of known length");
    bytes.len() >= end + length.parse::<usize>().unwrap()
}

fn read(bytes: &[u8]) -> Request {
    Request {
        key: header(bytes, "idempotency-key").unwrap(),
        body: serde_json::from_slice(&bytes[head_end(bytes).unwrap()..]).unwrap(),
    }
}
