//! One process's worker half: claimers fill free slots, apalis runs what they claim, and at the end
//! everything is drained. What happens to a claimed job is in [`super::guard`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use apalis::prelude::WorkerBuilder;
use futures::future::BoxFuture;
use sqlx::PgPool;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    backend::ClaimedJobs,
    claim::{self, Bound, ClaimedJob, Outlook},
    job::JobError,
    lease::{HeldLease, LeaseKeeper},
    settle::{Settled, Settlement},
    sweep,
    wake::Wake,
};

/// The claimer's lower bound is forgotten this often, so that rows before it are found.
const BOUND_AGE: Duration = Duration::from_millis(250);

/// The shortest sleep until a due time: the row may be in another claimer's hands right now.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// How long after the drain time aborted attempts have to end.
const ABORT_TIME: Duration = Duration::from_secs(2);

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
    pub(super) job: ClaimedJob,
    pub(super) held: HeldLease,
    pub(super) permit: OwnedSemaphorePermit,
    /// A suspect's: the only one of its process.
    pub(super) apart: Option<OwnedSemaphorePermit>,
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
    pub(super) pool: PgPool,
    /// For claims and renewals: `synchronous_commit = off` is safe there, since a lost claim is only a
    /// rerun, and a later settle flushes everything before it.
    claims: PgPool,
    pub(super) wake: Wake,
    pub(super) keeper: LeaseKeeper,
    process: Uuid,
    pub(super) handler: Arc<dyn Handler>,
    settings: WorkerSettings,
    progress: Progress,
    pub(super) attempts: TaskTracker,
    /// One permit for the whole process: suspects run one at a time, so that of two only the guilty one
    /// is charged.
    suspects: Arc<Semaphore>,
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
            suspects: Arc::new(Semaphore::new(1)),
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
        // These outlive the drain: leases are renewed, and what follows is told, until the last job has
        // ended.
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
        services.spawn(
            self.wake
                .clone()
                .run_notifier(self.pool.clone(), background.clone()),
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
            Ok(queues) => self.wake.queues(queues),
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
        let mut apart = None;
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
                apart = apart.or_else(|| Arc::clone(&self.suspects).try_acquire_owned().ok());
            }
            let asked = Instant::now();
            let found = self
                .claim(&queue, permits.len(), bound.0, apart.is_some())
                .await;
            match found {
                Ok(found) => {
                    trouble = 0;
                    let full =
                        found.usual.len() + usize::from(found.suspect.is_some()) == permits.len();
                    let jobs = found.usual.into_iter().map(|job| (job, None));
                    // Without a suspect its permit goes back.
                    let suspect = found.suspect.map(|job| (job, apart.take()));
                    apart = None;
                    for ((job, apart), permit) in suspect.into_iter().chain(jobs).zip(permits) {
                        let held = self.keeper.hold(&job.lease, asked);
                        let slot = Slot {
                            job,
                            held,
                            permit,
                            apart,
                        };
                        if claimed.send(slot).await.is_err() {
                            return;
                        }
                    }
                    if full {
                        bound.0 = found.bound;
                        continue;
                    }
                    if bound.0.is_start() {
                        apart = self.idle(&queue, &stop).await;
                    }
                    bound = (Bound::START, Instant::now());
                }
                Err(error) => {
                    trouble = trouble.saturating_add(1);
                    apart = None;
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

    /// Claims for `slots` free slots: a suspect first if there may be one, usual jobs for the rest.
    async fn claim(
        &self,
        queue: &str,
        slots: usize,
        bound: Bound,
        suspect: bool,
    ) -> Result<Found, sqlx::Error> {
        let mut conn = self.claims.acquire().await?;
        let lease = self.settings.lease;
        let suspect = match suspect {
            true => claim::claim_suspect(&mut conn, queue, self.process, lease).await?,
            false => None,
        };
        let slots = slots - usize::from(suspect.is_some());
        if slots == 0 {
            let usual = Vec::new();
            return Ok(Found {
                usual,
                suspect,
                bound,
            });
        }
        let usual = claim::claim(&mut conn, queue, self.process, slots, lease, bound).await;
        match (usual, &suspect) {
            (Ok((usual, bound)), _) => Ok(Found {
                usual,
                suspect,
                bound,
            }),
            // What is claimed must be run.
            (Err(error), Some(_)) => {
                tracing::warn!(queue, %error, "queue.claim.failed");
                let usual = Vec::new();
                Ok(Found {
                    usual,
                    suspect,
                    bound,
                })
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Waits for a wake-up, the next due time, or the poll interval, whichever is first. When a suspect is
    /// due, also for the leave to run one, which is returned.
    async fn idle(&self, queue: &str, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
        let outlook = async {
            let mut conn = self.claims.acquire().await?;
            claim::next_due(&mut conn, queue).await
        };
        let Outlook {
            due,
            suspect_due,
            paused,
            ..
        } = outlook.await.unwrap_or_default();
        let after = |due: Option<Duration>| match due {
            Some(due) if !paused => due.max(SHORTEST_SLEEP).min(self.settings.poll),
            _ => self.settings.poll,
        };
        let suspect = async {
            match suspect_due {
                Some(_) if !paused => tokio::time::sleep(after(suspect_due)).await,
                _ => std::future::pending().await,
            }
            Arc::clone(&self.suspects).acquire_owned().await.ok()
        };
        tokio::select! {
            () = stop.cancelled() => None,
            () = self.wake.wait(queue) => None,
            () = tokio::time::sleep(after(due)) => None,
            leave = suspect => leave,
        }
    }
}

/// What one round of a claimer brought.
struct Found {
    usual: Vec<ClaimedJob>,
    suspect: Option<ClaimedJob>,
    bound: Bound,
}

/// Two processes claimed two jobs of one group at the same moment; the index refused the second.
fn is_group_race(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|db| db.constraint() == Some("iit_jobs_group_runs_one"))
}
