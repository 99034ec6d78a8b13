//! Messages in. A message and its `intent` job commit together.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;

use crate::types::ids::{MessageId, RunId};

/// Where a message came from, and where its reply goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// 企业微信.
    Wecom,
    /// REST; replies are read, not sent.
    Rest,
}

impl Channel {
    /// Stored form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wecom => "wecom",
            Self::Rest => "rest",
        }
    }

    fn parse(text: &str) -> Self {
        if text == "wecom" {
            Self::Wecom
        } else {
            Self::Rest
        }
    }
}

/// A message to be stored.
#[derive(Debug, Clone)]
pub struct NewMessage<'a> {
    /// Where it came from.
    pub channel: Channel,
    /// What makes a repeat a repeat; `None` when repeats can't be told.
    pub dedupe_key: Option<&'a str>,
    /// The study, when the entry already says it.
    pub project: Option<&'a str>,
    /// Who wrote it.
    pub sender: &'a str,
    /// `text`, `image`, `event`, …
    pub kind: &'a str,
    /// Its text; empty for what has none.
    pub text: &'a str,
    /// What else came with it.
    pub detail: Value,
}

/// A stored message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Where it came from.
    pub channel: Channel,
    /// The study; `None` until known.
    pub project: Option<String>,
    /// Who wrote it.
    pub sender: String,
    /// `text`, `image`, `event`, …
    pub kind: String,
    /// Its text.
    pub text: String,
    /// What else came with it.
    pub detail: Value,
    /// `queued`, `working`, `answered`, `failed`.
    pub status: String,
    /// What it was understood as.
    pub intents: Value,
    /// Handled without a language model.
    pub degraded: bool,
    /// When it arrived.
    pub created_at: DateTime<Utc>,
}

/// Stores a message; `None` when it is a repeat of one already stored.
///
/// # Errors
/// The database failed.
pub async fn receive(
    conn: &mut PgConnection,
    message: &NewMessage<'_>,
) -> Result<Option<MessageId>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"INSERT INTO iit_inbox (id, channel, dedupe_key, project_id, sender, kind, text, detail)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
           ON CONFLICT (dedupe_key) DO NOTHING
           RETURNING id AS "id: MessageId""#,
        MessageId::generate() as MessageId,
        message.channel.as_str(),
        message.dedupe_key,
        message.project,
        message.sender,
        message.kind,
        message.text,
        message.detail,
    )
    .fetch_optional(conn)
    .await
}

/// The message of that id.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: MessageId) -> Result<Option<Message>, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT id AS "id: MessageId", channel, project_id, sender, kind, text, detail, status, intents,
                  degraded, created_at
           FROM iit_inbox WHERE id = $1"#,
        id as MessageId
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Message {
        id: row.id,
        channel: Channel::parse(&row.channel),
        project: row.project_id,
        sender: row.sender,
        kind: row.kind,
        text: row.text,
        detail: row.detail,
        status: row.status,
        intents: row.intents,
        degraded: row.degraded,
        created_at: row.created_at,
    }))
}

/// Notes what a message was understood as; from now on it is being worked on.
///
/// # Errors
/// The database failed.
pub async fn understood(
    conn: &mut PgConnection,
    id: MessageId,
    project: Option<&str>,
    intents: &Value,
    degraded: bool,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_inbox SET status = 'working', project_id = COALESCE($2, project_id), intents = $3, degraded = $4
           WHERE id = $1 AND status IN ('queued', 'working')"#,
        id as MessageId,
        project,
        intents,
        degraded,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes what a click said, for people who read the conversation.
///
/// # Errors
/// The database failed.
pub async fn said(conn: &mut PgConnection, id: MessageId, text: &str) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_inbox SET text = $2 WHERE id = $1"#,
        id as MessageId,
        text,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a message: `answered` or `failed`.
///
/// # Errors
/// The database failed.
pub async fn finish(
    conn: &mut PgConnection,
    id: MessageId,
    status: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_inbox SET status = $2, answered_at = now() WHERE id = $1"#,
        id as MessageId,
        status,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes a failed message up again. Returns whether it had failed.
///
/// # Errors
/// The database failed.
pub async fn reopen(conn: &mut PgConnection, id: MessageId) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_inbox SET status = 'queued', answered_at = NULL WHERE id = $1 AND status = 'failed'"#,
        id as MessageId
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The runs a message led to.
///
/// # Errors
/// The database failed.
pub async fn runs_of(conn: &mut PgConnection, id: MessageId) -> Result<Vec<RunId>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT r.id AS "id!: RunId" FROM iit_task_run r JOIN iit_batches b ON b.id = r.batch_id
           WHERE b.message_id = $1
           UNION
           SELECT r.id FROM iit_task_run r WHERE r.message_id = $1 AND r.kind <> 'intent'
           ORDER BY 1 LIMIT 2000"#,
        id as MessageId
    )
    .fetch_all(conn)
    .await
}
