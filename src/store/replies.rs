//! The parts of a reply. A message may ask for several things; each answer is a part, and the reply
//! leaves when none is missing.

use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, types::Json};

use crate::types::ids::{BatchId, MessageId};

/// A suggestion a person can tap, or answer by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chip {
    /// What is shown.
    pub label: String,
    /// What choosing it says.
    pub text: String,
}

/// One part of a reply.
#[derive(Debug, Clone)]
pub struct Part {
    /// Position.
    pub no: i32,
    /// `None` while the work behind it goes on.
    pub text: Option<String>,
    /// Suggestions.
    pub chips: Vec<Chip>,
}

/// Adds a part: answered at once (`text`), or to be answered by a batch.
///
/// # Errors
/// The database failed.
pub async fn add(
    conn: &mut PgConnection,
    message: MessageId,
    no: i32,
    text: Option<&str>,
    chips: &[Chip],
    batch: Option<BatchId>,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_reply_parts (message_id, no, text, chips, batch_id) VALUES ($1, $2, $3, $4, $5)"#,
        message as MessageId,
        no,
        text,
        Json(chips) as _,
        batch as Option<BatchId>,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Fills in a part that was missing.
///
/// # Errors
/// The database failed.
pub async fn fill(
    conn: &mut PgConnection,
    message: MessageId,
    no: i32,
    text: &str,
    chips: &[Chip],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_reply_parts SET text = $3, chips = $4
           WHERE message_id = $1 AND no = $2 AND text IS NULL"#,
        message as MessageId,
        no,
        text,
        Json(chips) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// All parts in order, the message's row locked so that two parts finishing at once do not both, or
/// neither, see the reply complete.
///
/// # Errors
/// The database failed.
pub async fn locked(conn: &mut PgConnection, message: MessageId) -> Result<Vec<Part>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT id FROM iit_inbox WHERE id = $1 FOR UPDATE"#,
        message as MessageId
    )
    .fetch_optional(&mut *conn)
    .await?;
    let rows = sqlx::query!(
        r#"SELECT no, text, chips AS "chips: Json<Vec<Chip>>" FROM iit_reply_parts
           WHERE message_id = $1 ORDER BY no"#,
        message as MessageId
    )
    .fetch_all(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Part {
            no: row.no,
            text: row.text,
            chips: row.chips.0,
        })
        .collect())
}
