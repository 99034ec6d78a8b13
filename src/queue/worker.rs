//! From a claimed row to a settled one: the claimer fills free slots, the guard sees to it that every
//! attempt ends in exactly one settlement, whatever the handler does.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use apalis::prelude::WorkerBuilder;
use futures::{FutureExt, future::BoxFuture};
use sqlx::PgPool;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::Instant,
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use uuid::Uuid;

use super::{
    backend::ClaimedJobs,
    claim::{self, Bound, ClaimedJob},
    job::{JobError, Outcome, backoff},
    lease::{HeldLease, LeaseKeeper},
    settle::{SettleError, Settled, Settlement},
    sweep,
    wake::Wake,
};
use crate::types::text::{ellipsis, without_nul};

/// A job that took its process down this often is quarantined.
pub const MAX_CRASHES: i32 = 3;
/// The claimer's lower bound is forgotten this often, so that rows before it are found.
const BOUND_AGE: Duration = Duration::from_millis(250);

/// The shortest sleep until a due time: the row may be in another claimer's hands right now.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// How long after the drain time aborted attempts have to end.
const ABORT_TIME: Duration = Duration::from_secs(2);
/// Claims beyond its attempts that a dead job gets while telling what waits for it fails.
const BURIALS: i32 = 3;

/// What the queue asks of the program: run a job by its stored kind.
pub trait Handler: Send + Sync + 'static {
    /// Longest time one attempt at a job of this kind may take.
    fn timeout(&self, kind: &str) -> Duration;

    /// Runs one attempt and settles it, or says why it did not.
    fn run(&self, job: ClaimedJob) -> BoxFuture<'static, Result<Settled, JobError>>;

    /// Called inside the settlement that gives a job up, so that what waits for it is told in the same
    /// transaction.
    fn bury<'a>(
        &'a self,
        job: &'a ClaimedJob,
        settlement: &'a mut Settlement,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), JobError>>;
}

/// How this process works.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// How long a claim holds unrenewed.
    pub lease: Duration,
    /// Safety net for lost wake-ups.
    pub poll: Duration,
    /// Jobs at a time, per queue.
    pub concurrency: usize,
    /// How long running jobs may finish after a stop was asked for.
    pub drain: Duration,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(2),
            concurrency: 8,
            drain: Duration::from_secs(25),
        }
    }
}

/// A claimed job, its lease kept renewed, and the permit that its slot is.
pub struct Slot {
    job: ClaimedJob,
    held: HeldLease,
    permit: OwnedSemaphorePermit,
}

/// When each queue's claimer last went round. Readiness asks for progress, not for life.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<HashMap<String, Instant>>>);

impl Progress {
    fn tick(&self, queue: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(queue.to_owned(), Instant::now());
    }

    /// The longest time any claimer has not gone round; `None` before the first did.
    #[must_use]
    pub fn slowest(&self) -> Option<Duration> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .map(Instant::elapsed)
            .max()
    }
}

/// One process's worker half. Cheap to clone.
#[derive(Clone)]
pub struct Worker {
    /// For settlements and handlers.
    pool: PgPool,
    /// For claims and renewals: `synchronous_commit = off` is safe there, since a lost claim is only a
    /// rerun, and a later settle flushes everything before it.
    claims: PgPool,
    wake: Wake,
    keeper: LeaseKeeper,
    process: Uuid,
    handler: Arc<dyn Handler>,
    settings: WorkerSettings,
    progress: Progress,
    attempts: TaskTracker,
}

impl Worker {
    /// A worker of this process. `claims` needs at least three connections (claims, renewal, LISTEN).
    pub fn new(
        pool: PgPool,
        claims: PgPool,
        wake: Wake,
        handler: Arc<dyn Handler>,
        settings: WorkerSettings,
    ) -> Self {
        Self {
            pool,
            claims,
            wake,
            keeper: LeaseKeeper::new(settings.lease),
            process: Uuid::new_v4(),
            handler,
            settings,
            progress: Progress::default(),
            attempts: TaskTracker::new(),
        }
    }

    /// For readiness.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Works on `queues` until `stop`, then lets running jobs finish for the drain time. What is still
    /// running after it is given back to the queue at once, without using up an attempt.
    pub async fn run(self, queues: &[&str], stop: CancellationToken) {
        // These outlive the drain: leases are renewed until the last job has ended.
        let background = CancellationToken::new();
        let mut services = JoinSet::new();
        services.spawn(
            self.keeper
                .clone()
                .run(self.claims.clone(), background.clone()),
        );
        services.spawn(sweep::run(
            self.pool.clone(),
            self.wake.clone(),
            self.settings.lease,
            background.clone(),
        ));
        services.spawn(
            self.wake
                .clone()
                .run_listener(self.claims.clone(), background.clone()),
        );

        let mut workers = JoinSet::new();
        for queue in queues {
            let (claimed, slots) = mpsc::channel(self.settings.concurrency.max(1));
            workers.spawn(
                self.clone()
                    .claim_forever((*queue).to_owned(), claimed, stop.clone()),
            );
            let guard = self.clone();
            let apalis = WorkerBuilder::new(format!("{queue}-{}", self.process))
                .backend(ClaimedJobs::new(slots))
                .build(move |slot: Slot| guard.clone().work(slot));
            workers.spawn(async move {
                if let Err(error) = apalis.run().await {
                    tracing::error!(%error, "queue.worker.ended");
                }
            });
        }

        stop.cancelled().await;
        let drained = tokio::time::timeout(self.settings.drain, async {
            while workers.join_next().await.is_some() {}
        });
        if drained.await.is_err() {
            tracing::warn!(jobs = self.keeper.in_hand().len(), "queue.drain.cut_short");
            workers.shutdown().await;
            self.attempts.close();
            let _ = tokio::time::timeout(ABORT_TIME, self.attempts.wait()).await;
            self.give_back().await;
        }
        background.cancel();
        while services.join_next().await.is_some() {}
    }

    /// Hands back to the queue what this process claimed and no longer works on. An attempt that did not
    /// end when it was aborted keeps its lease until it runs out.
    async fn give_back(&self) {
        let given = sqlx::query_scalar!(
            r#"UPDATE iit_jobs
               SET state = 'available', run_at = clock_timestamp(), attempt = attempt - 1,
                   lease_token = NULL, lease_expires_at = NULL, worker = NULL
               WHERE state = 'running' AND worker = $1 AND lease_token <> ALL($2)
               RETURNING queue"#,
            self.process,
            &self.keeper.in_hand(),
        )
        .fetch_all(&self.pool)
        .await;
        match given {
            // At once: this process's notifier may have stopped already.
            Ok(queues) => Wake::notify_once(&self.pool, &queues).await,
            Err(error) => tracing::warn!(%error, "queue.drain.give_back_failed"),
        }
    }

    async fn claim_forever(
        self,
        queue: String,
        claimed: mpsc::Sender<Slot>,
        stop: CancellationToken,
    ) {
        let slots = Arc::new(Semaphore::new(self.settings.concurrency.max(1)));
        let mut bound = (Bound::START, Instant::now());
        let mut trouble: u32 = 0;
        loop {
            self.progress.tick(&queue);
            let first = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                permit = Arc::clone(&slots).acquire_owned() => permit,
                // Busy, not stuck: readiness must not fail because every slot works.
                () = tokio::time::sleep(self.settings.poll) => continue,
            };
            let Ok(first) = first else { return };
            let mut permits = vec![first];
            while let Ok(permit) = Arc::clone(&slots).try_acquire_owned() {
                permits.push(permit);
            }
            if bound.1.elapsed() >= BOUND_AGE {
                bound = (Bound::START, Instant::now());
            }
            let wanted = permits.len();
            let asked = Instant::now();
            match self.claim(&queue, wanted, bound.0).await {
                Ok((jobs, last)) => {
                    trouble = 0;
                    let full = jobs.len() == wanted;
                    for (job, permit) in jobs.into_iter().zip(permits) {
                        let held = self.keeper.hold(&job.lease, asked);
                        let slot = Slot { job, held, permit };
                        if claimed.send(slot).await.is_err() {
                            return;
                        }
                    }
                    if full {
                        bound.0 = last;
                        continue;
                    }
                    if bound.0.is_start() {
                        self.idle(&queue, &stop).await;
                    }
                    bound = (Bound::START, Instant::now());
                }
                Err(error) => {
                    trouble = trouble.saturating_add(1);
                    if !is_group_race(&error) {
                        tracing::warn!(queue, %error, "queue.claim.failed");
                    }
                    let pause = Duration::from_millis(50 << trouble.min(6));
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(pause) => {}
                    }
                }
            }
        }
    }

    async fn claim(
        &self,
        queue: &str,
        slots: usize,
        bound: Bound,
    ) -> Result<(Vec<ClaimedJob>, Bound), sqlx::Error> {
        let mut conn = self.claims.acquire().await?;
        claim::claim(
            &mut conn,
            queue,
            self.process,
            slots,
            self.settings.lease,
            bound,
        )
        .await
    }

    /// Waits for a wake-up, the next due time, or the poll interval, whichever is first.
    async fn idle(&self, queue: &str, stop: &CancellationToken) {
        let due = async {
            let mut conn = self.claims.acquire().await?;
            claim::next_due(&mut conn, queue).await
        };
        let wait = match due.await {
            Ok(Some(due)) => due.max(SHORTEST_SLEEP).min(self.settings.poll),
            Ok(None) | Err(_) => self.settings.poll,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.wake.wait(queue) => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    /// One attempt, from claimed to settled. Never panics, never returns early with the job unsettled
    /// unless the lease is lost or the database is away (then the sweep brings the job back).
    async fn work(self, slot: Slot) {
        let Slot { job, held, permit } = slot;
        let kind = job.kind.clone();
        let queue = job.lease.queue.clone();
        metrics::histogram!("iit_job_wait_seconds", "queue" => queue.clone(), "kind" => kind.clone())
            .record(job.waited.as_secs_f64());
        let started = Instant::now();
        let token = job.lease.token;
        let worker = self.clone();
        let attempt = self.attempts.spawn(async move {
            // Let go, and the slot free, only when the handler's future is really gone.
            let _until_gone = (held, permit);
            worker.attempt(job).await
        });
        self.keeper.abort_with(token, attempt.abort_handle());
        // An error means that the attempt was aborted: its lease is somebody else's.
        let outcome = AbortOnDropHandle::new(attempt).await.unwrap_or("lost");
        metrics::histogram!("iit_job_run_seconds", "queue" => queue, "kind" => kind.clone(), "outcome" => outcome)
            .record(started.elapsed().as_secs_f64());
        metrics::counter!("iit_job_attempts_total", "kind" => kind, "outcome" => outcome)
            .increment(1);
    }

    async fn attempt(&self, job: ClaimedJob) -> &'static str {
        let lease = &job.lease;
        if job.crashes >= MAX_CRASHES {
            return self.bury(&job, "crashed the worker").await;
        }
        if lease.attempt > lease.max_attempts {
            return self.bury(&job, "its attempts are used up").await;
        }
        let limit = self.handler.timeout(&job.kind);
        let handler = Arc::clone(&self.handler);
        let claimed = job.clone();
        // Inside the future, so that a panic before its first await is caught as well.
        let running = AssertUnwindSafe(async move { handler.run(claimed).await }).catch_unwind();
        let error = match tokio::time::timeout(limit, running).await {
            Ok(Ok(Ok(_settled))) => return "done",
            Ok(Ok(Err(error))) => error,
            Ok(Err(panic)) => {
                JobError::retry(anyhow::anyhow!("the job panicked: {}", words(&*panic)))
            }
            Err(_) => JobError::retry(anyhow::anyhow!(
                "the job took longer than {} s",
                limit.as_secs()
            )),
        };
        let (name, outcome) = match error {
            JobError::LostLease => {
                tracing::warn!(job.id = lease.job, "queue.settle.lost_lease");
                metrics::counter!("iit_lease_lost_total").increment(1);
                return "lost";
            }
            JobError::Dead(why) => return self.bury(&job, &format!("{why:#}")).await,
            JobError::Retry { why, .. } if lease.attempt >= lease.max_attempts => {
                return self.bury(&job, &format!("{why:#}")).await;
            }
            JobError::Retry { why, after } => {
                let after = after.unwrap_or_else(|| backoff(lease.attempt));
                tracing::warn!(
                    job.id = lease.job,
                    kind = job.kind,
                    attempt = lease.attempt,
                    error = format!("{why:#}"),
                    "queue.job.retry"
                );
                let why = readable(&format!("{why:#}"));
                ("retry", Outcome::Retry { after, why })
            }
            JobError::Cancel(why) => ("cancelled", Outcome::Cancel(why)),
            JobError::Snooze(after) => ("snoozed", Outcome::Snooze(after)),
        };
        let settled = async {
            lease
                .settle(&self.pool, &self.wake, &outcome)
                .await?
                .commit()
                .await
        };
        self.report(lease.job, settled.await, name)
    }

    /// Gives a job up: `dead`, with whatever waits for it told in the same transaction. If telling
    /// fails for good, the job is still buried, so that it can't come back for ever.
    async fn bury(&self, job: &ClaimedJob, why: &str) -> &'static str {
        let why = &readable(why);
        tracing::error!(
            job.id = job.lease.job,
            kind = job.kind,
            attempt = job.lease.attempt,
            error = why,
            "queue.job.dead"
        );
        let outcome = Outcome::Dead(why.to_owned());
        let told = async {
            let mut settlement = job.lease.settle(&self.pool, &self.wake, &outcome).await?;
            AssertUnwindSafe(async { self.handler.bury(job, &mut settlement, why).await })
                .catch_unwind()
                .await
                .unwrap_or_else(|panic| {
                    Err(JobError::dead(anyhow::anyhow!(
                        "the job panicked: {}",
                        words(&*panic)
                    )))
                })?;
            settlement.commit().await?;
            Ok::<(), JobError>(())
        };
        match told.await {
            Ok(()) => "dead",
            Err(JobError::LostLease) => "lost",
            // The database is away: the lease runs out, and the sweep brings the job back to be buried.
            Err(JobError::Retry { why, .. })
                if job.lease.attempt < job.lease.max_attempts.saturating_add(BURIALS) =>
            {
                tracing::warn!(
                    job.id = job.lease.job,
                    error = format!("{why:#}"),
                    "queue.job.burial_put_off"
                );
                "lost"
            }
            Err(error) => {
                tracing::error!(job.id = job.lease.job, %error, "queue.job.burial_failed");
                let settled = async {
                    job.lease
                        .settle(&self.pool, &self.wake, &outcome)
                        .await?
                        .commit()
                        .await
                };
                self.report(job.lease.job, settled.await, "dead")
            }
        }
    }

    fn report(
        &self,
        job: i64,
        settled: Result<Settled, SettleError>,
        name: &'static str,
    ) -> &'static str {
        match settled {
            Ok(_) => name,
            Err(error) => {
                tracing::warn!(job.id = job, %error, "queue.settle.failed");
                "lost"
            }
        }
    }
}

/// Two processes claimed two jobs of one group at the same moment; the index refused the second.
fn is_group_race(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|db| db.constraint() == Some("iit_jobs_group_runs_one"))
}

/// An error as it can be stored and read: no U+0000, no novel.
fn readable(why: &str) -> String {
    ellipsis(&without_nul(why).0, 2000)
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
