//! The WeCom access token shared by all processes. Who fetches a new one holds a short lease, so that
//! no transaction stays open over the call.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// A stored token.
#[derive(Debug, Clone)]
pub struct StoredToken {
    /// The token.
    pub token: String,
    /// When it was obtained (database clock).
    pub obtained_at: DateTime<Utc>,
    /// When it ends (database clock).
    pub expires_at: DateTime<Utc>,
    /// The database's present.
    pub now: DateTime<Utc>,
}

/// The token of an app, expired or not.
///
/// # Errors
/// The database failed.
pub async fn load(conn: &mut PgConnection, app: &str) -> Result<Option<StoredToken>, sqlx::Error> {
    sqlx::query_as!(
        StoredToken,
        r#"SELECT token AS "token!", obtained_at AS "obtained_at!", expires_at AS "expires_at!", now() AS "now!"
           FROM iit_wecom_tokens
           WHERE app = $1 AND token IS NOT NULL AND obtained_at IS NOT NULL AND expires_at IS NOT NULL"#,
        app
    )
    .fetch_optional(conn)
    .await
}

/// Takes the right to fetch a new token for `lease_s` seconds, unless somebody else holds it or the
/// stored token is no longer the one seen (`seen`: hex SHA-256 of it, `None` when none was stored).
///
/// # Errors
/// The database failed.
pub async fn claim_refresh(
    conn: &mut PgConnection,
    app: &str,
    owner: Uuid,
    seen: Option<&str>,
    lease_s: f64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"INSERT INTO iit_wecom_tokens AS t (app, refresh_owner, refresh_until)
           VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
           ON CONFLICT (app) DO UPDATE
           SET refresh_owner = excluded.refresh_owner, refresh_until = excluded.refresh_until
           WHERE (t.refresh_until IS NULL OR t.refresh_until < clock_timestamp())
             AND encode(sha256(convert_to(t.token, 'UTF8')), 'hex') IS NOT DISTINCT FROM $4"#,
        app,
        owner,
        lease_s,
        seen,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Stores a new token, if the right to do so is still held, and gives the right back.
///
/// # Errors
/// The database failed.
pub async fn store(
    conn: &mut PgConnection,
    app: &str,
    owner: Uuid,
    token: &str,
    lives_s: f64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_wecom_tokens
           SET token = $3, obtained_at = clock_timestamp(),
               expires_at = clock_timestamp() + make_interval(secs => $4),
               refresh_owner = NULL, refresh_until = NULL
           WHERE app = $1 AND refresh_owner = $2"#,
        app,
        owner,
        token,
        lives_s,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives back the right to fetch without a result.
///
/// # Errors
/// The database failed.
pub async fn give_up_refresh(
    conn: &mut PgConnection,
    app: &str,
    owner: Uuid,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_wecom_tokens SET refresh_owner = NULL, refresh_until = NULL
           WHERE app = $1 AND refresh_owner = $2"#,
        app,
        owner,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets the token if it is still the one that was refused (hex SHA-256): a newer one stays. Says
/// whether it did.
///
/// # Errors
/// The database failed.
pub async fn invalidate(
    conn: &mut PgConnection,
    app: &str,
    refused: &str,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query!(
        r#"UPDATE iit_wecom_tokens SET token = NULL, obtained_at = NULL, expires_at = NULL
           WHERE app = $1 AND encode(sha256(convert_to(token, 'UTF8')), 'hex') = $2"#,
        app,
        refused,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
