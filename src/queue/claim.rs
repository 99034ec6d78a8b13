//! Out of the queue: one short statement takes exactly as many due jobs as there are free slots.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::lease::Lease;

/// Where the last claim ended, in claiming order. Starting there keeps the claim quick while a long
/// snapshot holds back the vacuum of rows already taken.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    priority: i16,
    run_at: DateTime<Utc>,
    id: i64,
}

impl Bound {
    /// Before every row.
    pub const START: Self = Self {
        priority: i16::MIN,
        run_at: DateTime::<Utc>::UNIX_EPOCH,
        id: 0,
    };

    /// Behind one row.
    #[cfg(test)]
    pub(super) fn after(priority: i16, run_at: DateTime<Utc>, id: i64) -> Self {
        Self {
            priority,
            run_at,
            id,
        }
    }

    /// Whether this bound leaves nothing out.
    #[must_use]
    pub fn is_start(&self) -> bool {
        self.priority == i16::MIN
    }
}

/// A job this process holds a lease on.
#[derive(Debug, Clone)]
pub struct ClaimedJob {
    /// Stored kind (may be an alias).
    pub kind: String,
    /// The arguments, not yet decoded.
    pub payload: Value,
    /// Times its lease ran out unrenewed.
    pub crashes: i32,
    /// When it became due.
    pub run_at: DateTime<Utc>,
    /// From due to claimed, by the database clock.
    pub waited: Duration,
    /// The hold on it.
    pub lease: Lease,
}

/// Claims at most `slots` due jobs of `queue`, in order of priority, due time and id, and counts the
/// attempt. Of a group only the first unfinished job can be claimed.
///
/// # Errors
/// The database failed, or two processes raced for one group (the caller just tries again).
pub async fn claim(
    conn: &mut PgConnection,
    queue: &str,
    worker: Uuid,
    slots: usize,
    lease: Duration,
    bound: Bound,
) -> Result<(Vec<ClaimedJob>, Bound), sqlx::Error> {
    let mut rows = sqlx::query!(
        r#"WITH next AS (
               SELECT j.id FROM iit_jobs j
               WHERE j.state = 'available' AND j.queue = $1 AND j.run_at <= now()
                 AND (j.priority, j.run_at, j.id) > ($5, $6, $7)
                 AND (j.group_key IS NULL OR NOT EXISTS (
                      SELECT 1 FROM iit_jobs earlier
                      WHERE earlier.group_key = j.group_key
                        AND earlier.state IN ('available', 'running')
                        AND (earlier.id < j.id OR earlier.state = 'running')))
               ORDER BY j.priority, j.run_at, j.id
               LIMIT $2
               FOR UPDATE SKIP LOCKED)
           UPDATE iit_jobs AS job
           SET state = 'running', attempt = job.attempt + 1, worker = $3,
               lease_token = gen_random_uuid(),
               lease_expires_at = clock_timestamp() + make_interval(secs => $4),
               started_at = clock_timestamp()
           FROM next WHERE job.id = next.id
           RETURNING job.id, job.kind, job.payload, job.attempt, job.max_attempts, job.crashes,
                     job.priority, job.run_at, job.group_key, job.lease_token AS "lease_token!",
                     EXTRACT(EPOCH FROM clock_timestamp() - job.run_at)::float8 AS "waited!""#,
        queue,
        i64::try_from(slots).unwrap_or(i64::MAX),
        worker,
        lease.as_secs_f64(),
        bound.priority,
        bound.run_at,
        bound.id,
    )
    .fetch_all(conn)
    .await?;
    rows.sort_by_key(|row| (row.priority, row.run_at, row.id));
    let bound = rows.last().map_or(bound, |row| Bound {
        priority: row.priority,
        run_at: row.run_at,
        id: row.id,
    });
    let jobs = rows
        .into_iter()
        .map(|row| ClaimedJob {
            kind: row.kind,
            payload: row.payload,
            crashes: row.crashes,
            run_at: row.run_at,
            waited: Duration::try_from_secs_f64(row.waited.max(0.0)).unwrap_or_default(),
            lease: Lease {
                job: row.id,
                token: row.lease_token,
                attempt: row.attempt,
                max_attempts: row.max_attempts,
                queue: queue.to_owned(),
                group: row.group_key,
                length: lease,
            },
        })
        .collect();
    Ok((jobs, bound))
}

/// How long until the next job of `queue` can be claimed; zero when one became due since the last claim,
/// `None` when none waits. Jobs behind another of their group don't count: its end wakes them.
///
/// # Errors
/// The database failed.
pub async fn next_due(
    conn: &mut PgConnection,
    queue: &str,
) -> Result<Option<Duration>, sqlx::Error> {
    let seconds = sqlx::query_scalar!(
        r#"SELECT EXTRACT(EPOCH FROM min(run_at) - clock_timestamp())::float8 AS seconds
           FROM iit_jobs j
           WHERE j.queue = $1 AND j.state = 'available'
             AND (j.group_key IS NULL OR NOT EXISTS (
                  SELECT 1 FROM iit_jobs earlier
                  WHERE earlier.group_key = j.group_key
                    AND earlier.state IN ('available', 'running')
                    AND (earlier.id < j.id OR earlier.state = 'running')))"#,
        queue,
    )
    .fetch_one(conn)
    .await?;
    Ok(seconds.map(|s| Duration::try_from_secs_f64(s.max(0.0)).unwrap_or_default()))
}
