//! Leases nobody renews any more: their jobs go back to the queue.
//!
//! Every process sweeps; the statement re-checks the expiry under lock, so sweeping twice is harmless.
//! A job whose attempts are used up, or that took its process down three times, goes back as well: the
//! next claimer buries it, so that there is one place where jobs die and what waits for them is told.
//!
//! Who is to blame? A process that dies takes all its jobs with it, and at most one of them did it. Only a
//! job that was alone, or that ran apart as a suspect, is charged with the crash; the others become
//! suspects, and from then on run apart.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::wake::Wake;

/// A job put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued {
    /// Its queue.
    pub queue: String,
    /// Its id.
    pub id: i64,
    /// Whether the crash is put down to it.
    pub blamed: bool,
}

/// Puts jobs with expired leases back, in their old order.
///
/// # Errors
/// The database failed.
pub async fn sweep(pool: &PgPool) -> Result<Vec<Rescued>, sqlx::Error> {
    // `lost_by` remembers neighbours that an earlier sweep took: leases of one process need not run out
    // at one time.
    sqlx::query_as!(
        Rescued,
        r#"WITH lost AS (
               SELECT id, worker, suspect FROM iit_jobs
               WHERE state = 'running' AND lease_expires_at < clock_timestamp()
               FOR UPDATE SKIP LOCKED),
           judged AS (
               SELECT id, suspect OR (
                   NOT EXISTS (SELECT 1 FROM iit_jobs other
                               WHERE other.state = 'running' AND other.worker = lost.worker AND other.id <> lost.id)
                   AND NOT EXISTS (SELECT 1 FROM iit_jobs other
                                   WHERE other.lost_by = lost.worker AND other.id <> lost.id)) AS blamed
               FROM lost)
           UPDATE iit_jobs AS job
           SET state = 'available', run_at = now(), crashes = job.crashes + judged.blamed::int,
               suspect = true, lost_by = job.worker,
               last_error = 'the worker stopped renewing its lease',
               lease_token = NULL, lease_expires_at = NULL, worker = NULL
           FROM judged WHERE job.id = judged.id AND job.lease_expires_at < clock_timestamp()
           RETURNING job.queue, job.id, judged.blamed AS "blamed!""#,
    )
    .fetch_all(pool)
    .await
}

/// Sweeps at once and then every half lease, jittered so that processes do not sweep in step.
pub async fn run(pool: PgPool, wake: Wake, lease: Duration, stop: CancellationToken) {
    loop {
        match sweep(&pool).await {
            Ok(rescued) => {
                for job in &rescued {
                    let reason = if job.blamed { "blamed" } else { "suspected" };
                    tracing::warn!(
                        job.id = job.id,
                        queue = job.queue,
                        reason,
                        "queue.sweep.rescued"
                    );
                    metrics::counter!("iit_jobs_rescued_total", "reason" => reason).increment(1);
                }
                wake.queues(rescued.into_iter().map(|job| job.queue));
            }
            Err(error) => tracing::warn!(%error, "queue.sweep.failed"),
        }
        let pause = (lease / 2).mul_f64(rand::random_range(0.8..1.2));
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            () = wake.reconnected() => {}
        }
    }
}
