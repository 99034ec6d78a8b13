//! Schedules, from a skill file to the batch it starts. Time is what the test says: a tick takes `now`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod catch_up;
mod commands;
mod firing;
mod following;
mod scheduler;
mod schedulers;

use chrono::{DateTime, Utc};
use iit_manager::jobs::common::cron::{self, Ticked};
use iit_manager::queue::Wake;
use iit_manager::store::schedules::listing;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::app::TestApp;
use crate::support::postgres::TestDb;
use crate::support::study::{StudyFolder, Subject, eligibility};

/// A moment.
fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Two subjects, one too young; checked every night at 03:00 in Shanghai, with `more` beside the schedule.
fn nightly(more: &Value) -> StudyFolder {
    scheduled("0 3 * * *", more)
}

/// The same with another schedule.
fn scheduled(schedule: &str, more: &Value) -> StudyFolder {
    let subjects = [Subject::fit("P001").with("age", "16"), Subject::fit("P002")];
    let study = StudyFolder::new("lung", subjects);
    write_scheduled(&study, schedule, more);
    study
}

/// Writes the skill `eligibility` with this schedule.
fn write_scheduled(study: &StudyFolder, schedule: &str, more: &Value) {
    let mut skill = json!({
        "skillType": "eligibility", "name": "入排核查", "schedule": schedule, "config": eligibility(),
    });
    for (key, value) in more.as_object().unwrap() {
        skill[key] = value.clone();
    }
    study.write_skill_file("eligibility.json", &skill.to_string());
}

/// The only schedule of the study.
async fn schedule(pool: &PgPool) -> listing::Line {
    let mut conn = pool.acquire().await.unwrap();
    let mut lines = listing::schedules(&mut conn, "lung").await.unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

/// Makes the only schedule due at this moment, as if the scheduler had last looked before it.
async fn due_since(pool: &PgPool, time: &str) {
    let done = sqlx::query("UPDATE iit_schedules SET next_fire_at = $1 WHERE enabled")
        .bind(at(time))
        .execute(pool)
        .await
        .unwrap();
    assert_eq!(done.rows_affected(), 1);
}

/// What a scheduler does at this moment.
async fn round_at(pool: &PgPool, wake: &Wake, now: &str) -> Ticked {
    cron::round(pool, wake, at(now)).await.unwrap()
}

/// The same in the running program, until all that came of it is done.
async fn tick_in(app: &TestApp, now: &str) -> Ticked {
    let ticked = round_at(&app.db.pool, app.wiring.wake(), now).await;
    app.settled().await;
    ticked
}

/// Every firing as `12-01 03:00 started`, in local time, in order.
async fn firings(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT to_char(f.fire_time AT TIME ZONE s.timezone, 'MM-DD HH24:MI ') || f.state
                || CASE WHEN f.late THEN ' late' ELSE '' END
         FROM iit_firings f JOIN iit_schedules s ON s.id = f.schedule_id ORDER BY f.fire_time",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Rows of `what`, a table with an optional condition.
async fn count(pool: &PgPool, what: &'static str) -> i64 {
    try_count(pool, what).await.unwrap()
}

/// The same; `None` while the server is on its way up.
async fn try_count(pool: &PgPool, what: &'static str) -> Option<i64> {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {what}")))
        .fetch_one(pool)
        .await
        .ok()
}

/// A database with the study applied and no program running.
async fn database(study: &StudyFolder) -> TestDb {
    let db = TestDb::new().await;
    apply(&db.pool, study).await;
    db
}

/// Applies the project file and the skills.
async fn apply(pool: &PgPool, study: &StudyFolder) {
    use iit_manager::boot::cli::{project, skills};
    let file = project::read(&study.project_file()).unwrap();
    project::apply(pool, &file).await.unwrap();
    skills::apply_to(pool, &file, None, &study.skills())
        .await
        .unwrap();
}
