//! The guard around every attempt: whatever the handler does (return, fail, hang, panic, lose its lease),
//! the attempt ends in exactly one settlement, or in none because the job is somebody else's.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{
    claim::ClaimedJob,
    job::{JobError, Outcome, backoff},
    settle::{SettleError, Settled},
    worker::{Slot, Worker},
};
use crate::types::text::{ellipsis, without_nul};

/// A job that took its process down this often is quarantined.
pub const MAX_CRASHES: i32 = 3;
/// Claims beyond its attempts that a dead job gets while telling what waits for it fails.
const BURIALS: i32 = 3;

impl Worker {
    /// One attempt, from claimed to settled. Never panics, never returns early with the job unsettled
    /// unless the lease is lost or the database is away (then the sweep brings the job back).
    pub(super) async fn work(self, slot: Slot) {
        let Slot {
            job,
            held,
            permit,
            apart,
        } = slot;
        let kind = job.kind.clone();
        let queue = job.lease.queue.clone();
        metrics::histogram!("iit_job_wait_seconds", "queue" => queue.clone(), "kind" => kind.clone())
            .record(job.waited.as_secs_f64());
        let started = Instant::now();
        let token = job.lease.token;
        let worker = self.clone();
        let attempt = self.attempts.spawn(async move {
            // Let go, and the slot free, only when the handler's future is really gone.
            let _until_gone = (held, permit, apart);
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
        let settled = lease.settle_only(&self.pool, &self.wake, &outcome).await;
        self.report(lease.job, settled, name)
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
                let settled = job
                    .lease
                    .settle_only(&self.pool, &self.wake, &outcome)
                    .await;
                self.report(job.lease.job, settled, "dead")
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
