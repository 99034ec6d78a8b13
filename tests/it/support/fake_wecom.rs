//! A WeCom server on loopback: `gettoken`, `message/send` and `message/update_template_card` with the
//! checks and the manners of the real one, faults on demand, and a log of what it was asked.
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
    /// `message/send`, texts and cards alike.
    Send,
    UpdateCard,
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

/// One card that somebody sees.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownCard {
    /// Who sees it.
    pub to: String,
    /// `template_card` as it was sent.
    pub card: Value,
    /// What stands in place of its buttons.
    pub replaced: Option<String>,
}

impl ShownCard {
    pub fn task_id(&self) -> String {
        self.card["task_id"].as_str().unwrap().to_owned()
    }

    /// What the buttons say, in order.
    pub fn buttons(&self) -> Vec<String> {
        let buttons = self.card["button_list"].as_array().unwrap();
        let texts = buttons.iter().map(|button| button["text"].as_str());
        texts.map(|text| text.unwrap().to_owned()).collect()
    }
}

/// What comes with a click and lets its card be changed once.
struct ResponseCode {
    task_id: String,
    member: String,
    issued: Duration,
    used: bool,
}

/// What a valid request wants shown.
enum Content {
    Text(Message),
    Card(Vec<String>, Value),
}

struct Inner {
    members: BTreeSet<String>,
    /// Who reads in the WeChat plug-in: texts, and nothing of cards.
    in_plugin: BTreeSet<String>,
    cards: Vec<ShownCard>,
    /// Every task id that was ever accepted.
    task_ids: BTreeSet<String>,
    response_codes: BTreeMap<String, ResponseCode>,
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
                in_plugin: BTreeSet::new(),
                cards: Vec::new(),
                task_ids: BTreeSet::new(),
                response_codes: BTreeMap::new(),
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
            .route("/cgi-bin/message/update_template_card", post(update_card))
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

    /// From now on that member reads in the WeChat plug-in.
    pub fn reads_in_plugin(&self, id: &str) {
        self.add_member(id);
        self.shared
            .with(|inner| inner.in_plugin.insert(id.to_lowercase()));
    }

    /// The cards that people see, in order.
    pub fn cards(&self) -> Vec<ShownCard> {
        self.shared.with(|inner| inner.cards.clone())
    }

    /// The code that comes with somebody's click on a card.
    pub fn response_code(&self, member: &str, task_id: &str) -> String {
        self.shared.with(|inner| {
            let code = format!("fake-response-code-{}", inner.response_codes.len() + 1);
            let issued = ResponseCode {
                task_id: task_id.to_owned(),
                member: member.to_lowercase(),
                issued: inner.now(),
                used: false,
            };
            inner.response_codes.insert(code.clone(), issued);
            code
        })
    }

    /// Waits until people see at least `count` cards and returns them all.
    pub async fn wait_for_cards(&self, count: usize) -> Vec<ShownCard> {
        let cards = || self.cards();
        self.wait("cards", move || {
            Some(cards()).filter(|cards| cards.len() >= count)
        })
        .await
    }

    /// Waits until the card shows what was chosen and returns that.
    pub async fn wait_for_replaced(&self, task_id: &str) -> String {
        let find = || {
            let cards = self.cards().into_iter();
            let mut named = cards.filter(|card| card.task_id() == task_id);
            named.next()?.replaced
        };
        self.wait("a change of the card", find).await
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
        let messages = || Some(self.messages()).filter(|messages| messages.len() >= count);
        let what = format!("{count} messages");
        self.wait(&what, messages).await
    }

    async fn wait<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        let enough = async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = look() {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(PATIENCE, enough).await;
        waited.unwrap_or_else(|_| {
            let came = (self.messages().len(), self.cards().len());
            panic!("{what} did not come, only {came:?} messages and cards")
        })
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
        Ok((content, reply)) => {
            shared.with(|inner| match content {
                Content::Text(message) => show(inner, message, &body),
                Content::Card(to, card) => show_card(inner, to, card),
            });
            shared.changed.send_replace(());
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
fn show(inner: &mut Inner, mut message: Message, body: &[u8]) {
    let body: Value = serde_json::from_slice(body).unwrap();
    if inner.is_repeat(&body) {
        return;
    }
    message.to = with_room(inner, message.to);
    if !message.to.is_empty() {
        inner.messages.push(message);
    }
}

/// What people see of an accepted card: nothing, and nobody is told, when the app used its task id before,
/// or where they read in the plug-in.
fn show_card(inner: &mut Inner, to: Vec<String>, card: Value) {
    let task_id = card["task_id"].as_str().unwrap().to_owned();
    if !inner.task_ids.insert(task_id) {
        return;
    }
    for member in with_room(inner, to) {
        if !inner.in_plugin.contains(&member.to_lowercase()) {
            inner.cards.push(ShownCard {
                to: member,
                card: card.clone(),
                replaced: None,
            });
        }
    }
}

fn with_room(inner: &mut Inner, to: Vec<String>) -> Vec<String> {
    let before = to.len();
    let served: Vec<String> = to
        .into_iter()
        .filter(|member| inner.has_room(member))
        .collect();
    inner.dropped += before - served.len();
    served
}

/// The checks of `message/send` in the real one's order: token, form, app, content, recipients.
fn take(inner: &Inner, token: &str, body: &[u8]) -> Result<(Content, Value), Value> {
    let body = admit(inner, token, body)?;
    let content = body["text"]["content"].as_str().unwrap_or_default();
    match body["msgtype"].as_str() {
        Some("text") if content.is_empty() => return Err(answer(44_004, "content is empty")),
        Some("text") => {}
        Some("template_card") => check_card(&body["template_card"])?,
        _ => return Err(answer(40_008, "invalid message type")),
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
    let to = known.into_iter().map(str::to_owned).collect();
    let mut reply = json!({
        "errcode": 0,
        "errmsg": "ok",
        "invaliduser": unknown.join("|").to_lowercase(),
        "invalidparty": "",
        "invalidtag": "",
        "msgid": format!("fake-message-{}", inner.messages.len() + inner.cards.len() + 1),
    });
    if body["msgtype"] == "template_card" {
        reply["response_code"] = "fake-response-code-of-the-card".into();
        return Ok((Content::Card(to, body["template_card"].clone()), reply));
    }
    let shown = &content[..content.floor_char_boundary(2048)];
    let message = Message {
        to,
        content: shown.to_owned(),
        truncated: shown.len() < content.len(),
    };
    Ok((Content::Text(message), reply))
}

/// Token, form, app: what every call is asked for first.
fn admit(inner: &Inner, token: &str, body: &[u8]) -> Result<Value, Value> {
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
    match body["agentid"].as_i64() {
        Some(FakeWecom::AGENT_ID) => Ok(body),
        _ => Err(answer(40_056, "invalid agentid")),
    }
}

/// What a `button_interaction` must be. Too long texts are only cut on the screen by the real one; here
/// they are refused, so that no test passes with one.
fn check_card(card: &Value) -> Result<(), Value> {
    let parameter = |what: &str| answer(40_058, what);
    if card["card_type"] != "button_interaction" {
        return Err(parameter("template_card.card_type"));
    }
    let length = |value: &Value| value.as_str().unwrap_or_default().chars().count();
    let title = length(&card["main_title"]["title"]);
    let subtitle = length(&card["sub_title_text"]);
    if title + subtitle == 0 || title > 26 || subtitle > 112 {
        return Err(parameter("template_card.main_title"));
    }
    let task_id = card["task_id"].as_str().unwrap_or_default();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-@".contains(&b);
    if !(1..=128).contains(&task_id.len()) || !task_id.bytes().all(allowed) {
        return Err(answer(42_014, "invalid task_id"));
    }
    let buttons = card["button_list"].as_array().cloned().unwrap_or_default();
    if !(1..=6).contains(&buttons.len()) {
        return Err(parameter("template_card.button_list"));
    }
    let mut keys = BTreeSet::new();
    for button in &buttons {
        if !(1..=10).contains(&length(&button["text"])) {
            return Err(answer(42_020, "button name missing"));
        }
        let key = button["key"].as_str().unwrap_or_default();
        if !(1..=1_024).contains(&key.len()) || !keys.insert(key) {
            return Err(answer(42_018, "invalid button key"));
        }
    }
    let rows = card["horizontal_content_list"].as_array();
    let row_fits = |row: &Value| {
        (1..=5).contains(&length(&row["keyname"])) && (1..=26).contains(&length(&row["value"]))
    };
    if rows.is_some_and(|rows| rows.len() > 6 || !rows.iter().all(row_fits)) {
        return Err(parameter("template_card.horizontal_content_list"));
    }
    Ok(())
}

async fn update_card(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
    body: Bytes,
) -> Response {
    let fault = shared.arrive(Endpoint::UpdateCard);
    match &fault {
        Some(Fault::Errcode(code, message)) => return json_answer(&answer(*code, message)),
        Some(Fault::Drop) => hang_up(),
        Some(Fault::Html(status)) => return html(*status),
        Some(Fault::Hold(hold)) => {
            hold.reached.notify_one();
            hold.open.notified().await;
        }
        _ => {}
    }
    let token = query
        .get("access_token")
        .map(String::as_str)
        .unwrap_or_default();
    let done = shared.with(|inner| change(inner, token, &body));
    shared.changed.send_replace(());
    match (done, fault) {
        (Ok(()), Some(Fault::DropAfterDelivery)) => hang_up(),
        (Ok(()), _) => json_answer(&json!({ "errcode": 0, "errmsg": "ok", "invaliduser": [] })),
        (Err(refusal), _) => json_answer(&refusal),
    }
}

/// One change for each code, within 72 hours, of the card it came with.
fn change(inner: &mut Inner, token: &str, body: &[u8]) -> Result<(), Value> {
    let body = admit(inner, token, body)?;
    let name = body["button"]["replace_name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(answer(42_020, "button name missing"));
    }
    let now = inner.now();
    let code = body["response_code"].as_str().unwrap_or_default();
    let code = inner
        .response_codes
        .get_mut(code)
        .filter(|code| now - code.issued < Duration::from_secs(72 * 3_600))
        .ok_or_else(|| answer(42_016, "no such task"))?;
    if std::mem::replace(&mut code.used, true) {
        return Err(answer(42_022, "code used"));
    }
    let users = body["userids"].as_array().cloned().unwrap_or_default();
    for card in &mut inner.cards {
        let named = |user: &Value| {
            user.as_str()
                .is_some_and(|user| user.eq_ignore_ascii_case(&card.to))
        };
        let is_theirs = card.to.eq_ignore_ascii_case(&code.member) && users.iter().any(named);
        if is_theirs && card.card["task_id"] == code.task_id.as_str() {
            card.replaced = Some(name.to_owned());
        }
    }
    Ok(())
}
