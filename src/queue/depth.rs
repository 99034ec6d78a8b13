//! What operators ask of the queue, and the one thing they do to a dead job: try it again.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

/// How many jobs of a queue are in a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Depth {
    /// Queue name.
    pub queue: String,
    /// `available`, `scheduled` (due later), `running`, `dead`.
    pub state: String,
    /// How many.
    pub jobs: i64,
    /// Age of the oldest, in seconds since it became due; `None` for scheduled ones.
    pub oldest_age_s: Option<f64>,
}

/// Unfinished and dead jobs by queue and state, in one statement. Each arm has a partial index of its
/// own, so that settled jobs cost nothing.
///
/// # Errors
/// The database failed.
pub async fn depth(conn: &mut PgConnection) -> Result<Vec<Depth>, sqlx::Error> {
    sqlx::query_as!(
        Depth,
        r#"SELECT queue AS "queue!",
                  CASE WHEN state = 'available' AND run_at > now() THEN 'scheduled' ELSE state END AS "state!",
                  count(*) AS "jobs!",
                  CASE WHEN bool_and(run_at > now()) THEN NULL
                       ELSE EXTRACT(EPOCH FROM now() - min(run_at))::float8 END AS oldest_age_s
           FROM (SELECT queue, state, run_at FROM iit_jobs WHERE state = 'available'
                 UNION ALL SELECT queue, state, run_at FROM iit_jobs WHERE state = 'running'
                 UNION ALL SELECT queue, state, run_at FROM iit_jobs WHERE state = 'dead') AS jobs
           GROUP BY 1, 2 ORDER BY 1, 2"#,
    )
    .fetch_all(conn)
    .await
}

/// A job that was given up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeadJob {
    /// Job id.
    pub id: i64,
    /// Queue name.
    pub queue: String,
    /// Stored kind.
    pub kind: String,
    /// Attempts made.
    pub attempt: i32,
    /// Its arguments.
    #[serde(skip)]
    pub payload: serde_json::Value,
    /// Why it was given up.
    pub reason: Option<String>,
    /// When.
    pub finished_at: Option<DateTime<Utc>>,
}

/// Dead jobs (of a queue, or the given ones), newest first, at most `limit`.
///
/// # Errors
/// The database failed.
pub async fn dead(
    conn: &mut PgConnection,
    queue: Option<&str>,
    ids: Option<&[i64]>,
    limit: i64,
) -> Result<Vec<DeadJob>, sqlx::Error> {
    sqlx::query_as!(
        DeadJob,
        r#"SELECT id, queue, kind, attempt, payload, last_error AS reason, finished_at
           FROM iit_jobs
           WHERE state = 'dead' AND ($1::text IS NULL OR queue = $1) AND ($2::bigint[] IS NULL OR id = ANY($2))
           ORDER BY finished_at DESC, id DESC LIMIT $3"#,
        queue,
        ids,
        limit,
    )
    .fetch_all(conn)
    .await
}

/// Makes the given dead jobs available again, in their old order, with all their attempts. Returns
/// (queue, id) of each. A job whose key stands in the queue again stays dead.
///
/// # Errors
/// The database failed.
pub async fn retry(
    conn: &mut PgConnection,
    ids: &[i64],
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"UPDATE iit_jobs AS job
           SET state = 'available', attempt = 0, crashes = 0, suspect = false, lost_by = NULL,
               cancel_reason = NULL, run_at = now(), finished_at = NULL
           WHERE state = 'dead' AND id = ANY($1)
             AND (job_key IS NULL OR NOT EXISTS (
                  SELECT 1 FROM iit_jobs other
                  WHERE other.kind = job.kind AND other.job_key = job.job_key
                    AND other.id <> job.id
                    AND (other.state IN ('available', 'running') OR (other.state = 'dead' AND other.id > job.id))))
           RETURNING queue, id"#,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.queue, row.id)).collect())
}
