//! First answers to requests that carried an `Idempotency-Key`.

use serde_json::Value;
use sqlx::PgConnection;

/// A remembered answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Hash of the request it answered.
    pub request: String,
    /// HTTP status.
    pub status: i32,
    /// Body.
    pub response: Value,
}

/// The first answer to `key` on `route`. The transaction holds the key until it ends, so that two
/// requests with one key are handled one after the other.
///
/// # Errors
/// The database failed.
pub async fn find(
    conn: &mut PgConnection,
    key: &str,
    route: &str,
) -> Result<Option<Answer>, sqlx::Error> {
    sqlx::query!(
        r#"SELECT pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 7)) AS "locked: ()""#,
        route,
        key
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query_as!(
        Answer,
        r#"SELECT request, status, response FROM iit_idempotency_keys WHERE key = $1 AND route = $2"#,
        key,
        route
    )
    .fetch_optional(conn)
    .await
}

/// Remembers an answer.
///
/// # Errors
/// The database failed.
pub async fn keep(
    conn: &mut PgConnection,
    key: &str,
    route: &str,
    answer: &Answer,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"INSERT INTO iit_idempotency_keys (key, route, request, status, response) VALUES ($1, $2, $3, $4, $5)"#,
        key,
        route,
        answer.request,
        answer.status,
        answer.response,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets answers older than two days. Returns how many.
///
/// # Errors
/// The database failed.
pub async fn forget_old(conn: &mut PgConnection) -> Result<u64, sqlx::Error> {
    let done = sqlx::query!(
        r#"DELETE FROM iit_idempotency_keys WHERE created_at < now() - INTERVAL '2 days'"#
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
