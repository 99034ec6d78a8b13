//! The gate before WeCom, one per app and shared by all processes: while WeCom refuses the app as a
//! whole, nobody sends. When the wait is over one message tries; it opens the gate or closes it for
//! longer. No row means open, so that in good times nothing is written.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

/// How long the message that tries may take before another one may: a token and two calls. One whose worker
/// died holds nobody up for so long: it tries only while its job holds its lease.
const PROBE_S: f64 = 90.0;
/// How soon to ask again while a message tries.
const PROBED_S: f64 = 1.0;

/// A closed gate, as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClosedGate {
    /// `<corp id>|<agent id>`.
    pub app: String,
    /// WeCom's errcode, or `not_sent`, `unclear`.
    pub cause: String,
    /// What it means and what to do.
    pub reason: String,
    /// It does not open by itself.
    pub needs_person: bool,
    /// Refusals in a row.
    pub failures: i32,
    /// Since when.
    pub closed_at: DateTime<Utc>,
    /// When one message tries again.
    pub closed_until: DateTime<Utc>,
}

/// Whether a message may leave.
#[derive(Debug, Clone, PartialEq)]
pub enum Pass {
    /// The gate is open.
    Open,
    /// The wait is over, and this message finds out.
    Probe,
    /// Not for `seconds`.
    Closed {
        /// By the database clock.
        seconds: f64,
        /// Why.
        reason: String,
    },
}

/// Asks for a message to pass; `probe`, the lease of its job, names it if it is the one that tries. The caller's transaction
/// decides whether it really does.
///
/// # Errors
/// The database failed.
pub async fn pass(conn: &mut PgConnection, app: &str, probe: Uuid) -> Result<Pass, sqlx::Error> {
    let gate = sqlx::query!(
        r#"SELECT reason,
                  GREATEST(EXTRACT(EPOCH FROM closed_until - clock_timestamp())::float8, 0) AS "seconds!"
           FROM iit_wecom_gate WHERE app = $1"#,
        app
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(gate) = gate else {
        return Ok(Pass::Open);
    };
    if gate.seconds <= 0.0 {
        let mine = sqlx::query!(
            r#"UPDATE iit_wecom_gate
               SET probe = $2, probe_until = clock_timestamp() + make_interval(secs => $3)
               WHERE app = $1 AND closed_until <= clock_timestamp()
                 AND (probe_until IS NULL OR probe_until <= clock_timestamp()
                      OR NOT EXISTS (SELECT 1 FROM iit_jobs
                                     WHERE state = 'running' AND lease_token = probe
                                       AND lease_expires_at > clock_timestamp()))"#,
            app,
            probe,
            PROBE_S,
        )
        .execute(conn)
        .await?;
        if mine.rows_affected() == 1 {
            return Ok(Pass::Probe);
        }
    }
    Ok(Pass::Closed {
        seconds: gate.seconds.max(PROBED_S),
        reason: gate.reason,
    })
}

/// Why the gate closes.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    /// See [`ClosedGate::cause`].
    pub cause: &'a str,
    /// What it means and what to do. No personal data.
    pub reason: &'a str,
    /// Seconds before the first, second, … further try; the last one repeats.
    pub waits: &'a [f64],
    /// It does not open by itself.
    pub needs_person: bool,
}

/// Closes the gate, or keeps it closed for longer when its `probe` failed. Refusals of messages that
/// were under way when it closed change nothing. Returns how many refusals of this cause there were in a
/// row when it did close, and `None` when it was closed already.
///
/// # Errors
/// The database failed.
pub async fn close(
    conn: &mut PgConnection,
    app: &str,
    probe: Uuid,
    refusal: &Refusal<'_>,
) -> Result<Option<i32>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"INSERT INTO iit_wecom_gate AS gate (app, cause, reason, needs_person, closed_until)
           VALUES ($1, $3, $4, $5, clock_timestamp() + make_interval(secs => ($6::float8[])[1]))
           ON CONFLICT (app) DO UPDATE
           SET cause = excluded.cause, reason = excluded.reason, needs_person = excluded.needs_person,
               failures = CASE WHEN gate.cause = excluded.cause THEN gate.failures + 1 ELSE 1 END,
               closed_until = clock_timestamp() + make_interval(secs => ($6::float8[])[
                   LEAST(CASE WHEN gate.cause = excluded.cause THEN gate.failures + 1 ELSE 1 END,
                         cardinality($6::float8[]))]),
               probe = NULL, probe_until = NULL
           WHERE gate.probe = $2
           RETURNING failures"#,
        app,
        probe,
        refusal.cause,
        refusal.reason,
        refusal.needs_person,
        refusal.waits,
    )
    .fetch_optional(conn)
    .await
}

/// Opens the gate if `probe` is the message that tried. Says whether it did.
///
/// # Errors
/// The database failed.
pub async fn open(conn: &mut PgConnection, app: &str, probe: Uuid) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"DELETE FROM iit_wecom_gate WHERE app = $1 AND probe = $2"#,
        app,
        probe
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// All closed gates.
///
/// # Errors
/// The database failed.
pub async fn closed(conn: &mut PgConnection) -> Result<Vec<ClosedGate>, sqlx::Error> {
    sqlx::query_as!(
        ClosedGate,
        r#"SELECT app, cause, reason, needs_person, failures, closed_at, closed_until
           FROM iit_wecom_gate ORDER BY app"#
    )
    .fetch_all(conn)
    .await
}
