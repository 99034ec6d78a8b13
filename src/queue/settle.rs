//! The fenced end of an attempt: the job's new state, its results and the next jobs commit together.

use std::{collections::BTreeSet, time::Duration};

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};

use super::{
    enqueue::{EnqueueError, Enqueued, NewJob, enqueue, enqueue_many},
    job::{JobError, Outcome},
    lease::Lease,
    wake::Wake,
};

/// Proof that a job was settled; only a committed [`Settlement`] makes one.
#[derive(Debug)]
pub struct Settled(());

/// Why an attempt could not be settled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The row carries another lease, or is not running: whatever was done is rolled back.
    #[error("the lease on job {0} was lost; another worker has it")]
    LostLease(i64),
    /// The database failed.
    #[error("a settlement failed in the database: {0}")]
    Database(#[from] sqlx::Error),
    /// A following job could not be enqueued.
    #[error(transparent)]
    Enqueue(#[from] EnqueueError),
}

impl From<SettleError> for JobError {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::LostLease(_) => Self::LostLease,
            SettleError::Database(error) => error.into(),
            SettleError::Enqueue(error) => error.into(),
        }
    }
}

impl From<EnqueueError> for JobError {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Database(error) => error.into(),
            other => Self::dead(other),
        }
    }
}

/// One transaction that ends an attempt. The fence is taken first: the job's row is locked until the
/// commit, so nobody can sweep or claim it meanwhile.
///
/// Never hold one across a network call. Dropping it without [`Settlement::commit`] rolls back.
pub struct Settlement {
    tx: Transaction<'static, Postgres>,
    wake: Wake,
    queues: BTreeSet<String>,
}

impl Lease {
    /// Opens the transaction that ends this attempt with `outcome`.
    ///
    /// # Errors
    /// [`SettleError::LostLease`] when the job is ours no more.
    pub async fn settle(
        &self,
        pool: &PgPool,
        wake: &Wake,
        outcome: &Outcome,
    ) -> Result<Settlement, SettleError> {
        // A process that falls silent in here (frozen, cut off) would keep the row locked, and so out of
        // the sweep's reach, for as long as the server believes in the connection.
        let begin = format!(
            "BEGIN; SET LOCAL idle_in_transaction_session_timeout = {}",
            self.length.as_millis().clamp(1, 3_600_000)
        );
        // In a task of its own: a begin that is dropped half-way (a lost lease, a deadline) would leave its
        // transaction open in the pool, and what is done on that connection next uncommitted.
        let pool = pool.clone();
        let opening = async move { pool.begin_with(AssertSqlSafe(begin)).await };
        let mut tx = tokio::spawn(opening)
            .await
            .map_err(|_| sqlx::Error::WorkerCrashed)??;
        let fenced = fence(&mut tx, self, outcome).await?;
        if !fenced {
            return Err(SettleError::LostLease(self.job));
        }
        Ok(Settlement::new(tx, wake.clone(), self.freed_by(outcome)))
    }
}

impl Lease {
    /// Ends this attempt with its outcome and nothing else: one statement, fenced like a settlement.
    ///
    /// # Errors
    /// See [`Lease::settle`]. When the connection broke, it may still have happened.
    pub async fn settle_only(
        &self,
        pool: &PgPool,
        wake: &Wake,
        outcome: &Outcome,
    ) -> Result<Settled, SettleError> {
        let mut conn = pool.acquire().await?;
        if !fence(&mut conn, self, outcome).await? {
            return Err(SettleError::LostLease(self.job));
        }
        drop(conn);
        wake.queues(self.freed_by(outcome));
        Ok(Settled(()))
    }

    /// The queue, when the end of this attempt makes a job of it claimable: the next of the group or of a
    /// limited queue, or this job itself.
    fn freed_by(&self, outcome: &Outcome) -> Option<String> {
        let stays = matches!(outcome, Outcome::Retry { .. } | Outcome::Snooze(_));
        (self.group.is_some() || self.limited || stays).then(|| self.queue.clone())
    }
}

impl Settlement {
    /// A settlement over a transaction that wrote the job's end already; `queues` are woken after it.
    pub(super) fn new(
        tx: Transaction<'static, Postgres>,
        wake: Wake,
        queues: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            tx,
            wake,
            queues: queues.into_iter().collect(),
        }
    }

    /// The transaction, for the store's functions.
    pub fn conn(&mut self) -> &mut PgConnection {
        &mut self.tx
    }

    /// Enqueues a following job in this transaction.
    ///
    /// # Errors
    /// See [`EnqueueError`].
    pub async fn enqueue(&mut self, job: NewJob) -> Result<Enqueued, EnqueueError> {
        self.queues.insert(job.queue.clone());
        enqueue(&mut self.tx, job).await
    }

    /// Enqueues many following jobs in this transaction.
    ///
    /// # Errors
    /// See [`EnqueueError`].
    pub async fn enqueue_many(&mut self, jobs: &[NewJob]) -> Result<u64, EnqueueError> {
        self.queues.extend(jobs.iter().map(|job| job.queue.clone()));
        enqueue_many(&mut self.tx, jobs).await
    }

    /// Commits everything and wakes the workers of the jobs that follow.
    ///
    /// # Errors
    /// The commit failed. When the connection broke it may still have happened; a later settle by the
    /// same lease then finds it lost.
    pub async fn commit(self) -> Result<Settled, SettleError> {
        self.tx.commit().await?;
        self.wake.queues(self.queues);
        Ok(Settled(()))
    }
}

/// Writes the outcome if, and only if, the lease still holds. Returns whether it did.
///
/// Only a running job has a token (`job_token_while_running`), so the fence does not name the state: told of
/// it, the planner may look the row up in the small index of running jobs, and there pass every job that
/// ran since the oldest snapshot.
async fn fence(
    conn: &mut PgConnection,
    lease: &Lease,
    outcome: &Outcome,
) -> Result<bool, sqlx::Error> {
    let rows = match outcome {
        Outcome::Done | Outcome::Cancel(_) | Outcome::Dead(_) => {
            let (state, why) = match outcome {
                Outcome::Cancel(why) => ("cancelled", Some(why.as_str())),
                Outcome::Dead(why) => ("dead", Some(why.as_str())),
                _ => ("done", None),
            };
            sqlx::query!(
                r#"UPDATE iit_jobs
                   SET state = $3, finished_at = clock_timestamp(), last_error = COALESCE($4, last_error),
                       lease_token = NULL, lease_expires_at = NULL, worker = NULL
                   WHERE id = $1 AND lease_token = $2"#,
                lease.job,
                lease.token,
                state,
                why,
            )
            .execute(conn)
            .await?
        }
        Outcome::Retry { after, why } => requeue(conn, lease, *after, Some(why), 0).await?,
        Outcome::Snooze(after) => requeue(conn, lease, *after, None, 1).await?,
    };
    Ok(rows.rows_affected() == 1)
}

async fn requeue(
    conn: &mut PgConnection,
    lease: &Lease,
    after: Duration,
    why: Option<&str>,
    give_back: i32,
) -> Result<sqlx::postgres::PgQueryResult, sqlx::Error> {
    // Whoever lives to say this did not take its process down: no suspect any more.
    sqlx::query!(
        r#"UPDATE iit_jobs
           SET state = 'available', run_at = clock_timestamp() + make_interval(secs => $3),
               last_error = COALESCE($4, last_error), attempt = attempt - $5, suspect = false,
               lease_token = NULL, lease_expires_at = NULL, worker = NULL
           WHERE id = $1 AND lease_token = $2"#,
        lease.job,
        lease.token,
        after.as_secs_f64(),
        why,
        give_back,
    )
    .execute(conn)
    .await
}
