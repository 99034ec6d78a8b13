//! Holding on to claimed jobs: one task a process renews every lease in one statement, and aborts a job
//! whose lease can't be renewed, because another worker may have it by now.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::{sync::watch, task::AbortHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The right to settle one attempt at one job. Fenced: it is worth nothing once the row carries
/// another token.
#[derive(Debug, Clone)]
pub struct Lease {
    /// Job id.
    pub job: i64,
    /// The fence.
    pub token: Uuid,
    /// This attempt, counted from 1.
    pub attempt: i32,
    /// Attempts allowed.
    pub max_attempts: i32,
    /// The queue it was claimed from.
    pub queue: String,
    /// Its group, whose next job becomes claimable when this one ends.
    pub group: Option<String>,
    /// The job's priority, for the jobs it leads to.
    pub priority: i16,
    /// How long it lasts unrenewed.
    pub length: Duration,
    /// Its queue has a limit over all processes: its end makes room for another.
    pub limited: bool,
}

struct Held {
    job: i64,
    renewed: Instant,
    /// Renewals in a row that did not find the row. One may be our own settle, committed a moment
    /// before; the second means the job is gone.
    missed: u8,
    abort: Option<AbortHandle>,
    cancel: watch::Sender<Option<String>>,
}

/// A lease that is still ours.
struct Renewed {
    token: Uuid,
    cancelled: Option<String>,
}

/// All leases of this process.
#[derive(Clone)]
pub struct LeaseKeeper {
    held: Arc<Mutex<HashMap<Uuid, Held>>>,
    length: Duration,
}

/// Keeps a lease renewed until it is dropped.
pub struct HeldLease {
    keeper: LeaseKeeper,
    token: Uuid,
    cancelled: watch::Receiver<Option<String>>,
}

impl HeldLease {
    /// Waits until an operator cancels the job, and says why.
    pub fn cancelled(&self) -> impl Future<Output = String> + Send + 'static {
        let mut cancelled = self.cancelled.clone();
        async move {
            let why = cancelled.wait_for(Option::is_some).await;
            let why = why.ok().and_then(|why| why.clone());
            match why {
                Some(why) => why,
                // Let go of: nobody cancels it any more.
                None => std::future::pending().await,
            }
        }
    }
}

impl LeaseKeeper {
    /// A keeper of leases of that length; renewal runs at a third of it.
    #[must_use]
    pub fn new(length: Duration) -> Self {
        Self {
            held: Arc::default(),
            length,
        }
    }

    /// How long a lease lasts unrenewed.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Held>> {
        // A panic while holding this map leaves it whole: each change is one insert or remove.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts renewing `lease`; the claim was asked for at `asked`, so it can't have begun before.
    #[must_use]
    pub fn hold(&self, lease: &Lease, asked: Instant) -> HeldLease {
        let (cancel, cancelled) = watch::channel(None);
        self.lock().insert(
            lease.token,
            Held {
                job: lease.job,
                renewed: asked,
                missed: 0,
                abort: None,
                cancel,
            },
        );
        HeldLease {
            keeper: self.clone(),
            token: lease.token,
            cancelled,
        }
    }

    /// What to abort when the lease of that token is lost. Does nothing once it is let go.
    pub fn abort_with(&self, token: Uuid, abort: AbortHandle) {
        if let Some(held) = self.lock().get_mut(&token) {
            held.abort = Some(abort);
        }
    }

    /// The leases in hand.
    #[must_use]
    pub fn in_hand(&self) -> Vec<Uuid> {
        self.lock().keys().copied().collect()
    }

    /// Renews until `stop`; the caller stops it only after its last job ended.
    pub async fn run(self, pool: PgPool, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(self.length / 3);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let sent = Instant::now();
            match tokio::time::timeout(self.length / 3, self.renew(&pool)).await {
                Ok(Ok(renewed)) => self.keep(&renewed, sent),
                Ok(Err(error)) => tracing::warn!(%error, "queue.lease.renewal_failed"),
                Err(_) => tracing::warn!("queue.lease.renewal_timed_out"),
            }
            self.abort_expired();
        }
    }

    /// Renews what is still ours and returns it. A row that is locked is left as it is and counts as
    /// ours: most likely its own settlement is under way, which nobody can sweep; waiting for it would
    /// cost all other jobs their leases.
    async fn renew(&self, pool: &PgPool) -> Result<Vec<Renewed>, sqlx::Error> {
        let (jobs, tokens): (Vec<i64>, Vec<Uuid>) = self
            .lock()
            .iter()
            .map(|(token, held)| (held.job, *token))
            .unzip();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        sqlx::query_as!(
            Renewed,
            r#"WITH held AS (
                   SELECT job.id, job.lease_token, job.cancel_reason
                   FROM iit_jobs job JOIN UNNEST($1::bigint[], $2::uuid[]) AS mine(id, token)
                        ON job.id = mine.id AND job.lease_token = mine.token),
               free AS (
                   SELECT job.id FROM iit_jobs job JOIN held USING (id, lease_token)
                   FOR UPDATE OF job SKIP LOCKED),
               renewed AS (
                   UPDATE iit_jobs AS job
                   SET lease_expires_at = clock_timestamp() + make_interval(secs => $3)
                   FROM free WHERE job.id = free.id)
               SELECT lease_token AS "token!",
                      CASE WHEN id IN (SELECT id FROM free) THEN cancel_reason END AS cancelled
               FROM held"#,
            &jobs,
            &tokens,
            self.length.as_secs_f64(),
        )
        .fetch_all(pool)
        .await
    }

    /// Notes what was renewed and aborts what was held before the statement but is ours no more.
    /// What an operator cancelled is told so, unless its settlement is under way.
    fn keep(&self, renewed: &[Renewed], sent: Instant) {
        let mut held = self.lock();
        for (token, lease) in held.iter_mut() {
            if let Some(renewed) = renewed.iter().find(|one| one.token == *token) {
                lease.renewed = sent;
                lease.missed = 0;
                if renewed.cancelled.is_some() && lease.cancel.borrow().is_none() {
                    lease.cancel.send_replace(renewed.cancelled.clone());
                }
            } else if lease.renewed < sent {
                lease.missed = lease.missed.saturating_add(1);
                if lease.missed >= 2 {
                    lease.abort("queue.lease.lost");
                }
            }
        }
    }

    /// A job whose lease ran out by our own steady clock is aborted even if the database is away.
    fn abort_expired(&self) {
        for lease in self.lock().values() {
            if lease.renewed.elapsed() >= self.length {
                lease.abort("queue.lease.expired");
            }
        }
    }
}

impl Held {
    fn abort(&self, event: &'static str) {
        if let Some(abort) = &self.abort
            && !abort.is_finished()
        {
            tracing::warn!(job.id = self.job, event, "queue.lease.aborting");
            metrics::counter!("iit_lease_lost_total").increment(1);
            abort.abort();
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.keeper.lock().remove(&self.token);
    }
}
