//! Schedules follow skills and the project's time zone, and are due from then on, never for the past.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    apply, at, count, database, due_since, firings, nightly, round_at, schedule, scheduled,
    write_scheduled,
};
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, eligibility};
use iit_manager::queue::Wake;

async fn now(db: &TestDb) -> DateTime<Utc> {
    sqlx::query_scalar("SELECT now()")
        .fetch_one(&db.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_new_schedule_is_due_next_and_not_for_the_time_before_it_was_there() {
    let before = chrono::TimeDelta::zero();
    let db = database(&nightly(&json!({ "catchup": "all" }))).await;
    let next = schedule(&db.pool).await.next_fire_at.unwrap();
    let wait = next - now(&db).await;
    assert!(
        wait > before && wait <= chrono::TimeDelta::days(1),
        "{wait}"
    );
    assert_eq!(
        next.with_timezone(&chrono_tz::Asia::Shanghai)
            .format("%H:%M:%S")
            .to_string(),
        "03:00:00"
    );
    let round = iit_manager::jobs::common::cron::round(&db.pool, &Wake::default(), now(&db).await)
        .await
        .unwrap();
    assert_eq!((round.fired, round.missed), (0, 0));
}

#[tokio::test]
async fn the_same_skill_applied_again_stays_due_even_for_what_it_missed() {
    let study = nightly(&json!({}));
    let db = database(&study).await;
    due_since(&db.pool, "2026-11-01T19:00:00Z").await;
    apply(&db.pool, &study).await;
    assert_eq!(
        schedule(&db.pool).await.next_fire_at,
        Some(at("2026-11-01T19:00:00Z"))
    );
}

#[tokio::test]
async fn a_changed_expression_is_due_from_now_on() {
    let study = nightly(&json!({}));
    let db = database(&study).await;
    due_since(&db.pool, "2026-11-01T19:00:00Z").await;
    write_scheduled(
        &study,
        "30 4 * * 1",
        &json!({ "catchup": "all", "catchup_window": "7d" }),
    );
    apply(&db.pool, &study).await;
    let line = schedule(&db.pool).await;
    let next = line.next_fire_at.unwrap();
    assert!(next > now(&db).await);
    assert_eq!(
        next.with_timezone(&chrono_tz::Asia::Shanghai)
            .format("%a %H:%M")
            .to_string(),
        "Mon 04:30"
    );
    assert_eq!(
        (
            line.catch_up.policy.as_str(),
            line.catch_up.window.to_string()
        ),
        ("all", "7d".to_owned())
    );
    assert_eq!(firings(&db.pool).await, Vec::<String>::new());
}

#[tokio::test]
async fn another_time_zone_of_the_project_moves_its_schedules() {
    let study = nightly(&json!({}));
    let db = database(&study).await;
    let text = std::fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(&text.replace("Asia/Shanghai", "America/New_York"));
    let file = iit_manager::boot::cli::project::read(&study.project_file()).unwrap();
    assert!(
        iit_manager::boot::cli::project::apply(&db.pool, &file)
            .await
            .unwrap()
    );
    let line = schedule(&db.pool).await;
    assert_eq!(line.timezone, "America/New_York");
    let next = line.next_fire_at.unwrap();
    assert!(next > now(&db).await);
    assert_eq!(
        next.with_timezone(&chrono_tz::America::New_York)
            .format("%H:%M")
            .to_string(),
        "03:00"
    );
}

#[tokio::test]
async fn a_skill_that_is_switched_off_deleted_or_loses_its_schedule_runs_no_more_and_may_come_back()
{
    let study = nightly(&json!({}));
    let db = database(&study).await;
    let wake = Wake::default();
    for (statement, reason) in [
        ("UPDATE iit_skills SET is_active = false", "inactive"),
        ("DELETE FROM iit_skills", "inactive"),
        ("UPDATE iit_skills SET schedule = NULL", "unscheduled"),
    ] {
        due_since(&db.pool, "2026-12-01T19:00:00Z").await;
        sqlx::query(statement).execute(&db.pool).await.unwrap();
        let line = schedule(&db.pool).await;
        assert_eq!(
            (line.disabled_by.as_deref(), line.next_fire_at),
            (Some(reason), None),
            "{statement}"
        );
        let round = round_at(&db.pool, &wake, "2026-12-01T19:00:00Z").await;
        assert_eq!((round.fired, round.missed), (0, 0), "{statement}");
        apply(&db.pool, &study).await;
        let line = schedule(&db.pool).await;
        assert_eq!(line.disabled_by, None, "{statement}");
        assert!(line.next_fire_at.unwrap() > now(&db).await, "{statement}");
    }
    // A file without a schedule does the same.
    study.write_skill("eligibility", &eligibility());
    apply(&db.pool, &study).await;
    assert_eq!(
        schedule(&db.pool).await.disabled_by.as_deref(),
        Some("unscheduled")
    );
}

#[tokio::test]
async fn a_row_that_somebody_else_wrote_is_followed_by_the_next_round() {
    let study = StudyFolder::with_eligibility("lung", []);
    let db = database(&study).await;
    assert_eq!(count(&db.pool, "iit_schedules").await, 0);
    let wake = Wake::default();
    sqlx::query("UPDATE iit_skills SET schedule = '0 5 * * 1'")
        .execute(&db.pool)
        .await
        .unwrap();
    round_at(&db.pool, &wake, "2026-12-01T12:00:00Z").await;
    let line = schedule(&db.pool).await;
    assert_eq!(
        line.next_fire_at,
        Some(at("2026-12-06T21:00:00Z")),
        "Monday five o'clock in Shanghai"
    );
    sqlx::query("UPDATE iit_skills SET schedule = '0 6 * * 1'")
        .execute(&db.pool)
        .await
        .unwrap();
    round_at(&db.pool, &wake, "2026-12-01T12:00:00Z").await;
    assert_eq!(
        schedule(&db.pool).await.next_fire_at,
        Some(at("2026-12-06T22:00:00Z"))
    );
    sqlx::query("UPDATE iit_skills SET is_active = false")
        .execute(&db.pool)
        .await
        .unwrap();
    sqlx::query("UPDATE iit_skills SET is_active = true")
        .execute(&db.pool)
        .await
        .unwrap();
    round_at(&db.pool, &wake, "2026-12-01T12:00:00Z").await;
    assert_eq!(
        schedule(&db.pool).await.next_fire_at,
        Some(at("2026-12-06T22:00:00Z"))
    );
    // What can't be read is said once, and stands still.
    sqlx::query("UPDATE iit_skills SET schedule = 'weekly'")
        .execute(&db.pool)
        .await
        .unwrap();
    round_at(&db.pool, &wake, "2026-12-01T12:00:00Z").await;
    assert_eq!(
        schedule(&db.pool).await.disabled_by.as_deref(),
        Some("unreadable")
    );
}

#[tokio::test]
async fn a_report_is_not_fired_in_this_version() {
    let study = scheduled("0 3 * * *", &json!({}));
    std::fs::remove_file(study.skills().join("eligibility.json")).unwrap();
    study.write_skill_file(
        "weekly_report.json",
        include_str!("../../../skills/examples/weekly_report.json"),
    );
    let db = database(&study).await;
    let line = schedule(&db.pool).await;
    assert_eq!(
        (
            line.skill_type.as_str(),
            line.disabled_by.as_deref(),
            line.next_fire_at
        ),
        ("weekly_report", Some("report"), None)
    );
    let round = round_at(&db.pool, &Wake::default(), "2027-12-01T12:00:00Z").await;
    assert_eq!((round.fired, round.missed), (0, 0));
}

#[tokio::test]
async fn named_hours_come_once_through_the_gap_and_the_fold_of_new_york() {
    let study = scheduled("30 1,2 * * *", &json!({}));
    let text = std::fs::read_to_string(study.project_file()).unwrap();
    study.write_whole_project(&text.replace("Asia/Shanghai", "America/New_York"));
    let db = database(&study).await;
    let wake = Wake::default();
    // A scheduler that looks every ten minutes of two days about each change.
    for due in ["2027-03-13T06:30:00Z", "2027-11-06T05:30:00Z"] {
        due_since(&db.pool, due).await;
        for look in 0..46 * 6 {
            let now = at(due) + chrono::TimeDelta::minutes(10 * look);
            iit_manager::jobs::common::cron::round(&db.pool, &wake, now)
                .await
                .unwrap();
        }
    }
    // At 02:30 on 03-14 the clock showed 03:30 already; 01:30 on 11-07 came twice.
    assert_eq!(
        firings(&db.pool).await,
        [
            "03-13 01:30 queued",
            "03-13 02:30 queued",
            "03-14 01:30 queued",
            "03-14 03:00 queued",
            "11-06 01:30 queued",
            "11-06 02:30 queued",
            "11-07 01:30 queued",
            "11-07 02:30 queued",
        ]
    );
}
