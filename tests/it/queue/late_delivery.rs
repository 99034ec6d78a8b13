//! A message is not sent by a process that lost its job to another and does not know it yet.

use std::sync::Arc;

use iit_manager::store::reader;
use iit_manager::tools::{Registry, Snapshots};
use iit_manager::{
    adapters::{
        edc::EdcPool,
        wecom::{client::WecomClient, http::Deadlines},
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
    queue::{JobError, NewJob, Wake, sweep::sweep, worker::Handler},
    store::{
        inbox::Channel,
        outbox::{self, NewOutbound},
    },
    types::{clock::Clock, ids::OutboxId},
};
use sqlx::Connection;
use uuid::Uuid;

use super::{
    program::until_waiting,
    rig::{QUEUE, TestDb, claim_one, expire_leases, put},
};
use crate::support::fake_wecom::FakeWecom;

/// The program's own handlers, with a message API on loopback.
async fn jobs(db: &TestDb, wecom: &FakeWecom) -> Arc<Jobs> {
    let config = wecom.config();
    // Already there when another test came first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tokens = PgTokenStore::new(db.pool.clone(), &config);
    let client = WecomClient::new(&config, tokens, Deadlines::default()).unwrap();
    Jobs::register(Arc::new(Services {
        pool: db.pool.clone(),
        wake: Wake::new(Uuid::new_v4()),
        clock: Clock::system(),
        edc: EdcPool::default(),
        skills: SkillCache::default(),
        wecom: Some(client),
        model: None,
        tools: Registry::standard(),
        reader: reader::pool(&db.pool),
        snapshots: Snapshots::default(),
        conversation: ConversationSettings::default(),
    }))
}

async fn outbound(db: &TestDb) -> OutboxId {
    let message = NewOutbound {
        message: None,
        project: None,
        channel: Channel::Wecom,
        recipient: "ZhangSan",
        text: "两段",
        chips: &[],
        degraded: false,
        parts: &["第一段".to_owned(), "第二段".to_owned()],
    };
    let mut conn = db.pool.acquire().await.unwrap();
    outbox::add(&mut conn, &message).await.unwrap()
}

#[tokio::test]
async fn a_part_that_somebody_else_took_meanwhile_is_not_sent_again() {
    let db = TestDb::new().await;
    let wecom = FakeWecom::start().await;
    let jobs = jobs(&db, &wecom).await;
    let id = outbound(&db).await;
    let deliver = Deliver {
        outbox: id,
        to: "zhangsan".to_owned(),
    };
    put(&db, NewJob::of(&deliver).unwrap().on_queue(QUEUE)).await;
    let stale = claim_one(&db).await;

    // The stale sender has read its parts and stands before the first; somebody holds that part.
    let mut holder = sqlx::PgConnection::connect(&db.url).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT FROM iit_schema.iit_outbox_parts FOR UPDATE")
        .execute(&mut holder)
        .await
        .unwrap();
    let late = tokio::spawn(jobs.run(stale));
    until_waiting(&db, "transactionid", 1).await;
    expire_leases(&db).await;
    sweep(&db.pool).await.unwrap();
    sqlx::raw_sql("UPDATE iit_schema.iit_outbox_parts SET state = 'sent' WHERE no = 0; COMMIT")
        .execute(&mut holder)
        .await
        .unwrap();
    let late = late.await.unwrap();
    assert!(matches!(late, Err(JobError::LostLease)), "{late:?}");
    assert_eq!(wecom.messages().len(), 0);

    // Whoever has the job now goes on with the part that is left.
    let next = super::rig::claim_suspect(&db).await.unwrap();
    jobs.run(next).await.unwrap();
    let sent: Vec<String> = wecom.messages().into_iter().map(|m| m.content).collect();
    assert_eq!(sent, ["第二段"]);
    let mut conn = db.pool.acquire().await.unwrap();
    let row = outbox::get(&mut conn, id).await.unwrap().unwrap();
    assert_eq!(row.state, "sent");
}
