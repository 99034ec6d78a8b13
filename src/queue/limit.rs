//! Claims of a queue that may run only so many jobs over all processes: strict, by a lock on the queue's
//! row. A queue without a limit never comes here.

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::claim::{self, Ask, Bound, ClaimedJob};

/// What a claim within a limit brought.
#[derive(Debug)]
pub(super) enum Within {
    /// The queue has no limit (any more): claim as usual.
    NotLimited,
    /// As many run as may, or the queue is paused. The end of one of them wakes the claimers.
    Full,
    /// These were claimed.
    Claimed(Vec<ClaimedJob>, Bound),
}

/// Claims what `ask` wants as far as the queue's limit has room.
///
/// Claims of such a queue go one after another through all processes: the count of running jobs must see
/// what the claim before committed. A process that falls silent here is cut off by the server within the
/// length of a lease.
///
/// # Errors
/// See [`claim::claim`].
pub(super) async fn claim(conn: &mut PgConnection, ask: Ask<'_>) -> Result<Within, sqlx::Error> {
    let begin = format!(
        "BEGIN; SET LOCAL idle_in_transaction_session_timeout = {}",
        ask.lease.as_millis().clamp(1, 3_600_000)
    );
    let mut tx = conn.begin_with(AssertSqlSafe(begin)).await?;
    let set = sqlx::query!(
        r#"SELECT max_running, paused_at IS NOT NULL AS "paused!" FROM iit_queues WHERE name = $1 FOR UPDATE"#,
        ask.queue,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some((max, paused)) = set.and_then(|set| Some((set.max_running?, set.paused))) else {
        return Ok(Within::NotLimited);
    };
    // A lost lease counts until it is swept: its worker may still be at work.
    let running = sqlx::query_scalar!(
        r#"SELECT count(*) AS "running!" FROM iit_jobs WHERE state = 'running' AND queue = $1"#,
        ask.queue,
    )
    .fetch_one(&mut *tx)
    .await?;
    let room = usize::try_from(i64::from(max) - running).unwrap_or(0);
    if paused || room == 0 {
        return Ok(Within::Full);
    }
    let ask = Ask {
        slots: ask.slots.min(room),
        limited: true,
        ..ask
    };
    let (jobs, bound) = claim::take(&mut tx, ask).await?;
    tx.commit().await?;
    Ok(Within::Claimed(jobs, bound))
}
