//! The loop: it sleeps until something is due, wakes when schedules change, and outlives its database.

use std::time::Duration;

use iit_manager::boot::postgres::StopMode;
use iit_manager::jobs::common::cron;
use iit_manager::queue::Wake;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{apply, database, nightly, schedule, try_count};
use crate::support::app::eventually;
use crate::support::postgres::{TestCluster, TestDb};
use crate::support::study::StudyFolder;

/// Longer than any test: what happens was not found by looking again.
const NO_POLL: Duration = Duration::from_secs(3600);

struct Scheduler {
    stop: CancellationToken,
    parts: Vec<JoinHandle<()>>,
}

impl Scheduler {
    /// A scheduler process with its LISTEN connection.
    async fn start(db: &TestDb) -> Self {
        let (pool, wake, stop) = (
            db.another_pool(4).await,
            Wake::new(Uuid::new_v4()),
            CancellationToken::new(),
        );
        let parts = vec![
            tokio::spawn(wake.clone().run_listener(pool.clone(), stop.clone())),
            tokio::spawn(cron::run(pool, wake.clone(), NO_POLL, stop.clone())),
        ];
        eventually("LISTEN", async || wake.is_listening().then_some(())).await;
        Self { stop, parts }
    }

    async fn stop(self) {
        self.stop.cancel();
        for part in self.parts {
            part.await.unwrap();
        }
    }
}

/// Makes the schedule due in a moment, by the database's clock.
async fn due_in_a_moment(db: &TestDb) {
    sqlx::query(
        "UPDATE iit_schedules SET next_fire_at = clock_timestamp() + interval '300 milliseconds'",
    )
    .execute(&db.pool)
    .await
    .unwrap();
    cron::wake_schedulers(&db.pool).await;
}

async fn fired(db: &TestDb, times: i64) {
    eventually("the firing", async || {
        (try_count(&db.pool, "iit_firings WHERE state = 'queued'").await == Some(times))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn it_sleeps_until_the_next_time_and_wakes_when_schedules_change() {
    let db = database(&nightly(&json!({}))).await;
    let scheduler = Scheduler::start(&db).await;
    due_in_a_moment(&db).await;
    fired(&db, 1).await;
    let lag: f64 = sqlx::query_scalar(
        "SELECT EXTRACT(EPOCH FROM created_at - fire_time)::float8 FROM iit_firings",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert!(lag >= 0.0, "never before its time: {lag}");
    scheduler.stop().await;
}

#[tokio::test]
async fn a_schedule_applied_while_it_sleeps_is_known_to_it() {
    let study = StudyFolder::with_eligibility("lung", []);
    let db = database(&study).await;
    let scheduler = Scheduler::start(&db).await;
    super::write_scheduled(&study, "0 3 * * *", &json!({}));
    apply(&db.pool, &study).await;
    due_in_a_moment(&db).await;
    fired(&db, 1).await;
    scheduler.stop().await;
}

#[tokio::test]
async fn it_outlives_its_database_and_then_catches_up() {
    let cluster = TestCluster::start().await;
    let db = TestDb::on(&cluster).await;
    apply(&db.pool, &nightly(&json!({}))).await;
    let scheduler = Scheduler::start(&db).await;
    due_in_a_moment(&db).await;
    fired(&db, 1).await;
    // Three nights have gone by when the server is back.
    sqlx::query(
        "UPDATE iit_schedules SET next_fire_at = next_fire_at - interval '3 days 10 hours'",
    )
    .execute(&db.pool)
    .await
    .unwrap();
    cluster.take_down(StopMode::Immediate).await;
    cluster.bring_back().await;
    fired(&db, 2).await;
    eventually("what was missed", async || {
        (schedule(&db.pool).await.missed >= 2).then_some(())
    })
    .await;
    scheduler.stop().await;
}
