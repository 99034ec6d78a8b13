//! A person's decision on a ledger row, and the run that goes on by it.

use sqlx::PgConnection;

use crate::{
    jobs::sop_step::{Review, SopStep},
    queue::{self, NewJob},
    store::{
        ledger::{self, Decision},
        runs,
    },
    types::ids::PendingActionId,
};

/// A decision that was written; the caller commits, then wakes `queue`.
#[derive(Debug)]
pub struct Decided {
    /// New status of the row.
    pub status: String,
    /// Queue of the job that carries a waiting run on.
    pub queue: Option<String>,
}

/// A decision by its wire name.
#[must_use]
pub fn parse(name: &str) -> Option<Decision> {
    Some(match name {
        "confirm" => Decision::Confirm,
        "dismiss" => Decision::Dismiss,
        "answer" => Decision::Answer,
        "close" => Decision::Close,
        _ => return None,
    })
}

/// Writes the decision and, when a run waits for it, the job that carries it on: a confirmed
/// review takes `on_fail`, a dismissed one `on_pass`.
///
/// # Errors
/// [`ledger::DecideError`] (to be downcast) when there is no such row or it is past that; else the
/// database failed.
pub async fn decide(
    conn: &mut PgConnection,
    id: PendingActionId,
    decision: Decision,
    actor: &str,
    reason: &str,
) -> anyhow::Result<Decided> {
    let decided = ledger::decide(&mut *conn, id, decision, actor, reason).await?;
    let mut queue = None;
    if let Some(run) = decided.waits_for
        && let Some(run) = runs::get(&mut *conn, run).await?
    {
        let review = match decision {
            Decision::Dismiss => Review::Dismiss,
            Decision::Confirm | Decision::Answer | Decision::Close => Review::Confirm,
        };
        let step = SopStep {
            run: run.id,
            step: run.step_no,
            review: Some(review),
        };
        let job = NewJob::of(&step)?;
        queue = Some(job.queue.clone());
        queue::enqueue(conn, job).await?;
    }
    Ok(Decided {
        status: decided.status,
        queue,
    })
}
