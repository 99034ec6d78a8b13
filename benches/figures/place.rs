//! The database of a run: the program's own private Postgres in a temporary folder, fsync on, gone
//! afterwards however the run ends.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use iit_manager::boot::cli::{project, skills};
use iit_manager::boot::database::Database;
use iit_manager::boot::postgres::{self, Durability, Handle, Options};
use iit_manager::store::db::{self, PoolSettings};
use iit_manager::types::project::{Member, Role};
use secrecy::{ExposeSecret, SecretString};
use sqlx::migrate::MigrateDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgPool};

use crate::test_postgres::TestFolder;

/// As many as a process of the program opens.
const CONNECTIONS: u32 = 20;

pub struct Place {
    // Before the folder: the server stops, then what it wrote is removed.
    server: Handle,
    folder: TestFolder,
}

impl Place {
    pub async fn make() -> Result<Self> {
        let folder = TestFolder::new();
        let options = Options {
            durability: Durability::Full,
            ..folder.options()
        };
        let server = postgres::ensure(&options).await?;
        Ok(Self { server, folder })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Version and the settings that decide about durability and speed; the same for all that is measured.
    pub async fn settings(&self) -> Result<String> {
        let base = self.database("settings").await?;
        let shown: String = sqlx::query_scalar(
            "SELECT 'Postgres ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')
                    || ', synchronous_commit ' || current_setting('synchronous_commit')
                    || ', full_page_writes ' || current_setting('full_page_writes')
                    || ', shared_buffers ' || current_setting('shared_buffers')
                    || ', max_wal_size ' || current_setting('max_wal_size')
                    || ', autovacuum ' || current_setting('autovacuum')",
        )
        .fetch_one(&base.database.pool)
        .await?;
        base.drop().await?;
        Ok(shown)
    }

    /// The address of a fresh, empty database.
    pub async fn empty(&self, name: &str) -> Result<String> {
        let options: PgConnectOptions = self.server.url().expose_secret().parse()?;
        let url = options.database(name).to_url_lossy().to_string();
        sqlx::Postgres::create_database(&url).await?;
        Ok(url)
    }

    /// A fresh, migrated database, opened as a process of the program opens it.
    pub async fn database(&self, name: &str) -> Result<Base> {
        let url = self.empty(name).await?;
        let secret = SecretString::from(url.clone());
        let settings = PoolSettings {
            application_name: "iit bench".to_owned(),
            max_connections: CONNECTIONS,
        };
        let pool = db::connect(&secret, &settings).await?;
        db::migrate(&pool).await?;
        let server = postgres::ensure(&Options {
            database_url: Some(secret),
            ..self.folder.options()
        })
        .await?;
        Ok(Base {
            database: Arc::new(Database { pool, server }),
            url,
        })
    }

    pub async fn end(self) -> Result<()> {
        self.server.stop().await.context("stopping Postgres")
    }
}

/// One database.
pub struct Base {
    pub database: Arc<Database>,
    /// For processes of their own, as `DATABASE_URL`.
    pub url: String,
}

impl Base {
    /// How many rows `query` counts.
    pub async fn count(&self, query: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(query)
            .fetch_one(&self.database.pool)
            .await?)
    }

    /// A second pool, as another process has.
    pub async fn another_pool(&self) -> Result<PgPool> {
        let settings = PoolSettings {
            application_name: "iit bench 2".to_owned(),
            max_connections: CONNECTIONS,
        };
        Ok(db::connect(&SecretString::from(self.url.clone()), &settings).await?)
    }

    /// Removes it, so that its vacuum does not disturb the next figure.
    pub async fn drop(self) -> Result<()> {
        self.database.pool.close().await;
        remove(&self.url).await
    }
}

/// Removes the database at `url`.
pub async fn remove(url: &str) -> Result<()> {
    Ok(sqlx::Postgres::force_drop_database(url).await?)
}

/// Puts the sample study with its skills into `base`. Its people are `people`, if any are named: then all
/// notices go to them, too.
pub async fn demo(base: &Base, people: &[&str]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let mut file = project::read(&folder.join("project.toml"))?;
    if !people.is_empty() {
        let people = people.iter().map(|user| (*user).to_owned());
        for group in file.groups.values_mut() {
            *group = people.clone().collect();
        }
        let member = |wecom_user| Member {
            wecom_user,
            name: String::new(),
            role: Role::Crc,
        };
        file.members = people.map(member).collect();
    }
    project::apply(&base.database.pool, &file).await?;
    skills::apply_to(&base.database.pool, &file, None, &folder.join("skills")).await?;
    Ok(())
}
