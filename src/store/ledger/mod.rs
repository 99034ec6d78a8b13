//! The ledger of findings. A finding has a fingerprint without a value in it, so a re-run meets its own
//! earlier finding: it is updated or reopened, never duplicated. Fixed data only *proposes* to close;
//! a person closes.

mod decisions;
mod findings;
mod suggestions;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{PgConnection, types::Json};

pub use decisions::{DecideError, Decision, Decisive, decide, dismissed, verdict};
pub use findings::{Decided, Found, Scope, lock_records, propose_close, record};
pub use suggestions::suggest_close;

use crate::types::{finding::FieldValue, ids::PendingActionId};

/// What a ledger row may be.
pub const STATUSES: [&str; 5] = ["open", "answered", "close_proposed", "closed", "dismissed"];

/// A ledger row.
#[derive(Debug, Clone, Serialize)]
pub struct PendingAction {
    /// Its id.
    pub id: PendingActionId,
    /// Record id.
    pub record: String,
    /// Event, where the project has events.
    pub event: Option<String>,
    /// Instance, where the place repeats.
    pub instance: Option<i32>,
    /// Rule key.
    pub rule: String,
    /// Field name.
    pub field: String,
    /// `fail` or `not_evaluable`.
    pub outcome: String,
    /// `info`, `query`, `warning`, `error`.
    pub severity: String,
    /// One sentence with both values.
    pub message: String,
    /// The values it rests on.
    pub values: Vec<FieldValue>,
    /// `open`, `answered`, `close_proposed`, `closed`, `dismissed`.
    pub status: String,
    /// What a person last said of it: `confirmed`, `dismissed`, or nothing yet.
    pub verdict: Option<String>,
    /// Identity over re-runs.
    pub fingerprint: String,
    /// Whose it is.
    pub assignee: Option<String>,
    /// Until when.
    pub due: Option<DateTime<Utc>>,
    /// First found.
    pub created_at: DateTime<Utc>,
    /// Last changed.
    pub updated_at: DateTime<Utc>,
}

/// Ledger rows of a study, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    /// Only this status.
    pub status: Option<&'a str>,
    /// Only this record.
    pub record: Option<&'a str>,
    /// Only this rule.
    pub rule: Option<&'a str>,
    /// After this row (its id), for paging.
    pub after: Option<PendingActionId>,
    /// At most so many.
    pub limit: i64,
}

/// Lists ledger rows by id (which is by time of first finding).
///
/// # Errors
/// The database failed.
pub async fn list(
    conn: &mut PgConnection,
    project: &str,
    filter: &Filter<'_>,
) -> Result<Vec<PendingAction>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT id AS "id: PendingActionId", record, event, instance, rule, field, outcome, severity, message,
                  values AS "values: Json<Vec<FieldValue>>", status, verdict, fingerprint, assignee, due, created_at, updated_at
           FROM iit_pending_actions
           WHERE project_id = $1 AND ($2::text IS NULL OR status = $2) AND ($3::text IS NULL OR record = $3)
             AND ($4::text IS NULL OR rule = $4) AND ($5::uuid IS NULL OR id > $5)
           ORDER BY id LIMIT $6"#,
        project,
        filter.status,
        filter.record,
        filter.rule,
        filter.after as Option<PendingActionId>,
        filter.limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| PendingAction {
            id: row.id,
            record: row.record,
            event: row.event,
            instance: row.instance,
            rule: row.rule,
            field: row.field,
            outcome: row.outcome,
            severity: row.severity,
            message: row.message,
            values: row.values.0,
            status: row.status,
            verdict: row.verdict,
            fingerprint: row.fingerprint,
            assignee: row.assignee,
            due: row.due,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
        .collect())
}
