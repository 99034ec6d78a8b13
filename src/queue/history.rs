//! Finished jobs leave the table that workers claim from: they move to `iit_job_history`, and days later
//! they are deleted. Dead jobs stay until an operator retries or cancels them.
//!
//! Moved, not deleted at once: what ran when, how often, and with which last error is asked after the
//! fact. The walk goes along the primary key in small windows, since an index of its own for finished
//! rows would cost every settlement.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

/// How long a finished job stays where it was.
pub const GRACE: Duration = Duration::from_secs(600);
/// Rows looked at in one statement.
const WINDOW: i64 = 1000;
/// Statements in a row before others get a turn.
const WINDOWS: usize = 20;
/// Old rows deleted in one statement.
const BATCH: i64 = 2000;
/// Time between walks, spread by half.
const PAUSE: Duration = Duration::from_secs(10);

/// One window of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Where the next one begins; `None` at the end of the table.
    pub next: Option<i64>,
    /// Jobs moved.
    pub moved: i64,
}

/// Moves the finished jobs among the next rows after id `after`. Rows that somebody else moves just now
/// are passed over.
///
/// # Errors
/// The database failed.
pub async fn retire(pool: &PgPool, after: i64, grace: Duration) -> Result<Window, sqlx::Error> {
    let row = sqlx::query!(
        r#"WITH span AS (
               SELECT id FROM iit_jobs WHERE id > $1 ORDER BY id LIMIT $2),
           finished AS (
               SELECT id FROM iit_jobs
               WHERE id > $1 AND id <= (SELECT max(id) FROM span)
                 AND state IN ('done', 'cancelled')
                 AND finished_at < now() - make_interval(secs => $3)
               FOR UPDATE SKIP LOCKED),
           gone AS (
               DELETE FROM iit_jobs AS job USING finished WHERE job.id = finished.id
               RETURNING job.id, queue, kind, payload, state, attempt, crashes, job_key, group_key,
                         last_error, created_at, started_at, finished_at),
           kept AS (
               INSERT INTO iit_job_history (id, queue, kind, payload, state, attempt, crashes, job_key,
                                            group_key, last_error, created_at, started_at, finished_at)
               SELECT id, queue, kind, payload, state, attempt, crashes, job_key, group_key,
                      last_error, created_at, started_at, finished_at
               FROM gone)
           SELECT (SELECT max(id) FROM span) AS last, (SELECT count(*) FROM span) AS "seen!",
                  (SELECT count(*) FROM gone) AS "moved!""#,
        after,
        WINDOW,
        grace.as_secs_f64(),
    )
    .fetch_one(pool)
    .await?;
    Ok(Window {
        next: row.last.filter(|_| row.seen == WINDOW),
        moved: row.moved,
    })
}

/// Deletes some of what finished longer than `keep` ago. Returns how many.
///
/// # Errors
/// The database failed.
pub async fn forget(pool: &PgPool, keep: Duration) -> Result<u64, sqlx::Error> {
    let gone = sqlx::query!(
        r#"DELETE FROM iit_job_history WHERE id IN (
               SELECT id FROM iit_job_history
               WHERE finished_at < now() - make_interval(secs => $1)
               ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED)"#,
        keep.as_secs_f64(),
        BATCH,
    )
    .execute(pool)
    .await?;
    Ok(gone.rows_affected())
}

/// Walks the table again and again, a stretch at a time. Every process does; jittered, so that they do
/// not walk in step.
pub async fn run(pool: PgPool, keep: Duration, stop: CancellationToken) {
    let mut at = 0;
    loop {
        let pause = PAUSE.mul_f64(rand::random_range(0.5..1.5));
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        for _ in 0..WINDOWS {
            match retire(&pool, at, GRACE).await {
                Ok(window) => at = window.next.unwrap_or(0),
                Err(error) => {
                    tracing::warn!(%error, "queue.history.retire_failed");
                    break;
                }
            }
            if at == 0 || stop.is_cancelled() {
                break;
            }
        }
        if let Err(error) = forget(&pool, keep).await {
            tracing::warn!(%error, "queue.history.forget_failed");
        }
    }
}
