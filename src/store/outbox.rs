//! Messages out. A row is written in the transaction whose result it tells; `deliver` sends it part by
//! part, and notes `sending` before a part leaves, so that a crash in between is seen, not repeated.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, types::Json};

use super::{inbox::Channel, replies::Chip};
use crate::types::ids::{MessageId, OutboxId};

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct NewOutbound<'a> {
    /// The message it answers.
    pub message: Option<MessageId>,
    /// The study.
    pub project: Option<&'a str>,
    /// How it goes out.
    pub channel: Channel,
    /// Who gets it.
    pub recipient: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// Suggestions.
    pub chips: &'a [Chip],
    /// Said without a language model.
    pub degraded: bool,
    /// The text as the channel takes it; empty when nothing has to be sent (REST).
    pub parts: &'a [String],
}

/// A stored outbound message.
#[derive(Debug, Clone)]
pub struct Outbound {
    /// Its id.
    pub id: OutboxId,
    /// Who gets it.
    pub recipient: String,
    /// The whole text.
    pub text: String,
    /// Suggestions.
    pub chips: Vec<Chip>,
    /// Said without a language model.
    pub degraded: bool,
    /// `queued`, `sent`, `unknown`, `failed`.
    pub state: String,
    /// When the last part was accepted.
    pub sent_at: Option<DateTime<Utc>>,
}

/// One part of an outbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundPart {
    /// Position, from 0.
    pub no: i32,
    /// Text of this part.
    pub text: String,
    /// `queued`, `sending`, `sent`, `unknown`, `failed`.
    pub state: String,
}

/// Writes an outbound message. Without parts there is nothing to send: it counts as sent.
///
/// # Errors
/// The database failed.
pub async fn add(
    conn: &mut PgConnection,
    outbound: &NewOutbound<'_>,
) -> Result<OutboxId, sqlx::Error> {
    let id = OutboxId::generate();
    sqlx::query!(
        r#"INSERT INTO iit_outbox (id, message_id, project_id, channel, recipient, text, chips, degraded, state, sent_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8,
                   CASE WHEN $9 THEN 'queued' ELSE 'sent' END, CASE WHEN $9 THEN NULL ELSE now() END)"#,
        id as OutboxId,
        outbound.message as Option<MessageId>,
        outbound.project,
        outbound.channel.as_str(),
        outbound.recipient,
        outbound.text,
        Json(outbound.chips) as _,
        outbound.degraded,
        !outbound.parts.is_empty(),
    )
    .execute(&mut *conn)
    .await?;
    for (no, text) in outbound.parts.iter().enumerate() {
        sqlx::query!(
            r#"INSERT INTO iit_outbox_parts (outbox_id, no, text) VALUES ($1, $2, $3)"#,
            id as OutboxId,
            i32::try_from(no).unwrap_or(i32::MAX),
            text,
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(id)
}

/// The outbound message of that id.
///
/// # Errors
/// The database failed.
pub async fn get(conn: &mut PgConnection, id: OutboxId) -> Result<Option<Outbound>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT id AS "id: OutboxId", recipient, text, chips AS "chips: Json<Vec<Chip>>", degraded, state, sent_at
           FROM iit_outbox WHERE id = $1"#,
        id as OutboxId
    )
    .fetch_optional(conn)
    .await
    .map(|row| {
        row.map(|row| Outbound {
            id: row.id,
            recipient: row.recipient,
            text: row.text,
            chips: row.chips.0,
            degraded: row.degraded,
            state: row.state,
            sent_at: row.sent_at,
        })
    })
}

/// Replies to a message, oldest first.
///
/// # Errors
/// The database failed.
pub async fn replies_to(
    conn: &mut PgConnection,
    message: MessageId,
) -> Result<Vec<Outbound>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT id AS "id: OutboxId", recipient, text, chips AS "chips: Json<Vec<Chip>>", degraded, state, sent_at
           FROM iit_outbox WHERE message_id = $1 ORDER BY created_at, id"#,
        message as MessageId
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Outbound {
            id: row.id,
            recipient: row.recipient,
            text: row.text,
            chips: row.chips.0,
            degraded: row.degraded,
            state: row.state,
            sent_at: row.sent_at,
        })
        .collect())
}

/// Parts in order.
///
/// # Errors
/// The database failed.
pub async fn parts(
    conn: &mut PgConnection,
    id: OutboxId,
) -> Result<Vec<OutboundPart>, sqlx::Error> {
    sqlx::query_as!(
        OutboundPart,
        r#"SELECT no, text, state FROM iit_outbox_parts WHERE outbox_id = $1 ORDER BY no"#,
        id as OutboxId
    )
    .fetch_all(conn)
    .await
}

/// The hold of one attempt of the `deliver` job: only who holds it may let a part leave.
#[derive(Debug, Clone, Copy)]
pub struct Hold {
    /// The job.
    pub job: i64,
    /// Its lease.
    pub token: uuid::Uuid,
}

/// Marks a part as leaving now, if it is still queued and the hold is still ours. `false`: somebody else
/// has the job, and nothing may be sent.
///
/// # Errors
/// The database failed.
pub async fn begin_part(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    hold: Hold,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'sending'
           WHERE outbox_id = $1 AND no = $2 AND state = 'queued'
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $3 AND lease_token = $4 AND state = 'running')"#,
        id as OutboxId,
        no,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Puts a part back that certainly did not leave, if it is still ours to put back.
///
/// # Errors
/// The database failed.
pub async fn unsent_part(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    hold: Hold,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'queued'
           WHERE outbox_id = $1 AND no = $2 AND state = 'sending'
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $3 AND lease_token = $4 AND state = 'running')"#,
        id as OutboxId,
        no,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes that a part was accepted; `remote_id` is the id the other side gave it. What was sent was sent,
/// whoever holds the job by now.
///
/// # Errors
/// The database failed.
pub async fn sent_part(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    remote_id: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'sent', remote_id = $3, sent_at = now()
           WHERE outbox_id = $1 AND no = $2 AND state IN ('sending', 'unknown')"#,
        id as OutboxId,
        no,
        remote_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes that nobody knows whether a part left.
///
/// # Errors
/// The database failed.
pub async fn unclear_part(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'unknown' WHERE outbox_id = $1 AND no = $2 AND state = 'sending'"#,
        id as OutboxId,
        no,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends an outbound message.
///
/// # Errors
/// The database failed.
pub async fn finish(
    conn: &mut PgConnection,
    id: OutboxId,
    state: &str,
    error: Option<&str>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox SET state = $2, error = $3, sent_at = CASE WHEN $2 = 'sent' THEN now() END
           WHERE id = $1"#,
        id as OutboxId,
        state,
        error,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether the very same text went to that person within the last week, or is on its way.
///
/// # Errors
/// The database failed.
pub async fn told_lately(
    conn: &mut PgConnection,
    project: &str,
    recipient: &str,
    text: &str,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM iit_outbox
                   WHERE project_id = $1 AND lower(recipient) = lower($2) AND message_id IS NULL AND text = $3
                     AND state <> 'failed' AND created_at > now() - INTERVAL '7 days') AS "told!""#,
        project,
        recipient,
        text,
    )
    .fetch_one(conn)
    .await
}
