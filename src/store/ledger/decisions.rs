//! What people decide on a ledger row, and what is remembered of it.

use serde_json::json;
use sqlx::{PgConnection, types::Json};

use crate::{
    store::audit,
    types::{
        finding::FieldValue,
        ids::{PendingActionId, RunId},
    },
};

/// What a person said of the finding with that fingerprint when it rested on the same `values`, unless it
/// was gone in between.
///
/// # Errors
/// The database failed.
pub async fn verdict(
    conn: &mut PgConnection,
    fingerprint: &str,
    values: &[FieldValue],
) -> Result<Option<Decision>, sqlx::Error> {
    let verdict = sqlx::query_scalar!(
        r#"SELECT verdict AS "verdict!" FROM iit_pending_actions
           WHERE fingerprint = $1 AND verdict IS NOT NULL AND values = $2 AND status <> 'close_proposed'"#,
        fingerprint,
        Json(values) as _,
    )
    .fetch_optional(conn)
    .await?;
    Ok(verdict.and_then(|verdict| match verdict.as_str() {
        "confirmed" => Some(Decision::Confirm),
        "dismissed" => Some(Decision::Dismiss),
        _ => None,
    }))
}

/// Fingerprints of the findings of `records` that a person dismissed.
///
/// # Errors
/// The database failed.
pub async fn dismissed(
    conn: &mut PgConnection,
    project: &str,
    records: &[String],
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT fingerprint FROM iit_pending_actions
           WHERE project_id = $1 AND record = ANY($2) AND status = 'dismissed'"#,
        project,
        records,
    )
    .fetch_all(conn)
    .await
}

/// What a person decides on a ledger row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is a violation; a waiting run takes `on_fail`. The row stays open until it is closed.
    Confirm,
    /// It is none; a waiting run takes `on_pass`.
    Dismiss,
    /// The site explained it.
    Answer,
    /// It is settled.
    Close,
}

/// A decided row: what was, and the run that now goes on.
#[derive(Debug, Clone)]
pub struct Decisive {
    /// The study.
    pub project: String,
    /// The run that waited for this decision.
    pub waits_for: Option<RunId>,
    /// New status.
    pub status: String,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// No such row.
    #[error("there is no pending action {0}")]
    NotFound(PendingActionId),
    /// The row is already past that.
    #[error("pending action {id} is {status}; it can't be decided that way any more")]
    Stale {
        /// Row.
        id: PendingActionId,
        /// Where it stands.
        status: String,
    },
    /// A run waits for a yes or no; closing the row would leave it waiting for ever.
    #[error("a run waits for a verdict on pending action {0}; confirm or dismiss it")]
    NeedsVerdict(PendingActionId),
    /// The database failed.
    #[error("the decision could not be written: {0}")]
    Database(#[from] sqlx::Error),
}

/// Writes a person's decision with its reason, history and audit row.
///
/// # Errors
/// See [`DecideError`].
pub async fn decide(
    conn: &mut PgConnection,
    id: PendingActionId,
    decision: Decision,
    actor: &str,
    reason: &str,
) -> Result<Decisive, DecideError> {
    let Some(row) = sqlx::query!(
        r#"SELECT project_id, status, message, values, waits_for AS "waits_for: RunId", verdict
           FROM iit_pending_actions WHERE id = $1 FOR UPDATE"#,
        id as PendingActionId
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Err(DecideError::NotFound(id));
    };
    let status = match decision {
        Decision::Confirm => "open",
        Decision::Dismiss => "dismissed",
        Decision::Answer => "answered",
        Decision::Close => "closed",
    };
    let stale = |status: String| Err(DecideError::Stale { id, status });
    let settled = matches!(row.status.as_str(), "closed" | "dismissed");
    if settled || (row.status == status && decision != Decision::Confirm) {
        return stale(row.status);
    }
    let verdict = match decision {
        Decision::Confirm => Some("confirmed"),
        Decision::Dismiss => Some("dismissed"),
        Decision::Answer | Decision::Close => None,
    };
    let waits_for = match row.verdict {
        None => row.waits_for,
        // The run took the branch of the first verdict; another one can't call it back.
        Some(given)
            if verdict == Some(&given) || (verdict.is_some() && row.waits_for.is_some()) =>
        {
            return stale(given);
        }
        Some(_) => None,
    };
    if decision == Decision::Close && waits_for.is_some() {
        return Err(DecideError::NeedsVerdict(id));
    }
    sqlx::query!(
        r#"UPDATE iit_pending_actions SET status = $2, updated_at = now(), verdict = COALESCE($3, verdict)
           WHERE id = $1"#,
        id as PendingActionId,
        status,
        verdict,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        r#"INSERT INTO iit_pending_action_history (action_id, from_status, to_status, message, values, actor, reason)
           VALUES ($1, $2, $3, $4, $5, $6, $7)"#,
        id as PendingActionId,
        row.status,
        status,
        row.message,
        row.values,
        actor,
        reason,
    )
    .execute(&mut *conn)
    .await?;
    audit::record(
        conn,
        audit::Entry {
            project: Some(&row.project_id),
            actor,
            action: match decision {
                Decision::Confirm => "pending_action.confirmed",
                Decision::Dismiss => "pending_action.dismissed",
                Decision::Answer => "pending_action.answered",
                Decision::Close => "pending_action.closed",
            },
            entity: "pending_action",
            entity_id: &id.to_string(),
            old: Some(json!({"status": row.status})),
            new: Some(json!({"status": status})),
            reason: Some(reason),
        },
    )
    .await?;
    Ok(Decisive {
        project: row.project_id,
        // A verdict lets the waiting run go on, once; an answer lets it wait.
        waits_for: waits_for.filter(|_| verdict.is_some()),
        status: status.to_owned(),
    })
}
