//! The parts of a message out: pieces of its text, then perhaps its choices as a card. `sending` is committed before a part leaves, so that a crash in between
//! is seen, not repeated.

use sqlx::PgConnection;

use crate::types::ids::OutboxId;

/// One part of an outbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundPart {
    /// Position, from 0.
    pub no: i32,
    /// The choices of the message as a card; else `text`.
    pub is_card: bool,
    /// Text of this part; a card's is empty.
    pub text: String,
    /// `queued`, `sending`, `sent`, `unknown`; a card's also `failed`, `skipped`.
    pub state: String,
    /// It first left less than `within_s` ago, see [`of`].
    pub recent: bool,
}

/// Parts in order. `within_s`: how long [`OutboundPart::recent`] looks back.
///
/// # Errors
/// The database failed.
pub async fn of(
    conn: &mut PgConnection,
    id: OutboxId,
    within_s: f64,
) -> Result<Vec<OutboundPart>, sqlx::Error> {
    sqlx::query_as!(
        OutboundPart,
        r#"SELECT no, kind = 'card' AS "is_card!", text, state,
                  COALESCE(left_at > clock_timestamp() - make_interval(secs => $2), false) AS "recent!"
           FROM iit_outbox_parts WHERE outbox_id = $1 ORDER BY no"#,
        id as OutboxId,
        within_s,
    )
    .fetch_all(conn)
    .await
}

/// Adds the message's choices as a card, after everything else.
///
/// # Errors
/// The database failed.
pub async fn add_card(conn: &mut PgConnection, id: OutboxId) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_outbox_parts (outbox_id, no, kind, text)
           SELECT $1, COALESCE(max(no) + 1, 0), 'card', '' FROM iit_outbox_parts WHERE outbox_id = $1"#,
        id as OutboxId,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Gives a waiting card up, while this attempt holds the job: `failed` when WeCom refused it, `skipped`
/// when it was not wanted. The text before it says the same.
///
/// # Errors
/// The database failed.
pub async fn give_up_card(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    state: &str,
    hold: Hold,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = $3
           WHERE outbox_id = $1 AND no = $2 AND kind = 'card' AND state = 'queued'
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $4 AND lease_token = $5 AND state = 'running')"#,
        id as OutboxId,
        no,
        state,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The hold of one attempt of the `deliver` job: only who holds it may let a part leave.
#[derive(Debug, Clone, Copy)]
pub struct Hold {
    /// The job.
    pub job: i64,
    /// Its lease.
    pub token: uuid::Uuid,
}

/// Marks a part as leaving now, if it is still as it `was` and the hold is still ours. `false`: somebody
/// else has the job, and nothing may be sent.
///
/// # Errors
/// The database failed.
pub async fn begin(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    was: &str,
    hold: Hold,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'sending', left_at = COALESCE(left_at, clock_timestamp())
           WHERE outbox_id = $1 AND no = $2 AND state = $3
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $4 AND lease_token = $5)"#,
        id as OutboxId,
        no,
        was,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Puts a part back to what it `was`: this time it certainly did not leave. Only if it is still ours to
/// put back.
///
/// # Errors
/// The database failed.
pub async fn put_back(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    was: &str,
    hold: Hold,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = $3, left_at = CASE $3 WHEN 'queued' THEN NULL ELSE left_at END
           WHERE outbox_id = $1 AND no = $2 AND state = 'sending'
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $4 AND lease_token = $5)"#,
        id as OutboxId,
        no,
        was,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes that a part was accepted; `remote_id` is the id the other side gave it. What was sent was sent,
/// whoever holds the job by now: if that was the last doubt about the message, it is gone.
///
/// # Errors
/// The database failed.
pub async fn sent(
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
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        r#"UPDATE iit_outbox SET state = 'sent', error = NULL, sent_at = now()
           WHERE id = $1 AND state = 'unknown'
             AND NOT EXISTS (SELECT 1 FROM iit_outbox_parts WHERE outbox_id = $1
                             AND ((kind = 'text' AND state <> 'sent') OR state IN ('sending', 'unknown')))"#,
        id as OutboxId,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes that nobody knows whether a part left.
///
/// # Errors
/// The database failed.
pub async fn unclear(conn: &mut PgConnection, id: OutboxId, no: i32) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'unknown' WHERE outbox_id = $1 AND no = $2 AND state = 'sending'"#,
        id as OutboxId,
        no,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks a part that an earlier attempt left `sending` as unclear, while this attempt holds the job.
///
/// # Errors
/// The database failed.
pub async fn left_unclear(
    conn: &mut PgConnection,
    id: OutboxId,
    no: i32,
    hold: Hold,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_outbox_parts SET state = 'unknown'
           WHERE outbox_id = $1 AND no = $2 AND state = 'sending'
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $3 AND lease_token = $4)"#,
        id as OutboxId,
        no,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(())
}
