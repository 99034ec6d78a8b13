//! Workers hear of new jobs without polling, whoever wrote them, and after any loss of connection.

use std::time::Duration;

use iit_manager::queue::{Wake, enqueue};
use sqlx::{Connection, PgConnection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::rig::{
    Handlers, LONG, Process, QUEUE, TestCluster, TestDb, count, eventually, job, put, put_on, row,
    settings, sql, until_state,
};

/// Waits until the only claimer has found nothing more and sleeps for the hour between polls: the last
/// thing it does before is to ask for the next due time, and a wake-up still pending would send it
/// round again at once.
async fn idle(db: &TestDb, process: &Process) {
    let id = put(db, job("first")).await;
    process.wake.queues([QUEUE.to_owned()]);
    until_state(db, id, "done").await;
    eventually("the claimer sleeps", async || {
        count(
            db,
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND state = 'idle' AND query LIKE '%min(run_at)%'
               AND pid <> pg_backend_pid()
               AND query_start > (SELECT max(finished_at) FROM iit_jobs)",
        )
        .await
            > 0
            && process.progress.slowest() > Some(Duration::from_millis(100))
    })
    .await;
}

#[tokio::test]
async fn a_job_of_the_own_process_is_started_without_poll_or_notify() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    let mut tx = db.pool.begin().await.unwrap();
    let id = enqueue(&mut tx, job("work")).await.unwrap().id();
    tx.commit().await.unwrap();
    process.wake.queues([QUEUE.to_owned()]);
    until_state(&db, id, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn a_job_of_another_process_is_started_by_its_notify() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    let other = db.another_pool(2).await;
    let id = put_on(&other, job("work")).await;
    assert_eq!(row(&db, id).await.state, "available", "nobody was told");
    Wake::notify_once(&other, &[QUEUE.to_owned()]).await;
    until_state(&db, id, "done").await;
    // And by what a process without a worker sends after its commits.
    let (wake, stop) = (Wake::new(Uuid::new_v4()), CancellationToken::new());
    tokio::spawn(wake.clone().run_notifier(other.clone(), stop.clone()));
    let id = put_on(&other, job("work")).await;
    wake.queues([QUEUE.to_owned()]);
    until_state(&db, id, "done").await;
    stop.cancel();
    process.stop().await;
}

#[tokio::test]
async fn a_row_inserted_by_another_program_wakes_the_workers_by_itself() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    let mut foreign = PgConnection::connect(&db.url).await.unwrap();
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO iit_schema.iit_jobs (queue, kind, payload) VALUES ('edc', 'work', '{}') RETURNING id",
    )
    .fetch_one(&mut foreign)
    .await
    .unwrap();
    until_state(&db, id, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn a_delayed_job_starts_when_it_is_due_without_poll() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(put(&db, job("work").after(Duration::from_millis(n * 7))).await);
    }
    process.wake.queues([QUEUE.to_owned()]);
    for id in ids {
        until_state(&db, id, "done").await;
    }
    process.stop().await;
}

#[tokio::test]
async fn a_killed_listen_connection_comes_back_and_everything_missed_is_found() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    // No wake-up goes with this one; only the reconnect can find it.
    let missed = put(&db, job("work")).await;
    let killed = count(
        &db,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'",
    )
    .await;
    assert_eq!(killed, 1);
    until_state(&db, missed, "done").await;
    eventually("it listens again", async || process.wake.is_listening()).await;
    let other = db.another_pool(1).await;
    let id = put_on(&other, job("work")).await;
    Wake::notify_once(&other, &[QUEUE.to_owned()]).await;
    until_state(&db, id, "done").await;
    process.stop().await;
}

#[tokio::test]
async fn a_lease_that_ran_out_while_nobody_listened_is_swept_at_the_reconnect() {
    let db = TestDb::new().await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    // Held by a process that is gone. The next sweep of its own accord is minutes away.
    let orphan = put(&db, job("work")).await;
    super::rig::claim_one(&db).await;
    super::rig::expire_leases(&db).await;
    sql(
        &db,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'",
    )
    .await;
    let row = until_state(&db, orphan, "done").await;
    assert_eq!((row.attempt, row.crashes), (2, 1));
    process.stop().await;
}

#[tokio::test]
async fn workers_go_on_after_the_server_crashed() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    let process = Process::start(&db, settings(LONG), Handlers::default()).await;
    idle(&db, &process).await;
    cluster.restart_immediate().await;
    eventually("the database answers again", async || {
        db.pool.acquire().await.is_ok()
    })
    .await;
    let other = db.another_pool(1).await;
    let id = put_on(&other, job("work")).await;
    eventually("it listens again", async || process.wake.is_listening()).await;
    Wake::notify_once(&other, &[QUEUE.to_owned()]).await;
    until_state(&db, id, "done").await;
    process.stop().await;
}
