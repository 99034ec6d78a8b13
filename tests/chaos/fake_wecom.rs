//! WeCom on loopback, as far as this needs it: tokens, and messages delivered to a log. (Its manners and
//! its errors are the business of the integration tests' fake.)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use iit_manager::adapters::wecom::config::WecomConfig;
use iit_manager::adapters::wecom::crypto;
use iit_manager::types::clock::Clock;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::history::History;
use crate::traps::{Moment, Traps, Verdict};

const AGENT_ID: i64 = 1_000_002;
const TOKEN: &str = "chaos-access-token";

/// One message as its reader got it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delivered {
    pub to: String,
    pub content: String,
}

/// The running server.
#[derive(Clone)]
pub struct FakeWecom(Arc<Inner>);

struct Inner {
    base: String,
    traps: Traps,
    history: History,
    delivered: Mutex<Vec<Delivered>>,
}

impl FakeWecom {
    pub async fn start(traps: Traps, history: History) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let fake = Self(Arc::new(Inner {
            base: format!("http://{}", listener.local_addr()?),
            traps,
            history,
            delivered: Mutex::default(),
        }));
        let app = Router::new()
            .route("/{slot}/cgi-bin/gettoken", get(get_token))
            .route("/{slot}/cgi-bin/message/send", post(send))
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(fake)
    }

    /// The `WECOM_*` variables for the process of a slot.
    pub fn variables(&self, slot: usize) -> BTreeMap<String, String> {
        let pairs = [
            ("WECOM_CORP_ID", "ww5823bf96d3bd56c7".to_owned()),
            ("WECOM_AGENT_ID", AGENT_ID.to_string()),
            ("WECOM_SECRET", "chaos-wecom-secret".to_owned()),
            ("WECOM_TOKEN", "QDG6eKtestTOKEN".to_owned()),
            (
                "WECOM_ENCODING_AES_KEY",
                "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C".to_owned(),
            ),
            ("WECOM_API_BASE", format!("{}/{slot}", self.0.base)),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    pub fn delivered(&self) -> Vec<Delivered> {
        lock(&self.0.delivered).clone()
    }

    /// Seals the callbacks this WeCom posts.
    pub fn sealer(&self) -> Result<Sealer> {
        let variables = self.variables(0);
        let config = WecomConfig::from_lookup(|name| variables.get(name).cloned())?;
        Ok(Sealer(Arc::new(config.context("no WeCom settings")?)))
    }
}

async fn get_token() -> Response {
    let answer = json!({ "errcode": 0, "errmsg": "ok", "access_token": TOKEN, "expires_in": 7200 });
    Json(answer).into_response()
}

async fn send(
    State(fake): State<FakeWecom>,
    Path(slot): Path<usize>,
    Query(query): Query<BTreeMap<String, String>>,
    Json(body): Json<Value>,
) -> Response {
    let right = query
        .get("access_token")
        .is_some_and(|token| token == TOKEN)
        && body["agentid"].as_i64() == Some(AGENT_ID);
    let (Some(to), Some(content), true) = (
        body["touser"].as_str(),
        body["text"]["content"].as_str(),
        right,
    ) else {
        return Json(json!({ "errcode": 40_035, "errmsg": "invalid parameter" })).into_response();
    };
    if fake.0.traps.reach(slot, Moment::Sending).await == Verdict::Swallow {
        return StatusCode::GONE.into_response();
    }
    let number = {
        let mut delivered = lock(&fake.0.delivered);
        delivered.push(Delivered {
            to: to.to_owned(),
            content: content.to_owned(),
        });
        delivered.len()
    };
    fake.0.history.next();
    if fake.0.traps.reach(slot, Moment::Delivered).await == Verdict::Swallow {
        return StatusCode::GONE.into_response();
    }
    let answer = json!({
        "errcode": 0, "errmsg": "ok", "invaliduser": "", "invalidparty": "", "invalidtag": "",
        "msgid": format!("chaos-message-{number}"),
    });
    Json(answer).into_response()
}

/// Writes callbacks as WeCom does: encrypted, signed at the time they are posted.
#[derive(Clone)]
pub struct Sealer(Arc<WecomConfig>);

/// What is posted.
pub struct Callback {
    pub query: String,
    pub body: String,
}

impl Sealer {
    /// The message `number` from a person; `attempt` makes the nonce of a repeat another one.
    pub fn seal(&self, number: usize, attempt: usize, from: &str, text: &str) -> Result<Callback> {
        let config = &self.0;
        let now = Clock::system().now().timestamp();
        let message = format!(
            "<xml><ToUserName><![CDATA[{}]]></ToUserName><FromUserName><![CDATA[{from}]]></FromUserName>\
             <CreateTime>{now}</CreateTime><MsgType><![CDATA[text]]></MsgType><Content><![CDATA[{text}]]></Content>\
             <MsgId>{}</MsgId><AgentID>{}</AgentID></xml>",
            config.corp_id,
            7_000_000_000_u64 + number as u64,
            config.agent_id
        );
        let mut random = [0; 16];
        random[..8].copy_from_slice(&number.to_be_bytes());
        random[8..].copy_from_slice(&attempt.to_be_bytes());
        let sealed = crypto::encrypt(&config.aes_key, &config.receive_id, random, &message)?;
        let (stamp, nonce) = (now.to_string(), format!("{number:08}{attempt:04}"));
        let signature = crypto::signature(config.token.expose_secret(), &stamp, &nonce, &sealed);
        Ok(Callback {
            query: format!("msg_signature={signature}&timestamp={stamp}&nonce={nonce}"),
            body: format!("<xml><Encrypt><![CDATA[{sealed}]]></Encrypt></xml>"),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
