//! What operators set per queue, for all processes: a pause, and how many jobs may run at once.
//!
//! The claiming statement itself looks here, so a setting holds from its commit on. The caller wakes the
//! queue's workers afterwards ([`super::Wake::notify_once`]), so that a resumed queue goes on at once.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

/// What is set for a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueSettings {
    /// Queue name.
    pub queue: String,
    /// Since when nothing is claimed; running jobs go on.
    pub paused_at: Option<DateTime<Utc>>,
    /// By whom.
    pub paused_by: Option<String>,
    /// How many jobs may run at once over all processes.
    pub max_running: Option<i32>,
}

/// The queues for which something is set.
///
/// # Errors
/// The database failed.
pub async fn settings(conn: &mut PgConnection) -> Result<Vec<QueueSettings>, sqlx::Error> {
    sqlx::query_as!(
        QueueSettings,
        r#"SELECT name AS queue, paused_at, paused_by, max_running FROM iit_queues
           WHERE paused_at IS NOT NULL OR max_running IS NOT NULL ORDER BY name"#,
    )
    .fetch_all(conn)
    .await
}

/// Stops claims of these queues. A queue that is paused already keeps its time and name. Returns those
/// that were not.
///
/// # Errors
/// The database failed.
pub async fn pause(
    conn: &mut PgConnection,
    queues: &[String],
    by: &str,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"INSERT INTO iit_queues AS queue (name, paused_at, paused_by)
           SELECT name, now(), $2 FROM UNNEST($1::text[]) AS t(name) ORDER BY name
           ON CONFLICT (name) DO UPDATE SET paused_at = now(), paused_by = $2
           WHERE queue.paused_at IS NULL
           RETURNING name"#,
        queues,
        by,
    )
    .fetch_all(conn)
    .await
}

/// Lets these queues go on. Returns those that were paused.
///
/// # Errors
/// The database failed.
pub async fn resume(
    conn: &mut PgConnection,
    queues: &[String],
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"UPDATE iit_queues SET paused_at = NULL, paused_by = NULL
           WHERE name = ANY($1) AND paused_at IS NOT NULL RETURNING name"#,
        queues,
    )
    .fetch_all(conn)
    .await
}

/// Sets how many jobs of a queue may run at once over all processes; `None` for as many as there are
/// slots. What runs already goes on, and counts. Returns what was set before.
///
/// # Errors
/// The database failed, or `max` is not positive.
pub async fn limit(
    conn: &mut PgConnection,
    queue: &str,
    max: Option<i32>,
) -> Result<Option<i32>, sqlx::Error> {
    let before = sqlx::query_scalar!(
        r#"SELECT max_running FROM iit_queues WHERE name = $1 FOR UPDATE"#,
        queue,
    )
    .fetch_optional(&mut *conn)
    .await?;
    sqlx::query!(
        r#"INSERT INTO iit_queues (name, max_running) VALUES ($1, $2)
           ON CONFLICT (name) DO UPDATE SET max_running = $2"#,
        queue,
        max,
    )
    .execute(conn)
    .await?;
    Ok(before.flatten())
}
