//! The connection pool and the migrations.

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::migrate::{Migrate, MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction};

/// Where every table lives, `_sqlx_migrations` included.
pub const SCHEMA: &str = "iit_schema";
/// How long a server that does not answer, perhaps because it is just starting, is waited for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A pooled connection that idled this long is asked whether it still lives before it is used.
const PING_AFTER: Duration = Duration::from_millis(250);
/// How long a task waits for a free connection before it gives up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// All migrations, up and down, embedded in the binary. Running them creates the schema first, under
/// the same advisory lock, so two processes that start at once don't collide.
pub static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!();
    migrator.create_schema(SCHEMA);
    migrator
});

/// Why there is no working database behind a URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DbError {
    /// The URL is none. Its text is not repeated: it may hold a password.
    #[error(
        "DATABASE_URL is not a Postgres URL ({0}); it looks like postgres://user:password@host:5432/iit"
    )]
    Url(#[source] sqlx::Error),
    /// Nobody answers, or refuses us.
    #[error("Postgres can't be reached: {0}; check DATABASE_URL and that the server runs")]
    Connect(#[source] sqlx::Error),
    /// The schema can't be brought up to date.
    #[error(
        "the database schema can't be brought up to date: {0}; an older iit on a newer database must be updated first"
    )]
    Migrate(#[from] MigrateError),
}

/// How this process uses the database.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// Shown in `pg_stat_activity`, e.g. `iit worker`.
    pub application_name: String,
    /// The most connections this process opens.
    pub max_connections: u32,
}

/// Parses `url` and sets what every connection of ours has: `search_path` with [`SCHEMA`] first,
/// UTC, and `iit.quiet = on`, by which a trigger tells our own writes (whose code wakes the workers
/// itself) from those of somebody else.
///
/// # Errors
/// [`DbError::Url`].
pub fn connect_options(url: &SecretString, name: &str) -> Result<PgConnectOptions, DbError> {
    let text = url.expose_secret();
    // The driver takes any scheme, and would look for a Postgres on a MySQL's host.
    if !["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
    {
        return Err(DbError::Url(sqlx::Error::Configuration(
            "it does not begin with postgres://".into(),
        )));
    }
    let options = PgConnectOptions::from_str(text).map_err(DbError::Url)?;
    Ok(options.application_name(name).options([
        ("search_path", "iit_schema,public"),
        ("timezone", "UTC"),
        ("iit.quiet", "on"),
    ]))
}

/// Opens a pool and one connection of it, so that a wrong URL is known within seconds.
///
/// # Errors
/// [`DbError::Url`], [`DbError::Connect`].
pub async fn connect(url: &SecretString, settings: &PoolSettings) -> Result<PgPool, DbError> {
    let options = connect_options(url, &settings.application_name)?;
    // The pool would try for as long as a task may wait for a connection, and then not say why.
    let mut failure = sqlx::Error::PoolTimedOut;
    let first = async {
        loop {
            match PgConnection::connect_with(&options).await {
                Ok(connection) => return connection.close().await,
                Err(sqlx::Error::Io(error)) => failure = sqlx::Error::Io(error),
                // It recovers from a crash, say.
                Err(error) if is_on_its_way_up(&error) => failure = error,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, first).await {
        Ok(answer) => answer.map_err(DbError::Connect)?,
        Err(_) => return Err(DbError::Connect(failure)),
    }
    pool_options(settings.max_connections)
        // Kept open where there is traffic: a burst must not wait for Postgres to start processes for it.
        .min_connections(settings.max_connections / 2)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options)
        .await
        .map_err(DbError::Connect)
}

/// A pool whose connections are asked whether they live only when they have idled: under load that question
/// would be a third of all round trips. After a restart of the server every connection has idled.
#[must_use]
pub fn pool_options(max_connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for >= PING_AFTER {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}

/// Applies what is missing; nothing to do on an up-to-date database. Concurrent callers wait for
/// each other.
///
/// # Errors
/// [`DbError::Migrate`], also when the database was made by a newer program or a migration was
/// changed after it was applied.
pub async fn migrate(pool: &PgPool) -> Result<(), DbError> {
    Ok(MIGRATOR.run(pool).await?)
}

/// The server is there and does not take connections yet (57P03, `cannot_connect_now`).
fn is_on_its_way_up(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(|answer| answer.code().as_deref() == Some("57P03"))
}

/// Opens a transaction. May be dropped while it waits, e.g. because a request was given up: a begin of the
/// driver's own that is dropped half-way goes back to the pool with its transaction open, and what is done
/// on that connection next is not committed.
///
/// # Errors
/// The database failed.
pub async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin_with(pool, "BEGIN").await
}

/// The same by a statement that begins with `BEGIN`.
///
/// # Errors
/// The database failed.
pub async fn begin_with(
    pool: &PgPool,
    statement: &'static str,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let pool = pool.clone();
    // In a task that nobody drops; a transaction that nobody takes is rolled back.
    tokio::spawn(async move { pool.begin_with(statement).await })
        .await
        .map_err(|_| sqlx::Error::WorkerCrashed)?
}

/// The same for a transaction whose commit does not wait for the disk: for what may be lost with the server,
/// or is known from elsewhere.
///
/// # Errors
/// The database failed.
pub async fn begin_unflushed(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin_with(pool, "BEGIN; SET LOCAL synchronous_commit = off").await
}

/// Whether every migration this program knows is applied. A database that is ahead of us is fine: it was
/// updated first, as a rolling update does.
///
/// # Errors
/// The database failed.
pub async fn is_current(conn: &mut PgConnection) -> Result<bool, MigrateError> {
    let applied = conn.list_applied_migrations(&MIGRATOR.table_name).await?;
    Ok(MIGRATOR
        .iter()
        .filter(|ours| ours.migration_type.is_up_migration())
        .all(|ours| applied.iter().any(|done| done.version == ours.version)))
}

/// How the server is doing, as far as our tables show it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerFigures {
    /// Rows that vacuum has yet to remove, per table that changes all the time.
    pub dead_tuples: Vec<(String, i64)>,
    /// Age in seconds of the oldest transaction in this database; it holds vacuum back. 0 when there is none.
    pub oldest_xact_age_s: f64,
}

/// Asks the server's statistics.
///
/// # Errors
/// The database failed.
pub async fn server_figures(conn: &mut PgConnection) -> Result<ServerFigures, sqlx::Error> {
    let tables = sqlx::query!(
        r#"SELECT relname AS "name!", n_dead_tup AS "dead!" FROM pg_stat_user_tables
           WHERE schemaname = 'iit_schema' AND relname IN
               ('iit_jobs', 'iit_job_history', 'iit_task_run', 'iit_outbox', 'iit_outbox_parts',
                'iit_inbox', 'iit_batches', 'iit_pending_actions')
           ORDER BY relname"#,
    )
    .fetch_all(&mut *conn)
    .await?;
    let oldest = sqlx::query_scalar!(
        r#"SELECT COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(xact_start)), 0)::float8 AS "age!"
           FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND backend_type = 'client backend'"#,
    )
    .fetch_one(conn)
    .await?;
    Ok(ServerFigures {
        dead_tuples: tables.into_iter().map(|row| (row.name, row.dead)).collect(),
        oldest_xact_age_s: oldest.max(0.0),
    })
}

/// Whether the database answers.
///
/// # Errors
/// It does not.
pub async fn ping(conn: &mut sqlx::PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT 1 AS "one!""#)
        .fetch_one(conn)
        .await
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use super::*;

    #[test]
    fn a_wrong_url_is_refused_without_repeating_its_password() {
        for url in ["mysql//root:hunter2@db/iit", "mysql://root:hunter2@db/iit"] {
            let url = SecretString::from(url.to_owned());
            let refusal = connect_options(&url, "iit").unwrap_err().to_string();
            assert!(refusal.contains("DATABASE_URL"), "{refusal}");
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
    }

    #[test]
    fn every_up_migration_has_a_down_migration() {
        let ups = MIGRATOR
            .iter()
            .filter(|m| m.migration_type.is_up_migration());
        for up in ups {
            assert!(
                MIGRATOR
                    .iter()
                    .any(|m| m.version == up.version && m.migration_type.is_down_migration()),
                "{} {}",
                up.version,
                up.description
            );
        }
    }
}
