//! Into the queue, inside the caller's transaction: the row that causes a job and the job commit
//! together or not at all.
//!
//! After its commit the caller wakes the workers ([`super::Wake::queues`]); a caller that forgets only
//! costs the poll interval.

use std::time::Duration;

use serde_json::Value;
use sqlx::PgConnection;

use super::job::Job;

/// Largest payload, in bytes of JSON as Postgres writes it. Data belongs in tables.
pub const MAX_PAYLOAD_BYTES: usize = 8 * 1024;

/// A job to be.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Where it runs.
    pub queue: String,
    /// What it is.
    pub kind: &'static str,
    /// Ids and small arguments.
    pub payload: Value,
    /// Not before this long from now (database clock).
    pub delay: Duration,
    /// Lower runs first.
    pub priority: i16,
    /// See [`Job::key`].
    pub key: Option<String>,
    /// See [`Job::group`].
    pub group: Option<String>,
    /// See [`Job::MAX_ATTEMPTS`].
    pub max_attempts: i32,
}

impl NewJob {
    /// The job as its type describes it.
    ///
    /// # Errors
    /// The payload can't be written as JSON.
    pub fn of<J: Job>(job: &J) -> Result<Self, EnqueueError> {
        Ok(Self {
            queue: J::QUEUE.to_owned(),
            kind: J::KIND,
            payload: serde_json::to_value(job).map_err(|source| EnqueueError::Payload {
                kind: J::KIND,
                source,
            })?,
            delay: Duration::ZERO,
            priority: 0,
            key: job.key(),
            group: job.group(),
            max_attempts: J::MAX_ATTEMPTS,
        })
    }

    /// On another queue than its usual one.
    #[must_use]
    pub fn on_queue(mut self, queue: &str) -> Self {
        queue.clone_into(&mut self.queue);
        self
    }

    /// Not before `delay` from now.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Lower runs first; 0 is usual.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    fn check(&self) -> Result<(), EnqueueError> {
        // Postgres stores a space after each comma and colon, and counts them.
        let bytes = self.payload.to_string().len() + spaces(&self.payload);
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(EnqueueError::TooLarge {
                kind: self.kind,
                bytes,
            });
        }
        if has_nul(&self.payload) {
            return Err(EnqueueError::Nul { kind: self.kind });
        }
        Ok(())
    }
}

/// Separators of a JSON value outside its strings.
fn spaces(value: &Value) -> usize {
    match value {
        Value::Array(items) => {
            items.len().saturating_sub(1) + items.iter().map(spaces).sum::<usize>()
        }
        Value::Object(members) => {
            (2 * members.len()).saturating_sub(1) + members.values().map(spaces).sum::<usize>()
        }
        _ => 0,
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

/// What became of an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// A new row.
    New(i64),
    /// An unfinished job with the same key stands already.
    Duplicate(i64),
}

impl Enqueued {
    /// The job's id, new or standing.
    #[must_use]
    pub fn id(self) -> i64 {
        match self {
            Self::New(id) | Self::Duplicate(id) => id,
        }
    }
}

/// Why a job could not be enqueued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// Not JSON.
    #[error("the payload of a `{kind}` job can't be written as JSON: {source}")]
    Payload {
        /// Job kind.
        kind: &'static str,
        /// What serde says.
        source: serde_json::Error,
    },
    /// Over 8 KB.
    #[error(
        "the payload of a `{kind}` job has {bytes} bytes; at most 8192 are allowed, keep data in tables"
    )]
    TooLarge {
        /// Job kind.
        kind: &'static str,
        /// Bytes of JSON.
        bytes: usize,
    },
    /// U+0000, which Postgres can't store.
    #[error("the payload of a `{kind}` job contains U+0000; clean text before enqueueing it")]
    Nul {
        /// Job kind.
        kind: &'static str,
    },
    /// The database failed.
    #[error("a job could not be written: {0}")]
    Database(#[from] sqlx::Error),
}

/// Enqueues one job in the caller's transaction.
///
/// # Errors
/// See [`EnqueueError`]; the caller's transaction is then unusable.
pub async fn enqueue(conn: &mut PgConnection, job: NewJob) -> Result<Enqueued, EnqueueError> {
    job.check()?;
    loop {
        let id = sqlx::query_scalar!(
            r#"INSERT INTO iit_jobs (queue, kind, payload, run_at, priority, job_key, group_key, max_attempts)
               VALUES ($1, $2, $3, now() + make_interval(secs => $4), $5, $6, $7, $8)
               ON CONFLICT (kind, job_key) WHERE job_key IS NOT NULL AND state IN ('available', 'running')
               DO NOTHING
               RETURNING id"#,
            job.queue,
            job.kind,
            job.payload,
            job.delay.as_secs_f64(),
            job.priority,
            job.key,
            job.group,
            job.max_attempts,
        )
        .fetch_optional(&mut *conn)
        .await?;
        if let Some(id) = id {
            return Ok(Enqueued::New(id));
        }
        let standing = sqlx::query_scalar!(
            r#"SELECT id FROM iit_jobs
               WHERE kind = $1 AND job_key = $2 AND state IN ('available', 'running')"#,
            job.kind,
            job.key,
        )
        .fetch_optional(&mut *conn)
        .await?;
        // None: it finished between the two statements, so the key is free again.
        if let Some(id) = standing {
            return Ok(Enqueued::Duplicate(id));
        }
    }
}

/// Enqueues many jobs in one statement; duplicates by key are left out. Returns how many are new.
///
/// # Errors
/// See [`EnqueueError`].
pub async fn enqueue_many(conn: &mut PgConnection, jobs: &[NewJob]) -> Result<u64, EnqueueError> {
    for job in jobs {
        job.check()?;
    }
    let queues: Vec<String> = jobs.iter().map(|j| j.queue.clone()).collect();
    let kinds: Vec<String> = jobs.iter().map(|j| j.kind.to_owned()).collect();
    let payloads: Vec<Value> = jobs.iter().map(|j| j.payload.clone()).collect();
    let delays: Vec<f64> = jobs.iter().map(|j| j.delay.as_secs_f64()).collect();
    let priorities: Vec<i16> = jobs.iter().map(|j| j.priority).collect();
    let keys: Vec<Option<String>> = jobs.iter().map(|j| j.key.clone()).collect();
    let groups: Vec<Option<String>> = jobs.iter().map(|j| j.group.clone()).collect();
    let max_attempts: Vec<i32> = jobs.iter().map(|j| j.max_attempts).collect();
    let done = sqlx::query!(
        r#"INSERT INTO iit_jobs (queue, kind, payload, run_at, priority, job_key, group_key, max_attempts)
           SELECT t.queue, t.kind, t.payload, now() + make_interval(secs => t.delay), t.priority,
                  t.job_key, t.group_key, t.max_attempts
           FROM UNNEST($1::text[], $2::text[], $3::jsonb[], $4::float8[], $5::int2[], $6::text[], $7::text[], $8::int4[])
                WITH ORDINALITY AS t(queue, kind, payload, delay, priority, job_key, group_key, max_attempts, at)
           ORDER BY t.at
           ON CONFLICT (kind, job_key) WHERE job_key IS NOT NULL AND state IN ('available', 'running')
           DO NOTHING"#,
        &queues,
        &kinds,
        &payloads,
        &delays,
        &priorities,
        &keys as &[Option<String>],
        &groups as &[Option<String>],
        &max_attempts,
    )
    .execute(&mut *conn)
    .await?;
    Ok(done.rows_affected())
}
