//! A server that says exactly the bytes it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What it does with a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Says this and closes the connection.
    Says(Vec<u8>),
    /// Says this, then nothing more, and keeps the connection.
    Holds(Vec<u8>),
    /// Says the first, then the second over and over.
    Drips(Vec<u8>, &'static str),
}

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct Asked {
    pub head: String,
    pub body: Value,
}

pub struct Server {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Asked>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    /// A server that does `act` with every request.
    pub async fn start(act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let asked = log.clone();
        let serving = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read(&mut stream).await;
                asked.lock().unwrap().push(request);
                match act.clone() {
                    Act::Says(bytes) => {
                        // The other side may have seen enough.
                        let _ = stream.write_all(&bytes).await;
                        let _ = stream.shutdown().await;
                    }
                    Act::Holds(bytes) => {
                        stream.write_all(&bytes).await.unwrap();
                        kept.push(stream);
                    }
                    Act::Drips(head, drop) => {
                        stream.write_all(&head).await.unwrap();
                        let mut pace = tokio::time::interval(Duration::from_millis(10));
                        while stream.write_all(drop.as_bytes()).await.is_ok() {
                            pace.tick().await;
                        }
                    }
                }
            }
        });
        Self {
            address,
            log,
            serving,
        }
    }

    /// A server that answers 200 with this body.
    pub async fn says(body: &str) -> Self {
        Self::start(Act::Says(http(200, &[], body.as_bytes()))).await
    }

    pub fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A whole HTTP answer.
pub fn http(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut answer = head(status, headers, body.len());
    answer.extend_from_slice(body);
    answer
}

/// The head of an answer whose body shall have `length` bytes.
pub fn head(status: u16, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

async fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    loop {
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.unwrap();
        assert_ne!(read, 0, "the request came whole");
        bytes.extend_from_slice(&more[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if let Ok(body) = serde_json::from_str(body) {
            return Asked {
                head: head.to_lowercase(),
                body,
            };
        }
    }
}
