//! Clicks on cards: the first one on each card by the person it was sent to, and what became of showing
//! it on the card. Later clicks leave no trace here, so a card is answered once.

use sqlx::{PgConnection, types::Json};

use super::{outbox_parts::Hold, replies::Chip};
use crate::types::ids::{MessageId, OutboxId};

/// A card that was sent, by the message it belongs to.
#[derive(Debug, Clone)]
pub struct SentCard {
    /// Who it was sent to.
    pub recipient: String,
    /// The study; `None` when the card asks which.
    pub project: Option<String>,
    /// The message whose reply it is.
    pub message: Option<MessageId>,
    /// The choices, in the order of the buttons.
    pub chips: Json<Vec<Chip>>,
    /// Somebody clicked on it before.
    pub clicked: bool,
}

/// The card of an outbound message; `None` when there is no such message, or it has none.
///
/// # Errors
/// The database failed.
pub async fn sent_card(
    conn: &mut PgConnection,
    message: OutboxId,
) -> Result<Option<SentCard>, sqlx::Error> {
    sqlx::query_as!(
        SentCard,
        r#"SELECT recipient, project_id AS project, message_id AS "message: MessageId",
                  chips AS "chips: Json<Vec<Chip>>",
                  EXISTS (SELECT 1 FROM iit_card_clicks click WHERE click.outbox_id = message.id) AS "clicked!"
           FROM iit_outbox AS message
           WHERE id = $1 AND EXISTS (SELECT 1 FROM iit_outbox_parts WHERE outbox_id = $1 AND kind = 'card')"#,
        message as OutboxId,
    )
    .fetch_optional(conn)
    .await
}

/// What a click came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It answered the question that waited.
    Taken,
    /// Its question did not wait any more; nothing was done.
    Late,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Late => "late",
        }
    }
}

/// Notes the first click on a card. `false`: there was one before.
///
/// # Errors
/// The database failed.
pub async fn clicked(
    conn: &mut PgConnection,
    card: OutboxId,
    event: MessageId,
    choice: i32,
    verdict: Verdict,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"INSERT INTO iit_card_clicks (outbox_id, message_id, choice, verdict) VALUES ($1, $2, $3, $4)
           ON CONFLICT (outbox_id) DO NOTHING"#,
        card as OutboxId,
        event as MessageId,
        choice,
        verdict.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A card that is to show what was chosen.
#[derive(Debug, Clone)]
pub struct Update {
    /// Who sees the card.
    pub recipient: String,
    /// Its choices.
    pub chips: Json<Vec<Chip>>,
    /// The one clicked, from 0.
    pub choice: i32,
    /// It was clicked too late.
    pub late: bool,
    /// What WeCom sent with the click.
    pub event: serde_json::Value,
    /// `queued`, `sending`, `done`, `unknown`, `failed`.
    pub state: String,
    /// Seconds since the click arrived, by the database clock.
    pub age_s: f64,
}

/// What is known of showing a click on its card.
///
/// # Errors
/// The database failed.
pub async fn update_of(
    conn: &mut PgConnection,
    card: OutboxId,
) -> Result<Option<Update>, sqlx::Error> {
    sqlx::query_as!(
        Update,
        r#"SELECT message.recipient, message.chips AS "chips: Json<Vec<Chip>>", click.choice,
                  click.verdict = 'late' AS "late!", event.detail AS event, click.update_state AS state,
                  EXTRACT(EPOCH FROM clock_timestamp() - event.created_at)::float8 AS "age_s!"
           FROM iit_card_clicks click
           JOIN iit_outbox message ON message.id = click.outbox_id
           JOIN iit_inbox event ON event.id = click.message_id
           WHERE click.outbox_id = $1"#,
        card as OutboxId,
    )
    .fetch_optional(conn)
    .await
}

/// Marks an update as leaving now, if it waits and the hold is still ours. `false`: nothing may be sent.
///
/// # Errors
/// The database failed.
pub async fn begin_update(
    conn: &mut PgConnection,
    card: OutboxId,
    hold: Hold,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_card_clicks SET update_state = 'sending'
           WHERE outbox_id = $1 AND update_state = 'queued'
             AND EXISTS (SELECT 1 FROM iit_jobs WHERE id = $2 AND lease_token = $3 AND state = 'running')"#,
        card as OutboxId,
        hold.job,
        hold.token,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes what became of an update: `done`, `unknown`, `failed`, or `queued` when it certainly did not
/// leave. What was done stays done.
///
/// # Errors
/// The database failed.
pub async fn note_update(
    conn: &mut PgConnection,
    card: OutboxId,
    state: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_card_clicks SET update_state = $2 WHERE outbox_id = $1 AND update_state IN ('queued', 'sending')"#,
        card as OutboxId,
        state,
    )
    .execute(conn)
    .await?;
    Ok(())
}
