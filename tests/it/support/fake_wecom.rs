//! A WeCom server on loopback: `gettoken` and `message/send` with the checks and the manners of the
//! real one, faults on demand, and a log of what it was asked.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use iit_manager::adapters::wecom::config::WecomConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};

/// Nothing in a test takes this long; a wait beyond it fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// What can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    GetToken,
    Send,
}

/// What goes wrong with one call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers this number; nothing is delivered.
    Errcode(i64, &'static str),
    /// Answers `errcode` 0 with these fields beside it; the message is delivered.
    Answer(Value),
    /// Delivers, then closes the connection without an answer.
    DropAfterDelivery,
    /// Closes the connection without delivering or answering.
    Drop,
    /// A proxy's page; nothing is delivered.
    Html(u16),
    /// Delivers, then says ok in 10 MB.
    Flood,
    /// Signals `reached`, waits for `open`, then goes on as usual.
    Hold(Hold),
}

/// A place where a call stands still until the test lets it go.
#[derive(Debug, Clone, Default)]
pub struct Hold {
    pub reached: Arc<Notify>,
    pub open: Arc<Notify>,
}

/// One accepted message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Recipients that got it, as written by the sender.
    pub to: Vec<String>,
    /// What they see: like the real one, cut at 2048 bytes without a word.
    pub content: String,
    /// Whether something was cut.
    pub truncated: bool,
}

struct Inner {
    members: BTreeSet<String>,
    /// The valid token, and whether it has expired.
    token: Option<(String, bool)>,
    issued: u32,
    calls: Vec<Endpoint>,
    faults: BTreeMap<(Endpoint, usize), Fault>,
    always: BTreeMap<Endpoint, Fault>,
    messages: Vec<Message>,
    /// Bodies of `message/send`, as they came.
    requests: Vec<Value>,
    /// What was accepted lately, by its whole body, for who asked for the comparison.
    compared: Vec<(Value, Duration)>,
    /// When each member was shown something.
    shown: BTreeMap<String, Vec<Duration>>,
    /// Messages that were too many: accepted, and shown to nobody.
    dropped: usize,
    /// When this server started, and how much more time has passed than really has.
    started: Instant,
    ahead: Duration,
}

struct Shared {
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
}

/// The running server; stops with the test's runtime.
#[derive(Clone)]
pub struct FakeWecom {
    base: String,
    shared: Arc<Shared>,
}

impl FakeWecom {
    pub const CORP_ID: &'static str = "ww5823bf96d3bd56c7";
    pub const AGENT_ID: i64 = 1_000_002;
    pub const SECRET: &'static str = "fake-wecom-secret";

    /// Starts one with the members ZhangSan and LiSi.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared {
            inner: Mutex::new(Inner {
                members: ["zhangsan", "lisi"].map(str::to_owned).into(),
                token: None,
                issued: 0,
                calls: Vec::new(),
                faults: BTreeMap::new(),
                always: BTreeMap::new(),
                messages: Vec::new(),
                requests: Vec::new(),
                compared: Vec::new(),
                shown: BTreeMap::new(),
                dropped: 0,
                started: Instant::now(),
                ahead: Duration::ZERO,
            }),
            changed: watch::Sender::new(()),
        });
        let app = Router::new()
            .route("/cgi-bin/gettoken", get(get_token))
            .route("/cgi-bin/message/send", post(send))
            .route("/elsewhere", get(elsewhere).post(elsewhere))
            .with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { base, shared }
    }

    /// Lets somebody else receive messages too.
    pub fn add_member(&self, id: &str) {
        self.shared
            .with(|inner| inner.members.insert(id.to_lowercase()));
    }

    /// The `WECOM_*` variables that point a program at this server.
    pub fn variables(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("WECOM_CORP_ID", Self::CORP_ID.to_owned()),
            ("WECOM_AGENT_ID", Self::AGENT_ID.to_string()),
            ("WECOM_SECRET", Self::SECRET.to_owned()),
            ("WECOM_TOKEN", "QDG6eKtestTOKEN".to_owned()),
            (
                "WECOM_ENCODING_AES_KEY",
                "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C".to_owned(),
            ),
            ("WECOM_API_BASE", self.base.clone()),
        ])
    }

    /// The same, read.
    pub fn config(&self) -> WecomConfig {
        let variables = self.variables();
        let config = WecomConfig::from_lookup(|name| variables.get(name).cloned());
        config.unwrap().unwrap()
    }

    /// Breaks the `number`th call (from 1) of an endpoint.
    pub fn fail(&self, endpoint: Endpoint, number: usize, fault: Fault) {
        self.shared
            .with(|inner| inner.faults.insert((endpoint, number), fault));
    }

    /// Breaks every call of an endpoint.
    pub fn fail_always(&self, endpoint: Endpoint, fault: Fault) {
        self.shared
            .with(|inner| inner.always.insert(endpoint, fault));
    }

    /// Mends what [`FakeWecom::fail_always`] broke.
    pub fn recover(&self) {
        self.shared.with(|inner| inner.always.clear());
    }

    /// Gives out a token without a call, as if another process had asked; returns it.
    pub fn issue_token(&self) -> String {
        self.shared.with(Inner::issue)
    }

    /// From now on the current token answers 42001.
    pub fn expire_token(&self) {
        self.shared.with(|inner| {
            if let Some((_, expired)) = &mut inner.token {
                *expired = true;
            }
        });
    }

    /// From now on the current token answers 40014.
    pub fn revoke_token(&self) {
        self.shared.with(|inner| inner.token = None);
    }

    /// How often an endpoint was called.
    pub fn calls(&self, endpoint: Endpoint) -> usize {
        self.shared
            .with(|inner| inner.calls.iter().filter(|call| **call == endpoint).count())
    }

    /// What was delivered, in order.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.with(|inner| inner.messages.clone())
    }

    /// The bodies of all calls of `message/send` that came whole, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.with(|inner| inner.requests.clone())
    }

    /// Messages beyond a member's limits: answered with ok and shown to nobody.
    pub fn dropped(&self) -> usize {
        self.shared.with(|inner| inner.dropped)
    }

    /// Lets time pass here, for limits and comparisons.
    pub fn pass_time(&self, time: Duration) {
        self.shared.with(|inner| inner.ahead += time);
    }

    /// Waits until at least `count` messages were delivered and returns them all.
    pub async fn wait_for_messages(&self, count: usize) -> Vec<Message> {
        let mut changed = self.shared.changed.subscribe();
        let enough = async {
            loop {
                changed.borrow_and_update();
                let messages = self.messages();
                if messages.len() >= count {
                    return messages;
                }
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(PATIENCE, enough).await;
        waited.unwrap_or_else(|_| panic!("only {} of {count} messages came", self.messages().len()))
    }
}

impl Inner {
    fn now(&self) -> Duration {
        self.started.elapsed() + self.ahead
    }

    /// Whether the very same request was accepted within the interval it names; remembers it if not.
    fn is_repeat(&mut self, body: &Value) -> bool {
        if body["enable_duplicate_check"].as_i64().unwrap_or(0) == 0 {
            return false;
        }
        let interval = body["duplicate_check_interval"].as_u64().unwrap_or(1_800);
        let since = self.now().checked_sub(Duration::from_secs(interval));
        let known = self
            .compared
            .iter()
            .any(|(earlier, at)| earlier == body && since.is_none_or(|since| *at >= since));
        if !known {
            let now = self.now();
            self.compared.push((body.clone(), now));
        }
        known
    }

    /// Whether a member may be shown one more: 30 a minute, 1,000 an hour.
    fn has_room(&mut self, member: &str) -> bool {
        let now = self.now();
        let shown = self.shown.entry(member.to_lowercase()).or_default();
        let within = |window: u64| {
            shown
                .iter()
                .filter(|at| now - **at < Duration::from_secs(window))
                .count()
        };
        let room = within(60) < 30 && within(3_600) < 1_000;
        if room {
            shown.push(now);
        }
        room
    }

    fn issue(&mut self) -> String {
        self.issued += 1;
        let token = format!("fake-access-token-{}", self.issued);
        self.token = Some((token.clone(), false));
        token
    }
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap())
    }

    /// Counts the call and says what is to go wrong with it.
    fn arrive(&self, endpoint: Endpoint) -> Option<Fault> {
        self.with(|inner| {
            inner.calls.push(endpoint);
            let number = inner.calls.iter().filter(|call| **call == endpoint).count();
            inner
                .faults
                .remove(&(endpoint, number))
                .or_else(|| inner.always.get(&endpoint).cloned())
        })
    }

    fn deliver(&self, message: Message) {
        self.with(|inner| inner.messages.push(message));
        self.changed.send_replace(());
    }
}

fn answer(errcode: i64, errmsg: &str) -> Value {
    json!({ "errcode": errcode, "errmsg": errmsg })
}

/// Ends the connection without an answer; no message on the terminal, as no panic hook runs.
fn hang_up() -> ! {
    std::panic::resume_unwind(Box::new("the fake WeCom hangs up"))
}

fn html(status: u16) -> Response {
    let page = "<html><head><title>Bad Gateway</title></head><body>nginx</body></html>";
    (
        StatusCode::from_u16(status).unwrap(),
        [
            (header::CONTENT_TYPE, "text/html"),
            (header::LOCATION, "/elsewhere"),
        ],
        page,
    )
        .into_response()
}

/// Everything a caller could want to read, and far too much of it.
fn flood() -> Response {
    let padding = "x".repeat(10 * 1024 * 1024);
    json_answer(
        &json!({ "errcode": 0, "errmsg": padding, "access_token": "flooded", "expires_in": 7200 }),
    )
}

/// Where [`Fault::Html`] with a 3xx points: a follower would believe its message was sent.
async fn elsewhere() -> Response {
    json_answer(&json!({ "errcode": 0, "errmsg": "ok", "msgid": "elsewhere" }))
}

fn json_answer(value: &Value) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json; charset=UTF-8")],
        value.to_string(),
    )
        .into_response()
}

async fn get_token(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    match shared.arrive(Endpoint::GetToken) {
        Some(Fault::Errcode(code, message)) => return json_answer(&answer(code, message)),
        Some(Fault::Answer(value)) => return json_answer(&value),
        Some(Fault::Drop | Fault::DropAfterDelivery) => hang_up(),
        Some(Fault::Html(status)) => return html(status),
        Some(Fault::Flood) => return flood(),
        Some(Fault::Hold(hold)) => {
            hold.reached.notify_one();
            hold.open.notified().await;
        }
        None => {}
    }
    let field = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    if field("corpid") != FakeWecom::CORP_ID {
        return json_answer(&answer(40_013, "invalid corpid"));
    }
    if field("corpsecret") != FakeWecom::SECRET {
        return json_answer(&answer(40_001, "invalid credential"));
    }
    // A repeat within the validity gets the same token.
    let token = shared.with(|inner| match &inner.token {
        Some((token, false)) => token.clone(),
        _ => inner.issue(),
    });
    json_answer(&json!({ "errcode": 0, "errmsg": "ok", "access_token": token, "expires_in": 7200 }))
}

async fn send(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
    body: Bytes,
) -> Response {
    let fault = shared.arrive(Endpoint::Send);
    if let Ok(body) = serde_json::from_slice(&body) {
        shared.with(|inner| inner.requests.push(body));
    }
    match &fault {
        Some(Fault::Errcode(code, message)) => return json_answer(&answer(*code, message)),
        Some(Fault::Drop) => hang_up(),
        Some(Fault::Html(status)) => return html(*status),
        Some(Fault::Hold(hold)) => {
            hold.reached.notify_one();
            hold.open.notified().await;
        }
        Some(Fault::Answer(_) | Fault::DropAfterDelivery | Fault::Flood) | None => {}
    }
    let token = query
        .get("access_token")
        .map(String::as_str)
        .unwrap_or_default();
    let accepted = shared.with(|inner| take(inner, token, &body));
    let mut reply = match accepted {
        Ok((message, reply)) => {
            if let Some(message) = shared.with(|inner| show(inner, message, &body)) {
                shared.deliver(message);
            }
            reply
        }
        Err(refusal) => return json_answer(&refusal),
    };
    match fault {
        Some(Fault::DropAfterDelivery) => hang_up(),
        Some(Fault::Flood) => flood(),
        Some(Fault::Answer(extra)) => {
            for (name, value) in extra.as_object().unwrap() {
                reply[name] = value.clone();
            }
            json_answer(&reply)
        }
        _ => json_answer(&reply),
    }
}

/// What people see of an accepted message: nothing, and nobody is told, when it repeats one that it asked
/// to be compared with, or when it is one too many.
fn show(inner: &mut Inner, mut message: Message, body: &[u8]) -> Option<Message> {
    let body: Value = serde_json::from_slice(body).unwrap();
    if inner.is_repeat(&body) {
        return None;
    }
    let before = message.to.len();
    message.to.retain(|member| inner.has_room(member));
    inner.dropped += before - message.to.len();
    (!message.to.is_empty()).then_some(message)
}

/// The checks of `message/send` in the real one's order: token, form, app, content, recipients.
fn take(inner: &Inner, token: &str, body: &[u8]) -> Result<(Message, Value), Value> {
    match &inner.token {
        _ if token.is_empty() => return Err(answer(41_001, "access_token missing")),
        Some((valid, true)) if valid == token => {
            return Err(answer(42_001, "access_token expired"));
        }
        Some((valid, false)) if valid == token => {}
        _ => return Err(answer(40_014, "invalid access_token")),
    }
    let body: Value =
        serde_json::from_slice(body).map_err(|_| answer(47_001, "data format error"))?;
    if body["agentid"].as_i64() != Some(FakeWecom::AGENT_ID) {
        return Err(answer(40_056, "invalid agentid"));
    }
    if body["msgtype"] != "text" {
        return Err(answer(40_008, "invalid message type"));
    }
    let content = body["text"]["content"].as_str().unwrap_or_default();
    if content.is_empty() {
        return Err(answer(44_004, "content is empty"));
    }
    let to: Vec<&str> = body["touser"]
        .as_str()
        .unwrap_or_default()
        .split('|')
        .filter(|id| !id.is_empty())
        .collect();
    if to.is_empty() {
        return Err(answer(40_058, "touser, toparty and totag are all empty"));
    }
    let (known, unknown): (Vec<&str>, Vec<&str>) = to
        .into_iter()
        .partition(|id| inner.members.contains(&id.to_lowercase()));
    if known.is_empty() {
        return Err(answer(81_013, "user & party & tag all invalid"));
    }
    let shown = &content[..content.floor_char_boundary(2048)];
    let message = Message {
        to: known.into_iter().map(str::to_owned).collect(),
        content: shown.to_owned(),
        truncated: shown.len() < content.len(),
    };
    let reply = json!({
        "errcode": 0,
        "errmsg": "ok",
        "invaliduser": unknown.join("|").to_lowercase(),
        "invalidparty": "",
        "invalidtag": "",
        "msgid": format!("fake-message-{}", inner.messages.len() + 1),
    });
    Ok((message, reply))
}
