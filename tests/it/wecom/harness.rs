//! A callback server on loopback with an inbox in memory, and a sender that writes bytes as they are.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::bail;
use chrono::{DateTime, Utc};
use iit_manager::adapters::wecom::callback::Gate;
use iit_manager::adapters::wecom::config::WecomConfig;
use iit_manager::adapters::wecom::crypto;
use iit_manager::adapters::wecom::inbound::Inbound;
use iit_manager::entry::wecom::{Limits, ReceiveInbound, Received, router};
use iit_manager::types::clock::Clock;
use secrecy::ExposeSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One app's settings as the admin page shows them.
#[derive(Clone)]
pub struct App {
    pub corp_id: String,
    pub agent_id: i64,
    pub token: String,
    pub key: String,
}

impl App {
    pub fn b() -> Self {
        Self {
            corp_id: "wwSecondCorp00001".to_owned(),
            agent_id: 1_000_007,
            token: "tokB_9f3c".to_owned(),
            key: "3wK0iyMVSgkSyW5PBz+ujDj2T+LJq3/A/WErPowlgy8".to_owned(),
        }
    }

    pub fn config(&self) -> Arc<WecomConfig> {
        let vars = BTreeMap::from([
            ("WECOM_CORP_ID", self.corp_id.clone()),
            ("WECOM_AGENT_ID", self.agent_id.to_string()),
            ("WECOM_SECRET", "unused".to_owned()),
            ("WECOM_TOKEN", self.token.clone()),
            ("WECOM_ENCODING_AES_KEY", self.key.clone()),
        ]);
        let config = WecomConfig::from_lookup(|name| vars.get(name).cloned());
        Arc::new(config.unwrap().unwrap())
    }

    pub fn gate(&self, now: i64) -> Gate {
        Gate::new(self.config(), Clock::fixed(at(now)))
    }

    /// Encrypts for this app.
    pub fn encrypt(&self, message: &str) -> String {
        crypto::encrypt(
            &self.config().aes_key,
            &self.corp_id,
            *b"0123456789abcdef",
            message,
        )
        .unwrap()
    }

    /// The query that signs `encrypted` at `timestamp`.
    pub fn sign(&self, timestamp: &str, encrypted: &str) -> String {
        let config = self.config();
        let signature =
            crypto::signature(config.token.expose_secret(), timestamp, "8642", encrypted);
        format!("msg_signature={signature}&timestamp={timestamp}&nonce=8642")
    }
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

/// A message as WeCom would encrypt it.
pub fn text_message(app: &App, msg_id: u64, content: &str) -> String {
    format!(
        "<xml><ToUserName><![CDATA[{}]]></ToUserName><FromUserName><![CDATA[ZhangSan]]></FromUserName><CreateTime>1700000000</CreateTime><MsgType><![CDATA[text]]></MsgType><Content><![CDATA[{content}]]></Content><MsgId>{msg_id}</MsgId><AgentID>{}</AgentID></xml>",
        app.corp_id, app.agent_id
    )
}

/// When recorded and made-up callbacks were sent.
pub const NOW: i64 = 1_700_000_000;

/// A signed request for app B at [`NOW`].
pub fn request(message: &str) -> (String, String) {
    let app = App::b();
    let encrypted = app.encrypt(message);
    (app.sign("1700000000", &encrypted), envelope(&encrypted))
}

/// The envelope around a ciphertext.
pub fn envelope(encrypted: &str) -> String {
    format!("<xml><Encrypt><![CDATA[{encrypted}]]></Encrypt></xml>")
}

/// How the inbox behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Works,
    Fails,
    Hangs,
}

/// Keeps what it received, one per key.
#[derive(Clone)]
pub struct Inbox {
    stored: Arc<Mutex<Vec<Inbound>>>,
    mood: Arc<Mutex<Mood>>,
}

impl Inbox {
    pub fn new() -> Self {
        Self {
            stored: Arc::default(),
            mood: Arc::new(Mutex::new(Mood::Works)),
        }
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub fn stored(&self) -> Vec<Inbound> {
        self.stored.lock().unwrap().clone()
    }
}

impl ReceiveInbound for Inbox {
    async fn receive(&self, inbound: Inbound) -> anyhow::Result<Received> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Works => {}
            Mood::Fails => bail!("the database is down"),
            Mood::Hangs => std::future::pending().await,
        }
        let mut stored = self.stored.lock().unwrap();
        if stored
            .iter()
            .any(|known| known.dedupe_key() == inbound.dedupe_key())
        {
            return Ok(Received::Duplicate);
        }
        stored.push(inbound);
        Ok(Received::New)
    }
}

/// A running callback server.
pub struct Server {
    pub address: SocketAddr,
    pub inbox: Inbox,
}

impl Server {
    pub async fn start(gate: Option<Gate>) -> Self {
        Self::start_with(gate, Limits::default()).await
    }

    pub async fn start_with(gate: Option<Gate>, limits: Limits) -> Self {
        let inbox = Inbox::new();
        let app = router(gate, inbox.clone(), limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, inbox }
    }

    pub async fn get(&self, query: &str) -> Answer {
        self.send("GET", query, &[]).await
    }

    pub async fn post(&self, query: &str, body: impl AsRef<[u8]>) -> Answer {
        self.send("POST", query, body.as_ref()).await
    }

    async fn send(&self, method: &str, query: &str, body: &[u8]) -> Answer {
        let head = format!(
            "{method} /wecom/callback?{query} HTTP/1.1\r\nHost: iit.example\r\nContent-Type: text/xml\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        self.send_raw(&[head.as_bytes(), body].concat()).await
    }

    /// Writes exactly these bytes and reads until the server closes.
    pub async fn send_raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        Answer::parse(&answer)
    }
}

/// An HTTP answer taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            status,
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    /// 200 and nothing else.
    pub fn is_empty_ok(&self) -> bool {
        self.status == 200 && self.body.is_empty() && self.head.contains("content-length: 0")
    }
}
