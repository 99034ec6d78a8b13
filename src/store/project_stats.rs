//! What our own tables say of a study: its open findings and when it was last checked. Read through
//! [`super::reader`]; every query names the study all the same.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::types::ids::PendingActionId;

/// Findings of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Where they stand.
    pub status: String,
    /// How much they matter.
    pub severity: String,
    /// The rule.
    pub rule: String,
    /// How many.
    pub count: i64,
}

/// The ledger by status, severity and rule; the largest first.
///
/// # Errors
/// The database failed.
pub async fn findings(
    conn: &mut PgConnection,
    project: &str,
) -> Result<Vec<Findings>, sqlx::Error> {
    sqlx::query_as!(
        Findings,
        r#"SELECT status, severity, rule, count(*) AS "count!" FROM iit_pending_actions
           WHERE project_id = $1 GROUP BY status, severity, rule ORDER BY count(*) DESC, rule, status, severity"#,
        project
    )
    .fetch_all(conn)
    .await
}

/// A check of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// Records of the batch; one for a run of its own.
    pub records: i32,
    /// Of them, those that could not be checked.
    pub failed: i32,
    /// What it found.
    pub findings: i32,
}

/// The last check that ended, be it of many records or of one; `None`: there was none.
///
/// # Errors
/// The database failed.
pub async fn last_checked(
    conn: &mut PgConnection,
    project: &str,
) -> Result<Option<Checked>, sqlx::Error> {
    sqlx::query_as!(
        Checked,
        r#"SELECT at AS "at!", records AS "records!", failed AS "failed!", findings AS "findings!" FROM (
               SELECT finished_at AS at, total AS records, failed, findings FROM iit_batches
               WHERE project_id = $1 AND state = 'done' AND finished_at IS NOT NULL
               UNION ALL
               SELECT finished_at, 1, 0, findings FROM iit_task_run
               WHERE project_id = $1 AND kind = 'sop' AND batch_id IS NULL AND status = 'done'
                 AND finished_at IS NOT NULL) AS checks
           ORDER BY at DESC LIMIT 1"#,
        project
    )
    .fetch_optional(conn)
    .await
}

/// A ledger row, as far as a tool has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Record id.
    pub record: String,
    /// Where it stands.
    pub status: String,
}

/// A ledger row of the study; `None`: it has none of that id.
///
/// # Errors
/// The database failed.
pub async fn action(
    conn: &mut PgConnection,
    project: &str,
    id: PendingActionId,
) -> Result<Option<Action>, sqlx::Error> {
    sqlx::query_as!(
        Action,
        r#"SELECT record, status FROM iit_pending_actions WHERE project_id = $1 AND id = $2"#,
        project,
        id as PendingActionId,
    )
    .fetch_optional(conn)
    .await
}
