//! The database of a command: found or started, connected, migrated; let go at the end.

use sqlx::PgPool;

use super::{
    cli::exit::Failure,
    postgres::{self, Handle, Options},
};
use crate::store::db::{self, DbError, PoolSettings};

/// An open, migrated database.
pub struct Database {
    /// For everything but claims.
    pub pool: PgPool,
    /// The server, shared with other `iit` processes when it is the private one.
    pub server: Handle,
}

impl Database {
    /// Finds or starts the database and brings its schema up to date. `name` is shown in
    /// `pg_stat_activity`.
    ///
    /// # Errors
    /// Exit code 2 for a configuration that can't work, 3 for a database that does not answer.
    pub async fn open(name: &str, max_connections: u32) -> Result<Self, Failure> {
        let server = postgres::ensure(&Options::from_env())
            .await
            .map_err(|error| match error.exit_code() {
                2 => Failure::Usage(error.to_string()),
                _ => Failure::Outside(error.to_string()),
            })?;
        let settings = PoolSettings {
            application_name: format!("iit {name}"),
            max_connections,
        };
        let opened = async {
            let pool = db::connect(server.url(), &settings).await?;
            db::migrate(&pool).await?;
            Ok::<_, DbError>(pool)
        };
        match opened.await {
            Ok(pool) => Ok(Self { pool, server }),
            Err(error) => {
                let failure = db_failure(&error);
                if let Err(error) = server.stop().await {
                    tracing::warn!(%error, "postgres.stop");
                }
                Err(failure)
            }
        }
    }

    /// A second pool for claims, renewals and LISTEN, whose commits need not wait for the disk: a lost
    /// claim is only a rerun.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn claims_pool(&self, name: &str) -> Result<PgPool, Failure> {
        let options = db::connect_options(self.server.url(), &format!("iit {name} claims"))
            .map_err(|error| db_failure(&error))?
            .options([("synchronous_commit", "off")]);
        // Five claimers, the renewal, LISTEN, and one to spare.
        db::pool_options(8)
            .connect_with(options)
            .await
            .map_err(|error| db_failure(&DbError::Connect(error)))
    }

    /// Closes the pool and lets go of the server; the last process to do so stops a private one.
    ///
    /// # Errors
    /// The private server could not be stopped.
    pub async fn close(self) -> Result<(), Failure> {
        self.pool.close().await;
        self.server
            .stop()
            .await
            .map_err(|error| Failure::Outside(error.to_string()))
    }
}

fn db_failure(error: &DbError) -> Failure {
    match error {
        DbError::Url(_) => Failure::Usage(error.to_string()),
        _ => Failure::Outside(error.to_string()),
    }
}

/// A query of a command failed.
pub fn query_failed(error: impl std::fmt::Display) -> Failure {
    Failure::Outside(format!(
        "数据库操作失败 the database refused: {error}; run the command again, and see the server's log if it stays"
    ))
}
