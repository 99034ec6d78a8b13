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
    /// Leases that ran out and are put down to it.
    pub crashes: i32,
    /// When it became due.
    pub run_at: DateTime<Utc>,
    /// From due to claimed, by the database clock.
    pub waited: Duration,
    /// Why an operator wants it ended instead of run.
    pub cancelled: Option<String>,
    /// The hold on it.
    pub lease: Lease,
}

/// Which jobs a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that never lost a lease.
    Usual,
    /// Those that did. At most one runs in a process at a time, so that a guilty one is found out.
    Suspect,
}

/// One claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub queue: &'a str,
    pub worker: Uuid,
    pub slots: usize,
    pub lease: Duration,
    pub bound: Bound,
    pub which: Which,
    /// The caller holds the queue's limit: its row is locked and has room for `slots`.
    pub limited: bool,
}

/// Claims at most `slots` due jobs of `queue`, in order of priority, due time and id, and counts the
/// attempt. Of a group only the first unfinished job can be claimed. Suspects are passed over
/// ([`claim_suspect`]); of a paused or limited queue nothing is claimed ([`super::limit`]).
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
    let ask = Ask {
        queue,
        worker,
        slots,
        lease,
        bound,
        which: Which::Usual,
        limited: false,
    };
    take(conn, ask).await
}

/// Claims the first due suspect of `queue`, like [`claim`] in everything else. The caller sees to it that
/// its process runs no other suspect meanwhile.
///
/// # Errors
/// See [`claim`].
pub async fn claim_suspect(
    conn: &mut PgConnection,
    queue: &str,
    worker: Uuid,
    lease: Duration,
) -> Result<Option<ClaimedJob>, sqlx::Error> {
    let ask = Ask {
        queue,
        worker,
        slots: 1,
        lease,
        bound: Bound::START,
        which: Which::Suspect,
        limited: false,
    };
    Ok(take(conn, ask).await?.0.pop())
}

struct Row {
    id: i64,
    kind: String,
    payload: Value,
    attempt: i32,
    max_attempts: i32,
    crashes: i32,
    priority: i16,
    run_at: DateTime<Utc>,
    group_key: Option<String>,
    lease_token: Uuid,
    cancel_reason: Option<String>,
    waited: f64,
}

/// The one claiming statement, for rows that `$which`. Written twice by the compiler and not with a
/// parameter, so that each has its own index.
macro_rules! rows {
    ($which:tt, $conn:expr, $ask:expr) => {
        sqlx::query_as!(
            Row,
            r#"WITH next AS (
                   SELECT j.id FROM iit_jobs j
                   WHERE j.state = 'available' AND "#
                + $which
                + r#" AND j.queue = $1 AND j.run_at <= now()
                     AND (j.priority, j.run_at, j.id) > ($5, $6, $7)
                     AND ($8 OR NOT EXISTS (
                          SELECT 1 FROM iit_queues held
                          WHERE held.name = $1 AND (held.paused_at IS NOT NULL OR held.max_running IS NOT NULL)))
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
                         job.cancel_reason,
                         EXTRACT(EPOCH FROM clock_timestamp() - job.run_at)::float8 AS "waited!""#,
            $ask.queue,
            i64::try_from($ask.slots).unwrap_or(i64::MAX),
            $ask.worker,
            $ask.lease.as_secs_f64(),
            $ask.bound.priority,
            $ask.bound.run_at,
            $ask.bound.id,
            $ask.limited,
        )
        .fetch_all($conn)
        .await?
    };
}

/// Runs a claim.
///
/// # Errors
/// See [`claim`].
pub(super) async fn take(
    conn: &mut PgConnection,
    ask: Ask<'_>,
) -> Result<(Vec<ClaimedJob>, Bound), sqlx::Error> {
    let mut rows = match ask.which {
        Which::Usual => rows!("NOT j.suspect", conn, ask),
        Which::Suspect => rows!("j.suspect", conn, ask),
    };
    rows.sort_by_key(|row| (row.priority, row.run_at, row.id));
    let bound = rows.last().map_or(ask.bound, |row| Bound {
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
            waited: seconds(row.waited),
            cancelled: row.cancel_reason,
            lease: Lease {
                job: row.id,
                token: row.lease_token,
                attempt: row.attempt,
                max_attempts: row.max_attempts,
                queue: ask.queue.to_owned(),
                group: row.group_key,
                length: ask.lease,
                priority: row.priority,
                limited: ask.limited,
            },
        })
        .collect();
    Ok((jobs, bound))
}

/// What a queue has to offer, and what is set for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outlook {
    /// How long until the next job can be claimed; zero when one became due since the last claim, `None`
    /// when none waits.
    pub due: Option<Duration>,
    /// The same for suspects.
    pub suspect_due: Option<Duration>,
    /// Nothing is claimed until somebody resumes the queue.
    pub paused: bool,
    /// Only so many may run over all processes.
    pub limited: bool,
}

/// Looks ahead in `queue`. Jobs behind another of their group don't count: its end wakes them.
///
/// # Errors
/// The database failed.
pub async fn next_due(conn: &mut PgConnection, queue: &str) -> Result<Outlook, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT EXTRACT(EPOCH FROM min(run_at) FILTER (WHERE NOT suspect) - clock_timestamp())::float8 AS due,
                  EXTRACT(EPOCH FROM min(run_at) FILTER (WHERE suspect) - clock_timestamp())::float8 AS suspect_due,
                  EXISTS (SELECT 1 FROM iit_queues WHERE name = $1 AND paused_at IS NOT NULL) AS "paused!",
                  EXISTS (SELECT 1 FROM iit_queues WHERE name = $1 AND max_running IS NOT NULL) AS "limited!"
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
    Ok(Outlook {
        due: row.due.map(seconds),
        suspect_due: row.suspect_due.map(seconds),
        paused: row.paused,
        limited: row.limited,
    })
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}
