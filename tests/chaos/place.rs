//! The database of a run: the program's own private Postgres in a temporary folder, gone afterwards
//! however the run ends. The chaos itself looks in by the socket, past the proxies.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use iit_manager::boot::postgres::{self, Durability, Handle, Options, StopMode};
use iit_manager::store::db;
use secrecy::ExposeSecret;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::test_postgres::TestFolder;

pub struct Place {
    // Before the folder: the server stops, then what it wrote is removed.
    server: Handle,
    folder: TestFolder,
    options: PgConnectOptions,
    /// For the chaos's own questions.
    pub pool: PgPool,
}

impl Place {
    pub async fn make(durable: bool) -> Result<Self> {
        let folder = TestFolder::new();
        let options = Options {
            durability: if durable {
                Durability::Full
            } else {
                Durability::TestOnly
            },
            ..folder.options()
        };
        let server = postgres::ensure(&options).await?;
        let options: PgConnectOptions =
            db::connect_options(server.url(), "chaos").context("the private Postgres's address")?;
        let pool = PgPoolOptions::new()
            .max_connections(4)
            .acquire_timeout(Duration::from_secs(5))
            .connect_lazy_with(options.clone());
        Ok(Self {
            server,
            folder,
            options,
            pool,
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// For commands that prepare the study.
    pub fn url(&self) -> String {
        self.server.url().expose_secret().to_owned()
    }

    /// For a process behind a proxy on `port`.
    pub fn url_by(&self, port: u16) -> String {
        let user = self.options.get_username();
        let database = self.options.get_database().unwrap_or(user);
        format!("postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable")
    }

    /// Where proxies connect to.
    pub fn socket(&self) -> Result<PathBuf> {
        let text = self.server.url().expose_secret();
        let options: PgConnectOptions = text.parse()?;
        let folder = options
            .get_socket()
            .cloned()
            .context("the private Postgres has no socket")?;
        Ok(folder.join(format!(".s.PGSQL.{}", options.get_port())))
    }

    /// As a power cut would, and up again after `pause`.
    pub async fn crash(&self, pause: Duration) -> Result<()> {
        self.server.take_down(StopMode::Immediate).await?;
        tokio::time::sleep(pause).await;
        self.server.restart_if_down().await?;
        Ok(())
    }

    /// From now on Postgres logs every change, with its values.
    pub async fn trace(&self) -> Result<()> {
        for setting in [
            "log_statement = 'mod'",
            "log_error_verbosity = 'default'",
            "log_line_prefix = '%m [%p] %a: '",
        ] {
            let set = format!("ALTER SYSTEM SET {setting}");
            sqlx::query(AssertSqlSafe(set)).execute(&self.pool).await?;
        }
        sqlx::query("SELECT pg_reload_conf()")
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Copies the server's log into `folder`.
    pub async fn keep_log(&self, folder: &Path) -> Result<()> {
        let files: Vec<(String, Vec<u8>)> =
            sqlx::query_as("SELECT name, pg_read_binary_file('log/' || name) FROM pg_ls_logdir()")
                .fetch_all(&self.pool)
                .await?;
        for (name, bytes) in files {
            std::fs::write(folder.join(name), bytes)?;
        }
        Ok(())
    }

    pub async fn end(self) -> Result<()> {
        self.pool.close().await;
        self.server.stop().await.context("stopping Postgres")
    }
}
