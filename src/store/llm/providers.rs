//! The breaker (`iit_llm_providers`) that all workers of all processes share: a provider that is down, or
//! has not been paid, is not asked by each job anew.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

/// Failures in a row that open the breaker.
pub const FAILURES: i32 = 5;
/// How long it stays open the first time; doubled each time a probe fails, up to [`LONGEST_OPEN`].
pub const FIRST_OPEN: Duration = Duration::from_secs(15);
/// The longest it stays open after failures, and how long it does for what a person has to mend.
pub const LONGEST_OPEN: Duration = Duration::from_secs(15 * 60);

/// Whether a question may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Yes.
    Closed,
    /// Yes, as the one probe of a half-open breaker: its outcome decides.
    Probe,
    /// Not for this long.
    Open {
        /// Until somebody may probe.
        wait: Duration,
        /// How long it has been open.
        since: Duration,
        /// Only a person can mend it.
        wants_person: bool,
        /// One sentence.
        reason: String,
    },
}

/// Asks whether a question may leave to `provider`. Of all who ask when an open breaker's time is over, one
/// gets to probe; if nothing is heard of it within `probe`, the next one does.
///
/// # Errors
/// The database failed.
pub async fn admit(
    conn: &mut PgConnection,
    provider: &str,
    probe: Duration,
) -> Result<Admission, sqlx::Error> {
    let row = sqlx::query!(
        r#"SELECT state, wants_person, COALESCE(reason, '') AS "reason!",
                  EXTRACT(EPOCH FROM open_until - clock_timestamp())::float8 AS wait,
                  EXTRACT(EPOCH FROM clock_timestamp() - opened_at)::float8 AS since
           FROM iit_llm_providers WHERE provider = $1"#,
        provider,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row.filter(|row| row.state != "closed") else {
        return Ok(Admission::Closed);
    };
    let seconds = |s: Option<f64>| {
        Duration::try_from_secs_f64(s.unwrap_or_default().max(0.0)).unwrap_or_default()
    };
    let wait = seconds(row.wait);
    if wait.is_zero() {
        let ours = sqlx::query!(
            r#"UPDATE iit_llm_providers
               SET state = 'half_open', open_until = clock_timestamp() + make_interval(secs => $2)
               WHERE provider = $1 AND state <> 'closed' AND open_until <= clock_timestamp()"#,
            provider,
            probe.as_secs_f64(),
        )
        .execute(conn)
        .await?;
        if ours.rows_affected() == 1 {
            return Ok(Admission::Probe);
        }
    }
    Ok(Admission::Open {
        wait: wait.max(Duration::from_secs(1)),
        since: seconds(row.since),
        wants_person: row.wants_person,
        reason: row.reason,
    })
}

/// A probe did not take place: the next one may begin at once.
///
/// # Errors
/// The database failed.
pub async fn put_back_probe(conn: &mut PgConnection, provider: &str) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_llm_providers SET open_until = clock_timestamp()
           WHERE provider = $1 AND state = 'half_open'"#,
        provider,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A question was answered (or refused for its own sake): the provider works. Costs nothing while it did
/// before.
///
/// # Errors
/// The database failed.
pub async fn works(conn: &mut PgConnection, provider: &str) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_llm_providers
           SET state = 'closed', failures = 0, openings = 0, reason = NULL, wants_person = false,
               opened_at = NULL, open_until = NULL
           WHERE provider = $1 AND (state <> 'closed' OR failures > 0)"#,
        provider,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a failed question says about the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It is down, or too slow: opens after [`FAILURES`] in a row, at once when a probe failed.
    Failing,
    /// It asks to wait.
    Busy(Duration),
    /// Nothing will change until a person does something.
    WantsPerson,
}

/// Notes a failure. Returns whether the breaker opened by it.
///
/// # Errors
/// The database failed.
pub async fn failed(
    conn: &mut PgConnection,
    provider: &str,
    trouble: &Trouble,
    reason: &str,
) -> Result<bool, sqlx::Error> {
    let wants_person = *trouble == Trouble::WantsPerson;
    let (at_once, open_for) = match trouble {
        Trouble::Failing => (false, None),
        Trouble::Busy(wait) => (true, Some(wait.as_secs_f64())),
        Trouble::WantsPerson => (true, Some(LONGEST_OPEN.as_secs_f64())),
    };
    let opened = sqlx::query_scalar!(
        r#"WITH before AS (
               INSERT INTO iit_llm_providers AS provider (provider, failures) VALUES ($1, 1)
               ON CONFLICT (provider) DO UPDATE SET failures = provider.failures + 1
               RETURNING provider.state, provider.failures)
           SELECT (before.state <> 'open' AND ($2 OR before.state = 'half_open' OR before.failures >= $3)) AS "opens!"
           FROM before"#,
        provider,
        at_once,
        FAILURES,
    )
    .fetch_one(&mut *conn)
    .await?;
    if !opened {
        return Ok(false);
    }
    sqlx::query!(
        r#"UPDATE iit_llm_providers
           SET state = 'open', reason = $2, wants_person = $3, openings = openings + 1,
               opened_at = COALESCE(opened_at, clock_timestamp()),
               open_until = clock_timestamp() + make_interval(secs =>
                   COALESCE($4, LEAST($5 * power(2, LEAST(openings, 20)), $6)))
           WHERE provider = $1"#,
        provider,
        reason,
        wants_person,
        open_for,
        FIRST_OPEN.as_secs_f64(),
        LONGEST_OPEN.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// Lets every provider be asked again at once, and names those that were held back.
///
/// # Errors
/// The database failed.
pub async fn close_all(conn: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"UPDATE iit_llm_providers
           SET state = 'closed', failures = 0, openings = 0, reason = NULL, wants_person = false,
               opened_at = NULL, open_until = NULL
           WHERE state <> 'closed' RETURNING provider"#,
    )
    .fetch_all(conn)
    .await
}

/// A provider as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provider {
    /// Host and path.
    pub provider: String,
    /// `closed` (works), `open` (not asked), `half_open` (one probe under way).
    pub state: String,
    /// Failures in a row.
    pub failures: i32,
    /// Why it is open.
    pub reason: Option<String>,
    /// Only a person can mend it.
    pub wants_person: bool,
    /// Since when it is open.
    pub opened_at: Option<DateTime<Utc>>,
    /// When somebody may probe.
    pub open_until: Option<DateTime<Utc>>,
}

/// All providers that ever failed.
///
/// # Errors
/// The database failed.
pub async fn all(conn: &mut PgConnection) -> Result<Vec<Provider>, sqlx::Error> {
    sqlx::query_as!(
        Provider,
        r#"SELECT provider, state, failures, reason, wants_person, opened_at, open_until
           FROM iit_llm_providers ORDER BY provider"#,
    )
    .fetch_all(conn)
    .await
}
