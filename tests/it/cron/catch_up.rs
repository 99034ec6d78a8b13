//! Down across three ticks, with each policy: what fires, what is missed, and where it is seen.

use serde_json::{Value, json};

use super::{at, count, database, due_since, firings, nightly, round_at, schedule, scheduled};
use crate::support::postgres::TestDb;
use iit_manager::ops::metrics::Metrics;
use iit_manager::queue::Wake;

/// Due since the night of the 2nd (Shanghai), looked at in the morning of the 4th.
async fn after_three_nights(more: &Value) -> TestDb {
    let db = database(&nightly(more)).await;
    due_since(&db.pool, "2026-12-01T19:00:00Z").await;
    round_at(&db.pool, &Wake::default(), "2026-12-04T01:00:00Z").await;
    let line = schedule(&db.pool).await;
    assert_eq!(line.next_fire_at, Some(at("2026-12-04T19:00:00Z")));
    let jobs = count(&db.pool, "iit_jobs WHERE kind = 'cron_skill'").await;
    let fired = count(&db.pool, "iit_firings WHERE state = 'queued'").await;
    assert_eq!(jobs, fired, "a job for each that fires");
    assert_eq!(
        line.missed,
        count(&db.pool, "iit_firings WHERE state = 'missed'").await
    );
    db
}

#[tokio::test]
async fn by_default_the_last_time_is_caught_up_with() {
    let db = after_three_nights(&json!({})).await;
    assert_eq!(
        firings(&db.pool).await,
        [
            "12-02 03:00 missed",
            "12-03 03:00 missed",
            "12-04 03:00 queued late"
        ]
    );
}

#[tokio::test]
async fn none_catches_up_with_nothing() {
    let db = after_three_nights(&json!({ "catchup": "none" })).await;
    assert_eq!(
        firings(&db.pool).await,
        [
            "12-02 03:00 missed",
            "12-03 03:00 missed",
            "12-04 03:00 missed"
        ]
    );
}

#[tokio::test]
async fn all_catches_up_with_every_time_inside_the_window() {
    let db = after_three_nights(&json!({ "catchup": "all", "catchup_window": "36h" })).await;
    assert_eq!(
        firings(&db.pool).await,
        [
            "12-02 03:00 missed",
            "12-03 03:00 queued late",
            "12-04 03:00 queued late"
        ]
    );
}

#[tokio::test]
async fn the_last_time_is_missed_too_when_it_is_older_than_the_window() {
    let db = after_three_nights(&json!({ "catchup_window": "2h" })).await;
    assert_eq!(
        firings(&db.pool).await,
        [
            "12-02 03:00 missed",
            "12-03 03:00 missed",
            "12-04 03:00 missed"
        ]
    );
}

#[tokio::test]
async fn days_of_silence_of_a_schedule_of_minutes_end_in_one_firing_and_a_row_for_each_miss() {
    let db = database(&scheduled("* * * * *", &json!({}))).await;
    due_since(&db.pool, "2026-12-01T00:00:00Z").await;
    let ticked = round_at(&db.pool, &Wake::default(), "2026-12-03T00:00:10Z").await;
    assert_eq!((ticked.fired, ticked.missed), (1, 2880));
    assert_eq!(count(&db.pool, "iit_firings").await, 2881);
    assert_eq!(schedule(&db.pool).await.missed, 2880);
}

#[tokio::test]
async fn missed_times_and_a_scheduler_that_is_away_are_metrics_of_every_process() {
    let study = nightly(&json!({ "catchup": "none" }));
    let db = database(&study).await;
    sqlx::query("INSERT INTO iit_projects (id, name, timezone, config) SELECT 'cron-metrics', name, timezone, config FROM iit_projects")
        .execute(&db.pool).await.unwrap();
    sqlx::query("UPDATE iit_schedules SET project_id = 'cron-metrics', next_fire_at = now() - interval '100 days'")
        .execute(&db.pool).await.unwrap();
    let page = Metrics::install().page(&db.pool).await.unwrap();
    let value = |page: &str, name: &str| -> f64 {
        let line = page
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{name} in {page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value(&page, "iit_cron_lag_seconds ") >= 8_640_000.0);

    let now: chrono::DateTime<chrono::Utc> = sqlx::query_scalar("SELECT now()")
        .fetch_one(&db.pool)
        .await
        .unwrap();
    let ticked = iit_manager::jobs::common::cron::round(&db.pool, &Wake::default(), now)
        .await
        .unwrap();
    assert!((100..=101).contains(&ticked.missed), "{ticked:?}");
    let page = Metrics::install().page(&db.pool).await.unwrap();
    let missed = value(
        &page,
        "iit_cron_missed_total{schedule=\"cron-metrics/eligibility\"}",
    );
    assert!(
        (missed - f64::from(i32::try_from(ticked.missed).unwrap())).abs() < 0.5,
        "{missed}"
    );
}
