//! Noting what an outside system answered, over a moment without a database.

use std::{future::Future, time::Duration};

use tokio::time::Instant;

/// How long a note is tried again: what is known now would be unknown afterwards.
const NOTE_FOR: Duration = Duration::from_secs(30);
const NOTE_AGAIN: Duration = Duration::from_millis(200);

/// Runs `note`, which must be harmless to repeat, until it succeeds or half a minute is over; `again` is told
/// of each failure that another try follows.
///
/// # Errors
/// The database stayed away.
pub async fn until_noted<T, Noting>(
    note: impl Fn() -> Noting,
    again: impl Fn(&sqlx::Error),
) -> Result<T, sqlx::Error>
where
    Noting: Future<Output = Result<T, sqlx::Error>>,
{
    let until = Instant::now() + NOTE_FOR;
    loop {
        match note().await {
            Err(error) if Instant::now() < until => {
                again(&error);
                tokio::time::sleep(NOTE_AGAIN).await;
            }
            noted => return noted,
        }
    }
}
