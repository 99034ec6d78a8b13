//! Faults from the field, each shown to change nothing: a wrong clock, a snapshot held open for long,
//! rows that nobody can read.

use std::{sync::Arc, time::Duration};

use iit_manager::store::reader;
use iit_manager::tools::{Registry, Snapshots};
use iit_manager::{
    adapters::edc::EdcPool,
    jobs::{
        Jobs, QUEUES,
        common::{
            services::{ConversationSettings, Services},
            study::SkillCache,
        },
    },
    queue::{NewJob, Wake, enqueue_many},
    types::clock::Clock,
};
use serde_json::json;
use uuid::Uuid;

use super::{
    program::{Gate, until_waiting},
    rig::{
        Handlers, LONG, Process, QUEUE, TestDb, count, eventually, grouped, job, numbered, put,
        row, settings, until_state,
    },
};
use crate::support::{
    app::TestApp,
    study::{StudyFolder, Subject},
};

/// Leases and due times belong to the database's clock.
#[tokio::test]
async fn a_worker_whose_clock_is_ten_minutes_ahead_claims_renews_and_delays_as_any_other() {
    let ahead = Clock::from_fn(|| Clock::system().now() + chrono::Duration::minutes(10));
    let app = TestApp::start_at(ahead).await;
    app.apply(&StudyFolder::with_eligibility(
        "lung",
        [Subject::fit("P001")],
    ))
    .await;
    let gate = Gate::at_step(&app.db, 0).await;
    app.says("ZhangSan", "质控 P001").await;
    until_waiting(&app.db, "advisory", 1).await;
    let left: f64 = sqlx::query_scalar(
        "SELECT EXTRACT(EPOCH FROM lease_expires_at - clock_timestamp())::float8 FROM iit_jobs WHERE state = 'running'",
    )
    .fetch_one(&app.db.pool)
    .await
    .unwrap();
    assert!((0.0..=30.5).contains(&left), "{left}");
    gate.open().await;
    app.wecom.wait_for_messages(1).await;
    eventually("all jobs are done", async || {
        count(
            &app.db,
            "SELECT count(*) FROM iit_jobs WHERE state <> 'done'",
        )
        .await
            == 0
    })
    .await;
    assert_eq!(
        count(
            &app.db,
            "SELECT count(*) FROM iit_jobs
             WHERE attempt <> 1 OR crashes <> 0
                OR greatest(created_at, run_at, started_at, finished_at) > clock_timestamp()",
        )
        .await,
        0
    );
    app.stop().await;
}

/// Nothing in the queue can even ask what time it is here.
#[test]
fn the_queue_knows_no_clock_but_the_databases() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/queue");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for word in ["Clock", "Utc::now", "SystemTime"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
        files += 1;
    }
    assert!(files > 10);
}

/// Dead rows can't be vacuumed while it stands; what is claimed must still be right.
#[tokio::test]
async fn a_snapshot_held_open_while_thousands_of_jobs_pass_loses_and_repeats_none() {
    const JOBS: usize = 3000;
    let db = TestDb::new().await;
    let mut snapshot = db.another_pool(1).await.begin().await.unwrap();
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .execute(&mut *snapshot)
        .await
        .unwrap();
    let seen = "SELECT count(*) FROM iit_jobs";
    let before: i64 = sqlx::query_scalar(seen)
        .fetch_one(&mut *snapshot)
        .await
        .unwrap();
    assert_eq!(before, 0);
    let jobs: Vec<NewJob> = (0..JOBS)
        .map(|n| match n % 10 {
            0 => NewJob {
                group: Some((n % 7).to_string()),
                ..numbered("work", n)
            },
            _ => numbered("work", n),
        })
        .collect();
    for some in jobs.chunks(1000) {
        let mut conn = db.pool.acquire().await.unwrap();
        enqueue_many(&mut conn, some).await.unwrap();
    }
    let mut settings = settings(LONG);
    settings.concurrency = 4;
    let mut processes = Vec::new();
    for _ in 0..2 {
        processes.push(Process::start(&db, settings.clone(), Handlers::default()).await);
    }
    // In stages, each with its own patience: a busy machine takes its time.
    for part in 1..=10 {
        eventually("the next tenth is done", async || {
            count(&db, "SELECT count(*) FROM iit_jobs WHERE state = 'done'").await
                >= (JOBS / 10 * part) as i64
        })
        .await;
    }
    let late = put(&db, grouped("work", "0")).await;
    processes[0].wake.queues([QUEUE.to_owned()]);
    until_state(&db, late, "done").await;
    assert_eq!(
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE attempt = 1 AND crashes = 0"
        )
        .await,
        JOBS as i64 + 1
    );
    let still: i64 = sqlx::query_scalar(seen)
        .fetch_one(&mut *snapshot)
        .await
        .unwrap();
    assert_eq!(still, 0, "the snapshot was held all along");
    for process in processes {
        process.stop().await;
    }
}

/// Rows as another version, another program, or a slip of the hand may leave them.
#[tokio::test]
async fn rows_that_nobody_can_read_end_no_worker_and_say_why_they_died() {
    let db = TestDb::new().await;
    let kinds = [
        "intent",
        "sop_step",
        "batch_qc",
        "deliver",
        "",
        "未知 kind",
        "INTENT",
    ];
    let payloads = [
        "null",
        "[]",
        "{}",
        "\"text\"",
        "12345678901234567890.5",
        "{\"run\":\"no id\",\"step\":-1,\"message\":{},\"batch\":[],\"outbox\":null}",
        "{\"run\":{\"run\":{\"run\":{}}}}",
    ];
    for kind in kinds {
        for payload in payloads {
            sqlx::query("INSERT INTO iit_jobs (queue, kind, payload) VALUES ($1, $2, $3::jsonb)")
                .bind(QUEUE)
                .bind(kind)
                .bind(payload)
                .execute(&db.pool)
                .await
                .unwrap();
        }
    }
    let wake = Wake::new(Uuid::new_v4());
    let services = Services {
        pool: db.pool.clone(),
        wake: wake.clone(),
        clock: Clock::system(),
        edc: EdcPool::default(),
        skills: SkillCache::default(),
        wecom: None,
        model: None,
        tools: Registry::standard(),
        reader: reader::pool(&db.pool),
        snapshots: Snapshots::default(),
        conversation: ConversationSettings::default(),
    };
    assert!(QUEUES.contains(&QUEUE));
    let mut settings = settings(LONG);
    settings.poll = Duration::from_millis(200);
    let process =
        Process::start_with(&db, settings, Jobs::register(Arc::new(services)), wake).await;
    eventually("all are given up", async || {
        count(
            &db,
            "SELECT count(*) FROM iit_jobs WHERE state = 'dead' AND last_error <> ''",
        )
        .await
            == (kinds.len() * payloads.len()) as i64
    })
    .await;
    // The worker is there as before.
    let gone = NewJob {
        payload: json!({ "batch": Uuid::new_v4(), "page": null }),
        ..job("batch_qc")
    };
    let id = put(&db, gone).await;
    process.wake.queues([QUEUE.to_owned()]);
    let row = {
        eventually("it is claimed", async || row(&db, id).await.attempt == 1).await;
        row(&db, id).await
    };
    assert_eq!(row.attempt, 1);
    process.stop().await;
}
