//! Runs of kind `judge`: one judgement for a tool call of another run, which waits for it. The last one to end
//! lets the other go on.

use serde_json::Value;
use sqlx::PgConnection;

use super::chat_runs::{self, ChatRun};
use crate::types::ids::RunId;

/// Begins a judgement. `brief`: what it is about, for those who judge the answer.
///
/// # Errors
/// The database failed.
pub async fn begin(
    conn: &mut PgConnection,
    run: &ChatRun,
    brief: &Value,
) -> Result<(), sqlx::Error> {
    chat_runs::begin(&mut *conn, run).await?;
    sqlx::query!(
        r#"UPDATE iit_task_run SET walk = $2 WHERE id = $1 AND kind = 'judge' AND step_no = 0"#,
        run.id as RunId,
        brief,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a judgement that has not ended is about.
///
/// # Errors
/// The database failed.
pub async fn brief(conn: &mut PgConnection, run: RunId) -> Result<Option<Value>, sqlx::Error> {
    let row = sqlx::query_scalar!(
        r#"SELECT walk FROM iit_task_run WHERE id = $1 AND kind = 'judge'"#,
        run as RunId,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.flatten())
}

/// A run that waits for judgements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// `sop`, `react`.
    pub kind: String,
    /// The step it will do next.
    pub next_step: i32,
}

/// The run `parent`, if it still waits for what its step `step` began. It is locked: judgements that end at
/// the same time come one after the other.
///
/// # Errors
/// The database failed.
pub async fn waiting(
    conn: &mut PgConnection,
    parent: RunId,
    step: i32,
) -> Result<Option<Waiting>, sqlx::Error> {
    sqlx::query_as!(
        Waiting,
        r#"SELECT kind, step_no AS next_step FROM iit_task_run
           WHERE id = $1 AND step_no = $2 + 1 AND status = 'waiting' FOR UPDATE"#,
        parent as RunId,
        step,
    )
    .fetch_optional(conn)
    .await
}

/// Lets the locked `parent` go on when no judgement of its step is open any more; returns whether it does.
///
/// # Errors
/// The database failed.
pub async fn resume(
    conn: &mut PgConnection,
    parent: RunId,
    step: i32,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_task_run SET status = 'running', updated_at = now()
           WHERE id = $1 AND status = 'waiting' AND NOT EXISTS (
               SELECT FROM iit_task_run c WHERE c.parent_id = $1 AND c.parent_step = $2 AND c.status = 'running')"#,
        parent as RunId,
        step,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
