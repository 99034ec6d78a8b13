//! Leases nobody renews any more: their jobs go back to the queue.
//!
//! Every process sweeps; the statement re-checks the expiry under lock, so sweeping twice is harmless.
//! A job whose attempts are used up, or that took its process down three times, goes back as well: the
//! next claimer buries it, so that there is one place where jobs die and what waits for them is told.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::wake::Wake;

/// Puts jobs with expired leases back, in their old order, counting the crash. Returns (queue, job id) of each.
///
/// # Errors
/// The database failed.
pub async fn sweep(pool: &PgPool) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"WITH lost AS (
               SELECT id FROM iit_jobs
               WHERE state = 'running' AND lease_expires_at < clock_timestamp()
               FOR UPDATE SKIP LOCKED)
           UPDATE iit_jobs AS job
           SET state = 'available', crashes = job.crashes + 1, run_at = now(),
               last_error = 'the worker stopped renewing its lease',
               lease_token = NULL, lease_expires_at = NULL, worker = NULL
           FROM lost WHERE job.id = lost.id AND job.lease_expires_at < clock_timestamp()
           RETURNING job.queue, job.id"#,
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.queue, row.id)).collect())
}

/// Sweeps at once and then every half lease, jittered so that processes do not sweep in step.
pub async fn run(pool: PgPool, wake: Wake, lease: Duration, stop: CancellationToken) {
    loop {
        match sweep(&pool).await {
            Ok(rescued) => {
                for (queue, job) in &rescued {
                    tracing::warn!(job.id = job, queue, "queue.sweep.rescued");
                }
                if !rescued.is_empty() {
                    metrics::counter!("iit_jobs_rescued_total").increment(rescued.len() as u64);
                    wake.queues(rescued.into_iter().map(|(queue, _)| queue));
                }
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
