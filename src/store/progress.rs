//! “One moment, please”: at most one a message, written while it is worked on, withdrawn when its reply was
//! faster.

use sqlx::PgConnection;

use super::inbox::Channel;
use crate::types::ids::{MessageId, OutboxId};

/// A message that is worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its study.
    pub project: Option<String>,
    /// Who waits.
    pub sender: String,
    /// How the reply will go out.
    pub channel: Channel,
}

/// Writes the text for whoever waits for the reply to `message`. `None`: nobody does any more, or it was said
/// before. The message's row stays locked, so that no reply can be written in between.
///
/// # Errors
/// The database failed.
pub async fn say(
    conn: &mut PgConnection,
    message: MessageId,
    text: &str,
) -> Result<Option<(OutboxId, Waiting)>, sqlx::Error> {
    let Some(row) = sqlx::query!(
        r#"SELECT project_id, sender, channel FROM iit_inbox
           WHERE id = $1 AND status IN ('queued', 'working') FOR UPDATE"#,
        message as MessageId,
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(None);
    };
    let channel = match row.channel.as_str() {
        "wecom" => Channel::Wecom,
        _ => Channel::Rest,
    };
    let id = sqlx::query_scalar!(
        r#"INSERT INTO iit_outbox (id, message_id, project_id, channel, recipient, text, is_progress, state, sent_at)
           VALUES ($1, $2, $3, $4, $5, $6, true, CASE WHEN $7 THEN 'queued' ELSE 'sent' END,
                   CASE WHEN $7 THEN NULL ELSE now() END)
           ON CONFLICT (message_id) WHERE is_progress DO NOTHING
           RETURNING id AS "id: OutboxId""#,
        OutboxId::generate() as OutboxId,
        message as MessageId,
        row.project_id,
        channel.as_str(),
        row.sender,
        text,
        channel == Channel::Wecom,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(id) = id else {
        return Ok(None);
    };
    if channel == Channel::Wecom {
        sqlx::query!(
            r#"INSERT INTO iit_outbox_parts (outbox_id, no, text) VALUES ($1, 0, $2)"#,
            id as OutboxId,
            text,
        )
        .execute(conn)
        .await?;
    }
    Ok(Some((
        id,
        Waiting {
            project: row.project_id,
            sender: row.sender,
            channel,
        },
    )))
}

/// What was said to whoever waits for the reply to `message`, while there is none.
///
/// # Errors
/// The database failed.
pub async fn said(
    conn: &mut PgConnection,
    message: MessageId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT o.text FROM iit_outbox o JOIN iit_inbox m ON m.id = o.message_id
           WHERE o.message_id = $1 AND o.is_progress AND m.status = 'working'"#,
        message as MessageId,
    )
    .fetch_optional(conn)
    .await
}

/// Whether an outbound message is such a text that nothing was sent of and whose reply is there: to be
/// withdrawn.
///
/// # Errors
/// The database failed.
pub async fn is_overtaken(conn: &mut PgConnection, id: OutboxId) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1 FROM iit_outbox o JOIN iit_inbox m ON m.id = o.message_id
               WHERE o.id = $1 AND o.is_progress AND m.status IN ('answered', 'failed')
                 AND NOT EXISTS (SELECT 1 FROM iit_outbox_parts p
                                 WHERE p.outbox_id = o.id AND p.state <> 'queued')) AS "overtaken!""#,
        id as OutboxId,
    )
    .fetch_one(conn)
    .await
}

/// Takes such a text back: it never left.
///
/// # Errors
/// The database failed.
pub async fn withdraw(conn: &mut PgConnection, id: OutboxId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"DELETE FROM iit_outbox WHERE id = $1 AND is_progress"#,
        id as OutboxId,
    )
    .execute(conn)
    .await?;
    Ok(())
}
