//! Connections that can't write: what tools read our own tables through. Not the promise of our code but
//! the database's: a role with SELECT alone, on the tables that were opened to it, of which it sees the rows
//! of one study at a time. Where that role can't be had, nothing is read; the writing pool never stands in.

use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use super::db;

/// The role. The migrations make it where they may.
pub const ROLE: &str = "iit_reader";
/// Connections kept at most; a tool call holds one for some milliseconds.
const CONNECTIONS: u32 = 4;

/// A pool beside `pool`, to the same database, whose connections are the reader's from their first byte.
/// The role is the connection's own setting, so that `RESET ROLE` comes back to it. Opens nothing yet.
#[must_use]
pub fn pool(pool: &PgPool) -> PgPool {
    let options = pool.connect_options().as_ref().clone().options([
        ("role", ROLE),
        ("default_transaction_read_only", "on"),
        ("statement_timeout", "5s"),
    ]);
    db::pool_options(CONNECTIONS)
        .acquire_timeout(std::time::Duration::from_secs(5))
        .connect_lazy_with(options)
}

/// Begins to read `project`: what the transaction sees is that study's and one moment's.
///
/// # Errors
/// The database failed, or there is no such role for us.
pub async fn begin(
    reader: &PgPool,
    project: &str,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let mut tx = db::begin_with(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    sqlx::query!(
        r#"SELECT set_config('iit.project', $1, true) AS "set!""#,
        project
    )
    .fetch_one(&mut *tx)
    .await?;
    Ok(tx)
}

/// Why the reader can't read; `None`: it can. For `iit doctor`.
pub async fn fault(reader: &PgPool) -> Option<String> {
    let read = async {
        let mut tx = begin(reader, "").await?;
        whose(&mut tx).await
    };
    match read.await {
        Ok(role) if role == ROLE => None,
        Ok(role) => Some(format!("connections are `{role}`'s")),
        Err(error) => Some(error.to_string()),
    }
}

/// The role a connection has, provided that it may read what the tools read.
async fn whose(conn: &mut PgConnection) -> Result<String, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT current_user AS "role!" FROM (SELECT count(*) FROM iit_pending_actions) AS readable"#
    )
    .fetch_one(conn)
    .await
}
