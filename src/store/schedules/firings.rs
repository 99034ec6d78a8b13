//! What became of each time a schedule was due: one row a time, once, whoever writes it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::types::ids::BatchId;

/// One time a schedule was due, with what it takes to do it.
#[derive(Debug, Clone)]
pub struct Firing {
    /// Its id.
    pub id: i64,
    /// Its schedule.
    pub schedule: i64,
    /// The study.
    pub project: String,
    /// The skill.
    pub skill_type: String,
    /// What people call the skill; the type when the skill is gone.
    pub skill_name: String,
    /// The skill is there and switched on.
    pub skill_is_active: bool,
    /// When it was due.
    pub fire_time: DateTime<Utc>,
    /// `queued`, `started`, `skipped`, `missed`, `cancelled`, `failed`.
    pub state: String,
    /// It is caught up with after the time had passed.
    pub late: bool,
    /// Every missed time is to be caught up with, so this one may wait for the one before it.
    pub may_wait: bool,
}

/// Writes the times that fire (and whether each is late) and returns the new ones; what is written
/// already, by whomever, is left alone.
///
/// # Errors
/// The database failed.
pub async fn fire(
    conn: &mut PgConnection,
    schedule: i64,
    times: &[(DateTime<Utc>, bool)],
) -> Result<Vec<(i64, DateTime<Utc>)>, sqlx::Error> {
    let (times, late): (Vec<DateTime<Utc>>, Vec<bool>) = times.iter().copied().unzip();
    let mut rows = sqlx::query!(
        r#"INSERT INTO iit_firings (schedule_id, fire_time, state, late)
           SELECT $1, t.fire_time, 'queued', t.late FROM UNNEST($2::timestamptz[], $3::bool[]) AS t(fire_time, late)
           ON CONFLICT ON CONSTRAINT iit_firings_once DO NOTHING
           RETURNING id, fire_time"#,
        schedule,
        &times,
        &late,
    )
    .fetch_all(conn)
    .await?;
    rows.sort_by_key(|row| row.fire_time);
    Ok(rows
        .into_iter()
        .map(|row| (row.id, row.fire_time))
        .collect())
}

/// Writes the times that were missed; returns how many of them are new.
///
/// # Errors
/// The database failed.
pub async fn miss(
    conn: &mut PgConnection,
    schedule: i64,
    times: &[DateTime<Utc>],
) -> Result<i64, sqlx::Error> {
    let done = sqlx::query!(
        r#"INSERT INTO iit_firings (schedule_id, fire_time, state)
           SELECT $1, t.fire_time, 'missed' FROM UNNEST($2::timestamptz[]) AS t(fire_time)
           ON CONFLICT ON CONSTRAINT iit_firings_once DO NOTHING"#,
        schedule,
        times,
    )
    .execute(conn)
    .await?;
    Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
}

/// Notes which job does a firing.
///
/// # Errors
/// The database failed.
pub async fn done_by(conn: &mut PgConnection, id: i64, job: i64) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_firings SET job_id = $2 WHERE id = $1"#,
        id,
        job
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The firing of that id.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: i64) -> Result<Option<Firing>, sqlx::Error> {
    sqlx::query_as!(
        Firing,
        r#"SELECT f.id, f.schedule_id AS schedule, s.project_id AS project, s.skill_type,
                  COALESCE(k.name, s.skill_type) AS "skill_name!",
                  COALESCE(k.is_active AND k.config ? 'nodes', false) AS "skill_is_active!",
                  f.fire_time, f.state, f.late, f.late AND s.catchup = 'all' AND f.created_at + make_interval(secs => s.catchup_window_s) > now() AS "may_wait!"
           FROM iit_firings f
           JOIN iit_schedules s ON s.id = f.schedule_id
           LEFT JOIN iit_skills k ON k.project_id = s.project_id AND k.skill_type = s.skill_type
           WHERE f.id = $1"#,
        id,
    )
    .fetch_optional(conn)
    .await
}

/// The firing that started a batch.
///
/// # Errors
/// The database failed.
pub async fn of_batch(
    conn: &mut PgConnection,
    batch: BatchId,
) -> Result<Option<Firing>, sqlx::Error> {
    let id = sqlx::query_scalar!(
        r#"SELECT id FROM iit_firings WHERE batch_id = $1"#,
        batch as BatchId
    )
    .fetch_optional(&mut *conn)
    .await?;
    match id {
        Some(id) => get(conn, id).await,
        None => Ok(None),
    }
}

/// Whether a QC that this schedule started is still going on. Locks the schedule until the end of the
/// transaction, so that two of its firings can't both find that none is.
///
/// # Errors
/// The database failed.
pub async fn lock_busy(conn: &mut PgConnection, schedule: i64) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT id FROM iit_schedules WHERE id = $1 FOR NO KEY UPDATE"#,
        schedule
    )
    .fetch_optional(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM iit_firings f JOIN iit_batches b ON b.id = f.batch_id
                          WHERE f.schedule_id = $1 AND b.state IN ('planning', 'running')) AS "busy!""#,
        schedule,
    )
    .fetch_one(conn)
    .await
}

/// What the firing before this one came to.
///
/// # Errors
/// The database failed.
pub async fn state_before(
    conn: &mut PgConnection,
    firing: &Firing,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT state FROM iit_firings WHERE schedule_id = $1 AND fire_time < $2
           ORDER BY fire_time DESC LIMIT 1"#,
        firing.schedule,
        firing.fire_time,
    )
    .fetch_optional(conn)
    .await
}

/// Ends a queued firing: with the batch it started, or with what kept it from starting one. `false`:
/// somebody ended it before, and the caller must roll back.
///
/// # Errors
/// The database failed.
pub async fn end(
    conn: &mut PgConnection,
    id: i64,
    state: &str,
    batch: Option<BatchId>,
    note: Option<&str>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_firings SET state = $2, batch_id = $3, note = $4, updated_at = now()
           WHERE id = $1 AND state = 'queued'"#,
        id,
        state,
        batch as Option<BatchId>,
        note,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Opens a failed firing again, for an operator who tries its job again. Returns whether it was failed.
///
/// # Errors
/// The database failed.
pub async fn reopen(conn: &mut PgConnection, id: i64) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_firings SET state = 'queued', note = NULL, updated_at = now()
           WHERE id = $1 AND state = 'failed'"#,
        id,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Forgets what is older than a year; the count of missed times stays. Returns how many rows went.
///
/// # Errors
/// The database failed.
pub async fn forget_old(conn: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let done = sqlx::query!(
        r#"DELETE FROM iit_firings WHERE fire_time < now() - INTERVAL '1 year' AND state <> 'queued'"#
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
