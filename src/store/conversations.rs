//! What is remembered of a conversation: the patient last spoken of, the question last asked, the last
//! turns, and which study a sender means.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use crate::types::ids::MessageId;

/// The memory of one person's conversation about one study.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// The patient last spoken of.
    pub last_patient: Option<String>,
    /// When.
    pub last_patient_at: Option<DateTime<Utc>>,
    /// Whether that is still recent enough to be meant by 他 (database clock).
    pub fresh: bool,
    /// The question asked last, while it waits for an answer, as the router wrote it.
    pub pending: Option<Value>,
    /// The message whose reply asked it.
    pub pending_of: Option<MessageId>,
}

/// The conversation; `idle_minutes` is how long "he" still means the patient last spoken of.
///
/// # Errors
/// The database failed.
pub async fn get(
    conn: &mut PgConnection,
    project: &str,
    user: &str,
    idle_minutes: f64,
) -> Result<Conversation, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT last_patient, last_patient_at, pending, pending_of AS "pending_of: MessageId",
                  COALESCE(last_patient_at > now() - make_interval(secs => $3::float8 * 60), false) AS "fresh!"
           FROM iit_conversations WHERE project_id = $1 AND user_id = lower($2)"#,
        project,
        user,
        idle_minutes,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map_or_else(Conversation::default, |row| Conversation {
        last_patient: row.last_patient,
        last_patient_at: row.last_patient_at,
        fresh: row.fresh,
        pending: row.pending,
        pending_of: row.pending_of,
    }))
}

/// Remembers the patient spoken of (kept when `None`) and the question asked in the reply to `message`
/// (replaced).
///
/// # Errors
/// The database failed.
pub async fn remember(
    conn: &mut PgConnection,
    project: &str,
    user: &str,
    patient: Option<&str>,
    pending: Option<&Value>,
    message: MessageId,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_conversations (project_id, user_id, last_patient, last_patient_at, pending, pending_of)
           VALUES ($1, lower($2), $3, CASE WHEN $3::text IS NULL THEN NULL ELSE now() END, $4,
                   CASE WHEN $4::jsonb IS NOT NULL THEN $5::uuid END)
           ON CONFLICT (project_id, user_id) DO UPDATE
           SET last_patient = COALESCE(excluded.last_patient, iit_conversations.last_patient),
               last_patient_at = COALESCE(excluded.last_patient_at, iit_conversations.last_patient_at),
               pending = excluded.pending, pending_of = excluded.pending_of, updated_at = now()"#,
        project,
        user,
        patient,
        pending,
        message as MessageId,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Appends one turn to the flow log.
///
/// # Errors
/// The database failed.
pub async fn log(
    conn: &mut PgConnection,
    project: &str,
    user: &str,
    role: &str,
    text: &str,
    message: Option<MessageId>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_conversation_history (project_id, user_id, role, text, message_id)
           VALUES ($1, lower($2), $3, $4, $5)"#,
        project,
        user,
        role,
        text,
        message as Option<MessageId>,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The last `turns` entries, oldest first, as (role, text).
///
/// # Errors
/// The database failed.
pub async fn history(
    conn: &mut PgConnection,
    project: &str,
    user: &str,
    turns: i64,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    let mut rows = sqlx::query!(
        r#"SELECT role, text FROM iit_conversation_history
           WHERE project_id = $1 AND user_id = lower($2) ORDER BY id DESC LIMIT $3"#,
        project,
        user,
        turns,
    )
    .fetch_all(conn)
    .await?;
    rows.reverse();
    Ok(rows.into_iter().map(|row| (row.role, row.text)).collect())
}

/// The study a sender chose, and the message that made us ask.
///
/// # Errors
/// The database failed.
pub async fn chosen_project(
    conn: &mut PgConnection,
    sender: &str,
) -> Result<(Option<String>, Option<MessageId>), sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT project_id, waiting AS "waiting: MessageId" FROM iit_sender_projects WHERE sender = lower($1)"#,
        sender
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map_or((None, None), |row| (row.project_id, row.waiting)))
}

/// Remembers the study a sender chose, or the message that waits for the choice.
///
/// # Errors
/// The database failed.
pub async fn choose_project(
    conn: &mut PgConnection,
    sender: &str,
    project: Option<&str>,
    waiting: Option<MessageId>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_sender_projects (sender, project_id, waiting) VALUES (lower($1), $2, $3)
           ON CONFLICT (sender) DO UPDATE
           SET project_id = COALESCE(excluded.project_id, iit_sender_projects.project_id),
               waiting = excluded.waiting, updated_at = now()"#,
        sender,
        project,
        waiting as Option<MessageId>,
    )
    .execute(conn)
    .await?;
    Ok(())
}
