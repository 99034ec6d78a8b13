//! Cancelling a job as an operator asks for it: ended, told, and audited in one transaction.

use sqlx::PgPool;

use crate::{
    queue::{
        JobError, Settlement, Wake,
        cancel::{self, Cancelled},
        worker::Handler,
    },
    store::audit,
};

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is cancelled, and what waited for it is told.
    Cancelled,
    /// It runs; its process ends it within a third of its lease.
    Cancelling,
    /// There was nothing to cancel: finished, or unknown.
    Nothing,
}

/// Cancels job `id`. What waits for it (a run, a batch, a message) is told as if it had died, with `why`.
///
/// # Errors
/// The database failed, or what waits could not be told; the job is as it was then.
pub async fn cancel(
    handler: &dyn Handler,
    pool: &PgPool,
    wake: &Wake,
    id: i64,
    actor: &str,
    why: &str,
) -> Result<Ended, JobError> {
    let (settlement, from, ended) = match cancel::cancel(pool, wake, id, why).await? {
        Cancelled::ToSettle(job, mut settlement) => {
            handler.bury(&job, &mut settlement, why).await?;
            (settlement, "available", Ended::Cancelled)
        }
        Cancelled::WasDead(settlement) => (settlement, "dead", Ended::Cancelled),
        Cancelled::Asked(settlement) => (settlement, "running", Ended::Cancelling),
        Cancelled::Nothing => return Ok(Ended::Nothing),
    };
    leave_trace(settlement, id, from, actor, why).await?;
    Ok(ended)
}

async fn leave_trace(
    mut settlement: Settlement,
    id: i64,
    from: &str,
    actor: &str,
    why: &str,
) -> Result<(), JobError> {
    audit::record(
        settlement.conn(),
        audit::Entry {
            project: None,
            actor,
            action: "job.cancelled",
            entity: "job",
            entity_id: &id.to_string(),
            old: Some(serde_json::json!({ "state": from })),
            new: None,
            reason: Some(why),
        },
    )
    .await?;
    settlement.commit().await?;
    Ok(())
}
