//! Where messages are put, sent by workers of the test's own, and looked at; and where time passes.

use std::{sync::Arc, time::Duration};

use iit_manager::store::reader;
use iit_manager::tools::{Registry, Snapshots};
use iit_manager::{
    adapters::{
        edc::EdcPool,
        wecom::{
            client::{Deadlines, WecomClient},
            config::WecomConfig,
        },
    },
    jobs::{
        Jobs,
        common::{
            services::{ConversationSettings, Services},
            study::SkillCache,
            tokens::PgTokenStore,
        },
        deliver::Deliver,
    },
    queue::{
        NewJob, Wake, enqueue,
        worker::{Worker, WorkerSettings},
    },
    store::{
        inbox::Channel,
        outbox::{self, NewOutbound, Outbound},
        outbox_parts,
        replies::Chip,
    },
    types::{
        clock::Clock,
        ids::{MessageId, OutboxId},
    },
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    queue::rig::{LONG, TestDb, eventually, settings},
    support::fake_wecom::FakeWecom,
};

/// Jobs that run at once.
pub const SLOTS: usize = 4;

/// Jobs that a worker has in hand or could take.
const DUE_OR_RUNNING: &str = "iit_jobs job WHERE state = 'running'
    OR (state = 'available' AND run_at <= clock_timestamp() AND NOT EXISTS (
        SELECT 1 FROM iit_jobs earlier WHERE earlier.group_key = job.group_key
            AND earlier.id < job.id AND earlier.state IN ('available', 'running')))";

/// A database, a WeCom, and what stands between them.
pub struct Desk {
    pub db: TestDb,
    pub wecom: FakeWecom,
}

impl Desk {
    pub async fn new() -> Self {
        Self::on(TestDb::new().await).await
    }

    pub async fn on(db: TestDb) -> Self {
        // Already there when another test came first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            db,
            wecom: FakeWecom::start().await,
        }
    }

    /// Puts an answer to somebody's message into the outbox, with its job.
    pub async fn reply(&self, to: &str, parts: &[&str]) -> OutboxId {
        let message = self.message_from(to).await;
        self.put(Some(message), to, parts, &[]).await
    }

    /// The same for an answer that is a question with choices.
    pub async fn question(&self, to: &str, text: &str, labels: &[&str]) -> OutboxId {
        let message = self.message_from(to).await;
        self.put(Some(message), to, &[text], labels).await
    }

    async fn message_from(&self, sender: &str) -> MessageId {
        let message = MessageId::generate();
        sqlx::query(
            "INSERT INTO iit_inbox (id, channel, sender, kind, text) VALUES ($1, 'wecom', $2, 'text', '质控')",
        )
        .bind(message)
        .bind(sender)
        .execute(&self.db.pool)
        .await
        .unwrap();
        message
    }

    /// Puts a message that nobody asked for into the outbox, with its job.
    pub async fn notice(&self, to: &str, parts: &[&str]) -> OutboxId {
        self.put(None, to, parts, &[]).await
    }

    async fn put(
        &self,
        message: Option<MessageId>,
        to: &str,
        parts: &[&str],
        labels: &[&str],
    ) -> OutboxId {
        self.wecom.add_member(to);
        let chips: Vec<Chip> = labels
            .iter()
            .map(|label| Chip {
                label: (*label).to_owned(),
                text: format!("质控 {label}"),
            })
            .collect();
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        let outbound = NewOutbound {
            message,
            project: None,
            channel: Channel::Wecom,
            recipient: to,
            text: &parts.concat(),
            chips: &chips,
            degraded: false,
            parts: &parts,
        };
        let mut tx = self.db.pool.begin().await.unwrap();
        let id = outbox::add(&mut tx, &outbound).await.unwrap();
        if !chips.is_empty() {
            outbox_parts::add_card(&mut tx, id).await.unwrap();
        }
        let job = Deliver {
            outbox: id,
            to: to.to_lowercase(),
        };
        enqueue(&mut tx, NewJob::of(&job).unwrap()).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    /// The program's own handlers.
    pub fn jobs(&self, wake: Wake) -> Arc<Jobs> {
        self.jobs_with(wake, &self.wecom.config())
    }

    fn jobs_with(&self, wake: Wake, config: &WecomConfig) -> Arc<Jobs> {
        let tokens = PgTokenStore::new(self.db.pool.clone(), config);
        Jobs::register(Arc::new(Services {
            pool: self.db.pool.clone(),
            wake,
            clock: Clock::system(),
            edc: EdcPool::default(),
            skills: SkillCache::default(),
            wecom: Some(WecomClient::new(config, tokens, Deadlines::default()).unwrap()),
            model: None,
            tools: Registry::standard(),
            reader: reader::pool(&self.db.pool),
            snapshots: Snapshots::default(),
            conversation: ConversationSettings::default(),
        }))
    }

    /// Lets a worker process work until nothing is due.
    pub async fn work(&self) {
        self.work_with(&self.wecom.config()).await;
    }

    /// The same with other settings of WeCom.
    pub async fn work_with(&self, config: &WecomConfig) {
        let wake = Wake::new(Uuid::new_v4());
        let settings = WorkerSettings {
            concurrency: SLOTS,
            ..settings(LONG)
        };
        let claims = self.db.another_pool(5).await;
        let jobs = self.jobs_with(wake.clone(), config);
        let worker = Worker::new(self.db.pool.clone(), claims, wake, jobs, settings);
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { worker.run(&["deliver"], stop).await }
        });
        eventually("nothing is due", async || {
            self.count(DUE_OR_RUNNING).await == 0
        })
        .await;
        stop.cancel();
        running.await.unwrap();
    }

    /// Lets time pass, for the rows and for WeCom: what was a while ago is longer ago.
    pub async fn later(&self, seconds: u32) {
        for (table, columns) in [
            ("iit_wecom_sends", &["at"][..]),
            (
                "iit_wecom_gate",
                &["closed_at", "closed_until", "probe_until"],
            ),
            ("iit_jobs", &["run_at"]),
            ("iit_outbox", &["queued_at"]),
            ("iit_outbox_parts", &["left_at"]),
        ] {
            let moved: Vec<String> = columns
                .iter()
                .map(|column| format!("{column} = {column} - make_interval(secs => {seconds})"))
                .collect();
            let statement = format!("UPDATE {table} SET {}", moved.join(", "));
            sqlx::query(sqlx::AssertSqlSafe(statement))
                .execute(&self.db.pool)
                .await
                .unwrap();
        }
        self.wecom.pass_time(Duration::from_secs(seconds.into()));
    }

    /// Rows of a table with an optional condition.
    pub async fn count(&self, what: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {what}")))
            .fetch_one(&self.db.pool)
            .await
            .unwrap()
    }

    pub async fn message(&self, id: OutboxId) -> Outbound {
        let mut conn = self.db.pool.acquire().await.unwrap();
        outbox::get(&mut conn, id).await.unwrap().unwrap()
    }

    pub async fn state(&self, id: OutboxId) -> String {
        self.message(id).await.state
    }

    /// States of the parts, in order.
    pub async fn parts(&self, id: OutboxId) -> Vec<String> {
        sqlx::query_scalar("SELECT state FROM iit_outbox_parts WHERE outbox_id = $1 ORDER BY no")
            .bind(id)
            .fetch_all(&self.db.pool)
            .await
            .unwrap()
    }

    /// Why a message is not sent.
    pub async fn error(&self, id: OutboxId) -> String {
        let error: Option<String> =
            sqlx::query_scalar("SELECT error FROM iit_outbox WHERE id = $1")
                .bind(id)
                .fetch_one(&self.db.pool)
                .await
                .unwrap();
        error.unwrap_or_default()
    }

    /// Attempts used up by each job, least first.
    pub async fn attempts(&self) -> Vec<i32> {
        sqlx::query_scalar("SELECT attempt FROM iit_jobs ORDER BY attempt")
            .fetch_all(&self.db.pool)
            .await
            .unwrap()
    }

    /// What people see, in order.
    pub fn shown(&self) -> Vec<String> {
        let messages = self.wecom.messages().into_iter();
        messages.map(|message| message.content).collect()
    }
}
