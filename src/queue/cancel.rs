//! Ending jobs that nobody wants any more, whatever state they are in.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection, PgPool};
use uuid::Uuid;

use super::{claim::ClaimedJob, lease::Lease, settle::Settlement, wake::Wake};

/// How long the server lets an unfinished cancellation hold its row.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of a cancellation.
pub enum Cancelled {
    /// The job waited, and is cancelled once the settlement commits. What waits for it is to be told in
    /// the same transaction, as with a dead job ([`super::worker::Handler::bury`]).
    ToSettle(Box<ClaimedJob>, Settlement),
    /// It runs: its process sees the request at the next renewal of its lease, drops the attempt and
    /// settles it as cancelled. Should the attempt settle before, that stands.
    Asked(Settlement),
    /// It was dead, and what waited for it was told then.
    WasDead(Settlement),
    /// It is finished, or never was.
    Nothing,
}

/// Cancels one job; the caller commits the settlement.
///
/// # Errors
/// The database failed.
pub async fn cancel(
    pool: &PgPool,
    wake: &Wake,
    id: i64,
    why: &str,
) -> Result<Cancelled, sqlx::Error> {
    let begin = format!(
        "BEGIN; SET LOCAL idle_in_transaction_session_timeout = {}",
        PATIENCE.as_millis()
    );
    let mut tx = pool.begin_with(AssertSqlSafe(begin)).await?;
    // Locked first: a settlement under way is waited for, and then the row says what it left.
    let job = sqlx::query!(
        r#"SELECT queue, kind, payload, state, attempt, max_attempts, crashes, run_at, group_key
           FROM iit_jobs WHERE id = $1 FOR UPDATE"#,
        id,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(job) = job else {
        return Ok(Cancelled::Nothing);
    };
    match job.state.as_str() {
        "available" | "dead" => {
            sqlx::query!(
                r#"UPDATE iit_jobs SET state = 'cancelled', finished_at = clock_timestamp(),
                          last_error = concat_ws('; ', $2::text, last_error)
                   WHERE id = $1"#,
                id,
                why,
            )
            .execute(&mut *tx)
            .await?;
            // The next of its group may run now.
            let settlement = Settlement::new(tx, wake.clone(), [job.queue.clone()]);
            if job.state == "dead" {
                return Ok(Cancelled::WasDead(settlement));
            }
            let claimed = ClaimedJob {
                kind: job.kind,
                payload: job.payload,
                crashes: job.crashes,
                run_at: job.run_at,
                waited: Duration::ZERO,
                cancelled: Some(why.to_owned()),
                // Nobody holds it: this lease settles nothing, it only says which job it is.
                lease: Lease {
                    job: id,
                    token: Uuid::nil(),
                    attempt: job.attempt,
                    max_attempts: job.max_attempts,
                    queue: job.queue,
                    group: job.group_key,
                    length: PATIENCE,
                    priority: 0,
                    limited: false,
                },
            };
            Ok(Cancelled::ToSettle(Box::new(claimed), settlement))
        }
        "running" => {
            sqlx::query!(
                "UPDATE iit_jobs SET cancel_reason = $2 WHERE id = $1",
                id,
                why
            )
            .execute(&mut *tx)
            .await?;
            Ok(Cancelled::Asked(Settlement::new(tx, wake.clone(), [])))
        }
        _ => Ok(Cancelled::Nothing),
    }
}

/// Which jobs a bulk change is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Only of this queue.
    pub queue: Option<&'a str>,
    /// Only of this stored kind.
    pub kind: Option<&'a str>,
}

/// Unfinished jobs, the last first: so that a cancelled head does not let the next of its group begin.
///
/// # Errors
/// The database failed.
pub async fn unfinished(
    conn: &mut PgConnection,
    filter: Filter<'_>,
) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT id AS "id!" FROM (SELECT id, queue, kind FROM iit_jobs WHERE state = 'available'
                          UNION ALL SELECT id, queue, kind FROM iit_jobs WHERE state = 'running') AS jobs
           WHERE ($1::text IS NULL OR queue = $1) AND ($2::text IS NULL OR kind = $2)
           ORDER BY id DESC"#,
        filter.queue,
        filter.kind,
    )
    .fetch_all(conn)
    .await
}
