//! Any number of schedulers, and every way in which one may fail half-way: a time fires once.

use chrono::{DateTime, Duration, Utc};
use iit_manager::jobs::common::cron;
use iit_manager::queue::Wake;
use iit_manager::store::schedules::{self, firings as rows};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Barrier;

use super::{at, count, database, due_since, firings, nightly, round_at, schedule, scheduled};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_schedulers_at_once_fire_each_time_once() {
    let db = database(&scheduled("*/10 * * * *", &json!({}))).await;
    due_since(&db.pool, "2026-12-01T00:00:00Z").await;
    let start = at("2026-12-01T00:00:00Z");
    let times: Vec<DateTime<Utc>> = (0..12)
        .map(|no| start + Duration::minutes(10 * no))
        .collect();
    let together = Arc::new(Barrier::new(3));
    let mut schedulers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (pool, times, together) = (
            db.another_pool(2).await,
            times.clone(),
            Arc::clone(&together),
        );
        schedulers.spawn(async move {
            let mut fired = 0;
            for time in times {
                together.wait().await;
                fired += cron::round(&pool, &Wake::default(), time)
                    .await
                    .unwrap()
                    .fired;
            }
            fired
        });
    }
    let fired: usize = schedulers.join_all().await.iter().sum();
    assert_eq!(fired, 12);
    assert_eq!(
        count(&db.pool, "iit_firings WHERE state = 'queued'").await,
        12
    );
    assert_eq!(
        count(&db.pool, "iit_jobs WHERE kind = 'cron_skill'").await,
        12
    );
    assert_eq!(
        count(&db.pool, "iit_firings WHERE state = 'missed'").await,
        0
    );
}

#[tokio::test]
async fn a_second_leader_that_believes_in_the_same_tick_meets_the_row_of_the_first() {
    let db = database(&nightly(&json!({}))).await;
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    let wake = Wake::default();
    assert_eq!(
        round_at(&db.pool, &wake, "2026-12-01T19:00:01Z")
            .await
            .fired,
        1
    );
    // The other read the schedule before it moved on: every lock is passed, the row is not.
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    assert_eq!(
        round_at(&db.pool, &wake, "2026-12-01T19:00:02Z")
            .await
            .fired,
        0
    );
    assert_eq!(count(&db.pool, "iit_jobs").await, 1);
    assert_eq!(firings(&db.pool).await, ["12-02 03:00 queued"]);
    // Nor is what fired counted as missed by one who comes much later.
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    let late = round_at(&db.pool, &wake, "2026-12-08T12:00:00Z").await;
    assert_eq!((late.fired, late.missed), (1, 5));
    assert_eq!(
        firings(&db.pool).await.first().unwrap(),
        "12-02 03:00 queued"
    );
}

#[tokio::test]
async fn two_open_transactions_over_one_tick_end_with_one_firing() {
    let db = database(&nightly(&json!({}))).await;
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    let (now, wake) = (at("2026-12-01T19:00:00Z"), Wake::default());
    let id = schedules::due(&mut db.pool.acquire().await.unwrap(), now)
        .await
        .unwrap()[0];
    let mut first = db.pool.begin().await.unwrap();
    assert!(
        schedules::lock_due(&mut first, id, now)
            .await
            .unwrap()
            .is_some()
    );
    let other = db.another_pool(2).await;
    let second = tokio::spawn(async move { cron::tick(&other, &wake, id, now).await });
    // It is really waiting for the first.
    crate::support::app::eventually("the second scheduler at the lock", async || {
        let waiting = count(
            &db.pool,
            "pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
        );
        (waiting.await == 1).then_some(())
    })
    .await;
    let fired = rows::fire(&mut first, id, &[(now, false)]).await.unwrap();
    assert_eq!(fired.len(), 1);
    schedules::advance(
        &mut first,
        id,
        Some(at("2026-12-02T19:00:00Z")),
        Some(now),
        0,
    )
    .await
    .unwrap();
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap().unwrap().fired, 0);
    assert_eq!(firings(&db.pool).await, ["12-02 03:00 queued"]);
}

#[tokio::test]
async fn a_tick_whose_job_can_not_be_enqueued_leaves_no_trace_and_comes_again() {
    let db = database(&nightly(&json!({}))).await;
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    sqlx::query("ALTER TABLE iit_jobs ADD CONSTRAINT no_cron CHECK (kind <> 'cron_skill')")
        .execute(&db.pool)
        .await
        .unwrap();
    let wake = Wake::default();
    let error = cron::round(&db.pool, &wake, at("2026-12-01T19:00:00Z"))
        .await
        .unwrap_err();
    assert!(format!("{error:#}").contains("no_cron"), "{error:#}");
    assert_eq!(firings(&db.pool).await, Vec::<String>::new());
    assert_eq!(
        schedule(&db.pool).await.next_fire_at,
        Some(at("2026-12-01T19:00:00Z"))
    );
    sqlx::query("ALTER TABLE iit_jobs DROP CONSTRAINT no_cron")
        .execute(&db.pool)
        .await
        .unwrap();
    assert_eq!(
        round_at(&db.pool, &wake, "2026-12-01T19:01:00Z")
            .await
            .fired,
        1
    );
    assert_eq!(firings(&db.pool).await, ["12-02 03:00 queued"]);
}

#[tokio::test]
async fn a_schedule_nobody_can_read_stops_and_does_not_keep_the_others() {
    let study = nightly(&json!({}));
    study.write_skill_file(
        "second.json",
        &json!({ "skillType": "second", "schedule": "0 3 * * *", "config": crate::support::study::one_node(&[
            crate::support::study::rule("S-1", "age", json!({ "<=": [{ "var": "age" }, 75] }), "年龄>75岁"),
        ]) }).to_string(),
    );
    let db = database(&study).await;
    sqlx::query("UPDATE iit_schedules SET next_fire_at = '2026-12-01T19:00:00Z'")
        .execute(&db.pool)
        .await
        .unwrap();
    sqlx::query("UPDATE iit_schedules SET cron = 'every night' WHERE skill_type = 'eligibility'")
        .execute(&db.pool)
        .await
        .unwrap();
    sqlx::query("ALTER TABLE iit_skills DISABLE TRIGGER USER")
        .execute(&db.pool)
        .await
        .unwrap();
    sqlx::query("UPDATE iit_skills SET schedule = 'every night' WHERE skill_type = 'eligibility'")
        .execute(&db.pool)
        .await
        .unwrap();
    assert_eq!(
        round_at(&db.pool, &Wake::default(), "2026-12-01T19:00:00Z")
            .await
            .fired,
        1
    );
    let disabled: Vec<(String, Option<String>)> =
        sqlx::query_as("SELECT skill_type, disabled_by FROM iit_schedules ORDER BY skill_type")
            .fetch_all(&db.pool)
            .await
            .unwrap();
    assert_eq!(
        disabled,
        [
            ("eligibility".to_owned(), Some("unreadable".to_owned())),
            ("second".to_owned(), None)
        ]
    );
}
