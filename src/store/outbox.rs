//! Messages out. A row is written in the transaction whose result it tells; `deliver` sends it part by
//! part ([`super::outbox_parts`]). The row's state follows from its parts'.

use chrono::{DateTime, Utc};
use serde::Serialize;
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
    /// The message it answers; `None` for a notice, which nobody waits for.
    pub message: Option<MessageId>,
    /// Who gets it.
    pub recipient: String,
    /// The whole text.
    pub text: String,
    /// Suggestions.
    pub chips: Json<Vec<Chip>>,
    /// Said without a language model.
    pub degraded: bool,
    /// `queued`, `sent`, `unknown`, `failed`.
    pub state: String,
    /// When the last part was accepted.
    pub sent_at: Option<DateTime<Utc>>,
    /// Seconds since it was last asked to be sent.
    pub waited_s: f64,
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
    Ok(select(conn, Some(id), None).await?.pop())
}

/// Replies to a message, oldest first.
///
/// # Errors
/// The database failed.
pub async fn replies_to(
    conn: &mut PgConnection,
    message: MessageId,
) -> Result<Vec<Outbound>, sqlx::Error> {
    select(conn, None, Some(message)).await
}

/// By its own id, or by the message it answers.
async fn select(
    conn: &mut PgConnection,
    id: Option<OutboxId>,
    message: Option<MessageId>,
) -> Result<Vec<Outbound>, sqlx::Error> {
    sqlx::query_as!(
        Outbound,
        r#"SELECT id AS "id: OutboxId", message_id AS "message: MessageId", recipient, text,
                  chips AS "chips: Json<Vec<Chip>>", degraded, state, sent_at,
                  EXTRACT(EPOCH FROM now() - queued_at)::float8 AS "waited_s!"
           FROM iit_outbox WHERE id = $1 OR (message_id = $2 AND NOT is_progress) ORDER BY created_at, id"#,
        id as Option<OutboxId>,
        message as Option<MessageId>,
    )
    .fetch_all(conn)
    .await
}

/// Ends an outbound message by what became of its parts: `unknown` when one of them may have arrived,
/// `sent` when all of the text did, else `failed`; a card that did not leave takes nothing away from the
/// text. Parts left `sending` are unclear from now on. `why` is what kept the others from leaving.
///
/// # Errors
/// The database failed.
pub async fn conclude(
    conn: &mut PgConnection,
    id: OutboxId,
    why: Option<&str>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'unknown' WHERE outbox_id = $1 AND state = 'sending'"#,
        id as OutboxId,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        r#"UPDATE iit_outbox AS message
           SET state = parts.state,
               error = CASE parts.state WHEN 'sent' THEN NULL WHEN 'failed' THEN $2::text
                       ELSE concat_ws('；', $3::text, $2::text) END,
               sent_at = CASE parts.state WHEN 'sent' THEN now() END
           FROM (SELECT CASE WHEN COALESCE(bool_or(state = 'unknown'), false) THEN 'unknown'
                             WHEN bool_and(state = 'sent' OR kind = 'card') THEN 'sent' ELSE 'failed' END AS state
                 FROM iit_outbox_parts WHERE outbox_id = $1) AS parts
           WHERE message.id = $1"#,
        id as OutboxId,
        why,
        "至少一部分是否送达不明，未重发 (delivery unknown, not sent again)",
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes a message whose job was given up ready for another try at what never left. `false`: nothing of
/// it waits; sending again what may have arrived is [`resend`]'s.
///
/// # Errors
/// The database failed.
pub async fn revive(conn: &mut PgConnection, id: OutboxId) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_outbox SET state = 'queued', error = NULL, queued_at = now()
           WHERE id = $1 AND state <> 'sent'
             AND EXISTS (SELECT 1 FROM iit_outbox_parts WHERE outbox_id = $1 AND state = 'queued')"#,
        id as OutboxId,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A message that is to be sent again on purpose.
#[derive(Debug, Clone)]
pub struct Resent {
    /// Its study.
    pub project: Option<String>,
    /// Who gets it.
    pub recipient: String,
    /// `unknown` or `failed`, as it was.
    pub was: String,
    /// How often that has been asked for.
    pub resends: i32,
}

/// Queues every part again that is not known to have arrived; the person may then have it twice. `None`:
/// there is no such message, or it is neither `unknown` nor `failed` (any more): of two who ask at once,
/// one is told so.
///
/// # Errors
/// The database failed.
pub async fn resend(conn: &mut PgConnection, id: OutboxId) -> Result<Option<Resent>, sqlx::Error> {
    let resent = sqlx::query_as!(
        Resent,
        r#"UPDATE iit_outbox AS message
           SET state = 'queued', error = NULL, queued_at = now(), resends = message.resends + 1
           FROM (SELECT id, state FROM iit_outbox
                 WHERE id = $1 AND state IN ('unknown', 'failed') FOR UPDATE) AS before
           WHERE message.id = before.id
           RETURNING message.project_id AS project, message.recipient, before.state AS was, message.resends"#,
        id as OutboxId,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if resent.is_some() {
        sqlx::query!(
            r#"UPDATE iit_outbox_parts SET state = 'queued', left_at = NULL
               WHERE outbox_id = $1 AND state <> 'sent'"#,
            id as OutboxId,
        )
        .execute(conn)
        .await?;
    }
    Ok(resent)
}

/// An outbound message in a list for operators.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: OutboxId,
    /// `reply` or `notice`.
    pub kind: String,
    /// Its study.
    pub project: Option<String>,
    /// Who gets it.
    pub recipient: String,
    /// `queued`, `sent`, `unknown`, `failed`.
    pub state: String,
    /// Why it is not `sent`.
    pub error: Option<String>,
    /// How many parts it has.
    pub parts: i64,
    /// How many of them arrived.
    pub parts_sent: i64,
    /// Kind and state of each, such as `text sent`, `card unknown`.
    pub part_states: Vec<String>,
    /// How often an operator had it sent again.
    pub resends: i32,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When the last part was accepted.
    pub sent_at: Option<DateTime<Utc>>,
    /// The whole text.
    pub text: String,
}

/// Messages to WeCom in one of `states`, oldest first, at most `limit`.
///
/// # Errors
/// The database failed.
pub async fn list(
    conn: &mut PgConnection,
    states: &[String],
    limit: i64,
) -> Result<Vec<Listed>, sqlx::Error> {
    sqlx::query_as!(
        Listed,
        r#"SELECT id AS "id: OutboxId", CASE WHEN message_id IS NULL THEN 'notice' ELSE 'reply' END AS "kind!",
                  project_id AS project, recipient, state, error,
                  (SELECT count(*) FROM iit_outbox_parts WHERE outbox_id = id) AS "parts!",
                  (SELECT count(*) FROM iit_outbox_parts p WHERE outbox_id = id AND p.state = 'sent')
                      AS "parts_sent!",
                  ARRAY(SELECT p.kind || ' ' || p.state FROM iit_outbox_parts p WHERE outbox_id = id ORDER BY p.no)
                      AS "part_states!",
                  resends, created_at, sent_at, text
           FROM iit_outbox WHERE channel = 'wecom' AND state = ANY($1)
           ORDER BY created_at, id LIMIT $2"#,
        states,
        limit,
    )
    .fetch_all(conn)
    .await
}

/// How many messages are in each state but `sent`.
///
/// # Errors
/// The database failed.
pub async fn unsent(conn: &mut PgConnection) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT state, count(*) AS "messages!" FROM iit_outbox WHERE state <> 'sent' GROUP BY state"#
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.state, row.messages))
        .collect())
}

/// Whether the very same text went to that person within the last week, or is on its way. One whose
/// arrival is unknown does not count: better told twice than never.
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
                     AND state IN ('queued', 'sent') AND created_at > now() - INTERVAL '7 days') AS "told!""#,
        project,
        recipient,
        text,
    )
    .fetch_one(conn)
    .await
}
