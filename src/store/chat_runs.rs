//! Runs that no skill drives: one message understood, one question reasoned about. Their steps advance
//! behind the same fence as all runs', see [`super::runs::advance`].

use std::time::Duration;

use sqlx::PgConnection;

use crate::types::ids::{MessageId, RunId};

/// Such a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRun {
    /// Its id.
    pub id: RunId,
    /// The study.
    pub project: String,
    /// `intent`, `react`, `judge`.
    pub kind: String,
    /// `running`, `waiting`, `done`, `failed`, `cancelled`.
    pub status: String,
    /// Steps committed; the number the next step will have.
    pub step_no: i32,
    /// The one record it is about, when it may read no other.
    pub record: Option<String>,
    /// The message whose reply it fills in, and the part.
    pub message: Option<MessageId>,
    /// Which part.
    pub message_part: Option<i32>,
    /// Who is answered.
    pub asked_by: Option<String>,
    /// The run that waits for it.
    pub parent: Option<RunId>,
    /// At this step.
    pub parent_step: Option<i32>,
    /// Tokens spent.
    pub tokens: i64,
}

/// Begins such a run, unless it was begun before.
///
/// # Errors
/// The database failed.
pub async fn begin(conn: &mut PgConnection, run: &ChatRun) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_task_run (id, project_id, kind, status, step_no, record, message_id, message_part, asked_by,
                                     parent_id, parent_step)
           VALUES ($1, $2, $3, 'running', 0, $4, $5, $6, $7, $8, $9)
           ON CONFLICT (id) DO NOTHING"#,
        run.id as RunId,
        run.project,
        run.kind,
        run.record,
        run.message as Option<MessageId>,
        run.message_part,
        run.asked_by,
        run.parent as Option<RunId>,
        run.parent_step,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The run of that id, when no skill drives it.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: RunId) -> Result<Option<ChatRun>, sqlx::Error> {
    sqlx::query_as!(
        ChatRun,
        r#"SELECT id AS "id: RunId", project_id AS project, kind, status, step_no, record,
                  message_id AS "message: MessageId", message_part, asked_by,
                  parent_id AS "parent: RunId", parent_step, tokens
           FROM iit_task_run WHERE id = $1 AND kind <> 'sop'"#,
        id as RunId,
    )
    .fetch_optional(conn)
    .await
}

/// How long ago a run began, by the database clock.
///
/// # Errors
/// The database failed; there is no such run.
pub async fn age(conn: &mut PgConnection, id: RunId) -> Result<Duration, sqlx::Error> {
    let seconds = sqlx::query_scalar!(
        r#"SELECT EXTRACT(EPOCH FROM clock_timestamp() - created_at)::float8 AS "seconds!"
           FROM iit_task_run WHERE id = $1"#,
        id as RunId,
    )
    .fetch_one(conn)
    .await?;
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
