//! What operators ask of schedules.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::stored_catch_up;
use crate::types::{catch_up::CatchUp, ids::BatchId};

/// A schedule with its last firing.
#[derive(Debug, Clone)]
pub struct Line {
    /// The skill.
    pub skill_type: String,
    /// What people call it; `None` when it is gone.
    pub name: Option<String>,
    /// Five-field cron.
    pub cron: String,
    /// IANA time zone.
    pub timezone: String,
    /// What becomes of late times.
    pub catch_up: CatchUp,
    /// Why it does not run; `None` when it does. See [`super::Disabled`].
    pub disabled_by: Option<String>,
    /// When it is due next.
    pub next_fire_at: Option<DateTime<Utc>>,
    /// Times missed, ever.
    pub missed: i64,
    /// The last time it was due.
    pub last: Option<FiringLine>,
}

/// One time a schedule was due.
#[derive(Debug, Clone)]
pub struct FiringLine {
    /// The skill.
    pub skill_type: String,
    /// IANA time zone.
    pub timezone: String,
    /// When it was due.
    pub fire_time: DateTime<Utc>,
    /// `queued`, `started`, `skipped`, `missed`, `cancelled`, `failed`.
    pub state: String,
    /// It was caught up with.
    pub late: bool,
    /// The job that did it.
    pub job: Option<i64>,
    /// The QC it started.
    pub batch: Option<BatchId>,
    /// How that QC stands.
    pub batch_state: Option<String>,
    /// Why it is not `started`.
    pub note: Option<String>,
}

/// All schedules of a study, by skill.
///
/// # Errors
/// The database failed.
pub async fn schedules(conn: &mut PgConnection, project: &str) -> Result<Vec<Line>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT s.skill_type, k.name AS "name?", s.cron, s.timezone, s.catchup, s.catchup_window_s, s.disabled_by,
                  s.next_fire_at, s.missed, f.fire_time AS "fire_time?", f.state AS "state?", f.late AS "late?",
                  f.job_id AS "job_id?", f.batch_id AS "batch_id?: BatchId", b.state AS "batch_state?", f.note AS "note?"
           FROM iit_schedules s
           LEFT JOIN iit_skills k ON k.project_id = s.project_id AND k.skill_type = s.skill_type
           LEFT JOIN LATERAL (SELECT fire_time, state, late, job_id, batch_id, note FROM iit_firings
                              WHERE schedule_id = s.id ORDER BY fire_time DESC LIMIT 1) f ON true
           LEFT JOIN iit_batches b ON b.id = f.batch_id
           WHERE s.project_id = $1 ORDER BY s.skill_type"#,
        project,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let last = row
                .fire_time
                .zip(row.state)
                .map(|(fire_time, state)| FiringLine {
                    skill_type: row.skill_type.clone(),
                    timezone: row.timezone.clone(),
                    fire_time,
                    state,
                    late: row.late.unwrap_or(false),
                    job: row.job_id,
                    batch: row.batch_id,
                    batch_state: row.batch_state,
                    note: row.note,
                });
            Line {
                skill_type: row.skill_type,
                name: row.name,
                cron: row.cron,
                timezone: row.timezone,
                catch_up: stored_catch_up(&row.catchup, row.catchup_window_s),
                disabled_by: row.disabled_by,
                next_fire_at: row.next_fire_at,
                missed: row.missed,
                last,
            }
        })
        .collect())
}

/// Times the schedules of a study were due, newest first, at most `limit`; of one skill or in one state
/// when given.
///
/// # Errors
/// The database failed.
pub async fn firings(
    conn: &mut PgConnection,
    project: &str,
    skill_type: Option<&str>,
    state: Option<&str>,
    limit: i64,
) -> Result<Vec<FiringLine>, sqlx::Error> {
    sqlx::query_as!(
        FiringLine,
        r#"SELECT s.skill_type, s.timezone, f.fire_time, f.state, f.late, f.job_id AS job,
                  f.batch_id AS "batch: BatchId", b.state AS "batch_state?", f.note
           FROM iit_firings f JOIN iit_schedules s ON s.id = f.schedule_id
           LEFT JOIN iit_batches b ON b.id = f.batch_id
           WHERE s.project_id = $1 AND ($2::text IS NULL OR s.skill_type = $2) AND ($3::text IS NULL OR f.state = $3)
           ORDER BY f.fire_time DESC, f.id DESC LIMIT $4"#,
        project,
        skill_type,
        state,
        limit,
    )
    .fetch_all(conn)
    .await
}

/// For metrics: each schedule as `project/skill` with its missed times, and how many seconds the longest
/// due one has waited for a scheduler (0 when none is due).
///
/// # Errors
/// The database failed.
pub async fn gauges(conn: &mut PgConnection) -> Result<(Vec<(String, i64)>, f64), sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT project_id || '/' || skill_type AS "schedule!", missed,
                  EXTRACT(EPOCH FROM clock_timestamp() - next_fire_at)::float8 AS lag
           FROM iit_schedules"#
    )
    .fetch_all(conn)
    .await?;
    let lag = rows.iter().filter_map(|row| row.lag).fold(0.0, f64::max);
    Ok((
        rows.into_iter()
            .map(|row| (row.schedule, row.missed))
            .collect(),
        lag,
    ))
}
