//! The whole program in this process: worker, HTTP side on a real port, a database of the test's own,
//! and a WeCom server that it talks to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use iit_manager::adapters::wecom::config::WecomConfig;
use iit_manager::adapters::wecom::crypto;
use iit_manager::boot::cli::{project, skills};
use iit_manager::boot::config::Config;
use iit_manager::boot::wiring::{self, Wiring};
use iit_manager::jobs::QUEUES;
use iit_manager::ops::health::Readiness;
use iit_manager::types::clock::Clock;
use iit_manager::types::project::ProjectFile;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fake_llm::FakeLlm;
use super::fake_wecom::{FakeWecom, Message, ShownCard};
use super::postgres::TestDb;
use super::study::StudyFolder;

/// The bearer token of the API.
pub const TOKEN: &str = "test-api-token";
/// Nothing in a test takes this long; a wait beyond it fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a waiting test looks again.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The running program.
pub struct TestApp {
    pub db: TestDb,
    pub wecom: FakeWecom,
    pub address: SocketAddr,
    pub wiring: Wiring,
    pub readiness: Readiness,
    wecom_config: WecomConfig,
    clock: Clock,
    http: reqwest::Client,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    next_msg_id: AtomicU64,
    folders: Mutex<Vec<Arc<TempDir>>>,
}

impl TestApp {
    /// Starts it with nothing in its database.
    pub async fn start() -> Self {
        Self::start_at(Clock::system()).await
    }

    /// The same with another clock.
    pub async fn start_at(clock: Clock) -> Self {
        Self::start_on(TestDb::new().await, clock).await
    }

    /// The same on this database.
    pub async fn start_on(db: TestDb, clock: Clock) -> Self {
        Self::start_with(db, clock, &[]).await
    }

    /// The program with this study applied and this model to ask.
    pub async fn with_model(study: &StudyFolder, model: &FakeLlm) -> Self {
        let db = TestDb::new().await;
        let app = Self::start_with(db, Clock::system(), &model.variables()).await;
        app.apply(study).await;
        app
    }

    /// The same with more settings.
    pub async fn start_with(db: TestDb, clock: Clock, more: &[(&'static str, String)]) -> Self {
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wecom = FakeWecom::start().await;
        let mut variables = wecom.variables();
        variables.insert("IIT_API_TOKEN", TOKEN.to_owned());
        // A test that is about it says so; the others wait for no job that only looks at the clock.
        variables.insert("IIT_PROGRESS_AFTER_S", "0".to_owned());
        variables.extend(more.iter().cloned());
        let config = Config::from_lookup(|name| variables.get(name).cloned()).unwrap();
        let wiring = Wiring::new(config, db.pool.clone(), clock.clone(), None).unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();

        let notifier = wiring.wake().clone();
        tasks.spawn(notifier.run_notifier(db.pool.clone(), stop.clone()));
        let worker = wiring.worker(db.another_pool(5).await);
        let readiness = wiring.readiness(Some(&worker));
        let until = stop.clone();
        tasks.spawn(async move { worker.run(&QUEUES, until).await });

        let listener = wiring::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let serving = wiring::serve(listener, wiring.app(readiness.clone()), stop.clone());
        tasks.spawn(async move { serving.await.unwrap() });
        Self {
            wecom_config: wecom.config(),
            db,
            wecom,
            address,
            wiring,
            readiness,
            clock,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            stop,
            tasks,
            next_msg_id: AtomicU64::new(1),
            folders: Mutex::default(),
        }
    }

    /// The program with this study applied.
    pub async fn with(study: &StudyFolder) -> Self {
        let app = Self::start().await;
        app.apply(study).await;
        app
    }

    /// Applies the project file and the skills, as the commands do.
    pub async fn apply(&self, study: &StudyFolder) {
        let file = self.apply_project(study).await;
        if study.skills().read_dir().unwrap().next().is_some() {
            skills::apply_to(&self.db.pool, &file, None, &study.skills())
                .await
                .unwrap();
        }
    }

    /// Applies a study to a database that no program of this process works on.
    pub async fn apply_to(db: &TestDb, study: &StudyFolder) {
        let file = project::read(&study.project_file()).unwrap();
        project::apply(&db.pool, &file).await.unwrap();
        skills::apply_to(&db.pool, &file, None, &study.skills())
            .await
            .unwrap();
    }

    /// Applies the project file alone.
    pub async fn apply_project(&self, study: &StudyFolder) -> ProjectFile {
        self.folders.lock().unwrap().push(study.keep());
        let file = project::read(&study.project_file()).unwrap();
        project::apply(&self.db.pool, &file).await.unwrap();
        file
    }

    // --- WeCom ---

    /// Sends a text through the callback as WeCom would; returns the number WeCom gave it.
    pub async fn says(&self, user: &str, text: &str) -> u64 {
        let id = self.next_msg_id.fetch_add(1, Ordering::Relaxed);
        self.says_as(user, text, id).await;
        id
    }

    /// The same with a number that may have been used before.
    pub async fn says_as(&self, user: &str, text: &str, msg_id: u64) {
        self.callback(&format!(
            "<FromUserName><![CDATA[{user}]]></FromUserName><MsgType><![CDATA[text]]></MsgType><Content><![CDATA[{text}]]></Content><MsgId>{msg_id}</MsgId>"
        ))
        .await;
    }

    /// Somebody clicks a button of a card; `second` tells this click from another on the same button.
    pub async fn clicks(&self, user: &str, card: &ShownCard, button: usize, second: i64) {
        let key = card.card["button_list"][button]["key"].as_str().unwrap();
        self.clicks_key(user, &card.task_id(), key, second).await;
    }

    /// The same with a key and a card that need not be any.
    pub async fn clicks_key(&self, user: &str, task_id: &str, key: &str, second: i64) {
        let code = self.wecom.response_code(user, task_id);
        let elements = format!(
            "<FromUserName><![CDATA[{user}]]></FromUserName><MsgType><![CDATA[event]]></MsgType><Event><![CDATA[template_card_event]]></Event><EventKey><![CDATA[{key}]]></EventKey><TaskId><![CDATA[{task_id}]]></TaskId><CardType><![CDATA[button_interaction]]></CardType><ResponseCode><![CDATA[{code}]]></ResponseCode>"
        );
        let created = self.clock.now().timestamp() + second;
        self.callback_created(&elements, created).await;
    }

    /// Sends a callback with these elements, sealed and signed; it must be accepted.
    pub async fn callback(&self, elements: &str) {
        self.callback_created(elements, self.clock.now().timestamp())
            .await;
    }

    async fn callback_created(&self, elements: &str, created: i64) {
        let config = &self.wecom_config;
        let now = self.clock.now().timestamp();
        let message = format!(
            "<xml><ToUserName><![CDATA[{}]]></ToUserName><CreateTime>{created}</CreateTime>{elements}<AgentID>{}</AgentID></xml>",
            config.corp_id, config.agent_id
        );
        let sealed = crypto::encrypt(
            &config.aes_key,
            &config.corp_id,
            rand::random::<[u8; 16]>(),
            &message,
        )
        .unwrap();
        let timestamp = now.to_string();
        let signature =
            crypto::signature(config.token.expose_secret(), &timestamp, "8642", &sealed);
        let answer = self
            .http
            .post(self.url(&format!(
                "/wecom/callback?msg_signature={signature}&timestamp={timestamp}&nonce=8642"
            )))
            .body(format!(
                "<xml><Encrypt><![CDATA[{sealed}]]></Encrypt></xml>"
            ))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text().await.unwrap(), "");
    }

    /// Sends a text and waits for the one message that answers it.
    pub async fn ask(&self, user: &str, text: &str) -> String {
        let before = self.wecom.messages().len();
        self.says(user, text).await;
        let messages = self.wecom.wait_for_messages(before + 1).await;
        let answer: &Message = &messages[before];
        assert_eq!(answer.to, [user]);
        answer.content.clone()
    }

    // --- REST ---

    /// Absolute address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A client without the token.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// GET with the token: status and body.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        let request = self.http.get(self.url(path)).bearer_auth(TOKEN);
        read(request.send().await.unwrap()).await
    }

    /// POST with the token: status and body.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.http.post(self.url(path)).bearer_auth(TOKEN);
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        read(request.send().await.unwrap()).await
    }

    /// Writes a message over REST and waits until it is answered; returns it.
    pub async fn chat(&self, project: &str, user: &str, text: &str) -> Value {
        let body = json!({ "user": user, "text": text });
        let (status, answer) = self
            .post(&format!("/api/v1/projects/{project}/messages"), &body)
            .await;
        assert_eq!(status, 202, "{answer}");
        let path = format!(
            "/api/v1/messages/{}",
            answer["message_id"].as_str().unwrap()
        );
        eventually(&format!("an answer to {text}"), async || {
            let (_, message) = self.get(&path).await;
            let done = matches!(message["status"].as_str(), Some("answered" | "failed"));
            done.then_some(message)
        })
        .await
    }

    /// QC of records (all when `None`), until the batch is done; returns the batch.
    pub async fn qc(&self, project: &str, records: Option<&[&str]>) -> Value {
        let body = json!({ "records": records });
        let (status, answer) = self
            .post(&format!("/api/v1/projects/{project}/qc"), &body)
            .await;
        assert_eq!(status, 202, "{answer}");
        let path = format!("/api/v1/batches/{}", answer["batch_id"].as_str().unwrap());
        let batch = eventually("the end of the batch", async || {
            let (_, batch) = self.get(&path).await;
            let done = matches!(batch["state"].as_str(), Some("done" | "failed"));
            done.then_some(batch)
        })
        .await;
        self.settled().await;
        batch
    }

    /// The ledger of a project, filtered by a query string such as `status=open`.
    pub async fn ledger(&self, project: &str, query: &str) -> Vec<Value> {
        let path = format!("/api/v1/projects/{project}/pending-actions?{query}");
        let (status, rows) = self.get(&path).await;
        assert_eq!(status, 200, "{rows}");
        rows.as_array().unwrap().clone()
    }

    /// The only ledger row of that rule.
    pub async fn action(&self, project: &str, rule: &str) -> Value {
        let rows = self.ledger(project, &format!("rule={rule}")).await;
        assert_eq!(rows.len(), 1, "{rule}: {rows:?}");
        rows[0].clone()
    }

    /// Decides on a ledger row: status and body.
    pub async fn decide(&self, action: &Value, decision: &str, reason: &str) -> (u16, Value) {
        let path = format!(
            "/api/v1/pending-actions/{}/decision",
            action["id"].as_str().unwrap()
        );
        self.post(&path, &json!({ "decision": decision, "reason": reason }))
            .await
    }

    /// The message WeCom numbered `msg_id`, as the API shows it.
    pub async fn wecom_message(&self, msg_id: u64) -> Value {
        let id: uuid::Uuid =
            sqlx::query_scalar("SELECT id FROM iit_inbox WHERE dedupe_key LIKE '%' || $1")
                .bind(msg_id.to_string())
                .fetch_one(&self.db.pool)
                .await
                .unwrap();
        self.get(&format!("/api/v1/messages/{id}")).await.1
    }

    /// Runs over a record, oldest first, each with its steps under `steps`, as the API shows them.
    pub async fn runs_of(&self, record: &str) -> Vec<Value> {
        let ids: Vec<uuid::Uuid> = sqlx::query_scalar(
            "SELECT id FROM iit_task_run WHERE record = $1 ORDER BY created_at, skill_type",
        )
        .bind(record)
        .fetch_all(&self.db.pool)
        .await
        .unwrap();
        let mut runs = Vec::new();
        for id in ids {
            let (status, mut run) = self.get(&format!("/api/v1/runs/{id}")).await;
            assert_eq!(status, 200);
            let (status, steps) = self.get(&format!("/api/v1/runs/{id}/steps")).await;
            assert_eq!(status, 200);
            run["steps"] = steps;
            runs.push(run);
        }
        runs
    }

    // --- waiting ---

    /// Waits until every job has been settled.
    pub async fn settled(&self) {
        eventually("the end of all jobs", async || {
            let open = self.count("iit_jobs WHERE state IN ('available', 'running')");
            (open.await == 0).then_some(())
        })
        .await;
    }

    /// The same without waiting for the time between two attempts, or for WeCom to take messages again.
    pub async fn settled_at_once(&self) {
        eventually("the end of all jobs", async || {
            for statement in [
                "UPDATE iit_jobs SET run_at = now() WHERE state = 'available'",
                "UPDATE iit_wecom_gate SET closed_until = now()",
            ] {
                sqlx::query(statement).execute(&self.db.pool).await.unwrap();
            }
            self.wiring.wake().queues(QUEUES.map(str::to_owned));
            let open = self.count("iit_jobs WHERE state IN ('available', 'running')");
            (open.await == 0).then_some(())
        })
        .await;
    }

    /// Rows of `what`, a table with an optional condition.
    pub async fn count(&self, what: &'static str) -> i64 {
        let query = format!("SELECT count(*) FROM {what}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_one(&self.db.pool)
            .await
            .unwrap()
    }

    /// One text out of the database; `None` when there is no row or it is NULL.
    pub async fn text(&self, query: &'static str) -> Option<String> {
        sqlx::query_scalar::<_, Option<String>>(query)
            .fetch_optional(&self.db.pool)
            .await
            .unwrap()
            .flatten()
    }

    // --- the end ---

    /// Lets everything finish and stops; no job may have been given up.
    pub async fn stop(self) -> TestDb {
        self.stop_with_dead(&[]).await
    }

    /// The same, for a test in which jobs of exactly these kinds are given up.
    pub async fn stop_with_dead(mut self, kinds: &[&str]) -> TestDb {
        self.settled().await;
        let dead: Vec<(String, Option<String>)> = sqlx::query_as(
            "SELECT kind, last_error FROM iit_jobs WHERE state = 'dead' ORDER BY kind, id",
        )
        .fetch_all(&self.db.pool)
        .await
        .unwrap();
        let found: Vec<&str> = dead.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(found, kinds, "{dead:?}");
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.db
    }
}

/// Looks again and again until `look` finds something.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    found
        .await
        .unwrap_or_else(|_| panic!("{what} did not come within {} s", PATIENCE.as_secs()))
}

/// Every run over `record` is over or waits, and each of its steps was committed by a job that is done.
pub async fn assert_trace(app: &TestApp, record: &str) {
    let rows: Vec<(String, i32, i64, i64)> = sqlx::query_as(
        "SELECT r.status, r.step_no, count(s.no), count(j.id)
         FROM iit_task_run r LEFT JOIN iit_task_step s ON s.run_id = r.id
         LEFT JOIN iit_jobs j ON j.id = s.job_id AND j.state = 'done' AND j.attempt >= 1
         WHERE r.record = $1 GROUP BY r.id",
    )
    .bind(record)
    .fetch_all(&app.db.pool)
    .await
    .unwrap();
    assert!(!rows.is_empty(), "no run over {record}");
    for (status, step_no, steps, jobs) in rows {
        assert!(matches!(status.as_str(), "done" | "waiting"), "{status}");
        assert!(steps > 0);
        assert_eq!((i64::from(step_no), jobs), (steps, steps));
    }
}

async fn read(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, body)
}

/// What differs from run to run, taken out of a JSON value.
pub fn redacted(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map.iter_mut() {
                    let varies = matches!(
                        key.as_str(),
                        "id" | "fingerprint"
                            | "created_at"
                            | "updated_at"
                            | "started_at"
                            | "committed_at"
                            | "finished_at"
                            | "sent_at"
                            | "oldest_age_s"
                    );
                    if varies && !inner.is_null() {
                        *inner = json!(format!("[{key}]"));
                    } else {
                        walk(inner);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

/// Counts of values by name.
pub fn tally<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
