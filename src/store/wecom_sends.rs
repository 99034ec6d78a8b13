//! What one member was sent lately, counted for all processes: WeCom drops what is too much without a
//! word, so nobody may find out by trying.

use sqlx::PgConnection;

/// How many messages within how many seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Messages.
    pub messages: i64,
    /// Seconds.
    pub window_s: f64,
}

/// Whether a member may be sent one more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Room {
    /// Yes; it is counted under this number.
    Taken(i64),
    /// Not for so many seconds.
    In(f64),
}

/// Counts one more message to `member` (in lower case) if every limit allows it.
///
/// Two askers for one member at once could both get the last place: messages to one person go out one
/// after the other.
///
/// # Errors
/// The database failed.
pub async fn take(
    conn: &mut PgConnection,
    app: &str,
    member: &str,
    limits: &[Limit],
) -> Result<Room, sqlx::Error> {
    let mut wait = 0.0_f64;
    for limit in limits {
        // With as many as allowed in the window there is room again when the first of them leaves it.
        let seconds = sqlx::query_scalar!(
            r#"SELECT EXTRACT(EPOCH FROM at - clock_timestamp())::float8 + $4 AS "seconds!"
               FROM iit_wecom_sends WHERE app = $1 AND member = $2
               ORDER BY at DESC OFFSET $3 LIMIT 1"#,
            app,
            member,
            limit.messages - 1,
            limit.window_s,
        )
        .fetch_optional(&mut *conn)
        .await?;
        wait = wait.max(seconds.unwrap_or(0.0));
    }
    if wait > 0.0 {
        return Ok(Room::In(wait));
    }
    let longest = limits
        .iter()
        .map(|limit| limit.window_s)
        .fold(0.0, f64::max);
    sqlx::query!(
        r#"DELETE FROM iit_wecom_sends
           WHERE app = $1 AND member = $2 AND at < clock_timestamp() - make_interval(secs => $3)"#,
        app,
        member,
        longest,
    )
    .execute(&mut *conn)
    .await?;
    let id = sqlx::query_scalar!(
        r#"INSERT INTO iit_wecom_sends (app, member) VALUES ($1, $2) RETURNING id"#,
        app,
        member
    )
    .fetch_one(conn)
    .await?;
    Ok(Room::Taken(id))
}

/// The counted message was answered just now, or may have been: it counts from now on.
///
/// # Errors
/// The database failed.
pub async fn arrived(conn: &mut PgConnection, id: i64) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"UPDATE iit_wecom_sends SET at = clock_timestamp() WHERE id = $1"#,
        id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The counted message was not delivered: its place is free again.
///
/// # Errors
/// The database failed.
pub async fn give_back(conn: &mut PgConnection, id: i64) -> Result<(), sqlx::Error> {
    sqlx::query!(r#"DELETE FROM iit_wecom_sends WHERE id = $1"#, id)
        .execute(conn)
        .await?;
    Ok(())
}
